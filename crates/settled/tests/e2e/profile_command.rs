//! `settled profile`: what somebody with a new format does before the first import. It reads as the import does, and has no ledger.

use crate::formats::{ID_COLUMN, PAYOUTS, TABLES, own};
use crate::world::World;
use intake::sample;
use lab::trials::Suite;
use serde_json::{Value, json};
use std::path::Path;

pub(crate) fn add(suite: Suite) -> Suite {
    suite
        .plain("profile list and show have what is compiled in", || list_and_show(&World::sqlite()))
        .plain("profile check shows how rows were read and what binds", || check(&World::sqlite()))
        .plain("profile check says what an import would", || as_an_import(&World::sqlite()))
        .plain("profile check refuses what an import refuses, in the same words", || same_errors(&World::sqlite()))
        .plain("M10 profile check finds lines that repeat each other", || repeated(&World::sqlite()))
}

/// Exit code and report.
fn check_json(world: &World, file: &Path, profile: &str, more: &[&str]) -> (i32, Value) {
    let arguments = [&["profile", "check", file.to_str().expect("UTF-8"), "--profile", profile, "--json"], more].concat();
    let (code, out, err) = world.settled(&arguments);
    (code, serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}{err}")))
}

fn assert_no_ledger(world: &World) {
    assert!(!world.path("settled.db").exists(), "it made a ledger");
}

fn list_and_show(world: &World) {
    let listed = world.json(&["profile", "list", "--json"]);
    let row = listed.as_array().expect("a list").iter().find(|row| row["name"] == PAYOUTS).expect("it is built in");
    assert!(
        row["source"] == "stripe" && row["reads"].as_str().is_some_and(|reads| reads.contains("payout reconciliation")),
        "{row}"
    );
    for profile in listed.as_array().expect("a list") {
        let name = profile["name"].as_str().expect("a name");
        let (code, out, err) = world.settled(&["profile", "show", name]);
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/profiles");
        let there = std::fs::read_to_string(folder.join(format!("{name}.toml"))).expect("its file");
        assert_eq!((code, out), (0, there), "{err}");
    }
    let (code, out, _) = world.settled(&["profile", "list"]);
    assert!(code == 0 && out.contains("nacha") && out.contains("dlocal"), "{out}");
    let (code, _, err) = world.settled(&["profile", "show", "nobody"]);
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("no built-in profile nobody: one of adyen-settlement-detail, canonical-csv"), "{err}");
    // a start for one's own
    let mine = world.file("mine.toml", world.settled(&["profile", "show", TABLES]).1);
    let file = world.file("two.csv", sample::two_tables(9, ID_COLUMN, 7));
    let (code, report) = check_json(world, &file, mine.to_str().expect("UTF-8"), &[]);
    assert_eq!((code, &report["profile"], &report["source"]), (0, &json!("mine"), &json!("dlocal")));
    assert_no_ledger(world);
}

fn check(world: &World) {
    let file = world.file("two.csv", sample::two_tables(9, ID_COLUMN, 7));
    let (code, report) = check_json(world, &file, TABLES, &["--rows", "2"]);
    assert_eq!(code, 0);
    let rows = report["rows"].as_array().expect("rows");
    assert_eq!((rows.len(), &report["items"]), (2, &json!(12)));
    let first = json!({ "line": 4, "kind": "charge", "merchant": "648", "currency": "USD", "gross_minor": 4850, "fee_minor": 4,
        "net_minor": 4846, "residual_micro": -1727, "identity": "CAPTURE|T-648-02200000000", "batch": "2200" });
    assert_eq!(rows[0], first);
    let batch = &report["batches"][0];
    assert_eq!(
        (&batch["state"], &batch["business_date"], &batch["items"]),
        (&json!("pending"), &json!("2026-01-09"), &json!(12))
    );
    let total = &batch["totals"][0];
    assert_eq!(
        (&total["net_minor"], &total["remittance_minor"], &total["rounding_minor"]),
        (&json!(112_644), &json!(112_646), &json!(-2))
    );
    let declared = &total["declared"];
    assert_eq!(
        (&declared["net_minor"], &declared["fee_minor"], &declared["items"]),
        (&json!(112_646), &Value::Null, &Value::Null)
    );
    // for people: the same, and why a batch would be broken
    let broken = world.file("payout.csv", sample::payout_reconciliation(12, 335, 7));
    let (code, out, err) = world.settled(&["profile", "check", broken.to_str().expect("UTF-8"), "--profile", PAYOUTS]);
    assert_eq!(code, 3, "{out}{err}");
    for part in ["txn_02222000000", "acct_example", "po_02222", "2026-01-31", "broken", "1286.50", "1283.15", "txn_02222stray"] {
        assert!(out.contains(part), "{part}: {out}");
    }
    assert!(!out.contains("txn_02222000011"), "only the first rows: {out}");
    assert_no_ledger(world);
}

