//! `settled serve`: nights that pass every few seconds, restarts while they do, signals, the admin endpoint.

use crate::world::{Engine, Instance, World, number, on_both, wait_until, wider};
use chrono::{DateTime, Utc};
use lab::postgres::PostgresUrl;
use lab::trials::Suite;
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// A night every so many seconds.
const NIGHT_S: i64 = 4;

pub(crate) fn add(suite: Suite) -> Suite {
    let suite = on_both(suite, "five nights of three instances: one run per slot, all batches once", |world, _| nights(world));
    let suite = on_both(suite, "R9 a rolling restart of all instances loses nothing and charges nothing", rolling_restart);
    let suite = on_both(suite, "R9 asked twice, an instance does not wait for what it cannot finish", hurried);
    let suite =
        on_both(suite, "S6 S4 killed before its time and replaced after it: the run is planned by the next", |world, _| {
            replaced(world)
        });
    let suite = on_both(suite, "a definition that changed plans nothing until it is adopted", |world, _| adopted(world));
    let suite = on_both(suite, "a reload takes over schedules, and names what takes a restart", |world, _| reloaded(world));
    let suite =
        on_both(suite, "a run that nobody ends is late, and a schedule that is no more leaves no gauge", |world, _| late(world));
    on_both(suite, "the admin endpoint tells health, readiness and metrics", |world, _| endpoint(world))
}

/// The same ledger, served with a night every few seconds.
fn nightly(world: &World) -> World {
    world.with(&[
        ("SETTLED__SCHEDULE__NIGHTLY__CRON", "*/4 * * * * *"),
        ("SETTLED__SCHEDULE__NIGHTLY__ZONE", "UTC"),
        ("SETTLED__ADMIN__LISTEN", "127.0.0.1:0"),
        ("SETTLED__SERVE__IDLE_POLL_MS", "500"),
    ])
}

fn serve(world: &World, name: &str) -> Instance {
    let instance = world.start(name, &["serve"]);
    instance.wait_for("serving");
    instance
}

/// Runs of the schedule, the oldest first.
fn history(world: &World) -> Vec<Value> {
    let runs = world.json(&["schedule", "history", "--schedule", "nightly", "--limit", "1000", "--json"]);
    let mut runs = runs.as_array().expect("a list").clone();
    runs.reverse();
    runs
}

fn due(run: &Value) -> DateTime<Utc> {
    run["scheduled_for"].as_str().expect("a time").parse().expect("a time")
}

fn stop(mut instance: Instance) {
    instance.process.terminate().expect("a signal");
    let (code, _) = instance.end();
    assert_eq!(code, 0, "{}", instance.log());
}

fn nights(world: &World) {
    let world = nightly(world);
    let mut instances: Vec<Instance> = (0..3).map(|n| serve(&world, &format!("s{n}"))).collect();
    for night in 1..=5_u32 {
        wait_until("the next night", || history(&world).len() >= night as usize);
        let day = chrono::NaiveDate::from_ymd_opt(2026, 1, 4 + night).expect("a date");
        let file = world.file(&format!("{night}.csv"), intake::sample::canonical(20, 3, day, night.into()));
        world.import(&file, "canonical-csv");
        wait_until("its batches are settled", || world.settled_batches() == u64::from(night) * 20);
    }
    instances.drain(..).for_each(stop);
    let runs = history(&world);
    let slots: BTreeSet<&str> = runs.iter().map(|run| run["slot"].as_str().expect("a slot")).collect();
    assert_eq!(slots.len(), runs.len(), "one run per slot: {runs:?}");
    let apart: Vec<i64> = runs.windows(2).map(|pair| (due(&pair[1]) - due(&pair[0])).num_seconds()).collect();
    assert!(apart.iter().all(|seconds| *seconds == NIGHT_S), "no slot is missing: {apart:?}");
    assert!(runs.iter().all(|run| run["state"] == "open"), "none was missed: {runs:?}");
    let by_runs: u64 = runs.iter().map(|run| number(run, "batches_settled")).sum();
    assert_eq!(by_runs, 100, "every batch in one run: {runs:?}");
    world.assert_all_settled(100);
}

