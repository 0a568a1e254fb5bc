//! Everything that stays what the ledger does.

use super::{Around, Surrounded};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::fence::Stamp;
use domain::ids::{BatchId, HolderId, RunId};
use domain::unit::Unit;
use ledger::import::{ImportMode, ImportOutcome, Staged};
use ledger::job::JobEnd;
use ledger::operate::{BatchDetail, BatchFilter, BatchRow, Operator, Status, Waiting};
use ledger::schedule::{Adopt, Advance, Advanced, Due, Marks, OpenRun, RunFilter, RunHistory, ScheduleState};
use ledger::verify::VerifyReport;
use ledger::{Guard, Imports, Jobs, Ledger, LedgerError, Meta, Operations, Schedules};
use tokio::sync::mpsc;

impl<A: Around> Ledger for Surrounded<A> {
    fn meta(&self) -> Meta {
        self.ledger.meta()
    }
}

#[async_trait]
impl<A: Around> Imports for Surrounded<A> {
    async fn import(&self, staged: mpsc::Receiver<Staged>, mode: &ImportMode) -> Result<ImportOutcome, LedgerError> {
        self.ledger.import(staged, mode).await
    }
}

#[async_trait]
impl<A: Around> Schedules for Surrounded<A> {
    async fn marks(&self) -> Result<Marks, LedgerError> {
        self.ledger.marks().await
    }

    async fn start_schedule(&self, schedule: &str, definition: &str) -> Result<(), LedgerError> {
        self.ledger.start_schedule(schedule, definition).await
    }

    async fn advance(&self, advance: &Advance, planner: HolderId) -> Result<Advanced, LedgerError> {
        self.ledger.advance(advance, planner).await
    }

    async fn adopt_schedule(&self, schedule: &str, adopt: Adopt<'_>, operator: &Operator) -> Result<(), LedgerError> {
        self.ledger.adopt_schedule(schedule, adopt, operator).await
    }

    async fn open_work(&self) -> Result<Vec<OpenRun>, LedgerError> {
        self.ledger.open_work().await
    }

    async fn finish(&self, due: &Due) -> Result<u64, LedgerError> {
        self.ledger.finish(due).await
    }

    async fn schedule_states(&self) -> Result<Vec<ScheduleState>, LedgerError> {
        self.ledger.schedule_states().await
    }

    async fn unfinished(&self) -> Result<Vec<(String, DateTime<Utc>)>, LedgerError> {
        self.ledger.unfinished().await
    }

    async fn history(&self, filter: &RunFilter) -> Result<Vec<RunHistory>, LedgerError> {
        self.ledger.history(filter).await
    }
}

#[async_trait]
impl<A: Around> Jobs for Surrounded<A> {
    async fn job_unit(&self, name: &str) -> Result<Unit, LedgerError> {
        self.ledger.job_unit(name).await
    }

    async fn job_done(&self, name: &str, run: RunId) -> Result<Option<Stamp>, LedgerError> {
        self.ledger.job_done(name, run).await
    }

    async fn finish_job(&self, name: &str, run: RunId, unit: Unit, mine: Stamp) -> Result<JobEnd, LedgerError> {
        self.ledger.finish_job(name, run, unit, mine).await
    }
}

#[async_trait]
impl<A: Around> Operations for Surrounded<A> {
    async fn status(&self, due: Option<&Due>) -> Result<Status, LedgerError> {
        self.ledger.status(due).await
    }

    async fn waiting(&self) -> Result<Waiting, LedgerError> {
        self.ledger.waiting().await
    }

    async fn run_settled(&self, run: RunId) -> Result<u64, LedgerError> {
        self.ledger.run_settled(run).await
    }

    async fn batches(&self, filter: &BatchFilter) -> Result<Vec<BatchRow>, LedgerError> {
        self.ledger.batches(filter).await
    }

    async fn batch(&self, id: BatchId) -> Result<BatchDetail, LedgerError> {
        self.ledger.batch(id).await
    }

    async fn retry_batch(&self, id: BatchId, operator: &Operator) -> Result<(), LedgerError> {
        self.ledger.retry_batch(id, operator).await
    }

    async fn cancel_batch(&self, id: BatchId, operator: &Operator) -> Result<(), LedgerError> {
        self.ledger.cancel_batch(id, operator).await
    }

    async fn reverse_batch(&self, id: BatchId, operator: &Operator) -> Result<(), LedgerError> {
        self.ledger.reverse_batch(id, operator).await
    }

    async fn accept_batch(&self, id: BatchId, operator: &Operator) -> Result<(), LedgerError> {
        self.ledger.accept_batch(id, operator).await
    }

    async fn adopt_config(&self, partitions: i32, guard: Guard, operator: &Operator) -> Result<(), LedgerError> {
        self.ledger.adopt_config(partitions, guard, operator).await
    }

    async fn verify(&self) -> Result<VerifyReport, LedgerError> {
        self.ledger.verify().await
    }
}
