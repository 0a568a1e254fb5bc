//! A worker that lacks a protection, for the arm of a drill in which the damage must appear. No command that settles somebody's books
//! takes one away: `settled drill act-run` does, and only where the configuration says that its environment is a drill.

use crate::around::{Around, around};
use async_trait::async_trait;
use domain::batch::BatchState;
use domain::fence::Stamp;
use domain::ids::BatchId;
use domain::outcome::SettleOutcome;
use domain::step::Probe;
use domain::unit::Unit;
use ledger::settle::{Authority, Claim, ClaimRequest, SettleWork};
use ledger::{Ledger, LedgerError};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The `environment` of a ledger that a drill makes and throws away.
pub const ENVIRONMENT: &str = "drill";

/// What is taken away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Without {
    /// Nobody is superseded: whoever writes presents the fence that the ledger has stored, and so passes for the newest holder.
    ///
    /// A claimed batch bears the fence of its claim, and settles under that one only. So the damage, that a superseded holder commits, needs
    /// a batch that the newer holder has claimed and not settled yet: let there be one, and stop the newer holder before its write.
    Fence,
}

impl Without {
    /// The word on the command line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Without::Fence => "fence",
        }
    }

    /// The ledger as a worker meets it that lacks this.
    #[must_use]
    pub fn ledger(self, ledger: Arc<dyn Ledger>) -> Arc<dyn Ledger> {
        match self {
            Without::Fence => around(ledger, PresentsTheStored),
        }
    }
}

impl std::str::FromStr for Without {
    type Err = serde_json::Error;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        serde_json::from_value(word.into())
    }
}

struct PresentsTheStored;

#[async_trait]
impl Around for PresentsTheStored {
    /// Always told that it is the holder.
    async fn register(&self, ledger: &dyn Ledger, unit: Unit, stamp: Stamp) -> Result<Stamp, LedgerError> {
        ledger.register(unit, stamp).await?;
        Ok(stamp)
    }

    async fn claim(&self, ledger: &dyn Ledger, request: &ClaimRequest) -> Result<Claim, LedgerError> {
        let stamp = ledger.fence(request.unit).await?;
        ledger.claim(&ClaimRequest { stamp, ..request.clone() }).await
    }

    /// What was settled before is not taken for ours, though it bears the stamp that we present.
    async fn settle(
        &self,
        ledger: &dyn Ledger,
        work: &SettleWork<'_>,
        probe: &dyn Probe,
    ) -> Result<Vec<(BatchId, SettleOutcome)>, LedgerError> {
        let Authority::Lease { unit, .. } = work.authority else { return ledger.settle(work, probe).await };
        let (mut open, mut outcomes) = (Vec::new(), Vec::new());
        for batch in work.batches {
            match ledger.batch(*batch).await?.row.state {
                BatchState::Settled => outcomes.push((*batch, SettleOutcome::AlreadySettled)),
                _ => open.push(*batch),
            }
        }
        let authority = Authority::Lease { unit, stamp: ledger.fence(unit).await? };
        outcomes.extend(ledger.settle(&SettleWork { authority, batches: &open, ..*work }, probe).await?);
        outcomes.sort_by_key(|(batch, _)| *batch);
        Ok(outcomes)
    }

    async fn release(
        &self,
        ledger: &dyn Ledger,
        unit: Unit,
        _: Stamp,
        batches: &[BatchId],
        uncharge: bool,
    ) -> Result<u64, LedgerError> {
        let stamp = ledger.fence(unit).await?;
        ledger.release(unit, stamp, batches, uncharge).await
    }
}
