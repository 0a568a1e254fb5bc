//! A ledger whose fenced requests are written down.

use super::{FENCED, call, numbers};
use crate::around::{Around, around};
use crate::history::{History, Of, Op, Phase};
use async_trait::async_trait;
use domain::fence::{Fence, Stamp};
use domain::ids::BatchId;
use domain::outcome::SettleOutcome;
use domain::step::Probe;
use domain::unit::Unit;
use ledger::settle::{Authority, Claim, ClaimRequest, SettleWork};
use ledger::{Ledger, LedgerError};
use std::sync::Arc;

/// The ledger, with its requests written down.
#[must_use]
pub fn ledger(ledger: Arc<dyn Ledger>, history: &Arc<History>) -> Arc<dyn Ledger> {
    around(ledger, Recorder(Arc::clone(history)))
}

struct Recorder(Arc<History>);

#[async_trait]
impl Around for Recorder {
    async fn mint(&self, ledger: &dyn Ledger) -> Result<i64, LedgerError> {
        call(&self.0, (Op::Mint, Of::default()), ledger.mint(), |answer| match answer {
            Ok(token) => (Phase::Ok, Of { fence: Some(Fence { generation: 0, token: *token }), ..Of::default() }),
            Err(error) => ended(error, Of::default()),
        })
        .await
    }

    async fn register(&self, ledger: &dyn Ledger, unit: Unit, stamp: Stamp) -> Result<Stamp, LedgerError> {
        let of = under(unit, stamp);
        call(&self.0, (Op::Register, of.clone()), ledger.register(unit, stamp), |answer| match answer {
            Ok(stored) if *stored == stamp => (Phase::Ok, of),
            // a generation that was raised meanwhile is no newer holder: the worker starts over
            Ok(stored) => {
                let raised = stored.fence.generation > stamp.fence.generation;
                let word = if raised { "the generation was raised" } else { FENCED };
                (Phase::Fail, Of { word: word.to_owned(), ..under(unit, *stored) })
            }
            Err(error) => ended(error, of),
        })
        .await
    }

    async fn claim(&self, ledger: &dyn Ledger, request: &ClaimRequest) -> Result<Claim, LedgerError> {
        let of = under(request.unit, request.stamp);
        call(&self.0, (Op::Claim, of.clone()), ledger.claim(request), |answer| match answer {
            Ok(Claim::Work(claimed)) => {
                let batches = claimed.batches.iter().map(|batch| batch.id.0).collect();
                (Phase::Ok, Of { batches, ..of })
            }
            Ok(Claim::Fenced { stored }) => (Phase::Fail, Of { word: FENCED.to_owned(), ..under(request.unit, *stored) }),
            Ok(Claim::ClaimLost) => (Phase::Fail, Of { word: "claim lost".to_owned(), ..of }),
            Err(error) => ended(error, of),
        })
        .await
    }

    async fn settle(
        &self,
        ledger: &dyn Ledger,
        work: &SettleWork<'_>,
        probe: &dyn Probe,
    ) -> Result<Vec<(BatchId, SettleOutcome)>, LedgerError> {
        let of = Of { batches: numbers(work.batches), ..by(work.authority) };
        let sent = ledger.settle(work, probe);
        call(&self.0, (Op::Settle, of.clone()), sent, |answer| match answer {
            Ok(outcomes) => came_to(work, outcomes, of),
            Err(error) => ended(error, of),
        })
        .await
    }

    async fn release(
        &self,
        ledger: &dyn Ledger,
        unit: Unit,
        stamp: Stamp,
        batches: &[BatchId],
        uncharge: bool,
    ) -> Result<u64, LedgerError> {
        let of = Of { batches: numbers(batches), ..under(unit, stamp) };
        let sent = ledger.release(unit, stamp, batches, uncharge);
        call(&self.0, (Op::HandBack, of.clone()), sent, |answer| match answer {
            Ok(0) => (Phase::Fail, of),
            Ok(released) => (Phase::Ok, Of { word: format!("{released} of {}", batches.len()), ..of }),
            Err(error) => ended(error, of),
        })
        .await
    }
}

fn under(unit: Unit, stamp: Stamp) -> Of {
    Of { unit: Some(unit.0), fence: Some(stamp.fence), ..Of::default() }
}

/// Without a lease there is no fence to write down.
fn by(authority: Authority) -> Of {
    match authority {
        Authority::Lease { unit, stamp } => under(unit, stamp),
        Authority::AdvisoryXact { unit, .. } => Of { unit: Some(unit.0), ..Of::default() },
        Authority::RowLock { .. } => Of::default(),
    }
}

/// Only an outage leaves open what a call did: the ledger reads back before it says anything else.
fn ended(error: &LedgerError, of: Of) -> (Phase, Of) {
    let phase = if error.is_unavailable() { Phase::Unknown } else { Phase::Fail };
    (phase, Of { word: error.to_string(), ..of })
}

/// Those that were settled, if there are any, with what became of the others; else those that were refused. One that is missing in
/// the answer is unknown.
fn came_to(work: &SettleWork<'_>, outcomes: &[(BatchId, SettleOutcome)], of: Of) -> (Phase, Of) {
    let those = |meant: fn(SettleOutcome) -> bool| {
        outcomes.iter().filter(|(_, outcome)| meant(*outcome)).map(|(batch, _)| batch.0).collect::<Vec<i64>>()
    };
    let settled = those(|outcome| outcome == SettleOutcome::Settled);
    let fenced = those(|outcome| matches!(outcome, SettleOutcome::Fenced { .. }));
    if !settled.is_empty() {
        let told = |batch: &&BatchId| outcomes.iter().any(|(told, _)| told == *batch);
        let missing = work.batches.iter().filter(|batch| !told(batch)).map(|batch| batch.0).collect();
        (Phase::Ok, Of { batches: settled, refused: fenced, missing, ..of })
    } else if !fenced.is_empty() {
        (Phase::Fail, Of { batches: fenced, word: FENCED.to_owned(), ..of })
    } else if outcomes.len() < work.batches.len() {
        (Phase::Unknown, Of { word: "not every batch is in the answer".to_owned(), ..of })
    } else {
        (Phase::Fail, Of { word: format!("{:?}", outcomes.first().map(|(_, outcome)| outcome)), ..of })
    }
}