/// Every format that there is a sample of, those that foot and those that do not.
fn as_an_import(world: &World) {
    let day = chrono::NaiveDate::from_ymd_opt(2026, 1, 5).expect("a date");
    let samples = [
        ("canonical-csv", sample::canonical(5, 9, day, 3)),
        ("canonical-ndjson", sample::canonical_ndjson(4, 9, day, 4).replace("20260105-", "other-")),
        ("nacha", sample::nacha(3, 4, day, 3)),
        ("adyen-settlement-detail", sample::settlement_detail(9, 2, 3).replacen(",MerchantPayout,", ",Fee,", 1)),
        (PAYOUTS, sample::payout_reconciliation(9, 335, 3)),
        (TABLES, sample::two_tables(9, ID_COLUMN, 3)),
    ];
    for (profile, text) in samples {
        let file = world.file("file.in", text);
        let (checked, report) = check_json(world, &file, profile, &[]);
        let (imported, out, err) = world.settled(&["import", file.to_str().expect("UTF-8"), "--profile", profile, "--json"]);
        let outcome: Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{profile}: {error}: {out}{err}"));
        assert_eq!(checked, imported, "{profile}: {report} {outcome}");
        assert_eq!((&report["items"], &report["warnings"]), (&outcome["items_accepted"], &outcome["warnings"]), "{profile}");
        let (would, did) = (report["batches"].as_array().expect("batches"), outcome["batches"].as_array().expect("batches"));
        assert_eq!(would.len(), did.len());
        for (would, did) in would.iter().zip(did) {
            for key in ["external_batch_id", "business_date", "items", "state", "break_reason"] {
                assert_eq!(would[key], did[key], "{profile}: {key}");
            }
        }
    }
}

fn same_errors(world: &World) {
    let head = "batch_id,business_date,kind,merchant,currency,gross,fee,id\n";
    let nordhandel = own("nordhandel");
    let nordhandel = nordhandel.to_str().expect("UTF-8");
    let cases = [
        (
            "canonical-csv",
            format!("{head}B1,2026-01-05,charge,shop,EUR,\"1.234,5\",0.00,t2\n"),
            "file.in:2: \"1.234,5\" is not an amount",
        ),
        ("nacha", head.to_owned(), "file.in:1: "),
        ("no-such-profile", head.to_owned(), "name a file, or a built-in profile (adyen-settlement-detail"),
        (nordhandel, head.to_owned(), "file.in:1: the header has no column \"Art\" (profile nordhandel"),
    ];
    for (profile, text, says) in cases {
        let file = world.file("file.in", text);
        let file = file.to_str().expect("UTF-8");
        let (code, _, err) = world.settled(&["profile", "check", file, "--profile", profile]);
        assert_eq!(code, 2, "{err}");
        assert!(err.contains(says), "{says}: {err}");
        assert_eq!((code, &err), (2, &world.settled(&["import", file, "--profile", profile]).2));
    }
    let (code, _, err) = world.settled(&["profile", "check", "no.csv", "--profile", "nacha"]);
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("no.csv") && err.contains("check that the file exists"), "{err}");
}

/// The import asks its tables; the check has none, and finds the same lines.
fn repeated(world: &World) {
    let head = "batch_id,business_date,kind,merchant,currency,gross,fee,id\n";
    let row = |batch: &str, id: &str| format!("{batch},2026-01-05,charge,shop,EUR,10.00,0.00,{id}\n");
    // interleaved: B holds t3, because A's line comes later, and A holds t1, because it is the earlier batch
    let rows = [row("A", "t0"), row("B", "t1"), row("A", "t1"), row("A", "t2"), row("B", "t4"), row("B", "t4"), row("C", "t5")];
    let file = world.file("repeated.csv", head.to_owned() + &rows.concat());
    let (code, report) = check_json(world, &file, "canonical-csv", &[]);
    assert_eq!(code, 3);
    let states = |report: &Value| -> Vec<String> {
        report["batches"].as_array().expect("batches").iter().map(|batch| batch["state"].to_string()).collect()
    };
    assert_eq!(states(&report), ["\"pending\"", "\"broken\"", "\"pending\""]);
    let reason = report["batches"][1]["break_reason"].as_str().expect("a reason");
    assert!(reason.contains("line 3 repeats \"t1\" of batch \"A\", line 4"), "{reason}");
    assert!(reason.contains("line 7 repeats \"t4\" of batch \"B\", line 6"), "{reason}");
    let (code, out, _) = world.settled(&["import", file.to_str().expect("UTF-8"), "--profile", "canonical-csv", "--json"]);
    let outcome: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!((code, states(&outcome)), (3, states(&report)), "{outcome}");
}
