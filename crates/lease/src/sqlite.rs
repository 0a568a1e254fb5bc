//! Leases as rows of an SQLite file beside the ledger: `<ledger file>-lease`, with its gate `<ledger file>-lease.gate`.
//! Needs `contract.rs`, `gate.rs` and `migrations/sqlite_lease/`.
//!
//! **Guarantees.** For processes of one host and one local disk: every request is one `BEGIN IMMEDIATE` transaction under the gate.
//! A grant is refused while another's row has not expired. A renewal or release touches only the row of its own name, holder and
//! nonce, and a renewal only an unexpired one.
//!
//! **Does not guarantee** anything on a network file system, whose locks are hearsay. The clock is the host's (`CLOCK_REALTIME`, read
//! by SQLite inside the transaction): SQLite has no other. All processes read the same one, but when it is set forward leases end
//! early and two holders can overlap; the ledger's fence covers that. A process frozen inside the gate (microseconds long) stops
//! every renewal until it wakes: the others lose their leases and work stands still, nothing worse.
//!
//! **Token:** none; the ledger mints.
//!
//! A file of its own, because SQLite lets one writer into a file and a renewal must not wait for a settle transaction. The journal is
//! a WAL with `synchronous = NORMAL`: a commit is then written but not flushed, so a busy disk cannot hold up the keeper. A power cut
//! may forget the last grants; it also ends every process that held one.

use crate::gate::{Gate, GateError};
use crate::{
    Acquire, Ask, Backend, Capabilities, Connector, KeeperSettings, LeaseError, LeaseName, LeaseRow, Line, Nonce, Release, Renew,
    TokenSource,
};
use async_trait::async_trait;
use domain::ids::HolderId;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous};
use sqlx::{Connection, FromRow, Sqlite, Transaction};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;
use uuid::fmt::Hyphenated;

/// The row of the same nonce is granted again: a repeat after a lost reply.
const ACQUIRE: &str = "\
INSERT INTO lease (name, holder, nonce, acquired_at_ms, expires_at_ms)
VALUES ($1, $2, $3, CAST(round(unixepoch('subsec') * 1000) AS INTEGER), CAST(round(unixepoch('subsec') * 1000) AS INTEGER) + $4)
ON CONFLICT (name) DO UPDATE
    SET holder = excluded.holder, nonce = excluded.nonce,
        acquired_at_ms = excluded.acquired_at_ms, expires_at_ms = excluded.expires_at_ms
    WHERE lease.expires_at_ms <= excluded.acquired_at_ms
       OR (lease.holder = excluded.holder AND lease.nonce = excluded.nonce)";

/// Who holds it, when we do not.
const HELD: &str = "\
SELECT holder, expires_at_ms - CAST(round(unixepoch('subsec') * 1000) AS INTEGER) AS expires_in_ms FROM lease WHERE name = $1";

/// An expired lease is not revived, not even when nobody has taken it.
const RENEW: &str = "\
UPDATE lease SET expires_at_ms = CAST(round(unixepoch('subsec') * 1000) AS INTEGER) + $4
WHERE name = $1 AND holder = $2 AND nonce = $3 AND expires_at_ms > CAST(round(unixepoch('subsec') * 1000) AS INTEGER)";

/// Deletes an expired row of ours too, but says that it was not held.
const RELEASE: &str = "\
DELETE FROM lease WHERE name = $1 AND holder = $2 AND nonce = $3
RETURNING expires_at_ms > CAST(round(unixepoch('subsec') * 1000) AS INTEGER) AS held";

const INSPECT: &str = "\
SELECT name, holder, nonce, expires_at_ms - CAST(round(unixepoch('subsec') * 1000) AS INTEGER) AS expires_in_ms
FROM lease WHERE substr(name, 1, length($1)) = $1 ORDER BY name";

/// Every statement of this file.
pub const STATEMENTS: [&str; 5] = [ACQUIRE, HELD, RENEW, RELEASE, INSPECT];

