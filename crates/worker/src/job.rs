//! One's own nightly job: other work than settlement under the same run key, lease, fence and drain.
//!
//! What the run key gives: the job is done once per run, whoever starts it how often. What the lease gives: one instance at a
//! time, and a quick takeover. What the fence gives: once a newer holder has registered, an older one writes nothing —
//! **if the job's own writes ask for it**. That is the job's part: every write names [`Turn::unit`] and [`Turn::stamp`] in its
//! condition, as `crates/worker/examples/nightly_report.rs` shows.
//!
//! A job that was killed is done again from its beginning, by whoever is next: it must bear that, by keys made of business facts or
//! by going on where its own table says it stopped. No lock covers another system: what leaves the database needs an idempotency key.

use crate::grant::{Grant, Take};
use crate::settle::released;
use crate::{Drain, Worker, WorkerError};
use async_trait::async_trait;
use domain::fence::Stamp;
use domain::ids::RunId;
use domain::run::RunKey;
use domain::unit::Unit;
use lease::{Keeper, Lease};
use ledger::schedule::{JobEnd, PlannedRun};
use ledger::{Operation, Rejection};
use std::time::{Duration, Instant};
use thiserror::Error;
use tracing::{info, warn};

/// Work of one's own.
#[async_trait]
pub trait NightlyJob: Send + Sync {
    /// Its name in the ledger, for ever: its lease, its fence and its record of done runs are kept under it.
    fn name(&self) -> &str;

    /// Does the work of one run, from its beginning or from where it stopped. Looks at [`Turn::check`] between its
    /// transactions, and puts unit and stamp of the turn into the condition of every write.
    ///
    /// # Errors
    /// [`JobError::Stopped`] from [`Turn::check`], [`JobError::Fenced`] when a write found its fence taken, else its own.
    async fn work(&self, turn: &Turn<'_>) -> Result<(), JobError>;
}

/// A turn at a job: everything its writes must name.
#[derive(Debug)]
pub struct Turn<'a> {
    /// The run's row.
    pub run: RunId,
    /// Which occurrence it is.
    pub key: &'a RunKey,
    /// The job's row in `unit_fence`.
    pub unit: Unit,
    /// Who we are there.
    pub stamp: Stamp,
    lease: &'a Lease,
    drain: &'a Drain,
}

impl Turn<'_> {
    /// The guard between two transactions: go on, or stop. That a transaction which has begun is still ours is decided by the fence
    /// in its condition, never here.
    ///
    /// # Errors
    /// [`JobError::Stopped`].
    pub fn check(&self) -> Result<(), JobError> {
        if self.drain.is_asked() {
            return Err(JobError::Stopped("a drain was asked".to_owned()));
        }
        self.lease.check().map(drop).map_err(|lost| JobError::Stopped(lost.to_string()))
    }
}

/// Why a turn ended before the work was done.
#[derive(Debug, Error)]
pub enum JobError {
    /// A drain was asked, or the lease is lost: somebody else goes on.
    #[error("stopped: {0}")]
    Stopped(String),
    /// A write was refused: a newer holder has the job.
    #[error("fenced: a newer holder has the job")]
    Fenced,
    /// The job's own error.
    #[error(transparent)]
    Failed(#[from] Box<dyn std::error::Error + Send + Sync>),
}

/// How a job ended, for this process. Match it without `_`.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobOutcome {
    /// We did it.
    Done,
    /// It was done by somebody else, or before.
    AlreadyDone,
    /// A drain was asked before it was done.
    Drained,
}

impl Worker {
    /// Does `job` for the run of `planned`, or waits until somebody else has, until `wait` is over, or until a drain is asked.
    ///
    /// # Errors
    /// [`WorkerError::Job`] with the job's own error; [`WorkerError::JobWaitEnded`]; everything that waiting cannot cure.
    pub async fn run_job(
        &self,
        keeper: &Keeper,
        job: &dyn NightlyJob,
        planned: &PlannedRun,
        wait: Option<Duration>,
    ) -> Result<JobOutcome, WorkerError> {
        let until = wait.map(|wait| Instant::now() + wait);
        let mut outage = None;
        loop {
            match self.try_job(keeper, job, planned).await {
                Ok(Some(outcome)) => return Ok(outcome),
                Ok(None) if until.is_some_and(|until| Instant::now() >= until) => {
                    return Err(WorkerError::JobWaitEnded(job.name().to_owned()));
                }
                Ok(None) => self.pause(self.pace.get().poll).await,
                Err(error) => self.sit_out(error, &mut outage, until).await?,
            }
            if self.drain.is_asked() {
                return Ok(JobOutcome::Drained);
            }
        }
    }

    /// `None`: somebody else has it, or it was lost; look again.
    async fn try_job(
        &self,
        keeper: &Keeper,
        job: &dyn NightlyJob,
        planned: &PlannedRun,
    ) -> Result<Option<JobOutcome>, WorkerError> {
        let run = self.ledger.open_run(planned, self.holder).await?;
        if self.ledger.job_done(job.name(), run).await?.is_some() {
            return Ok(Some(JobOutcome::AlreadyDone));
        }
        let unit = self.ledger.job_unit(job.name()).await?;
        let grant = match self.take(keeper, unit).await? {
            Take::Granted(grant) => grant,
            Take::Busy | Take::Lost | Take::Fenced => return Ok(None),
        };
        let ended = self.work_turn(&grant, job, planned, run).await;
        released(grant.lease).await;
        ended
    }

    async fn work_turn(
        &self,
        grant: &Grant,
        job: &dyn NightlyJob,
        planned: &PlannedRun,
        run: RunId,
    ) -> Result<Option<JobOutcome>, WorkerError> {
        // It may have been done while we acquired.
        if self.ledger.job_done(job.name(), run).await?.is_some() {
            return Ok(Some(JobOutcome::AlreadyDone));
        }
        let (unit, stamp) = (grant.unit, grant.stamp);
        let turn = Turn { run, key: &planned.key, unit, stamp, lease: &grant.lease, drain: &self.drain };
        info!(job = job.name(), run.id = %run, fence = %stamp.fence, holder.id = %self.holder, "job begun");
        match job.work(&turn).await {
            Ok(()) => {}
            Err(JobError::Failed(source)) => return Err(WorkerError::Job { name: job.name().to_owned(), source }),
            Err(JobError::Fenced) => return self.job_fenced(grant).await,
            Err(JobError::Stopped(why)) => {
                info!(job = job.name(), why, "job stopped before its end");
                return Ok(None);
            }
        }
        match self.ledger.finish_job(job.name(), run, unit, stamp).await? {
            JobEnd::Done => Ok(Some(JobOutcome::Done)),
            JobEnd::AlreadyDone => Ok(Some(JobOutcome::AlreadyDone)),
            JobEnd::Fenced { .. } => {
                self.fenced("job", stamp, 1);
                Ok(None)
            }
        }
    }

    /// The job's own write was refused: kept like every other.
    async fn job_fenced(&self, grant: &Grant) -> Result<Option<JobOutcome>, WorkerError> {
        let (unit, stamp) = (grant.unit, grant.stamp);
        let stored = self.ledger.fence(unit).await?;
        if stored == stamp {
            warn!(unit = unit.0, "the job says that it was fenced, and the fence is still its own: is its condition right?");
            return Err(WorkerError::NotFenced { unit: unit.0 });
        }
        let refused = Rejection { operation: Operation::Job, unit, batch: None, stamp, stored };
        self.ledger.record_rejections(&[refused]).await?;
        self.fenced("job", stamp, 1);
        Ok(None)
    }
}
