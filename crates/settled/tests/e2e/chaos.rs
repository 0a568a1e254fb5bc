//! Chaos mode: instances that freeze, kill, delay and cut off themselves, and books that hold.
//!
//! What waits for a takeover does so by what the other instance says, never by time: see `world.rs`.

use crate::locks::{Lock, on_every_lock};
use crate::world::{Instance, TTL_MS, World, number, on_both, wait_until};
use lab::Error;
use lab::postgres::PostgresUrl;
use lab::trials::Suite;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

const BATCHES: u32 = 12;

pub(crate) fn add(suite: Suite) -> Suite {
    let cut = "chaos: cut off from its lock service, a holder stops by its own deadline and goes on by itself";
    let suite = on_every_lock(suite, cut, Lock::has_leases, |world, _, _| cut_off(world));
    on_both(suite, "chaos: frozen past its lease, taken over from, woken: the late write is refused", |world, _| frozen(world))
        .with_postgres("chaos: a frozen instance that is killed leaves no helper behind", killed_while_frozen)
        .plain("chaos: killed at the n-th time, and only then", killed)
        .plain("chaos: a delay holds the worker up, and not its renewals", delayed)
        .plain("chaos: the same seed does the same twice", seeded)
        .plain("chaos: production refuses it, and takes it when told so in words", in_production)
        .plain("chaos: an init process refuses what the kernel would not do", as_first_process)
        .plain("chaos: an instance that serves counts its faults, and has no helper left", counted)
        .plain("chaos: a reload keeps the faults, and says so", reloaded)
}

/// The same ledger, worked with this `[chaos]` by few units and one batch a transaction.
fn with_chaos(world: &World, faults: &str) -> (World, PathBuf) {
    let world = world.with_more(&[("SETTLED__WORKER__PARTITIONS", "2"), ("SETTLED__WORKER__BATCHES_PER_TRANSACTION", "1")]);
    let file = world.file("chaos.toml", format!("environment = \"staging\"\n[chaos]\nseed = 7\n{faults}"));
    (world, file)
}

fn fault(step: &str, what: &str, when: &str) -> String {
    format!("[[chaos.fault]]\nstep = \"{step}\"\nwhat = \"{what}\"\n{when}\n")
}

fn start(world: &World, name: &str, file: &std::path::Path) -> Instance {
    world.start(name, &["--config", file.to_str().expect("UTF-8"), "run", "--json"])
}

fn says(instance: &Instance, words: &str) -> bool {
    instance.events().iter().any(|event| event["message"].as_str().is_some_and(|message| message.contains(words)))
}

/// What it did to itself, in order.
fn faults_of(instance: &Instance) -> Vec<String> {
    let told = instance
        .events()
        .into_iter()
        .filter(|event| event["message"].as_str().is_some_and(|message| message.contains("this process, as asked")));
    told.map(|event| format!("{} {} {}", event["what"].as_str().unwrap_or("?"), event["step"], event["time"])).collect()
}

/// Processes that `parent` has started and not reaped.
fn children(parent: u32) -> Vec<u32> {
    let stat = |pid: &u32| std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let is_its = |pid: &u32| {
        let stat = stat(pid);
        let its_parent = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok());
        its_parent == Some(parent)
    };
    let pids = std::fs::read_dir("/proc").expect("proc(5)").filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter(is_its).collect()
}

/// Asks the helper to end, which wakes the process first: nobody has to guess how long a busy machine takes.
fn wake_early(frozen: &Instance) {
    let helpers = children(frozen.process.pid());
    assert_eq!(helpers.len(), 1, "one that would wake it");
    let helper = i32::try_from(helpers[0]).ok().and_then(Pid::from_raw).expect("a process id");
    kill_process(helper, Signal::TERM).expect("a signal");
}

