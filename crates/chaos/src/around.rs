//! A ledger with something around the requests that a fence protects: to take a protection away, or to write them down.

mod rest;

use async_trait::async_trait;
use domain::fence::Stamp;
use domain::ids::{BatchId, HolderId, RunId};
use domain::outcome::SettleOutcome;
use domain::step::Probe;
use domain::unit::Unit;
use ledger::operate::{FenceRow, Operator, RejectionRow, SourceRow};
use ledger::schedule::{Due, PlannedRun};
use ledger::settle::{Charge, Claim, ClaimRequest, Claimed, SettleWork};
use ledger::{Fences, Ledger, LedgerError, Rejection, Settlements};
use std::sync::Arc;

/// What is put around a ledger. A method that is not written does what the ledger does.
#[async_trait]
pub trait Around: Send + Sync {
    /// Around [`Fences::mint`].
    async fn mint(&self, ledger: &dyn Ledger) -> Result<i64, LedgerError> {
        ledger.mint().await
    }

    /// Around [`Fences::register`].
    async fn register(&self, ledger: &dyn Ledger, unit: Unit, stamp: Stamp) -> Result<Stamp, LedgerError> {
        ledger.register(unit, stamp).await
    }

    /// Around [`Settlements::claim`].
    async fn claim(&self, ledger: &dyn Ledger, request: &ClaimRequest) -> Result<Claim, LedgerError> {
        ledger.claim(request).await
    }

    /// Around [`Settlements::settle`].
    async fn settle(
        &self,
        ledger: &dyn Ledger,
        work: &SettleWork<'_>,
        probe: &dyn Probe,
    ) -> Result<Vec<(BatchId, SettleOutcome)>, LedgerError> {
        ledger.settle(work, probe).await
    }

    /// Around [`Settlements::release`].
    async fn release(
        &self,
        ledger: &dyn Ledger,
        unit: Unit,
        stamp: Stamp,
        batches: &[BatchId],
        uncharge: bool,
    ) -> Result<u64, LedgerError> {
        ledger.release(unit, stamp, batches, uncharge).await
    }
}

/// The ledger with that around it.
#[must_use]
pub fn around(ledger: Arc<dyn Ledger>, what: impl Around + 'static) -> Arc<dyn Ledger> {
    Arc::new(Surrounded { ledger, what })
}

struct Surrounded<A> {
    ledger: Arc<dyn Ledger>,
    what: A,
}

#[async_trait]
impl<A: Around> Fences for Surrounded<A> {
    async fn generation(&self, source: &str) -> Result<i64, LedgerError> {
        self.ledger.generation(source).await
    }

    async fn mint(&self) -> Result<i64, LedgerError> {
        self.what.mint(self.ledger.as_ref()).await
    }

    async fn register(&self, unit: Unit, stamp: Stamp) -> Result<Stamp, LedgerError> {
        self.what.register(self.ledger.as_ref(), unit, stamp).await
    }

    async fn record_rejections(&self, rejections: &[Rejection]) -> Result<(), LedgerError> {
        self.ledger.record_rejections(rejections).await
    }

    async fn adopt_source(&self, source: &str, operator: &Operator) -> Result<i64, LedgerError> {
        self.ledger.adopt_source(source, operator).await
    }

    async fn fence(&self, unit: Unit) -> Result<Stamp, LedgerError> {
        self.ledger.fence(unit).await
    }

    async fn fences(&self) -> Result<Vec<FenceRow>, LedgerError> {
        self.ledger.fences().await
    }

    async fn sources(&self) -> Result<Vec<SourceRow>, LedgerError> {
        self.ledger.sources().await
    }

    async fn rejections(&self, limit: u32) -> Result<Vec<RejectionRow>, LedgerError> {
        self.ledger.rejections(limit).await
    }
}

#[async_trait]
impl<A: Around> Settlements for Surrounded<A> {
    async fn open_run(&self, run: &PlannedRun, holder: HolderId) -> Result<RunId, LedgerError> {
        self.ledger.open_run(run, holder).await
    }

    async fn due_units(&self, due: &Due) -> Result<Vec<Unit>, LedgerError> {
        self.ledger.due_units(due).await
    }

    async fn claim(&self, request: &ClaimRequest) -> Result<Claim, LedgerError> {
        self.what.claim(self.ledger.as_ref(), request).await
    }

    async fn charge(&self, request: &Charge) -> Result<Claimed, LedgerError> {
        self.ledger.charge(request).await
    }

    async fn settle(&self, work: &SettleWork<'_>, probe: &dyn Probe) -> Result<Vec<(BatchId, SettleOutcome)>, LedgerError> {
        self.what.settle(self.ledger.as_ref(), work, probe).await
    }

    async fn release(&self, unit: Unit, stamp: Stamp, batches: &[BatchId], uncharge: bool) -> Result<u64, LedgerError> {
        self.what.release(self.ledger.as_ref(), unit, stamp, batches, uncharge).await
    }

    async fn uncharge(&self, holder: HolderId, batches: &[BatchId]) -> Result<u64, LedgerError> {
        self.ledger.uncharge(holder, batches).await
    }
}
