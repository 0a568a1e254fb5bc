//! The same work under the row-lock guard: no lease, no fence. The database's own row lock is the claim.
//!
//! The shortest path for effects that live in one database. There is no lease to lose, so there is nothing to refuse: a frozen
//! worker that wakes finds its batch settled. Compare with `settle.rs`.

use crate::settle::{Shift, ids};
use crate::{Worker, WorkerError};
use domain::ids::BatchId;
use domain::outcome::SettleOutcome;
use domain::step::Step;
use ledger::settle::{Authority, Charge, Claimed, ClaimedBatch, SettleWork};
use tracing::{debug, info, warn};

impl Worker {
    /// Charges and settles one handful of due batches of any unit. `false`: nobody else's turn has come yet, or nothing is due.
    ///
    /// # Errors
    /// Outages.
    pub async fn work_rows(&self, shift: &Shift) -> Result<bool, WorkerError> {
        let charge = Charge {
            holder: self.holder,
            run: shift.run,
            due: shift.due.clone(),
            most: self.pace.get().batches_per_transaction,
            most_items: self.pace.get().items_per_transaction,
            max_attempts: self.pace.get().max_attempts,
            // What was charged settles in one transaction, so for that long it may still be in hand.
            retry_after: self.pace.get().limits.total,
            limits: self.pace.get().limits,
        };
        let Claimed { batches, quarantined } = self.ledger.charge(&charge).await?;
        self.gave_up(&quarantined);
        self.tried_before(&batches);
        if batches.is_empty() {
            return Ok(!quarantined.is_empty());
        }
        let ids = ids(&batches);
        self.probe.at_with(Step::BatchesClaimed, &ids);
        self.probe.at_with(Step::BeforeSettleTx, &ids);
        let authority = Authority::RowLock { holder: self.holder };
        let work = SettleWork { authority, run: shift.run, batches: &ids, limits: self.pace.get().limits };
        match self.settle_timed(&work).await {
            Ok(outcomes) => self.tally_rows(&batches, &outcomes),
            Err(error) if error.is_unavailable() => return Err(error.into()),
            // Charged already; given out again, alone, when its retry time has come.
            Err(error) => warn!(batches = ids.len(), %error, "settling failed; the batches come back one by one"),
        }
        self.probe.at_with(Step::Settled, &ids);
        Ok(true)
    }

    fn tally_rows(&self, batches: &[ClaimedBatch], outcomes: &[(BatchId, SettleOutcome)]) {
        for (id, outcome) in outcomes {
            if let Some(batch) = batches.iter().find(|batch| batch.id == *id) {
                self.tally_row(*id, *outcome, batch);
            }
        }
    }

    fn tally_row(&self, id: BatchId, outcome: SettleOutcome, batch: &ClaimedBatch) {
        match outcome {
            SettleOutcome::Settled => {
                self.counters.settled.add(1);
                self.counters.items.add(batch.items.unsigned_abs());
            }
            SettleOutcome::AlreadySettled => debug!(batch.id = %id, "already settled"),
            SettleOutcome::NotClaimable { state } => info!(batch.id = %id, %state, "taken away meanwhile"),
            SettleOutcome::Fenced { .. } | SettleOutcome::ClaimLost => {
                warn!(batch.id = %id, "a fence was met under the row-lock guard: the ledger was configured otherwise meanwhile");
            }
        }
    }
}
