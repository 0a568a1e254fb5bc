//! Occurrences of dense schedules, and of windows that begin and end inside a change of clocks.

use crate::fixture::{date, defined, local, raw, schedule, utc, weekend};
use chrono::{DateTime, TimeDelta, Utc};
use proptest::prelude::*;
use scheduler::RawSchedule;
use scheduler::definition::Definition;
use scheduler::occurrence::{Clocks, Occurrence};
use std::collections::BTreeSet;

fn all(definition: &Definition, after: DateTime<Utc>, until: DateTime<Utc>) -> Vec<Occurrence> {
    definition.occurrences(after, until).collect()
}

/// S3: every quarter of an hour of the day on which one comes twice.
#[test]
fn s3_a_repeated_hour_fires_once() {
    for (overlap, first) in [("first", "2026-10-25 00:00"), ("second", "2026-10-25 01:00")] {
        let raw = RawSchedule { overlap: overlap.to_owned(), ..raw("*/15 * * * *", "Europe/Berlin") };
        let found = all(&defined(&raw), utc("2026-10-24 22:00") - TimeDelta::seconds(1), utc("2026-10-25 22:59"));
        let walls: BTreeSet<_> = found.iter().map(|found| found.local).collect();
        // the day has 25 hours, and 24 of wall time
        assert_eq!((found.len(), walls.len()), (96, 96), "{overlap}");
        assert_eq!(found[8].at, utc(first));
        assert_eq!(found[8].local, local("2026-10-25 02:00"));
        let keys: BTreeSet<_> = found.iter().map(|found| (found.business_date, found.slot())).collect();
        assert_eq!(keys.len(), 96);
    }
}

/// S3: a mark is often the instant of an occurrence, also of one in a repeated hour.
#[test]
fn s3_a_window_that_begins_at_an_occurrence_does_not_find_it_again() {
    for overlap in ["first", "second"] {
        let raw = RawSchedule { overlap: overlap.to_owned(), ..raw("*/15 * * * *", "Europe/Berlin") };
        let definition = defined(&raw);
        let found = all(&definition, utc("2026-10-24 22:00"), utc("2026-10-25 22:59"));
        for pair in found.windows(2) {
            assert_eq!(definition.next_after(pair[0].at), Some(pair[1]), "{overlap}");
        }
    }
}

/// S2: every slot of the gap has its run, right after it; or none has.
#[test]
fn s2_a_dense_schedule_in_a_gap() {
    let gap = |gap: &str| {
        let raw = RawSchedule { gap: gap.to_owned(), ..raw("*/30 * * * *", "Europe/Berlin") };
        let found = all(&defined(&raw), utc("2026-03-29 00:15"), utc("2026-03-29 01:30"));
        found.into_iter().map(|found| (found.slot(), found.at, found.clocks)).collect::<Vec<_>>()
    };
    let common = [("01:30", "2026-03-29 00:30", Clocks::Plain)];
    let moved = [("02:00", "2026-03-29 01:00", Clocks::Moved), ("02:30", "2026-03-29 01:00", Clocks::Moved)];
    let after = [("03:00", "2026-03-29 01:00", Clocks::Plain), ("03:30", "2026-03-29 01:30", Clocks::Plain)];
    let written = |rows: Vec<(&str, &str, Clocks)>| -> Vec<_> {
        rows.into_iter().map(|(slot, at, clocks)| (slot.to_owned(), utc(at), clocks)).collect()
    };
    assert_eq!(gap("after"), written(common.into_iter().chain(moved).chain(after).collect()));
    assert_eq!(gap("skip"), written(common.into_iter().chain(after).collect()));
}

/// S2: Samoa went without 30 December 2011.
#[test]
fn s2_a_day_that_never_was() {
    let found = all(&schedule("0 12 * * *", "Pacific/Apia"), utc("2011-12-28 00:00"), utc("2012-01-01 12:00"));
    let instants: Vec<_> = found.iter().map(|found| (found.local, found.at, found.business_date)).collect();
    let row = |wall, at, day| (local(wall), utc(at), date(day));
    assert_eq!(
        instants,
        [
            row("2011-12-28 12:00", "2011-12-28 22:00", "2011-12-27"),
            row("2011-12-29 12:00", "2011-12-29 22:00", "2011-12-28"),
            // right after the gap, when the day that was left out is over too
            row("2011-12-30 12:00", "2011-12-30 10:00", "2011-12-30"),
            row("2011-12-31 12:00", "2011-12-30 22:00", "2011-12-30"),
            row("2012-01-01 12:00", "2011-12-31 22:00", "2011-12-31"),
        ]
    );
}

