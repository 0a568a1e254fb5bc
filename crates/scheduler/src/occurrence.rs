//! When a schedule occurs. Needs `definition.rs`, `days.rs`, `wall.rs`.
//!
//! The cron expression is about wall time and knows no zone: it is searched on wall time alone, and every wall time it names is then
//! put on the time line here, by the rules of the schedule. So a wall time occurs once whatever clocks do: never twice in a repeated
//! hour, and never not at all in a gap, unless the rule says so.
//!
//! A later wall time never occurs at an earlier instant. That is what lets a search stop at the first one that is too late.

use crate::days::Closed;
use crate::definition::{Definition, GapRule, OverlapRule};
use crate::wall::{Shown, shown, wall};
use chrono::{DateTime, NaiveDate, NaiveDateTime, Timelike, Utc};
use chrono_tz::Tz;
use domain::run::RunKey;

/// What clocks did to the wall time of an occurrence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clocks {
    /// Nothing: it is shown once.
    Plain,
    /// It is in a gap, and occurs right after it.
    Moved,
    /// It is in a gap, and does not occur.
    Skipped,
    /// It comes twice, and occurs at the first time.
    FirstPass,
    /// It comes twice, and occurs at the second time.
    SecondPass,
}

/// One occurrence of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Occurrence {
    /// When it is.
    pub at: DateTime<Utc>,
    /// The wall time that the schedule names.
    pub local: NaiveDateTime,
    /// The newest business date that is over then.
    pub business_date: NaiveDate,
    /// How `at` follows from `local`.
    pub clocks: Clocks,
    /// Whether the schedule distinguishes seconds.
    seconds: bool,
}

impl Occurrence {
    /// Its wall time of the day, as the key of its run has it: `HH:MM`, or `HH:MM:SS` where seconds matter.
    #[must_use]
    pub fn slot(&self) -> String {
        self.local.format(if self.seconds { "%H:%M:%S" } else { "%H:%M" }).to_string()
    }

    /// What clocks did to it, as a person is told.
    #[must_use]
    pub fn note(&self, zone: Tz) -> Option<String> {
        let (slot, day) = (self.slot(), self.local.date());
        match self.clocks {
            Clocks::Plain => None,
            Clocks::Moved => {
                let moved = wall(zone, self.at);
                Some(format!("{slot} does not exist on {day} in {zone}: moved to {}", moved.format("%Y-%m-%d %H:%M:%S")))
            }
            Clocks::Skipped => Some(format!("{slot} does not exist on {day} in {zone}: skipped")),
            Clocks::FirstPass => Some(format!("{slot} comes twice on {day} in {zone}: this is the first")),
            Clocks::SecondPass => Some(format!("{slot} comes twice on {day} in {zone}: this is the second")),
        }
    }

    /// The key of its run. Occurrences that several calendar days of one business date have at the same wall time share it.
    #[must_use]
    pub fn key(&self, definition: &Definition) -> RunKey {
        RunKey { schedule: definition.name().to_owned(), business_date: self.business_date, slot: self.slot() }
    }
}

impl Definition {
    /// Its occurrences in `(after, until]`, in order. Ends early where the expression never occurs again.
    #[must_use]
    pub fn occurrences(&self, after: DateTime<Utc>, until: DateTime<Utc>) -> Occurrences<'_> {
        let local = before(self.days.zone, after);
        Occurrences { definition: self, local, after, until, skipped: false, closed: None, seconds: self.has_seconds() }
    }

    /// Its first occurrence after an instant, if it occurs again.
    #[must_use]
    pub fn next_after(&self, after: DateTime<Utc>) -> Option<Occurrence> {
        self.occurrences(after, DateTime::<Utc>::MAX_UTC).next()
    }

    /// Every occurrence that has the same run key, itself among them, in order. `closed` is the business date at `occurrence`.
    pub(crate) fn same_key(&self, occurrence: Occurrence, closed: Closed) -> impl Iterator<Item = Occurrence> {
        let days = closed.first_day.iter_days().take_while(move |day| *day <= closed.last_day);
        days.filter_map(move |day| {
            let local = day.and_time(occurrence.local.time());
            let (at, clocks) = self.put(local);
            let inside = closed.newest.from <= at && at < closed.newest.until && clocks != Clocks::Skipped;
            let named = inside && self.cron.is_time_matching(&local).unwrap_or(false);
            named.then_some(Occurrence { at, local, clocks, ..occurrence })
        })
    }

    /// Where a wall time is on the time line, and why. One that is skipped has its place too, so that the order is kept.
    fn put(&self, local: NaiveDateTime) -> (DateTime<Utc>, Clocks) {
        match (shown(self.days.zone, local), self.gap, self.overlap) {
            (Shown::Once(at), _, _) => (at, Clocks::Plain),
            (Shown::Never { after }, GapRule::After, _) => (after, Clocks::Moved),
            (Shown::Never { after }, GapRule::Skip, _) => (after, Clocks::Skipped),
            (Shown::Twice { first, .. }, _, OverlapRule::First) => (first, Clocks::FirstPass),
            (Shown::Twice { second, .. }, _, OverlapRule::Second) => (second, Clocks::SecondPass),
        }
    }

    /// A definition whose second is 0 and nothing else names its slots by the minute, with five fields as with six.
    fn has_seconds(&self) -> bool {
        self.cron.pattern.seconds.values() != [0]
    }
}

/// A wall time such that everything that occurs after the instant `after` has a later one.
///
/// That is the wall time of `after`; but one that comes twice may have occurred before `after`, or may be still to come at its
/// second pass, and so may every other of the repeated hour.
fn before(zone: Tz, after: DateTime<Utc>) -> NaiveDateTime {
    let local = wall(zone, after);
    match shown(zone, local.with_nanosecond(0).unwrap_or(local)) {
        Shown::Twice { first, second } => local - (second - first),
        Shown::Once(_) | Shown::Never { .. } => local,
    }
}

/// See [`Definition::occurrences`].
#[derive(Debug, Clone)]
pub struct Occurrences<'a> {
    definition: &'a Definition,
    /// The last wall time looked at.
    local: NaiveDateTime,
    after: DateTime<Utc>,
    until: DateTime<Utc>,
    skipped: bool,
    closed: Option<Closed>,
    seconds: bool,
}

impl Occurrences<'_> {
    /// With those that the gap rule skips, at the place where they would be.
    #[must_use]
    pub fn with_skipped(mut self) -> Self {
        self.skipped = true;
        self
    }

    /// The next one, with the business date at it.
    pub(crate) fn next_closed(&mut self) -> Option<(Occurrence, Closed)> {
        loop {
            // an error is the end: the expression has no later time before the year 5000
            let local = self.definition.cron.find_next_occurrence(&self.local, false).ok()?;
            self.local = local;
            let (at, clocks) = self.definition.put(local);
            if at > self.until {
                return None;
            }
            if at > self.after && (clocks != Clocks::Skipped || self.skipped) {
                let closed = self.closed_at(at);
                return Some((Occurrence { at, local, business_date: closed.date, clocks, seconds: self.seconds }, closed));
            }
        }
    }

    /// Dense schedules have thousands of occurrences in one business date: it is worked out once.
    fn closed_at(&mut self, at: DateTime<Utc>) -> Closed {
        match self.closed {
            Some(closed) if at < closed.newest.until => closed,
            _ => *self.closed.insert(self.definition.days.last_closed(at)),
        }
    }
}

impl Iterator for Occurrences<'_> {
    type Item = Occurrence;

    fn next(&mut self) -> Option<Occurrence> {
        self.next_closed().map(|(occurrence, _)| occurrence)
    }
}
