//! Plans, row by row.

use crate::fixture::{date, defined, raw, schedule, utc, weekend};
use chrono::{DateTime, TimeDelta, Utc};
use ledger::schedule::{MissedRun, PlannedRun, Sources};
use scheduler::RawSchedule;
use scheduler::definition::Definition;
use scheduler::plan::{Plan, plan};
use std::time::Instant;

/// Business date and slot.
fn keys(runs: &[PlannedRun]) -> Vec<String> {
    runs.iter().map(|run| format!("{} {}", run.key.business_date, run.key.slot)).collect()
}

/// Those of missed rows, and for how many they stand.
fn missed(rows: &[MissedRun]) -> Vec<String> {
    rows.iter().map(|row| format!("{} {} ×{}", row.run.key.business_date, row.run.key.slot, row.slots)).collect()
}

fn policy(raw: RawSchedule, catch_up: &str, max: u32, window_h: u32) -> Definition {
    defined(&RawSchedule { catch_up: catch_up.to_owned(), catch_up_max: max, catch_up_window_h: window_h, ..raw })
}

fn nightly() -> RawSchedule {
    raw("30 2 * * *", "Europe/Dublin")
}

#[test]
fn a_run_has_everything_its_row_says() {
    let raw = RawSchedule { sources: Some(vec!["b".to_owned(), "a".to_owned()]), ..nightly() };
    let planned = plan(&defined(&raw), utc("2026-03-02 00:00"), utc("2026-03-02 02:30:07"));
    let [run] = &planned.runs[..] else { panic!("{planned:?}") };
    assert_eq!(
        (run.key.schedule.as_str(), run.key.business_date, run.key.slot.as_str()),
        ("nightly", date("2026-03-01"), "02:30")
    );
    assert_eq!(run.scheduled_for, Some(utc("2026-03-02 02:30")));
    assert_eq!(run.covers, Some((utc("2026-03-01 00:00"), utc("2026-03-02 00:00"))));
    assert_eq!(run.sources, Sources::only(["a", "b"]));
    assert_eq!((run.note.as_deref(), planned.missed.len(), planned.mark), (None, 0, utc("2026-03-02 02:30:07")));
}

/// S1: the process is started before the clocks change, and plans after it.
#[test]
fn s1_the_zone_is_asked_anew() {
    let evening = schedule("0 18 * * *", "Europe/Dublin");
    let started = utc("2026-03-28 18:00");
    assert!(plan(&evening, started, utc("2026-03-29 16:59:59")).is_empty());
    let planned = plan(&evening, started, utc("2026-03-29 17:00"));
    assert_eq!(keys(&planned.runs), ["2026-03-28 18:00"]);
    assert_eq!(planned.runs[0].scheduled_for, Some(utc("2026-03-29 17:00")));
}

/// S2: what the clocks did is in the row.
#[test]
fn s2_a_time_in_the_gap_is_moved_and_recorded() {
    let planned = plan(&schedule("30 1 * * *", "Europe/Dublin"), utc("2026-03-29 00:59"), utc("2026-03-29 01:00"));
    assert_eq!(keys(&planned.runs), ["2026-03-28 01:30"]);
    assert_eq!(planned.runs[0].scheduled_for, Some(utc("2026-03-29 01:00")));
    let note = "01:30 does not exist on 2026-03-29 in Europe/Dublin: moved to 2026-03-29 02:00:00";
    assert_eq!(planned.runs[0].note.as_deref(), Some(note));
}

/// S3: planned again at the second pass, with the mark between the two, and from before both.
#[test]
fn s3_a_time_in_the_repeated_hour_is_one_run() {
    for (overlap, first, second) in [("first", 1, 0), ("second", 0, 1)] {
        let twice = defined(&RawSchedule { overlap: overlap.to_owned(), ..raw("30 1 * * *", "Europe/Dublin") });
        let before = utc("2026-10-25 00:00");
        let (between, after) = (utc("2026-10-25 00:45"), utc("2026-10-25 01:31"));
        assert_eq!(plan(&twice, before, between).runs.len(), first, "{overlap}");
        assert_eq!(plan(&twice, between, after).runs.len(), second, "{overlap}");
        let whole = plan(&twice, before, after);
        assert_eq!((keys(&whole.runs), whole.missed.len()), (vec!["2026-10-24 01:30".to_owned()], 0), "{overlap}");
    }
    // and the day after has its own
    let next = plan(&schedule("30 1 * * *", "Europe/Dublin"), utc("2026-10-25 12:00"), utc("2026-10-26 01:30"));
    assert_eq!(keys(&next.runs), ["2026-10-25 01:30"]);
}

