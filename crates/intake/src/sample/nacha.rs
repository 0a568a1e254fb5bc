//! NACHA files: debits, credits and mixed batches, some entries with addenda. All numbers are invented.

use super::{Numbers, text};
use crate::nacha::routing;
use chrono::NaiveDate;
use std::io::{self, Write};

const BLOCKING: u64 = 10;
/// Routing number prefix that no bank has.
const ODFI: &str = "99120001";

/// `batches` batches of `entries_per_batch` entries each, created and effective on `file_date`.
#[must_use]
pub fn nacha(batches: u32, entries_per_batch: u32, file_date: NaiveDate, seed: u64) -> String {
    text(|out| write_nacha(out, batches, entries_per_batch, file_date, seed))
}

/// As [`nacha`]. At most 9,999,999 batches and entries of a batch fit into their fields.
///
/// # Errors
/// Those of `out`.
pub fn write_nacha(
    out: &mut impl Write,
    batches: u32,
    entries_per_batch: u32,
    file_date: NaiveDate,
    seed: u64,
) -> io::Result<()> {
    let day = file_date.format("%y%m%d");
    let header = format!("101 {:>9}{:>10}{day}2100A094101", format!("{ODFI}{}", check_digit(ODFI)), "1999999999");
    record(out, &format!("{header}{:<23}{:<23}", "EXAMPLE BANK", "EXAMPLE COMPANY"))?;
    let mut numbers = Numbers(seed);
    let mut file = Sums { records: 1, ..Sums::default() };
    for number in 1..=batches {
        let mut batch = Batch { number, day: day.to_string(), sums: Sums::default() };
        batch.write(out, entries_per_batch, &mut numbers)?;
        file.add(&batch.sums);
    }
    file.records += 1;
    let blocks = file.records.div_ceil(BLOCKING);
    let Sums { lines, hash, debit, credit, .. } = file;
    record(out, &format!("9{batches:06}{blocks:06}{lines:08}{:010}{debit:012}{credit:012}", hash % 10_000_000_000))?;
    for _ in file.records..blocks * BLOCKING {
        writeln!(out, "{}", "9".repeat(94))?;
    }
    Ok(())
}

#[derive(Default)]
struct Sums {
    records: u64,
    lines: u64,
    hash: u64,
    debit: u64,
    credit: u64,
}

impl Sums {
    fn add(&mut self, other: &Sums) {
        self.records += other.records;
        self.lines += other.lines;
        self.hash += other.hash;
        self.debit += other.debit;
        self.credit += other.credit;
    }
}

struct Batch {
    number: u32,
    day: String,
    sums: Sums,
}

impl Batch {
    fn write(&mut self, out: &mut impl Write, entries: u32, numbers: &mut Numbers) -> io::Result<()> {
        let (class, code) = [("200", "CCD"), ("225", "PPD"), ("220", "PPD")][self.number as usize % 3];
        let (number, day) = (self.number, &self.day);
        let company = format!("8{:09}", 990_000_000 + number % 7);
        let head = format!("5{class}{:<16}{:<20}{company}{code}{:<10}{day}{day}   1{ODFI}", "EXAMPLE CO", "", "SETTLE");
        record(out, &format!("{head}{number:07}"))?;
        for trace in 1..=entries {
            self.entry(out, trace, class, code == "CCD" && trace % 3 == 0, numbers)?;
        }
        self.sums.records += 2;
        let Sums { lines, hash, debit, credit, .. } = self.sums;
        let hash = hash % 10_000_000_000;
        let tail = format!("{company}{:25}{ODFI}{number:07}", "");
        record(out, &format!("8{class}{lines:06}{hash:010}{debit:012}{credit:012}{tail}"))
    }

    fn entry(&mut self, out: &mut impl Write, trace: u32, class: &str, addenda: bool, numbers: &mut Numbers) -> io::Result<()> {
        let debit = class == "225" || (class == "200" && numbers.one_in(2));
        let cents = numbers.between(100, 500_000).unsigned_abs();
        let routing = format!("99{:06}", numbers.between(100_000, 999_999));
        let account = format!("ACCT{:08}", numbers.between(1, 99_999_999));
        let code = if debit { "27" } else { "22" };
        let (id, digit, mark) = (format!("ID{trace:07}"), check_digit(&routing), u8::from(addenda));
        let head = format!("6{code}{routing}{digit}{account:<17}{cents:010}{id:<15}{:<22}  {mark}", "EXAMPLE RECEIVER");
        record(out, &format!("{head}{ODFI}{trace:07}"))?;
        self.sums.add(&Sums { records: 1, lines: 1, hash: routing.parse().unwrap_or(0), debit: 0, credit: 0 });
        *(if debit { &mut self.sums.debit } else { &mut self.sums.credit }) += cents;
        if addenda {
            record(out, &format!("705{:<80}{:04}{trace:07}", format!("INVOICE {trace}"), 1))?;
            self.sums.records += 1;
            self.sums.lines += 1;
        }
        Ok(())
    }
}

fn record(out: &mut impl Write, text: &str) -> io::Result<()> {
    writeln!(out, "{text:<94}")
}

fn check_digit(eight: &str) -> u32 {
    routing::check_digit(eight).unwrap_or_default()
}
