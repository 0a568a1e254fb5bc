//! The settle loop: what the holder of a unit does until nothing of it is due.
//!
//! Loss of the lease is looked at **between** transactions only. A transaction that has begun runs to its own bounded end, and
//! the ledger decides: either no newer holder has registered and it commits, or it is refused.

use crate::grant::Grant;
use crate::report::Counters;
use crate::{Worker, WorkerError};
use chrono::NaiveDate;
use domain::ids::{BatchId, RunId};
use domain::outcome::SettleOutcome;
use domain::step::Step;
use lease::Release;
use ledger::LedgerError;
use ledger::settle::{Authority, Claim, ClaimRequest, ClaimedBatch, SettleWork};
use std::collections::BTreeMap;
use tracing::{Instrument, debug, info, info_span, warn};

/// Whether the grant can go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    GoOn,
    /// Nothing is due, or we were asked to stop, or the grant is over.
    Stop,
}

impl Worker {
    /// Works a unit until nothing of it is due on or before `upto`, the grant is over, or a drain is asked; then releases it.
    ///
    /// # Errors
    /// Outages; the grant is released (or expires) all the same.
    pub async fn work_unit(&self, grant: Grant, run: RunId, upto: NaiveDate) -> Result<(), WorkerError> {
        let fence = grant.stamp.fence;
        let span = info_span!("unit", run.id = %run, lease.name = %grant.lease.name(), fence.generation = fence.generation, fence.token = fence.token, holder.id = %self.holder);
        let worked = self.work_grant(&grant, run, upto).instrument(span).await;
        self.probe.at(Step::BeforeRelease);
        let name = grant.lease.name().clone();
        match grant.lease.release().await {
            Release::Released => debug!(lease.name = %name, "released"),
            Release::NotHeld => info!(lease.name = %name, step = "release", "not held any more: expired or taken over"),
            Release::Unknown => warn!(lease.name = %name, "release not answered; the lease expires by itself"),
        }
        worked
    }

    async fn work_grant(&self, grant: &Grant, run: RunId, upto: NaiveDate) -> Result<(), WorkerError> {
        loop {
            if self.drain.is_asked() || self.is_lost(grant) {
                return Ok(());
            }
            let claimed = match self.claim(grant, run, upto).await? {
                Some(claimed) if !claimed.is_empty() => claimed,
                Some(_) | None => return Ok(()),
            };
            self.probe.at_with(Step::BatchesClaimed, &ids(&claimed));
            if self.settle_claimed(grant, run, &claimed).await? == Next::Stop {
                return Ok(());
            }
        }
    }

    fn is_lost(&self, grant: &Grant) -> bool {
        let Err(lost) = grant.lease.check() else { return false };
        info!(lease.name = %lost.name, why = ?lost.why, step = "guard", "lost: stopped by its own deadline, nothing more is written under this grant");
        Counters::add(&self.counters.lost, 1);
        true
    }

    /// `None`: the grant is over.
    async fn claim(&self, grant: &Grant, run: RunId, upto: NaiveDate) -> Result<Option<Vec<ClaimedBatch>>, WorkerError> {
        let request = ClaimRequest {
            unit: grant.unit,
            stamp: grant.stamp,
            run,
            upto,
            most: self.settings.batches_per_transaction,
            max_attempts: self.settings.max_attempts,
            limits: self.settings.limits,
        };
        match self.ledger.claim(&request).await? {
            Claim::Work(claimed) => {
                self.gave_up(&claimed.quarantined);
                Ok(Some(claimed.batches))
            }
            Claim::Fenced { stored } => {
                self.fenced("claim", grant.stamp, stored, 1);
                Ok(None)
            }
            Claim::ClaimLost => {
                warn!(unit = %grant.unit, "the ledger does not know this fence (was it restored?); acquiring anew");
                Ok(None)
            }
        }
    }

    pub(crate) fn gave_up(&self, quarantined: &[BatchId]) {
        Counters::add(&self.counters.quarantined, quarantined.len() as u64);
        for batch in quarantined {
            warn!(batch.id = %batch, max_attempts = self.settings.max_attempts, "quarantined: charged too often without settling; see `settled batch show {batch}`");
        }
    }

