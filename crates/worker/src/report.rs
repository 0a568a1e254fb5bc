//! What this process did.

use domain::ids::RunId;
use serde::Serialize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Counted while working; read at any time by whoever shows progress.
#[derive(Debug, Default)]
pub struct Counters {
    /// Batches this process settled.
    pub settled: AtomicU64,
    /// Their items.
    pub items: AtomicU64,
    /// Batches it gave up.
    pub quarantined: AtomicU64,
    /// Writes of its that the ledger refused.
    pub fenced: AtomicU64,
    /// Grants it lost before it was done.
    pub lost: AtomicU64,
}

impl Counters {
    pub(crate) fn add(counter: &AtomicU64, n: u64) {
        counter.fetch_add(n, Ordering::Relaxed);
    }

    /// Reads one.
    #[must_use]
    pub fn read(counter: &AtomicU64) -> u64 {
        counter.load(Ordering::Relaxed)
    }
}

/// The end of a run, as this process saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RunReport {
    /// The run.
    pub run_id: RunId,
    /// Settled by this process.
    pub batches_settled: u64,
    /// Settled in this run by others, or before.
    pub batches_already_settled: u64,
    /// Due, and broken.
    pub batches_broken: u64,
    /// Due, and quarantined.
    pub batches_quarantined: u64,
    /// Writes of this process that the ledger refused.
    pub fenced: u64,
    /// Items this process settled.
    pub items: u64,
    /// How long this process took.
    pub duration_ms: u64,
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
