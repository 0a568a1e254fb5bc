//! One's own nightly job: other work than settlement under the same run key, lease, fence and drain.
//!
//! What the run key gives: the job is done once per run, whoever starts it how often. What the lease gives: one instance, and a
//! quick takeover; where two believe that they have it, only the newer one's writes count. What the fence gives: once a newer holder has registered, an older one writes nothing —
//! **if the job's own transactions ask for it**. That is the job's part: each of them begins by asking whether the fence of
//! [`Turn::unit`] is still [`Turn::stamp`], with a lock that keeps a newer holder from registering before it ends.
//!
//! A job that was killed is done again from its beginning, by whoever is next: it must bear that, by keys made of business facts or
//! by going on where its own table says it stopped. Nothing is charged for it, as it is for a batch: a job that kills its process is
//! tried again by every process that is started for it. No lock covers another system: what leaves the database needs an
//! idempotency key, and a table in another database needs a fence of its own there.
//!
//! A report in a table of one's own, on PostgreSQL; `crates/worker/examples/nightly_report.rs` has all of it, and SQLite:
//!
//! ```
//! # use async_trait::async_trait;
//! # use sqlx::PgPool;
//! # use worker::{JobError, NightlyJob, Turn};
//! # struct NightlyReport { pool: PgPool }
//! # const CURRENCIES: &str = "";
//! # const REPORT: &str = "";
//! #[async_trait]
//! impl NightlyJob for NightlyReport {
//!     fn name(&self) -> &str { "nightly-report" }
//!
//!     async fn work(&self, turn: &Turn<'_>) -> Result<(), JobError> {
//!         let (day, unit, fence, holder) = (turn.key.business_date, turn.unit.0, turn.stamp.fence, turn.stamp.holder.0);
//!         for currency in sqlx::query_scalar::<_, String>(CURRENCIES).bind(day).fetch_all(&self.pool).await? {
//!             turn.check()?; // between transactions: is a drain asked, is the lease lost?
//!             // A process can freeze right here for longer than its lease: only the database knows whether the job is still ours.
//!             let mut tx = self.pool.begin().await?;
//!             let ours = "SELECT 1 FROM unit_fence WHERE unit = $1 AND (generation, token, holder) = ($2, $3, $4) FOR SHARE";
//!             let ours = sqlx::query(ours).bind(unit).bind(fence.generation).bind(fence.token).bind(holder);
//!             if ours.fetch_optional(&mut *tx).await?.is_none() {
//!                 return Err(JobError::Fenced); // a refused write: kept and counted, and the newer holder does it
//!             }
//!             sqlx::query(REPORT).bind(day).bind(currency).bind(fence.token).execute(&mut *tx).await?;
//!             tx.commit().await?;
//!         }
//!         Ok(())
//!     }
//! }
//! ```

use crate::grant::{Grant, Take};
use crate::{Drain, Worker, WorkerError};
use async_trait::async_trait;
use domain::fence::{Stamp, Standing, standing};
use domain::ids::RunId;
use domain::run::RunKey;
use domain::step::{Probe, Step};
use domain::unit::Unit;
use lease::{Keeper, Lease};
use ledger::job::JobEnd;
use ledger::schedule::PlannedRun;
use ledger::{Operation, Rejection};
use std::error::Error;
use std::time::{Duration, Instant};
use tracing::{info, warn};

/// Work of one's own.
#[async_trait]
pub trait NightlyJob: Send + Sync {
    /// Its name in the ledger, for ever: its lease, its fence and its record of done runs are kept under it.
    fn name(&self) -> &str;

    /// Does the work of one run, from its beginning or from where it stopped. Looks at [`Turn::check`] between its
    /// transactions, and asks for unit and stamp of the turn at the beginning of each.
    ///
    /// # Errors
    /// [`JobError::Stopped`] from [`Turn::check`], [`JobError::Fenced`] when a transaction found its fence taken, else its own.
    async fn work(&self, turn: &Turn<'_>) -> Result<(), JobError>;
}

/// A turn at a job: everything its transactions must ask for.
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
    probe: &'a dyn Probe,
}

impl Turn<'_> {
    /// The guard between two transactions: go on, or stop. That a transaction which has begun is still ours is decided by the fence
    /// that it asks for, never here.
    ///
    /// # Errors
    /// [`JobError::Stopped`].
    pub fn check(&self) -> Result<(), JobError> {
        if self.drain.is_asked() {
            return Err(JobError::Stopped("a drain was asked".to_owned()));
        }
        self.lease.check().map_err(|lost| JobError::Stopped(lost.to_string()))?;
        self.probe.at(Step::BeforeSettleTx);
        Ok(())
    }
}

