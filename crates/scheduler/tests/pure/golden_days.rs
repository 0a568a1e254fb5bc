//! Days on which clocks change, with the instants that the rules of the tz database give, written down by hand and checked with another
//! implementation of them (Python's zoneinfo, releases 2025b and 2026f).

use crate::fixture::{defined, raw, schedule, utc};
use chrono::{DateTime, TimeDelta, Utc};
use scheduler::RawSchedule;
use scheduler::occurrence::Clocks;

/// Where, the wall time, and the instants that show it. One alone: it is shown once.
struct Golden(&'static str, &'static str, Shown);

enum Shown {
    Once(&'static str),
    /// Not at all; the first instant after it.
    Gap(&'static str),
    Twice(&'static str, &'static str),
}
use Shown::{Gap, Once, Twice};

#[rustfmt::skip]
const TABLE: &[Golden] = &[
    // summer time is the legal time in Ireland, and winter time its negative
    Golden("Europe/Dublin", "2026-03-28 18:00", Once("2026-03-28 18:00")),
    Golden("Europe/Dublin", "2026-03-29 01:30", Gap("2026-03-29 01:00")),
    Golden("Europe/Dublin", "2026-03-29 18:00", Once("2026-03-29 17:00")),
    Golden("Europe/Dublin", "2026-10-25 01:30", Twice("2026-10-25 00:30", "2026-10-25 01:30")),
    Golden("Europe/Berlin", "2026-03-29 02:30", Gap("2026-03-29 01:00")),
    Golden("Europe/Berlin", "2026-10-25 02:30", Twice("2026-10-25 00:30", "2026-10-25 01:30")),
    // the first wall time of a gap and of a repeated hour, and the first behind it
    Golden("Europe/Berlin", "2027-03-28 02:00", Gap("2027-03-28 01:00")),
    Golden("Europe/Berlin", "2027-03-28 03:00", Once("2027-03-28 01:00")),
    Golden("Europe/Berlin", "2027-10-31 02:00", Twice("2027-10-31 00:00", "2027-10-31 01:00")),
    Golden("Europe/Berlin", "2027-10-31 03:00", Once("2027-10-31 02:00")),
    Golden("America/New_York", "2026-03-08 02:30", Gap("2026-03-08 07:00")),
    Golden("America/New_York", "2026-11-01 01:30", Twice("2026-11-01 05:30", "2026-11-01 06:30")),
    Golden("America/New_York", "2027-03-14 02:00", Gap("2027-03-14 07:00")),
    Golden("America/New_York", "2027-11-07 01:00", Twice("2027-11-07 05:00", "2027-11-07 06:00")),
    // midnight itself is missing; and the hour before it comes twice, on the day that was over
    Golden("America/Sao_Paulo", "2018-11-04 00:00", Gap("2018-11-04 03:00")),
    Golden("America/Sao_Paulo", "2019-02-16 23:30", Twice("2019-02-17 01:30", "2019-02-17 02:30")),
    Golden("America/Sao_Paulo", "2026-11-01 00:00", Once("2026-11-01 03:00")),
    Golden("America/Havana", "2026-03-08 00:00", Gap("2026-03-08 05:00")),
    Golden("America/Havana", "2026-03-08 00:30", Gap("2026-03-08 05:00")),
    Golden("America/Havana", "2025-11-02 00:30", Twice("2025-11-02 04:30", "2025-11-02 05:30")),
    Golden("Asia/Beirut", "2026-03-29 00:00", Gap("2026-03-28 22:00")),
    Golden("Asia/Beirut", "2026-10-24 23:30", Twice("2026-10-24 20:30", "2026-10-24 21:30")),
    Golden("Africa/Cairo", "2026-04-24 00:00", Gap("2026-04-23 22:00")),
    Golden("America/Santiago", "2026-09-06 00:00", Gap("2026-09-06 04:00")),
    Golden("America/Santiago", "2026-04-04 23:30", Twice("2026-04-05 02:30", "2026-04-05 03:30")),
    // half an hour
    Golden("Australia/Lord_Howe", "2026-04-05 01:30", Twice("2026-04-04 14:30", "2026-04-04 15:00")),
    Golden("Australia/Lord_Howe", "2026-04-05 01:45", Twice("2026-04-04 14:45", "2026-04-04 15:15")),
    Golden("Australia/Lord_Howe", "2026-10-04 02:15", Gap("2026-10-03 15:30")),
    Golden("Australia/Lord_Howe", "2026-10-04 02:30", Once("2026-10-03 15:30")),
    Golden("America/Caracas", "2007-12-09 02:45", Twice("2007-12-09 06:45", "2007-12-09 07:15")),
    Golden("Asia/Pyongyang", "2018-05-04 23:45", Gap("2018-05-04 15:00")),
    // two hours
    Golden("Antarctica/Troll", "2026-03-29 01:30", Gap("2026-03-29 01:00")),
    Golden("Antarctica/Troll", "2026-03-29 02:30", Gap("2026-03-29 01:00")),
    Golden("Antarctica/Troll", "2026-10-25 01:30", Twice("2026-10-24 23:30", "2026-10-25 01:30")),
    Golden("Antarctica/Troll", "2026-10-25 02:30", Twice("2026-10-25 00:30", "2026-10-25 02:30")),
    // rules that ended, and rules that follow the moon
    Golden("Asia/Tehran", "2022-03-22 00:00", Gap("2022-03-21 20:30")),
    Golden("Asia/Tehran", "2022-09-21 23:30", Twice("2022-09-21 19:00", "2022-09-21 20:00")),
    Golden("Asia/Tehran", "2026-03-22 00:00", Once("2026-03-21 20:30")),
    Golden("Africa/Casablanca", "2026-02-15 02:30", Twice("2026-02-15 01:30", "2026-02-15 02:30")),
    Golden("Africa/Casablanca", "2026-03-22 02:30", Gap("2026-03-22 02:00")),
    // offsets of odd minutes
    Golden("Pacific/Chatham", "2026-09-27 03:00", Gap("2026-09-26 14:00")),
    Golden("Pacific/Chatham", "2026-04-05 03:00", Twice("2026-04-04 13:15", "2026-04-04 14:15")),
    Golden("Asia/Kathmandu", "2026-03-29 02:30", Once("2026-03-28 20:45")),
    // a whole day
    Golden("Pacific/Apia", "2011-12-29 12:00", Once("2011-12-29 22:00")),
    Golden("Pacific/Apia", "2011-12-30 00:00", Gap("2011-12-30 10:00")),
    Golden("Pacific/Apia", "2011-12-30 12:00", Gap("2011-12-30 10:00")),
    Golden("Pacific/Apia", "2011-12-31 00:00", Once("2011-12-30 10:00")),
    Golden("Pacific/Kwajalein", "1993-08-21 12:00", Gap("1993-08-21 12:00")),
];

/// What a schedule that names this wall time alone does.
fn found(zone: &str, wall: &str, gap: &str, overlap: &str) -> Vec<(DateTime<Utc>, Clocks)> {
    let (date, time) = (&wall[..10], &wall[11..]);
    let cron = format!("{} {} {} {} * {}", &time[3..], &time[..2], &date[8..], &date[5..7], &date[..4]);
    // six fields are seconds first: with a year there are seven
    let raw = RawSchedule { gap: gap.to_owned(), overlap: overlap.to_owned(), ..raw(&format!("0 {cron}"), zone) };
    let around = TimeDelta::days(3);
    let definition = defined(&raw);
    definition.occurrences(utc(wall) - around, utc(wall) + around).map(|found| (found.at, found.clocks)).collect()
}

/// S2, S3: every rule, on every day of the table.
#[test]
fn s2_s3_golden_days() {
    for Golden(zone, wall, shown) in TABLE {
        let got = |gap, overlap| found(zone, wall, gap, overlap);
        match shown {
            Once(at) => assert_eq!(got("skip", "second"), [(utc(at), Clocks::Plain)], "{zone} {wall}"),
            Gap(after) => {
                assert_eq!(got("after", "first"), [(utc(after), Clocks::Moved)], "{zone} {wall}");
                assert_eq!(got("skip", "first"), [], "{zone} {wall}");
            }
            Twice(first, second) => {
                assert_eq!(got("after", "first"), [(utc(first), Clocks::FirstPass)], "{zone} {wall}");
                assert_eq!(got("after", "second"), [(utc(second), Clocks::SecondPass)], "{zone} {wall}");
            }
        }
    }
}

/// S1: a process that was started before the clocks changed.
#[test]
fn s1_six_in_the_evening_stays_six_in_the_evening() {
    let evening = schedule("0 18 * * *", "Europe/Dublin");
    let started = utc("2026-03-28 18:00");
    let days: Vec<_> = evening.occurrences(started, utc("2026-03-30 23:00")).map(|found| found.at).collect();
    assert_eq!(days, [utc("2026-03-29 17:00"), utc("2026-03-30 17:00")]);
    let autumn: Vec<_> = evening.occurrences(utc("2026-10-24 17:00"), utc("2026-10-26 00:00")).map(|found| found.at).collect();
    assert_eq!(autumn, [utc("2026-10-25 18:00")]);
}