/// S4: an instance that never lives as long as the interval; the mark is all it needs to remember.
#[test]
fn s4_restarts_more_often_than_the_interval() {
    let hourly = schedule("0 * * * *", "UTC");
    let (mut mark, mut runs) = (utc("2026-03-02 00:10"), Vec::new());
    for restart in 1..=36 {
        // each start plans once, and dies after seven minutes
        let planned = plan(&hourly, mark, utc("2026-03-02 00:10") + TimeDelta::minutes(7 * restart));
        runs.extend(keys(&planned.runs));
        assert_eq!(planned.missed, []);
        mark = planned.mark;
    }
    assert_eq!(runs, ["2026-03-01 01:00", "2026-03-01 02:00", "2026-03-01 03:00", "2026-03-01 04:00"]);
}

/// The noon of a Sunday, two weeks after another.
fn two_weeks_off(definition: &Definition) -> Plan {
    plan(definition, utc("2026-03-01 12:00"), utc("2026-03-15 12:00"))
}

/// S5: exactly the policy's rows.
#[test]
fn s5_two_weeks_off_none() {
    let planned = two_weeks_off(&policy(nightly(), "none", 10, 72));
    assert_eq!(planned.runs, []);
    let mut rows = vec!["2026-03-04 until 02:30 ×4".to_owned()];
    rows.extend((5..=14).map(|day| format!("2026-03-{day:02} 02:30 ×1")));
    assert_eq!(missed(&planned.missed), rows);
    let since: Vec<_> = planned.missed.iter().map(|row| row.since).collect();
    assert_eq!((since[0], since[1]), (utc("2026-03-02 02:30"), utc("2026-03-06 02:30")));
    assert_eq!(planned.missed[0].run.scheduled_for, Some(utc("2026-03-05 02:30")));
    assert_eq!(planned.mark, utc("2026-03-15 12:00"));
}

#[test]
fn s5_two_weeks_off_latest() {
    let planned = two_weeks_off(&policy(nightly(), "latest", 10, 72));
    assert_eq!(keys(&planned.runs), ["2026-03-14 02:30"]);
    assert_eq!(planned.runs[0].scheduled_for, Some(utc("2026-03-15 02:30")));
    let mut rows = vec!["2026-03-03 until 02:30 ×3".to_owned()];
    rows.extend((4..=13).map(|day| format!("2026-03-{day:02} 02:30 ×1")));
    assert_eq!(missed(&planned.missed), rows);
    // one that is on time needs no help
    let on_time = plan(&policy(nightly(), "latest", 10, 72), utc("2026-03-01 12:00"), utc("2026-03-15 02:35"));
    assert_eq!((keys(&on_time.runs), on_time.missed.len()), (vec!["2026-03-14 02:30".to_owned()], 11));
    let late = plan(&policy(nightly(), "latest", 10, 72), utc("2026-03-13 12:00"), utc("2026-03-15 02:35:01"));
    assert_eq!(
        (keys(&late.runs), missed(&late.missed)),
        (vec!["2026-03-14 02:30".to_owned()], vec!["2026-03-13 02:30 ×1".to_owned()])
    );
}

#[test]
fn s5_two_weeks_off_all() {
    // the window bounds
    let planned = two_weeks_off(&policy(nightly(), "all", 10, 72));
    assert_eq!(keys(&planned.runs), ["2026-03-12 02:30", "2026-03-13 02:30", "2026-03-14 02:30"]);
    let mut rows = vec!["2026-03-01 02:30 ×1".to_owned()];
    rows.extend((2..=11).map(|day| format!("2026-03-{day:02} 02:30 ×1")));
    assert_eq!(missed(&planned.missed), rows);
    // the number bounds
    let planned = two_weeks_off(&policy(nightly(), "all", 2, 72));
    assert_eq!(keys(&planned.runs), ["2026-03-13 02:30", "2026-03-14 02:30"]);
    assert_eq!(missed(&planned.missed), ["2026-03-10 until 02:30 ×10", "2026-03-11 02:30 ×1", "2026-03-12 02:30 ×1"]);
    // neither does
    let planned = two_weeks_off(&policy(nightly(), "all", 14, 15 * 24));
    assert_eq!((planned.runs.len(), planned.missed.len()), (14, 0));
}

/// S5: a schedule that occurs every second: what was missed is counted, not kept.
#[test]
fn s5_two_weeks_of_seconds_are_counted() {
    let started = Instant::now();
    let every_second = policy(raw("* * * * * *", "Europe/Dublin"), "latest", 10, 72);
    let planned = two_weeks_off(&every_second);
    // five minutes are on time, both ends included
    assert_eq!((planned.runs.len(), planned.missed.len()), (301, 11));
    assert_eq!(planned.missed[0].slots, 14 * 86_400 - 301 - 10);
    assert_eq!(planned.missed[0].since, utc("2026-03-01 12:00:01"));
    let took = started.elapsed();
    assert!(took.as_secs() < 20, "{took:?}");
    eprintln!("1.2 million occurrences: {took:?}");
}

