//! From a mark to now: what runs, and what was missed. Pure. Needs `occurrence.rs`, `definition.rs`, `late.rs`.
//!
//! Everything in `(mark, now]` is decided, each run key once: it runs, or it is recorded as missed. Days that roll to one business date
//! share keys; such a key is on time if its newest occurrence is, and its run is scheduled for its oldest after the mark. Of the missed
//! ones the newest are rows of their own, and those before them are one row that counts them. So a plan is small however long nobody
//! planned, and nothing is forgotten.

use crate::definition::{CatchUpPolicy, Definition};
use crate::late::{Late, Lateness, Older};
use crate::occurrence::Occurrence;
use chrono::{DateTime, TimeDelta, Utc};
use ledger::schedule::{MissedRun, PlannedRun};

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
    let catch_up = definition.catch_up();
    let max = usize::try_from(catch_up.max).unwrap_or(usize::MAX);
    let (on_time, mut late) = sorted_by_lateness(definition, mark, now, max);
    let caught_up = late.take_newest(match catch_up.policy {
        CatchUpPolicy::None => 0,
        CatchUpPolicy::Latest => usize::from(on_time.is_empty()),
        CatchUpPolicy::All => late.since(now - catch_up.window).min(max),
    });
    let runs = caught_up.into_iter().chain(on_time).map(|occurrence| run(definition, occurrence, mark));
    let (older, newest) = late.finish(max);
    let older = older.map(|older| counted(definition, older, mark));
    let newest = newest.into_iter().map(|occurrence| missed(definition, occurrence, mark));
    Plan { runs: runs.collect(), missed: older.into_iter().chain(newest).collect(), mark: mark.max(now) }
}

/// One occurrence of each key, the newest: those that are on time, and those that are late.
fn sorted_by_lateness(definition: &Definition, mark: DateTime<Utc>, now: DateTime<Utc>, max: usize) -> (Vec<Occurrence>, Late) {
    // those that run after all are among the newest, too
    let (mut on_time, mut late) = (Vec::new(), Late::keeping(max.saturating_mul(2)));
    let mut occurrences = definition.occurrences(mark, now);
    while let Some((occurrence, closed)) = occurrences.next_closed() {
        // most keys occur on one day only: the others are looked at where there can be any
        let again = occurrence.local.date() < closed.last_day
            && definition.same_key(occurrence, closed).any(|other| occurrence.at < other.at && other.at <= now);
        if again {
            continue;
        }
        if now - occurrence.at <= definition.on_time() {
            on_time.push(occurrence);
            continue;
        }
        let decided = closed.newest.from <= mark && definition.same_key(occurrence, closed).any(|other| other.at <= mark);
        late.push(Lateness { occurrence, decided });
    }
    (on_time, late)
}

/// When the key of an occurrence was due: at the first of its days after the mark.
fn due(definition: &Definition, occurrence: Occurrence, mark: DateTime<Utc>) -> Occurrence {
    let closed = definition.days().last_closed(occurrence.at);
    definition.same_key(occurrence, closed).find(|other| other.at > mark).unwrap_or(occurrence)
}

fn run(definition: &Definition, occurrence: Occurrence, mark: DateTime<Utc>) -> PlannedRun {
    let due = due(definition, occurrence, mark);
    let covers = definition.days().covers(occurrence.business_date);
    PlannedRun {
        key: occurrence.key(definition),
        scheduled_for: Some(due.at),
        // a day that clocks left out covers nothing
        covers: (covers.from < covers.until).then_some((covers.from, covers.until)),
        sources: definition.sources().map(<[String]>::to_vec).into(),
        note: due.note(definition.zone()),
    }
}

fn missed(definition: &Definition, occurrence: Occurrence, mark: DateTime<Utc>) -> MissedRun {
    MissedRun { run: run(definition, occurrence, mark), slots: 1, since: due(definition, occurrence, mark).at }
}

/// A row that stands for several, under a key that no occurrence has: were it that of one of them, whoever runs that one after all would
/// take the record of the others away.
fn counted(definition: &Definition, older: Older, mark: DateTime<Utc>) -> MissedRun {
    let mut row = missed(definition, older.newest, mark);
    if older.slots > 1 {
        row.run.key.slot.insert_str(0, "until ");
    }
    MissedRun { slots: older.slots, since: due(definition, older.oldest, mark).at, ..row }
}

/// The run of one occurrence, as a plan would open it: for a run by hand that is the scheduled one.
#[must_use]
pub fn planned(definition: &Definition, occurrence: Occurrence) -> PlannedRun {
    run(definition, occurrence, occurrence.at - TimeDelta::nanoseconds(1))
}
