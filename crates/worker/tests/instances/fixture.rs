//! Ledgers with something to settle, and instances that work on them.

use async_trait::async_trait;
use chrono::NaiveDate;
use domain::ids::{HolderId, RunId};
use domain::item::{FeeMode, Item, ItemKind};
use domain::money::Currency;
use domain::run::RunKey;
use domain::step::{Probe, Step};
use domain::summary::{BatchSummary, FileSummary, StagedItem};
use domain::totals::{Counted, Declared, Remits, judge};
use lease::{Connector, Keeper, KeeperSettings, PostgresConnector, SqliteConnector};
use ledger::import::{ImportMode, Staged};
use ledger::operate::Operator;
use ledger::schedule::PlannedRun;
use ledger::{Guard, Ledger, OpenOptions};
use sqlx::{AssertSqlSafe, PgPool, SqlitePool};
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use worker::{JobError, JobOutcome, NightlyJob, Turn, Worker, WorkerError, WorkerSettings};

/// A test of the suite, by its name.
pub type Named = (&'static str, Test);
/// Given a place without a ledger.
pub type Test = fn(Place) -> Pin<Box<dyn Future<Output = ()>>>;

/// The tests of a module by their names, for [`Named`].
#[macro_export]
macro_rules! tests {
    ($($name:ident),* $(,)?) => {
        &[$((concat!(module_path!(), "::", stringify!($name)), |place| Box::pin($name(place)))),*]
    };
}

/// Nothing here takes longer on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// Long enough that no lease is over while a test runs.
pub const FOR_EVER: Duration = Duration::from_secs(60);
/// As short as a busy machine with two cores keeps reliably.
pub const SHORT: Duration = Duration::from_secs(2);

pub fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().expect("a runtime");
    runtime.block_on(async { tokio::time::timeout(Duration::from_secs(300), test).await.expect("within five minutes") });
}

pub fn day() -> NaiveDate {
    NaiveDate::from_ymd_opt(2026, 3, 2).expect("a date")
}

/// The settlement run of the day.
pub fn night() -> PlannedRun {
    PlannedRun::by_hand(RunKey::manual(day()))
}

pub fn holder() -> HolderId {
    HolderId(uuid::Uuid::new_v4())
}

pub fn operator() -> Operator {
    Operator { name: "olga".to_owned(), reason: "a test".to_owned() }
}

/// Impatient, so that a test need not wait.
pub fn settings() -> WorkerSettings {
    WorkerSettings {
        poll: Duration::from_millis(40),
        idle_poll: Duration::from_millis(40),
        batches_per_transaction: 2,
        ..WorkerSettings::default()
    }
}

/// Where a ledger can be made: an empty database, or a path in an empty folder.
#[derive(Debug, Clone)]
pub struct Place {
    pub url: String,
    /// Removed with the last place in it.
    _folder: Option<Arc<tempfile::TempDir>>,
}

impl Place {
    pub fn sqlite() -> Place {
        let folder = tempfile::tempdir().expect("a folder");
        Place { url: format!("sqlite:{}", folder.path().join("settled.db").display()), _folder: Some(Arc::new(folder)) }
    }

    pub fn at(url: &str) -> Place {
        Place { url: url.to_owned(), _folder: None }
    }

    fn sqlite_file(&self) -> Option<&Path> {
        self.url.strip_prefix("sqlite:").map(Path::new)
    }

    pub fn connector(&self) -> Box<dyn Connector> {
        match self.sqlite_file() {
            Some(file) => Box::new(SqliteConnector::new(file)),
            None => Box::new(PostgresConnector::new(&self.url).expect("a URL")),
        }
    }

    /// A ledger of two units.
    pub async fn ledger(&self, guard: Guard) -> Arc<dyn Ledger> {
        let options = OpenOptions { url: self.url.clone(), partitions: 2, guard, migrate: true, connections: 6 };
        ledger::open(&options).await.expect("a ledger")
    }

    /// An instance with a pool and a keeper of its own.
    pub async fn instance(&self, ttl: Duration) -> Worker {
        let holder = holder();
        let keeper = Keeper::start(self.connector(), holder, KeeperSettings::new(ttl)).expect("a keeper");
        Worker::new(self.ledger(Guard::Lease).await, Some(keeper), holder, settings())
    }

