//! Leases in etcd, as a deployment meets them: a leader dies, the quorum goes and comes, somebody else's program holds the lock.

use crate::locks::on_etcd;
use crate::world::{Instance, TTL_MS, World, number, wait_until};
use lab::Error;
use lab::etcd::Etcd;
use lab::postgres::PostgresUrl;
use lab::process::{Output, Process};
use lab::trials::Suite;
use std::time::{Duration, Instant};

pub(crate) fn add(suite: Suite) -> Suite {
    suite
        .with_postgres("etcd: its leader is killed in the middle of a run: the run goes on", leader_killed)
        .with_postgres("L24 etcd: without a quorum nothing is settled; with it, everybody goes on within two TTLs", quorum)
        .with_postgres("etcd: etcdctl lock of the same name waits for us, and we for it", etcdctl)
}

/// Every settlement takes a while, so that something can happen in the middle.
const SLOW: [(&str, &str); 2] = [("SETTLED__WORKER__PARTITIONS", "4"), ("SETTLED__WORKER__BATCHES_PER_TRANSACTION", "1")];

fn world(url: &PostgresUrl, etcd: &Etcd) -> World {
    World::postgres(url).having(on_etcd(etcd)).with_more(&SLOW)
}

fn leader_killed(url: &PostgresUrl) -> Result<(), Error> {
    let mut etcd = Etcd::start_three()?;
    let world = world(url, &etcd);
    world.import_sample(2_000, 2);
    let mut instances: Vec<Instance> = (0..2).map(|n| world.start(&format!("i{n}"), &["run", "--json"])).collect();
    wait_until("the run has begun", || world.settled_batches() > 20);
    etcd.kill(etcd.leader()?)?;
    let at = world.settled_batches();
    assert!(at < 2_000, "the leader was killed in the middle of the run; settle more batches");
    let settled: u64 = instances.iter_mut().map(|instance| number(&instance.end_well(), "batches_settled")).sum();
    assert_eq!(settled, 2_000);
    world.assert_all_settled(2_000);
    Ok(())
}

fn quorum(url: &PostgresUrl) -> Result<(), Error> {
    let mut etcd = Etcd::start_three()?;
    let world = world(url, &etcd).with_more(&[("SETTLED__ADMIN__LISTEN", "127.0.0.1:0")]);
    // something was settled before, so that the source of tokens is known
    world.import_sample(4, 2);
    world.json(&["run", "--json"]);
    etcd.kill(0)?;
    etcd.kill(1)?;
    let file = world.file("more.csv", intake::sample::canonical(40, 2, "2026-01-06".parse().expect("a date"), 12));
    world.import(&file, "canonical-csv");
    let mut serving = world.start("serving", &["serve"]);
    let mut waiting = world.start("waiting", &["run", "--json"]);
    serving.wait_for("is out");
    waiting.wait_for("is out");
    let begun = Instant::now();
    let (code, _, told) = world.settled(&["run", "--wait", "10"]);
    assert_eq!(code, 4, "{told}");
    assert!((10..25).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
    assert_eq!(world.settled_batches(), 4, "nothing is settled without a quorum");
    etcd.start_again(0)?;
    let back = url.query("SELECT clock_timestamp()")?;
    waiting.end_well();
    world.assert_all_settled(44);
    // by the database's clock, so that no look of ours is in it
    let first = format!(
        "SELECT (extract(epoch FROM min(settled_at) - timestamptz '{back}') * 1000)::bigint
         FROM settlement_batch WHERE business_date = '2026-01-06'",
        back = back.trim()
    );
    let after: i64 = url.query(&first)?.trim().parse().expect("milliseconds");
    println!("settled {after} ms after the quorum was back, TTL {TTL_MS} ms");
    assert!(after <= i64::try_from(2 * TTL_MS).expect("small"), "{after} ms");
    // the one that serves goes on as well, and it alone is left
    let file = world.file("last.csv", intake::sample::canonical(4, 2, "2026-01-07".parse().expect("a date"), 13));
    world.import(&file, "canonical-csv");
    wait_until("the serving one settles again", || world.settled_batches() == 48);
    assert!(serving.process.ended()?.is_none(), "it goes on serving: {}", serving.log());
    serving.process.terminate()?;
    serving.end_quietly();
    Ok(())
}

/// One unit, so that there is one name to lock.
fn etcdctl(url: &PostgresUrl) -> Result<(), Error> {
    let etcd = Etcd::start()?;
    let world = World::postgres(url).having(on_etcd(&etcd)).with_more(&[("SETTLED__WORKER__PARTITIONS", "1")]);
    world.import_sample(4, 2);
    let lease = format!("settled/{}/unit/0", ledger_id(&world));
    let file = world.path("etcdctl.out");
    let lock = || -> Result<Process, Error> {
        let _ = std::fs::remove_file(&file);
        Process::spawn(etcd.etcdctl()?.args(["lock", &lease]), Output::Files { stdout: &file, stderr: &file })
    };
    let has_it = || std::fs::read_to_string(&file).is_ok_and(|said| said.contains(&lease));

    // we wait for it
    let mut theirs = lock()?;
    wait_until("etcdctl has the lock", has_it);
    let (code, _, told) = world.settled(&["run", "--wait", "2"]);
    assert_eq!((code, world.settled_batches()), (4, 0), "{told}");
    theirs.interrupt()?;
    theirs.wait(Duration::from_secs(20))?;

    // it waits for us
    let mut ours = world.start("ours", &["run", "--json", "--signal-at", "BatchesClaimed=stop"]);
    ours.wait_stopped();
    let mut theirs = lock()?;
    std::thread::sleep(Duration::from_millis(700));
    assert!(!has_it(), "both have it");
    ours.process.wake()?;
    ours.end_well();
    wait_until("etcdctl has the lock", has_it);
    world.assert_all_settled(4);
    theirs.interrupt()?;
    theirs.wait(Duration::from_secs(20))?;
    Ok(())
}

/// As everybody can find it out: the leases begin with it.
fn ledger_id(world: &World) -> String {
    let (code, out, err) = world.settled(&["config", "check"]);
    assert_eq!(code, 0, "{err}");
    out.trim().rsplit(' ').next().expect("the configuration fits ledger …").to_owned()
}
