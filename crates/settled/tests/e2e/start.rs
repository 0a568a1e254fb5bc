//! Instances that start together: R12 (they migrate together), R3 (they launch one run together); and files that come late: R16.

use crate::world::{Instance, World, number, on_both, wider};
use lab::trials::Suite;

pub(crate) fn add(suite: Suite) -> Suite {
    let suite = on_both(suite, "R12 ten instances start at once on an empty database", |world, _| ten_on_empty(world));
    let suite = on_both(suite, "R3 twenty concurrent runs of one date are one run", |world, _| twenty_runs(world));
    on_both(suite, "R16 what is imported while its run closes is settled by it or the next", |world, _| late_files(world))
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

/// Runs of one date begin and end all the time while files of that date arrive: no batch falls between two of them.
fn late_files(world: &World) {
    let day = |n| chrono::NaiveDate::from_ymd_opt(2026, 1, n).expect("a date");
    let files: Vec<_> =
        (1..=12).map(|n| world.file(&format!("{n}.csv"), intake::sample::canonical(4, 3, day(n), u64::from(n)))).collect();
    let mut settled = 0;
    for (n, file) in files.iter().enumerate() {
        let mut closing = world.start(&format!("closing{n}"), &["run", "--json", "--business-date", "2026-02-01"]);
        world.import(file, "canonical-csv");
        settled += number(&closing.end_well(), "batches_settled");
    }
    println!("settled by the run that was closing: {settled} of 48");
    settled += number(&world.json(&["run", "--json", "--business-date", "2026-02-01"]), "batches_settled");
    assert_eq!(settled, 48, "each by one of them");
    world.assert_all_settled(48);
}

fn twenty_runs(world: &World) {
    let batches = wider(200);
    world.import_sample(batches, 2);
    let mut instances = start_many(world, 20, &["run", "--json", "--business-date", "2026-02-01"]);
    let did: Vec<_> = instances.iter_mut().map(Instance::end_well).collect();
    assert!(did.iter().all(|one| one["run_id"] == did[0]["run_id"]), "one run: {did:?}");
    assert_eq!(did.iter().map(|one| number(one, "batches_settled")).sum::<u64>(), u64::from(batches), "each once: {did:?}");
    world.assert_all_settled(batches.into());
}