    /// The only column of a query, as text.
    pub async fn texts(&self, sql: &str) -> Vec<String> {
        let query = AssertSqlSafe(sql.to_owned());
        let texts = match self.sqlite_file() {
            Some(_) => sqlx::query_scalar(query).fetch_all(&SqlitePool::connect(&self.url).await.expect("the file")).await,
            None => sqlx::query_scalar(query).fetch_all(&PgPool::connect(&self.url).await.expect("the database")).await,
        };
        texts.unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// Batches as `state attempts`, in order of id.
    pub async fn batches(&self) -> Vec<String> {
        self.texts("SELECT state || ' ' || attempts FROM settlement_batch ORDER BY id").await
    }

    pub async fn assert_books_hold(&self) {
        let report = self.ledger(Guard::Lease).await.verify().await.expect("a report");
        assert!(report.ok, "{:#?}", report.checks);
    }
}

/// Imports so many batches of the day, of one charge each.
pub async fn import(ledger: &dyn Ledger, file: &str, batches: usize) {
    let currency = Currency::parse("EUR").expect("a currency");
    let (mut items, mut summaries) = (Vec::new(), Vec::new());
    for (index, line_no) in (0..).zip(1..).take(batches) {
        let (merchant, dedupe_key) = ("anna".to_owned(), format!("{file}/{line_no}"));
        let item = Item {
            line_no,
            kind: ItemKind::Charge,
            merchant,
            currency,
            gross_minor: 10_00,
            fee_minor: 30,
            residual_micro: 0,
            dedupe_key,
        };
        let mut counted = Counted::default();
        counted.add(&item);
        let judged = judge(currency, counted, Declared::default(), Remits::Never, FeeMode::Withheld, 0);
        let mut digest = [0; 32];
        digest[..8].copy_from_slice(&line_no.to_be_bytes());
        summaries.push(BatchSummary {
            external_batch_id: format!("{file} {line_no}"),
            business_date: day(),
            fee_mode: FeeMode::Withheld,
            digest,
            first_line: line_no,
            totals: vec![judged.expect("64 bits").0],
            breaks: Vec::new(),
        });
        items.push(StagedItem { batch: index, item });
    }
    let mut sha256 = [0; 32];
    sha256[..file.len()].copy_from_slice(file.as_bytes());
    let summary = FileSummary {
        name: file.to_owned(),
        sha256,
        source: "acquirer".to_owned(),
        profile: "test".to_owned(),
        bytes: 1,
        items: items.len() as u64,
        batches: summaries,
        warnings: Vec::new(),
    };
    let (sender, receiver) = tokio::sync::mpsc::channel(2);
    sender.send(Staged::Items(items)).await.expect("room");
    sender.send(Staged::End(Box::new(summary))).await.expect("room");
    drop(sender);
    ledger.import(receiver, &ImportMode::add("olga")).await.expect("an import");
}

/// Waits until something is so.
pub async fn until(what: &str, mut so: impl AsyncFnMut() -> bool) {
    let begun = Instant::now();
    while !so().await {
        assert!(begun.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Does something whenever a step is reached.
pub struct At<F>(pub Step, pub F);

impl<F: Fn() + Send + Sync> Probe for At<F> {
    fn at(&self, step: Step) {
        if step == self.0 {
            self.1();
        }
    }
}

/// A turn's work in a test.
pub type Working<'a> = Pin<Box<dyn Future<Output = Result<(), JobError>> + Send + 'a>>;

/// A job that is a closure.
pub struct Job<F>(F);

pub fn job<F: for<'a> Fn(&'a Turn<'a>) -> Working<'a> + Send + Sync>(work: F) -> Job<F> {
    Job(work)
}

#[async_trait]
impl<F: for<'a> Fn(&'a Turn<'a>) -> Working<'a> + Send + Sync> NightlyJob for Job<F> {
    fn name(&self) -> &str {
        "report"
    }

    async fn work(&self, turn: &Turn<'_>) -> Result<(), JobError> {
        (self.0)(turn).await
    }
}

/// What one instance makes of a job for the night.
pub async fn run_job(worker: &Worker, job: &dyn NightlyJob) -> Result<JobOutcome, WorkerError> {
    worker.run_job(worker.keeper.as_ref().expect("a keeper"), job, &night(), None).await
}

/// Who did the job for the night, if somebody did.
pub async fn done_by(worker: &Worker) -> Option<HolderId> {
    let run: RunId = worker.ledger.open_run(&night(), worker.holder).await.expect("the run");
    worker.ledger.job_done("report", run).await.expect("an answer").map(|stamp| stamp.holder)
}

/// An instance that serves.
pub struct Serving {
    pub worker: Arc<Worker>,
    pub wake: Arc<Notify>,
    task: JoinHandle<Result<(), WorkerError>>,
}

pub fn serve(worker: Worker) -> Serving {
    let (worker, wake) = (Arc::new(worker), Arc::new(Notify::new()));
    let task = {
        let (worker, wake) = (worker.clone(), wake.clone());
        tokio::spawn(async move { worker.serve(wake).await })
    };
    Serving { worker, wake, task }
}

impl Serving {
    /// What it comes to by itself.
    pub async fn ended(self) -> Result<(), WorkerError> {
        tokio::time::timeout(PATIENCE, self.task).await.expect("an end").expect("no panic")
    }

    /// Drains it.
    pub async fn drained(self) -> Result<(), WorkerError> {
        self.worker.drain.ask();
        self.ended().await
    }
}
