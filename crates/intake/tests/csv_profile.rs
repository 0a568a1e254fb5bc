//! CSV by profile: a provider's settlement detail report in its shape, and what a profile can say.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::{CARDS as ADYEN, good, read};
use domain::item::{FeeMode, ItemKind};
use intake::{Profile, sample};

fn adyen() -> String {
    sample::settlement_detail(20, 1, 7)
}

/// The sample with one line changed: the first that contains `marker`, by `change`.
fn with_line(marker: &str, change: impl Fn(&str) -> String) -> String {
    let text = adyen();
    let line = text.lines().find(|line| line.contains(marker)).unwrap();
    text.replace(line, &change(line))
}

fn breaks(text: &str) -> Vec<String> {
    good(text, ADYEN).0.batches[0].breaks.clone()
}

#[test]
fn a_report_foots_by_its_payout_line() {
    let (summary, items) = good(adyen(), ADYEN);
    let batch = &summary.batches[0];
    assert_eq!((batch.business_date.to_string().as_str(), batch.fee_mode), ("2026-01-05", FeeMode::Withheld));
    assert_eq!(batch.totals[0].net_minor, batch.totals[0].remittance_minor);
    assert_eq!(items.last().unwrap().item.kind, ItemKind::Remittance);
    assert!(items[0].item.dedupe_key.starts_with("Settled|"), "{}", items[0].item.dedupe_key);
    assert!(items.iter().all(|staged| staged.item.merchant == "EXAMPLE_SHOP_1"));
}

/// A payout that does not take everything: the batch is broken, with both figures, and still imported.
#[test]
fn a_missing_or_wrong_payout_breaks_the_batch() {
    let missing = with_line("MerchantPayout", |_| String::new());
    assert!(breaks(&missing)[0].contains("remittance 0.00 EUR"), "{:?}", breaks(&missing));
    let batch = &good(&missing, ADYEN).0.batches[0];
    assert_eq!(batch.business_date.to_string(), "2026-01-05", "the latest booking");
    let lost = with_line("Settled", |_| String::new());
    assert_eq!(breaks(&lost).len(), 1);
}

/// The payout line decides wherever it stands and however late others were booked; without one the latest booking does.
#[test]
fn the_business_date_does_not_depend_on_the_order() {
    let text = adyen();
    let (header, rows) = text.split_once('\n').unwrap();
    let payout = rows.lines().find(|row| row.contains("MerchantPayout")).unwrap();
    let others: Vec<_> = rows.lines().filter(|row| *row != payout).collect();
    let late = others[0].replace("2026-01-04 23:50:00", "2026-02-01 23:50:00");
    assert_ne!(late, others[0]);
    let date = |rows: &[&str]| {
        let (summary, _) = good(format!("{header}\n{}\n", rows.join("\n")), ADYEN);
        summary.batches[0].business_date.to_string()
    };
    assert_eq!(date(&[payout, &late, others[1]]), "2026-01-05");
    assert_eq!(date(&[&late, payout, others[1]]), "2026-01-05");
    assert_eq!(date(&[others[1], &late, others[2]]), "2026-02-01");
    assert_eq!(date(&[&late, others[1], others[2]]), "2026-02-01");
}

/// Rows of several batches in any order: each is the batch it would be alone.
#[test]
fn batches_may_be_interleaved() {
    let text = sample::settlement_detail(20, 3, 7);
    let (header, rows) = text.split_once('\n').unwrap();
    let mut rows: Vec<_> = rows.lines().collect();
    let third = rows.len() / 3;
    let mixed: Vec<_> = (0..third).flat_map(|i| [rows[i + 2 * third], rows[i], rows[i + third]]).collect();
    assert_eq!(mixed.len(), rows.len());
    let file = |rows: &[&str]| good(format!("{header}\n{}\n", rows.join("\n")), ADYEN);
    let identity = |rows: &[&str]| {
        let (summary, _) = file(rows);
        let mut batches: Vec<_> = summary.batches.into_iter().map(|b| (b.external_batch_id, b.digest, b.totals)).collect();
        batches.sort_by(|a, b| a.0.cmp(&b.0));
        batches
    };
    assert_eq!(identity(&rows), identity(&mixed));
    let (_, items) = file(&mixed);
    assert_eq!(items.iter().take(3).map(|staged| staged.batch).collect::<Vec<_>>(), [0, 1, 2]);
    rows.reverse();
    assert_ne!(identity(&rows)[0].1, identity(&mixed)[0].1, "the order of a batch's lines is part of it");
}

#[test]
fn a_row_that_breaks_a_check_is_named() {
    let text = with_line("Settled", |line| {
        let mut fields: Vec<_> = line.split(',').map(str::to_owned).collect();
        assert_eq!(fields[10], "");
        fields[11] = "0.07".to_owned();
        fields.join(",")
    });
    let [sentence] = &breaks(&text)[..] else { panic!("{:?}", breaks(&text)) };
    assert!(sentence.starts_with("line 2: gross less commission, markup, scheme fees and interchange is net does not hold"));
    assert!(sentence.contains("gross is 0.07, not "), "{sentence}");
    let other_currency = text.replace(",EUR,,0.07,1,EUR", ",SEK,,0.07,1,EUR");
    assert_eq!(breaks(&other_currency), Vec::<String>::new(), "exchanged amounts are not compared");
}

