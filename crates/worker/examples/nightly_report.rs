//! A nightly job of one's own: what a business date settled in each currency, in a table of its own beside the ledger.
//!
//! `cargo run -p worker --example nightly_report -- sqlite:settled.db --business-date 2026-01-05` (or `postgres://…`), after
//! `settled run`, on as many instances at once as you like: one of them does it, and where that one dies or freezes, another. Copy
//! it, leave out the engine you do not have, and put your own statements where the report is. What a job brings itself:
//!
//! - **It asks first.** Every transaction begins with the question whether the job is still ours, and keeps the answer true until it
//!   ends. A look at the lease is no substitute: a process can freeze behind it for longer than the lease lasts.
//! - **It bears a repeat.** A job that was killed is done again from its beginning, by whoever is next, and nothing is charged for
//!   it as it is for batches. So rows have keys of business facts, and a repeat writes the same rows.
//! - **It looks up between transactions**, which are short: a drain ends within one, and a takeover waits for one.
//!
//! **A table in another database** cannot ask this ledger. Keep a row `job_fence (job, generation, token, holder)` there, and begin
//! `work` by registering: `UPDATE job_fence SET generation = $2, token = $3, holder = $4 WHERE job = $1 AND ((generation, token) <
//! ($2, $3) OR (generation, token, holder) = ($2, $3, $4))`; no row is [`JobError::Fenced`]. Then ask that row as these ask
//! `unit_fence`. What is no database (a mail, a payment) needs an idempotency key: no lock reaches there.

use async_trait::async_trait;
use chrono::{NaiveDate, Utc};
use domain::ids::HolderId;
use domain::run::RunKey;
use lease::{Connector, Keeper, KeeperSettings, PostgresConnector, SqliteConnector};
use ledger::OpenOptions;
use ledger::schedule::PlannedRun;
use sqlx::postgres::PgConnectOptions;
use sqlx::{PgPool, SqlitePool};
use std::error::Error;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use worker::{JobError, JobOutcome, NightlyJob, Turn, Worker, WorkerSettings};

/// How long a dead instance keeps the next one waiting.
const TTL: Duration = Duration::from_secs(10);

/// FOR SHARE: a newer holder that wants to register waits until we have committed; or we wait for it, and get no row.
const OURS_ON_POSTGRES: &str =
    "SELECT 1 FROM unit_fence WHERE unit = $1 AND (generation, token, holder) = ($2, $3, $4) FOR SHARE";
/// The same: behind BEGIN IMMEDIATE nobody else writes, so nobody registers.
const OURS_ON_SQLITE: &str = "SELECT 1 FROM unit_fence WHERE unit = $1 AND (generation, token, holder) = ($2, $3, $4)";

/// Yours is better made by a migration. The token tells which holder wrote a row.
pub(crate) const TABLE: &str = "CREATE TABLE IF NOT EXISTS nightly_report (
    business_date DATE NOT NULL, currency TEXT NOT NULL, settled_batches BIGINT NOT NULL, net_minor BIGINT NOT NULL,
    fence_token BIGINT NOT NULL, PRIMARY KEY (business_date, currency))";
const CURRENCIES: &str = "SELECT DISTINCT t.currency FROM settlement_batch b JOIN batch_total t ON t.batch_id = b.id
    WHERE b.state = 'settled' AND b.business_date = $1 ORDER BY t.currency";
pub(crate) const REPORT: &str = "INSERT INTO nightly_report (business_date, currency, settled_batches, net_minor, fence_token)
    SELECT b.business_date, t.currency, count(*), CAST(sum(t.net_minor) AS BIGINT), $3
    FROM settlement_batch b JOIN batch_total t ON t.batch_id = b.id
    WHERE b.state = 'settled' AND b.business_date = $1 AND t.currency = $2 GROUP BY b.business_date, t.currency
    ON CONFLICT (business_date, currency) DO UPDATE SET settled_batches = EXCLUDED.settled_batches,
        net_minor = EXCLUDED.net_minor, fence_token = EXCLUDED.fence_token";

pub(crate) enum NightlyReport {
    Postgres(PgPool),
    Sqlite(SqlitePool),
}

#[async_trait]
impl NightlyJob for NightlyReport {
    fn name(&self) -> &str {
        "nightly-report" // for ever: its lease, its fence and what is done are kept under it
    }