fn rolling_restart(world: &World, engine: Engine) {
    let batches = wider(if engine == Engine::Postgres { 2_000 } else { 800 });
    let world = nightly(world).with(&[
        ("SETTLED__SCHEDULE__NIGHTLY__CRON", "*/4 * * * * *"),
        ("SETTLED__SCHEDULE__NIGHTLY__ZONE", "UTC"),
        ("SETTLED__ADMIN__LISTEN", "127.0.0.1:0"),
        ("SETTLED__SERVE__IDLE_POLL_MS", "500"),
        ("SETTLED__WORKER__BATCHES_PER_TRANSACTION", "2"),
    ]);
    world.import_sample(batches, 3);
    let mut instances: Vec<Instance> = (0..3).map(|n| serve(&world, &format!("a{n}"))).collect();
    wait_until("the run has begun", || world.settled_batches() > 0);
    let mut during = 0;
    for (n, instance) in instances.iter_mut().enumerate() {
        instance.process.terminate().expect("a signal");
        let (code, _) = instance.end();
        assert_eq!(code, 0, "{}", instance.log());
        during += u32::from(world.settled_batches() < batches.into());
        *instance = serve(&world, &format!("b{n}"));
    }
    assert!(during > 0, "at least one restart was in the middle of the run; settle more batches");
    wait_until("everything is settled", || world.settled_batches() == u64::from(batches));
    instances.into_iter().for_each(stop);
    world.assert_all_settled(batches.into());
    let list = world.json(&["batch", "list", "--limit", &batches.to_string(), "--json"]);
    let charged: Vec<&Value> = list.as_array().expect("a list").iter().filter(|batch| batch["attempts"] != 1).collect();
    assert!(charged.is_empty(), "no attempt was charged by a restart: {charged:?}");
    assert_eq!(world.rejections(), Vec::<String>::new());
}

/// On SQLite another process is stopped in the middle of a settlement, and every writer waits for it. On PostgreSQL its server would
/// end that session, so somebody holds the table.
fn hurried(world: &World, engine: Engine) {
    let world = nightly(world);
    world.import_sample(3, 2);
    if engine == Engine::Postgres {
        return hurried_at_a_lock(&world);
    }
    let mut frozen = world.start("frozen", &["run", "--json", "--signal-at", "InsideSettleTx=stop"]);
    frozen.wait_stopped();
    let instance = serve(&world, "hurried");
    std::thread::sleep(Duration::from_secs(1));
    hurry(instance);
    frozen.process.wake().expect("a signal");
    frozen.end();
    world.json(&["run", "--json"]);
    world.assert_all_settled(3);
}

fn hurried_at_a_lock(world: &World) {
    let server = PostgresUrl::new(world.url());
    let waiters = |what: &str| server.query(&format!("select count(*) from pg_stat_activity where {what}")).expect("an answer");
    let held = "datname = current_database() and query like '%pg_sleep(100)%' and wait_event = 'PgSleep'";
    let holder = {
        let server = server.clone();
        std::thread::spawn(move || server.query("begin; lock table settlement_batch in exclusive mode; select pg_sleep(100)"))
    };
    wait_until("the table is held", || waiters(held) == "1");
    // it waits a quarter of that for a lock
    let patient = world.with_more(&[("SETTLED__LEASE__TTL_MS", "30000")]);
    let instance = serve(&patient, "hurried");
    let waits = "datname = current_database() and wait_event_type = 'Lock' and query like '%settlement_batch%'";
    wait_until("it waits for the table", || waiters(waits) != "0");
    hurry(instance);
    server.query(&format!("select pg_terminate_backend(pid) from pg_stat_activity where {held}")).expect("an answer");
    holder.join().expect("no panic").expect_err("it was ended");
    world.json(&["run", "--json"]);
    world.assert_all_settled(3);
}

