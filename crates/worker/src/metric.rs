//! What a worker counts, by the names that Prometheus gets. Nothing is exported unless the program installs a recorder.

/// Batches this process settled.
pub const BATCHES_SETTLED: &str = "settled_batches_settled_total";
/// Their items.
pub const ITEMS_SETTLED: &str = "settled_items_settled_total";
/// Batches this process gave up.
pub const BATCHES_QUARANTINED: &str = "settled_batches_quarantined_total";
/// Writes of this process that the ledger refused, by `step`. Should be 0.
pub const FENCE_REJECTIONS: &str = "settled_fence_rejections_total";
/// Leases this process was granted, and proved.
pub const LEASES_ACQUIRED: &str = "settled_leases_acquired_total";
/// Leases it lost before it was done.
pub const LEASES_LOST: &str = "settled_leases_lost_total";
/// From a lease's grant to its release, in seconds.
pub const LEASE_HOLD: &str = "settled_lease_hold_seconds";
/// One settle transaction, in seconds: the critical section.
pub const SETTLE_TRANSACTION: &str = "settled_settle_transaction_seconds";