/// What the file head says, for the table. A process that ends leaves its row behind.
pub const CAPABILITIES: Capabilities = Capabilities {
    name: "sqlite",
    makes_tokens: false,
    outlives_connection: true,
    outlives_restart: true,
    outlives_minority: false,
    withstands_clock_step: false,
    keeps_line: false,
    notices_death: false,
    shortest_ttl: KeeperSettings::SHORTEST_TTL,
    takeover: "TTL",
};

/// How long a request waits for the gate when its caller sets no shorter limit. The keeper always does.
const PATIENCE: Duration = Duration::from_secs(5);

/// Opens the lease file of one ledger file.
#[derive(Debug, Clone)]
pub struct SqliteConnector {
    file: PathBuf,
    gate: PathBuf,
}

impl SqliteConnector {
    /// The connector of the ledger in `ledger_file`. Creates nothing yet.
    #[must_use]
    pub fn new(ledger_file: &Path) -> SqliteConnector {
        let beside = |suffix| {
            let mut path = ledger_file.as_os_str().to_owned();
            path.push(suffix);
            PathBuf::from(path)
        };
        SqliteConnector { file: beside("-lease"), gate: beside("-lease.gate") }
    }
}

#[async_trait]
impl Connector for SqliteConnector {
    /// Creates and migrates the file where needed. Under the gate, because processes start together and SQLite's driver has no lock
    /// around migrations.
    async fn connect(&mut self) -> Result<Box<dyn Backend>, LeaseError> {
        let place = Place { file: self.file.clone(), gate: self.gate.clone() };
        let _gate = place.enter("connect").await?;
        let options = SqliteConnectOptions::new()
            .filename(&self.file)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Normal)
            // only somebody who ignores the gate can keep us waiting: a person's shell, or a cancelled request on its way out
            .busy_timeout(Duration::from_secs(1));
        let mut connection = SqliteConnection::connect_with(&options).await.map_err(|e| place.failed("connect", e))?;
        let migrations = sqlx::migrate!("../../migrations/sqlite_lease");
        // not run(): its bound on Acquire is not general enough inside an async trait method (sqlx says so beside run_direct)
        migrations.run_direct(None, &mut connection, false).await.map_err(|e| place.failed("migrate", e))?;
        Ok(Box::new(SqliteBackend { connection, place }))
    }

    fn capabilities(&self) -> Capabilities {
        CAPABILITIES
    }

    fn check(&self, _settings: &KeeperSettings) -> Result<(), LeaseError> {
        Ok(())
    }
}

/// One connection of its own.
#[derive(Debug)]
pub struct SqliteBackend {
    connection: SqliteConnection,
    place: Place,
}

#[derive(Debug)]
struct Place {
    file: PathBuf,
    gate: PathBuf,
}

#[derive(FromRow)]
struct HeldBy {
    holder: Hyphenated,
    expires_in_ms: i64,
}

#[derive(FromRow)]
struct Stored {
    name: String,
    holder: Hyphenated,
    nonce: Hyphenated,
    expires_in_ms: i64,
}

#[async_trait]
impl Backend for SqliteBackend {
    fn kind(&self) -> &'static str {
        "sqlite"
    }

    fn token_source(&self) -> TokenSource {
        TokenSource::LedgerMinted
    }

    async fn try_acquire(&mut self, ask: &Ask) -> Result<Acquire, LeaseError> {
        let SqliteBackend { connection, place } = self;
        let _gate = place.enter("acquire").await?;
        acquire(connection, ask).await.map_err(|error| place.failed("acquire", error))
    }

    async fn stand_in_line(&mut self, _ask: &Ask) -> Result<Line, LeaseError> {
        Ok(Line::None)
    }

    async fn renew(&mut self, ask: &Ask) -> Result<Renew, LeaseError> {
        let SqliteBackend { connection, place } = self;
        let _gate = place.enter("renew").await?;
        renew(connection, ask).await.map_err(|error| place.failed("renew", error))
    }

    async fn release(&mut self, ask: &Ask) -> Result<Release, LeaseError> {
        let SqliteBackend { connection, place } = self;
        let _gate = place.enter("release").await?;
        release(connection, ask).await.map_err(|error| place.failed("release", error))
    }

    /// Reads without the gate: a WAL has a snapshot for every reader.
    async fn inspect(&mut self, prefix: &str) -> Result<Vec<LeaseRow>, LeaseError> {
        let rows: Result<Vec<Stored>, _> = sqlx::query_as(INSPECT).bind(prefix).fetch_all(&mut self.connection).await;
        rows.map_err(|error| self.place.failed("inspect", error))?.into_iter().map(row).collect()
    }

    async fn leave(&mut self) -> Result<(), LeaseError> {
        Ok(())
    }
}

