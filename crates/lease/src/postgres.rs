//! Leases as rows of a PostgreSQL table. Needs `contract.rs` and `migrations/postgres/0005_lease.sql`.
//!
//! **Guarantees.** Every request is one statement in its own transaction. A grant is refused while another's row has not expired by
//! `clock_timestamp()` of this database; no client's clock is in any statement, so instances whose clocks disagree by minutes agree
//! here. A renewal or release touches only the row of its own name, holder and nonce, and a renewal only an unexpired one.
//!
//! **Does not guarantee** that two holders never overlap: the server's clock can step, and a failover to an asynchronous standby
//! forgets the last grants. The ledger's fence covers both. While the database is down nothing is granted, which costs little when
//! it is the ledger's own database.
//!
//! **Durability.** The connection runs with `synchronous_commit = off`: a request is answered before it is on disk, and a crash of
//! the server may forget the last ones, a fraction of a second of them. A forgotten grant or renewal ends the lease early, and
//! another holder may come while the first still believes: the overlap that the fence is for. A forgotten release leaves a lease
//! to expire. A lease is worth nothing after its TTL, so waiting for the disk, several times in each TTL of every unit, would buy
//! nothing. The ledger's own connections, whose commits are the books, do wait.
//!
//! **Token:** none; the ledger mints.
//!
//! Connect past a transaction pooler: statements are prepared on a connection that is kept. The driver offers no TCP keepalives;
//! a half-open connection is noticed by the timeout of the next attempt, and dropped.

use crate::{
    Acquire, Ask, Backend, Capabilities, Connector, KeeperSettings, LeaseError, LeaseName, LeaseRow, Line, Nonce, Release, Renew,
    TokenSource,
};
use async_trait::async_trait;
use domain::ids::HolderId;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{Connection, FromRow};
use std::str::FromStr;
use std::time::Duration;
use uuid::Uuid;

/// The row of the same nonce is granted again: a repeat after a lost reply. `held` is empty exactly when `tried` is not; it reads
/// the snapshot of the statement's start, so a row inserted meanwhile leaves both empty: held by another, unknown whom.
const ACQUIRE: &str = "\
WITH tried AS (
    INSERT INTO lease (name, holder, nonce, acquired_at, expires_at)
    VALUES ($1, $2, $3, clock_timestamp(), clock_timestamp() + $4 * interval '1 millisecond')
    ON CONFLICT (name) DO UPDATE
        SET holder = excluded.holder, nonce = excluded.nonce, acquired_at = clock_timestamp(),
            expires_at = clock_timestamp() + $4 * interval '1 millisecond'
        WHERE lease.expires_at <= clock_timestamp()
           OR (lease.holder = excluded.holder AND lease.nonce = excluded.nonce)
    RETURNING name, holder, nonce
)
SELECT true AS granted, holder, 0::bigint AS expires_in_ms FROM tried
UNION ALL
SELECT false, holder, (extract(epoch FROM expires_at - clock_timestamp()) * 1000)::bigint
FROM lease WHERE name = $1 AND NOT EXISTS (SELECT FROM tried)";

/// An expired lease is not revived, not even when nobody has taken it.
const RENEW: &str = "\
UPDATE lease SET expires_at = clock_timestamp() + $4 * interval '1 millisecond'
WHERE name = $1 AND holder = $2 AND nonce = $3 AND expires_at > clock_timestamp()";

/// Deletes an expired row of ours too, but says that it was not held.
const RELEASE: &str = "\
DELETE FROM lease WHERE name = $1 AND holder = $2 AND nonce = $3
RETURNING expires_at > clock_timestamp() AS held";

const INSPECT: &str = "\
SELECT name, holder, nonce, (extract(epoch FROM expires_at - clock_timestamp()) * 1000)::bigint AS expires_in_ms
FROM lease WHERE starts_with(name, $1) ORDER BY name";

/// Every statement of this file.
pub const STATEMENTS: [&str; 4] = [ACQUIRE, RENEW, RELEASE, INSPECT];