/// Why a turn ended before the work was done. Every error of the job's own becomes one by `?`; that is why this is none itself.
#[derive(Debug)]
pub enum JobError {
    /// A drain was asked, or the lease is lost: somebody else goes on.
    Stopped(String),
    /// A write was refused: a newer holder has the job.
    Fenced,
    /// The job's own error.
    Failed(Box<dyn Error + Send + Sync>),
}

impl<E: Error + Send + Sync + 'static> From<E> for JobError {
    fn from(error: E) -> Self {
        JobError::Failed(Box::new(error))
    }
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

/// How long to wait for another's turn to end before asking the ledger again whether the job is done.
const PATIENCE: Duration = Duration::from_secs(5);

impl Worker {
    /// Does `job` for the run of `planned`, or waits until somebody else has, until `wait` is over, or until a drain is asked.
    ///
    /// Outages of ledger and lock service are waited out. An error of the job itself is not: it ends this call, and whoever
    /// is next does the job from its beginning.
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
        let (mut outage, mut run) = (None, None);
        while !self.drain.is_asked() {
            let patience = until.map_or(PATIENCE, |until| PATIENCE.min(until.saturating_duration_since(Instant::now())));
            match self.try_job(keeper, job, planned, &mut run, patience).await {
                Ok(Some(outcome)) => return Ok(outcome),
                Ok(None) if until.is_some_and(|until| Instant::now() >= until) => {
                    return Err(WorkerError::JobWaitEnded(job.name().to_owned()));
                }
                Ok(None) => {
                    outage = None;
                    self.pause(self.pace.get().poll).await;
                }
                Err(error) if error.is_outage() && self.drain.is_asked() => break,
                Err(error) => self.sit_out(error, &mut outage, until).await?,
            }
        }
        Ok(JobOutcome::Drained)
    }

    /// `None`: somebody else has it, or it was lost; look again.
    async fn try_job(
        &self,
        keeper: &Keeper,
        job: &dyn NightlyJob,
        planned: &PlannedRun,
        opened: &mut Option<RunId>,
        patience: Duration,
    ) -> Result<Option<JobOutcome>, WorkerError> {
        let run = match *opened {
            Some(run) => run,
            None => *opened.insert(self.ledger.open_run(planned, self.holder).await?),
        };
        if self.ledger.job_done(job.name(), run).await?.is_some() {
            return Ok(Some(JobOutcome::AlreadyDone));
        }
        self.probe.at(Step::RunPlanned);
        let unit = self.ledger.job_unit(job.name()).await?;
        let grant = match self.take_within(keeper, unit, patience).await? {
            Take::Granted(grant) => grant,
            Take::Busy | Take::Lost | Take::Fenced => return Ok(None),
        };
        let held = Instant::now();
        let ended = self.work_turn(&grant, job, planned, run).await;
        self.let_go(*grant, held).await;
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
        let probe = self.probe.as_ref();
        let turn = Turn { run, key: &planned.key, unit, stamp, lease: &grant.lease, drain: &self.drain, probe };
        info!(job = job.name(), run.id = %run, fence = %stamp.fence, holder.id = %self.holder, "job begun");
        match job.work(&turn).await {
            Ok(()) => {}
            Err(JobError::Failed(source)) => return Err(WorkerError::Job { name: job.name().to_owned(), source }),
            Err(JobError::Fenced) => return self.job_fenced(grant).await,
            Err(JobError::Stopped(why)) => {
                let lost = self.is_lost(grant);
                info!(job = job.name(), why, lost, "job stopped before its end");
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
            JobEnd::ClaimLost => {
                self.claim_lost(grant);
                Ok(None)
            }
        }
    }

    /// The job's own write was refused: kept like every other.
    async fn job_fenced(&self, grant: &Grant) -> Result<Option<JobOutcome>, WorkerError> {
        let (unit, stamp) = (grant.unit, grant.stamp);
        let stored = self.ledger.fence(unit).await?;
        match standing(stamp, stored) {
            Standing::Superseded => {
                let refused = Rejection { operation: Operation::Job, unit, batch: None, stamp, stored };
                // Counted before it is kept: it was refused even where there is no room for the record.
                self.fenced("job", stamp, 1);
                self.ledger.record_rejections(&[refused]).await?;
            }
            Standing::Unregistered => self.claim_lost(grant),
            Standing::Current => {
                warn!(unit = unit.0, "the job says that it was fenced, and the fence is still its own: is its condition right?");
                return Err(WorkerError::NotFenced { unit: unit.0 });
            }
        }
        Ok(None)
    }
}