/// Asks twice.
fn hurry(mut instance: Instance) {
    instance.process.terminate().expect("a signal");
    instance.wait_for("draining");
    instance.process.terminate().expect("a signal");
    let begun = Instant::now();
    let (code, _) = instance.end();
    assert_eq!(code, 1, "it did not drain, it was hurried: {}", instance.log());
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}: {}", begun.elapsed(), instance.log());
}

fn replaced(world: &World) {
    let world = world.with(&[
        ("SETTLED__SCHEDULE__NIGHTLY__CRON", "*/10 * * * * *"),
        ("SETTLED__SCHEDULE__NIGHTLY__ZONE", "UTC"),
        ("SETTLED__ADMIN__LISTEN", "127.0.0.1:0"),
        ("SETTLED__SERVE__IDLE_POLL_MS", "500"),
    ]);
    let mut first = serve(&world, "first");
    wait_until("the first run", || !history(&world).is_empty());
    // restarted more often than the interval, and not there when it is time
    first.process.kill().expect("a kill");
    for n in 0..3 {
        let mut short = serve(&world, &format!("short{n}"));
        short.process.kill().expect("a kill");
    }
    let before = history(&world);
    let next = due(before.last().expect("the first run")) + chrono::TimeDelta::seconds(10);
    wait_until("its time has passed", || Utc::now() > next + chrono::TimeDelta::seconds(1));
    let second = serve(&world, "second");
    wait_until("the run is there", || history(&world).iter().any(|run| due(run) == next));
    stop(second);
    let runs = history(&world);
    let late = runs.iter().find(|run| due(run) == next).expect("looked for above");
    assert_eq!(late["state"], "open", "planned by the next instance: {runs:?}");
    let by = |run: &Value| run["opened_by"].as_str().expect("a holder").to_owned();
    assert!(!before.iter().any(|run| by(run) == by(late)), "by none of those that were killed: {runs:?}");
}

fn adopted(world: &World) {
    let nights = nightly(world);
    let first = serve(&nights, "first");
    wait_until("a run", || !history(&nights).is_empty());
    stop(first);
    let changed = nights.with(&[
        ("SETTLED__SCHEDULE__NIGHTLY__CRON", "*/3 * * * * *"),
        ("SETTLED__SCHEDULE__NIGHTLY__ZONE", "UTC"),
        ("SETTLED__ADMIN__LISTEN", "127.0.0.1:0"),
        ("SETTLED__SERVE__IDLE_POLL_MS", "500"),
    ]);
    let second = serve(&changed, "second");
    let refused = second.wait_for("settled schedule adopt nightly");
    assert_eq!(refused["level"], "ERROR", "{refused}");
    let listed = changed.json(&["schedule", "list", "--json"]);
    assert!(listed[0]["state"].as_str().expect("a word").starts_with("refused"), "{listed}");
    let before = history(&changed).len();
    std::thread::sleep(Duration::from_secs(4));
    assert_eq!(history(&changed).len(), before, "nothing is planned by it");
    // nor does a person take the night's place with it
    let (code, _, err) = changed.settled(&["run", "--json"]);
    assert!(code == 2 && err.contains("settled schedule adopt nightly"), "{err}");
    // what is due is settled all the same
    changed.import_sample(2, 2);
    wait_until("the batches are settled", || changed.settled_batches() == 2);
    let (code, _, err) = changed.settled(&["schedule", "adopt", "nightly", "--reason", "every three seconds now"]);
    assert_eq!(code, 0, "{err}");
    wait_until("it is planned", || history(&changed).len() > before);
    assert_eq!(changed.json(&["schedule", "list", "--json"])[0]["state"], "planned");
    let said = second
        .events()
        .iter()
        .filter(|event| event["message"].as_str().is_some_and(|text| text.contains("schedule adopt")))
        .count();
    assert_eq!(said, 1, "said once, not at every bell: {}", second.log());
    stop(second);
}