/// What the file head says, for the table.
pub const CAPABILITIES: Capabilities = Capabilities {
    name: "postgres",
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

/// Makes connections to one database.
#[derive(Debug, Clone)]
pub struct PostgresConnector {
    options: PgConnectOptions,
    /// For logs and errors; without user and password.
    place: String,
    connect_timeout: Duration,
}

impl PostgresConnector {
    /// `url` as in `postgres://user:password@host:5432/database?sslmode=…`.
    ///
    /// # Errors
    /// The URL cannot be read.
    pub fn new(url: &str) -> Result<PostgresConnector, LeaseError> {
        let options = PgConnectOptions::from_str(url).map_err(|error| LeaseError::Invalid {
            // the URL itself is not shown: it may hold a password
            what: format!("the URL of the lease database: {error}; write postgres://user@host:5432/database"),
        })?;
        Ok(Self::with_options(options))
    }

    fn with_options(options: PgConnectOptions) -> PostgresConnector {
        let place = format!(
            "postgres at {}:{}/{}",
            options.get_host(),
            options.get_port(),
            options.get_database().unwrap_or(options.get_username())
        );
        let options = options.application_name("settled-lease").options([
            // a statement whose client gave up must not take effect much later
            ("statement_timeout", "5s"),
            ("default_transaction_isolation", "read committed"),
            // see Durability above
            ("synchronous_commit", "off"),
        ]);
        PostgresConnector { options, place, connect_timeout: Duration::from_secs(5) }
    }
}

#[async_trait]
impl Connector for PostgresConnector {
    async fn connect(&mut self) -> Result<Box<dyn Backend>, LeaseError> {
        let place = self.place.clone();
        // a connection cut off here is dropped as a whole, so the timeout poisons nothing
        match tokio::time::timeout(self.connect_timeout, PgConnection::connect_with(&self.options)).await {
            Ok(Ok(connection)) => Ok(Box::new(PostgresBackend { connection, place })),
            Ok(Err(error)) => Err(unavailable(&place, "connect", error)),
            Err(_) => Err(LeaseError::TimedOut { what: place, doing: "connect", after: self.connect_timeout }),
        }
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
pub struct PostgresBackend {
    connection: PgConnection,
    place: String,
}

#[derive(FromRow)]
struct Tried {
    granted: bool,
    holder: Uuid,
    expires_in_ms: i64,
}

#[derive(FromRow)]
struct Stored {
    name: String,
    holder: Uuid,
    nonce: Uuid,
    expires_in_ms: i64,
}

#[async_trait]
impl Backend for PostgresBackend {
    fn kind(&self) -> &'static str {
        "postgres"
    }

    fn token_source(&self) -> TokenSource {
        TokenSource::LedgerMinted
    }

    async fn try_acquire(&mut self, ask: &Ask) -> Result<Acquire, LeaseError> {
        let tried: Option<Tried> = sqlx::query_as(ACQUIRE)
            .bind(ask.name.as_str())
            .bind(ask.holder.0)
            .bind(ask.nonce.0)
            .bind(millis(ask.ttl))
            .fetch_optional(&mut self.connection)
            .await
            .map_err(|error| unavailable(&self.place, "acquire", error))?;
        Ok(match tried {
            Some(Tried { granted: true, .. }) => Acquire::Granted { token: None },
            Some(Tried { holder, expires_in_ms, .. }) => Acquire::HeldByAnother {
                holder: Some(HolderId(holder)),
                remaining: Some(Duration::from_millis(u64::try_from(expires_in_ms).unwrap_or(0))),
            },
            None => Acquire::HeldByAnother { holder: None, remaining: None },
        })
    }

    async fn stand_in_line(&mut self, _ask: &Ask) -> Result<Line, LeaseError> {
        Ok(Line::None)
    }

    async fn renew(&mut self, ask: &Ask) -> Result<Renew, LeaseError> {
        let done = sqlx::query(RENEW)
            .bind(ask.name.as_str())
            .bind(ask.holder.0)
            .bind(ask.nonce.0)
            .bind(millis(ask.ttl))
            .execute(&mut self.connection)
            .await
            .map_err(|error| unavailable(&self.place, "renew", error))?;
        Ok(if done.rows_affected() == 1 { Renew::Renewed } else { Renew::Lost })
    }

    async fn release(&mut self, ask: &Ask) -> Result<Release, LeaseError> {
        let held: Option<bool> = sqlx::query_scalar(RELEASE)
            .bind(ask.name.as_str())
            .bind(ask.holder.0)
            .bind(ask.nonce.0)
            .fetch_optional(&mut self.connection)
            .await
            .map_err(|error| unavailable(&self.place, "release", error))?;
        Ok(if held == Some(true) { Release::Released } else { Release::NotHeld })
    }

    async fn inspect(&mut self, prefix: &str) -> Result<Vec<LeaseRow>, LeaseError> {
        let rows: Vec<Stored> = sqlx::query_as(INSPECT)
            .bind(prefix)
            .fetch_all(&mut self.connection)
            .await
            .map_err(|error| unavailable(&self.place, "inspect", error))?;
        rows.into_iter().map(row).collect()
    }

    async fn leave(&mut self) -> Result<(), LeaseError> {
        Ok(())
    }
}

fn row(stored: Stored) -> Result<LeaseRow, LeaseError> {
    let Stored { name, holder, nonce, expires_in_ms } = stored;
    Ok(LeaseRow {
        name: LeaseName::from_str(&name)?,
        holder: Some(HolderId(holder)),
        nonce: Some(Nonce(nonce)),
        expires_in_ms: Some(expires_in_ms),
    })
}

fn millis(ttl: Duration) -> i64 {
    i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX)
}

fn unavailable(place: &str, doing: &'static str, error: sqlx::Error) -> LeaseError {
    LeaseError::Unavailable { what: place.to_owned(), doing, source: Box::new(error) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// L19: expiry from a client's clock, or from the start of a transaction, makes instances disagree about who holds a lease.
    #[test]
    fn every_statement_reads_the_clock_of_the_server_at_that_instant() {
        for statement in STATEMENTS {
            let words = statement.to_lowercase();
            assert!(words.contains("clock_timestamp()"), "{statement}");
            for frozen in ["now()", "current_timestamp", "localtimestamp", "transaction_timestamp", "statement_timestamp"] {
                assert!(!words.contains(frozen), "{frozen} in {statement}");
            }
        }
    }

    #[test]
    fn an_error_does_not_show_the_password() {
        let shown = PostgresConnector::new("postgres://u:hunter2@:notaport/x").expect_err("no such port").to_string();
        assert!(!shown.contains("hunter2"), "{shown}");
        let fine = PostgresConnector::new("postgres://u:hunter2@db:5432/x").expect("a URL");
        assert_eq!(fine.place, "postgres at db:5432/x");
    }
}
