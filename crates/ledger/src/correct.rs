//! Corrections: what takes a batch back, before or after it settled, so that its next revision can go in.
//! Needs `domain::batch`, `domain::summary`, `error.rs`.
//!
//! Nothing that was written is changed. A batch that has not settled is cancelled; a settled one is reversed: each of its entries
//! gets one that mirrors it, and both stay. Either way the identities of its lines are free again, so that the lines of its
//! correction can hold them.
//!
//! No lease and no fence: a worker never writes a batch that is settled, and an operator is no holder of a unit. The row lock and
//! the state condition decide who is first. What an operator posts goes to the balance stripe of operators, so it waits for no
//! settlement and none waits for it. Lock order: the turn that imports take, the configuration, the batches by id, the stripes by
//! account.

use crate::LedgerError;
use domain::batch::{BatchEvent, BatchState, next};
use domain::ids::BatchId;
use domain::summary::BatchSummary;
use serde::Serialize;

/// A batch that is taken back: its row, the state it was locked in, and the one it goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TakenBack {
    /// Its row.
    pub(crate) id: BatchId,
    /// The state in which it was locked.
    pub(crate) from: BatchState,
    /// [`BatchState::Cancelled`] or [`BatchState::Reversed`].
    pub(crate) to: BatchState,
}

impl TakenBack {
    /// By this event.
    ///
    /// # Errors
    /// [`LedgerError::Illegal`] where its state does not allow it.
    pub(crate) fn by(event: BatchEvent, id: BatchId, from: BatchState) -> Result<TakenBack, LedgerError> {
        let to = next(from, event).map_err(|source| LedgerError::Illegal { batch: id, source })?;
        Ok(TakenBack { id, from, to })
    }

    /// By whatever its state allows, to make room for the batch of a file.
    ///
    /// # Errors
    /// [`LedgerError::BeingSettled`]: a worker has it in hand, so its state is not to be had now.
    pub(crate) fn to_make_room(
        file: &str,
        batch: &BatchSummary,
        id: BatchId,
        from: BatchState,
    ) -> Result<TakenBack, LedgerError> {
        let events = [BatchEvent::Cancel, BatchEvent::Reverse];
        events.into_iter().find_map(|event| TakenBack::by(event, id, from).ok()).ok_or_else(|| {
            LedgerError::BeingSettled(format!(
                "{file}:{}: batch {:?} is there as batch {id}, which is {from}: somebody is settling it; nothing was written. Try again when \
                 the run is over (`settled batch show {id}` says {:?} then), or start one where there is none",
                batch.first_line,
                batch.external_batch_id,
                BatchState::Settled.as_str(),
            ))
        })
    }

    /// What the audit log calls it.
    #[must_use]
    pub(crate) const fn action(self) -> &'static str {
        match self.to {
            BatchState::Reversed => REVERSE,
            _ => CANCEL,
        }
    }
}

/// What the audit log calls a cancellation.
pub(crate) const CANCEL: &str = "batch cancel";
/// What the audit log calls a reversal.
pub(crate) const REVERSE: &str = "batch reverse";
/// What the audit log calls the replacement of a revision by the next; it stands with both.
pub(crate) const REPLACE: &str = "batch replace";

/// A revision that another one has replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReplacedBatch {
    /// Their identity within the source.
    pub external_batch_id: String,
    /// The row of the old one.
    pub old_id: BatchId,
    /// Its revision.
    pub old_revision: i32,
    /// How it was taken back: `cancelled` or `reversed`.
    pub old_state: BatchState,
    /// The row of the new one.
    pub new_id: BatchId,
    /// Its revision.
    pub new_revision: i32,
}
