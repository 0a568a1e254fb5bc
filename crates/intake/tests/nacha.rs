//! NACHA: layouts, controls, and what happens when records are missing, altered or out of order.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use chrono::NaiveDate;
use common::{good, refused};
use domain::item::ItemKind;
use intake::sample;

fn date(day: u32) -> NaiveDate {
    NaiveDate::from_ymd_opt(2026, 3, day).unwrap()
}

/// Puts `field` at position `from` (from 1) of a record.
fn put(record: &str, from: usize, field: &str) -> String {
    format!("{}{field}{}", &record[..from - 1], &record[from - 1 + field.len()..])
}

/// A file of one batch with these entries and addenda, whose controls foot. `header` changes the batch header.
fn file(class: &str, code: &str, records: &[String]) -> String {
    let blank = |text: String| format!("{text:<94}");
    let number = |record: &String, from: usize, to: usize| record[from - 1..to].parse::<u64>().unwrap();
    let entries: Vec<_> = records.iter().filter(|record| record.starts_with('6')).collect();
    let hash = entries.iter().map(|entry| number(entry, 4, 11)).sum::<u64>();
    let is_debit = |entry: &&&String| matches!(entry.as_bytes()[2], b'7' | b'8' | b'9' | b'5');
    let debit = entries.iter().filter(is_debit).map(|entry| number(entry, 30, 39)).sum::<u64>();
    let credit = entries.iter().map(|entry| number(entry, 30, 39)).sum::<u64>() - debit;
    let sums = format!("{:010}{debit:012}{credit:012}", hash % 10_000_000_000);
    let count = records.len();
    let mut all = vec![
        blank(format!("101 {:>9}{:>10}2603022100A094101", "991200010", "1999999999")),
        blank(format!("5{class}{:<36}8990000001{code}{:<10}      260303   1991200010000001", "EXAMPLE CO", "TEST")),
    ];
    all.extend(records.iter().cloned());
    all.push(blank(format!("8{class}{count:06}{sums}8990000001{:25}991200010000001", "")));
    let blocks = (all.len() + 1).div_ceil(10);
    all.push(blank(format!("9000001{blocks:06}{count:08}{sums}")));
    while all.len() % 10 > 0 {
        all.push("9".repeat(94));
    }
    all.join("\n") + "\n"
}

fn entry(code: &str, cents: u64, trace: u32, addenda: bool) -> String {
    let mark = u8::from(addenda);
    format!("6{code}991234561{:<17}{cents:010}{:<15}{:<22}  {mark}99120001{trace:07}", "ACCOUNT", "ID", "RECEIVER")
}

fn addenda(number: u32, trace: u32) -> String {
    format!("705{:<80}{number:04}{trace:07}", "INVOICE")
}

fn ctx(count: u32, trace: u32) -> String {
    put(&entry("22", 500, trace, count > 0), 55, &format!("{count:04}RECEIVER        "))
}

fn iat(count: u32, trace: u32) -> String {
    put(&put(&entry("27", 500, trace, true), 13, &format!("{count:04}{:13}", "")), 40, &format!("{:<39}", "FOREIGN ACCOUNT"))
}

fn iat_addenda(kind: u32, number: Option<u32>, trace: u32) -> String {
    let number = number.map_or("    ".to_owned(), |number| format!("{number:04}"));
    format!("7{kind}{:<80}{number}{trace:07}", "ADDRESS")
}

fn iat_entry(trace: u32, further: &[(u32, u32)]) -> Vec<String> {
    let count = 7 + u32::try_from(further.len()).unwrap();
    let mandatory = (10..=16).map(|kind| iat_addenda(kind, None, trace));
    let further = further.iter().map(|(kind, number)| iat_addenda(*kind, Some(*number), trace));
    std::iter::once(iat(count, trace)).chain(mandatory).chain(further).collect()
}

fn plain() -> Vec<String> {
    vec![entry("27", 1234, 1, false), entry("37", 66, 2, true), addenda(1, 2), entry("27", 1234, 1, false)]
}

fn foots(text: &str) -> (domain::summary::BatchSummary, Vec<domain::summary::StagedItem>) {
    let (summary, items) = good(text, "nacha");
    assert_eq!((summary.batches[0].breaks.clone(), summary.warnings.clone()), (vec![], vec![]));
    (summary.batches.into_iter().next().unwrap(), items)
}

