//! A settlement detail report in CSV, as card acquirers send it: payments, refunds, the source's fee, its payout.

use super::{Numbers, cents, day_number, text};
use chrono::NaiveDate;
use std::io::{self, Write};

const HEADER: &str = "Company Account,Merchant Account,Psp Reference,Merchant Reference,Payment Method,Creation Date,TimeZone,Type,\
Modification Reference,Gross Currency,Gross Debit (GC),Gross Credit (GC),Exchange Rate,Net Currency,Net Debit (NC),Net Credit (NC),\
Commission (NC),Markup (NC),Scheme Fees (NC),Interchange (NC),Payment Method Variant,Batch Number,\
Modification Merchant Reference,Booking Date,Booking Date TimeZone";

/// `batches` batches of `rows` payments and refunds each, plus a fee and a payout line that make each foot; paid out on
/// 2026-01-05.
#[must_use]
pub fn settlement_detail(rows: u32, batches: u32, seed: u64) -> String {
    let date = NaiveDate::from_ymd_opt(2026, 1, 5).expect("a date of the calendar");
    text(|out| write_settlement_detail(out, rows, batches, date, seed))
}

/// As [`settlement_detail`], paid out on `date`.
///
/// # Errors
/// Those of `out`.
pub fn write_settlement_detail(out: &mut impl Write, rows: u32, batches: u32, date: NaiveDate, seed: u64) -> io::Result<()> {
    writeln!(out, "{HEADER}")?;
    for index in 0..i64::from(batches) {
        let mut batch = Batch { date, index, number: day_number(date) * 10_000 + index, merchant: index % 5 + 1, net: 0 };
        let mut numbers = Numbers(seed.wrapping_add(batch.number.unsigned_abs()));
        for row in 0..i64::from(rows) {
            batch.payment(out, row, &mut numbers)?;
        }
        batch.close(out)?;
    }
    Ok(())
}

struct Batch {
    date: NaiveDate,
    index: i64,
    number: i64,
    merchant: i64,
    net: i64,
}

impl Batch {
    fn payment(&mut self, out: &mut impl Write, row: i64, numbers: &mut Numbers) -> io::Result<()> {
        let refund = numbers.one_in(30);
        let gross = numbers.between(500, 50_000);
        let fees = if refund { [0, 0, 0] } else { [gross * 5 / 1000, gross / 1000, gross * 2 / 1000] };
        let signed = if refund { -gross } else { gross };
        let net = signed - fees.iter().sum::<i64>();
        self.net += net;
        let Batch { date, index, number, merchant, .. } = *self;
        // 16 digits: day, batch, row
        let reference = format!("{:05}{index:05}{row:06}", day_number(date));
        let (kind, booked) = (if refund { "Refunded" } else { "Settled" }, date.pred_opt().unwrap_or(date));
        let [markup, scheme, interchange] = fees.map(|fee| if fee == 0 { String::new() } else { cents(fee) });
        writeln!(
            out,
            "ExampleCo,EXAMPLE_SHOP_{merchant},9{},ORDER-{number}-{row},visa,{booked} 0{}:15:00,CET,{kind},{reference},\
             EUR,{},1,EUR,{},,{markup},{scheme},{interchange},visastandardcredit,{number},,{booked} 23:50:00,CET",
            &reference[1..],
            row % 10,
            sides(signed),
            sides(net),
        )
    }

    /// The source's fee line, and the payout of what is left (the other way round where the batch is negative).
    fn close(&mut self, out: &mut impl Write) -> io::Result<()> {
        self.line(out, "Fee", &format!("Transaction Fees {}", self.date.format("%B %Y")), -110)?;
        let kind = if self.net < 0 { "MerchantPayin" } else { "MerchantPayout" };
        let reference = format!("\"TX{}XT batch {}, EXAMPLE_SHOP_{}\"", self.number, self.number, self.merchant);
        self.line(out, kind, &reference, -self.net)
    }

    fn line(&mut self, out: &mut impl Write, kind: &str, reference: &str, net: i64) -> io::Result<()> {
        self.net += net;
        let Batch { date, number, merchant, .. } = *self;
        writeln!(
            out,
            "ExampleCo,EXAMPLE_SHOP_{merchant},,,,{date} 00:46:38,CET,{kind},{reference},,,,,EUR,{},,,,,,{number},,\
             {date} 00:46:38,CET",
            sides(net),
        )
    }
}

/// Debit and credit column.
fn sides(signed: i64) -> String {
    if signed < 0 { format!("{},", cents(-signed)) } else { format!(",{}", cents(signed)) }
}
