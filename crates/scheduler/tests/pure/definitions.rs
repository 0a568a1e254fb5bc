//! The check of a schedule: each wrong value is told by its key; and the hash is of what decides which runs occur.

use crate::fixture::{defined, raw, weekend};
use proptest::prelude::*;
use scheduler::RawSchedule;
use scheduler::holidays::Holidays;
use std::path::Path;

fn told(name: &str, raw: &RawSchedule) -> Vec<String> {
    raw.define(name, Path::new("/nowhere")).expect_err("it is wrong").0
}

fn one(change: impl FnOnce(&mut RawSchedule)) -> String {
    let mut raw = raw("30 2 * * *", "Europe/Dublin");
    change(&mut raw);
    let told = told("nightly", &raw);
    assert_eq!(told.len(), 1, "{told:?}");
    told[0].clone()
}

#[test]
fn every_wrong_key_is_named() {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let wrong: Vec<(String, &str)> = vec![
        (one(|raw| raw.cron.clear()), "schedule.nightly.cron is missing; \"30 2 * * *\" is half past two every night"),
        (one(|raw| raw.cron = "0 0 30 2 *".to_owned()), "schedule.nightly.cron is \"0 0 30 2 *\", which never occurs"),
        (one(|raw| raw.cron = "30 25 * * *".to_owned()), "schedule.nightly.cron is \"30 25 * * *\": "),
        (
            one(|raw| raw.cron = "30 2".to_owned()),
            "schedule.nightly.cron is \"30 2\": Invalid pattern: Pattern must have between",
        ),
        (one(|raw| raw.zone.clear()), "schedule.nightly.zone is missing; "),
        (
            one(|raw| raw.zone = "Europe/Dubln".to_owned()),
            "schedule.nightly.zone is \"Europe/Dubln\", which the tz database does not",
        ),
        (one(|raw| raw.gap = "before".to_owned()), "schedule.nightly.gap is \"before\"; it is one of \"after\", \"skip\""),
        (one(|raw| raw.overlap = "both".to_owned()), "schedule.nightly.overlap is \"both\"; it is one of \"first\", \"second\""),
        (
            one(|raw| raw.cut_off = "00:00".to_owned()),
            "schedule.nightly.cut_off is \"00:00\"; the midnight at the end of the day is",
        ),
        (one(|raw| raw.cut_off = "24:01".to_owned()), "schedule.nightly.cut_off is \"24:01\"; it is HH:MM, from \"00:01\" to"),
        (one(|raw| raw.cut_off = "6:00".to_owned()), "schedule.nightly.cut_off is \"6:00\"; it is HH:MM"),
        (one(|raw| raw.cut_off = "17:60".to_owned()), "schedule.nightly.cut_off is \"17:60\"; it is HH:MM"),
        (one(|raw| raw.weekend = words(&["sat", "Sunday"])), "schedule.nightly.weekend is \"Sunday\"; it is one of \"mon\", "),
        (
            one(|raw| raw.weekend = words(&["mon", "tue", "wed", "thu", "fri", "sat", "sun"])),
            "schedule.nightly.weekend has all seven days; leave one for business",
        ),
        (
            one(|raw| raw.roll = "next".to_owned()),
            "schedule.nightly.roll is \"next\"; it is one of \"following\", \"preceding\", ",
        ),
        (one(|raw| raw.sources = Some(vec![])), "schedule.nightly.sources is empty; leave it out to settle all of them"),
        (one(|raw| raw.sources = Some(words(&["a", "b", "a"]))), "schedule.nightly.sources has \"a\" twice"),
        (one(|raw| raw.sources = Some(words(&["a\nb"]))), "schedule.nightly.sources has \"a\\nb\", which is no name of a source"),
        (
            one(|raw| raw.catch_up = "some".to_owned()),
            "schedule.nightly.catch_up is \"some\"; it is one of \"none\", \"latest\", \"all\"",
        ),
        (one(|raw| raw.catch_up_max = 0), "schedule.nightly.catch_up_max is 0 and must be from 1 to 1000"),
        (one(|raw| raw.catch_up_window_h = 0), "schedule.nightly.catch_up_window_h is 0 and must be from 1 to 8784"),
        (one(|raw| raw.on_time_s = 3_601), "schedule.nightly.on_time_s is 3601 and must be from 1 to 3600"),
        (
            one(|raw| raw.holidays = Some("holidays.txt".into())),
            "schedule.nightly.holidays: /nowhere/holidays.txt: cannot be read: No such file",
        ),
    ];
    for (told, expected) in wrong {
        assert!(told.starts_with(expected), "{told}\n{expected}");
    }
}

#[test]
fn everything_that_is_wrong_is_told_at_once() {
    let raw = RawSchedule { gap: "x".to_owned(), roll: "y".to_owned(), ..raw("", "Mars/Olympus") };
    assert_eq!(told("nightly", &raw).len(), 4);
}

#[test]
fn names_of_schedules() {
    let raw = raw("30 2 * * *", "UTC");
    for name in ["nightly", "a", "eu-2_b", &"x".repeat(64)] {
        assert!(raw.define(name, Path::new(".")).is_ok(), "{name}");
    }
    for name in ["", "Nightly", "a b", "nächtlich", "manual", &"x".repeat(65)] {
        assert!(told(name, &raw)[0].starts_with(&format!("schedule.{name}: ")), "{name}");
    }
}

