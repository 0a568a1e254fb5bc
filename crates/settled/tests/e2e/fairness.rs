//! R15: on SQLite, which has one writer, a busy process must not starve the other.

use crate::world::{World, number, wider};
use lab::trials::Suite;

pub(crate) fn add(suite: Suite) -> Suite {
    suite.plain("R15 two processes share one SQLite file, no lease lost", || share(&World::sqlite()))
}

fn share(world: &World) {
    // one unit each: two units, and every batch a transaction of its own
    let world = world.with(&[("SETTLED__WORKER__PARTITIONS", "2"), ("SETTLED__WORKER__BATCHES_PER_TRANSACTION", "1")]);
    let batches = wider(2_500);
    world.import_sample(batches, 2);
    let (mut a, mut b) = (world.start("a", &["run", "--json"]), world.start("b", &["run", "--json"]));
    let (a_did, b_did) = (a.end_well(), b.end_well());
    let (a_settled, b_settled) = (number(&a_did, "batches_settled"), number(&b_did, "batches_settled"));
    println!("commits: {a_settled} and {b_settled}");
    let batches = u64::from(batches);
    assert_eq!(a_settled + b_settled, batches);
    assert!((batches / 4..=batches * 3 / 4).contains(&a_settled), "{a_settled} of {batches} by one");
    for instance in [&a, &b] {
        assert!(!instance.log().contains("lost:"), "a lease was lost: {}", instance.log());
    }
    world.assert_all_settled(batches);
}