    async fn work(&self, turn: &Turn<'_>) -> Result<(), JobError> {
        for currency in self.currencies(turn.key.business_date).await? {
            turn.check()?;
            if !self.write(turn, &currency).await? {
                return Err(JobError::Fenced); // counted and kept, like every refused write
            }
        }
        Ok(())
    }
}

impl NightlyReport {
    pub(crate) async fn currencies(&self, day: NaiveDate) -> Result<Vec<String>, sqlx::Error> {
        match self {
            NightlyReport::Postgres(pool) => sqlx::query_scalar(CURRENCIES).bind(day).fetch_all(pool).await,
            NightlyReport::Sqlite(pool) => sqlx::query_scalar(CURRENCIES).bind(day).fetch_all(pool).await,
        }
    }

    /// One transaction. `false`: a newer holder has the job, and nothing is written.
    async fn write(&self, turn: &Turn<'_>, currency: &str) -> Result<bool, sqlx::Error> {
        let (day, unit, fence, holder) = (turn.key.business_date, turn.unit.0, turn.stamp.fence, turn.stamp.holder.0);
        match self {
            NightlyReport::Postgres(pool) => {
                let mut tx = pool.begin().await?;
                let ours = sqlx::query(OURS_ON_POSTGRES).bind(unit).bind(fence.generation).bind(fence.token).bind(holder);
                if ours.fetch_optional(&mut *tx).await?.is_none() {
                    return Ok(false);
                }
                sqlx::query(TABLE).execute(&mut *tx).await?;
                sqlx::query(REPORT).bind(day).bind(currency).bind(fence.token).execute(&mut *tx).await?;
                tx.commit().await?;
            }
            NightlyReport::Sqlite(pool) => {
                let mut tx = pool.begin_with("BEGIN IMMEDIATE").await?;
                let ours = sqlx::query(OURS_ON_SQLITE).bind(unit).bind(fence.generation).bind(fence.token);
                if ours.bind(holder.hyphenated()).fetch_optional(&mut *tx).await?.is_none() {
                    return Ok(false);
                }
                sqlx::query(TABLE).execute(&mut *tx).await?;
                sqlx::query(REPORT).bind(day).bind(currency).bind(fence.token).execute(&mut *tx).await?;
                tx.commit().await?;
            }
        }
        Ok(true)
    }
}

/// The job with a pool of its own, and where the leases are.
pub(crate) async fn open(url: &str) -> Result<(NightlyReport, Box<dyn Connector>), Box<dyn Error>> {
    if url.starts_with("sqlite:") {
        let leases = SqliteConnector::new(&ledger::sqlite::file_of(url)?);
        return Ok((NightlyReport::Sqlite(SqlitePool::connect(url).await?), Box::new(leases)));
    }
    // A client that is frozen inside its transaction is ended by the server; a takeover would wait until it wakes.
    let options = url.parse::<PgConnectOptions>()?.options([("idle_in_transaction_session_timeout", "5s")]);
    Ok((NightlyReport::Postgres(PgPool::connect_with(options).await?), Box::new(PostgresConnector::new(url)?)))
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (url, business_date) = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [url] => (url, Utc::now().date_naive()),
        [url, "--business-date", day] => (url, day.parse()?),
        _ => return Err("usage: nightly_report DATABASE_URL [--business-date YYYY-MM-DD]".into()),
    };
    let ledger = ledger::connect(&OpenOptions::existing(url)).await?;
    let (job, leases) = open(url).await?;
    let holder = HolderId(uuid::Uuid::new_v4()); // this process start; a host's name would be its next process's too
    let keeper = Keeper::start(leases, holder, KeeperSettings::new(TTL))?;
    let worker = Worker::new(ledger, None, holder, WorkerSettings::default());
    let (mut terminate, drain) = (signal(SignalKind::terminate())?, worker.drain.clone());
    // The transaction that has begun is finished, the rest is for the next instance.
    tokio::spawn(async move { terminate.recv().await.map(|()| drain.ask()) });
    println!("the report of {business_date} is begun, or waits for the instance that has it");
    let key = RunKey { schedule: "nightly-report".to_owned(), business_date, slot: "-".to_owned() };
    let ended = worker.run_job(&keeper, &job, &PlannedRun::for_job(key), None).await;
    keeper.shutdown().await;
    match ended? {
        JobOutcome::Done => println!("the report of {business_date} is done"),
        JobOutcome::AlreadyDone => println!("the report of {business_date} was done before, or by another instance"),
        JobOutcome::Drained => return Err("stopped before the report was done: the next instance does it".into()),
    }
    Ok(())
}
