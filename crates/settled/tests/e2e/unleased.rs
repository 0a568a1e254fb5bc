//! The guards that have no lease, three instances, one of them frozen or killed: what it had in hand is settled by the others, once, and
//! when it wakes there is nothing to refuse.

use crate::world::{Instance, TTL_MS, World, number};
use domain::step::Step;
use lab::postgres::PostgresUrl;
use lab::trials::Suite;

const BATCHES: u32 = 24;
const GUARDS: [&str; 2] = ["row-lock", "advisory-xact"];

pub(crate) fn add(mut suite: Suite) -> Suite {
    for guard in GUARDS {
        for step in [Step::BeforeSettleTx, Step::InsideSettleTx] {
            suite = suite
                .with_postgres(&format!("R1 SIGSTOP at {step} under {guard}"), move |url: &PostgresUrl| {
                    frozen(&small_steps(url, guard), step);
                })
                .with_postgres(&format!("R4 M13 SIGKILL at {step} under {guard}"), move |url: &PostgresUrl| {
                    killed(&small_steps(url, guard), step);
                });
        }
    }
    suite.plain("advisory-xact is refused on SQLite, and told what to take", refused_on_sqlite)
}

/// Few units and one batch a transaction: there is more to do when one goes.
fn small_steps(url: &PostgresUrl, guard: &'static str) -> World {
    let world = World::postgres(url).with(&[
        ("SETTLED__WORKER__GUARD", guard),
        ("SETTLED__WORKER__PARTITIONS", "2"),
        ("SETTLED__WORKER__BATCHES_PER_TRANSACTION", "1"),
    ]);
    world.import_sample(BATCHES, 5);
    world
}

fn others(world: &World) -> [Instance; 2] {
    ["b", "c"].map(|name| world.start(name, &["run", "--json"]))
}

/// Longer frozen than its session lasts and its batch is kept from others.
fn frozen(world: &World, step: Step) {
    let mut a = world.start("a", &["run", "--json", "--signal-at", &format!("{step}=stop")]);
    a.wait_stopped();
    let did = others(world).map(|mut other| number(&other.end_well(), "batches_settled"));
    assert_eq!(did.iter().sum::<u64>(), u64::from(BATCHES), "they did all of it: {did:?}, TTL {TTL_MS} ms");
    let before = world.assert_all_settled(BATCHES.into());
    a.process.wake().expect("a child");
    let a_did = a.end_well();
    assert_eq!(number(&a_did, "batches_settled"), 0, "{a_did} {}", a.log());
    assert_eq!(before, world.assert_all_settled(BATCHES.into()), "it wrote something");
    assert_eq!(number(&a_did, "fenced"), 0, "there is no fence to meet: {a_did}");
    assert!(world.rejections().is_empty());
}

fn killed(world: &World, step: Step) {
    let mut a = world.start("a", &["run", "--json", "--signal-at", &format!("{step}=kill@3")]);
    let (code, _) = a.end();
    assert_eq!(code, -1, "killed: {}", a.log());
    let did = others(world).map(|mut other| number(&other.end_well(), "batches_settled"));
    assert_eq!(did.iter().sum::<u64>(), u64::from(BATCHES) - 2, "all but what it had committed: {did:?}");
    world.assert_all_settled(BATCHES.into());
}

fn refused_on_sqlite() {
    let world = World::sqlite().with(&[("SETTLED__WORKER__GUARD", "advisory-xact")]);
    let (code, _, err) = world.settled(&["run", "--json"]);
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("advisory-xact needs PostgreSQL") && err.contains("take lease or row-lock"), "{err}");
    assert!(!std::path::Path::new(world.url().trim_start_matches("sqlite:")).exists(), "and nothing is made");
}