#[test]
fn a_schedule_as_it_is_written() {
    let section = r#"{"cron": "30 2 * * *", "zone": "Europe/Dublin", "weekend": ["sat", "sun"], "catch_up_window_h": 48}"#;
    let read: RawSchedule = serde_json::from_str(section).expect("a section");
    assert_eq!(read, RawSchedule { catch_up_window_h: 48, ..weekend(raw("30 2 * * *", "Europe/Dublin")) });
    let error = serde_json::from_str::<RawSchedule>(r#"{"corn": "30 2 * * *"}"#).expect_err("an unknown key");
    assert!(error.to_string().starts_with("unknown field `corn`"), "{error}");
}

#[test]
fn holidays_are_read_strictly() {
    let list = "\u{feff}# TARGET\r\n2026-01-01 New Year's Day # every year\n\n  2026-04-03\tGood Friday  \n2026-04-06";
    let holidays = Holidays::parse(list, "target.txt").expect("a list");
    let name = |date: &str| holidays.name(date.parse().expect("a date")).map(str::to_owned);
    assert_eq!(name("2026-01-01").as_deref(), Some("New Year's Day"));
    assert_eq!(name("2026-04-03").as_deref(), Some("Good Friday"));
    assert_eq!(name("2026-04-06").as_deref(), Some(""));
    assert_eq!(name("2026-04-07"), None);
    for (list, told) in [
        ("2026-01-01\n2026-13-01 no month", "target.txt:2: \"2026-13-01\" is not a date; a line is a date such as 2026-12-25"),
        ("01.05.2026", "target.txt:1: \"01.05.2026\" is not a date"),
        ("2026-5-1", "target.txt:1: \"2026-5-1\" is not a date"),
        ("2026-05-01,Labour Day", "target.txt:1: \"2026-05-01,Labour\" is not a date"),
        ("2026-05-01\n\n2026-05-01", "target.txt:3: 2026-05-01 comes twice; remove one of the two"),
        ("2026-12-25\n2025-12-26", "target.txt:2: 2025-12-26 comes after 2026-12-25; dates ascend"),
    ] {
        let error = Holidays::parse(list, "target.txt").expect_err(list).to_string();
        assert!(error.starts_with(told), "{error}");
    }
}

#[test]
fn holidays_are_read_from_the_folder_of_the_configuration() {
    let folder = std::env::temp_dir().join(format!("holidays-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("target.txt"), "2026-04-03\n").expect("a file");
    let raw = RawSchedule { holidays: Some("target.txt".into()), ..raw("30 2 * * *", "UTC") };
    let read = raw.define("nightly", &folder);
    std::fs::remove_dir_all(&folder).expect("removed");
    assert_eq!(read.expect("a schedule").days().calendar.holidays().until(), "2026-04-03".parse().ok());
}

fn hash(change: impl FnOnce(&mut RawSchedule)) -> String {
    let mut raw = raw("30 2 * * *", "Europe/Dublin");
    change(&mut raw);
    defined(&raw).hash()
}

#[test]
fn the_hash_is_of_what_decides_which_runs_occur() {
    let plain = hash(|_| {});
    assert_eq!(plain.len(), 64);
    let same = [
        hash(|raw| raw.cron = "  0 30 2  * * * ".to_owned()),
        hash(|raw| raw.catch_up = "all".to_owned()),
        hash(|raw| (raw.catch_up_max, raw.catch_up_window_h, raw.on_time_s) = (3, 4, 5)),
    ];
    same.iter().for_each(|hash| assert_eq!(*hash, plain));
    let different = [
        hash(|raw| raw.cron = "31 2 * * *".to_owned()),
        hash(|raw| raw.zone = "Europe/London".to_owned()),
        hash(|raw| raw.gap = "skip".to_owned()),
        hash(|raw| raw.overlap = "second".to_owned()),
        hash(|raw| raw.cut_off = "23:59".to_owned()),
        hash(|raw| raw.weekend = vec!["sat".to_owned()]),
        hash(|raw| raw.weekend = vec!["sun".to_owned()]),
        hash(|raw| raw.roll = "preceding".to_owned()),
        hash(|raw| raw.sources = Some(vec!["acquirer".to_owned()])),
        hash(|raw| raw.sources = Some(vec!["all".to_owned()])),
        plain,
    ];
    let distinct: std::collections::BTreeSet<_> = different.iter().collect();
    assert_eq!(distinct.len(), different.len());
    // sources are a set
    let sources = |names: [&str; 2]| hash(|raw| raw.sources = Some(names.map(str::to_owned).to_vec()));
    assert_eq!(sources(["a", "b"]), sources(["b", "a"]));
}

/// The ledger keeps it for years: the text that is hashed does not change by accident.
#[test]
fn the_hash_stays_the_same() {
    let raw =
        RawSchedule { sources: Some(vec!["b".to_owned(), "a".to_owned()]), ..weekend(raw("30 2 * * MON-FRI", "Europe/Dublin")) };
    assert_eq!(defined(&raw).hash(), "84453e752dbfd6ede1501a3c2367e66c9c1bd38548f6ac6c392af32fd73d0cf0");
}

proptest! {
    /// Whatever is written there: a schedule, or a sentence.
    #[test]
    fn no_expression_is_a_panic(cron in "[-0-9*/,LW#?+@A-Za-z ]{0,24}", any in any::<String>()) {
        for cron in [cron, any] {
            let _ = raw(&cron, "UTC").define("nightly", Path::new("."));
        }
    }
}
