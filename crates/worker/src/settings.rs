//! How a worker works. Checked where it is read from the configuration.

use ledger::settle::TxLimits;
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

/// Settings of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerSettings {
    /// Most batches claimed, and settled in one transaction.
    pub batches_per_transaction: u32,
    /// Most items claimed, and settled in one transaction; a batch with more comes alone.
    pub items_per_transaction: i64,
    /// Charged so often and still not settled: quarantined.
    pub max_attempts: i32,
    /// Limits of claim and settle transactions.
    pub limits: TxLimits,
    /// Longest pause between two looks for work while others hold all of it.
    pub poll: Duration,
    /// Longest pause between two looks for work while there is none.
    pub idle_poll: Duration,
}

/// The settings in force: a reload of the configuration changes them between two transactions.
#[derive(Debug)]
pub struct Pace(RwLock<WorkerSettings>);

impl Pace {
    /// Starts with these.
    #[must_use]
    pub const fn new(settings: WorkerSettings) -> Pace {
        Pace(RwLock::new(settings))
    }

    /// What is in force now.
    pub fn get(&self) -> WorkerSettings {
        // Plain values: a writer that panicked left nothing half done.
        *self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// From the next transaction on.
    pub fn set(&self, settings: WorkerSettings) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = settings;
    }
}
