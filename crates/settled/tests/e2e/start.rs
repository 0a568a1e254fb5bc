//! Instances that start together: R12 (they migrate together), R3 (they launch one run together).

use crate::world::{Instance, World, number, on_both};
use lab::trials::Suite;

pub(crate) fn add(suite: Suite) -> Suite {
    let suite = on_both(suite, "R12 ten instances start at once on an empty database", |world, _| ten_on_empty(world));
    on_both(suite, "R3 twenty concurrent runs of one date are one run", |world, _| twenty_runs(world))
}

fn start_many(world: &World, n: usize, arguments: &[&str]) -> Vec<Instance> {
    (0..n).map(|i| world.start(&format!("i{i}"), arguments)).collect()
}

fn ten_on_empty(world: &World) {
    for mut instance in start_many(world, 10, &["run", "--json"]) {
        instance.end_well();
    }
    world.import_sample(3, 2);
    world.json(&["run", "--json"]);
    world.assert_all_settled(3);
}

fn twenty_runs(world: &World) {
    world.import_sample(200, 2);
    let mut instances = start_many(world, 20, &["run", "--json", "--business-date", "2026-02-01"]);
    let did: Vec<_> = instances.iter_mut().map(Instance::end_well).collect();
    assert!(did.iter().all(|one| one["run_id"] == did[0]["run_id"]), "one run: {did:?}");
    assert_eq!(did.iter().map(|one| number(one, "batches_settled")).sum::<u64>(), 200, "each once: {did:?}");
    world.assert_all_settled(200);
}
