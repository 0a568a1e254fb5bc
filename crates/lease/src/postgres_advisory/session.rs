//! One connection, its statements, and what it must be: a session of its own on a server that can end it. Needs `contract.rs`,
//! `error.rs`, `key.rs`.

use super::key::Key;
use crate::{Ask, LeaseError};
use domain::ids::HolderId;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{Connection, FromRow, Row};
use std::time::Duration;

/// The name of a session without a grant, and the beginning of that of one with a grant.
const PROGRAM: &str = "settled-lease";

const WHO: &str = "SELECT pg_backend_pid() AS pid, current_setting('server_version_num')::integer AS version,
    (SELECT backend_start::text FROM pg_stat_activity WHERE pid = pg_backend_pid()) AS started";
const PID: &str = "SELECT pg_backend_pid()";
const SET: &str = "SELECT set_config('idle_session_timeout', $1, false), set_config('statement_timeout', '5s', false),
    set_config('default_transaction_isolation', 'read committed', false)";
const SET_IDLE: &str = "SELECT set_config('idle_session_timeout', $1, false)";
/// The session is called after its holder from its first grant on, for `inspect` and for people.
const TRY_LOCK: &str =
    "SELECT pg_try_advisory_lock($1, $2) AS yes, pg_backend_pid() AS pid, set_config('application_name', $3, false)";
const UNLOCK: &str = "SELECT pg_advisory_unlock($1, $2) AS yes, pg_backend_pid() AS pid";
const IS_LOCKED: &str = "SELECT pg_backend_pid() AS pid, EXISTS (SELECT FROM pg_locks WHERE pid = pg_backend_pid() AND granted
    AND locktype = 'advisory' AND objsubid = 2 AND classid = $1::integer::oid AND objid = $2::integer::oid) AS yes";
/// Locks of these classes, who has them, and for how long unless he says something: `$2` after his last word.
const LOCKS: &str = "SELECT l.classid::integer AS class, l.objid::integer AS id, a.application_name AS program,
    CASE WHEN a.state = 'idle' THEN ($2 - extract(epoch FROM clock_timestamp() - a.state_change) * 1000)::bigint
        WHEN a.state IS NOT NULL THEN $2 END AS expires_in_ms
    FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid
    WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.granted AND l.classid = ANY($1::integer[]::oid[])
        AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())";
/// Waits for its end. The three together name a session: a pooler may have given it to another client since.
const END: &str = "SELECT pg_terminate_backend(pid, 3000) FROM pg_stat_activity
    WHERE pid = $1 AND backend_start::text = $2 AND application_name = $3 AND pid <> pg_backend_pid()";

/// `idle_session_timeout` came with it.
const OLDEST: i32 = 140_000;

/// One connection. Dropping it closes it.
#[derive(Debug)]
pub(super) struct Session {
    connection: PgConnection,
    place: String,
    pid: i32,
    started: String,
    holder: Option<HolderId>,
    idle: Duration,
}

/// A lock that somebody has.
#[derive(Debug, FromRow)]
pub(super) struct Lock {
    pub(super) class: i32,
    pub(super) id: i32,
    program: Option<String>,
    pub(super) expires_in_ms: Option<i64>,
}

impl Lock {
    /// The process start that the session is called after.
    pub(super) fn holder(&self) -> Option<HolderId> {
        let holder = self.program.as_deref()?.strip_prefix(PROGRAM)?.trim_start();
        holder.parse().ok().map(HolderId)
    }
}

impl Session {
    /// Connects, and makes sure that the connection is a session of the server's and stays one. `proven`: that was found out before.
    pub(super) async fn open(
        options: &PgConnectOptions,
        place: &str,
        idle: Duration,
        proven: bool,
    ) -> Result<Session, LeaseError> {
        // a pooler refuses parameters that it does not know before anybody could say what is wrong with it
        let options = options.clone().extra_float_digits(None).application_name(PROGRAM);
        let failed = |error| unavailable(place, "connect", error);
        let mut connection = PgConnection::connect_with(&options).await.map_err(failed)?;
        let who = sqlx::raw_sql(WHO).fetch_one(&mut connection).await.map_err(failed)?;
        let (pid, version) = (who.try_get("pid").map_err(failed)?, who.try_get("version").map_err(failed)?);
        let started: Option<String> = who.try_get("started").map_err(failed)?;
        check_version(place, version)?;
        if !proven {
            refuse_pooler(&mut connection, &options, place, pid).await?;
        }
        sqlx::query(SET).bind(millis(idle)).execute(&mut connection).await.map_err(failed)?;
        let (place, started) = (place.to_owned(), started.unwrap_or_default());
        Ok(Session { connection, place, pid, started, holder: None, idle })
    }

    /// For how long the server lets it be silent.
    pub(super) fn idle(&self) -> Duration {
        self.idle
    }

    /// It must not end before its grants do.
    pub(super) async fn outlast(&mut self, ttl: Duration) -> Result<(), LeaseError> {
        if ttl > self.idle {
            let set = sqlx::query(SET_IDLE).bind(millis(ttl)).execute(&mut self.connection).await;
            set.map_err(|error| unavailable(&self.place, "acquire", error))?;
            self.idle = ttl;
        }
        Ok(())
    }

    pub(super) async fn try_lock(&mut self, key: Key, ask: &Ask) -> Result<bool, LeaseError> {
        self.holder = Some(ask.holder);
        let query = sqlx::query(TRY_LOCK).bind(key.class).bind(key.id).bind(called(ask.holder));
        let row = query.fetch_one(&mut self.connection).await;
        self.said("acquire", row)
    }

