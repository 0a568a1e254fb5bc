//! Formats that a profile describes, through the whole program: what the real files of `real_files.rs` show, with files that are
//! made here. The providers whose profiles are with the tests do not exist.

use crate::world::{World, number, on_both};
use intake::sample;
use lab::trials::Suite;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

pub(crate) const PAYOUTS: &str = "stripe-payout-reconciliation";
pub(crate) const TABLES: &str = "dlocal-settlement";
/// What the provider of [`TABLES`] calls the column of its ids.
pub(crate) const ID_COLUMN: &str = "DLOCAL_TRANSACTION_ID";

pub(crate) fn add(suite: Suite) -> Suite {
    let suite = on_both(suite, "a payout that lacks a row: broken, named, accepted to suspense", |world, _| stray_row(world));
    let suite = on_both(suite, "two tables: the declared net is remitted, cents are rounding", |world, _| two_tables(world));
    let suite = on_both(suite, "M9 two payouts of one day are two batches", |world, _| two_payouts(world));
    let suite = on_both(suite, "M10 a transaction of another payout is found", |world, _| paid_twice(world));
    let suite =
        on_both(suite, "M14 one currency that does not foot: nothing of the batch settles", |world, _| two_currencies(world));
    on_both(suite, "a provider that nobody knows is a file of TOML", |world, _| unknown_provider(world))
}

/// The profile of a provider that does not exist.
pub(crate) fn own(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../intake/tests/profiles").join(format!("{name}.toml"))
}

/// Imports what can be read and does not foot: the outcome, and what was told.
pub(crate) fn import_broken(world: &World, file: &Path, profile: &str) -> Value {
    let (code, out, err) = world.settled(&["import", file.to_str().expect("UTF-8"), "--profile", profile, "--json"]);
    assert_eq!(code, 3, "{out}{err}");
    let outcome: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(outcome["batches"][0]["state"], "broken", "{outcome}");
    outcome
}

/// Debits less credits of an account of this batch, in minor units.
pub(crate) fn balance(shown: &Value, account: &str) -> i64 {
    let postings = shown["postings"].as_array().expect("postings").iter().filter(|posting| posting["account"] == account);
    postings.map(|p| p["amount_minor"].as_i64().expect("minor") * if p["side"] == "D" { 1 } else { -1 }).sum()
}

fn accounts(shown: &Value) -> Vec<&str> {
    let postings = shown["postings"].as_array().expect("postings");
    let mut accounts: Vec<_> = postings.iter().map(|posting| posting["account"].as_str().expect("a code")).collect();
    accounts.sort_unstable();
    accounts.dedup();
    accounts
}

fn stray_row(world: &World) {
    let file = world.file("payout.csv", sample::payout_reconciliation(12, 335, 7));
    let outcome = import_broken(world, &file, PAYOUTS);
    let reason = outcome["batches"][0]["break_reason"].as_str().expect("a reason");
    for part in ["1286.50", "1283.15", "3.35", "line 16", "txn_02222stray"] {
        assert!(reason.contains(part), "{part}: {reason}");
    }
    let (code, out, _) = world.settled(&["run", "--json"]);
    assert_eq!(code, 3, "{out}");
    assert_eq!(world.json(&["batch", "show", "1", "--json"])["postings"], json!([]), "nothing of it settles by itself");
    world.json(&["batch", "accept", "1", "--reason", "the next payout has it", "--json"]);
    world.json(&["run", "--json"]);
    world.assert_all_settled(1);
    let shown = world.json(&["batch", "show", "1", "--json"]);
    let of = |account| balance(&shown, account);
    assert_eq!((of("clearing"), of("suspense"), of("bank")), (0, 335, 128_315));
    assert_eq!(of("merchant_payable:acct_example"), -128_650, "rows without an account are of the batch's");
    assert_eq!(accounts(&shown), ["bank", "clearing", "merchant_payable:acct_example", "suspense"]);
}

fn two_tables(world: &World) {
    let file = world.file("two.csv", sample::two_tables(9, ID_COLUMN, 7));
    let imported = world.import(&file, TABLES);
    assert_eq!((&imported["batches"][0]["state"], &imported["items_accepted"]), (&json!("pending"), &json!(12)), "twins are two");
    world.json(&["run", "--json"]);
    world.assert_all_settled(1);
    let shown = world.json(&["batch", "show", "1", "--json"]);
    let of = |account| balance(&shown, account);
    assert_eq!((of("clearing"), of("bank"), of("rounding_difference")), (0, 112_646, -2));
    assert_eq!(of("merchant_payable:648"), -112_644);
    let again = world.import(&file, TABLES);
    assert_eq!((&again["items_accepted"], &again["batches"][0]["already_there"]), (&json!(0), &json!(true)));
}

fn two_payouts(world: &World) {
    let first = sample::payout_reconciliation(12, 0, 7);
    let second = first.replace("po_02222", "po_other").replace("txn_", "txn_other_");
    for (name, text) in [("first.csv", &first), ("second.csv", &second)] {
        let imported = world.import(&world.file(name, text), PAYOUTS);
        assert_eq!((number(&imported, "items_accepted"), &imported["batches"][0]["already_there"]), (15, &json!(false)));
    }
    assert_eq!(number(&world.json(&["run", "--json"]), "batches_settled"), 2);
    world.assert_all_settled(2);
}

