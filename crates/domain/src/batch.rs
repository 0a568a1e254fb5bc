//! The states of a settlement batch: one exhaustive [`next`]. Needs nothing else.
//!
//! The SQL of the ledger repeats the `from` state in its WHERE clause, so the table is enforced twice: here, where it can be
//! tested exhaustively, and there, where it is atomic.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Where a batch stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BatchState {
    /// Written by an import that has not yet judged it; never visible after the import commits.
    Received,
    /// Foots; due on its business date.
    Pending,
    /// Claimed by the holder of its unit; every claim is charged as an attempt.
    Settling,
    /// Its journal entries are posted. Final, except for a reversal.
    Settled,
    /// Readable, but its totals do not hold (a reconciliation break). Waits for a person.
    Broken,
    /// Charged too often without settling: it probably kills its worker. Waits for a person.
    Quarantined,
    /// Withdrawn before settling; its item identities are free again. Final.
    Cancelled,
    /// Settled once and taken back by a reversing entry. Final.
    Reversed,
}

/// What may happen to a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BatchEvent {
    /// The import found that it foots.
    Validate,
    /// The import found that it does not.
    Break,
    /// A worker claims it (again, on takeover).
    Claim,
    /// Its entries are posted.
    Settle,
    /// A draining worker hands it back.
    Release,
    /// It was claimed too often.
    GiveUp,
    /// An operator lets it be tried again.
    Retry,
    /// An operator accepts the difference.
    Accept,
    /// An operator withdraws it.
    Cancel,
    /// An operator takes it back after settling.
    Reverse,
}

/// An event that the state does not allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a batch that is {state} cannot {event}")]
pub struct IllegalTransition {
    /// The state the batch is in.
    pub state: BatchState,
    /// The event that was refused.
    pub event: BatchEvent,
}

/// The state after `event`, or why there is none.
///
/// # Errors
/// [`IllegalTransition`] for every pair that the table does not name.
pub fn next(state: BatchState, event: BatchEvent) -> Result<BatchState, IllegalTransition> {
    use BatchEvent as E;
    use BatchState as S;
    let to = match (state, event) {
        (S::Received, E::Validate) => S::Pending,
        (S::Received, E::Break) => S::Broken,
        (S::Pending | S::Settling, E::Claim) => S::Settling,
        // Pending settles without a claim only under the guards without a lease, where a lock of the database is the claim.
        (S::Pending | S::Settling, E::Settle) => S::Settled,
        (S::Settling, E::Release) => S::Pending,
        (S::Pending | S::Settling, E::GiveUp) => S::Quarantined,
        (S::Quarantined, E::Retry) => S::Pending,
        (S::Broken, E::Accept) => S::Pending,
        (S::Received | S::Pending | S::Quarantined | S::Broken, E::Cancel) => S::Cancelled,
        (S::Settled, E::Reverse) => S::Reversed,
        (
            S::Received | S::Pending | S::Settling | S::Settled | S::Broken | S::Quarantined | S::Cancelled | S::Reversed,
            E::Validate
            | E::Break
            | E::Claim
            | E::Settle
            | E::Release
            | E::GiveUp
            | E::Retry
            | E::Accept
            | E::Cancel
            | E::Reverse,
        ) => return Err(IllegalTransition { state, event }),
    };
    Ok(to)
}

impl BatchState {
    /// Every state, in the order a batch meets them.
    pub const ALL: [BatchState; 8] = [
        BatchState::Received,
        BatchState::Pending,
        BatchState::Settling,
        BatchState::Settled,
        BatchState::Broken,
        BatchState::Quarantined,
        BatchState::Cancelled,
        BatchState::Reversed,
    ];

    /// The word used in SQL, JSON and on the command line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            BatchState::Received => "received",
            BatchState::Pending => "pending",
            BatchState::Settling => "settling",
            BatchState::Settled => "settled",
            BatchState::Broken => "broken",
            BatchState::Quarantined => "quarantined",
            BatchState::Cancelled => "cancelled",
            BatchState::Reversed => "reversed",
        }
    }
}

/// A word that is no [`BatchState`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0:?} is not a batch state (one of received, pending, settling, settled, broken, quarantined, cancelled, reversed)")]
pub struct UnknownState(pub String);

impl std::str::FromStr for BatchState {
    type Err = UnknownState;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|s| s.as_str() == word).ok_or_else(|| UnknownState(word.to_owned()))
    }
}

impl std::fmt::Display for BatchState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

impl BatchEvent {
    /// Every event.
    pub const ALL: [BatchEvent; 10] = [
        BatchEvent::Validate,
        BatchEvent::Break,
        BatchEvent::Claim,
        BatchEvent::Settle,
        BatchEvent::Release,
        BatchEvent::GiveUp,
        BatchEvent::Retry,
        BatchEvent::Accept,
        BatchEvent::Cancel,
        BatchEvent::Reverse,
    ];
}

impl std::fmt::Display for BatchEvent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            BatchEvent::Validate => "be validated",
            BatchEvent::Break => "be marked as broken",
            BatchEvent::Claim => "be claimed",
            BatchEvent::Settle => "be settled",
            BatchEvent::Release => "be released",
            BatchEvent::GiveUp => "be quarantined",
            BatchEvent::Retry => "be retried",
            BatchEvent::Accept => "be accepted",
            BatchEvent::Cancel => "be cancelled",
            BatchEvent::Reverse => "be reversed",
        })
    }
}
