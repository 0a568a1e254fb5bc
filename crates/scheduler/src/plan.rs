//! From a mark to now: what runs, and what was missed. Pure. Needs `occurrence.rs`, `note.rs`, `definition.rs`.
//!
//! Everything in `(mark, now]` is decided, each run key once: it runs, or it is recorded as missed. A key that several days share is
//! on time if its newest occurrence is, and its run is scheduled for the oldest. Of the missed ones the newest are rows of their own;
//! those before them are one row that counts them. So a plan is small however long nobody planned, and nothing is forgotten.

use crate::definition::{CatchUpPolicy, Definition};
use crate::occurrence::Occurrence;
use chrono::{DateTime, TimeDelta, Utc};
use ledger::schedule::{MissedRun, PlannedRun};
use std::collections::VecDeque;
use std::time::Duration;

/// What a planner writes, in one transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// To be opened, oldest first.
    pub runs: Vec<PlannedRun>,
    /// To be recorded, oldest first; the first may stand for many.
    pub missed: Vec<MissedRun>,
    /// Up to where everything is decided now. Never before the mark that was given.
    pub mark: DateTime<Utc>,
}

impl Plan {
    /// Whether nothing occurred.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.missed.is_empty()
    }
}

/// Plans what occurred after `mark`, as `now` sees it. A `now` before the mark plans nothing.
#[must_use]
pub fn plan(definition: &Definition, mark: DateTime<Utc>, now: DateTime<Utc>) -> Plan {
    let mut on_time = Vec::new();
    let mut late = Late::of(definition);
    let mut occurrences = definition.occurrences(mark, now);
    while let Some(occurrence) = occurrences.next() {
        if occurs_again(definition, occurrence, &occurrences, now) {
            continue;
        }
        if now - occurrence.at <= span(definition.on_time()) { on_time.push(occurrence) } else { late.push(occurrence) }
    }
    let caught_up = late.split_off(late.to_run(definition, on_time.is_empty(), now));
    let row = |occurrence: &Occurrence| row(definition, *occurrence, mark);
    Plan { runs: caught_up.iter().chain(&on_time).map(row).collect(), missed: late.into_rows(row), mark: mark.max(now) }
}
