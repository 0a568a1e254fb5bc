//! Real public settlement files, read in full, against figures counted independently.
//!
//! The files are not part of the project: `SETTLED_REAL_FILES=<folder> cargo test -p intake --test real_files -- --ignored`.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use domain::item::ItemKind;
use std::path::PathBuf;

fn path(name: &str) -> PathBuf {
    let folder = std::env::var_os("SETTLED_REAL_FILES").expect("SETTLED_REAL_FILES names the folder of the real files");
    PathBuf::from(folder).join(name)
}

fn bytes(name: &str) -> Vec<u8> {
    let path = path(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
#[ignore = "reads the folder named by SETTLED_REAL_FILES"]
fn adyen_batch_380_foots_and_its_lines_are_signed_from_the_merchant() {
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
