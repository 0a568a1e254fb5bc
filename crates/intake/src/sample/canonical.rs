//! Files in the canonical formats: batches of several currencies, lines with and without ids, and declared totals.

use super::{Numbers, text};
use chrono::NaiveDate;
use domain::money::format_minor;
use std::io::{self, Write};

const HEADER: &str = "batch_id,business_date,kind,merchant,currency,gross,fee,id";

/// `batches` batches of `items` lines each, due on `date`. Every batch foots and is remitted in full.
#[must_use]
pub fn canonical(batches: u32, items: u32, date: NaiveDate, seed: u64) -> String {
    text(|out| write_canonical(out, batches, items, date, seed))
}

/// The batches of [`canonical`] as NDJSON: same identities, same digests.
#[must_use]
pub fn canonical_ndjson(batches: u32, items: u32, date: NaiveDate, seed: u64) -> String {
    text(|out| write_canonical_ndjson(out, batches, items, date, seed))
}

/// As [`canonical`].
///
/// # Errors
/// Those of `out`.
pub fn write_canonical(out: &mut impl Write, batches: u32, items: u32, date: NaiveDate, seed: u64) -> io::Result<()> {
    writeln!(out, "{HEADER}")?;
    lines(batches, items, date, seed, &mut |line| {
        let Line { batch_id, date, kind, merchant, currency, gross, fee, id } = line;
        writeln!(out, "{batch_id},{date},{kind},{merchant},{currency},{gross},{fee},{id}")
    })
}

/// As [`canonical_ndjson`].
///
/// # Errors
/// Those of `out`.
pub fn write_canonical_ndjson(out: &mut impl Write, batches: u32, items: u32, date: NaiveDate, seed: u64) -> io::Result<()> {
    lines(batches, items, date, seed, &mut |line| {
        let Line { batch_id, date, kind, merchant, currency, gross, fee, id } = line;
        let head = format!(r#"{{"batch_id":"{batch_id}","business_date":"{date}","kind":"{kind}","currency":"{currency}""#);
        let tail = if *kind == "total" { format!(r#""items":{id}"#) } else { format!(r#""merchant":"{merchant}","id":"{id}""#) };
        writeln!(out, r#"{head},"gross":"{gross}","fee":"{fee}",{tail}}}"#)
    })
}

struct Line {
    batch_id: String,
    date: NaiveDate,
    kind: &'static str,
    merchant: String,
    currency: &'static str,
    gross: String,
    fee: String,
    id: String,
}

/// Sums of one currency of a batch: lines, gross, fee.
type Sums = (i64, i64, i64);

/// A currency and the decimals of its minor unit.
const CURRENCIES: [(&str, u32); 3] = [("EUR", 2), ("JPY", 0), ("KWD", 3)];

fn lines(batches: u32, items: u32, date: NaiveDate, seed: u64, emit: &mut dyn FnMut(&Line) -> io::Result<()>) -> io::Result<()> {
    let mut numbers = Numbers(seed);
    for batch in 0..batches {
        let batch_id = format!("{}-{batch:05}", date.format("%Y%m%d"));
        let mut sums: [Sums; 3] = [(0, 0, 0); 3];
        for row in 0..items {
            // every third batch has other currencies too
            let other = batch % 3 == 2 && numbers.one_in(4);
            let which = if other { usize::from(numbers.one_in(2)) + 1 } else { 0 };
            let (kind, gross, fee) = movement(&mut numbers);
            let sum = &mut sums[which];
            *sum = (sum.0 + 1, sum.1 + gross, sum.2 + fee);
            let id = if numbers.one_in(10) { String::new() } else { format!("{batch_id}-{row:06}") };
            let merchant = format!("shop-{}", numbers.between(1, 20));
            emit(&line(&batch_id, date, kind, merchant, which, gross, fee, id))?;
        }
        for (which, (lines, gross, fee)) in sums.into_iter().enumerate().filter(|(_, (lines, ..))| *lines > 0) {
            let paid = fee - gross;
            let reference = format!("{batch_id}-payout-{}", CURRENCIES[which].0);
            emit(&line(&batch_id, date, "remittance", "shop-1".to_owned(), which, paid, 0, reference))?;
            emit(&line(&batch_id, date, "total", String::new(), which, gross, fee, (lines + 1).to_string()))?;
        }
    }
    Ok(())
}

/// Kind, gross and fee in minor units.
fn movement(numbers: &mut Numbers) -> (&'static str, i64, i64) {
    let amount = numbers.between(100, 50_000);
    match numbers.between(1, 50) {
        1 | 2 => ("refund", -amount, 0),
        3 => ("chargeback", -amount, 1500),
        4 => ("fee", -numbers.between(10, 300), 0),
        _ => ("charge", amount, amount / 100 + 25),
    }
}

#[expect(clippy::too_many_arguments, reason = "the columns of a line, in their order")]
fn line(
    batch_id: &str,
    date: NaiveDate,
    kind: &'static str,
    merchant: String,
    which: usize,
    gross: i64,
    fee: i64,
    id: String,
) -> Line {
    let (currency, exponent) = CURRENCIES[which];
    let show = |minor: i64| format_minor(i128::from(minor), exponent);
    Line { batch_id: batch_id.to_owned(), date, kind, merchant, currency, gross: show(gross), fee: show(fee), id }
}
