//! The canonical formats: examples of the documentation, identities, totals, digests.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::{good, profile, read, refused};
use domain::item::ItemKind;

const HEADER: &str = "batch_id,business_date,kind,merchant,currency,gross,fee,id\n";

fn csv(rows: &str) -> String {
    format!("{HEADER}{rows}")
}

fn example(name: &str) -> Vec<u8> {
    std::fs::read(format!("{}/../../config/profiles/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// M2: JPY has no decimals, KWD three. M14: one batch, three currencies. M19: zero fees and negative lines.
#[test]
fn m2_the_documented_examples_hold_the_same_batches() {
    let (csv, items) = good(example("canonical-example.csv"), "canonical-csv");
    let (ndjson, _) = good(example("canonical-example.ndjson"), "canonical-ndjson");
    assert_eq!(csv.batches.len(), 2);
    for (one, other) in csv.batches.iter().zip(&ndjson.batches) {
        assert_eq!((&one.external_batch_id, one.digest, &one.totals), (&other.external_batch_id, other.digest, &other.totals));
        assert_eq!(one.breaks, Vec::<String>::new());
    }
    let totals = &csv.batches[0].totals;
    assert_eq!(totals.iter().map(|t| t.currency.code()).collect::<Vec<_>>(), ["EUR", "JPY", "KWD"]);
    assert_eq!(totals.iter().map(|t| t.net_minor).collect::<Vec<_>>(), [10_880, 1_185, 4_195]);
    assert_eq!((totals[0].remittance_minor, totals[0].items, totals[0].declared.items), (10_880, 5, Some(5)));
    assert_eq!(items[0].item.merchant, "Bakery, Main Street");
    assert_eq!((items[5].batch, items[7].batch), (1, 0), "batches may be interleaved");
}

/// M10: two legal twins without an id are two; the same file read twice gives the same identities.
#[test]
fn m10_twins_without_an_id_are_told_apart() {
    let row = "b,2026-03-02,charge,m,EUR,5.00,,\n";
    let (_, items) = good(csv(&row.repeat(3)), "canonical-csv");
    let keys: Vec<_> = items.iter().map(|i| i.item.dedupe_key.clone()).collect();
    assert!(keys[0].starts_with("b|row:") && keys[0].ends_with("|1"), "{}", keys[0]);
    assert!(keys[1].ends_with("|2") && keys[2].ends_with("|3"));
    let (_, again) = good(csv(&row.repeat(3)), "canonical-csv");
    assert_eq!(keys, again.iter().map(|i| i.item.dedupe_key.clone()).collect::<Vec<_>>());
    let (_, other_batch) = good(csv(&row.replace("b,", "c,")), "canonical-csv");
    assert!(!keys.contains(&other_batch[0].item.dedupe_key), "the same row of another batch is another row");
}

/// M10: a provider's id is the identity, whatever else the line says; the ledger's unique key refuses the second.
#[test]
fn m10_a_repeated_id_keeps_its_key() {
    let (_, items) = good(csv("b,2026-03-02,charge,m,EUR,5.00,,x\nc,2026-03-02,charge,m,EUR,6.00,,x\n"), "canonical-csv");
    assert_eq!(items[0].item.dedupe_key, "x");
    assert_eq!(items[1].item.dedupe_key, "x");
}

#[test]
fn an_id_cannot_imitate_a_joined_one() {
    let (_, items) = good(csv("b,2026-03-02,charge,m,EUR,5.00,,a|b\\c\n"), "canonical-csv");
    assert_eq!(items[0].item.dedupe_key, "a\\|b\\\\c");
}

#[test]
fn a_declared_total_binds() {
    let rows = "b,2026-03-02,charge,m,EUR,5.00,0.10,x\nb,2026-03-02,total,,EUR,5.01,0.10,2\n";
    let (summary, _) = good(csv(rows), "canonical-csv");
    assert_eq!(summary.batches[0].breaks, ["declares 2 items, has 1", "declares gross of 5.01 EUR, rows sum to 5.00"]);
    let (summary, _) = good(csv("b,2026-03-02,total,,EUR,0,,0\n"), "canonical-csv");
    assert_eq!((summary.batches[0].breaks.len(), summary.items), (0, 0), "a batch without lines may be declared");
}

#[test]
fn a_remittance_must_take_everything_of_its_currency() {
    let rows = "b,2026-03-02,charge,m,EUR,5.00,0.10,x\nb,2026-03-02,remittance,m,EUR,-4.80,,y\n";
    let (summary, items) = good(csv(rows), "canonical-csv");
    assert_eq!(summary.batches[0].breaks, ["rows net 4.90 EUR, remittance 4.80 EUR: 0.10 left over"]);
    assert_eq!(summary.batches[0].totals[0].difference_minor, 10);
    assert_eq!(items[1].item.kind, ItemKind::Remittance);
}

/// M1: decimal text to integers, without a float on the way. M19: the fee may exceed the gross.
#[test]
fn m1_m19_amounts_are_exact() {
    let rows = "b,2026-03-02,charge,m,EUR,3.99,145.05,x\nb,2026-03-02,charge,m,EUR,0,,y\nb,2026-03-02,charge,m,EUR,-0.00,,z\n";
    let (_, items) = good(csv(rows), "canonical-csv");
    assert_eq!((items[0].item.gross_minor, items[0].item.fee_minor), (399, 14_505));
    assert_eq!(items[0].item.net_minor(), Some(399 - 14_505));
    assert_eq!((items[1].item.gross_minor, items[2].item.gross_minor), (0, 0));
}

#[test]
fn line_numbers_are_physical() {
    let rows = "\n\nb,2026-03-02,charge,\"m, of\",EUR,5.00,,\"x\"\nb,2026-03-02,charge,m,EUR,5.00,,y\n";
    let (summary, items) = good(csv(rows), "canonical-csv");
    assert_eq!((items[0].item.line_no, items[1].item.line_no), (4, 5));
    assert_eq!(summary.batches[0].first_line, 4);
    refused(csv("b,2026-03-02,charge,m,EUR,5.00,,x\nb,2026-03-02,charge,\"m\nn\",EUR,5.00,,y\n"), "canonical-csv", 3, "control");
    refused(csv("b,2026-03-02,charge,m,EUR,5,\"\n\",x\nb,2026-03-02,charge,m,EUR,?,,y\n"), "canonical-csv", 2, "\"\\n\"");
}

#[test]
fn the_digest_is_of_what_settles() {
    let digest = |text: String| good(text, "canonical-csv").0.batches[0].digest;
    let row = "b,2026-03-02,charge,m,EUR,5.00,0.10,x\n";
    let base = digest(csv(row));
    assert_eq!(base, digest(csv(&format!("\n{row}"))), "the line number does not count");
    assert_eq!(base, digest(csv(row).replace('\n', "\r\n")), "nor does the end of the line");
    let with_column = csv(row).replace(",id\n", ",id,note\n").replace(",x\n", ",x,hello\n");
    assert_eq!(base, digest(with_column), "nor a column that nothing reads");
    for changed in [
        row.replace("5.00", "5.01"),
        row.replace("0.10", "0.11"),
        row.replace("charge", "refund"),
        row.replace(",m,", ",n,"),
        row.replace("EUR", "USD"),
        row.replace(",x", ",y"),
        row.replace("03-02", "03-03"),
        format!("{row}b,2026-03-02,total,,EUR,5.00,,\n"),
        row.repeat(2),
    ] {
        assert_ne!(base, digest(csv(&changed)), "{changed}");
    }
}

/// The digest is compared with one stored years ago: the encoding must never change unnoticed.
#[test]
fn the_digest_is_stable() {
    let (summary, _) = good(example("canonical-example.csv"), "canonical-csv");
    let hex: String = summary.batches[0].digest.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, "b8972b8b21ebdab4603d3e75e21a86fe6fed52778fb90cc4b686964e9ce25ac1");
}

#[test]
fn ndjson_amounts_are_strings_and_fields_are_known() {
    let line = r#"{"batch_id":"b","business_date":"2026-03-02","kind":"charge","merchant":"m","currency":"EUR","gross":"5.00"}"#;
    assert_eq!(good(line, "canonical-ndjson").0.items, 1);
    let refused = |text: &str, says| refused(format!("{line}\n{text}\n"), "canonical-ndjson", 2, says);
    refused(&line.replace("\"5.00\"", "5.00"), "floating point");
    refused(&line.replace("gross", "gros"), "unknown field `gros`");
    refused(&line.replace("\"m\"", "\"m\",\"merchant\":\"n\""), "duplicate field");
    refused(&line.replace("charge", "chrage"), "\"chrage\" is not an item kind");
    refused(&line.replace("\"5.00\"", "\"5,00\""), "\"5,00\" is not an amount");
    refused(&line.replace("2026-03-02", "02.03.2026"), "byte");
    refused(&line.replace("2026-03-02", "2026-03-03"), "business date");
    refused(&line.replace("\"gross\":\"5.00\"", "\"fee\":\"1\""), "gross is missing");
    refused("[]", "invalid length");
    refused(&line[..40], "EOF");
}

/// Chunks are bounded and come in file order.
#[test]
fn chunks_are_bounded() {
    let text = intake::sample::canonical(3, 1_500, chrono::NaiveDate::from_ymd_opt(2026, 3, 2).unwrap(), 1);
    let (mut sizes, mut last) = (Vec::new(), 0);
    let mut sink = |chunk: Vec<domain::summary::StagedItem>| -> Result<(), intake::Stopped> {
        sizes.push(chunk.len());
        assert!(chunk[0].item.line_no > last);
        last = chunk.last().unwrap().item.line_no;
        Ok(())
    };
    let summary = intake::read(text.as_bytes(), "file", &profile("canonical-csv"), &mut sink).unwrap();
    assert_eq!(sizes.iter().sum::<usize>() as u64, summary.items);
    assert!(sizes.len() >= 5, "{sizes:?}");
    assert!(sizes[..sizes.len() - 1].iter().all(|size| *size == intake::CHUNK_ITEMS));
}

#[test]
fn a_sink_that_stops_ends_the_reading() {
    let mut calls = 0;
    let mut sink = |_: Vec<domain::summary::StagedItem>| {
        calls += 1;
        Err(intake::Stopped)
    };
    let text = intake::sample::canonical(3, 1_500, chrono::NaiveDate::from_ymd_opt(2026, 3, 2).unwrap(), 1);
    let error = intake::read(text.as_bytes(), "file", &profile("canonical-csv"), &mut sink).unwrap_err();
    assert!(matches!(error, intake::ReadError::Stopped { .. }));
    assert_eq!((calls, error.line()), (1, None));
}

#[test]
fn the_file_is_counted_and_hashed_as_it_is() {
    use sha2::Digest;
    let text = csv("b,2026-03-02,charge,m,EUR,5.00,0.10,x");
    let marked = format!("\u{feff}{text}");
    let (summary, _) = read(&marked, &profile("canonical-csv")).unwrap();
    assert_eq!(summary.bytes, marked.len() as u64);
    assert_eq!(summary.sha256[..], sha2::Sha256::digest(&marked)[..]);
    assert_eq!(
        (summary.name.as_str(), summary.profile.as_str(), summary.source.as_str()),
        ("file", "canonical-csv", "canonical")
    );
}
