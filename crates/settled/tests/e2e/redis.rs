//! Leases in Redis, as a deployment meets them: a failover that forgets a lease, servers of a redlock that are down, a service that falls
//! silent.

use crate::locks::on_fleet;
use crate::world::{World, number, wait_until};
use lab::Error;
use lab::postgres::PostgresUrl;
use lab::proxy::{Proxy, Way};
use lab::redis::{PRIMARY_NAME, Redis, Trio, fleet};
use lab::trials::Suite;
use std::time::Duration;

pub(crate) fn add(suite: Suite) -> Suite {
    suite
        .with_postgres("L13 a failover before replication: two holders, of whom the ledger lets one write", failover)
        .with_postgres("redlock: with two of five down it works, with three it refuses", redlock)
        .with_postgres(
            "L2 a lock service falls silent: work stops before its deadline, and goes on when it is heard again",
            silence,
        )
}

fn redis(settings: &[(&'static str, String)]) -> Vec<(&'static str, String)> {
    let mut all = vec![("SETTLED__LEASE__BACKEND", "redis".to_owned())];
    all.extend_from_slice(settings);
    all
}

const ONE_UNIT: [(&str, &str); 2] = [("SETTLED__WORKER__PARTITIONS", "1"), ("SETTLED__WORKER__BATCHES_PER_TRANSACTION", "2")];

/// A lease of a minute, so that nothing here is an expiry.
fn failover(url: &PostgresUrl) -> Result<(), Error> {
    let mut trio = Trio::start()?;
    let world = World::postgres(url)
        .having(redis(&[
            ("SETTLED__LEASE__REDIS__SENTINELS", format!("redis://{}", trio.sentinel_address())),
            ("SETTLED__LEASE__REDIS__URL", format!("redis://{PRIMARY_NAME}")),
        ]))
        .with_more(&ONE_UNIT)
        .with_more(&[("SETTLED__LEASE__TTL_MS", "60000")]);
    world.import_sample(6, 2);
    trio.stop_replication()?;
    let mut old = world.start("old", &["run", "--json", "--signal-at", "BeforeSettleTx=stop"]);
    old.wait_stopped();
    trio.first.kill()?;
    trio.wait_for_second()?;
    // the new primary knows of no lease
    let mut new = world.start("new", &["run", "--json"]);
    new.wait_for("registered");
    let did = new.end_well();
    assert_eq!(number(&did, "batches_settled"), 6, "{did}");
    // the old holder was frozen for a moment of its minute: by its own clock it still has the lease
    old.process.wake()?;
    let did = old.end_well();
    assert!(old.log().contains("fenced: a newer holder"), "{}", old.log());
    assert!(!old.log().contains("stopped by its own deadline"), "two holders at once: {}", old.log());
    assert!(number(&did, "fenced") > 0 && number(&did, "batches_settled") == 0, "{did}");
    assert!(!world.rejections().is_empty());
    world.assert_all_settled(6);
    Ok(())
}

fn redlock(url: &PostgresUrl) -> Result<(), Error> {
    let mut servers = fleet(5)?;
    let world = World::postgres(url).having(on_fleet(&servers)).with_more(&ONE_UNIT);
    world.import_sample(4, 2);
    servers[0].kill()?;
    servers[3].kill()?;
    assert_eq!(number(&world.json(&["run", "--json"]), "batches_settled"), 4);
    let day = "2026-01-06".parse().expect("a date");
    let file = world.file("more.csv", intake::sample::canonical(4, 2, day, 31));
    world.import(&file, "canonical-csv");
    servers[1].kill()?;
    let (code, _, told) = world.settled(&["run", "--wait", "4"]);
    assert_eq!((code, world.settled_batches()), (4, 4), "{told}");
    servers[3].start_again()?;
    world.json(&["run", "--json"]);
    world.assert_all_settled(8);
    Ok(())
}

/// What was settled after the service fell silent was settled under a lease that was good: before its deadline, by the database's clock.
fn silence(database: &PostgresUrl) -> Result<(), Error> {
    let server = Redis::start()?;
    let proxy = Proxy::start(server.address())?;
    let world = World::postgres(database)
        .having(redis(&[("SETTLED__LEASE__REDIS__URL", format!("redis://{}", proxy.address()))]))
        .with_more(&[("SETTLED__WORKER__PARTITIONS", "1"), ("SETTLED__WORKER__BATCHES_PER_TRANSACTION", "1")]);
    world.import_sample(1_500, 3);
    let mut instance = world.start("instance", &["run", "--json"]);
    wait_until("the run has begun", || world.settled_batches() > 20);
    let clock = || -> String { database.query("SELECT clock_timestamp()").expect("a time").trim().to_owned() };
    let silent_since = clock();
    proxy.silence(Way::There);
    proxy.silence(Way::Back);
    instance.wait_for("stopped by its own deadline");
    std::thread::sleep(Duration::from_millis(500));
    let after = |ms: u64| -> u64 {
        let text = database
            .query(&format!(
                "SELECT count(*) FROM settlement_batch WHERE settled_at > timestamptz '{silent_since}' + interval '{ms} milliseconds'"
            ))
            .expect("a count");
        text.trim().parse().expect("a number")
    };
    assert!(after(0) > 0, "it worked on while its lease was good");
    // the deadline was counted from before a renewal that was sent before the silence
    assert_eq!(after(crate::world::TTL_MS), 0, "settled after the deadline");
    assert!(world.settled_batches() < 1_500, "the silence came in the middle of the run; settle more batches");
    proxy.heal();
    instance.end_well();
    world.assert_all_settled(1_500);
    Ok(())
}
