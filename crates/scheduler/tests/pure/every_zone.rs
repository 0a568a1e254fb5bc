//! Every zone of the tz database for ten years, against a rule of its own: read from the instants, each of which shows one wall time.

use crate::fixture::{date, defined, raw};
use chrono::{DateTime, Days, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, Timelike, Utc};
use chrono_tz::{TZ_VARIANTS, Tz};
use scheduler::RawSchedule;
use scheduler::definition::Definition;

/// A stretch of time over which the wall clock of a zone goes on evenly.
struct Stretch {
    from: DateTime<Utc>,
    until: DateTime<Utc>,
    /// How far the wall clock is ahead of UTC.
    ahead: TimeDelta,
}

fn ahead(zone: Tz, at: DateTime<Utc>) -> TimeDelta {
    at.with_timezone(&zone).naive_local() - at.naive_utc()
}

/// Walks through time day by day, and finds the second at which the clocks changed.
fn stretches(zone: Tz, from: DateTime<Utc>, until: DateTime<Utc>) -> Vec<Stretch> {
    let mut all = vec![Stretch { from, until, ahead: ahead(zone, from) }];
    let (mut at, mut now) = (from, ahead(zone, from));
    while at < until {
        let next = ahead(zone, at + TimeDelta::days(1));
        if next != now {
            let (mut same_s, mut changed_s) = (0, 24 * 3_600);
            while changed_s - same_s > 1 {
                let middle_s = (same_s + changed_s) / 2;
                let changed = ahead(zone, at + TimeDelta::seconds(middle_s)) != now;
                if changed { changed_s = middle_s } else { same_s = middle_s }
            }
            let change = at + TimeDelta::seconds(changed_s);
            all.last_mut().expect("one").until = change;
            all.push(Stretch { from: change, until, ahead: next });
        }
        (at, now) = (at + TimeDelta::days(1), next);
    }
    all
}

/// When a wall time occurs by the rules, if it does.
fn expected(stretches: &[Stretch], wall: NaiveDateTime, skip: bool, second: bool) -> Option<DateTime<Utc>> {
    let showing = |stretch: &Stretch| {
        let at = wall.and_utc() - stretch.ahead;
        (stretch.from <= at && at < stretch.until).then_some(at)
    };
    let mut shown = stretches.iter().filter_map(showing);
    if let Some(first) = shown.next() {
        return if second { shown.next().or(Some(first)) } else { Some(first) };
    }
    let past = stretches.iter().find(|stretch| stretch.from.naive_utc() + stretch.ahead > wall);
    past.map(|stretch| stretch.from).filter(|_| !skip)
}

/// Compares what a definition finds at these times of these days with what it should find.
fn compare(definition: &Definition, stretches: &[Stretch], days: (NaiveDate, NaiveDate), times: &[&str], rules: (bool, bool)) {
    let times: Vec<NaiveTime> = times.iter().map(|time| time.parse().expect("a time")).collect();
    let walls = days.0.iter_days().take_while(|day| *day <= days.1);
    let walls = walls.flat_map(|day| times.iter().map(move |time| day.and_time(*time)));
    let mut expected = walls.filter_map(|wall| Some((expected(stretches, wall, rules.0, rules.1)?, wall)));
    // the zone's clock may be a day ahead or behind
    let around = (midnight(days.0 - Days::new(2)), midnight(days.1 + Days::new(3)));
    let found = definition.occurrences(around.0, around.1).map(|found| (found.at, found.local));
    for found in found.filter(|(_, wall)| (days.0..=days.1).contains(&wall.date())) {
        assert_eq!(Some(found), expected.next(), "{}", definition.zone());
    }
    assert_eq!(expected.next(), None, "{}", definition.zone());
}

fn midnight(day: NaiveDate) -> DateTime<Utc> {
    day.and_time(NaiveTime::MIN).and_utc()
}

/// S1, S2, S3: half past two of every day from 2026 to 2035 in every zone there is; and around every change of clocks midnight, half
/// past, two and half past two, by every rule.
#[test]
fn s1_s2_s3_every_zone_for_ten_years() {
    let (from, upto) = (date("2026-01-01"), date("2035-12-31"));
    let mut changes = 0;
    for zone in TZ_VARIANTS {
        let stretches = stretches(zone, midnight(from - Days::new(4)), midnight(upto + Days::new(4)));
        compare(&defined(&raw("30 2 * * *", zone.name())), &stretches, (from, upto), &["02:30:00"], (false, false));
        for (gap, overlap) in [("after", "first"), ("skip", "second")] {
            let raw = raw("0,30 0,2 * * *", zone.name());
            let definition = defined(&RawSchedule { gap: gap.to_owned(), overlap: overlap.to_owned(), ..raw });
            for change in stretches.iter().skip(1).map(|stretch| stretch.from.date_naive()) {
                let days = (change - Days::new(1), change + Days::new(1));
                let times = ["00:00:00", "00:30:00", "02:00:00", "02:30:00"];
                compare(&definition, &stretches, days, &times, (gap == "skip", overlap == "second"));
                changes += 1;
            }
        }
    }
    assert!(TZ_VARIANTS.len() > 500 && changes > 6_000, "{} zones, {changes} changes of clocks", TZ_VARIANTS.len());
}

/// The same by brute force, for a year in which clocks change by an hour, by two, and by half an hour: every minute is looked at.
#[test]
fn s2_s3_every_minute_of_a_year() {
    for zone in [Tz::Europe__Berlin, Tz::Antarctica__Troll, Tz::Australia__Lord_Howe, Tz::America__Havana] {
        let definition = defined(&raw("15 0-3 * * *", zone.name()));
        let (from, until) = (date("2026-01-01"), date("2027-01-01"));
        let mut seen = std::collections::BTreeMap::new();
        let mut last = midnight(from).with_timezone(&zone).naive_local() - TimeDelta::minutes(1);
        let mut at = midnight(from);
        while at < midnight(until) {
            let wall = at.with_timezone(&zone).naive_local();
            // this minute, or those that the clocks have just left out
            let mut shown = if wall > last { last + TimeDelta::minutes(1) } else { wall };
            while shown <= wall {
                if shown.minute() == 15 && shown.hour() <= 3 {
                    seen.entry(shown).or_insert(at);
                }
                shown += TimeDelta::minutes(1);
            }
            last = last.max(wall);
            at += TimeDelta::minutes(1);
        }
        let found = definition.occurrences(midnight(from) - TimeDelta::seconds(1), midnight(until) - TimeDelta::seconds(1));
        let found: Vec<_> = found.map(|found| (found.local, found.at)).collect();
        assert!(found.len() >= 4 * 365);
        assert_eq!(found, seen.into_iter().collect::<Vec<_>>(), "{zone}");
    }
}
