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
    /// Charges and settles one handful of due batches of any unit. `false`: others have all of it, or its time to be tried again has not come.
    ///
    /// # Errors
    /// Outages.
    pub async fn work_rows(&self, shift: &Shift) -> Result<bool, WorkerError> {
        let pace = self.pace.get();
        let charge = Charge {
            holder: self.holder,
            run: shift.run,
            due: shift.due.clone(),
            most: pace.batches_per_transaction,
            most_items: pace.items_per_transaction,
            max_attempts: pace.max_attempts,
            // What was charged settles in one transaction, so for that long it may still be in hand.
            retry_after: pace.limits.total,
            limits: pace.limits,
        };
        let Claimed { batches, quarantined } = self.ledger.charge(&charge).await?;
        self.gave_up(&quarantined, pace.max_attempts);
        self.tried_before(&batches, pace.max_attempts);
        if batches.is_empty() {
            return Ok(!quarantined.is_empty());
        }
        let ids = ids(&batches);
        self.probe.at_with(Step::BatchesClaimed, &ids);
        self.probe.at_with(Step::BeforeSettleTx, &ids);
        let authority = Authority::RowLock { holder: self.holder };
        let work = SettleWork { authority, run: shift.run, batches: &ids, limits: pace.limits };
        match self.settle_timed(&work).await {
            Ok(outcomes) => self.tally_rows(&batches, &outcomes),
            Err(error) if error.is_unavailable() => return Err(error.into()),
            // Waiting for somebody else's lock is no batch's fault.
            Err(error) if error.is_contention() => {
                self.ledger.uncharge(self.holder, &ids).await?;
                return Err(error.into());
            }
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