fn frozen(world: &World) {
    let (chaotic, file) = with_chaos(world, &fault("BeforeSettleTx", "freeze", "for_ms = 3000000\nnth = 2"));
    world.with_more(&[("SETTLED__WORKER__PARTITIONS", "2")]).import_sample(BATCHES, 3);
    let mut a = start(&chaotic, "a", &file);
    a.wait_stopped();
    assert!(says(&a, "chaos mode") && !says(&a, "awake again"), "{}", a.log());
    let b = chaotic.start("b", &["run", "--json"]).end_well();
    assert_eq!(number(&b, "batches_settled"), u64::from(BATCHES) - 1, "all but the one before A froze: {b}");
    assert!(a.process.is_stopped() && !says(&a, "awake again"), "{}", a.log());
    wake_early(&a);
    let late = a.end_well();
    assert_eq!((number(&late, "batches_settled"), number(&late, "fenced")), (1, 1), "{late}");
    assert!(says(&a, "awake again"), "{}", a.log());
    assert_eq!(faults_of(&a), ["freeze for 3000000 ms \"BeforeSettleTx\" 2"]);
    assert_eq!(chaotic.rejections(), ["settle"]);
    chaotic.assert_all_settled(BATCHES.into());
}

fn killed_while_frozen(url: &PostgresUrl) {
    let world = World::postgres(url);
    let (world, file) = with_chaos(&world, &fault("BatchesClaimed", "freeze", "for_ms = 3000000\nnth = 1"));
    world.import_sample(BATCHES, 3);
    let mut a = start(&world, "a", &file);
    a.wait_stopped();
    let helpers = children(a.process.pid());
    assert_eq!(helpers.len(), 1, "one that would wake it");
    a.process.kill().expect("a signal");
    // reaped by whoever inherits it
    let is_there = |pid: &u32| std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z"));
    wait_until("the helper has ended", || !helpers.iter().any(is_there));
    world.json(&["run", "--json"]);
    world.assert_all_settled(BATCHES.into());
}

fn killed() {
    let ledger = World::sqlite();
    let (world, file) = with_chaos(&ledger, &fault("InsideSettleTx", "kill", "nth = 3"));
    world.import_sample(BATCHES, 3);
    let mut a = start(&world, "a", &file);
    assert_eq!(a.end().0, -1, "{}", a.log());
    assert_eq!(faults_of(&a), ["kill \"InsideSettleTx\" 3"]);
    assert_eq!(world.settled_batches(), 2, "the third was not committed");
    world.json(&["run", "--json"]);
    world.assert_all_settled(BATCHES.into());
}

fn delayed() {
    let faults = fault("BatchesClaimed", "delay", &format!("for_ms = {}\nnth = 1", TTL_MS * 2));
    let ledger = World::sqlite();
    let (world, file) = with_chaos(&ledger, &faults);
    world.import_sample(BATCHES, 3);
    let did = start(&world, "a", &file).end_well();
    assert!(number(&did, "duration_ms") >= TTL_MS * 2, "{did}");
    assert_eq!((number(&did, "batches_settled"), number(&did, "fenced")), (BATCHES.into(), 0), "its lease was renewed: {did}");
    world.assert_all_settled(BATCHES.into());
}

/// The delay is longer than the lease: without the cut the holder would come through it, as in [`delayed`]. The cut is longer than the
/// delay: at first the unit cannot be acquired anew.
fn cut_off(world: &World) {
    let span = |ttls| format!("for_ms = {}\nnth = 1", TTL_MS * ttls);
    let both = fault("BatchesClaimed", "cut", &span(3)) + &fault("BatchesClaimed", "delay", &span(2));
    let (world, file) = with_chaos(world, &both);
    world.import_sample(BATCHES, 3);
    let mut a = start(&world, "a", &file);
    let did = a.end_well();
    assert_eq!(faults_of(&a).len(), 2, "{}", a.log());
    assert!(says(&a, "lost: stopped by its own deadline"), "{}", a.log());
    assert!(a.log().contains("chaos mode has cut the way to it"), "it says why nothing goes on: {}", a.log());
    assert_eq!((number(&did, "batches_settled"), number(&did, "fenced")), (BATCHES.into(), 0), "{did}");
    world.assert_all_settled(BATCHES.into());
}

