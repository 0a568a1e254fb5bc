//! Batches that kill their worker, and workers that are killed for no fault of their batches.

use crate::world::{TTL_MS, World, number, on_both};
use lab::trials::Suite;
use std::time::Duration;

pub(crate) fn add(suite: Suite) -> Suite {
    let suite =
        on_both(suite, "R5 a batch that kills its worker is quarantined, and no neighbour with it", |world, _| poison(world));
    on_both(suite, "R5 ten SIGKILLs over a run of 2,500 batches quarantine nothing", |world, _| ten_kills(world))
}

const POISON: &str = "7";
const ATTEMPTS: u64 = 3;

fn poison(world: &World) {
    let world = world.with(&[
        ("SETTLED__WORKER__PARTITIONS", "2"),
        ("SETTLED__WORKER__MAX_ATTEMPTS", "3"),
        ("SETTLED__LEASE__TTL_MS", "500"),
    ]);
    world.import_sample(20, 3);
    let mut deaths = 0;
    let (code, did) = loop {
        let mut instance = world.start("worker", &["run", "--json", "--signal-at", &format!("InsideSettleTx=kill#{POISON}")]);
        let (code, did) = instance.end();
        if code != -1 {
            break (code, did);
        }
        deaths += 1;
        assert!(deaths < 20, "it never gives up: {}", instance.log());
    };
    assert_eq!(deaths, ATTEMPTS, "charged before each death");
    assert_eq!(code, 3, "the books wait for a person: {did}");
    assert_eq!(number(&did, "batches_quarantined"), 1);
    let poisoned = world.json(&["batch", "show", POISON, "--json"]);
    assert_eq!((poisoned["state"].as_str(), poisoned["attempts"].as_u64()), (Some("quarantined"), Some(ATTEMPTS)));
    let report = world.json(&["verify", "--json"]);
    assert_eq!(report["batches"], serde_json::json!({ "settled": 19, "quarantined": 1 }), "{report}");
    // Cured, it settles.
    world.json(&["batch", "retry", POISON, "--reason", "cured", "--json"]);
    world.json(&["run", "--json"]);
    world.assert_all_settled(20);
}

fn ten_kills(world: &World) {
    let world = world.with(&[("SETTLED__LEASE__TTL_MS", "500"), ("SETTLED__WORKER__BATCHES_PER_TRANSACTION", "20")]);
    world.import_sample(2_500, 1);
    let mut killed = 0;
    while killed < 10 {
        // spread over the run: each dies a little further on
        let at = format!("InsideSettleTx=kill@{}", 1 + killed % 4);
        let (code, did) = world.start("worker", &["run", "--json", "--signal-at", &at]).end();
        assert_eq!(code, -1, "it ended before it was killed {killed} times: {did}");
        killed += 1;
    }
    std::thread::sleep(Duration::from_millis(TTL_MS / 4));
    let did = world.json(&["run", "--json"]);
    assert_eq!(number(&did, "batches_quarantined"), 0, "{did}");
    world.assert_all_settled(2_500);
}
