//! The ledger on PostgreSQL 13 or later.
//!
//! READ COMMITTED throughout: a statement that waited for a row lock sees the row as it is now, which is what the fence needs.

mod advisory;
mod claim;
mod correct;
mod fence;
mod import;
mod job;
mod operate;
mod run;
mod schedule;
mod settle;
mod verify;

pub use settle::pgbench_script;

use crate::settle::TxLimits;
use crate::{Guard, Ledger, LedgerError, Meta, OpenOptions};
use domain::fence::{Fence, Stamp};
use domain::ids::{HolderId, LedgerId};
use sqlx::migrate::MigrateError;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions, PgRow};
use sqlx::{Connection, PgConnection, PgPool, Row};
use std::str::FromStr;
use std::time::Duration;
use uuid::Uuid;

static MIGRATIONS: sqlx::migrate::Migrator = sqlx::migrate!("../../migrations/postgres");

/// Creates the one row of `ledger_meta` where there is none.
const INSERT_META: &str = "INSERT INTO ledger_meta (ledger_id, partitions, guard) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
const INSERT_UNITS: &str =
    "INSERT INTO unit_fence (unit) SELECT generate_series(0, partitions - 1) FROM ledger_meta ON CONFLICT DO NOTHING";
const SELECT_META: &str = "SELECT ledger_id, partitions, guard FROM ledger_meta";

/// The limits of a transaction, set for it alone: a frozen client's session is ended by the server, and its row locks with it.
/// Sequential scans are off because every table here is reached by key; without statistics (a fresh import, autovacuum has not
/// come by) the planner would scan `batch_item` for every transaction.
const SET_LIMITS: &str = "SELECT set_config('statement_timeout', $1, true), set_config('lock_timeout', $2, true),
    set_config('idle_in_transaction_session_timeout', $3, true), set_config('enable_seqscan', 'off', true)";

const MIGRATED_BEFORE: &str = "SELECT to_regclass('_sqlx_migrations') IS NOT NULL";

/// Limits of transactions that plan and name: a client that is frozen inside one holds up every other, and no longer than this.
const SHORT: TxLimits = TxLimits { total: Duration::from_secs(30), idle: Duration::from_secs(5) };

/// A ledger on PostgreSQL.
#[derive(Debug)]
pub struct PostgresLedger {
    pool: PgPool,
    options: PgConnectOptions,
    meta: Meta,
}

impl Ledger for PostgresLedger {
    fn meta(&self) -> Meta {
        self.meta
    }
}

impl PostgresLedger {
    /// Connects; creates or migrates the schema if asked to. sqlx holds an advisory lock of the session while it migrates, so instances
    /// that start together take turns. Where nothing is to be done the lock is not asked for: one that was cut off while it had it
    /// would hold up every later start, until the server learns that it is gone.
    ///
    /// # Errors
    /// See [`crate::open`].
    pub async fn open(options: &OpenOptions) -> Result<PostgresLedger, LedgerError> {
        let connect = connect_options(&options.url)?;
        // Once without the pool, which would try for its whole patience and then forget why it failed.
        reach(&connect).await?;
        let pool = PgPoolOptions::new()
            .max_connections(options.connections)
            .acquire_timeout(Duration::from_secs(10))
            .connect_with(connect.clone())
            .await?;
        if options.migrate && !is_current(&pool).await? {
            // not run(): its bound on Acquire would keep this future from being spawned (sqlx says so beside run_direct)
            MIGRATIONS.run_direct(None, &mut *pool.acquire().await?, false).await.map_err(no_right)?;
        }
        let meta = read_meta(&pool, options).await?;
        Ok(PostgresLedger { pool, options: connect, meta })
    }

    /// Whether the ledger is cut and guarded as it was when this instance opened it.
    fn check_still(&self, row: &PgRow) -> Result<(), LedgerError> {
        crate::check_cut((self.meta.partitions, self.meta.guard), cut(row)?)
    }
}

async fn reach(options: &PgConnectOptions) -> Result<(), LedgerError> {
    let unreachable = |source: sqlx::Error| match LedgerError::from(source) {
        LedgerError::Unavailable(source) => {
            let (host, port) = (options.get_host(), options.get_port());
            let database = options.get_database().unwrap_or(options.get_username());
            LedgerError::Unreachable { place: format!("postgres at {host}:{port}/{database}"), source }
        }
        other => other,
    };
    let connection = PgConnection::connect_with(options).await.map_err(unreachable)?;
    Ok(connection.close().await?)
}