fn seeded() {
    let told = |seed: u32| {
        let faults = fault("BeforeSettleTx", "delay", "for_ms = 1\nprobability = \"0.3\"")
            + &fault("Settled", "delay", "for_ms = 1\nprobability = \"0.2\"");
        let ledger = World::sqlite();
        let (world, file) = with_chaos(&ledger, &faults);
        let world = world.with_more(&[("SETTLED__CHAOS__SEED", &seed.to_string())]);
        world.import_sample(40, 1);
        let mut a = start(&world, "a", &file);
        a.end_well();
        let started = a.wait_for("chaos mode");
        assert_eq!(started["seed"], seed, "it says which seed is in force: {started}");
        faults_of(&a)
    };
    let first = told(11);
    assert!(first.len() > 5 && first.len() < 75, "{first:?}");
    assert_eq!(first, told(11));
    assert_ne!(first, told(12));
}

fn in_production() {
    let world = World::sqlite();
    let kill = fault("Settled", "kill", "nth = 1");
    let file = world.file("production.toml", &kill);
    let file = file.to_str().expect("UTF-8");
    for command in [&["run", "--json"][..], &["serve"], &["config", "check"]] {
        let (code, out, err) = world.settled(&[&["--config", file], command].concat());
        assert_eq!(code, 2, "{command:?}: {out}{err}");
        assert!(err.contains("environment is \"production\"") && err.contains("environment = \"staging\""), "{err}");
        assert!(err.contains("in_production = \"I accept that instances freeze and die here\""), "{err}");
    }
    assert!(!world.path("settled.db").exists(), "and nothing is made");
    let accepted = format!("[chaos]\nin_production = \"I accept that instances freeze and die here\"\n{kill}");
    let file = world.file("accepted.toml", accepted);
    world.import_sample(2, 1);
    assert_eq!(start(&world, "a", &file).end().0, -1, "it does what it was told to");
}

/// In a PID namespace of its own, as in a container.
fn as_first_process() -> Result<(), Error> {
    let unshare = unshare()?;
    let freeze = fault("BatchesClaimed", "freeze", "for_ms = 300\nnth = 1");
    let ledger = World::sqlite();
    let (world, file) = with_chaos(&ledger, &freeze);
    world.import_sample(BATCHES, 1);
    let run = [&["--config", file.to_str().expect("UTF-8"), "run", "--json"][..]].concat();
    let settled = world.command(&run);
    let as_first = |world: &World, settled: &Command, before: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(&unshare).args(before).arg(settled.get_program()).args(settled.get_args());
        command.current_dir(world.path("."));
        command.envs(settled.get_envs().filter_map(|(key, value)| Some((key, value?))));
        command
    };
    let mut first = world.start_command("first", &mut as_first(&world, &settled, &[]));
    assert_eq!(first.end().0, 2, "{}", first.log());
    for words in ["cannot freeze this process", "process id 1", "docker run --init", "shareProcessNamespace: true", "tini"] {
        assert!(first.log().contains(words), "{words}: {}", first.log());
    }
    assert_eq!(world.settled_batches(), 0);
    // what is not a signal is done there too
    let other = World::sqlite();
    let (delaying, delay) = with_chaos(&other, &fault("Settled", "delay", "for_ms = 1\nnth = 1"));
    delaying.import_sample(2, 1);
    let run = delaying.command(&["--config", delay.to_str().expect("UTF-8"), "run", "--json"]);
    let mut delayed = delaying.start_command("delayed", &mut as_first(&delaying, &run, &[]));
    assert_eq!(number(&delayed.end_well(), "batches_settled"), 2);
    assert_eq!(faults_of(&delayed), ["delay for 1 ms \"Settled\" 1"]);
    // under an init of its own it freezes and is woken
    let mut second = world.start_command("second", &mut as_first(&world, &settled, &["sh", "-c", "\"$@\"; exit $?", "sh"]));
    let did = second.end_well();
    assert_eq!(number(&did, "batches_settled"), u64::from(BATCHES), "{did}");
    assert!(says(&second, "awake again"), "{}", second.log());
    world.assert_all_settled(BATCHES.into());
    Ok(())
}

