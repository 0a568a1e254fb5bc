//! Real settlement files, with facts that were counted independently. They are not part of this project: the tests read the
//! folder that `SETTLED_REAL_FILES` names, and are ignored without it.

use crate::formats::{PAYOUTS, TABLES, balance, import_broken};
use crate::locks::{is_told, on_every_lock};
use crate::world::{Engine, Instance, World, number, on_both};
use lab::Error;
use lab::trials::Suite;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const FOLDER: &str = "SETTLED_REAL_FILES";

pub(crate) fn add(suite: Suite) -> Suite {
    if std::env::var_os(FOLDER).is_none() {
        let missing =
            || Err::<(), _>(Error::Missing { what: "real settlement files", package: "(none)", looked: FOLDER.to_owned() });
        // Required only where the folder is promised: a checkout of the project alone has no such files.
        return if std::env::var_os("SETTLED_REQUIRE_REAL_FILES").is_some() { suite.plain("real files", missing) } else { suite };
    }
    let suite =
        on_every_lock(suite, "real: card settlement batch 380", |lock| is_told(lock, false), |world, _, _| card_batch(world));
    let suite = on_both(suite, "real: one payout, one row of none", |world, _| payout(world));
    let suite = on_both(suite, "real: two tables of one transfer", |world, _| two_tables(world));
    let suite = on_every_lock(suite, "real: small NACHA file", |lock| is_told(lock, false), |world, _, _| small_nacha(world));
    on_every_lock(
        suite,
        "real: large NACHA file, several instances",
        |lock| is_told(lock, false),
        |world, engine, _| {
            large_nacha(world, engine);
        },
    )
}

fn real(name: &str) -> PathBuf {
    PathBuf::from(std::env::var_os(FOLDER).expect("checked above")).join(name)
}

fn card_batch(world: &World) {
    let file = real("adyen_settlement_detail_batch_380.csv");
    let first = world.import(&file, "adyen-settlement-detail");
    assert_eq!(first["items_accepted"], 228);
    let batch = &first["batches"][0];
    assert_eq!(
        (&batch["business_date"], &batch["state"], &batch["items"]),
        (&json!("2021-01-07"), &json!("pending"), &json!(228))
    );
    assert_eq!(number(&world.json(&["run", "--json"]), "batches_settled"), 1);
    let report = world.assert_all_settled(1);
    assert_eq!(report["totals"], json!([{ "currency": "USD", "debits_minor": 11_287_704, "credits_minor": 11_287_704 }]));
    let shown = world.json(&["batch", "show", &batch["id"].to_string(), "--json"]);
    let balance = |account: &str| -> i64 {
        let postings = shown["postings"]
            .as_array()
            .expect("postings")
            .iter()
            .filter(|p| p["account"].as_str().is_some_and(|a| a.starts_with(account)));
        postings.map(|p| p["amount_minor"].as_i64().expect("minor") * if p["side"] == "D" { 1 } else { -1 }).sum()
    };
    assert_eq!((balance("clearing"), balance("merchant_payable"), balance("bank")), (0, -5_530_807, 5_530_807));
    // once more changes nothing
    let again = world.import(&file, "adyen-settlement-detail");
    assert_eq!(
        (&again["items_accepted"], &again["items_duplicate"], &again["batches"][0]["already_there"]),
        (&json!(0), &json!(228), &json!(true))
    );
    let second = world.json(&["run", "--json"]);
    assert_eq!((number(&second, "batches_settled"), number(&second, "batches_already_settled")), (0, 1));
    assert_eq!(world.assert_all_settled(1), report);
}

fn payout(world: &World) {
    let file = real("stripe_payout_reconciliation.csv");
    let outcome = import_broken(world, &file, PAYOUTS);
    let batch = &outcome["batches"][0];
    assert_eq!((&batch["external_batch_id"], &batch["business_date"]), (&json!("po_test123"), &json!("2026-01-31")));
    let reason = batch["break_reason"].as_str().expect("a reason");
    for part in ["26.40", "23.05", "3.35", "line 7", "txn_1Tj9xrJ"] {
        assert!(reason.contains(part), "{part}: {reason}");
    }
    let id = batch["id"].to_string();
    world.json(&["batch", "accept", &id, "--reason", "it is of the next payout", "--json"]);
    assert_eq!(number(&world.json(&["run", "--json"]), "batches_settled"), 1);
    world.assert_all_settled(1);
    let shown = world.json(&["batch", "show", &id, "--json"]);
    let of = |account| balance(&shown, account);
    assert_eq!((of("clearing"), of("bank"), of("suspense"), of("merchant_payable:acct_live")), (0, 2_305, 335, -2_640));
}