/// A file that breaks a check on every row must not fill the memory with sentences.
#[test]
fn m5_sentences_are_bounded() {
    let text = sample::settlement_detail(500, 1, 7);
    let swapped = text.replacen("Gross Debit (GC),Gross Credit (GC)", "Gross Credit (GC),Gross Debit (GC)", 1);
    let sentences = breaks(&swapped);
    assert_eq!((sentences.len(), sentences[20].as_str()), (21, "and 480 more"));
}

#[test]
fn debit_and_credit_say_the_sign_once() {
    let net = |debit: &str, credit: &str| {
        let text = with_line("Settled", |line| {
            let mut fields: Vec<_> = line.split(',').collect();
            (fields[14], fields[15]) = (debit, credit);
            fields.join(",")
        });
        read(text, &common::profile(ADYEN)).map(|(_, items)| items[0].item.net_minor().unwrap()).map_err(|e| e.to_string())
    };
    assert_eq!((net("1.5", ""), net("", "1.5"), net("0.00", "1.5")), (Ok(-150), Ok(150), Ok(150)));
    assert!(net("1", "1").unwrap_err().starts_with("file:2: \"Net Debit (NC)\" and \"Net Credit (NC)\" are both filled"));
    assert!(net("-1", "").unwrap_err().contains("its sign is said twice"));
    assert!(net("", "").unwrap_err().contains("no amount in"));
}

#[test]
fn an_unknown_type_is_named_with_its_line() {
    let text = with_line("Settled", |line| line.replace("Settled", "Teleported"));
    let error = read(text, &common::profile(ADYEN)).unwrap_err();
    assert_eq!(error.line(), Some(2));
    let text = error.to_string();
    assert!(
        text.contains("unknown Type \"Teleported\" (profile adyen-settlement-detail knows ") && text.contains("types.ignore")
    );
}

#[test]
fn the_same_text_in_another_batch_is_no_duplicate() {
    let (_, items) = good(sample::settlement_detail(1, 6, 7), ADYEN);
    let fees: Vec<_> = items.iter().filter(|s| s.item.kind == ItemKind::Fee).map(|s| &s.item.dedupe_key).collect();
    assert_eq!(fees.len(), 6);
    assert!(fees.iter().zip(fees.iter().skip(1)).all(|(one, other)| one != other), "{fees:?}");
}

/// A profile with every other choice: decimal comma, groups, semicolons, signed columns with the fee negative, amounts finer
/// than the currency, ignored rows, one currency.
const OTHER: &str = r#"
format = "csv"
source = "other"
fee_mode = "withheld"
remittance = "declared_net"
tolerance_minor = 1
delimiter = ";"
[numbers]
decimal = ","
group = "."
round = true
[batch]
columns = ["Run", "Part"]
[business_date]
columns = ["Day"]
format = "%d.%m.%Y"
rule = "same"
[types]
column = "What"
ignore = ["note"]
[types.values]
sale = { kind = "charge" }
penalty = { kind = "fee", identity = "content" }
[merchant]
columns = ["Shop"]
default = "house"
[currency]
default = "EUR"
[amounts]
gross = { columns = ["Gross"] }
fee = { columns = ["Fee", "Tax"], negate = true }
[identity]
columns = ["Ref"]
[declared]
type = "sum"
net = "Gross"
items = "Ref"
"#;

fn other(rows: &str) -> String {
    format!("Run;Part;Day;What;Shop;Gross;Fee;Tax;Ref\n{rows}")
}

/// M11: `-1.000,00` is minus a thousand where the profile says so. Rounding is per row, half to even, and kept.
#[test]
fn m11_a_decimal_comma_is_read_where_the_profile_says_so() {
    let profile = Profile::parse(OTHER, "other").unwrap();
    let rows = "1;a;02.03.2026;sale;;-1.000,00;;;r1\n1;a;02.03.2026;sale;kiosk;1.254,0104;-0,057909;-0,01;r2\n\
                1;a;02.03.2026;note;;;;;\n1;a;02.03.2026;penalty;;0;-80;;\n1;a;02.03.2026;sum;;173,94;;;3\n";
    let (summary, items) = read(other(rows), &profile).unwrap();
    let lines: Vec<_> = items.iter().map(|s| (s.item.gross_minor, s.item.fee_minor, s.item.residual_micro)).collect();
    // exact net 1254.0104 − 0.067909 = 1253.942491; 125401 − 7 minor units = 1253.94
    assert_eq!(lines, [(-100_000, 0, 0), (125_401, 7, 2_491), (0, 8_000, 0)]);
    assert_eq!((items[0].item.merchant.as_str(), items[1].item.merchant.as_str()), ("house", "kiosk"));
    let batch = &summary.batches[0];
    assert_eq!((batch.external_batch_id.as_str(), batch.breaks.len()), ("1|a", 0));
    assert_eq!((batch.totals[0].declared_remittance_minor, batch.totals[0].rounding_minor), (17_394, 0));
    for wrong in ["1,000.00", "1000.00", "10.00,00", "1.00", "1.0000", ".100", "1.234.56", "1.000,", "1,0,0"] {
        let error = read(other(&rows.replace("-1.000,00", wrong)), &profile).unwrap_err();
        assert!(error.to_string().contains("is not an amount (profile other expects e.g. 1234,50)"), "{error}");
    }
}

