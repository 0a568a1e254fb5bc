//! What a planner did at one look. Needs nothing else.

use chrono::{DateTime, Utc};

/// What came of a ring of the bell. Match it without `_`.
#[must_use]
#[derive(Debug)]
pub enum Rung {
    /// Nothing can have occurred: the ledger was not asked.
    Quiet,
    /// The ledger was read, and what had occurred is planned.
    Looked(Report),
    /// The ledger does not answer. Nothing is lost: its marks stand, and the next look plans from them.
    Unavailable {
        /// What it was asked, and why not.
        error: ledger::LedgerError,
        /// What was planned before it fell silent, and stays planned; nothing where it said nothing at all. Schedules that are not in
        /// it were not looked at.
        report: Option<Report>,
    },
}

/// What one look did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The time, by the database's clock.
    pub now: DateTime<Utc>,
    /// Schedules of which there is something to say.
    pub schedules: Vec<ScheduleReport>,
}

impl Report {
    /// Runs that were opened.
    #[must_use]
    pub fn opened(&self) -> u64 {
        self.sum(|outcome| if let Outcome::Planned { opened, .. } = outcome { *opened } else { 0 })
    }

    /// Rows of runs that were missed.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.sum(|outcome| if let Outcome::Planned { missed, .. } = outcome { *missed } else { 0 })
    }

    fn sum(&self, of: impl Fn(&Outcome) -> u64) -> u64 {
        self.schedules.iter().map(|schedule| of(&schedule.outcome)).sum()
    }
}

/// One schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduleReport {
    /// Its name.
    pub schedule: String,
    /// What became of it.
    pub outcome: Outcome,
}

/// What became of a schedule at a look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It was never planned before: its mark is now.
    Started,
    /// The mark was moved by us.
    Planned {
        /// Runs that were not open before.
        opened: u64,
        /// Rows that say what was missed.
        missed: u64,
    },
    /// The ledger plans it by another definition. Told at every look while it lasts.
    Refused {
        /// What to do, in a sentence.
        text: String,
    },
    /// The ledger could not take it; the mark stands, and it is tried again. Told at every look while it lasts.
    Failed {
        /// Why.
        text: String,
    },
}
