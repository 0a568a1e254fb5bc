//! The settle loop: what the holder of a unit does until nothing of it is due.
//!
//! Loss of the lease is looked at **between** transactions only. A transaction that has begun runs to its own bounded end, and
//! the ledger decides: either no newer holder has registered and it commits, or it is refused.

use crate::grant::Grant;
use crate::metric;
use crate::{Worker, WorkerError};
use domain::ids::{BatchId, RunId};
use domain::outcome::SettleOutcome;
use domain::step::Step;
use lease::{Lease, Release};
use ledger::LedgerError;
use ledger::schedule::Due;
use ledger::settle::{Authority, Claim, ClaimRequest, Claimed, ClaimedBatch, SettleWork};
use metrics::histogram;
use std::collections::BTreeMap;
use std::time::Instant;
use tracing::{Instrument, debug, info, info_span, warn};

/// What a worker is at: which run, how far, and until when.
#[derive(Debug, Clone)]
pub struct Shift {
    /// The run.
    pub run: RunId,
    /// What is due with it.
    pub due: Due,
    /// When to stop taking up work; never if not given.
    pub until: Option<Instant>,
}

/// Whether the grant can go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    GoOn,
    /// Nothing is due, or we were asked to stop, or the grant is over.
    Stop,
}

impl Worker {
    /// Whether to stop taking up work. Looked at between transactions only.
    pub(crate) fn is_to_stop(&self, shift: &Shift) -> bool {
        self.drain.is_asked() || shift.until.is_some_and(|until| Instant::now() >= until)
    }

    /// Works a unit until nothing of it is due, the grant is over, or it is time to stop; then releases it. `false`: nothing was
    /// claimed or given up, though it may be due: an import or a correction can hold all of it for as long as it takes.
    ///
    /// # Errors
    /// Outages; the grant is released (or expires) all the same.
    pub async fn work_unit(&self, grant: Grant, shift: &Shift) -> Result<bool, WorkerError> {
        let fence = grant.stamp.fence;
        let span = info_span!("unit", run.id = %shift.run, lease.name = %grant.lease.name(), fence.generation = fence.generation, fence.token = fence.token, holder.id = %self.holder);
        let held = Instant::now();
        let worked = self.work_grant(&grant, shift).instrument(span).await;
        self.let_go(grant, held).await;
        worked
    }

    /// Releases what was held since `held`.
    pub(crate) async fn let_go(&self, grant: Grant, held: Instant) {
        self.probe.at(Step::BeforeRelease);
        released(grant.lease).await;
        histogram!(metric::LEASE_HOLD).record(held.elapsed());
    }

    async fn work_grant(&self, grant: &Grant, shift: &Shift) -> Result<bool, WorkerError> {
        let mut worked = false;
        loop {
            self.pulse.beat();
            if self.is_to_stop(shift) || self.is_lost(grant) {
                return Ok(worked);
            }
            let Some(Claimed { batches, quarantined }) = self.claim(grant, shift).await? else { return Ok(worked) };
            worked |= !batches.is_empty() || !quarantined.is_empty();
            if batches.is_empty() {
                return Ok(worked);
            }
            self.probe.at_with(Step::BatchesClaimed, &ids(&batches));
            if self.settle_claimed(grant, shift, &batches).await? == Next::Stop {
                return Ok(worked);
            }
        }
    }

    pub(crate) fn is_lost(&self, grant: &Grant) -> bool {
        let Err(lost) = grant.lease.check() else { return false };
        info!(lease.name = %lost.name, why = ?lost.why, step = "guard", "lost: stopped by its own deadline, nothing more is written under this grant");
        self.counters.lost.add(1);
        true
    }

    /// `None`: the grant is over.
    async fn claim(&self, grant: &Grant, shift: &Shift) -> Result<Option<Claimed>, WorkerError> {
        let pace = self.pace.get();
        let request = ClaimRequest {
            unit: grant.unit,
            stamp: grant.stamp,
            run: shift.run,
            due: shift.due.clone(),
            most: pace.batches_per_transaction,
            most_items: pace.items_per_transaction,
            max_attempts: pace.max_attempts,
            limits: pace.limits,
        };
        match self.ledger.claim(&request).await? {
            Claim::Work(claimed) => {
                self.gave_up(&claimed.quarantined, pace.max_attempts);
                self.tried_before(&claimed.batches, pace.max_attempts);
                Ok(Some(claimed))
            }
            Claim::Fenced { .. } => {
                self.fenced("claim", grant.stamp, 1);
                Ok(None)
            }
            Claim::ClaimLost => {
                self.claim_lost(grant);
                Ok(None)
            }
        }
    }

