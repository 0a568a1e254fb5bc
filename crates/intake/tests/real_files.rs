//! Real public settlement files, read in full, against figures counted independently.
//!
//! The files are not part of the project: the tests read the folder that `SETTLED_REAL_FILES` names, and there are none without it,
//! unless `SETTLED_REQUIRE_REAL_FILES` promises it.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use domain::item::ItemKind;
use lab::trials::Suite;
use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut suite = Suite::new();
    if std::env::var_os("SETTLED_REAL_FILES").is_some() || std::env::var_os("SETTLED_REQUIRE_REAL_FILES").is_some() {
        suite = suite
            .plain("card settlement batch 380 foots, its lines are signed from the merchant", card_batch)
            .plain("one payout: a row that names none is what does not foot", payout)
            .plain("two tables: rounded rows, declared net, 0.02 between them", two_tables)
            .plain("the small NACHA file has four batches that foot, and a warning", small_nacha)
            .plain("half a million NACHA entries stream", large_nacha);
    }
    suite.run()
}

fn path(name: &str) -> PathBuf {
    let folder = std::env::var_os("SETTLED_REAL_FILES").expect("SETTLED_REAL_FILES names the folder of the real files");
    PathBuf::from(folder).join(name)
}

fn bytes(name: &str) -> Vec<u8> {
    let path = path(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn card_batch() {
    let (summary, items) = common::good(bytes("adyen_settlement_detail_batch_380.csv"), "adyen-settlement-detail");
    assert_eq!((summary.items, items.len(), summary.batches.len()), (228, 228, 1));
    let batch = &summary.batches[0];
    assert_eq!(batch.external_batch_id, "YOURCOMPANY_ACCOUNT|380");
    assert_eq!(batch.business_date.to_string(), "2021-01-07");
    assert_eq!(batch.breaks, Vec::<String>::new());
    let [total] = batch.totals[..] else { panic!("one currency expected") };
    assert_eq!((total.currency.code(), total.net_minor, total.remittance_minor), ("USD", 5_530_807, 5_530_807));
    assert_eq!((total.difference_minor, total.rounding_minor), (0, 0));

    let line = |line_no: i64| {
        let item = &items[usize::try_from(line_no).unwrap() - 2].item;
        assert_eq!(item.line_no, line_no);
        (item.kind, item.gross_minor, item.fee_minor, item.net_minor().unwrap())
    };
    assert_eq!(line(2), (ItemKind::Charge, 3145, 30, 3115));
    assert_eq!(line(128), (ItemKind::Refund, -4000, 20, -4020));
    assert_eq!(line(228), (ItemKind::Fee, -3810, 0, -3810));
    assert_eq!(line(229), (ItemKind::Remittance, -5_530_807, 0, -5_530_807));
    let net = |kind| items.iter().filter(|i| i.item.kind == kind).map(|i| i.item.net_minor().unwrap()).sum::<i64>();
    assert_eq!(net(ItemKind::Charge), 5_643_852);
    assert_eq!(net(ItemKind::Refund), -109_235);
    let mut keys: Vec<_> = items.iter().map(|i| &i.item.dedupe_key).collect();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), 228);
}

fn payout() {
    let (summary, items) = common::good(bytes("stripe_payout_reconciliation.csv"), common::PAYOUTS);
    assert_eq!((summary.items, summary.batches.len()), (7, 1));
    let batch = &summary.batches[0];
    assert_eq!((batch.external_batch_id.as_str(), batch.business_date.to_string().as_str()), ("po_test123", "2026-01-31"));
    let left_over = "rows net 26.40 USD, remittance 23.05 USD: 3.35 left over";
    assert_eq!(batch.breaks, [left_over, "line 7 (txn_1Tj9xrJ, net 3.35 USD) names no automatic_payout_id"]);
    let [total] = batch.totals[..] else { panic!("one currency expected") };
    assert_eq!((total.net_minor, total.remittance_minor, total.difference_minor), (2_640, 2_305, 335));
    assert!(items.iter().all(|staged| staged.item.merchant == "acct_live"));
    let alike =
        String::from_utf8(bytes("stripe_payout_reconciliation.csv")).unwrap().replace(",usd,", ",USD,").replace("Re_", "re_");
    assert_eq!(common::good(alike, common::PAYOUTS).0.batches, summary.batches);
}

