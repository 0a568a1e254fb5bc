//! What operators do, and what the program tells them: exit codes, reasons, refusals.

use crate::world::{World, on_both};
use lab::trials::Suite;

pub(crate) fn add(suite: Suite) -> Suite {
    let suite = on_both(suite, "a broken batch: exit 3, both figures, accepted to suspense", |world, _| accept(world));
    let suite = on_both(suite, "a cancelled batch comes again corrected", |world, _| cancel_and_correct(world));
    let suite = on_both(suite, "another cut of the work is refused until it is adopted", |world, _| adopt_partitions(world));
    let suite = on_both(suite, "a business date after today needs a word", |world, _| future(world));
    let suite = on_both(
        suite,
        "--wait ends with exit 4 while another holds the work, and is no limit to work that is done",
        |world, _| wait(world),
    );
    let suite = suite
        .plain("a frozen writer of an SQLite file holds up nobody who looks, and no --wait", || frozen_writer(&World::sqlite()));
    let suite = suite.plain("lost output is a failure, a lost error message is none", || full_disk(&World::sqlite()));
    suite.plain("a database that is not there: exit 4", || unavailable(&World::sqlite()))
}

/// 10.00 charged, 9.50 paid out: half a euro is missing.
const BROKEN: &str = "batch_id,business_date,kind,merchant,currency,gross,fee,id\n\
    B1,2026-01-05,charge,shop,EUR,10.00,0.00,t1\n\
    B1,2026-01-05,remittance,shop,EUR,-9.50,0.00,p1\n";

fn import_broken(world: &World) {
    let file = world.file("broken.csv", BROKEN);
    let (code, out, err) = world.settled(&["import", file.to_str().expect("UTF-8"), "--profile", "canonical-csv"]);
    assert_eq!(code, 3, "{out}{err}");
    assert!(out.contains("10.00") && out.contains("9.50"), "both figures: {out}");
}

fn accept(world: &World) {
    import_broken(world);
    let (code, out, _) = world.settled(&["run", "--json"]);
    assert_eq!(code, 3, "{out}");
    let (code, _, err) = world.settled(&["batch", "accept", "1", "--reason", " "]);
    assert_eq!(code, 2, "a blank reason is none: {err}");
    world.json(&["batch", "accept", "1", "--reason", "explained by the source", "--json"]);
    world.json(&["run", "--json"]);
    world.assert_all_settled(1);
    let shown = world.json(&["batch", "show", "1", "--json"]);
    let suspense =
        shown["postings"].as_array().expect("postings").iter().find(|p| p["account"] == "suspense").expect("a posting");
    assert_eq!((suspense["side"].as_str(), suspense["amount_minor"].as_i64()), (Some("D"), Some(50)));
}

fn cancel_and_correct(world: &World) {
    import_broken(world);
    let corrected = world.file("corrected.csv", BROKEN.replace("-9.50", "-10.00"));
    let (code, _, err) = world.settled(&["import", corrected.to_str().expect("UTF-8"), "--profile", "canonical-csv"]);
    assert_eq!(code, 3, "other content under the same id is never skipped");
    assert!(err.contains("other content") && err.contains("batch replace"), "{err}");
    world.json(&["batch", "cancel", "1", "--reason", "the source sent it again", "--json"]);
    let imported = world.import(&corrected, "canonical-csv");
    assert_eq!((&imported["batches"][0]["state"], &imported["items_accepted"]), (&"pending".into(), &2.into()));
    world.json(&["run", "--json"]);
    let report = world.json(&["verify", "--json"]);
    assert_eq!(report["batches"], serde_json::json!({ "settled": 1, "cancelled": 1 }));
}

fn adopt_partitions(world: &World) {
    world.import_sample(30, 2);
    let other = world.with(&[("SETTLED__WORKER__PARTITIONS", "5")]);
    let (code, _, err) = other.settled(&["run", "--json"]);
    assert_eq!(code, 2);
    assert!(err.contains("worker.partitions is 5") && err.contains("config adopt"), "{err}");
    let (code, _, err) = other.settled(&["config", "adopt", "--reason", "fewer instances"]);
    assert_eq!(code, 0, "{err}");
    other.json(&["run", "--json"]);
    other.assert_all_settled(30);
    let (code, _, err) = world.settled(&["run", "--json"]);
    assert_eq!(code, 2, "whoever still has the old one is refused: {err}");
}

fn future(world: &World) {
    let (code, _, err) = world.settled(&["run", "--business-date", "2199-01-01"]);
    assert_eq!(code, 2);
    assert!(err.contains("--allow-future"), "{err}");
    world.json(&["run", "--business-date", "2199-01-01", "--allow-future", "--json"]);
}

fn unavailable(world: &World) {
    let nowhere = world.with(&[("SETTLED__DATABASE__URL", "postgres://nobody:secret@127.0.0.1:1/none")]);
    let (code, _, err) = nowhere.settled(&["status"]);
    assert_eq!(code, 4, "{err}");
    assert!(!err.contains("secret"), "{err}");
}

fn wait(world: &World) {
    let world = world.with(&[("SETTLED__WORKER__PARTITIONS", "1"), ("SETTLED__LEASE__TTL_MS", "20000")]);
    world.import_sample(5, 2);
    let mut holder = world.start("holder", &["run", "--json", "--signal-at", "BatchesClaimed=stop"]);
    holder.wait_stopped();
    let (code, out, err) = world.settled(&["run", "--wait", "1", "--json"]);
    assert_eq!(code, 4, "{out}{err}");
    assert!(err.contains("1 units still have batches due"), "{err}");
    holder.process.wake().expect("a child");
    holder.end_well();
    // Everything is settled: however short the wait, it is not the reason to stop.
    world.json(&["run", "--wait", "0", "--json"]);
    world.assert_all_settled(5);
}

/// R8, SQLite: there is no server to end a client that is frozen inside its transaction.
fn frozen_writer(world: &World) {
    world.import_sample(5, 2);
    let mut frozen = world.start("frozen", &["run", "--json", "--signal-at", "InsideSettleTx=stop"]);
    frozen.wait_stopped();
    assert_eq!(world.json(&["status", "--json"])["batches"]["settled"], serde_json::Value::Null);
    world.json(&["batch", "list", "--json"]);
    assert_eq!(world.json(&["verify", "--json"])["ok"], true);
    let (code, out, err) = world.settled(&["run", "--wait", "1", "--json"]);
    assert_eq!(code, 4, "{out}{err}");
    frozen.process.wake().expect("a child");
    frozen.end_well();
    world.json(&["run", "--json"]);
    world.assert_all_settled(5);
}

fn full_disk(world: &World) {
    world.import_sample(1, 1);
    let full = || std::fs::File::options().write(true).open("/dev/full").expect("a full device");
    let lost = world.command(&["verify", "--json"]).stdout(full()).output().expect("the program starts");
    assert_eq!(lost.status.code(), Some(1), "a report that nobody got is no report");
    let silent = world.command(&["run", "--business-date", "2199-01-01"]).stderr(full()).status().expect("the program starts");
    assert_eq!(silent.code(), Some(2), "the exit code is told all the same");
}
