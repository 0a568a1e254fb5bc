//! A settlement report of two tables in one CSV file: declared totals under a header of their own, then the rows. With what real
//! ones have: amounts finer than the currency, totals that the rounded rows miss by two cents, a number of items that is not
//! that of the rows, and rows without ids, two of them alike.

use super::{Numbers, cents, day_number, text};
use chrono::NaiveDate;
use domain::money::{format_minor, round};
use rust_decimal::Decimal;
use std::io::{self, Write};

/// Of both tables: the smaller one is padded with blanks.
const COLUMNS: usize = 15;
const TOTALS: [&str; 8] = [
    "ROW_TYPE",
    "SETTLEMENT_CURRENCY",
    "NUMBER_OF_ITEMS",
    "GROSS_TOTAL_AMOUNT",
    "FEE_TOTAL_AMOUNT",
    "NET_TOTAL_AMOUNT",
    "TRANSFER_DATE",
    "TRANSFER_ID",
];

/// `rows` payments and captures, two equal penalties and the fee of the transfer of 2026-01-09, which paid out two cents more than
/// the rounded rows come to. `id_column` is what the source calls the column of its own ids: its name is often part of that.
#[must_use]
pub fn two_tables(rows: u32, id_column: &str, seed: u64) -> String {
    let date = NaiveDate::from_ymd_opt(2026, 1, 9).expect("a date of the calendar");
    text(|out| write_two_tables(out, rows, id_column, date, seed))
}

/// As [`two_tables`], transferred on `date`. The totals come first, so the rows are kept until they are known.
///
/// # Errors
/// Those of `out`.
pub fn write_two_tables(out: &mut impl Write, rows: u32, id_column: &str, date: NaiveDate, seed: u64) -> io::Result<()> {
    let mut numbers = Numbers(seed);
    let mut report = Report { day: day_number(date), date, gross: 0, fee: 0, body: Vec::new() };
    for row in 0..i64::from(rows) {
        report.payment(row, &mut numbers)?;
    }
    for _ in 0..2 {
        report.row("ADJUSTMENT,648,,", ["", "", "0,,0"], (-2_380_000, 0), "DEBIT NOTE,,Penalty")?;
    }
    let transfer = report.day.to_string();
    report.row("SETTLEMENT_FEE,648,,", ["", &transfer, "0,,0"], (0, -80_000_000), ",,")?;
    report.write(out, rows, id_column)
}

struct Report {
    day: i64,
    date: NaiveDate,
    gross: i64,
    fee: i64,
    body: Vec<u8>,
}

impl Report {
    fn payment(&mut self, row: i64, numbers: &mut Numbers) -> io::Result<()> {
        let word = if row % 5 == 0 { "CAPTURE" } else { "PAYMENT" };
        // every eighth ends in half a cent, which is rounded to the even one
        let gross = numbers.between(100, 25_000) * 10_000 + if row % 8 == 0 { 5_000 } else { numbers.between(0, 9_999) };
        let fee = -numbers.between(10_000, 90_000);
        let (ours, theirs) = (format!("{:05}-{row}", self.day), format!("T-648-{:05}{row:06}", self.day));
        let start = format!("{word},648,Brazil,{} 00:35:09", self.date);
        self.row(&start, [&ours, &theirs, "170,BRL,6.460365"], (gross, fee), "CARD,PAID,")
    }

    /// Gross and fee in millionths of the currency's unit.
    fn row(&mut self, start: &str, ids: [&str; 3], (gross, fee): (i64, i64), end: &str) -> io::Result<()> {
        self.gross += rounded(gross);
        self.fee += rounded(fee);
        let amounts = [gross, fee, gross + fee].map(trimmed).join(",");
        writeln!(self.body, "{start},{},{amounts},{end}", ids.join(","))
    }

    fn write(&self, out: &mut impl Write, rows: u32, id_column: &str) -> io::Result<()> {
        let padded = |fields: &[String]| format!("{}{}", fields.join(","), ",".repeat(COLUMNS - fields.len()));
        let date = self.date.to_string();
        writeln!(out, "{}", padded(&TOTALS.map(str::to_owned)))?;
        let totals = [
            "HEADER".to_owned(),
            "USD".to_owned(),
            (rows + 1_000).to_string(),
            cents(self.gross),
            // rounded as one sum, by a source that also counts otherwise
            cents(self.fee + 1),
            cents(self.gross + self.fee + 2),
            date,
            self.day.to_string(),
        ];
        let head = format!("ROW_TYPE,MID,COUNTRY,CREATION_DATE,TRANSACTION_ID,{id_column},LOCAL_AMOUNT,LOCAL_CURRENCY,FX_RATE");
        writeln!(out, "{}", padded(&totals))?;
        writeln!(out, "{head},GROSS_AMOUNT,FEE_AMOUNT,NET_AMOUNT,PAYMENT_TYPE,STATUS,DESCRIPTION")?;
        out.write_all(&self.body)
    }
}

/// Cents, half to even.
fn rounded(millionths: i64) -> i64 {
    round(Decimal::new(millionths, 6), 2).map_or(0, |rounded| rounded.minor)
}

/// With as many of six decimals as it takes.
fn trimmed(millionths: i64) -> String {
    format_minor(millionths.into(), 6).trim_end_matches('0').trim_end_matches('.').to_owned()
}