fn two_tables() {
    let (summary, items) = common::good(bytes("dlocal_settlement_20260110.csv"), common::TABLES);
    let batch = &summary.batches[0];
    assert_eq!((batch.external_batch_id.as_str(), batch.business_date.to_string().as_str()), ("642926", "2026-01-09"));
    assert_eq!((batch.breaks.len(), summary.batches.len(), items.len()), (0, 1, 6));
    let [total] = batch.totals[..] else { panic!("one currency expected") };
    assert_eq!((total.gross_minor, total.fee_minor, total.net_minor), (25_970, 8_023, 17_947));
    assert_eq!((total.declared_remittance_minor, total.rounding_minor, total.difference_minor), (17_949, -2, 0));
    // the exact net is 179.473813: what rounding left out is kept
    let residual: i64 = items.iter().map(|staged| staged.item.residual_micro).sum();
    assert_eq!(i64::from(17_947 * 10_000) + residual, 179_473_813);
    assert_eq!((items[0].item.kind, items[5].item.kind), (ItemKind::Adjustment, ItemKind::Fee));
    for line in [0, 5] {
        assert!(items[line].item.dedupe_key.starts_with("642926|row:"), "{}", items[line].item.dedupe_key);
    }
}

fn small_nacha() {
    let (summary, items) = common::good(bytes("nacha_20110805A.ach"), "nacha");
    assert_eq!((summary.items, items.len(), summary.batches.len()), (48, 48, 4));
    for batch in &summary.batches {
        assert_eq!(batch.breaks, Vec::<String>::new(), "{}", batch.external_batch_id);
        assert_eq!(batch.business_date.to_string(), "2011-08-08");
    }
    let [warning] = &summary.warnings[..] else { panic!("one warning expected: {:?}", summary.warnings) };
    assert!(warning.contains("declares 5 batches, the file has 4"), "{warning}");
    let sum = |of: fn(&domain::totals::Total) -> i64| summary.batches.iter().flat_map(|b| &b.totals).map(of).sum::<i64>();
    assert_eq!((sum(|t| t.debit_minor), sum(|t| t.credit_minor), sum(|t| t.items)), (5_101_000, 200, 48));
    assert_eq!(summary.batches[3].external_batch_id, "0231380104|042000013|110805|2100|A|0000005");
    let mut keys: Vec<_> = items.iter().map(|i| &i.item.dedupe_key).collect();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), 48, "25 distinct traces, 48 identities");
}

/// M3, M5: half a million entries pass through; nothing of them is kept.
fn large_nacha() {
    let source = intake::open(&path("nacha_2500_batches_502499_entries.ach.gz")).unwrap();
    let (mut seen, mut largest) = (0, 0);
    let mut count = |chunk: Vec<domain::summary::StagedItem>| -> Result<(), intake::Stopped> {
        seen += chunk.len();
        largest = largest.max(chunk.len());
        Ok(())
    };
    let summary = intake::read(source, "large", &common::profile("nacha"), &mut count).unwrap();
    assert_eq!((seen, summary.items, summary.batches.len()), (502_499, 502_499, 2_500));
    assert_eq!(largest, intake::CHUNK_ITEMS);
    assert!(summary.batches.iter().all(|batch| batch.breaks.is_empty()));
    let credits: i128 = summary.batches.iter().flat_map(|b| &b.totals).map(|t| i128::from(t.credit_minor)).sum();
    assert_eq!(credits, 250_616_998_766);
    assert_eq!(summary.batches[0].totals[0].items, 275_966);
    assert_eq!(summary.warnings, Vec::<String>::new());
}
