//! The double-entry ledger: the resource that checks who may write.
//!
//! The protocol, in the order a worker follows it:
//!
//! 1. [`Fences::generation`] — is my source of tokens the newest one?
//! 2. *(the lease is acquired elsewhere; this crate does not know leases)*
//! 3. [`Fences::mint`] — a token from the ledger's own counter, where the lock service has none.
//! 4. *(ownership is proven once more: whoever is proven after minting held the lock while minting)*
//! 5. [`Fences::register`] — the ledger remembers the newest holder of the unit; older ones can never write again.
//! 6. [`Settlements::claim`] — charge an attempt, committed before the work, so that a batch that kills its worker is found out.
//! 7. [`Settlements::settle`] — one transaction: the state condition and the fence in one UPDATE, then the effects for exactly
//!    the rows it returned.
//!
//! "Once" comes from the state condition, the unique entry key and the one transaction. "No superseded holder writes" comes from
//! the fence. Lock order everywhere: unit_fence, batches by id, balance stripes by account.
//!
//! What operators take back, and what takes its place, is in [`correct`]: no lease, the state condition and the row lock decide.
//!
//! Each engine has its own SQL, in files and functions of the same names ([`postgres`], [`sqlite`]); decisions are shared from
//! here and from `domain`. `diff postgres/settle.rs sqlite/settle.rs` is the dialect lesson.

pub mod correct;
mod error;
pub mod import;
pub mod job;
pub mod operate;
pub mod postgres;
pub mod retry;
pub mod schedule;
pub mod settle;
pub mod sqlite;
pub mod verify;

pub use error::LedgerError;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use domain::fence::Stamp;
use domain::ids::{BatchId, HolderId, LedgerId, RunId};
use domain::outcome::SettleOutcome;
use domain::step::Probe;
use domain::unit::Unit;
use import::{ImportMode, ImportOutcome, Staged};
use job::JobEnd;
use operate::{BatchDetail, BatchFilter, BatchRow, FenceRow, Operator, RejectionRow, SourceRow, Status, Waiting};
use schedule::{Adopt, Advance, Advanced, Due, Marks, OpenRun, PlannedRun, RunFilter, RunHistory, ScheduleState};
use settle::{Charge, Claim, ClaimRequest, Claimed, SettleWork};
use std::sync::Arc;
use tokio::sync::mpsc;
use verify::VerifyReport;

/// What keeps two instances from working the same batch. A fact of the ledger, not of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    /// A lease per unit, and the fence.
    Lease,
    /// The row lock of the database itself: the shortest path for data in one database.
    RowLock,
    /// The same, one transaction at a time in a unit, by an advisory lock that ends with it. PostgreSQL only.
    AdvisoryXact,
}

impl Guard {
    /// The word used in SQL and configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Guard::Lease => "lease",
            Guard::RowLock => "row-lock",
            Guard::AdvisoryXact => "advisory-xact",
        }
    }

    /// Reads the word back.
    #[must_use]
    pub fn parse(word: &str) -> Option<Guard> {
        [Guard::Lease, Guard::RowLock, Guard::AdvisoryXact].into_iter().find(|g| g.as_str() == word)
    }
}

/// Said to whoever wants them of SQLite.
pub const NO_ADVISORY_LOCKS: &str =
    "worker.guard advisory-xact needs PostgreSQL: SQLite has no advisory locks; take lease or row-lock there";

/// What this ledger is. Differs from the configuration → [`LedgerError::Differs`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meta {
    /// Its identity.
    pub ledger_id: LedgerId,
    /// Into how many units its batches are cut.
    pub partitions: i32,
    /// How its batches are guarded.
    pub guard: Guard,
}

/// How to open a ledger.
#[derive(Debug, Clone)]
pub struct OpenOptions {
    /// `sqlite:FILE`, `postgres://…`. Errors never show it whole: it may carry a password.
    pub url: String,
    /// Units of a ledger that is created now; must equal those of one that exists.
    pub partitions: i32,
    /// Guard of a ledger that is created now; must equal that of one that exists.
    pub guard: Guard,
    /// Whether to bring the schema up to date first (needs the rights to do so).
    pub migrate: bool,
    /// Most connections of the pool.
    pub connections: u32,
}

