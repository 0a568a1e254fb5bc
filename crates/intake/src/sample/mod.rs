//! Realistic settlement files of any size, invented from a seed: for the demo, the benchmark and tests.
//!
//! The same arguments give the same bytes, on every platform. Each format has a writer (`write_…`, streaming, for large files)
//! and a shorthand that returns the text. Files of different dates have different batch and item identities.

mod canonical;
mod nacha;
mod payout_reconciliation;
mod settlement_detail;
mod two_tables;

pub use canonical::{canonical, canonical_ndjson, write_canonical, write_canonical_ndjson};
pub use nacha::{nacha, write_nacha};
pub use payout_reconciliation::{payout_reconciliation, write_payout_reconciliation};
pub use settlement_detail::{settlement_detail, write_settlement_detail};
pub use two_tables::{two_tables, write_two_tables};

/// A small generator of reproducible numbers (Vigna, SplitMix64, 2015). Not for secrets.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// One of `low ..= high`; the bias is beyond what a sample file shows.
    fn between(&mut self, low: i64, high: i64) -> i64 {
        let span = high.abs_diff(low) + 1;
        low.saturating_add_unsigned(self.next() % span)
    }

    fn one_in(&mut self, n: i64) -> bool {
        self.between(1, n) == 1
    }
}

/// Runs a writer into memory.
fn text(write: impl FnOnce(&mut Vec<u8>) -> std::io::Result<()>) -> String {
    let mut bytes = Vec::new();
    write(&mut bytes).expect("writing into memory does not fail");
    String::from_utf8(bytes).expect("samples are ASCII")
}

/// An amount in cents, as a report writes it.
fn cents(minor: i64) -> String {
    domain::money::format_minor(i128::from(minor), 2)
}

/// Days since 2020, for numbers that must differ from day to day.
fn day_number(date: chrono::NaiveDate) -> i64 {
    i64::from(chrono::Datelike::num_days_from_ce(&date)) - 737_425
}
