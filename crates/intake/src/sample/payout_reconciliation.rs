//! A payout reconciliation report in CSV: what one payout is made of, row by row, and the payout itself. With the untidiness of
//! real ones: one word in small and in capital letters, fees without an account, a payout whose gross is not its net, and, on
//! demand, a row that names no payout.

use super::{Numbers, cents, day_number, text};
use chrono::{Days, NaiveDate};
use std::io::{self, Write};

const HEADER: &str = "balance_transaction_id,source_id,payment_intent_id,charge_id,created,available_on,\
automatic_payout_effective_at,currency,gross,fee,net,reporting_category,payment_method_type,card_brand,description,\
trace_id_status,gateway_account,automatic_payout_id,customer_facing_amount,customer_facing_currency";

/// `rows` charges and refunds, two fees and the payout that takes effect on 2026-01-31 and takes out all of them. A `stray_minor`
/// other than 0 is a row of so many cents more, later and without a payout: then the file does not foot.
#[must_use]
pub fn payout_reconciliation(rows: u32, stray_minor: i64, seed: u64) -> String {
    let date = NaiveDate::from_ymd_opt(2026, 1, 31).expect("a date of the calendar");
    text(|out| write_payout_reconciliation(out, rows, stray_minor, date, seed))
}

/// As [`payout_reconciliation`], paid out on `date`.
///
/// # Errors
/// Those of `out`.
pub fn write_payout_reconciliation(
    out: &mut impl Write,
    rows: u32,
    stray_minor: i64,
    date: NaiveDate,
    seed: u64,
) -> io::Result<()> {
    writeln!(out, "{HEADER}")?;
    let mut numbers = Numbers(seed);
    let mut report = Report { day: day_number(date), date, net: 0 };
    // a fee first: whose it is, only a later row says
    report.fee(out, 0, "Card payments: Transaction network costs")?;
    for row in 0..i64::from(rows) {
        report.movement(out, row, &mut numbers)?;
    }
    report.fee(out, 1, "Fraud screening")?;
    if stray_minor != 0 {
        report.stray(out, stray_minor)?;
    }
    report.payout(out)
}

struct Report {
    day: i64,
    date: NaiveDate,
    net: i64,
}

impl Report {
    fn movement(&mut self, out: &mut impl Write, row: i64, numbers: &mut Numbers) -> io::Result<()> {
        let refund = numbers.one_in(8);
        let amount = numbers.between(100, 50_000);
        let (gross, fee) = if refund { (-amount, 0) } else { (amount, amount * 29 / 1000 + 30) };
        let (category, source) = match (refund, row % 2) {
            (true, 0) => ("refund", "re_"),
            (true, _) => ("refund", "Re_"),
            (false, _) => ("charge", "ch_"),
        };
        let (code, brand) = if numbers.one_in(3) { ("usd", "Visa") } else { ("USD", "visa") };
        self.net += gross - fee;
        let Report { day, date, .. } = *self;
        let (amounts, said) = (amounts(gross, fee), trimmed(gross));
        writeln!(
            out,
            "txn_{day:05}{row:06},{source}{row:06},pi_{row:06},ch_{row:06},{0} 10:11:12,{0} 00:00:00,{date} 00:00:00,{code},{amounts},\
             {category},card,{brand},,pending,acct_example,po_{day:05},{said},usd",
            before(date),
        )
    }

    /// A fee of the account: no card, no account, and a blank in quotes.
    fn fee(&mut self, out: &mut impl Write, n: i64, what: &str) -> io::Result<()> {
        self.net -= 50;
        let Report { day, date, .. } = *self;
        writeln!(
            out,
            "txn_{day:05}fee{n},,,,{0} 12:30:00,{0} 00:00:00,{date} 00:00:00,USD,{1},fee,,,\"{what}, {date}\",,,po_{day:05},\"\",",
            before(date),
            amounts(-50, 0),
        )
    }

    /// Settled long after the payout, and of no payout yet.
    fn stray(&mut self, out: &mut impl Write, minor: i64) -> io::Result<()> {
        let (day, late) = (self.day, self.date.checked_add_days(Days::new(138)).unwrap_or(self.date));
        writeln!(
            out,
            "txn_{day:05}stray,du_1,pi_1,ch_1,{late} 03:16:29,{late} 03:16:29,{late} 00:26:43,usd,{},dispute_reversal,card,Visa,\
             Chargeback reversal,supported,,,{},usd",
            amounts(minor, 0),
            trimmed(minor),
        )
    }

    /// The payout: written without a minus, and with a gross that is not its net.
    fn payout(&mut self, out: &mut impl Write) -> io::Result<()> {
        let Report { day, date, net } = *self;
        writeln!(
            out,
            "txn_{day:05}payout,po_{day:05},,,{date} 00:00:00,{date} 00:00:00,{date} 00:00:00,USD,{},0,{},payout,,,Payout,available,\
             acct_example,po_{day:05},,",
            trimmed(net + 95),
            trimmed(net),
        )
    }
}

fn before(date: NaiveDate) -> NaiveDate {
    date.pred_opt().unwrap_or(date)
}

fn amounts(gross: i64, fee: i64) -> String {
    format!("{},{},{}", trimmed(gross), trimmed(fee), trimmed(gross - fee))
}

/// As spreadsheets write amounts: `25`, `0.5`.
fn trimmed(minor: i64) -> String {
    cents(minor).trim_end_matches('0').trim_end_matches('.').to_owned()
}