impl OpenOptions {
    /// For [`connect`]: a ledger that is there, as it is.
    #[must_use]
    pub fn existing(url: &str) -> OpenOptions {
        OpenOptions { url: url.to_owned(), partitions: 1, guard: Guard::Lease, migrate: false, connections: 4 }
    }
}

/// Opens the ledger, creating or migrating it if asked to. Any number of processes may do so at once.
///
/// # Errors
/// [`LedgerError::Config`] for a URL of no known engine, or a guard that the engine does not have; [`LedgerError::Schema`] where the schema is missing, older or newer;
/// [`LedgerError::Differs`] where partitions or guard are not the ledger's; [`LedgerError::Unavailable`].
pub async fn open(options: &OpenOptions) -> Result<Arc<dyn Ledger>, LedgerError> {
    let ledger = connect(options).await?;
    let Meta { partitions, guard, .. } = ledger.meta();
    check_cut((options.partitions, options.guard), (partitions, guard))?;
    Ok(ledger)
}

/// Like [`open`], but takes the ledger as it is: for commands that look at it, and for the one that changes what it is.
///
/// # Errors
/// Those of [`open`], except [`LedgerError::Differs`].
pub async fn connect(options: &OpenOptions) -> Result<Arc<dyn Ledger>, LedgerError> {
    match options.url.split_once(':').map(|(scheme, _)| scheme) {
        Some("postgres" | "postgresql") => Ok(Arc::new(postgres::PostgresLedger::open(options).await?)),
        Some("sqlite") => Ok(Arc::new(sqlite::SqliteLedger::open(options).await?)),
        _ => Err(LedgerError::Config("database.url must begin with sqlite: or postgres:".to_owned())),
    }
}

/// Everything one ledger does.
pub trait Ledger: Imports + Fences + Settlements + Schedules + Jobs + Operations + Send + Sync {
    /// What this ledger is.
    fn meta(&self) -> Meta;
}

/// Files in.
#[async_trait]
pub trait Imports: Send + Sync {
    /// Takes a file in, all or nothing: lines stream in chunks, then its summary. When the channel closes without a summary
    /// the reader failed, and nothing is written. Batches that are already there with the same content are skipped; what is done
    /// about those that are there with other content is said by `mode`, and done in the transaction that inserts the file's.
    ///
    /// After it returned, every batch of the file is in the ledger once: as `pending` or `broken`, or as it was there before.
    ///
    /// # Errors
    /// [`LedgerError::DifferentContent`] where the mode only adds; [`LedgerError::BeingSettled`] where it replaces.
    async fn import(&self, staged: mpsc::Receiver<Staged>, mode: &ImportMode) -> Result<ImportOutcome, LedgerError>;
}

/// Who may write.
#[async_trait]
pub trait Fences: Send + Sync {
    /// The generation of `source`, which must be the newest. A ledger that never had a source adopts this one.
    ///
    /// # Errors
    /// [`LedgerError::SourceSuperseded`] where another source was adopted since; [`LedgerError::Differs`] where the ledger was cut or
    /// guarded anew since it was opened here.
    async fn generation(&self, source: &str) -> Result<i64, LedgerError>;

    /// The next token of the ledger's counter, committed. Greater than every token it ever gave, whatever became of leases.
    async fn mint(&self) -> Result<i64, LedgerError>;

    /// Makes `stamp` the holder of `unit`, unless a newer one is; returns what is stored after it. After it returned `stamp`
    /// itself, no older holder of the unit can commit anything.
    async fn register(&self, unit: Unit, stamp: Stamp) -> Result<Stamp, LedgerError>;

    /// Keeps refused writes, in a transaction of their own.
    async fn record_rejections(&self, rejections: &[Rejection]) -> Result<(), LedgerError>;

    /// Makes `source` the newest one under a higher generation, and takes every unit from whoever holds it.
    async fn adopt_source(&self, source: &str, operator: &Operator) -> Result<i64, LedgerError>;

    /// The newest holder of one unit, a job's too.
    async fn fence(&self, unit: Unit) -> Result<Stamp, LedgerError>;

    /// The newest holder of each unit: of the partitions first, then of one's own jobs.
    async fn fences(&self) -> Result<Vec<FenceRow>, LedgerError>;

    /// Every source that was ever adopted, the newest first.
    async fn sources(&self) -> Result<Vec<SourceRow>, LedgerError>;

    /// Refused writes, the newest first.
    async fn rejections(&self, limit: u32) -> Result<Vec<RejectionRow>, LedgerError>;
}

