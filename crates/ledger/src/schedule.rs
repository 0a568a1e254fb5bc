//! Runs and schedules: what is planned, what is due, what was missed. Needs `operate.rs` for who asks.

use chrono::{DateTime, NaiveDate, Utc};
use domain::ids::{HolderId, RunId};
use domain::run::RunKey;
use domain::unit::Unit;
use serde::Serialize;
use std::sync::Arc;

/// Sources of batches: some, or all. In order and each once, so that two lists that mean the same are the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sources(Option<Arc<[String]>>);

impl Sources {
    /// Every source there is, and every one to come.
    pub const ALL: Sources = Sources(None);

    /// These, in whatever order they are given.
    #[must_use]
    pub fn only(names: impl IntoIterator<Item = impl Into<String>>) -> Sources {
        let mut names: Vec<String> = names.into_iter().map(Into::into).collect();
        names.sort_unstable();
        names.dedup();
        Sources(Some(names.into()))
    }

    /// Their names; `None` for all.
    #[must_use]
    pub fn names(&self) -> Option<&[String]> {
        self.0.as_deref()
    }
}

impl From<Option<Vec<String>>> for Sources {
    fn from(names: Option<Vec<String>>) -> Sources {
        names.map_or(Sources::ALL, Sources::only)
    }
}

/// Which batches are due: all up to a day, of some sources or of all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due {
    /// Business dates on or before this day.
    pub upto: NaiveDate,
    /// Only batches of these sources.
    pub sources: Sources,
}

impl Due {
    /// Everything up to a day.
    #[must_use]
    pub const fn all(upto: NaiveDate) -> Due {
        Due { upto, sources: Sources::ALL }
    }
}

/// An occurrence that is to be run: by a schedule, or by hand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedRun {
    /// Its key. Two planners that find the same occurrence meet on it.
    pub key: RunKey,
    /// When it was due; nothing for a run by hand.
    pub scheduled_for: Option<DateTime<Utc>>,
    /// The instants of its business date, half-open.
    pub covers: Option<(DateTime<Utc>, DateTime<Utc>)>,
    /// Sources whose batches it settles.
    pub sources: Sources,
    /// How a wall time that does not exist, or exists twice, was dealt with.
    pub note: Option<String>,
}

impl PlannedRun {
    /// A run by hand, of every source.
    #[must_use]
    pub const fn by_hand(key: RunKey) -> PlannedRun {
        PlannedRun { key, scheduled_for: None, covers: None, sources: Sources::ALL, note: None }
    }

    /// A run of one's own job, which makes no batch due.
    #[must_use]
    pub fn for_job(key: RunKey) -> PlannedRun {
        PlannedRun { sources: Sources::only(Vec::<String>::new()), ..PlannedRun::by_hand(key) }
    }

    /// What it makes due.
    #[must_use]
    pub fn due(&self) -> Due {
        Due { upto: self.key.business_date, sources: self.sources.clone() }
    }
}

/// An occurrence, or many of them, that should have been run and was not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissedRun {
    /// The occurrence; where the row stands for many the newest, with a slot that no occurrence has.
    pub run: PlannedRun,
    /// For how many it stands.
    pub slots: u32,
    /// When the oldest of them was due.
    pub since: DateTime<Utc>,
}

/// How far a schedule is planned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mark {
    /// The schedule.
    pub schedule: String,
    /// Every occurrence up to here is planned.
    pub at: DateTime<Utc>,
    /// The hash of the definition it is planned by.
    pub definition: String,
}

/// Every mark, and the time it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marks {
    /// By the database's clock: the instances' clocks need not agree.
    pub now: DateTime<Utc>,
    /// In order of name.
    pub marks: Vec<Mark>,
}

/// Moves a mark forward, with everything between.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advance {
    /// The schedule.
    pub schedule: String,
    /// The hash of the definition it was planned by.
    pub definition: String,
    /// The mark it was planned from.
    pub from: DateTime<Utc>,
    /// Where the mark goes.
    pub to: DateTime<Utc>,
    /// To be run.
    pub runs: Vec<PlannedRun>,
    /// Not run, and kept as such.
    pub missed: Vec<MissedRun>,
}

/// The definition that is to be the schedule's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Adopt<'a> {
    /// Its hash.
    pub definition: &'a str,
    /// Whether its mark becomes now: nothing before is caught up, and a mark that is ahead of the clock comes back.
    pub from_now: bool,
}