async fn read_meta(pool: &PgPool, options: &OpenOptions) -> Result<Meta, LedgerError> {
    check_schema(pool).await?;
    let mut row = sqlx::query(SELECT_META).fetch_optional(pool).await?;
    if row.is_none() {
        let mut tx = pool.begin().await?;
        sqlx::query(INSERT_META)
            .bind(Uuid::new_v4())
            .bind(options.partitions)
            .bind(options.guard.as_str())
            .execute(&mut *tx)
            .await?;
        // Not ours where another instance was faster; its units are there when its row is.
        row = sqlx::query(SELECT_META).fetch_optional(&mut *tx).await?;
        sqlx::query(INSERT_UNITS).execute(&mut *tx).await?;
        tx.commit().await?;
    }
    let row = row.ok_or_else(|| LedgerError::Schema("ledger_meta has no row".to_owned()))?;
    let (partitions, guard) = cut(&row)?;
    Ok(Meta { ledger_id: LedgerId(row.try_get("ledger_id")?), partitions, guard })
}

/// Reads `partitions` and `guard` of a row.
fn cut(row: &PgRow) -> Result<(i32, Guard), LedgerError> {
    let guard: String = row.try_get("guard")?;
    let guard = Guard::parse(&guard).ok_or_else(|| LedgerError::Schema(format!("ledger_meta.guard is {guard:?}")))?;
    Ok((row.try_get("partitions")?, guard))
}

/// Whether exactly the migrations of this program are applied, word for word.
async fn is_current(pool: &PgPool) -> Result<bool, LedgerError> {
    const APPLIED: &str = "SELECT version, checksum, success FROM _sqlx_migrations ORDER BY version";
    if !sqlx::query_scalar::<_, bool>(MIGRATED_BEFORE).fetch_one(pool).await? {
        return Ok(false);
    }
    let applied: Vec<(i64, Vec<u8>, bool)> = sqlx::query_as(APPLIED).fetch_all(pool).await?;
    let ours = MIGRATIONS.iter().map(|migration| (migration.version, migration.checksum.as_ref(), true));
    Ok(applied.iter().map(|(version, checksum, success)| (*version, checksum.as_slice(), *success)).eq(ours))
}

/// Every migration of this program is applied, and none that it does not know.
async fn check_schema(pool: &PgPool) -> Result<(), LedgerError> {
    const APPLIED: &str = "SELECT version FROM _sqlx_migrations WHERE success ORDER BY version";
    let exists: bool = sqlx::query_scalar(MIGRATED_BEFORE).fetch_one(pool).await?;
    let applied: Vec<i64> = if exists { sqlx::query_scalar(APPLIED).fetch_all(pool).await? } else { Vec::new() };
    crate::check_versions(&MIGRATIONS, &applied)
}

async fn set_limits(tx: &mut PgConnection, limits: TxLimits, left: Duration) -> Result<(), LedgerError> {
    let millis = |duration: Duration| duration.as_millis().max(1).to_string();
    // Half of what is left: a wait for a lock must be told from work that takes too long.
    sqlx::query(SET_LIMITS).bind(millis(left)).bind(millis(left / 2)).bind(millis(limits.idle)).execute(tx).await?;
    Ok(())
}

/// Reads `generation`, `token`, `holder` of a row.
fn stamp(row: &PgRow) -> Result<Stamp, sqlx::Error> {
    Ok(Stamp {
        fence: Fence { generation: row.try_get("generation")?, token: row.try_get("token")? },
        holder: HolderId(row.try_get("holder")?),
    })
}

/// An instance whose role may not change the schema needs to be told that it should not try.
fn no_right(error: MigrateError) -> LedgerError {
    let refused = match &error {
        MigrateError::Execute(sqlx::Error::Database(refused))
        | MigrateError::ExecuteMigration(sqlx::Error::Database(refused), _) => refused.code().is_some_and(|code| code == "42501"),
        _ => false,
    };
    if refused {
        let why = "this role has no right to bring the schema up to date: set database.migrate = false, and have its owner run `settled migrate`";
        return LedgerError::Config(why.to_owned());
    }
    error.into()
}

/// How every connection to the books is made, whatever the server's defaults are.
fn connect_options(url: &str) -> Result<PgConnectOptions, LedgerError> {
    let options =
        PgConnectOptions::from_str(url).map_err(|error| LedgerError::Config(format!("database.url cannot be read: {error}")))?;
    Ok(options.application_name("settled").options([
        ("default_transaction_isolation", "read committed"),
        // A commit is on the disk (and on a synchronous standby) when it returns.
        ("synchronous_commit", "on"),
        // Limits are set per transaction; an import and a verify have none.
        ("statement_timeout", "0"),
        // Where sequential scans are off, a plan that has one costs so much on paper that the server would compile it, each time anew.
        ("jit", "off"),
    ]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The server's defaults are its administrator's: none of ours may hang on them.
    #[test]
    fn what_the_books_need_is_asked_for() {
        let asked = connect_options("postgres://db/ledger").expect("a URL").get_options().unwrap_or_default().to_owned();
        for setting in ["jit=off", "synchronous_commit=on", "statement_timeout=0", "default_transaction_isolation=read"] {
            assert!(asked.contains(setting), "{setting} is not in {asked}");
        }
    }
}
