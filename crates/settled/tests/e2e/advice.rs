//! `settled lease advise`, from what an instance recorded while it served.

use crate::serve::get;
use crate::world::{World, number, on_both, wait_until};
use lab::trials::Suite;

pub(crate) fn add(suite: Suite) -> Suite {
    on_both(suite, "advice about the TTL, from what an instance recorded", |world, _| advised(world))
}

fn advised(world: &World) {
    let world = world.with(&[("SETTLED__ADMIN__LISTEN", "127.0.0.1:0"), ("SETTLED__WORKER__BATCHES_PER_TRANSACTION", "2")]);
    world.import_sample(40, 3);
    let mut instance = world.start("served", &["serve"]);
    let did = world.json(&["run", "--json"]);
    wait_until("everything is settled", || world.settled_batches() == 40);
    let file = world.file("more.csv", intake::sample::canonical(1, 2, "2026-01-06".parse().expect("a date"), 41));
    world.import(&file, "canonical-csv");
    wait_until("it is settled too", || world.settled_batches() == 41);
    let metrics = get(&instance, "/metrics").1;
    assert!(metrics.contains("settled_lease_hold_seconds_bucket"), "{metrics}");
    let address = instance.wait_for("serving")["address"].as_str().expect("an address").to_owned();
    let url = format!("http://{address}/metrics");
    let advice = world.json(&["lease", "advise", &url, "--json"]);
    let by_instance = 41 - number(&did, "batches_settled");
    let transactions = number(&advice, "settle_transactions");
    assert!(transactions > 0 && transactions <= by_instance, "{advice} {did}");
    assert_eq!(advice["ttl_ms"], crate::world::TTL_MS, "{advice}");
    assert_eq!(advice["renewals_lost"], 0, "{advice}");
    assert!(advice["remarks"].to_string().contains("only"), "a few are told to be few: {advice}");

    // saved metrics are as good, and instances add up
    let saved = world.file("metrics.txt", &metrics);
    let saved = saved.to_str().expect("UTF-8");
    let twice = world.json(&["lease", "advise", saved, saved, "--json"]);
    assert_eq!(number(&twice, "settle_transactions"), 2 * transactions, "{twice}");
    // the same transactions are too long for a lease that is as short as they are
    let slow =
        metrics.lines().map(|line| match line.contains("settle_transaction_seconds_bucket{le=") && !line.contains("Inf") {
            true => format!("{} 0\n", line.rsplit_once(' ').expect("a value").0),
            false => format!("{line}\n"),
        });
    let slow = world.file("slow.txt", slow.collect::<String>());
    let advice = world.json(&["lease", "advise", slow.to_str().expect("UTF-8"), "--json"]);
    assert_eq!(advice["covered"], false, "{advice}");
    let (code, text, _) = world.settled(&["lease", "advise", saved]);
    assert!(code == 0 && text.contains("lease.ttl_ms = 2000"), "{text}");

    instance.process.terminate().expect("a signal");
    instance.end_quietly();
    let (code, _, told) = world.settled(&["lease", "advise", &url]);
    assert!(code == 4 && told.contains(&url), "{told}");
    let (code, _, told) = world.settled(&["lease", "advise", "nothing.txt"]);
    assert!(code == 2 && told.contains("nothing.txt"), "{told}");
}
