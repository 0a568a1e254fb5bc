//! The ledger in one SQLite file, for processes of one host and one local disk.
//!
//! SQLite has one writer. That makes the lesson short: where PostgreSQL locks rows (`FOR UPDATE`, `FOR SHARE`, `SKIP LOCKED`)
//! there is nothing here, because `BEGIN IMMEDIATE` has locked everything. Every write transaction goes through `gate.rs` first;
//! reads take a snapshot of the WAL and wait for nobody. Lock order: the gate, then a connection of the pool, then the file.
//!
//! The clock is the host's: SQLite has no other. The limits of a transaction are ignored, because there is no server to end a
//! frozen client (what happens then is written in `gate.rs`). Arrays travel as JSON and are spread by `json_each`.

#[cfg(test)]
mod cancel;
mod claim;
mod correct;
mod fence;
mod gate;
mod import;
mod job;
mod operate;
#[cfg(test)]
mod plans;
mod run;
mod schedule;
mod settle;
mod verify;

use crate::schedule::Sources;
use crate::{Guard, Ledger, LedgerError, Meta, OpenOptions};
use chrono::{DateTime, SecondsFormat, Utc};
use domain::fence::{Fence, Stamp};
use domain::ids::{HolderId, LedgerId};
use gate::{Entered, Gate};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePoolOptions, SqliteRow, SqliteSynchronous};
use sqlx::{Connection, Row, Sqlite, SqlitePool, Transaction};
use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;
use uuid::Uuid;
use uuid::fmt::Hyphenated;

static MIGRATIONS: sqlx::migrate::Migrator = sqlx::migrate!("../../migrations/sqlite");

/// Creates the one row of `ledger_meta` where there is none. Its key is named, because SQLite does not take the default of a key
/// that is a row id: a second row would be number 2.
const INSERT_META: &str =
    "INSERT INTO ledger_meta (only_row, ledger_id, partitions, guard) VALUES (1, $1, $2, $3) ON CONFLICT DO NOTHING";
const INSERT_UNITS: &str = "WITH RECURSIVE n (unit) AS (SELECT 0 UNION ALL SELECT unit + 1 FROM n WHERE unit + 1 < $1)
    INSERT INTO unit_fence (unit) SELECT unit FROM n WHERE true ON CONFLICT DO NOTHING";
const SELECT_META: &str = "SELECT ledger_id, partitions, guard FROM ledger_meta";

/// Waits here only behind programs that ignore the gate, and behind the rollback of a transaction that was dropped.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);

/// IMMEDIATE takes the write lock at once. A deferred transaction that reads first and then writes is refused when another
/// has written in between, and no timeout helps it.
const BEGIN: &str = "BEGIN IMMEDIATE";

/// A ledger in an SQLite file.
#[derive(Debug)]
pub struct SqliteLedger {
    pool: SqlitePool,
    options: SqliteConnectOptions,
    gate: Gate,
    meta: Meta,
}

impl Ledger for SqliteLedger {
    fn meta(&self) -> Meta {
        self.meta
    }
}

impl SqliteLedger {
    /// Opens the file; creates or migrates it if asked to, under the gate: the driver has no lock around migrations, and
    /// neither creating the file nor switching it to a WAL is safe to do twice at once.
    ///
    /// # Errors
    /// See [`crate::open`].
    pub async fn open(options: &OpenOptions) -> Result<SqliteLedger, LedgerError> {
        if options.guard == Guard::AdvisoryXact {
            return Err(no_advisory_locks());
        }
        let connect = connect_options(&options.url)?;
        let gate = Gate::beside(connect.get_filename());
        if options.migrate && !is_current(&connect).await {
            let _gate = gate.enter().await?;
            let mut connection = SqliteConnection::connect_with(&connect.clone().create_if_missing(true)).await?;
            // not run(): its bound on Acquire would keep this future from being spawned (sqlx says so beside run_direct)
            MIGRATIONS.run_direct(None, &mut connection, false).await?;
            connection.close().await?;
        } else if !connect.get_filename().exists() {
            return Err(LedgerError::Schema(format!("there is no file {}", connect.get_filename().display())));
        }
        let pool = SqlitePoolOptions::new()
            .max_connections(options.connections)
            .acquire_timeout(Duration::from_secs(10))
            // a file does not go away
            .test_before_acquire(false)
            .after_connect(|connection, _| Box::pin(settle::prepare_connection(connection)))
            .connect_with(connect.clone())
            .await?;
        let meta = read_meta(&pool, &gate, options).await?;
        Ok(SqliteLedger { pool, options: connect, gate, meta })
    }

    /// Begins a write transaction. A future that is dropped in here leaves neither the gate shut nor a transaction open.
    async fn write(&self) -> Result<WriteTx<'static>, LedgerError> {
        begin(&self.pool, &self.gate).await
    }

    /// Whether the ledger is cut and guarded as it was when this instance opened it.
    fn check_still(&self, row: &SqliteRow) -> Result<(), LedgerError> {
        crate::check_cut((self.meta.partitions, self.meta.guard), cut(row)?)
    }
}

fn no_advisory_locks() -> LedgerError {
    LedgerError::Config(crate::NO_ADVISORY_LOCKS.to_owned())
}

/// A write transaction and its place in the gate, which opens after the transaction has ended. Where it is dropped instead, the
/// rollback is under way when the gate opens, and the next writer waits in SQLite for that moment.
#[derive(Debug)]
struct WriteTx<'c> {
    tx: Transaction<'c, Sqlite>,
    gate: Entered,
}

