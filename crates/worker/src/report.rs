//! What this process did.

use crate::metric;
use domain::ids::RunId;
use metrics::counter;
use serde::Serialize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Counted while working; read at any time by whoever shows progress.
#[derive(Debug)]
pub struct Counters {
    /// Batches this process settled.
    pub settled: Count,
    /// Their items.
    pub items: Count,
    /// Batches it gave up.
    pub quarantined: Count,
    /// Writes of its that the ledger refused. Its metric also says at which step.
    pub fenced: Count,
    /// Grants it lost before it was done.
    pub lost: Count,
}

impl Default for Counters {
    fn default() -> Self {
        Counters {
            settled: Count::new(metric::BATCHES_SETTLED),
            items: Count::new(metric::ITEMS_SETTLED),
            quarantined: Count::new(metric::BATCHES_QUARANTINED),
            fenced: Count::new(metric::FENCE_REJECTIONS),
            lost: Count::new(metric::LEASES_LOST),
        }
    }
}

/// One number for the report of this process and, under its name, for its metrics.
#[derive(Debug)]
pub struct Count {
    name: &'static str,
    counted: AtomicU64,
}

impl Count {
    const fn new(name: &'static str) -> Count {
        Count { name, counted: AtomicU64::new(0) }
    }

    pub(crate) fn add(&self, n: u64) {
        self.counted.fetch_add(n, Ordering::Relaxed);
        counter!(self.name).increment(n);
    }

    pub(crate) fn add_at(&self, step: &'static str, n: u64) {
        self.counted.fetch_add(n, Ordering::Relaxed);
        counter!(self.name, "step" => step).increment(n);
    }

    /// How many so far.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.counted.load(Ordering::Relaxed)
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