/// [`OTHER`] with payouts as lines and the fee as ours.
fn charged(remittance: &str) -> String {
    let remittance = format!("remittance = \"{remittance}\"");
    let by_line = OTHER.replace("remittance = \"declared_net\"", &remittance).replace("\"withheld\"", "\"charged\"");
    by_line.replace("[types.values]", "[types.values]\npayout = { kind = \"remittance\" }")
}

/// Where the fee is ours the source pays out the gross, and keeps only what it bills as a line of its own.
#[test]
fn a_payout_takes_a_fee_of_ours_along() {
    let profile = Profile::parse(&charged("by_line"), "other").unwrap();
    let judged = |payout: &str| {
        let sale = "1;a;02.03.2026;sale;;10,00;-0,30;;r1\n1;a;02.03.2026;penalty;;0;-1;;\n";
        let (summary, _) = read(other(&format!("{sale}1;a;02.03.2026;payout;;{payout};;;p1\n")), &profile).unwrap();
        (summary.batches[0].fee_mode, summary.batches[0].breaks.clone())
    };
    assert_eq!(judged("-9,00"), (FeeMode::Charged, vec![]));
    let left_over = "rows net 8.70 EUR and our fees 0.30 EUR, remittance 8.70 EUR: 0.30 left over";
    assert_eq!(judged("-8,70"), (FeeMode::Charged, vec![left_over.to_owned()]));
    let error = Profile::parse(&charged("declared_net"), "other").unwrap_err();
    assert!(error.to_string().contains("then more than the net is paid out"), "{error}");
}

/// A payout line is there even if it pays nothing, or the next one takes it back: the rows must come to nothing too.
#[test]
fn a_payout_of_nothing_is_a_payout() {
    let profile = Profile::parse(&charged("if_present"), "other").unwrap();
    let breaks = |payouts: &[&str]| {
        let payouts: String =
            payouts.iter().enumerate().map(|(n, amount)| format!("1;a;02.03.2026;payout;;{amount};;;p{n}\n")).collect();
        read(other(&format!("1;a;02.03.2026;sale;;10,00;;;r1\n{payouts}")), &profile).unwrap().0.batches[0].breaks.len()
    };
    assert_eq!((breaks(&[]), breaks(&["-10,00"])), (0, 0));
    assert_eq!((breaks(&["0"]), breaks(&["-10,00", "10,00"])), (1, 1));
}

/// A default stands in for a column that is absent, not for one that is there twice.
#[test]
fn a_column_with_a_default_may_be_absent_and_not_ambiguous() {
    let profile = Profile::parse(OTHER, "other").unwrap();
    let absent = "Run;Part;Day;What;Gross;Fee;Tax;Ref\n1;a;02.03.2026;sale;10,00;;;r1\n";
    let (_, items) = read(absent, &profile).unwrap();
    assert_eq!(items[0].item.merchant, "house");
    let twice = "Run;Part;Day;What;Shop;Shop;Gross;Fee;Tax;Ref\n1;a;02.03.2026;sale;kiosk;stall;10,00;;;r1\n";
    let error = read(twice, &profile).unwrap_err();
    assert!(error.to_string().starts_with("file:1: the header names the column \"Shop\" twice"), "{error}");
}

#[test]
fn a_difference_within_the_tolerance_is_rounding() {
    let profile = Profile::parse(OTHER, "other").unwrap();
    let rows = |net: &str| other(&format!("1;a;02.03.2026;sale;;10,00;;;r1\n1;a;02.03.2026;sum;;{net};;;1\n"));
    let (summary, _) = read(rows("9,99"), &profile).unwrap();
    let total = summary.batches[0].totals[0];
    assert_eq!((summary.batches[0].breaks.len(), total.rounding_minor, total.difference_minor), (0, 1, 0));
    let (summary, _) = read(rows("9,98"), &profile).unwrap();
    assert_eq!((summary.batches[0].breaks.len(), summary.batches[0].totals[0].difference_minor), (2, 2));
}

#[test]
fn a_blank_identity_is_an_error_unless_the_profile_says_otherwise() {
    let profile = Profile::parse(OTHER, "other").unwrap();
    let error = read(other("1;a;02.03.2026;sale;;10,00;;;\n"), &profile).unwrap_err();
    assert!(error.to_string().starts_with("file:2: \"Ref\" is blank: the row has no identity"), "{error}");
    let by_content = OTHER.replace("[identity]", "[identity]\nblank = \"content\"");
    let profile = Profile::parse(&by_content, "other").unwrap();
    let (_, items) = read(other("1;a;02.03.2026;sale;;10,00;;;\n"), &profile).unwrap();
    assert!(items[0].item.dedupe_key.starts_with("1|a|row:"));
}