async fn acquire(connection: &mut SqliteConnection, ask: &Ask) -> Result<Acquire, sqlx::Error> {
    let mut tx = begin(connection).await?;
    let done = sqlx::query(ACQUIRE)
        .bind(ask.name.as_str())
        .bind(ask.holder.0.hyphenated())
        .bind(ask.nonce.0.hyphenated())
        .bind(millis(ask.ttl))
        .execute(&mut *tx)
        .await?;
    let answer = if done.rows_affected() == 1 {
        Acquire::Granted { token: None }
    } else {
        let HeldBy { holder, expires_in_ms } = sqlx::query_as(HELD).bind(ask.name.as_str()).fetch_one(&mut *tx).await?;
        let remaining = Duration::from_millis(u64::try_from(expires_in_ms).unwrap_or(0));
        Acquire::HeldByAnother { holder: Some(HolderId(holder.into_uuid())), remaining: Some(remaining) }
    };
    tx.commit().await?;
    Ok(answer)
}

async fn renew(connection: &mut SqliteConnection, ask: &Ask) -> Result<Renew, sqlx::Error> {
    let mut tx = begin(connection).await?;
    let done = sqlx::query(RENEW)
        .bind(ask.name.as_str())
        .bind(ask.holder.0.hyphenated())
        .bind(ask.nonce.0.hyphenated())
        .bind(millis(ask.ttl))
        .execute(&mut *tx)
        .await?;
    tx.commit().await?;
    Ok(if done.rows_affected() == 1 { Renew::Renewed } else { Renew::Lost })
}

async fn release(connection: &mut SqliteConnection, ask: &Ask) -> Result<Release, sqlx::Error> {
    let mut tx = begin(connection).await?;
    let held: Option<bool> = sqlx::query_scalar(RELEASE)
        .bind(ask.name.as_str())
        .bind(ask.holder.0.hyphenated())
        .bind(ask.nonce.0.hyphenated())
        .fetch_optional(&mut *tx)
        .await?;
    tx.commit().await?;
    Ok(if held == Some(true) { Release::Released } else { Release::NotHeld })
}

/// IMMEDIATE takes the write lock before the statement reads the clock.
async fn begin(connection: &mut SqliteConnection) -> Result<Transaction<'_, Sqlite>, sqlx::Error> {
    connection.begin_with("BEGIN IMMEDIATE").await
}

fn row(stored: Stored) -> Result<LeaseRow, LeaseError> {
    let Stored { name, holder, nonce, expires_in_ms } = stored;
    let (holder, nonce) = (HolderId(holder.into_uuid()), Nonce(nonce.into_uuid()));
    Ok(LeaseRow {
        name: LeaseName::from_str(&name)?,
        holder: Some(holder),
        nonce: Some(nonce),
        expires_in_ms: Some(expires_in_ms),
    })
}

fn millis(ttl: Duration) -> i64 {
    i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX)
}

impl Place {
    async fn enter(&self, doing: &'static str) -> Result<Gate, LeaseError> {
        match Gate::enter(&self.gate, PATIENCE).await {
            Ok(gate) => Ok(gate),
            Err(GateError::Locked(path)) => {
                Err(LeaseError::TimedOut { what: path.display().to_string(), doing, after: PATIENCE })
            }
            Err(error) => Err(self.failed(doing, error)),
        }
    }

    fn failed(&self, doing: &'static str, error: impl std::error::Error + Send + Sync + 'static) -> LeaseError {
        LeaseError::Unavailable { what: format!("sqlite file {}", self.file.display()), doing, source: Box::new(error) }
    }
}
