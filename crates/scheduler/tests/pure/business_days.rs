//! M16: business dates are half-open intervals that abut, around midnight, at changes of clocks, at weekends and holidays.

use crate::fixture::{date, utc};
use chrono::{DateTime, Days, NaiveDate, TimeDelta, Utc, Weekday};
use chrono_tz::{TZ_VARIANTS, Tz};
use proptest::prelude::*;
use scheduler::calendar::{Calendar, Roll};
use scheduler::days::{BusinessDays, CutOff};
use scheduler::holidays::Holidays;

fn days(zone: Tz, cut_off: &str, roll: Roll, holidays: &str) -> BusinessDays {
    let holidays = Holidays::parse(holidays, "holidays").expect("holidays");
    let calendar = Calendar::new(&[Weekday::Sat, Weekday::Sun], holidays, roll).expect("a calendar");
    BusinessDays { zone, cut_off: CutOff::parse(cut_off).expect("a cut-off"), calendar }
}

fn every_day(zone: Tz, cut_off: &str) -> BusinessDays {
    let calendar = Calendar::new(&[], Holidays::default(), Roll::Following).expect("a calendar");
    BusinessDays { zone, cut_off: CutOff::parse(cut_off).expect("a cut-off"), calendar }
}

fn covers(days: &BusinessDays, day: &str) -> (DateTime<Utc>, DateTime<Utc>) {
    let interval = days.covers(date(day));
    (interval.from, interval.until)
}

#[test]
fn m16_a_day_is_as_long_as_its_clocks_say() {
    let berlin = every_day(Tz::Europe__Berlin, "24:00");
    assert_eq!(covers(&berlin, "2026-03-29"), (utc("2026-03-28 23:00"), utc("2026-03-29 22:00")));
    assert_eq!(covers(&berlin, "2026-10-25"), (utc("2026-10-24 22:00"), utc("2026-10-25 23:00")));
    // midnight does not exist: the day begins at one; and it comes twice: the day ends at the first
    let havana = every_day(Tz::America__Havana, "24:00");
    assert_eq!(covers(&havana, "2026-03-07"), (utc("2026-03-07 05:00"), utc("2026-03-08 05:00")));
    assert_eq!(covers(&havana, "2025-11-01"), (utc("2025-11-01 04:00"), utc("2025-11-02 04:00")));
    assert_eq!(covers(&havana, "2025-11-02"), (utc("2025-11-02 04:00"), utc("2025-11-03 05:00")));
}

#[test]
fn m16_an_instant_at_the_cut_off_belongs_to_the_next_day() {
    let dublin = every_day(Tz::Europe__Dublin, "18:00");
    let cut_off = utc("2026-03-29 17:00");
    assert_eq!(dublin.date_at(cut_off - TimeDelta::nanoseconds(1)), date("2026-03-29"));
    assert_eq!(dublin.date_at(cut_off), date("2026-03-30"));
    assert_eq!(dublin.last_closed(cut_off - TimeDelta::nanoseconds(1)).date, date("2026-03-28"));
    assert_eq!(dublin.last_closed(cut_off).date, date("2026-03-29"));
}

/// A cut-off in a gap, and one that comes twice.
#[test]
fn m16_a_cut_off_when_clocks_change() {
    let berlin = every_day(Tz::Europe__Berlin, "02:30");
    assert_eq!(covers(&berlin, "2026-03-29"), (utc("2026-03-28 01:30"), utc("2026-03-29 01:00")));
    assert_eq!(covers(&berlin, "2026-03-30"), (utc("2026-03-29 01:00"), utc("2026-03-30 00:30")));
    assert_eq!(covers(&berlin, "2026-10-25"), (utc("2026-10-24 00:30"), utc("2026-10-25 00:30")));
}

/// What a weekend belongs to: Friday 30 January 2026 to Monday 2 February.
#[test]
fn m16_days_roll_as_the_rule_says() {
    let rolled = |roll| {
        let days = days(Tz::UTC, "24:00", roll, "");
        let dates: Vec<_> = (30..=31).map(|day| format!("2026-01-{day}")).collect();
        let dates = dates.into_iter().chain((1..=2).map(|day| format!("2026-02-0{day}")));
        dates.map(|day| days.calendar.roll(date(&day)).to_string()).collect::<Vec<_>>()
    };
    assert_eq!(rolled(Roll::Following), ["2026-01-30", "2026-02-02", "2026-02-02", "2026-02-02"]);
    assert_eq!(rolled(Roll::Preceding), ["2026-01-30", "2026-01-30", "2026-01-30", "2026-02-02"]);
    assert_eq!(rolled(Roll::ModifiedFollowing), ["2026-01-30", "2026-01-30", "2026-02-02", "2026-02-02"]);
    // and what it covers then
    let modified = days(Tz::UTC, "24:00", Roll::ModifiedFollowing, "");
    assert_eq!(covers(&modified, "2026-01-30"), (utc("2026-01-30 00:00"), utc("2026-02-01 00:00")));
    assert_eq!(covers(&modified, "2026-02-02"), (utc("2026-02-01 00:00"), utc("2026-02-03 00:00")));
}