    async fn settle_claimed(&self, grant: &Grant, run: RunId, claimed: &[ClaimedBatch]) -> Result<Next, WorkerError> {
        let mut rest = claimed;
        while !rest.is_empty() {
            if self.is_lost(grant) {
                return Ok(Next::Stop);
            }
            if self.drain.is_asked() {
                let released = self.ledger.release(grant.unit, grant.stamp, &ids(rest), true).await?;
                info!(released, "drained: claimed batches handed back without charge");
                return Ok(Next::Stop);
            }
            let (now, later) = rest.split_at(fitting(rest, self.settings.items_per_transaction));
            self.probe.at_with(Step::BeforeSettleTx, &ids(now));
            if self.settle_once(grant, run, now).await? == Next::Stop {
                return Ok(Next::Stop);
            }
            self.probe.at_with(Step::Settled, &ids(now));
            rest = later;
        }
        Ok(Next::GoOn)
    }

    async fn settle_once(&self, grant: &Grant, run: RunId, batches: &[ClaimedBatch]) -> Result<Next, WorkerError> {
        let ids = ids(batches);
        let authority = Authority::Lease { unit: grant.unit, stamp: grant.stamp };
        let work = SettleWork { authority, run, batches: &ids, limits: self.settings.limits };
        match self.ledger.settle(&work, self.probe.as_ref()).await {
            Ok(outcomes) => Ok(self.tally(grant, batches, &outcomes)),
            Err(error) if error.is_unavailable() => Err(error.into()),
            Err(error) => {
                self.hand_back(grant, &ids, &error).await?;
                Ok(Next::GoOn)
            }
        }
    }

    /// Nothing of a failed transaction is in the ledger. Its batches keep their charge and come back one by one, so that the one
    /// that cannot be settled is found and the others are not held up.
    async fn hand_back(&self, grant: &Grant, ids: &[BatchId], error: &LedgerError) -> Result<(), WorkerError> {
        warn!(unit = %grant.unit, batches = ids.len(), %error, "settling failed; the batches come back one by one");
        self.ledger.release(grant.unit, grant.stamp, ids, false).await?;
        Ok(())
    }

    fn tally(&self, grant: &Grant, batches: &[ClaimedBatch], outcomes: &[(BatchId, SettleOutcome)]) -> Next {
        let items: BTreeMap<BatchId, u64> = batches.iter().map(|batch| (batch.id, batch.items.unsigned_abs())).collect();
        let mut fenced = 0;
        let mut next = Next::GoOn;
        for (batch, outcome) in outcomes {
            match *outcome {
                SettleOutcome::Settled => {
                    Counters::add(&self.counters.settled, 1);
                    Counters::add(&self.counters.items, items.get(batch).copied().unwrap_or(0));
                }
                SettleOutcome::AlreadySettled => debug!(batch.id = %batch, "already settled"),
                SettleOutcome::Fenced { .. } => fenced += 1,
                SettleOutcome::ClaimLost => next = Next::Stop,
                SettleOutcome::NotClaimable { state } => info!(batch.id = %batch, %state, "taken away meanwhile"),
            }
        }
        if fenced == 0 {
            return next;
        }
        Counters::add(&self.counters.fenced, fenced);
        warn!(step = "settle", fence = %grant.stamp.fence, unit = %grant.unit, writes = fenced, "fenced: a newer holder has registered, the ledger refused");
        Next::Stop
    }
}

pub(crate) fn ids(batches: &[ClaimedBatch]) -> Vec<BatchId> {
    batches.iter().map(|batch| batch.id).collect()
}

/// How many of the first batches stay within `items` together; at least one.
pub(crate) fn fitting(batches: &[ClaimedBatch], items: i64) -> usize {
    let mut sum = 0_i64;
    let within = batches.iter().take_while(|batch| {
        sum = sum.saturating_add(batch.items);
        sum <= items
    });
    within.count().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(items: i64) -> ClaimedBatch {
        ClaimedBatch { id: BatchId(1), items, attempts: 1 }
    }

    #[test]
    fn a_transaction_is_bounded_in_items_but_never_empty() {
        assert_eq!(fitting(&[batch(10), batch(10), batch(10)], 20), 2);
        assert_eq!(fitting(&[batch(500), batch(10)], 20), 1);
        assert_eq!(fitting(&[batch(10), batch(i64::MAX)], 20), 1);
        assert_eq!(fitting(&[batch(0), batch(0)], 20), 2);
    }
}