fn two_tables(world: &World) {
    let imported = world.import(&real("dlocal_settlement_20260110.csv"), TABLES);
    let batch = &imported["batches"][0];
    assert_eq!((&batch["external_batch_id"], &batch["business_date"]), (&json!("642926"), &json!("2026-01-09")));
    assert_eq!((&batch["state"], &batch["items"]), (&json!("pending"), &json!(6)));
    assert_eq!(number(&world.json(&["run", "--json"]), "batches_settled"), 1);
    world.assert_all_settled(1);
    let shown = world.json(&["batch", "show", &batch["id"].to_string(), "--json"]);
    let total = &shown["totals"][0];
    assert_eq!(
        (&total["net_minor"], &total["remittance_minor"], &total["rounding_minor"]),
        (&json!(17_947), &json!(17_949), &json!(-2))
    );
    let of = |account| balance(&shown, account);
    assert_eq!((of("clearing"), of("bank"), of("rounding_difference"), of("merchant_payable:648")), (0, 17_949, -2, -17_947));
}

fn small_nacha(world: &World) {
    let imported = world.import(&real("nacha_20110805A.ach"), "nacha");
    let warnings = imported["warnings"].to_string();
    assert!(warnings.contains('5') && warnings.contains('4'), "{warnings}");
    assert_eq!(imported["items_accepted"], 48);
    assert_eq!(number(&world.json(&["run", "--json"]), "batches_settled"), 4);
    assert_totals(&world.assert_all_settled(4), 5_101_200);
}

fn assert_totals(report: &Value, minor: i64) {
    assert_eq!(report["totals"], json!([{ "currency": "USD", "debits_minor": minor, "credits_minor": minor }]));
}

/// M5: no process of ours needs more, however large the file.
const MOST_MEMORY_BYTES: u64 = 256 << 20;
/// Longer than any of them takes.
const PATIENCE: Duration = Duration::from_secs(300);

/// Waits for the end of all of them, and looks at their memory on the way: the kernel forgets it when a process ends.
fn end_small(what: &str, instances: &mut [Instance]) -> Vec<Value> {
    let begun = Instant::now();
    let still_runs = |instance: &mut Instance| {
        instance.process.peak_rss_bytes();
        instance.process.ended().expect("a child").is_none()
    };
    while instances.iter_mut().map(still_runs).filter(|runs| *runs).count() > 0 {
        assert!(begun.elapsed() < PATIENCE, "{what}: {}", instances[0].log());
        std::thread::sleep(Duration::from_millis(5));
    }
    println!("{what}: {} ms", begun.elapsed().as_millis());
    let end = |instance: &mut Instance| {
        let (did, peak) = (instance.end_well(), instance.process.peak_rss_bytes());
        println!("{what}: {} MiB at most", peak >> 20);
        // 0: it was never looked at
        assert!((1..MOST_MEMORY_BYTES).contains(&peak), "{what}: {peak} bytes of memory");
        did
    };
    instances.iter_mut().map(end).collect()
}

fn import_small(world: &World, file: &Path) -> Value {
    let file = file.to_str().expect("UTF-8");
    let import = world.start("import", &["import", file, "--profile", "nacha", "--json"]);
    end_small("import", &mut [import]).remove(0)
}

const LARGE_MINOR: i64 = 250_616_998_766;

fn large_nacha(world: &World, engine: Engine) {
    let world = world.with(&[("SETTLED__LEASE__TTL_MS", "10000")]);
    let instances = if engine == Engine::Postgres { 3 } else { 2 };
    let imported = import_small(&world, &real("nacha_2500_batches_502499_entries.ach.gz"));
    assert_eq!(imported["items_accepted"], 502_499);
    settle_with(&world, instances, 2_500);
    assert_totals(&world.assert_all_settled(2_500), LARGE_MINOR);
    // M17: tomorrow's file has the same batch numbers and is another file.
    let tomorrow = import_small(&world, &a_day_later(&world));
    assert_eq!((&tomorrow["items_accepted"], &tomorrow["items_duplicate"]), (&json!(502_499), &json!(0)));
    settle_with(&world, instances, 2_500);
    assert_totals(&world.assert_all_settled(5_000), 2 * LARGE_MINOR);
}

fn settle_with(world: &World, instances: usize, batches: u64) {
    let mut running: Vec<_> = (0..instances).map(|i| world.start(&format!("large{i}"), &["run", "--json"])).collect();
    let mut settled = Vec::new();
    let all_did = end_small("run", &mut running);
    for (instance, did) in running.iter().zip(&all_did) {
        settled.push(number(did, "batches_settled"));
        assert_eq!(number(did, "fenced"), 0);
        assert!(!instance.log().contains("lost:"), "a lease was lost: {}", instance.log());
    }
    println!("batches settled by each instance: {settled:?}");
    assert_eq!(settled.iter().sum::<u64>(), batches);
    assert!(settled.iter().all(|n| *n > 0), "somebody starved: {settled:?}");
}

/// The same file, created a day later.
fn a_day_later(world: &World) -> PathBuf {
    let mut text = String::new();
    let file = std::fs::File::open(real("nacha_2500_batches_502499_entries.ach.gz")).expect("the file is there");
    flate2::read::MultiGzDecoder::new(file).read_to_string(&mut text).expect("gzip");
    let created = text[23..29].to_owned();
    let day: u32 = created.parse().expect("YYMMDD");
    text.replace_range(23..29, &format!("{:06}", day + 1));
    let path = world.path("tomorrow.ach");
    std::fs::File::create(&path).and_then(|mut file| file.write_all(text.as_bytes())).expect("a file");
    path
}
