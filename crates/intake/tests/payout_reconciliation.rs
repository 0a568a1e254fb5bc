//! One payout a file: its name and its merchant said by some rows only, a payout row that takes out what the others bring in, and
//! a row that is of no payout.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::{PAYOUTS, breaks, good, refused, with_line};
use domain::item::ItemKind;
use intake::sample;

fn report(stray_minor: i64) -> String {
    sample::payout_reconciliation(12, stray_minor, 7)
}

/// Header and rows.
fn parts(text: &str) -> (&str, Vec<&str>) {
    let (header, rows) = text.split_once('\n').unwrap();
    (header, rows.lines().collect())
}

fn file(header: &str, rows: &[&str]) -> String {
    format!("{header}\n{}\n", rows.join("\n"))
}

#[test]
fn a_payout_is_one_batch_that_foots() {
    let (summary, items) = good(report(0), PAYOUTS);
    let [batch] = &summary.batches[..] else { panic!("one batch expected") };
    assert_eq!((batch.external_batch_id.as_str(), batch.business_date.to_string().as_str()), ("po_02222", "2026-01-31"));
    assert_eq!(batch.breaks, Vec::<String>::new());
    let total = batch.totals[0];
    assert_eq!((total.currency.code(), total.items, total.net_minor), ("USD", 15, total.remittance_minor));
    // the net of the payout is taken, whatever its gross
    let payout = &items.last().unwrap().item;
    assert_eq!((payout.kind, payout.gross_minor, payout.fee_minor), (ItemKind::Remittance, -total.net_minor, 0));
    assert_eq!(items[1].item.dedupe_key, "txn_02222000000");
}

/// A blank account is the batch's, also where the row that names it comes later; lines keep their order.
#[test]
fn a_blank_merchant_is_the_batchs() {
    let (_, items) = good(report(335), PAYOUTS);
    let lines: Vec<_> = items.iter().map(|staged| staged.item.line_no).collect();
    assert_eq!(lines, (2..=17).collect::<Vec<_>>());
    assert_eq!(items[0].item.kind, ItemKind::Fee);
    assert!(items.iter().all(|staged| staged.item.merchant == "acct_example"), "{items:?}");
}

#[test]
fn the_row_of_no_payout_is_named_when_the_batch_does_not_foot() {
    let sentences = breaks(report(335), PAYOUTS);
    let [left_over, unnamed] = &sentences[..] else { panic!("{sentences:?}") };
    assert_eq!(left_over, "rows net 1286.50 USD, remittance 1283.15 USD: 3.35 left over");
    assert_eq!(unnamed, "line 16 (txn_02222stray, net 3.35 USD) names no automatic_payout_id");
    let (summary, _) = good(report(335), PAYOUTS);
    assert_eq!(summary.batches[0].business_date.to_string(), "2026-01-31", "the payout row decides, not the later one");
    assert_eq!(summary.batches[0].totals[0].difference_minor, 335);
    // a payout that took it along is no fault of anybody's
    let taken = report(335).replace(",0,1283.15,payout", ",0,1286.5,payout");
    assert_eq!(breaks(taken, PAYOUTS), Vec::<String>::new());
    // many of them are not listed one by one
    let (text, mut rows) = (report(335), Vec::new());
    let (header, all) = parts(&text);
    let stray = all.iter().find(|row| row.contains("stray")).unwrap();
    let strays: Vec<_> = (0..8).map(|n| stray.replace("stray", &format!("stray{n}"))).collect();
    rows.extend(strays.iter().map(String::as_str).chain(all.iter().copied().filter(|row| row != stray)));
    let sentences = breaks(file(header, &rows), PAYOUTS);
    assert_eq!((sentences.len(), sentences[6].as_str()), (7, "and 3 more lines that name none"));
    assert!(sentences[1].starts_with("line 2 (txn_02222stray0,"), "{sentences:?}");
}

/// `USD` and `usd`, `re_` and `Re_`, `charge` and `Charge` say the same: it is the same batch.
#[test]
fn capital_letters_make_no_difference() {
    let digest = |text: &str| good(text, PAYOUTS).0.batches[0].digest;
    let text = report(0);
    assert!(text.contains(",usd,") && text.contains(",USD,") && text.contains(",re_") && text.contains(",Re_"));
    for (from, to) in
        [(",usd,", ",USD,"), (",USD,", ",usd,"), (",Re_", ",re_"), (",charge,", ",Charge,"), (",payout,", ",PAYOUT,")]
    {
        assert_eq!(digest(&text.replace(from, to)), digest(&text), "{from} {to}");
    }
    assert_ne!(digest(&text.replace("txn_", "TXN_")), digest(&text), "an id is what it is");
}

/// M2: whole units with the decimals of the currency: yens have none, dinars three.
#[test]
fn m2_the_decimals_are_the_currencys() {
    let header = parts(&report(0)).0.to_owned();
    let of = |code: &str, gross: &str, fee: &str, net: &str| {
        let date = "2026-01-31 00:00:00";
        let row = |id: &str, amounts: &str, category: &str| {
            format!("{id},,,,{date},{date},{date},{code},{amounts},{category},,,,,acct_1,po_1,,")
        };
        let rows = [row("txn_1", &format!("{gross},{fee},{net}"), "charge"), row("txn_2", &format!("{net},0,{net}"), "payout")];
        file(&header, &rows.each_ref().map(String::as_str))
    };
    let minor = |text: &str| {
        let item = &good(text, PAYOUTS).1[0].item;
        (item.gross_minor, item.fee_minor)
    };
    assert_eq!(minor(&of("jpy", "1200", "43", "1157")), (1200, 43));
    assert_eq!(minor(&of("KWD", "4.25", "0.055", "4.195")), (4250, 55));
    assert_eq!(minor(&of("usd", "25", "0.95", "24.05")), (2500, 95));
    refused(of("JPY", "12.5", "0.5", "12"), PAYOUTS, 2, "12.5 is finer than JPY, which has 0 decimals");
    refused(of("KWD", "4.2501", "0", "4.2501"), PAYOUTS, 2, "finer than KWD, which has 3 decimals");
}

