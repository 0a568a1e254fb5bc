//! Two tables in one file: a preamble that declares what the rows below come to, in one currency or in several.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::{TABLES, TWO_CURRENCIES, breaks, good, profile_text, read, refused, two_tables, with_line};
use domain::item::ItemKind;
use domain::summary::{BatchSummary, StagedItem};
use intake::Profile;

fn one(text: &str, profile: &str) -> (BatchSummary, Vec<StagedItem>) {
    let (mut summary, items) = good(text, profile);
    assert_eq!(summary.batches.len(), 1);
    (summary.batches.remove(0), items)
}

#[test]
fn the_preamble_names_the_batch_its_day_and_its_totals() {
    let (batch, items) = one(&two_tables(9), TABLES);
    assert_eq!((batch.external_batch_id.as_str(), batch.business_date.to_string().as_str()), ("2200", "2026-01-09"));
    assert_eq!(batch.first_line, 2);
    assert_eq!(batch.breaks, Vec::<String>::new());
    let total = batch.totals[0];
    // gross and net bind, the fees and the number of items do not
    let declared = total.declared;
    assert_eq!((declared.gross_minor, declared.net_minor), (Some(120_690), Some(112_646)));
    assert_eq!((declared.fee_minor, declared.items, total.items), (None, None, 12));
    // what was transferred is the declared net; the rows miss it by what rounding each of them left
    assert_eq!((total.gross_minor, total.fee_minor, total.net_minor), (120_690, 8_046, 112_644));
    assert_eq!((total.declared_remittance_minor, total.remittance_minor), (112_646, 0));
    assert_eq!((total.rounding_minor, total.difference_minor, total.tolerance_minor), (-2, 0, 2));
    assert!(items.iter().all(|staged| staged.item.merchant == "648" && staged.item.currency.code() == "USD"));
}

/// Gross and fee are each rounded, half to even; a fee that was charged is written negative and lowers the net.
#[test]
fn rows_are_rounded_each_for_itself() {
    let (_, items) = one(&two_tables(9), TABLES);
    let line = |index: usize| {
        let item = &items[index].item;
        (item.line_no, item.kind, item.gross_minor, item.fee_minor, item.residual_micro)
    };
    // 48.495 − 0.036727 = 48.458273 = 48.50 − 0.04 − 0.001727
    assert_eq!(line(0), (4, ItemKind::Charge, 4_850, 4, -1_727));
    // 195.265 is as near to 195.26 as to 195.27: the even one
    assert_eq!(line(8), (12, ItemKind::Charge, 19_526, 8, 304));
    assert_eq!(line(9), (13, ItemKind::Adjustment, -238, 0, 0));
    assert_eq!(line(11), (15, ItemKind::Fee, 0, 8_000, 0));
}

/// M10: rows without an id are told by what they say and how often their batch has said it.
#[test]
fn m10_penalties_without_an_id_are_two() {
    let (_, items) = one(&two_tables(9), TABLES);
    let keys: Vec<_> = items.iter().map(|staged| staged.item.dedupe_key.as_str()).collect();
    let (one, other) = (keys[9].rsplit_once('|').unwrap(), keys[10].rsplit_once('|').unwrap());
    assert!(one.0.starts_with("2200|row:"), "{}", one.0);
    assert_eq!((one.0, one.1, other.1), (other.0, "1", "2"));
    assert_eq!(keys[0], "CAPTURE|T-648-02200000000");
    // the same penalty of another transfer is another one
    let (_, elsewhere) = good(two_tables(9).replace(",2200,", ",2201,"), TABLES);
    assert_ne!(elsewhere[9].item.dedupe_key, keys[9]);
}