#[test]
fn entries_become_lines() {
    let (batch, items) = foots(&file("225", "PPD", &plain()));
    assert_eq!(batch.external_batch_id, "1999999999|991200010|260302|2100|A|0000001");
    assert_eq!((batch.business_date, batch.first_line), (date(3), 2));
    let total = batch.totals[0];
    assert_eq!((total.currency.code(), total.debit_minor, total.credit_minor, total.items), ("USD", 2534, 0, 3));
    assert_eq!((total.declared.debit_minor, total.declared.items, total.difference_minor), (Some(2534), Some(3), 0));
    assert_eq!((items[0].item.kind, items[0].item.gross_minor, items[0].item.fee_minor), (ItemKind::Charge, 1234, 0));
    assert_eq!((items[0].item.merchant.as_str(), items[2].item.line_no), ("8990000001", 6));
    // M10: byte-identical entries are told apart by their position
    assert_eq!(items[0].item.dedupe_key, format!("{}|991200010000001|1", batch.external_batch_id));
    assert_eq!(items[2].item.dedupe_key, format!("{}|991200010000001|3", batch.external_batch_id));
}

#[test]
fn credits_prenotes_and_zero_dollar_entries() {
    let (_, items) = foots(&file(
        "200",
        "CCD",
        &[
            entry("22", 700, 1, false),
            entry("23", 0, 2, false),
            entry("28", 0, 3, false),
            entry("24", 0, 4, true),
            addenda(1, 4),
            entry("55", 9, 5, false),
        ],
    ));
    let lines: Vec<_> = items.iter().map(|s| (s.item.kind, s.item.gross_minor)).collect();
    use ItemKind::{Charge, Disbursement};
    assert_eq!(lines, [(Disbursement, -700), (Disbursement, 0), (Charge, 0), (Disbursement, 0), (Charge, 9)]);
    refused(file("200", "PPD", &[entry("23", 1, 1, false)]), "nacha", 3, "transaction code 23 moves nothing");
    refused(file("200", "PPD", &[entry("99", 1, 1, false)]), "nacha", 3, "unknown transaction code \"99\"");
}

#[test]
fn a_blank_effective_date_is_the_file_date() {
    let (batch, _) = foots(&file("225", "WEB", &plain()).replace("      260303   ", "               "));
    assert_eq!(batch.business_date, date(2));
    refused(file("225", "WEB", &plain()).replace("      260303   ", "      260230   "), "nacha", 2, "no date (YYMMDD)");
}

