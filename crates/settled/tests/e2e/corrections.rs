//! Corrections as an operator makes them: what was wrong is taken back, what is right takes its place, and the books say so.

use crate::world::{World, number, on_both};
use lab::trials::Suite;
use serde_json::{Value, json};
use std::path::Path;

pub(crate) fn add(suite: Suite) -> Suite {
    let suite = on_both(
        suite,
        "M18 a corrected file replaces a settled, a broken and a cancelled batch; the books before and after",
        |world, _| replace(world),
    );
    let suite =
        on_both(suite, "a reversed batch: once, by somebody who says why, told by show and verify", |world, _| reverse(world));
    let suite = on_both(suite, "a file that replaces nothing says so", |world, _| nothing(world));
    on_both(suite, "a batch that is being settled is not replaced", |world, _| being_settled(world))
}

const HEAD: &str = "batch_id,business_date,kind,merchant,currency,gross,fee,id\n";

/// A batch of two currencies that is paid out in full, or as far as `paid` says.
fn paid(name: &str, gross: &str, paid: &str) -> String {
    format!(
        "{name},2026-01-05,charge,shop,EUR,{gross},0.00,{name}-1\n\
         {name},2026-01-05,charge,other,JPY,500,0,{name}-2\n\
         {name},2026-01-05,remittance,shop,EUR,-{paid},0.00,{name}-3\n\
         {name},2026-01-05,remittance,other,JPY,-500,0,{name}-4\n"
    )
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// Net balances by account and currency, from what the batches show.
fn balance(world: &World, account: &str, currency: &str) -> i64 {
    let list = world.json(&["batch", "list", "--json"]);
    let ids = list.as_array().expect("a list").iter().map(|batch| batch["id"].to_string());
    let signed = |posting: &Value| {
        let amount = posting["amount_minor"].as_i64().expect("minor units");
        let matches = posting["account"] == account && posting["currency"] == currency;
        i64::from(matches) * if posting["side"] == "D" { amount } else { -amount }
    };
    ids.map(|id| {
        let shown = world.json(&["batch", "show", &id, "--json"]);
        let of = |key: &str| shown[key].as_array().expect("postings").iter().map(signed).sum::<i64>();
        of("postings") + of("reversal")
    })
    .sum()
}

fn replace(world: &World) {
    let wrong = [paid("B1", "10.00", "10.00"), paid("B2", "10.00", "9.50"), paid("B3", "10.00", "9.40")];
    let wrong = world.file("wrong.csv", format!("{HEAD}{}", wrong.concat()));
    let (code, out, err) = world.settled(&["import", text(&wrong), "--profile", "canonical-csv", "--json"]);
    assert_eq!(code, 3, "{out}{err}");
    world.json(&["batch", "cancel", "3", "--reason", "the source said so", "--json"]);
    let (code, _, _) = world.settled(&["run", "--json"]);
    assert_eq!(code, 3, "batch 2 waits for a person");
    assert_eq!((balance(world, "bank", "EUR"), balance(world, "merchant_payable:shop", "EUR")), (10_00, -10_00));

    let corrected =
        [paid("B1", "12.00", "12.00"), paid("B2", "9.50", "9.50"), paid("B3", "9.40", "9.40"), paid("B4", "1.00", "1.00")];
    let corrected = world.file("corrected.csv", format!("{HEAD}{}", corrected.concat()));
    let (code, _, err) = world.settled(&["import", text(&corrected), "--profile", "canonical-csv"]);
    assert_eq!(code, 3, "an import replaces nothing");
    assert!(err.contains("settled batch replace --file") && err.contains("gross 12.00"), "{err}");
    let replace = ["batch", "replace", "--file", text(&corrected), "--profile", "canonical-csv", "--reason"];
    let (code, _, err) = world.settled(&[&replace[..], &[" "]].concat());
    assert_eq!(code, 2, "a blank reason is none: {err}");
    let did = world.json(&[&replace[..], &["the source corrected its file", "--json"]].concat());
    let count = |key| number(&did, key);
    assert_eq!((count("batches_replaced"), count("batches_added"), count("batches_already_there")), (3, 1, 0));
    let pair = |old: u32, state: &str, new: u32| {
        let name = format!("B{old}");
        json!({ "external_batch_id": name, "old_id": old, "old_revision": 1, "old_state": state, "new_id": new, "new_revision": 2 })
    };
    assert_eq!(did["replaced"], json!([pair(1, "reversed", 4), pair(2, "cancelled", 5), pair(3, "cancelled", 6)]));
    assert_eq!((balance(world, "bank", "EUR"), balance(world, "merchant_payable:shop", "EUR")), (0, 0), "as before");

    world.json(&["run", "--json"]);
    assert_corrected(world);
    let (_, shown, _) = world.settled(&["batch", "show", "1"]);
    assert!(shown.contains("replaced by batch 4 (revision 2), which is settled"), "{shown}");
    assert!(shown.contains("reversed: every posting is taken back"), "{shown}");
    let (_, shown, _) = world.settled(&["batch", "show", "4"]);
    assert!(shown.contains("replaces batch 1 (revision 1), which is reversed"), "{shown}");
    assert!(shown.contains("batch replace by ") && shown.contains(": the source corrected its file"), "{shown}");
    // the wrong file, once more with all the others of its folder
    let again = world.import(&wrong, "canonical-csv");
    assert_eq!((&again["items_accepted"], again["warnings"].as_array().map(Vec::len)), (&json!(0), Some(1)), "{again}");
    assert_corrected(world);
}

/// 12.00 + 9.50 + 9.40 + 1.00, and 500 yen of each.
fn assert_corrected(world: &World) {
    for (account, currency, expected) in [
        ("bank", "EUR", 31_90),
        ("merchant_payable:shop", "EUR", -31_90),
        ("bank", "JPY", 2_000),
        ("merchant_payable:other", "JPY", -2_000),
        ("clearing", "EUR", 0),
        ("suspense", "EUR", 0),
    ] {
        assert_eq!(balance(world, account, currency), expected, "{account} {currency}");
    }
    let report = world.json(&["verify", "--json"]);
    assert_eq!(report["batches"], json!({ "settled": 4, "cancelled": 2, "reversed": 1 }));
    let [reversal] = &report["reversals"].as_array().expect("a list")[..] else { panic!("{report}") };
    assert_eq!((&reversal["batch"], &reversal["external_batch_id"]), (&json!(1), &json!("B1")));
    let debits = json!([{ "currency": "EUR", "debits_minor": 20_00 }, { "currency": "JPY", "debits_minor": 1_000 }]);
    assert_eq!((&reversal["amounts"], &reversal["replaced_by"]), (&debits, &json!({ "batch": 4, "revision": 2 })));
    assert_eq!(reversal["reason"], "the source corrected its file");
}

fn reverse(world: &World) {
    let file = world.file("day.csv", format!("{HEAD}{}{}", paid("B1", "10.00", "10.00"), paid("B2", "1.00", "1.00")));
    world.import(&file, "canonical-csv");
    let (code, _, err) = world.settled(&["batch", "reverse", "1", "--reason", "too early"]);
    assert_eq!(code, 1);
    assert!(err.contains("a batch that is pending cannot be reversed") && err.contains("batch cancel 1"), "{err}");
    world.json(&["run", "--json"]);
    let (code, _, err) = world.settled(&["batch", "cancel", "1", "--reason", "too late"]);
    assert_eq!(code, 1);
    assert!(err.contains("batch reverse 1"), "{err}");
    let (code, _, _) = world.settled(&["batch", "reverse", "1"]);
    assert_eq!(code, 2, "no reason");
    let (code, _, _) = world.settled(&["batch", "reverse", "99", "--reason", "why not"]);
    assert_eq!(code, 2, "no such batch");
    let shown = world.json(&["batch", "reverse", "1", "--reason", "sent twice", "--json"]);
    assert_eq!((&shown["state"], &shown["decisions"][0]["action"]), (&json!("reversed"), &json!("batch reverse")));
    assert_eq!(shown["reversal"].as_array().map(Vec::len), shown["postings"].as_array().map(Vec::len));
    let (code, _, err) = world.settled(&["batch", "reverse", "1", "--reason", "once more"]);
    assert_eq!(code, 1, "{err}");
    assert_eq!((balance(world, "bank", "EUR"), balance(world, "merchant_payable:other", "JPY")), (1_00, -500));
    let (code, told, _) = world.settled(&["verify"]);
    assert_eq!(code, 0, "{told}");
    let line = told.lines().find(|line| line.starts_with("reversed: ")).expect("one line of it");
    for part in ["batch 1 (B1 of ", "revision 1)", "20.00 EUR and 1000 JPY", ": sent twice", "nothing took its place"] {
        assert!(line.contains(part), "{part:?} is not in {line}");
    }
    // nothing of it is due any more
    assert_eq!(number(&world.json(&["run", "--json"]), "batches_settled"), 0);
}

fn nothing(world: &World) {
    let file = world.file("day.csv", format!("{HEAD}{}", paid("B1", "10.00", "10.00")));
    let replace = ["batch", "replace", "--file", text(&file), "--profile", "canonical-csv", "--reason", "to be sure"];
    // an empty ledger is one that is there
    let (code, _, err) = world.settled(&["migrate"]);
    assert_eq!(code, 0, "{err}");
    let did = world.json(&[&replace[..], &["--json"]].concat());
    assert_eq!((number(&did, "batches_replaced"), number(&did, "batches_added"), &did["replaced"]), (0, 1, &json!([])));
    let (code, told, _) = world.settled(&replace);
    assert_eq!(code, 0);
    assert!(told.contains("nothing was replaced; 0 added, 1 already there with this content"), "{told}");
    let (code, _, err) = world.settled(&[&replace[..3], &["no.csv"], &replace[4..]].concat());
    assert_eq!(code, 2, "{err}");
    // one that does not foot waits for a person, as on import
    let broken = world.file("day.csv", format!("{HEAD}{}", paid("B1", "10.00", "9.00")));
    assert_eq!(broken, file);
    let (code, told, _) = world.settled(&replace);
    assert_eq!(code, 3, "{told}");
    assert!(told.contains("batch 1 (B1, revision 1) is cancelled; batch 2 is revision 2"), "{told}");
}

fn being_settled(world: &World) {
    let world = world.with(&[("SETTLED__LEASE__TTL_MS", "20000")]);
    let file = world.file("day.csv", format!("{HEAD}{}", paid("B1", "10.00", "10.00")));
    world.import(&file, "canonical-csv");
    let mut holder = world.start("holder", &["run", "--json", "--signal-at", "BatchesClaimed=stop"]);
    holder.wait_stopped();
    let corrected = world.file("corrected.csv", format!("{HEAD}{}", paid("B1", "12.00", "12.00")));
    let replace =
        ["batch", "replace", "--file", text(&corrected), "--profile", "canonical-csv", "--reason", "corrected", "--json"];
    let (code, _, err) = world.settled(&replace);
    assert_eq!(code, 1, "{err}");
    assert!(err.contains("corrected.csv:2:") && err.contains("Try again when the run is over"), "{err}");
    holder.process.wake().expect("a child");
    holder.end_well();
    assert_eq!(world.json(&replace)["replaced"][0]["old_state"], "reversed");
    world.json(&["run", "--json"]);
    assert_eq!(balance(&world, "bank", "EUR"), 12_00);
    world.json(&["verify", "--json"]);
}