#[test]
fn m16_holidays_are_no_business_days() {
    let holidays = "2026-04-03 Good Friday\n2026-04-06 Easter Monday\n";
    let berlin = days(Tz::Europe__Berlin, "24:00", Roll::Following, holidays);
    assert_eq!(berlin.calendar.next(date("2026-04-02")), date("2026-04-07"));
    assert_eq!(berlin.calendar.previous(date("2026-04-07")), date("2026-04-02"));
    assert_eq!(covers(&berlin, "2026-04-07"), (utc("2026-04-02 22:00"), utc("2026-04-07 22:00")));
    // five days long the same date is the last that is over
    for night in ["2026-04-03 00:30", "2026-04-05 00:30", "2026-04-07 00:30"] {
        assert_eq!(berlin.last_closed(utc(night)).date, date("2026-04-02"), "{night}");
    }
    assert_eq!(berlin.last_closed(utc("2026-04-07 22:00")).date, date("2026-04-07"));
    // a holiday covers what its business date does
    assert_eq!(covers(&berlin, "2026-04-03"), covers(&berlin, "2026-04-07"));
}

fn rolls() -> impl Strategy<Value = Roll> {
    prop_oneof![Just(Roll::Following), Just(Roll::Preceding), Just(Roll::ModifiedFollowing)]
}

fn weekends() -> impl Strategy<Value = Vec<Weekday>> {
    let pair = |a, b| vec![a, b];
    prop_oneof![
        Just(vec![]),
        Just(pair(Weekday::Sat, Weekday::Sun)),
        Just(pair(Weekday::Fri, Weekday::Sat)),
        // all but one
        Just(vec![Weekday::Mon, Weekday::Tue, Weekday::Wed, Weekday::Thu, Weekday::Fri, Weekday::Sat]),
    ]
}

/// Holidays as days of a year, many of them in a row.
fn holiday_lists() -> impl Strategy<Value = Vec<u64>> {
    proptest::collection::btree_set(0_u64..365, 0..60).prop_map(|days| days.into_iter().collect())
}

proptest! {

    /// M16: in any zone, year and calendar every instant belongs to exactly one business date, and its interval begins where the one
    /// before ends.
    #[test]
    fn m16_business_dates_abut(
        zone in proptest::sample::select(&TZ_VARIANTS[..]),
        (weekend, roll) in (weekends(), rolls()),
        holidays in holiday_lists(),
        (year, second) in (1900_i32..2100, 0_i64..366 * 86_400),
        cut_off in 1_u32..=24 * 60,
    ) {
        let new_year = NaiveDate::from_ymd_opt(year, 1, 1).expect("a date");
        let listed: Vec<String> = holidays.iter().map(|day| (new_year + Days::new(*day)).to_string()).collect();
        let holidays = Holidays::parse(&listed.join("\n"), "holidays").expect("holidays");
        let calendar = Calendar::new(&weekend, holidays, roll).expect("a calendar");
        let cut_off = CutOff::parse(&format!("{:02}:{:02}", cut_off / 60, cut_off % 60)).expect("a cut-off");
        let days = BusinessDays { zone, cut_off, calendar };
        let at = new_year.and_time(chrono::NaiveTime::MIN).and_utc() + TimeDelta::seconds(second);

        let open = days.date_at(at);
        let covers = days.covers(open);
        prop_assert!(days.calendar.is_business_day(open));
        prop_assert!(covers.from <= at && at < covers.until, "{at} in {covers:?}");
        let (before, after) = (days.calendar.previous(open), days.calendar.next(open));
        prop_assert_eq!(days.covers(before).until, covers.from);
        prop_assert_eq!(days.covers(after).from, covers.until);
        // and nobody else claims it
        for other in [before, after] {
            let other = days.covers(other);
            prop_assert!(other.from <= other.until && !(other.from <= at && at < other.until));
        }
        // its edges are where they are said to be
        prop_assert_eq!(days.date_at(covers.from), open);
        prop_assert_eq!(days.date_at(covers.until - TimeDelta::nanoseconds(1)), open);
        let closed = days.last_closed(at);
        prop_assert_eq!((closed.date, closed.newest), (before, covers));
    }

    /// A later day never has an earlier business date, and a business day is its own.
    #[test]
    fn rolling_keeps_the_order(roll in rolls(), weekend in weekends(), holidays in holiday_lists(), day in 0_u64..364) {
        let new_year = date("2026-01-01");
        let listed: Vec<String> = holidays.iter().map(|day| (new_year + Days::new(*day)).to_string()).collect();
        let calendar = Calendar::new(&weekend, Holidays::parse(&listed.join("\n"), "h").expect("holidays"), roll).expect("a calendar");
        let day = new_year + Days::new(day);
        let rolled = calendar.roll(day);
        prop_assert!(rolled <= calendar.roll(day + Days::new(1)));
        prop_assert!(calendar.is_business_day(rolled));
        prop_assert_eq!(calendar.is_business_day(day), rolled == day);
    }
}

#[test]
fn a_week_without_business_is_no_calendar() {
    let week = [Weekday::Mon, Weekday::Tue, Weekday::Wed, Weekday::Thu, Weekday::Fri, Weekday::Sat, Weekday::Sun];
    assert_eq!(Calendar::new(&week, Holidays::default(), Roll::Following), None);
}