impl<'a> Adopt<'a> {
    /// Another definition, planned from where the old one was.
    #[must_use]
    pub const fn definition(definition: &'a str) -> Adopt<'a> {
        Adopt { definition, from_now: false }
    }
}

/// The answer to [`Advance`]. Match it without `_`.
#[must_use]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Advanced {
    /// It is written.
    Done {
        /// Runs that were not open before.
        opened: u64,
        /// Rows that say what was missed.
        missed: u64,
    },
    /// Another planner moved the mark: read it again.
    Behind,
    /// The schedule is planned by another definition.
    Refused {
        /// Its hash.
        stored: String,
    },
}

/// The newest open run of a set of sources, and which units have work for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenRun {
    /// Its row.
    pub id: RunId,
    /// Its key.
    pub key: RunKey,
    /// What it makes due.
    pub due: Due,
    /// When it was due; nothing for a run by hand.
    pub scheduled_for: Option<DateTime<Utc>>,
    /// Whether somebody has seen its end, and that of every older run of its sources.
    pub finished: bool,
    /// Units with batches due.
    pub units: Vec<Unit>,
}

/// Each schedule is leapt to by the index of the keys, its newest open run and its missed ones by those made for that: a scrape costs what
/// there are schedules and missed rows, however long the history.
pub(crate) const STATES: &str = "WITH RECURSIVE named (schedule) AS (
        SELECT min(schedule) FROM run
        UNION ALL SELECT (SELECT min(r.schedule) FROM run r WHERE r.schedule > named.schedule)
        FROM named WHERE named.schedule IS NOT NULL
    ), state AS (
        SELECT schedule,
            (SELECT r.scheduled_for FROM run r
                WHERE r.schedule = named.schedule AND r.state = 'open' AND r.scheduled_for IS NOT NULL
                ORDER BY r.scheduled_for DESC LIMIT 1) AS last_run,
            (SELECT CAST(coalesce(sum(r.missed_slots), 0) AS bigint) FROM run r
                WHERE r.schedule = named.schedule AND r.state = 'missed') AS missed
        FROM named WHERE schedule IS NOT NULL
    )
    SELECT schedule, last_run, missed FROM state WHERE last_run IS NOT NULL OR missed > 0 ORDER BY schedule";

/// By the index of what is unfinished: a handful of rows.
pub(crate) const UNFINISHED: &str = "SELECT schedule, min(scheduled_for) AS since FROM run
    WHERE state = 'open' AND finished_at IS NULL AND scheduled_for IS NOT NULL GROUP BY schedule ORDER BY schedule";

/// A schedule at a glance, for metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduleState {
    /// Its name.
    pub schedule: String,
    /// When its newest open run was due.
    pub last_run: Option<DateTime<Utc>>,
    /// Occurrences that were missed, and have not been run since.
    pub missed: i64,
}

/// A run, as its history shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunHistory {
    /// Its row.
    pub id: RunId,
    /// Its key.
    #[serde(flatten)]
    pub key: RunKey,
    /// `open` or `missed`.
    pub state: String,
    /// When it was due.
    pub scheduled_for: Option<DateTime<Utc>>,
    /// When it was opened, or found missed.
    pub opened_at: DateTime<Utc>,
    /// Who opened it.
    pub opened_by: HolderId,
    /// When somebody first found nothing due any more.
    pub finished_at: Option<DateTime<Utc>>,
    /// Batches it has settled, by anyone.
    pub batches_settled: i64,
    /// For how many occurrences a missed row stands.
    pub missed_slots: i32,
    /// When the oldest of them was due. Stays where a missed run was opened after all.
    pub missed_since: Option<DateTime<Utc>>,
    /// How its wall time was dealt with, if it was special.
    pub note: Option<String>,
}

/// Which runs to list, the newest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunFilter {
    /// Only those of this schedule.
    pub schedule: Option<String>,
    /// At most so many.
    pub limit: u32,
}

/// Why a mark must not be moved as asked, if so: the decision that all engines share.
pub(crate) fn refuse(stored: Option<(DateTime<Utc>, String)>, advance: &Advance) -> Option<Advanced> {
    match stored {
        Some((_, definition)) if definition != advance.definition => Some(Advanced::Refused { stored: definition }),
        Some((mark, _)) if mark == advance.from && advance.to >= mark => None,
        Some(_) | None => Some(Advanced::Behind),
    }
}