#[test]
fn only_named_totals_bind_and_within_the_tolerance() {
    let text = two_tables(9);
    let with = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        breaks(text.replacen(from, to, 1), TABLES)
    };
    assert_eq!(with("USD,1009,", "USD,7,"), Vec::<String>::new());
    assert_eq!(with(",-80.45,", ",-99.99,"), Vec::<String>::new());
    assert_eq!(with(",1206.90,", ",1206.88,"), Vec::<String>::new());
    assert_eq!(with(",1206.90,", ",1206.87,"), ["declares gross of 1206.87 USD, rows sum to 1206.90"]);
    let net = "declares net of 1126.47 USD, rows sum to 1126.44";
    assert_eq!(with(",1126.46,", ",1126.47,"), [net, "rows net 1126.44 USD, remittance 1126.47 USD: -0.03 left over"]);
    // nothing declared: then nothing was transferred either
    assert_eq!(with(",1126.46,", ",,"), ["rows net 1126.44 USD, remittance 0.00 USD: 1126.44 left over"]);
}

/// A total that is named binds in the sign that the rows have.
#[test]
fn a_declared_fee_has_the_sign_of_the_rows() {
    let own = profile_text(TABLES).replace("gross = \"GROSS_TOTAL_AMOUNT\"", "fee = \"FEE_TOTAL_AMOUNT\"");
    let profile = Profile::parse(&own, "own").unwrap();
    let (summary, _) = read(two_tables(9), &profile).unwrap();
    assert_eq!((summary.batches[0].totals[0].declared.fee_minor, summary.batches[0].breaks.len()), (Some(8_045), 0));
    let (summary, _) = read(two_tables(9).replace(",-80.45,", ",80.45,"), &profile).unwrap();
    assert_eq!(summary.batches[0].breaks, ["declares fees of -80.45 USD, rows sum to 80.46"]);
}

#[test]
fn a_net_that_does_not_follow_is_a_break() {
    let text = with_line(&two_tables(9), "T-648-02200000003", |line| line.replace(",97.34785,", ",97.34786,"));
    assert_eq!(breaks(text, TABLES), ["line 7: gross and fee make net does not hold: net is 97.34786, not 97.347850"]);
}

#[test]
fn a_preamble_that_was_cut_or_altered_is_refused() {
    let text = two_tables(9);
    let lines: Vec<_> = text.lines().collect();
    let without = |at: usize| {
        let kept: Vec<_> = lines.iter().enumerate().filter(|(index, _)| *index != at).map(|(_, line)| *line).collect();
        kept.join("\n")
    };
    refused(without(0), TABLES, 1, "the header has no column \"ROW_TYPE\"");
    refused(lines[2..].join("\n"), TABLES, 1, "the header has no column \"TRANSFER_ID\"");
    refused(without(1), TABLES, 2, "the preamble has no record: the rows begin here");
    refused(without(2), TABLES, 3, "unknown ROW_TYPE \"CAPTURE\" before the header of the rows");
    refused(lines[..2].join("\n"), TABLES, 2, "the file ends in its preamble: no header with the column \"ROW_TYPE\"");
    refused(text.replacen(",2026-01-09,2200,", ",2026-01-09,,", 1), TABLES, 2, "is blank: the file names no batch");
    refused(text.replacen("2026-01-09,2200", "09/01/2026,2200", 1), TABLES, 2, "\"09/01/2026\" is not a date");
    refused(text.replacen(",2026-01-09,2200,", ",,2200,", 1), TABLES, 2, "has no business date");
    refused(text.replacen("HEADER,USD,", "HEADER,,", 1), TABLES, 2, "no currency in [\"SETTLEMENT_CURRENCY\"]");
    refused(text.replacen("HEADER,USD,", "HEADER,USD,,", 1), TABLES, 2, "the row has 16 fields, the header 15");
    refused(text.replacen(",1126.46,", ",1126.465,", 1), TABLES, 2, "1126.465 is finer than USD");
    let second = |record: &str| [lines[0], lines[1], record, &lines[2..].join("\n")].join("\n");
    refused(second(lines[1]), TABLES, 3, "a second total of USD for batch \"2200\"");
    refused(
        second(&lines[1].replace(",2200,", ",2201,")),
        TABLES,
        3,
        "the row is of batch \"2201\", the file of \"2200\" (line 2)",
    );
    refused(second(&lines[1].replace(",USD,", ",EUR,")), TABLES, 3, "different currencies or merchants, and the rows name none");
    refused(second(&lines[1].replace(",2026-01-09,", ",2026-01-10,")), TABLES, 3, "has the business date 2026-01-09 and here");
    // a row of the one table in the other
    refused(text.clone() + lines[1] + ",,\n", TABLES, 16, "the row has 17 fields");
    refused(text.clone() + "HEADER,648,,,,1,0,,0,1,0,1,,,\n", TABLES, 16, "unknown ROW_TYPE \"HEADER\"");
}