fn paid_twice(world: &World) {
    let first = sample::payout_reconciliation(12, 0, 7);
    world.import(&world.file("first.csv", &first), PAYOUTS);
    let second = first.replace("po_02222", "po_other").replace("txn_0222200000", "txn_other_");
    let file = world.file("second.csv", second);
    let outcome = import_broken(world, &file, PAYOUTS);
    let reason = outcome["batches"][0]["break_reason"].as_str().expect("a reason");
    assert!(reason.contains("repeats \"txn_02222fee0\" of batch 1, line 2"), "{reason}");
    let (code, _, err) = world.settled(&["batch", "accept", "2", "--reason", "x"]);
    assert_eq!(code, 1, "it would settle twice: {err}");
}

const STATEMENT: &str = "\
Statement,Day,Shop,Cur,Rows,Fees,Paid,,
S-9,2026-03-02,kiosk,EUR,2,-30,1470,,
S-9,2026-03-02,kiosk,ISK,1,,125500,,
What,Id,Currency,Amount,Fee
sale,a,EUR,1000,-20
sale,,EUR,500,-10
sale,b,ISK,125000,
";

/// Euros foot, crowns do not.
fn two_currencies(world: &World) {
    let profile = own("two-currencies");
    let profile = profile.to_str().expect("UTF-8");
    let outcome = import_broken(world, &world.file("broken.csv", STATEMENT), profile);
    let reason = outcome["batches"][0]["break_reason"].as_str().expect("a reason");
    assert!(reason.contains("1255 ISK") && !reason.contains("EUR"), "{reason}");
    let (code, out, _) = world.settled(&["run", "--json"]);
    assert_eq!(code, 3, "{out}");
    let shown = world.json(&["batch", "show", "1", "--json"]);
    assert_eq!((&shown["postings"], &shown["state"]), (&json!([]), &json!("broken")), "no currency of it settles");
    assert_eq!(world.json(&["verify", "--json"])["totals"], json!([]));
    world.json(&["batch", "cancel", "1", "--reason", "the source sent it again", "--json"]);
    world.import(&world.file("corrected.csv", STATEMENT.replace("125500", "125000")), profile);
    world.json(&["run", "--json"]);
    let report = world.json(&["verify", "--json"]);
    let total = |code: &str, minor: i64| json!({ "currency": code, "debits_minor": minor, "credits_minor": minor });
    assert_eq!((&report["ok"], &report["totals"]), (&json!(true), &json!([total("EUR", 2 * 1_470), total("ISK", 2 * 1_250)])));
    let shown = world.json(&["batch", "show", "2", "--json"]);
    let keys: Vec<_> = shown["postings"].as_array().expect("postings").iter().map(|p| p["entry_key"].to_string()).collect();
    assert!(
        keys.iter().any(|key| key.contains(":EUR")) && keys.iter().any(|key| key.contains(":ISK")),
        "an entry each: {keys:?}"
    );
}

/// Latin-1, semicolons, decimal comma, the minus behind, forints without decimals.
fn unknown_provider(world: &World) {
    let rows = [
        "Zahlung;Valuta;Art;Händler;Währung;Betrag;Gebühr;Beleg;Text",
        "Z-1;02.03.2026;Umsatz;Bäckerei Süß;EUR;1.234,50;12,34-;B1;",
        "Z-1;02.03.2026;Gutschrift;;EUR;12,50-;;B3;",
        "Z-1;02.03.2026;Umsatz;;HUF;12.000;120-;B4;",
        "Z-1;02.03.2026;Auszahlung;;EUR;1.209,66;;;",
        "Z-1;02.03.2026;Auszahlung;;HUF;11.880;;;",
    ];
    let text = rows.join("\n");
    let latin1: Vec<u8> = text.chars().map(|c| u8::try_from(u32::from(c)).expect("a character of Latin-1")).collect();
    let profile = own("nordhandel");
    let profile = profile.to_str().expect("UTF-8");
    world.import(&world.file("nord.csv", &latin1), profile);
    world.json(&["run", "--json"]);
    world.assert_all_settled(1);
    let shown = world.json(&["batch", "show", "1", "--json"]);
    let owed = "merchant_payable:Bäckerei Süß";
    assert_eq!((balance(&shown, "clearing"), balance(&shown, owed)), (0, -(120_966 + 1_188_000)));
    // what could mean two amounts: its line, and nothing written
    let ambiguous = text.replace("12,50-", "-12.50").replace("B3", "B5");
    let file =
        world.file("ambiguous.csv", ambiguous.chars().map(|c| u8::try_from(u32::from(c)).expect("it is")).collect::<Vec<_>>());
    let (code, _, err) = world.settled(&["import", file.to_str().expect("UTF-8"), "--profile", profile]);
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("ambiguous.csv:3: \"-12.50\" is not an amount (profile nordhandel expects e.g. 1234,50"), "{err}");
}
