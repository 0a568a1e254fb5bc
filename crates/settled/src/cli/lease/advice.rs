//! How long a lease should last, from what was recorded. Pure.
//!
//! Two things must fit. A settle transaction that begins while the lease is good should end within it, and is limited to half of the TTL
//! by default: so the TTL is twice the longest that nearly all of them took. And a renewal that a stall delays must still come in time:
//! it is due at a third of the TTL, give or take a tenth of that, and the local deadline is at nine tenths; what lies between them
//! is 0.53 of the TTL, and half of that is kept for a renewal whose answer is lost and that is asked again. So the TTL is four times the delay.
//! Holding a unit longer than the TTL needs nothing: it is renewed.

use super::recorded::Recorded;
use lease::KeeperSettings;
use serde::Serialize;
use std::time::Duration;

/// Of so many in a thousand.
const NEARLY_ALL: u64 = 999;
/// With fewer than these, the quantile is the worst that was seen.
const ENOUGH: u64 = 1000;

/// What is advised, with the numbers behind it. Milliseconds.
#[derive(Debug, Serialize, PartialEq, Eq)]
pub(super) struct Advice {
    pub(super) ttl_ms: u64,
    /// Whether the TTL covers 99.9 % of what was recorded; unknown where nothing was.
    pub(super) covered: Option<bool>,
    /// The shortest TTL that does, as far as what was recorded tells.
    pub(super) needed_ms: Option<u64>,
    /// Leases that were lost.
    pub(super) renewals_lost: u64,
    /// Renewals that were not answered and tried again.
    pub(super) renewals_unknown: u64,
    pub(super) renewals: u64,
    pub(super) settle_transactions: u64,
    pub(super) settle_p999_ms: Option<u64>,
    /// How late a renewal was answered after it was due.
    pub(super) renewal_delay_p999_ms: Option<u64>,
    pub(super) left_at_renewal_p001_ms: Option<u64>,
    pub(super) hold_p999_ms: Option<u64>,
    /// What is to be known about these numbers.
    pub(super) remarks: Vec<String>,
}

pub(super) fn advice(recorded: &Recorded, settings: &KeeperSettings, shortest: Duration) -> Advice {
    let renewals = |outcome: &str| recorded.renewals.get(outcome).copied().unwrap_or(0);
    let settle = recorded.settle.at_most(NEARLY_ALL);
    let left = recorded.left.at_least(1000 - NEARLY_ALL);
    let delay = left.map(|left| delay(settings, left));
    let needs = [settle.map(|settle| settle.saturating_mul(2)), delay.map(|delay| delay.saturating_mul(4))];
    let lost = renewals("lost");
    // how long those stood still who lost theirs is not recorded: longer than a TTL
    let for_the_lost = (lost > 0).then_some(settings.ttl * 2);
    let needed = needs.into_iter().chain([for_the_lost]).flatten().max().map(|needed| needed.max(shortest));
    let mut remarks = Vec::new();
    for (what, count) in [("settle transactions", recorded.settle.count()), ("renewals", recorded.left.count())] {
        match count {
            0 => remarks.push(format!("no {what} were recorded: nothing is known about them")),
            few if few < ENOUGH => remarks.push(format!("only {few} {what} were recorded: the longest of them is what is told")),
            _ => {}
        }
    }
    if needed.is_some_and(|needed| needed > KeeperSettings::LONGEST_TTL) {
        remarks.push("longer than was measured: the real figure lies beyond the last bucket".to_owned());
    }
    if lost > 0 {
        remarks.push(format!("{lost} leases were lost: instances stood still or were cut off for longer than a lease lasts, or the lock service forgot them"));
    }
    Advice {
        ttl_ms: millis(settings.ttl),
        covered: needed.map(|needed| needed <= settings.ttl && left != Some(Duration::ZERO)),
        needed_ms: needed.map(|needed| round_up(millis(needed))),
        renewals_lost: lost,
        renewals_unknown: renewals("unknown"),
        renewals: recorded.renewals.values().sum(),
        settle_transactions: recorded.settle.count(),
        settle_p999_ms: settle.map(millis),
        renewal_delay_p999_ms: delay.map(millis),
        left_at_renewal_p001_ms: left.map(millis),
        hold_p999_ms: recorded.hold.at_most(NEARLY_ALL).map(millis),
        remarks,
    }
}

