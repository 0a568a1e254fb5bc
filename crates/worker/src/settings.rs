//! How a worker works. Checked where it is read from the configuration.

use ledger::settle::TxLimits;
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
    /// Longest pause between two looks for work.
    pub poll: Duration,
}