/// A plan that is not empty may name a row: the day that clocks left out covers nothing, which no row can say.
#[test]
fn m16_a_day_that_never_was_covers_nothing() {
    let apia = schedule("0 12 * * *", "Pacific/Apia");
    let planned = scheduler::plan::plan(&apia, utc("2011-12-30 09:00"), utc("2011-12-30 10:00"));
    assert_eq!((planned.runs.len(), planned.runs[0].covers), (1, None));
    assert_eq!(planned.runs[0].key.business_date, date("2011-12-30"));
}

#[test]
fn slots_name_seconds_where_they_matter() {
    let slot = |cron: &str| {
        let next = schedule(cron, "UTC").next_after(utc("2026-03-02 00:00")).expect("an occurrence");
        (next.at, next.slot())
    };
    assert_eq!(slot("30 2 * * *"), (utc("2026-03-02 02:30"), "02:30".to_owned()));
    assert_eq!(slot("0 30 2 * * *"), (utc("2026-03-02 02:30"), "02:30".to_owned()));
    assert_eq!(slot("0,20 30 2 * * *"), (utc("2026-03-02 02:30"), "02:30:00".to_owned()));
}

#[test]
fn an_expression_that_is_over_does_not_occur_again() {
    let once = schedule("0 30 2 2 3 * 2026", "UTC");
    assert!(once.next_after(utc("2026-03-01 00:00")).is_some());
    assert_eq!(once.next_after(utc("2026-03-02 02:30")), None);
}

/// Three days settle on one business date: their runs are one.
#[test]
fn days_that_roll_to_one_business_date_share_a_key() {
    let nightly = defined(&weekend(raw("30 2 * * *", "Europe/Berlin")));
    let found = all(&nightly, utc("2026-03-06 00:00"), utc("2026-03-10 12:00"));
    let keys: Vec<_> = found.iter().map(|found| (found.local.date(), found.key(&nightly).business_date)).collect();
    let key = |day, business| (date(day), date(business));
    assert_eq!(
        keys,
        [
            key("2026-03-06", "2026-03-05"),
            // Saturday, Sunday, Monday
            key("2026-03-07", "2026-03-06"),
            key("2026-03-08", "2026-03-06"),
            key("2026-03-09", "2026-03-06"),
            key("2026-03-10", "2026-03-09"),
        ]
    );
}

/// Instants around the changes of clocks of a zone.
fn around_a_change() -> impl Strategy<Value = (&'static str, DateTime<Utc>)> {
    let changes = prop_oneof![
        Just(("Europe/Berlin", "2026-03-29 01:00")),
        Just(("Europe/Berlin", "2026-10-25 01:00")),
        Just(("Antarctica/Troll", "2026-10-25 01:00")),
        Just(("Australia/Lord_Howe", "2026-04-04 15:00")),
        Just(("America/Sao_Paulo", "2019-02-17 02:00")),
        Just(("America/Havana", "2025-11-02 05:00")),
        Just(("Pacific/Apia", "2011-12-30 10:00")),
        // a whole day came twice
        Just(("America/Juneau", "1867-10-18 15:33")),
    ];
    // to the millisecond, and to the minutes at which something occurs
    let spans = prop_oneof![-100_000_000_i64..100_000_000, (-1_000_i64..1_000).prop_map(|minutes| minutes * 60_000)];
    (changes, spans).prop_map(|((zone, at), millis)| (zone, utc(at) + TimeDelta::milliseconds(millis)))
}

fn crons() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just("*/10 * * * *"), Just("30 * * * *"), Just("30 2 * * *"), Just("17 */7 * * * *"), Just("0 0 * * *")]
}

proptest! {

    /// S2, S3: wherever a window is cut, also inside a repeated hour, nothing is found twice, and nothing is lost.
    #[test]
    fn s2_s3_windows_can_be_cut_anywhere(
        (zone, cut) in around_a_change(),
        cron in crons(),
        gap in prop_oneof![Just("after"), Just("skip")],
        overlap in prop_oneof![Just("first"), Just("second")],
    ) {
        let raw = RawSchedule { gap: gap.to_owned(), overlap: overlap.to_owned(), ..raw(cron, zone) };
        let definition = defined(&raw);
        let (from, until) = (cut - TimeDelta::hours(30), cut + TimeDelta::hours(30));
        let whole = all(&definition, from, until);
        let mut parts = all(&definition, from, cut);
        parts.extend(all(&definition, cut, until));
        prop_assert_eq!(&parts, &whole);
        // a later wall time is never earlier, and none comes twice
        for pair in whole.windows(2) {
            prop_assert!(pair[0].at <= pair[1].at && pair[0].local < pair[1].local, "{:?}", pair);
        }
        // the next one of an instant is the first of the window behind it
        let next = definition.next_after(cut);
        prop_assert_eq!(next, definition.occurrences(cut, cut + TimeDelta::days(60)).next());
    }
}