/// How a PID namespace with a /proc of its own is made here.
fn unshare() -> Result<Vec<&'static str>, Error> {
    let ways: [&[&str]; 2] =
        [&["--pid", "--fork", "--mount-proc"], &["--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]];
    let works =
        |way: &&&[&str]| Command::new("unshare").args(**way).arg("true").output().is_ok_and(|output| output.status.success());
    let found = ways.iter().find(works).map(|way| way.to_vec());
    found.ok_or_else(|| Error::Missing {
        what: "unshare with the right to make PID namespaces",
        package: "util-linux",
        looked: "the PATH, as this user and in a user namespace".to_owned(),
    })
}

fn serving(ledger: &World, faults: &str) -> (World, Instance, String) {
    let (world, file) = with_chaos(ledger, faults);
    let world = world.with_more(&[
        ("SETTLED__SCHEDULE__NIGHTLY__CRON", "*/2 * * * * *"),
        ("SETTLED__SCHEDULE__NIGHTLY__ZONE", "UTC"),
        ("SETTLED__ADMIN__LISTEN", "127.0.0.1:0"),
        ("SETTLED__SERVE__IDLE_POLL_MS", "300"),
    ]);
    world.file("serving.toml", std::fs::read(file).expect("just written"));
    let instance = world.start("serving", &["--config", world.path("serving.toml").to_str().expect("UTF-8"), "serve"]);
    let address = instance.wait_for("serving")["address"].as_str().expect("an address").to_owned();
    (world, instance, address)
}

fn metrics(address: &str) -> String {
    let url = format!("http://{address}/metrics");
    ureq::get(&url).call().ok().and_then(|mut answer| answer.body_mut().read_to_string().ok()).unwrap_or_default()
}

fn end(mut instance: Instance) {
    instance.process.terminate().expect("a signal");
    assert_eq!(instance.end().0, 0, "{}", instance.log());
}

fn counted() {
    let faults = fault("BatchesClaimed", "freeze", "for_ms = 200\nnth = 1") + &fault("Settled", "kill", "nth = 4000000000");
    let ledger = World::sqlite();
    let (world, instance, address) = serving(&ledger, &faults);
    let line = |what: &str, count: u32| format!("settled_chaos_faults_total{{{what}}} {count}\n");
    let (froze, kill) = ("what=\"freeze\",step=\"BatchesClaimed\"", "what=\"kill\",step=\"Settled\"");
    let before = metrics(&address);
    assert!(before.contains(&line(froze, 0)) && before.contains(&line(kill, 0)), "an alert sees that it is on: {before}");
    world.import_sample(BATCHES, 1);
    wait_until("it was frozen, and counted it", || metrics(&address).contains(&line(froze, 1)));
    wait_until("everything is settled", || world.settled_batches() == u64::from(BATCHES));
    assert_eq!(children(instance.process.pid()), Vec::<u32>::new(), "the helper is gone, and no zombie");
    assert!(metrics(&address).contains(&line(kill, 0)));
    end(instance);
    world.assert_all_settled(BATCHES.into());
}

fn reloaded() {
    let ledger = World::sqlite();
    let (world, mut instance, address) = serving(&ledger, &fault("Settled", "delay", "for_ms = 1\nnth = 1"));
    world.file("serving.toml", "environment = \"test\"\n");
    instance.process.hangup().expect("a signal");
    let told: Value = instance.wait_for("only a restart takes them over");
    let sections = told["sections"].as_str().expect("a list");
    assert!(sections.contains("environment") && sections.contains("chaos"), "{told}");
    world.import_sample(2, 1);
    wait_until("the fault is still there", || {
        metrics(&address).contains("settled_chaos_faults_total{what=\"delay\",step=\"Settled\"} 1\n")
    });
    end(instance);
}