/// How long after its due time a renewal was answered that left so much.
fn delay(settings: &KeeperSettings, left: Duration) -> Duration {
    let latest_due = settings.ttl / 3 + settings.ttl / 30;
    (settings.ttl - settings.margin).saturating_sub(left).saturating_sub(latest_due)
}

/// To two digits, so that nobody takes it for exact.
fn round_up(ms: u64) -> u64 {
    let unit = 10u64.saturating_pow(ms.checked_ilog10().unwrap_or(0).saturating_sub(1));
    ms.div_ceil(unit).saturating_mul(unit)
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::recorded::Histogram;
    use super::*;

    fn settings(ttl_s: u64) -> KeeperSettings {
        KeeperSettings::new(Duration::from_secs(ttl_s))
    }

    fn recorded(settle_ms: u64, left_ms: u64, count: u64) -> Recorded {
        let histogram = |ms: u64, below: u64| Histogram::of(&[(Duration::from_millis(ms), below), (Duration::MAX, count)]);
        Recorded { settle: histogram(settle_ms, count), left: histogram(left_ms, 0), ..Recorded::default() }
    }

    #[test]
    fn a_ttl_that_covers_both_is_said_to() {
        // renewals came with 16 s left of 27: 11 s after the renewal before, which is when they are due
        let advice = advice(&recorded(500, 16_000, 5_000), &settings(30), KeeperSettings::SHORTEST_TTL);
        assert_eq!((advice.covered, advice.needed_ms), (Some(true), Some(1_000)));
        assert_eq!((advice.settle_p999_ms, advice.renewal_delay_p999_ms), (Some(500), Some(0)));
        assert!(advice.remarks.is_empty(), "{:?}", advice.remarks);
    }

    #[test]
    fn a_stall_asks_for_four_times_its_length() {
        // 6 s left of 27, due at 11 s at the latest: ten seconds late
        let advice = advice(&recorded(100, 6_000, 5_000), &settings(30), KeeperSettings::SHORTEST_TTL);
        assert_eq!((advice.covered, advice.needed_ms, advice.renewal_delay_p999_ms), (Some(false), Some(40_000), Some(10_000)));
    }

    #[test]
    fn a_long_transaction_asks_for_twice_its_length() {
        let advice = advice(&recorded(5_000, 5_000, 5_000), &settings(9), KeeperSettings::SHORTEST_TTL);
        assert_eq!((advice.covered, advice.needed_ms), (Some(false), Some(10_000)));
    }

    #[test]
    fn a_lost_lease_is_never_covered() {
        let advice = advice(&recorded(10, 0, 5_000), &settings(30), KeeperSettings::SHORTEST_TTL);
        assert_eq!(advice.covered, Some(false));
        assert!(advice.needed_ms > Some(30_000), "{advice:?}");
    }

    #[test]
    fn nor_is_one_that_another_took() {
        let mut recorded = recorded(10, 16_000, 5_000);
        recorded.renewals.insert("lost".to_owned(), 3);
        let advice = advice(&recorded, &settings(30), KeeperSettings::SHORTEST_TTL);
        assert_eq!((advice.covered, advice.needed_ms), (Some(false), Some(60_000)));
    }

    #[test]
    fn what_was_not_recorded_is_not_known() {
        let advice = advice(&Recorded::default(), &settings(30), KeeperSettings::SHORTEST_TTL);
        assert_eq!((advice.covered, advice.needed_ms, advice.remarks.len()), (None, None, 2));
        let few = super::advice(&recorded(500, 16_000, 5), &settings(30), KeeperSettings::SHORTEST_TTL);
        assert!(few.remarks[0].contains("only 5"), "{:?}", few.remarks);
    }

    #[test]
    fn never_below_what_the_service_keeps() {
        let advice = advice(&recorded(1, 16_000, 5_000), &settings(30), Duration::from_secs(2));
        assert_eq!(advice.needed_ms, Some(2_000));
    }

    #[test]
    fn rounded_up_to_two_digits() {
        for (exact, rounded) in [(0, 0), (7, 7), (99, 99), (101, 110), (1_000, 1_000), (12_345, 13_000)] {
            assert_eq!(round_up(exact), rounded);
        }
    }
}
