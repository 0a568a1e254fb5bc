//! The sample files read by their profiles: what the demo and the benchmark rest on.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use chrono::NaiveDate;
use common::{PAYOUTS, TABLES, good, two_tables};
use intake::sample;
use std::collections::BTreeSet;

fn date() -> NaiveDate {
    NaiveDate::from_ymd_opt(2026, 3, 2).unwrap()
}

fn foots(text: &str, profile: &str, batches: usize) -> domain::summary::FileSummary {
    let (summary, items) = good(text, profile);
    assert_eq!(summary.batches.len(), batches);
    for batch in &summary.batches {
        assert_eq!(batch.breaks, Vec::<String>::new(), "{}", batch.external_batch_id);
    }
    let keys: BTreeSet<_> = items.iter().map(|staged| &staged.item.dedupe_key).collect();
    assert_eq!(keys.len(), items.len(), "identities within the file");
    assert_eq!(summary.warnings, Vec::<String>::new());
    summary
}

#[test]
fn every_sample_foots() {
    let summary = foots(&sample::settlement_detail(40, 3, 7), "adyen-settlement-detail", 3);
    assert_eq!(summary.items, 3 * 42);
    foots(&sample::nacha(7, 12, date(), 7), "nacha", 7);
    foots(&sample::canonical(6, 50, date(), 7), "canonical-csv", 6);
    foots(&sample::canonical_ndjson(6, 50, date(), 7), "canonical-ndjson", 6);
    assert_eq!(foots(&sample::payout_reconciliation(100, 0, 7), PAYOUTS, 1).items, 103);
    assert_eq!(foots(&two_tables(100), TABLES, 1).items, 103);
}

#[test]
fn the_same_batch_as_csv_and_as_ndjson_is_the_same_batch() {
    let csv = foots(&sample::canonical(6, 50, date(), 7), "canonical-csv", 6);
    let ndjson = foots(&sample::canonical_ndjson(6, 50, date(), 7), "canonical-ndjson", 6);
    let identity = |summary: &domain::summary::FileSummary| {
        summary.batches.iter().map(|b| (b.external_batch_id.clone(), b.digest)).collect::<Vec<_>>()
    };
    assert_eq!(identity(&csv), identity(&ndjson));
    assert_eq!(csv.source, ndjson.source);
    assert!(csv.batches.iter().any(|batch| batch.totals.len() == 3), "a batch of several currencies");
}

#[test]
fn samples_are_reproducible() {
    assert_eq!(sample::settlement_detail(40, 3, 7), sample::settlement_detail(40, 3, 7));
    assert_ne!(sample::settlement_detail(40, 3, 7), sample::settlement_detail(40, 3, 8));
    assert_eq!(sample::nacha(4, 9, date(), 7), sample::nacha(4, 9, date(), 7));
    assert_eq!(sample::payout_reconciliation(9, 1, 7), sample::payout_reconciliation(9, 1, 7));
    assert_eq!(two_tables(9), two_tables(9));
}
