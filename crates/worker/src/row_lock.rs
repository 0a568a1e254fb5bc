//! The same work under the guards that have no lease and no fence: the database's own lock is the claim. Of the row (row-lock), or of the
//! unit for one transaction (advisory-xact).
//!
//! The shortest path for effects that live in one database. There is no lease to lose, so there is nothing to refuse: a frozen
//! worker that wakes finds its batch settled. Compare with `settle.rs`.

use crate::settle::{Shift, ids};
use crate::{Worker, WorkerError};
use domain::ids::BatchId;
use domain::outcome::SettleOutcome;
use domain::step::Step;
use domain::unit::Unit;
use ledger::settle::{Authority, Charge, Claimed, ClaimedBatch, SettleWork};
use ledger::{Guard, LedgerError};
use tracing::{debug, info, warn};

impl Worker {
    /// Charges and settles one handful of due batches: of any unit, or of the first of these whose lock is free and that gives something
    /// out. `false`: others have all of it, or its time to be tried again has not come.
    ///
    /// # Errors
    /// Outages.
    pub async fn work_rows(&self, units: &[Unit], shift: &Shift) -> Result<bool, WorkerError> {
        match self.ledger.meta().guard {
            Guard::Lease | Guard::RowLock => self.work_handful(None, shift).await,
            Guard::AdvisoryXact => {
                for unit in units {
                    if self.is_to_stop(shift) || self.work_handful(Some(*unit), shift).await? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
        }
    }

    async fn work_handful(&self, unit: Option<Unit>, shift: &Shift) -> Result<bool, WorkerError> {
        let pace = self.pace.get();
        let charge = Charge {
            holder: self.holder,
            unit,
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
        let holder = self.holder;
        let authority = unit.map_or(Authority::RowLock { holder }, |unit| Authority::AdvisoryXact { holder, unit });
        let work = SettleWork { authority, run: shift.run, batches: &ids, limits: pace.limits };
        match self.settle_timed(&work).await {
            Ok(outcomes) => self.tally_rows(&batches, &outcomes),
            Err(error) if error.is_unavailable() => return Err(error.into()),
            // Waiting for somebody else's lock is no batch's fault.
            Err(error) if error.is_contention() => {
                self.ledger.uncharge(self.holder, &ids).await?;
                // Somebody else is in the unit just now: there are others.
                return if matches!(error, LedgerError::Busy(_)) { Ok(false) } else { Err(error.into()) };
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
                warn!(batch.id = %id, "a fence was met under a guard without one: the ledger was configured otherwise meanwhile");
            }
        }
    }
}