/// M11, M12: strict as ever, whatever the profile adds.
#[test]
fn m11_m12_amounts_and_marks_are_read_in_one_way_only() {
    for wrong in ["\"94,12\"", "94.12-", "\"1,094.12\"", "94.12 ", "+94.12", "USD 94.12"] {
        let text = with_line(&report(0), "ch_000003", |line| line.replace(",94.12,3.02,", &format!(",{wrong},3.02,")));
        refused(text, PAYOUTS, 6, "is not an amount (profile stripe-payout-reconciliation expects e.g. 1234.50)");
    }
    let plain = good(report(335), PAYOUTS).0.batches;
    let crlf = report(335).replace('\n', "\r\n");
    assert_eq!(good(format!("\u{feff}{}", crlf.trim_end()), PAYOUTS).0.batches, plain);
    let joined = with_line(&report(0), "ch_000003", |line| format!("\u{feff}{line}"));
    refused(joined, PAYOUTS, 6, "byte order mark");
}

#[test]
fn a_row_whose_net_is_not_gross_less_fee_is_a_break() {
    let text = with_line(&report(0), "ch_000003", |line| line.replace(",94.12,", ",94.13,"));
    let [sentence] = &breaks(&text, PAYOUTS)[..] else { panic!("{:?}", breaks(&text, PAYOUTS)) };
    assert_eq!(sentence, "line 6: gross less fee is net does not hold: gross is 94.13, not 94.12");
}

#[test]
fn a_file_of_two_payouts_is_refused() {
    let text = with_line(&report(0), "ch_000003", |line| line.replace("po_02222", "po_09999"));
    refused(text, PAYOUTS, 6, "the row is of batch \"po_09999\", the file of \"po_02222\" (line 2): it is read as one batch");
}

#[test]
fn somebody_must_name_the_payout_and_the_merchant() {
    refused(report(335).replace(",po_02222,", ",,"), PAYOUTS, 2, "no row names the batch of the file");
    let nobodys = report(335).replace("acct_example", "");
    refused(&nobodys, PAYOUTS, 2, "line 2 leaves its merchant to batch \"po_02222\", of which no row names one");
    // whose a blank row is can be told of one merchant only; without a blank row there may be many
    let two = with_line(&report(0), "ch_000003", |line| line.replace("acct_example", "acct_other"));
    let who = "line 2 leaves its merchant to its batch, and that has two: \"acct_example\" (line 3) and \"acct_other\" (line 6)";
    refused(&two, PAYOUTS, 6, who);
    let (header, rows) = parts(&two);
    let named: Vec<_> = rows.iter().copied().filter(|row| !row.contains("fee")).collect();
    let (_, items) = good(file(header, &named), PAYOUTS);
    assert_eq!((items[2].item.merchant.as_str(), items[3].item.merchant.as_str()), ("acct_example", "acct_other"));
    let late = [&named[..], &rows[..1]].concat();
    refused(file(header, &late), PAYOUTS, 15, "line 15 leaves its merchant to its batch, and that has two");
}

/// Rows whose identity is their content wait for the name of their batch, which is part of it: whoever else they wait for.
#[test]
fn the_name_of_the_batch_may_come_last() {
    let by_content =
        common::profile_text(PAYOUTS).replace("fee = { kind = \"fee\" }", "fee = { kind = \"fee\", identity = \"content\" }");
    let profile = intake::Profile::parse(&by_content, PAYOUTS).unwrap();
    let blank = report(0);
    let named = blank.replace("\",,,po_02222,", "\",,acct_example,po_02222,");
    assert_ne!(blank, named);
    for text in [blank, named] {
        let (rows, payout) = text.trim_end().rsplit_once('\n').unwrap();
        let late = format!("{}\n{payout}\n", rows.replace(",po_02222,", ",,"));
        let (summary, items) = common::read(late, &profile).unwrap();
        assert_eq!(summary.batches[0].breaks, Vec::<String>::new());
        let fees: Vec<_> = items.iter().filter(|staged| staged.item.kind == ItemKind::Fee).map(|s| &s.item.dedupe_key).collect();
        assert!(fees.len() == 2 && fees.iter().all(|key| key.starts_with("po_02222|row:")), "{fees:?}");
        // and are the lines that they would have been, had each row named it
        assert_eq!(items, common::read(&text, &profile).unwrap().1);
    }
}

/// M5: lines that wait for a name are bounded, however large the file.
#[test]
fn m5_waiting_lines_are_bounded() {
    let (text, wanted) = (report(0).replace("acct_example", ""), 200_000);
    let (header, rows) = parts(&text);
    let many = |count: usize| {
        let row = |n: usize| rows[2].replace("txn_02222000001", &format!("txn_{n}"));
        (0..count).map(row).fold(format!("{header}\n"), |text, row| text + &row + "\n")
    };
    let error = common::read(many(wanted), &common::profile(PAYOUTS)).map(|(summary, _)| summary.items).unwrap_err();
    let line = error.line().unwrap();
    assert!((10_000..wanted as u64).contains(&line), "{error}");
    assert!(error.to_string().contains("line 2 leaves its merchant to batch"), "{error}");
    // as many as a real file has are no trouble
    let payout = report(0).lines().last().unwrap().to_owned();
    let (summary, items) = good(many(10_000) + &payout, PAYOUTS);
    assert_eq!((summary.items, items[0].item.merchant.as_str()), (10_001, "acct_example"));
}
