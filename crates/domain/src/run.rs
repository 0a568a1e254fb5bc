//! The key of a run: one occurrence of one schedule. Needs nothing else.
//!
//! The key is the occurrence, not the clock: instances whose clocks differ, or that plan twice, meet on one row.

use chrono::NaiveDate;
use serde::{Deserialize, Serialize};

/// Unique per ledger. A run records an occurrence; it gates nothing (a batch settles once because of its own state).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RunKey {
    /// Name of the schedule, or [`RunKey::MANUAL`].
    pub schedule: String,
    /// Batches up to this business date are due.
    pub business_date: NaiveDate,
    /// Local wall time of the occurrence, so that several a day are several runs.
    pub slot: String,
}

impl RunKey {
    /// The schedule of runs that a person started.
    pub const MANUAL: &'static str = "manual";

    /// The run that a person (or ten at once) starts for a business date: always the same one.
    #[must_use]
    pub fn manual(business_date: NaiveDate) -> RunKey {
        RunKey { schedule: Self::MANUAL.to_owned(), business_date, slot: "-".to_owned() }
    }
}