/// S5: the same with weekends, whose seconds have the keys of their Friday's.
#[test]
fn s5_two_weeks_of_seconds_with_weekends() {
    let every_second = policy(weekend(raw("* * * * * *", "Europe/Dublin")), "none", 10, 72);
    // from a Sunday to a Sunday
    let planned = two_weeks_off(&every_second);
    let counted: u32 = planned.missed.iter().map(|row| row.slots).sum();
    // ten business dates, each with all its seconds, whether they came once or on three days; those of Friday 27 February came on
    // that Saturday too, and an earlier plan has decided them
    assert_eq!(planned.runs.len() + usize::try_from(counted).expect("small"), 10 * 86_400);
}

/// What three days share is decided once, by the newest of them, and due at the oldest.
#[test]
fn a_weekend_is_one_run() {
    let nightly = policy(weekend(nightly()), "none", 10, 72);
    let friday = utc("2026-03-06 12:00");
    // nobody there on Saturday; on Sunday it is on time
    let sunday = plan(&nightly, friday, utc("2026-03-08 02:30:10"));
    assert_eq!((keys(&sunday.runs), sunday.missed.len()), (vec!["2026-03-06 02:30".to_owned()], 0));
    assert_eq!(sunday.runs[0].scheduled_for, Some(utc("2026-03-07 02:30")));
    assert_eq!(sunday.runs[0].covers, Some((utc("2026-03-06 00:00"), utc("2026-03-07 00:00"))));
    // nobody there until Monday noon
    let monday = plan(&nightly, friday, utc("2026-03-09 12:00"));
    assert_eq!((monday.runs.len(), missed(&monday.missed)), (0, vec!["2026-03-06 02:30 ×1".to_owned()]));
    assert_eq!(monday.missed[0].since, utc("2026-03-07 02:30"));
    // planned again on Sunday and on Monday, it is the same key
    let again = plan(&nightly, utc("2026-03-08 12:00"), utc("2026-03-09 02:30:10"));
    assert_eq!(keys(&again.runs), ["2026-03-06 02:30"]);
    assert_eq!(again.runs[0].scheduled_for, Some(utc("2026-03-09 02:30")));
}

/// A row that stands for many is under a key that no run will be opened for: the slots of Saturday come again on Sunday.
#[test]
fn what_was_missed_is_kept_under_a_key_that_no_occurrence_has() {
    let hourly = policy(weekend(raw("0 * * * *", "UTC")), "none", 1, 72);
    // from Friday to Saturday noon
    let planned = plan(&hourly, utc("2026-03-06 12:00"), utc("2026-03-07 12:30"));
    assert_eq!(missed(&planned.missed), ["2026-03-06 until 11:00 ×23", "2026-03-06 12:00 ×1"]);
    assert_eq!(planned.missed[0].since, utc("2026-03-06 13:00"));
    // on Monday those of Saturday have been decided: they are not counted again
    let planned = plan(&hourly, planned.mark, utc("2026-03-09 23:30"));
    let counted: u32 = planned.missed.iter().map(|row| row.slots).sum();
    // from 13 to 23 o'clock of Saturday, and the one of its own row
    assert_eq!(counted, 11);
}

/// S6: killed three seconds before the time, and replaced one second after it.
#[test]
fn s6_killed_before_replaced_after() {
    let nightly = defined(&nightly());
    let before = plan(&nightly, utc("2026-03-01 12:00"), utc("2026-03-02 02:29:57"));
    assert!(before.is_empty());
    let after = plan(&nightly, before.mark, utc("2026-03-02 02:30:01"));
    assert_eq!((keys(&after.runs), after.missed.len()), (vec!["2026-03-01 02:30".to_owned()], 0));
}

/// S8: a clock that is behind plans nothing, and takes nothing back.
#[test]
fn s8_a_clock_that_is_behind_takes_nothing_back() {
    let nightly = defined(&nightly());
    let mark = utc("2026-03-02 02:33");
    let behind = plan(&nightly, mark, utc("2026-03-02 02:29"));
    assert_eq!((behind.is_empty(), behind.mark), (true, mark));
    assert_eq!(plan(&nightly, mark, mark).mark, mark);
}

/// M16: what a run covers is in its row, in instants, on the days that are longer or shorter than others.
#[test]
fn m16_runs_cover_their_business_date() {
    let covers = |mark: &str, now: &str| -> (DateTime<Utc>, DateTime<Utc>) {
        let midnight = policy(raw("0 0 * * *", "Europe/Berlin"), "none", 10, 72);
        let planned = plan(&midnight, utc(mark), utc(now));
        planned.runs.first().and_then(|run| run.covers).expect("a run")
    };
    assert_eq!(covers("2026-03-29 21:59", "2026-03-29 22:00"), (utc("2026-03-28 23:00"), utc("2026-03-29 22:00")));
    assert_eq!(covers("2026-10-25 22:59", "2026-10-25 23:00"), (utc("2026-10-24 22:00"), utc("2026-10-25 23:00")));
}
