//! Schedules and instants written down in a few words.

use chrono::{DateTime, NaiveDate, NaiveDateTime, Utc};
use scheduler::RawSchedule;
use scheduler::definition::Definition;
use std::path::Path;

/// A schedule with every other key at its default.
pub fn raw(cron: &str, zone: &str) -> RawSchedule {
    RawSchedule { cron: cron.to_owned(), zone: zone.to_owned(), ..RawSchedule::default() }
}

pub fn defined(raw: &RawSchedule) -> Definition {
    raw.define("nightly", Path::new("/nowhere")).expect("a schedule")
}

pub fn schedule(cron: &str, zone: &str) -> Definition {
    defined(&raw(cron, zone))
}

/// Saturday and Sunday.
pub fn weekend(raw: RawSchedule) -> RawSchedule {
    RawSchedule { weekend: vec!["sat".to_owned(), "sun".to_owned()], ..raw }
}

/// `2026-03-29 02:30`, with seconds if you like.
pub fn local(text: &str) -> NaiveDateTime {
    let seconds = if text.len() == 16 { ":00" } else { "" };
    NaiveDateTime::parse_from_str(&format!("{text}{seconds}"), "%Y-%m-%d %H:%M:%S").expect("a wall time")
}

pub fn utc(text: &str) -> DateTime<Utc> {
    local(text).and_utc()
}

pub fn date(text: &str) -> NaiveDate {
    text.parse().expect("a date")
}
