//! What became of one batch in a settle transaction, decided from what the ledger shows. Needs `batch.rs`, `fence.rs`, `ids.rs`.

use crate::batch::BatchState;
use crate::fence::{Stamp, Standing, standing};

/// The outcome of settling one batch. Match it without `_`: each arm asks for something else.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettleOutcome {
    /// The effect is in the ledger, written under our own fence (now, or by an attempt whose reply was lost).
    Settled,
    /// Somebody else settled it while the unit was rightfully theirs. Nothing to do.
    AlreadySettled,
    /// A newer holder has registered: our write was refused for good. Stop working under this grant.
    Fenced {
        /// Whether the batch is settled all the same (by the newer holder, or by one before us).
        settled: bool,
    },
    /// The ledger does not know our fence (it lost its tail): release and acquire anew.
    ClaimLost,
    /// The batch is in a state from which it cannot settle, e.g. an operator took it away.
    NotClaimable {
        /// The state it is in.
        state: BatchState,
    },
}

/// What a locking read shows of a batch that a settle statement did not return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// Its state.
    pub state: BatchState,
    /// Who settled it, where it is settled.
    pub settled_by: Option<Stamp>,
    /// The stamp registered for its unit.
    pub unit: Stamp,
}

/// Classifies, exhaustively and in this order, a batch that was not settled just now by `mine`.
///
/// The order matters: a batch we settled ourselves is `Settled` even when a newer holder has registered since, because our
/// commit came first and only its reply was lost.
pub fn classify(mine: Stamp, seen: Seen) -> SettleOutcome {
    if seen.state == BatchState::Settled && seen.settled_by == Some(mine) {
        return SettleOutcome::Settled;
    }
    match standing(mine, seen.unit) {
        Standing::Superseded => SettleOutcome::Fenced { settled: seen.state == BatchState::Settled },
        Standing::Current | Standing::Unregistered if seen.state == BatchState::Settled => SettleOutcome::AlreadySettled,
        Standing::Unregistered => SettleOutcome::ClaimLost,
        Standing::Current => SettleOutcome::NotClaimable { state: seen.state },
    }
}