impl WriteTx<'_> {
    async fn commit(self) -> Result<(), LedgerError> {
        let WriteTx { tx, gate } = self;
        let committed = tx.commit().await;
        drop(gate);
        Ok(committed?)
    }

    async fn rollback(self) -> Result<(), LedgerError> {
        let WriteTx { tx, gate } = self;
        let ended = tx.rollback().await;
        drop(gate);
        Ok(ended?)
    }
}

impl Deref for WriteTx<'_> {
    type Target = SqliteConnection;

    fn deref(&self) -> &SqliteConnection {
        &self.tx
    }
}

impl DerefMut for WriteTx<'_> {
    fn deref_mut(&mut self) -> &mut SqliteConnection {
        &mut self.tx
    }
}

async fn begin(pool: &SqlitePool, gate: &Gate) -> Result<WriteTx<'static>, LedgerError> {
    let gate = gate.enter().await?;
    Ok(WriteTx { tx: pool.begin_with(BEGIN).await?, gate })
}

/// The file behind a `sqlite:` URL: what else belongs to this ledger (its leases, its gates) stands beside it.
///
/// # Errors
/// [`LedgerError::Config`] for a URL that cannot be read.
pub fn file_of(url: &str) -> Result<PathBuf, LedgerError> {
    Ok(connect_options(url)?.get_filename().to_owned())
}

fn connect_options(url: &str) -> Result<SqliteConnectOptions, LedgerError> {
    let options = SqliteConnectOptions::from_str(url)
        .map_err(|error| LedgerError::Config(format!("database.url cannot be read: {error}")))?;
    if url.contains(":memory:") || url.contains("mode=memory") || options.get_filename().as_os_str().is_empty() {
        return Err(LedgerError::Config("database.url must name a file (sqlite:FILE): a ledger outlives its process".to_owned()));
    }
    Ok(options
        .journal_mode(SqliteJournalMode::Wal)
        // FULL: a commit is on the disk when it returns. NORMAL would forget the last ones in a power cut.
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        // without it INSERT OR REPLACE passes the delete triggers; other programs are held off by the insert triggers
        .pragma("recursive_triggers", "ON")
        // an import must not leave its size behind as a WAL for ever
        .pragma("journal_size_limit", "67108864")
        .busy_timeout(BUSY_TIMEOUT))
}

async fn read_meta(pool: &SqlitePool, gate: &Gate, options: &OpenOptions) -> Result<Meta, LedgerError> {
    check_schema(pool).await?;
    let mut row = sqlx::query(SELECT_META).fetch_optional(pool).await?;
    if row.is_none() {
        let mut tx = begin(pool, gate).await?;
        sqlx::query(INSERT_META)
            .bind(Uuid::new_v4().hyphenated())
            .bind(options.partitions)
            .bind(options.guard.as_str())
            .execute(&mut *tx)
            .await?;
        row = sqlx::query(SELECT_META).fetch_optional(&mut *tx).await?;
        sqlx::query(INSERT_UNITS).bind(options.partitions).execute(&mut *tx).await?;
        tx.commit().await?;
    }
    let row = row.ok_or_else(|| LedgerError::Schema("ledger_meta has no row".to_owned()))?;
    let (partitions, guard) = cut(&row)?;
    Ok(Meta { ledger_id: LedgerId(uuid(&row, "ledger_id")?), partitions, guard })
}

/// Reads `partitions` and `guard` of a row.
fn cut(row: &SqliteRow) -> Result<(i32, Guard), LedgerError> {
    let guard: String = row.try_get("guard")?;
    let guard = Guard::parse(&guard).ok_or_else(|| LedgerError::Schema(format!("ledger_meta.guard is {guard:?}")))?;
    Ok((row.try_get("partitions")?, guard))
}

/// Whether there is nothing to migrate. Then the gate is left alone: whoever only looks must not wait behind a frozen writer.
async fn is_current(connect: &SqliteConnectOptions) -> bool {
    if !connect.get_filename().exists() {
        return false;
    }
    let Ok(pool) = SqlitePoolOptions::new().max_connections(1).connect_with(connect.clone()).await else { return false };
    let current = check_schema(&pool).await.is_ok();
    pool.close().await;
    current
}

/// Every migration of this program is applied, and none that it does not know.
async fn check_schema(pool: &SqlitePool) -> Result<(), LedgerError> {
    const APPLIED: &str = "SELECT version FROM _sqlx_migrations WHERE success ORDER BY version";
    const EXISTS: &str = "SELECT count(*) > 0 FROM sqlite_master WHERE type = 'table' AND name = '_sqlx_migrations'";
    let exists: bool = sqlx::query_scalar(EXISTS).fetch_one(pool).await?;
    let applied: Vec<i64> = if exists { sqlx::query_scalar(APPLIED).fetch_all(pool).await? } else { Vec::new() };
    crate::check_versions(&MIGRATIONS, &applied)
}

/// An array, for `json_each`.
fn json(rows: &impl serde::Serialize) -> String {
    serde_json::to_string(rows).expect("numbers and texts are always JSON")
}

/// Names of sources, for `json_each`; nothing for all.
fn listed(sources: &Sources) -> Option<String> {
    sources.names().map(|names| json(&names))
}

/// An instant as the columns have it: UTC to the millisecond, so that texts compare as instants do.
fn instant(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// Reads a UUID from its text.
fn uuid(row: &SqliteRow, column: &str) -> Result<Uuid, sqlx::Error> {
    Ok(row.try_get::<Hyphenated, _>(column)?.into_uuid())
}

/// Reads `generation`, `token`, `holder` of a row.
fn stamp(row: &SqliteRow) -> Result<Stamp, sqlx::Error> {
    Ok(Stamp {
        fence: Fence { generation: row.try_get("generation")?, token: row.try_get("token")? },
        holder: HolderId(uuid(row, "holder")?),
    })
}
