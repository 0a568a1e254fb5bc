//! The same work under the row-lock guard: no lease, no fence. The database's own row lock is the claim.
//!
//! The shortest path for effects that live in one database. There is no lease to lose, so there is nothing to refuse: a frozen
//! worker that wakes finds its batch settled. Compare with `settle.rs`.

use crate::report::Counters;
use crate::settle::{fitting, ids};
use crate::{Worker, WorkerError};
use chrono::NaiveDate;
use domain::ids::{BatchId, RunId};
use domain::outcome::SettleOutcome;
use domain::step::Step;
use ledger::settle::{Authority, Charge, ClaimedBatch, SettleWork};
use tracing::{debug, info, warn};

impl Worker {
    /// Charges and settles one handful of due batches of any unit. `false`: nobody else's turn has come yet, or nothing is due.
    ///
    /// # Errors
    /// Outages.
    pub async fn work_rows(&self, run: RunId, upto: NaiveDate) -> Result<bool, WorkerError> {
        let charge = Charge {
            holder: self.holder,
            run,
            upto,
            most: self.settings.batches_per_transaction,
            max_attempts: self.settings.max_attempts,
            retry_after: self.settings.limits.total,
            limits: self.settings.limits,
        };
        let claimed = self.ledger.charge(&charge).await?;
        self.gave_up(&claimed.quarantined);
        if claimed.batches.is_empty() {
            return Ok(!claimed.quarantined.is_empty());
        }
        self.probe.at_with(Step::BatchesClaimed, &ids(&claimed.batches));
        let mut rest = claimed.batches.as_slice();
        while !rest.is_empty() {
            let (now, later) = rest.split_at(fitting(rest, self.settings.items_per_transaction));
            self.probe.at_with(Step::BeforeSettleTx, &ids(now));
            self.settle_rows(run, now).await?;
            self.probe.at_with(Step::Settled, &ids(now));
            rest = later;
        }
        Ok(true)
    }

    async fn settle_rows(&self, run: RunId, batches: &[ClaimedBatch]) -> Result<(), WorkerError> {
        let ids = ids(batches);
        let authority = Authority::RowLock { holder: self.holder };
        let work = SettleWork { authority, run, batches: &ids, limits: self.settings.limits };
        match self.ledger.settle(&work, self.probe.as_ref()).await {
            Ok(outcomes) => outcomes.iter().zip(batches).for_each(|((id, outcome), batch)| self.tally_row(*id, *outcome, batch)),
            Err(error) if error.is_unavailable() => return Err(error.into()),
            // Charged already; given out again, alone, when its retry time has come.
            Err(error) => warn!(batches = ids.len(), %error, "settling failed; the batches come back one by one"),
        }
        Ok(())
    }

    fn tally_row(&self, id: BatchId, outcome: SettleOutcome, batch: &ClaimedBatch) {
        match outcome {
            SettleOutcome::Settled => {
                Counters::add(&self.counters.settled, 1);
                Counters::add(&self.counters.items, batch.items.unsigned_abs());
            }
            SettleOutcome::AlreadySettled => debug!(batch.id = %id, "already settled"),
            SettleOutcome::NotClaimable { state } => info!(batch.id = %id, %state, "taken away meanwhile"),
            SettleOutcome::Fenced { .. } | SettleOutcome::ClaimLost => {
                warn!(batch.id = %id, "a fence was met under the row-lock guard: the ledger was configured otherwise meanwhile");
            }
        }
    }
}