    /// A batch that comes again is worth a line: it, or who had it before, did not end well.
    pub(crate) fn tried_before(&self, claimed: &[ClaimedBatch], max_attempts: i32) {
        debug!(batches = claimed.len(), "claimed");
        for batch in claimed.iter().filter(|batch| batch.attempts > 1) {
            warn!(batch.id = %batch.id, attempt = batch.attempts, max_attempts, "claimed once more: an earlier attempt did not end");
        }
    }

    pub(crate) fn claim_lost(&self, grant: &Grant) {
        warn!(unit = %grant.unit, "the ledger does not know this fence (was it restored?); acquiring anew");
    }

    pub(crate) fn gave_up(&self, quarantined: &[BatchId], max_attempts: i32) {
        self.counters.quarantined.add(quarantined.len() as u64);
        for batch in quarantined {
            warn!(batch.id = %batch, max_attempts, "quarantined: charged too often without settling; see `settled batch show {batch}`");
        }
    }

    async fn settle_claimed(&self, grant: &Grant, shift: &Shift, claimed: &[ClaimedBatch]) -> Result<Next, WorkerError> {
        if self.is_lost(grant) {
            return Ok(Next::Stop);
        }
        let ids = ids(claimed);
        if self.is_to_stop(shift) {
            let released = self.ledger.release(grant.unit, grant.stamp, &ids, true).await?;
            info!(released, "drained: claimed batches handed back without charge");
            return Ok(Next::Stop);
        }
        self.probe.at_with(Step::BeforeSettleTx, &ids);
        let authority = Authority::Lease { unit: grant.unit, stamp: grant.stamp };
        let work = SettleWork { authority, run: shift.run, batches: &ids, limits: self.pace.get().limits };
        let next = match self.settle_timed(&work).await {
            Ok(outcomes) => self.tally(grant, claimed, &outcomes),
            Err(error) if error.is_unavailable() => return Err(error.into()),
            Err(error) => {
                self.hand_back(grant, &ids, error).await?;
                Next::GoOn
            }
        };
        self.probe.at_with(Step::Settled, &ids);
        Ok(next)
    }

    /// The critical section, measured whatever became of it.
    pub(crate) async fn settle_timed(&self, work: &SettleWork<'_>) -> Result<Vec<(BatchId, SettleOutcome)>, LedgerError> {
        let begun = Instant::now();
        let outcomes = self.ledger.settle(work, self.probe.as_ref()).await;
        histogram!(metric::SETTLE_TRANSACTION).record(begun.elapsed());
        outcomes
    }

    /// Nothing of a failed transaction is in the ledger. Its batches keep their charge and come back one by one, so that the one
    /// that cannot be settled is found and the others are not held up. Waiting for somebody else's lock is no batch's fault.
    async fn hand_back(&self, grant: &Grant, ids: &[BatchId], error: LedgerError) -> Result<(), WorkerError> {
        let uncharge = error.is_contention();
        self.ledger.release(grant.unit, grant.stamp, ids, uncharge).await?;
        if uncharge {
            return Err(error.into());
        }
        warn!(unit = %grant.unit, batches = ids.len(), %error, "settling failed; the batches come back one by one");
        Ok(())
    }

    fn tally(&self, grant: &Grant, batches: &[ClaimedBatch], outcomes: &[(BatchId, SettleOutcome)]) -> Next {
        let items: BTreeMap<BatchId, u64> = batches.iter().map(|batch| (batch.id, batch.items.unsigned_abs())).collect();
        let mut fenced = 0;
        let mut next = Next::GoOn;
        for (batch, outcome) in outcomes {
            match *outcome {
                SettleOutcome::Settled => {
                    self.counters.settled.add(1);
                    self.counters.items.add(items.get(batch).copied().unwrap_or(0));
                }
                SettleOutcome::AlreadySettled => debug!(batch.id = %batch, "already settled"),
                SettleOutcome::Fenced { .. } => fenced += 1,
                SettleOutcome::ClaimLost => next = Next::Stop,
                SettleOutcome::NotClaimable { state } => info!(batch.id = %batch, %state, "taken away meanwhile"),
            }
        }
        if fenced > 0 {
            self.fenced("settle", grant.stamp, fenced);
            return Next::Stop;
        }
        if next == Next::Stop {
            self.claim_lost(grant);
        }
        next
    }
}

pub(crate) fn ids(batches: &[ClaimedBatch]) -> Vec<BatchId> {
    batches.iter().map(|batch| batch.id).collect()
}

/// Gives a lease back and says what came of it.
async fn released(lease: Lease) {
    let name = lease.name().clone();
    match lease.release().await {
        Release::Released => debug!(lease.name = %name, "released"),
        Release::NotHeld => info!(lease.name = %name, step = "release", "not held any more: expired or taken over"),
        Release::Unknown => warn!(lease.name = %name, "release not answered; the lease expires by itself"),
    }
}