fn reloaded(world: &World) {
    let text = |cron: &str, level: &str, ttl: u32| {
        format!(
            "[schedule.nightly]\ncron = \"{cron}\"\nzone = \"UTC\"\n[admin]\nlisten = \"127.0.0.1:0\"\n[lease]\nttl_ms = {ttl}\n[log]\nformat = \"json\"\nlevel = \"{level}\"\n[serve]\nidle_poll_ms = 500\n"
        )
    };
    let plain = world.with(&[]);
    let file = plain.file("settled.toml", text("0 3 1 1 *", "info", 2_000));
    let path = file.to_str().expect("UTF-8").to_owned();
    let mut command = plain.command(&["serve", "--config", &path]);
    for key in ["SETTLED__LEASE__TTL_MS", "SETTLED__LOG__FORMAT", "SETTLED__LOG__LEVEL"] {
        command.env_remove(key);
    }
    let mut instance = plain.start_command("served", &mut command);
    instance.wait_for("first planned from now on");
    plain.file("settled.toml", text("not a cron", "info", 2_000));
    instance.process.hangup().expect("a signal");
    let wrong = instance.wait_for("the old one stays in force");
    assert!(wrong["error"].as_str().expect("a text").contains("schedule.nightly.cron"), "{wrong}");
    plain.file("settled.toml", text("*/3 * * * * *", "debug", 3_000));
    instance.process.hangup().expect("a signal");
    let stays = instance.wait_for("only a restart takes them over");
    assert_eq!(stays["sections"], "lease", "{stays}");
    instance.wait_for("configuration reloaded");
    // the definition is another one now: the ledger has to be told
    instance.wait_for("settled schedule adopt nightly");
    let (code, _, err) = plain.settled(&["schedule", "adopt", "nightly", "--reason", "reloaded", "--config", &path]);
    assert_eq!(code, 0, "{err}");
    wait_until("a run of the new schedule", || !history(&plain).is_empty());
    plain.import_sample(1, 1);
    wait_until("debug lines", || instance.events().iter().any(|event| event["level"] == "DEBUG"));
    // sound for itself; with the lease that stays in force until a restart it is not
    let longer = text("*/3 * * * * *", "debug", 60_000) + "[worker]\nsettle_timeout_ms = 20000\n";
    plain.file("settled.toml", longer);
    instance.process.hangup().expect("a signal");
    let refused = || -> Vec<String> {
        let events = instance.events().into_iter();
        let refused = events.filter(|event| event["message"].as_str().is_some_and(|text| text.contains("the old one stays")));
        refused.map(|event| event["error"].to_string()).collect()
    };
    wait_until("the mixture is refused", || refused().len() == 2);
    assert!(refused()[1].contains("worker.settle_timeout_ms is 20000"), "{:?}", refused());
    instance.process.terminate().expect("a signal");
    instance.end_quietly();
}

pub(crate) fn metric(instance: &Instance, name: &str) -> Option<String> {
    let text = get(instance, "/metrics").1;
    let line = text.lines().find(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(' ')));
    line.and_then(|line| line.rsplit(' ').next()).map(str::to_owned)
}

pub(crate) fn get(instance: &Instance, path: &str) -> (u16, String) {
    let address = instance.wait_for("serving")["address"].as_str().expect("an address").to_owned();
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let mut answer = agent.get(format!("http://{address}{path}")).call().expect("an answer");
    (answer.status().as_u16(), answer.body_mut().read_to_string().expect("a text"))
}