/// A write that the ledger refused because of its fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rejection {
    /// What was tried.
    pub operation: Operation,
    /// The unit it was for.
    pub unit: Unit,
    /// The batch, where it was for one.
    pub batch: Option<BatchId>,
    /// Who tried.
    pub stamp: Stamp,
    /// Who holds the unit.
    pub stored: Stamp,
}

/// A write that a fence can refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Becoming the holder of a unit.
    Register,
    /// Claiming batches.
    Claim,
    /// Settling a batch.
    Settle,
    /// Handing batches back.
    Release,
    /// Finishing one's own job.
    Job,
}

impl Operation {
    /// The word used in SQL.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Operation::Register => "register",
            Operation::Claim => "claim",
            Operation::Settle => "settle",
            Operation::Release => "release",
            Operation::Job => "job",
        }
    }
}

/// Runs, claims and settlements.
#[async_trait]
pub trait Settlements: Send + Sync {
    /// Opens a run, or joins it: any number of callers with the same key get the same id. One that was missed is opened after all.
    async fn open_run(&self, run: &PlannedRun, holder: HolderId) -> Result<RunId, LedgerError>;

    /// Units that have batches due, pending or being settled by anyone.
    async fn due_units(&self, due: &Due) -> Result<Vec<Unit>, LedgerError>;

    /// Claims batches of a unit for the holder of its lease and charges an attempt, committed when this returns. A repeat
    /// returns what the same stamp already claimed and charges nothing.
    async fn claim(&self, request: &ClaimRequest) -> Result<Claim, LedgerError>;

    /// Charges due batches for the guards without a lease; nobody else is given them until `retry_after` has passed. Nothing: others have
    /// all of it, or the unit.
    async fn charge(&self, request: &Charge) -> Result<Claimed, LedgerError>;

    /// Settles the batches in one transaction and says for each what became of it, in order of id. Refused writes are kept.
    ///
    /// # Errors
    /// Nothing of it is in the ledger: where a reply was lost, the ledger was read again first. Only when that read fails too
    /// ([`LedgerError::Unavailable`]) is it unknown; whoever claims next, we or a newer holder, finds out by the state.
    /// A batch that is missing in the answer is unknown in the same way.
    async fn settle(&self, work: &SettleWork<'_>, probe: &dyn Probe) -> Result<Vec<(BatchId, SettleOutcome)>, LedgerError>;

    /// Hands claimed batches back to `pending`; how many were still ours. `uncharge` takes the attempt back (a drain is not the
    /// batch's fault).
    async fn release(&self, unit: Unit, stamp: Stamp, batches: &[BatchId], uncharge: bool) -> Result<u64, LedgerError>;

    /// Takes the attempt back of batches that this holder charged without a lease and could not settle for no fault of
    /// theirs; how many were still its own.
    async fn uncharge(&self, holder: HolderId, batches: &[BatchId]) -> Result<u64, LedgerError>;
}

/// Which runs there are: planned by schedules, by whichever instance is first.
#[async_trait]
pub trait Schedules: Send + Sync {
    /// How far each schedule is planned, and the time by the database's clock.
    async fn marks(&self) -> Result<Marks, LedgerError>;

    /// The first start of a schedule: its mark is the database's now, so nothing before it is due. Does nothing where there is a mark.
    async fn start_schedule(&self, schedule: &str, definition: &str) -> Result<(), LedgerError>;

    /// Moves a mark and inserts what lies between, in one transaction. Every occurrence is in the ledger once, whoever plans it
    /// again: a run that is open stays as it is, a missed one that is to be run is opened.
    async fn advance(&self, advance: &Advance, planner: HolderId) -> Result<Advanced, LedgerError>;

    /// Makes another definition the schedule's. Its mark stays.
    async fn adopt_schedule(&self, schedule: &str, adopt: Adopt<'_>, operator: &Operator) -> Result<(), LedgerError>;

    /// The newest open run of each set of sources, with the units that have work for it. A batch is due when one of them covers it:
    /// a late one belongs to the open run, or to the next.
    async fn open_work(&self) -> Result<Vec<OpenRun>, LedgerError>;

    /// Notes the end of the runs that made this due, if nothing is due any more; how many they were.
    async fn finish(&self, due: &Due) -> Result<u64, LedgerError>;

    /// Every schedule that ever planned something, at a glance.
    async fn schedule_states(&self) -> Result<Vec<ScheduleState>, LedgerError>;

    /// Schedules with a run whose end nobody has seen, and when the oldest of those was due.
    async fn unfinished(&self) -> Result<Vec<(String, DateTime<Utc>)>, LedgerError>;

    /// Runs, the newest first.
    async fn history(&self, filter: &RunFilter) -> Result<Vec<RunHistory>, LedgerError>;
}

/// Work of other kinds under the same keys, leases and fences.
#[async_trait]
pub trait Jobs: Send + Sync {
    /// The unit whose lease and fence are the job's. Given once per name, for ever.
    async fn job_unit(&self, name: &str) -> Result<Unit, LedgerError>;