/// M12: as in every format; a mark before the second table means that two files were joined.
#[test]
fn m12_marks_and_line_ends_of_both_tables() {
    let text = two_tables(9);
    let plain = good(&text, TABLES).0.batches;
    let crlf = text.replace('\n', "\r\n");
    for same in [
        format!("\u{feff}{text}"),
        crlf.clone(),
        format!("\u{feff}{}", crlf.trim_end()),
        text.replace("\nROW_TYPE", "\n\nROW_TYPE"),
    ] {
        let batches = good(&same, TABLES).0.batches;
        assert_eq!((&batches[0].digest, &batches[0].totals), (&plain[0].digest, &plain[0].totals));
    }
    refused(text.replace("\nROW_TYPE", "\n\u{feff}ROW_TYPE"), TABLES, 3, "byte order mark");
}

/// M14: each currency of a batch has its own totals. One that does not foot breaks the batch, whatever the other does.
#[test]
fn m14_one_currency_that_does_not_foot_breaks_the_batch() {
    let (batch, _) = one(TWO_CURRENCIES, "two-currencies");
    let totals: Vec<_> = batch.totals.iter().map(|total| (total.currency.code(), total.items, total.net_minor)).collect();
    assert_eq!((totals, batch.breaks.len()), (vec![("EUR", 2, 1_470), ("ISK", 1, 1_250)], 0));
    let isk = TWO_CURRENCIES.replace(",125000,,", ",125500,,");
    let both = ["declares net of 1255 ISK, rows sum to 1250", "rows net 1250 ISK, remittance 1255 ISK: -5 left over"];
    assert_eq!(breaks(&isk, "two-currencies"), both);
    // rows of a currency that nobody declared, and a currency without rows
    let undeclared = TWO_CURRENCIES.replace("S-9,2026-03-02,kiosk,ISK,1,,125000,,\n", "");
    assert_eq!(breaks(undeclared, "two-currencies"), ["rows net 1250 ISK, remittance 0 ISK: 1250 left over"]);
    let no_rows = TWO_CURRENCIES.replace("sale,b,ISK,125000,\n", "");
    let sentences = breaks(no_rows, "two-currencies");
    assert_eq!(sentences[0], "declares 1 items, has 0", "{sentences:?}");
}

/// M2: whole numbers of minor units, by the exponents of this source.
#[test]
fn m2_minor_units_have_the_exponent_of_their_source() {
    let (_, items) = one(TWO_CURRENCIES, "two-currencies");
    let minor: Vec<_> = items.iter().map(|staged| (staged.item.currency.code(), staged.item.gross_minor)).collect();
    assert_eq!(minor, [("EUR", 1_000), ("EUR", 500), ("ISK", 1_250)]);
    assert!(items.iter().all(|staged| staged.item.merchant == "kiosk"), "the preamble's");
    let with = |amount: &str| TWO_CURRENCIES.replace("ISK,125000,\n", &format!("ISK,{amount},\n"));
    refused(with("125050"), "two-currencies", 7, "1250.50 is finer than ISK, which has 0 decimals");
    refused(with("1250.00"), "two-currencies", 7, "\"1250.00\" is not an amount (profile two-currencies expects e.g. 123450)");
    refused(with("9223372036854775807999"), "two-currencies", 7, "does not fit into 64 bits");
}
