//! Where tokens come from, when that changes: a lock service that was rebuilt, and one that is exchanged for another.

use crate::locks::{Lock, on_etcd};
use crate::world::{Instance, World, number};
use lab::Error;
use lab::etcd::Etcd;
use lab::postgres::PostgresUrl;
use lab::trials::Suite;

pub(crate) fn add(suite: Suite) -> Suite {
    suite
        .with_postgres("L7 etcd restored from a snapshot as another cluster: nothing is settled before it is adopted", |url| {
            restored(url, true)
        })
        .with_postgres("L7 etcd restored from a snapshot as the same cluster: nothing is settled before it is adopted", |url| {
            restored(url, false)
        })
        .with_postgres("one lock service is exchanged for another while an instance is frozen", exchanged)
}

fn settings(world: &World) -> World {
    world.with_more(&[("SETTLED__WORKER__PARTITIONS", "1"), ("SETTLED__WORKER__BATCHES_PER_TRANSACTION", "2")])
}

fn import_more(world: &World, seed: u64) {
    let day = "2026-01-06".parse().expect("a date");
    let file = world.file("more.csv", intake::sample::canonical(4, 2, day, seed));
    world.import(&file, "canonical-csv");
}

/// Frozen right before it writes, under the newest fence there is.
fn frozen(world: &World) -> Instance {
    let mut instance = world.start("frozen", &["run", "--json", "--signal-at", "BeforeSettleTx=stop"]);
    instance.wait_stopped();
    instance
}

/// The instance from before is refused, whatever came after.
fn wake_and_refuse(world: &World, mut old: Instance) {
    old.process.wake().expect("a child");
    let (_, did) = old.end();
    let refused = old.log().matches("fenced: a newer holder").count();
    assert!(refused == 1 && (did.is_null() || number(&did, "batches_settled") == 0), "{did} {}", old.log());
    assert!(!world.rejections().is_empty());
}

/// The command in its error brings a stopped deployment back.
fn stopped_until_adopted(world: &World, code: i32) {
    let before = world.settled_batches();
    let (found, _, told) = world.settled(&["run", "--wait", "30"]);
    assert_eq!(found, code, "{told}");
    assert!(told.contains("settled fence adopt --reason"), "{told}");
    // every try draws a token, and would catch up with those of before
    for _ in 0..12 {
        let (found, _, told) = world.settled(&["run", "--wait", "30"]);
        assert!(found == 2 && told.contains("settled fence adopt --reason"), "started again, it goes on: {found} {told}");
    }
    assert_eq!(world.settled_batches(), before, "nothing was settled");
    let (code, _, told) = world.settled(&["fence", "adopt", "--reason", "the lock service is another one"]);
    assert_eq!(code, 0, "{told}");
}

fn restored(url: &PostgresUrl, as_another: bool) -> Result<(), Error> {
    let mut etcd = Etcd::start()?;
    let world = settings(&World::postgres(url).having(on_etcd(&etcd)));
    let snapshot = world.path("snapshot.db");
    etcd.snapshot(&snapshot)?;
    // what happens from here on is forgotten by the restored one
    world.import_sample(4, 2);
    world.json(&["run", "--json"]);
    import_more(&world, 21);
    let old = frozen(&world);
    etcd.restore(&snapshot, as_another)?;
    // the id is another one: known before anything is asked for; else found out by a token that went back
    stopped_until_adopted(&world, if as_another { 2 } else { 1 });
    assert_eq!(number(&world.json(&["run", "--json"]), "batches_settled"), 4);
    world.assert_all_settled(8);
    wake_and_refuse(&world, old);
    let sources = world.json(&["fence", "list", "--json"])["sources"].clone();
    let sources = sources.as_array().expect("a list");
    let names: Vec<_> = sources.iter().map(|source| source["source"].as_str().expect("a name")).collect();
    let (newest, first) = (names[0], names[names.len() - 1]);
    assert!(newest.starts_with("etcd:") && first.starts_with("etcd:"), "{names:?}");
    assert_eq!(newest == first, !as_another, "{names:?}");
    // found out by a token, it is written down that nobody's count until somebody decides
    assert_eq!(names.iter().any(|name| name.starts_with("nobody: ")), !as_another, "{names:?}");
    world.assert_all_settled(8);
    Ok(())
}

/// etcd → the database → etcd: each way the ledger is told, and an instance that slept through it is refused.
fn exchanged(url: &PostgresUrl) -> Result<(), Error> {
    let (on_etcd, _etcd) = Lock::Etcd.serve()?;
    let with_etcd = settings(&World::postgres(url).having(on_etcd));
    let with_database = settings(&World::postgres(url));
    with_etcd.import_sample(4, 2);
    let old = frozen(&with_etcd);
    let (code, _, told) = with_database.settled(&["config", "check"]);
    assert!(code == 2 && told.contains("settled fence adopt"), "{told}");
    stopped_until_adopted(&with_database, 2);
    assert_eq!(with_database.settled(&["config", "check"]).0, 0);
    assert_eq!(number(&with_database.json(&["run", "--json"]), "batches_settled"), 4);
    wake_and_refuse(&with_database, old);
    // the others of the old configuration are stopped as well, and say why
    import_more(&with_etcd, 22);
    stopped_until_adopted(&with_etcd, 2);
    assert_eq!(number(&with_etcd.json(&["run", "--json"]), "batches_settled"), 4);
    with_etcd.assert_all_settled(8);
    let (code, _, _) = with_database.settled(&["fence", "list"]);
    assert_eq!(code, 0);
    Ok(())
}