    /// Who finished the job for this run, if somebody did.
    async fn job_done(&self, name: &str, run: RunId) -> Result<Option<Stamp>, LedgerError>;

    /// Notes that the job is done for this run, unless a newer holder has it.
    async fn finish_job(&self, name: &str, run: RunId, unit: Unit, mine: Stamp) -> Result<JobEnd, LedgerError>;
}

/// What people look at and do.
#[async_trait]
pub trait Operations: Send + Sync {
    /// Batches by state, of those that are due where given.
    async fn status(&self, due: Option<&Due>) -> Result<Status, LedgerError>;

    /// What has not come to its end.
    async fn waiting(&self) -> Result<Waiting, LedgerError>;

    /// How many batches and items a run has settled so far, by anyone.
    async fn run_settled(&self, run: RunId) -> Result<u64, LedgerError>;

    /// Batches, newest business date first.
    async fn batches(&self, filter: &BatchFilter) -> Result<Vec<BatchRow>, LedgerError>;

    /// One batch with its totals and postings.
    ///
    /// # Errors
    /// [`LedgerError::NoSuchBatch`].
    async fn batch(&self, id: BatchId) -> Result<BatchDetail, LedgerError>;

    /// `quarantined` → `pending` with its attempts reset.
    async fn retry_batch(&self, id: BatchId, operator: &Operator) -> Result<(), LedgerError>;

    /// Anything before `settled` (and not being settled) → `cancelled`; its item identities are free again.
    async fn cancel_batch(&self, id: BatchId, operator: &Operator) -> Result<(), LedgerError>;

    /// `settled` → `reversed`: each of its entries gets one that mirrors it, balances are as before the settlement, and its item
    /// identities are free again. Of several operators at once one reverses it.
    ///
    /// # Errors
    /// [`LedgerError::Illegal`] for the others, and in any other state.
    async fn reverse_batch(&self, id: BatchId, operator: &Operator) -> Result<(), LedgerError>;

    /// `broken` → `pending`; what is left over will be posted to suspense.
    async fn accept_batch(&self, id: BatchId, operator: &Operator) -> Result<(), LedgerError>;

    /// Makes the configuration's partitions and guard the ledger's: units are cut anew, and whoever holds one loses it.
    async fn adopt_config(&self, partitions: i32, guard: Guard, operator: &Operator) -> Result<(), LedgerError>;

    /// Checks every invariant on one snapshot.
    async fn verify(&self) -> Result<VerifyReport, LedgerError>;
}

/// Every migration of this program is applied, and none that it does not know.
fn check_versions(migrations: &sqlx::migrate::Migrator, applied: &[i64]) -> Result<(), LedgerError> {
    let known: Vec<i64> = migrations.iter().map(|migration| migration.version).collect();
    if let Some(missing) = known.iter().find(|version| !applied.contains(version)) {
        return Err(LedgerError::Schema(format!("migration {missing} is not applied")));
    }
    match applied.iter().find(|version| !known.contains(version)) {
        Some(newer) => Err(LedgerError::Schema(format!("migration {newer} is not known to this program"))),
        None => Ok(()),
    }
}

/// An instance that was configured, or opened, otherwise than the ledger is now does nothing with it.
fn check_cut((partitions, guard): (i32, Guard), stored: (i32, Guard)) -> Result<(), LedgerError> {
    let differs = |key, configured: String, stored: String| Err(LedgerError::Differs { key, configured, stored });
    if stored.0 != partitions {
        return differs("worker.partitions", partitions.to_string(), stored.0.to_string());
    }
    if stored.1 != guard {
        return differs("worker.guard", guard.as_str().to_owned(), stored.1.as_str().to_owned());
    }
    Ok(())
}
