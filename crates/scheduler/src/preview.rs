//! What a schedule will do: its occurrences between two dates, and what is special about each. Needs `occurrence.rs`.
//!
//! Pure: for the eyes of whoever writes a schedule, before it runs.

use crate::days::Interval;
use crate::definition::Definition;
use crate::occurrence::{Clocks, Occurrence};
use crate::wall::{shown, wall};
use chrono::{DateTime, Datelike, Days, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, Utc};
use domain::run::RunKey;
use serde::Serialize;
use thiserror::Error;

/// What a person should know about an occurrence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PreviewMark {
    /// The clocks change on its day, which is this long.
    ClocksChange {
        /// A common day has 1440.
        minutes: i64,
    },
    /// Its wall time does not exist on that day: it occurs after the gap.
    Moved,
    /// Its wall time does not exist on that day: it does not occur.
    Skipped,
    /// Its wall time comes twice on that day, and it occurs at the first.
    FirstPass,
    /// At the second.
    SecondPass,
    /// Its day is on the weekend.
    Weekend,
    /// Its day is a holiday, called so in the list.
    Holiday(String),
    /// Its run is that of an earlier occurrence, at this instant.
    Joins(DateTime<Utc>),
    /// Its day is after the last holiday of the list: nobody knows whether it is one.
    BeyondHolidays,
}

/// One occurrence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PreviewLine {
    /// When it is, or, skipped, would be.
    pub at: DateTime<Utc>,
    /// What the clocks show then.
    pub shows: NaiveDateTime,
    /// The wall time that the schedule names.
    pub local: NaiveDateTime,
    /// The key of its run.
    #[serde(flatten)]
    pub key: RunKey,
    /// What its business date covers.
    pub covers: Interval,
    /// What is special about it.
    pub marks: Vec<PreviewMark>,
}

/// Occurrences of some days.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Preview {
    /// In order.
    pub lines: Vec<PreviewLine>,
    /// Whether there are more than were asked for.
    pub more: bool,
}

/// The dates are out of reach.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{0} is too far away: previews reach from 1970 to 2199")]
pub struct OutOfReach(pub NaiveDate);

/// The occurrences of the calendar days `from` to `upto`, both included; at most `most` of them.
///
/// # Errors
/// [`OutOfReach`]: nobody knows the rules of those days.
pub fn preview(definition: &Definition, from: NaiveDate, upto: NaiveDate, most: usize) -> Result<Preview, OutOfReach> {
    for date in [from, upto] {
        if !(1970..2200).contains(&date.year()) {
            return Err(OutOfReach(date));
        }
    }
    let midnight = |date: NaiveDate| shown(definition.zone(), date.and_time(NaiveTime::MIN)).first();
    // what a day's midnight shows is the day's: occurrences after the second before it, and before the next midnight
    let second = TimeDelta::seconds(1);
    let occurrences = definition.occurrences(midnight(from) - second, midnight(upto + Days::new(1)) - second).with_skipped();
    let mut lines: Vec<PreviewLine> = occurrences.take(most.saturating_add(1)).map(|found| line(definition, found)).collect();
    let more = lines.len() > most;
    lines.truncate(most);
    Ok(Preview { lines, more })
}

fn line(definition: &Definition, occurrence: Occurrence) -> PreviewLine {
    PreviewLine {
        at: occurrence.at,
        shows: wall(definition.zone(), occurrence.at),
        local: occurrence.local,
        key: occurrence.key(definition),
        covers: definition.days().covers(occurrence.business_date),
        marks: marks(definition, occurrence),
    }
}

fn marks(definition: &Definition, occurrence: Occurrence) -> Vec<PreviewMark> {
    let (day, calendar) = (occurrence.local.date(), &definition.days().calendar);
    let mut marks = Vec::new();
    let midnight = |date: NaiveDate| shown(definition.zone(), date.and_time(NaiveTime::MIN)).first();
    let minutes = (midnight(day + Days::new(1)) - midnight(day)).num_minutes();
    if minutes != 24 * 60 {
        marks.push(PreviewMark::ClocksChange { minutes });
    }
    marks.extend(match occurrence.clocks {
        Clocks::Plain => None,
        Clocks::Moved => Some(PreviewMark::Moved),
        Clocks::Skipped => Some(PreviewMark::Skipped),
        Clocks::FirstPass => Some(PreviewMark::FirstPass),
        Clocks::SecondPass => Some(PreviewMark::SecondPass),
    });
    marks.extend(calendar.is_weekend(day).then_some(PreviewMark::Weekend));
    marks.extend(calendar.holidays().name(day).map(|name| PreviewMark::Holiday(name.to_owned())));
    marks.extend(first_of_key(definition, occurrence).map(PreviewMark::Joins));
    marks.extend(calendar.holidays().until().is_some_and(|until| day > until).then_some(PreviewMark::BeyondHolidays));
    marks
}

/// When the run of an occurrence was opened by that of another day.
fn first_of_key(definition: &Definition, occurrence: Occurrence) -> Option<DateTime<Utc>> {
    let closed = definition.days().last_closed(occurrence.at);
    let first = definition.same_key(occurrence, closed).next()?.at;
    (first < occurrence.at && occurrence.clocks != Clocks::Skipped).then_some(first)
}