/// M17: tomorrow's file has the same batch numbers and traces, and is another day's money.
#[test]
fn m17_the_next_days_file_has_other_identities() {
    let (today, items) = good(sample::nacha(25, 4, date(2), 1), "nacha");
    let (tomorrow, later) = good(sample::nacha(25, 4, date(3), 1), "nacha");
    let ids = |summary: &domain::summary::FileSummary| {
        summary.batches.iter().map(|batch| batch.external_batch_id.clone()).collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(ids(&today).len(), 25);
    assert!(ids(&today).is_disjoint(&ids(&tomorrow)));
    assert!(items.iter().zip(&later).all(|(one, other)| one.item.dedupe_key != other.item.dedupe_key));
}

#[test]
fn ctx_and_iat_have_addenda_of_their_own() {
    foots(&file("220", "CTX", &[ctx(3, 1), addenda(1, 1), addenda(2, 1), addenda(3, 1), ctx(0, 2)]));
    foots(&file("225", "IAT", &[iat_entry(1, &[]), iat_entry(2, &[(17, 1), (17, 2), (18, 1)])].concat()));
    foots(&file("225", "IAT", &iat_entry(1, &[(18, 1), (18, 2), (18, 3), (18, 4), (18, 5)])));
    let refused = |class, records: &[String], line, says| refused(file("200", class, records), "nacha", line, says);
    refused("CTX", &[ctx(2, 1), addenda(1, 1), ctx(0, 2)], 3, "announces 2 addenda, 1 follow");
    refused("CTX", &[ctx(2, 1), addenda(1, 1), addenda(3, 1)], 5, "sequence number 3 where 2 is expected");
    refused("CTX", &[ctx(1, 1), addenda(1, 1), addenda(2, 1)], 5, "more addenda than the 1");
    refused("CTX", &[ctx(1, 1), addenda(1, 2)], 4, "addenda of entry 0000002 after entry 0000001");
    refused("CTX", &[put(&ctx(2, 1), 79, "0"), addenda(1, 1), addenda(2, 1)], 3, "its addenda indicator says 0");
    refused("CTX", &[put(&ctx(0, 1), 79, "1")], 3, "its addenda indicator says 1");
    refused("IAT", &iat_entry(1, &[(17, 1), (17, 2), (17, 3)]), 13, "more than 2 addenda of type 17");
    refused("IAT", &iat_entry(1, &[(18, 1), (17, 1)]), 12, "after the mandatory ones");
    refused("IAT", &iat_entry(1, &[])[..4], 3, "announces 7 addenda, 3 follow");
    let mut records = iat_entry(1, &[]);
    records.swap(2, 3);
    refused("IAT", &records, 5, "type \"12\" where 11 is expected");
    refused("IAT", &[put(&iat(7, 1), 13, "0003")], 3, "IAT has at least 7");
    refused("TEL", &[entry("27", 5, 1, true)], 3, "TEL has no addenda");
    refused("PPD", &[entry("27", 5, 1, true), entry("27", 5, 2, false)], 3, "announces 1 addenda, 0 follow");
    refused("PPD", &[entry("27", 5, 1, false), addenda(1, 1)], 4, "more addenda than the 0");
    refused("PPD", &[entry("27", 5, 1, true), put(&addenda(1, 1), 2, "02")], 4, "type \"02\" where 05");
    refused("PPD", &[put(&entry("27", 5, 1, false), 79, " ")], 3, "neither 0 nor 1");
    refused("PPD", &[addenda(1, 1), entry("27", 5, 1, false)], 3, "before the first entry");
    refused("ARC", &plain(), 2, "\"ARC\" is not read (PPD, CCD, WEB, TEL, CTX and IAT are)");
}

#[test]
fn returns_are_no_settlement_input() {
    let is_return = "no settlement input";
    refused(file("200", "PPD", &[entry("26", 5, 1, false)]), "nacha", 3, is_return);
    refused(file("200", "PPD", &[entry("21", 5, 1, false)]), "nacha", 3, is_return);
    refused(file("200", "PPD", &[entry("27", 5, 1, true), put(&addenda(1, 1), 2, "99")]), "nacha", 4, is_return);
}

/// The batch control binds: a batch that does not foot is broken, with both figures, and the others are not.
#[test]
fn a_batch_control_that_does_not_foot_breaks_its_batch() {
    let text = sample::nacha(3, 4, date(2), 1);
    let broken_by = |from: usize, field: &str| {
        let control = text.lines().filter(|line| line.starts_with('8')).nth(1).unwrap();
        let (summary, _) = good(text.replace(control, &put(control, from, field)), "nacha");
        assert!(summary.batches[0].breaks.is_empty() && summary.batches[2].breaks.is_empty());
        summary.batches[1].breaks.join("; ")
    };
    assert_eq!(broken_by(5, "000007"), "declares entries and addenda of 7, its entries come to 4");
    assert!(broken_by(11, "0000000001").starts_with("declares an entry hash of 1, its entries come to 3"));
    assert!(broken_by(21, "000000000001").starts_with("declares debits of 0.01 USD, rows sum to 0.00"));
    assert!(broken_by(33, "000000000001").starts_with("declares credits of 0.01 USD, rows sum to "));
}

/// An altered amount: the batch is broken, although file control and batch control agree with each other.
#[test]
fn an_altered_entry_breaks_its_batch() {
    let text = file("225", "PPD", &plain()).replacen("0000001234", "0000001235", 1);
    let (summary, _) = good(text, "nacha");
    assert_eq!(summary.batches[0].breaks, ["declares debits of 25.34 USD, rows sum to 25.35"]);
    let mixed = file("200", "PPD", &plain()).replace("5200", "5220").replace("8200", "8220");
    let (summary, _) = good(mixed, "nacha");
    assert_eq!(summary.batches[0].breaks[0], "line 3: a debit in a batch of service class 220 (credits only)");
    assert_eq!(summary.batches[0].breaks.len(), 3);
    let (summary, _) = good(file("225", "PPD", &[entry("22", 1, 1, false)]), "nacha");
    assert_eq!(summary.batches[0].breaks, ["line 3: a credit in a batch of service class 225 (debits only)"]);
}

/// A whole batch is gone: nobody knows which from the file alone, so nothing of it is used.
#[test]
fn a_file_control_that_does_not_foot_refuses_the_file() {
    let text = sample::nacha(3, 4, date(2), 1);
    let control = text.lines().position(|line| line.starts_with("9000003")).unwrap();
    let lines: Vec<_> = text.lines().collect();
    let second = lines.iter().enumerate().filter(|(_, line)| line.starts_with(['5', '8'])).map(|(i, _)| i).collect::<Vec<_>>();
    let cut = [&lines[..second[2]], &lines[second[4]..]].concat().join("\n");
    let lost = u64::try_from(second[4] - second[2]).unwrap();
    refused(cut, "nacha", u64::try_from(control).unwrap() + 1 - lost, "a batch is missing or was altered");
    for (from, field, says) in [
        (14, "00000001", "declares entries and addenda of 1,"),
        (22, "0000000001", "declares an entry hash of 1,"),
        (32, "000000000001", "declares debits of 0.01,"),
        (44, "000000000001", "declares credits of 0.01,"),
    ] {
        let changed = text.replace(lines[control], &put(lines[control], from, field));
        refused(changed, "nacha", u64::try_from(control).unwrap() + 1, says);
    }
    for (from, field, says) in
        [(2, "000004", "declares 4 batches, the file has 3"), (8, "000009", "declares 9 blocks, the file has")]
    {
        let (summary, _) = good(text.replace(lines[control], &put(lines[control], from, field)), "nacha");
        assert!(summary.warnings[0].contains(says), "{:?}", summary.warnings);
    }
}

#[test]
fn a_file_that_was_cut_is_refused() {
    let text = file("225", "PPD", &plain());
    let lines: Vec<_> = text.lines().collect();
    for keep in 1..8 {
        refused(lines[..keep].join("\n"), "nacha", keep as u64, "without a file control record");
    }
    refused(&text[..95 * 3 + 50], "nacha", 4, "has 50 characters (a NACHA record has 94)");
    let blocks = text.replace('\n', "");
    refused(&blocks[..94 * 3 + 50], "nacha", 4, "has 50 characters");
    refused(format!("{text}{text}"), "nacha", 11, "nothing but padding");
    refused(lines[1..].join("\n"), "nacha", 1, "where a file header (1) is expected");
    let emptied = good([&lines[..2], &lines[6..]].concat().join("\n"), "nacha").0;
    assert_eq!(emptied.batches[0].breaks.len(), 3, "all entries gone, but both controls agree: the batch is broken");
    refused([&lines[..1], &lines[2..]].concat().join("\n"), "nacha", 2, "a batch header (5)");
    refused([&lines[..6], &lines[7..]].concat().join("\n"), "nacha", 7, "the batch control (8)");
    refused([&lines[..7], &["9".repeat(94).as_str()], &lines[7..]].concat().join("\n"), "nacha", 8, "the file control (9)");
}

#[test]
fn headers_and_controls_belong_together() {
    let text = file("225", "PPD", &plain());
    let swap = |from: &str, to: &str, line, says| {
        assert!(text.contains(from), "{from}");
        refused(text.replace(from, to), "nacha", line, says);
    };
    swap("8225000004", "8200000004", 7, "the service class is \"200\", in the batch header \"225\"");
    swap("8990000001PPD", "8990000002PPD", 7, "company identification");
    swap("260303   1991200010000001", "260303   1991200010000002", 7, "batch number");
    swap("260303   1991200010000001", "260303   1991200020000001", 7, "originating bank");
    swap("8990000001PPD", "          PPD", 2, "owed to nobody");
    swap("A094101", "A095101", 1, "94-character records");
    swap("2603022100", "2613022100", 1, "no date");
    swap("5225EXAMPLE", "5280EXAMPLE", 2, "service class \"280\"");
    swap("0000001234ID", "000000 234ID", 3, "the amount \"000000 234\" (characters 30-39)");
    let lines: Vec<_> = text.lines().collect();
    let twice = [&lines[..7], &lines[1..7], &lines[7..]].concat().join("\n");
    refused(twice, "nacha", 8, "batch number 0000001 is taken by the batch of line 2");
}

#[test]
fn a_wrong_check_digit_is_refused() {
    let text = file("225", "PPD", &plain()).replacen("991234561", "991234567", 1);
    refused(text, "nacha", 3, "routing number 99123456 has the check digit \"7\", computed is 1");
    let text = file("225", "PPD", &plain()).replacen("991234561", "991234651", 1);
    refused(text, "nacha", 3, "check digit");
}