    pub(super) async fn unlock(&mut self, key: Key) -> Result<bool, LeaseError> {
        let row = sqlx::query(UNLOCK).bind(key.class).bind(key.id).fetch_one(&mut self.connection).await;
        self.said("release", row)
    }

    pub(super) async fn is_locked(&mut self, key: Key) -> Result<bool, LeaseError> {
        let row = sqlx::query(IS_LOCKED).bind(key.class).bind(key.id).fetch_one(&mut self.connection).await;
        self.said("renew", row)
    }

    pub(super) async fn locks(&mut self, classes: &[i32], ttl: Duration) -> Result<Vec<Lock>, LeaseError> {
        let ms = i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX);
        let rows = sqlx::query_as(LOCKS).bind(classes).bind(ms).fetch_all(&mut self.connection).await;
        rows.map_err(|error| unavailable(&self.place, "inspect", error))
    }

    /// Ends another session of ours, also one that the server still believes in.
    pub(super) async fn end(&mut self, other: Session) -> Result<(), LeaseError> {
        let Session { pid, started, holder, .. } = &other;
        let Some(holder) = *holder else { return Ok(()) };
        let query = sqlx::query_scalar(END).bind(*pid).bind(started.clone()).bind(called(holder));
        // first from our side: it may be gone by the time we ask
        drop(other);
        let gone: Option<bool> = query
            .fetch_optional(&mut self.connection)
            .await
            .map_err(|error| unavailable(&self.place, "end an earlier session", error))?;
        if gone == Some(false) {
            let (what, source) = (self.place.clone(), "it is still there after three seconds".into());
            return Err(LeaseError::Unavailable { what, doing: "end an earlier session", source });
        }
        Ok(())
    }

    /// An answer counts only from the session that was connected to.
    fn said(&self, doing: &'static str, row: Result<sqlx::postgres::PgRow, sqlx::Error>) -> Result<bool, LeaseError> {
        let failed = |error| unavailable(&self.place, doing, error);
        let row = row.map_err(failed)?;
        if row.try_get::<i32, _>("pid").map_err(failed)? != self.pid {
            return Err(is_pooled(&self.place));
        }
        row.try_get("yes").map_err(failed)
    }
}

fn called(holder: HolderId) -> String {
    format!("{PROGRAM} {holder}")
}

fn millis(duration: Duration) -> String {
    duration.as_millis().to_string()
}

fn check_version(place: &str, version: i32) -> Result<(), LeaseError> {
    if version >= OLDEST {
        return Ok(());
    }
    let what = format!(
        "{place} is PostgreSQL {}, and postgres-advisory needs 14 or later: an older one does not end the session of a frozen holder (idle_session_timeout); take postgres",
        version / 10_000
    );
    Err(LeaseError::Invalid { what })
}

/// Looks whether somebody else is given our session while we are silent. A second connection begins transactions, in each of which it
/// has a session to itself: where sessions are shared, that is ours, or we are given another one meanwhile. A few times, because a
/// pooler may go through its sessions in turn. Simple queries only: a pooler fails others with errors of its own.
async fn refuse_pooler(
    connection: &mut PgConnection,
    options: &PgConnectOptions,
    place: &str,
    pid: i32,
) -> Result<(), LeaseError> {
    let failed = |error| unavailable(place, "connect", error);
    let mut other = PgConnection::connect_with(options).await.map_err(failed)?;
    for _ in 0..3 {
        match sqlx::raw_sql("BEGIN").execute(&mut other).await {
            // protocol_violation: a pooler of single statements
            Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some("08P01") => return Err(is_pooled(place)),
            begun => begun.map_err(failed)?,
        };
        let theirs = pid_of(&mut other).await.map_err(failed)?;
        let ours = pid_of(connection).await.map_err(failed)?;
        if theirs == pid || ours != pid {
            return Err(is_pooled(place));
        }
        sqlx::raw_sql("ROLLBACK").execute(&mut other).await.map_err(failed)?;
    }
    // what it says on leaving is of no interest
    let _ = other.close().await;
    Ok(())
}

async fn pid_of(connection: &mut PgConnection) -> Result<i32, sqlx::Error> {
    sqlx::raw_sql(PID).fetch_one(connection).await?.try_get(0)
}

fn is_pooled(place: &str) -> LeaseError {
    let what = format!(
        "{place} is a pooler that gives our session to others between our statements, and an advisory lock is the session's; connect past the pooler, or through one with pool_mode = session"
    );
    LeaseError::Invalid { what }
}

fn unavailable(place: &str, doing: &'static str, error: sqlx::Error) -> LeaseError {
    LeaseError::Unavailable { what: place.to_owned(), doing, source: Box::new(error) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_server_is_refused_with_a_way_out() {
        assert!(check_version("here", 140_000).is_ok() && check_version("here", 170_002).is_ok());
        let told = check_version("here", 130_014).expect_err("too old").to_string();
        assert!(told.contains("PostgreSQL 13") && told.contains("14 or later") && told.contains("take postgres"), "{told}");
    }

    #[test]
    fn a_session_is_called_after_its_holder() {
        let holder = HolderId(uuid::Uuid::from_u128(7));
        assert!(called(holder).len() <= 63, "the server cuts longer names");
        let lock = |program: &str| Lock { class: 1, id: 2, program: Some(program.to_owned()), expires_in_ms: None };
        assert_eq!(lock(&called(holder)).holder(), Some(holder));
        assert_eq!(lock(PROGRAM).holder(), None);
        assert_eq!(lock("psql").holder(), None);
    }
}