/// Somebody has the unit and does not work it: the run is late from its own time on, also when the next ones have come.
fn late(world: &World) {
    world.import_sample(1, 2);
    let holding = world.with_more(&[("SETTLED__LEASE__TTL_MS", "60000")]);
    let mut frozen = holding.start("frozen", &["run", "--json", "--signal-at", "BatchesClaimed=stop"]);
    frozen.wait_stopped();
    let file = |schedule: &str| world.file("settled.toml", format!("{schedule}[admin]\nlisten = \"127.0.0.1:0\"\n"));
    let path = file("[schedule.nightly]\ncron = \"*/4 * * * * *\"\nzone = \"UTC\"\n");
    let mut command = holding.command(&["serve", "--config", path.to_str().expect("UTF-8")]);
    let mut instance = world.start_command("served", &mut command);
    instance.wait_for("serving");
    let of_nightly = |name: &str| metric(&instance, &format!("{name}{{schedule=\"nightly\"}}"));
    let lateness = || of_nightly("settled_run_lateness_seconds").map_or(0, |late| late.parse::<i64>().expect("seconds"));
    wait_until("it is later than from one night to the next", || lateness() > 2 * NIGHT_S);
    // a schedule that is configured no more leaves nothing behind
    file("");
    instance.process.hangup().expect("a signal");
    instance.wait_for("configuration reloaded");
    let of_nightly = |name: &str| metric(&instance, &format!("{name}{{schedule=\"nightly\"}}"));
    wait_until("its gauges are gone", || of_nightly("settled_run_lateness_seconds").is_none());
    assert_eq!(of_nightly("settled_schedule_next_run_timestamp_seconds"), None);
    instance.process.terminate().expect("a signal");
    instance.end_quietly();
    frozen.process.kill().expect("a kill");
}

fn endpoint(world: &World) {
    let world = nightly(world);
    let instance = serve(&world, "served");
    wait_until("a run", || !history(&world).is_empty());
    assert_eq!(get(&instance, "/healthz"), (200, "ok\n".to_owned()));
    assert_eq!(get(&instance, "/readyz"), (200, "ready\n".to_owned()));
    assert_eq!(get(&instance, "/nothing").0, 404);
    // clients that say nothing keep nobody out for long
    let address = instance.wait_for("serving")["address"].as_str().expect("an address").to_owned();
    let silent: Vec<_> = (0..100).map(|_| std::net::TcpStream::connect(&address).expect("a connection")).collect();
    assert_eq!(get(&instance, "/healthz").0, 200);
    drop(silent);
    world.import_sample(4, 2);
    wait_until("the batches are settled", || world.settled_batches() == 4);
    std::thread::sleep(Duration::from_secs(3));
    let value = |name: &str| metric(&instance, name).unwrap_or_else(|| panic!("{name} in {}", get(&instance, "/metrics").1));
    assert_eq!(value("settled_batches_settled_total"), "4");
    assert_eq!(value("settled_items_settled_total"), "12");
    assert_eq!(value("settled_ledger_up"), "1");
    assert_eq!(value("settled_draining"), "0");
    assert_eq!(value("settled_batches{state=\"pending\"}"), "0");
    assert_eq!(value("settled_fence_rejections_total{step=\"settle\"}"), "0");
    assert_eq!(value("settled_schedule_refused{schedule=\"nightly\"}"), "0");
    assert_ne!(value("settled_runs_planned_total{schedule=\"nightly\"}"), "0");
    assert_ne!(value("settled_leases_acquired_total"), "0");
    assert_ne!(value("settled_settle_transaction_seconds_count"), "0");
    assert_eq!(value("settled_run_lateness_seconds{schedule=\"nightly\"}"), "0");
    let next: f64 = value("settled_schedule_next_run_timestamp_seconds{schedule=\"nightly\"}").parse().expect("a number");
    let last: f64 = value("settled_schedule_last_run_timestamp_seconds{schedule=\"nightly\"}").parse().expect("a number");
    assert!(next > last, "{next} is after {last}");
    stop(instance);
}
