//! Leases as advisory locks of a PostgreSQL session. Needs `contract.rs`, `clock.rs` and its own folder; no table.
//!
//! **Guarantees.** One session has a name at a time (`pg_try_advisory_lock`), and the grant *is* the session: there is nothing in the
//! database that could be left behind. When the process dies its socket closes, and the server frees its locks at once. When it freezes, or
//! is cut off, the server ends a session that has been silent for the TTL (`idle_session_timeout`). A renewal is a statement of that
//! session that looks whether the lock is there, so every renewal begins the TTL anew; on any other session it is *Lost*. A session without grants is ended
//! in the same way, which is a line in the server's log and no more: the next request connects again.
//!
//! **A connection that did not answer** is never asked again, and yet it is not closed at once: its holders may believe in their grants until
//! their deadline. It is ended, by its process id, once each of them knows that it lost or is past its time. So one failed renewal ends
//! every lease of the session, where a table would be asked again: take `postgres` where connections break often.
//!
//! **Does not guarantee** that two holders never overlap: a restarted server has forgotten all locks, and so has one that was promoted, while
//! their holders believe in them until their next renewal. An operator can end a session at any time. The ledger's fence covers all of them.
//!
//! **Poolers.** A pooler that shares sessions between clients is detected when connecting, and refused; one with `pool_mode = session` will do.
//!
//! **Names** are hashed to two integers (`key.rs`): `<ledger>/unit/3` is shown in `pg_locks` as `objid` 3. The session is called after its
//! holder in `pg_stat_activity`, as far as its reader may see that. The guard advisory-xact has other keys, and nothing to do with this.
//!
//! **Token:** none; the ledger mints.

mod grants;
mod key;
mod session;

use crate::clock::{BootClock, Clock};
use crate::{
    Acquire, Ask, Backend, Capabilities, Connector, KeeperSettings, LeaseError, LeaseName, LeaseRow, Line, Release, Renew,
    TokenSource,
};
use async_trait::async_trait;
use grants::{GivenUp, GivenWay, Grants};
use key::{Family, Key};
use session::{Lock, Session};
use sqlx::postgres::PgConnectOptions;
use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;

/// What the file head says, for the table.
pub const CAPABILITIES: Capabilities = Capabilities {
    name: "postgres-advisory",
    makes_tokens: false,
    outlives_connection: false,
    outlives_restart: false,
    outlives_minority: false,
    withstands_clock_step: true,
    keeps_line: false,
    notices_death: true,
    shortest_ttl: Duration::from_secs(1),
    takeover: "TTL",
};

/// Makes connections to one database.
#[derive(Debug)]
pub struct PostgresAdvisoryConnector {
    options: PgConnectOptions,
    /// For logs and errors; without user and password.
    place: String,
    ttl: Duration,
    connect_timeout: Duration,
    /// No pooler is in between; who moves our session later is noticed by its process id.
    proven: bool,
    given_up: GivenUp,
}

impl PostgresAdvisoryConnector {
    /// `url` as in `postgres://user:password@host:5432/database?sslmode=…`; `ttl` that of the leases: a session that is silent for so long
    /// is ended, one with a grant of a longer TTL after that.
    ///
    /// # Errors
    /// The URL cannot be read.
    pub fn new(url: &str, ttl: Duration) -> Result<PostgresAdvisoryConnector, LeaseError> {
        let options = PgConnectOptions::from_str(url).map_err(|error| LeaseError::Invalid {
            // the URL itself is not shown: it may hold a password
            what: format!("the URL of the lease database: {error}; write postgres://user@host:5432/database"),
        })?;
        let (host, port) = (options.get_host(), options.get_port());
        let place = format!("postgres at {host}:{port}/{}", options.get_database().unwrap_or(options.get_username()));
        let (connect_timeout, given_up) = (Duration::from_secs(5), GivenUp::default());
        Ok(PostgresAdvisoryConnector { options, place, ttl, connect_timeout, proven: false, given_up })
    }
}

#[async_trait]
impl Connector for PostgresAdvisoryConnector {
    async fn connect(&mut self) -> Result<Box<dyn Backend>, LeaseError> {
        let opening = Session::open(&self.options, &self.place, self.ttl, self.proven);
        // a connection cut off here is dropped as a whole, so the timeout poisons nothing
        let session = tokio::time::timeout(self.connect_timeout, opening).await.map_err(|_| LeaseError::TimedOut {
            what: self.place.clone(),
            doing: "connect",
            after: self.connect_timeout,
        })??;
        self.proven = true;
        let given_up = self.given_up.clone();
        Ok(Box::new(PostgresAdvisoryBackend { session: Some(session), grants: Grants::default(), given_up, told: Vec::new() }))
    }

    fn capabilities(&self) -> Capabilities {
        CAPABILITIES
    }

    fn check(&self, _settings: &KeeperSettings) -> Result<(), LeaseError> {
        Ok(())
    }
}

/// One session, and what it holds.
#[derive(Debug)]
pub struct PostgresAdvisoryBackend {
    /// Nothing where it failed unseen: the next request says so.
    session: Option<Session>,
    grants: Grants,
    given_up: GivenUp,
    /// What was told to be lost by the last answer. That it arrived is known by the next request: without it there is none.
    told: Vec<Ask>,
}

impl Drop for PostgresAdvisoryBackend {
    fn drop(&mut self) {
        self.grants.over();
        if let Some(session) = self.session.take()
            && !self.grants.is_empty()
            && !self.given_up.is_ours_alone()
        {
            self.given_up.add(session, std::mem::take(&mut self.grants));
        }
    }
}

impl PostgresAdvisoryBackend {
    fn session(&mut self) -> Result<&mut Session, LeaseError> {
        let broken =
            || LeaseError::Unavailable { what: "postgres".to_owned(), doing: "ask", source: "the session has ended".into() };
        self.session.as_mut().ok_or_else(broken)
    }

    /// Ends what nobody believes in any more, and frees what is over: a session lock is not freed by time.
    async fn sweep(&mut self) -> Result<(), LeaseError> {
        for ask in std::mem::take(&mut self.told) {
            self.give_way(&ask).await?;
        }
        for key in self.grants.over() {
            self.session()?.unlock(key).await?;
        }
        Ok(())
    }

    /// Nobody believes in this grant any more. Where an earlier session had it: says what became of it there, and ends that session if it
    /// was the last.
    async fn give_way(&mut self, ask: &Ask) -> Result<Option<GivenWay>, LeaseError> {
        let (told, ended) = self.given_up.take(ask);
        for session in ended {
            self.session()?.end(session).await?;
        }
        Ok(told)
    }
}

#[async_trait]
impl Backend for PostgresAdvisoryBackend {
    fn kind(&self) -> &'static str {
        CAPABILITIES.name
    }

    fn token_source(&self) -> TokenSource {
        TokenSource::LedgerMinted
    }

    async fn try_acquire(&mut self, ask: &Ask) -> Result<Acquire, LeaseError> {
        self.sweep().await?;
        // who asks for it again has not been given it
        self.give_way(ask).await?;
        let key = Key::of(&ask.name);
        // a session is granted its own lock again: whether it is the same grant is ours to see
        if let Some(held) = self.grants.under(ask) {
            let (holder, remaining) = (Some(held.ask.holder), Some(held.remaining()));
            if !held.is(ask) {
                return Ok(Acquire::HeldByAnother { holder, remaining });
            }
            if self.renew(ask).await? == Renew::Renewed {
                return Ok(Acquire::Granted { token: None });
            }
        }
        // before we ask: who stops listening has it all the same
        self.grants.keep(ask, BootClock.now());
        let session = self.session()?;
        session.outlast(ask.ttl).await?;
        if session.try_lock(key, ask).await? {
            return Ok(Acquire::Granted { token: None });
        }
        self.grants.take(ask);
        let locks = self.session()?.locks(&[key.class], ask.ttl).await?;
        let lock = locks.iter().find(|lock| lock.id == key.id);
        let left = lock.and_then(|lock| lock.expires_in_ms).and_then(|ms| u64::try_from(ms).ok());
        Ok(Acquire::HeldByAnother { holder: lock.and_then(Lock::holder), remaining: left.map(Duration::from_millis) })
    }

    async fn stand_in_line(&mut self, _ask: &Ask) -> Result<Line, LeaseError> {
        Ok(Line::None)
    }

    async fn renew(&mut self, ask: &Ask) -> Result<Renew, LeaseError> {
        self.sweep().await?;
        if self.given_up.has(ask) {
            self.told.push(ask.clone());
            return Ok(Renew::Lost);
        }
        if self.grants.under(ask).is_none_or(|held| !held.is(ask)) {
            return Ok(Renew::Lost);
        }
        let sent = BootClock.now();
        if self.session()?.is_locked(Key::of(&ask.name)).await? {
            self.grants.keep(ask, sent);
            return Ok(Renew::Renewed);
        }
        self.grants.take(ask);
        Ok(Renew::Lost)
    }

    async fn release(&mut self, ask: &Ask) -> Result<Release, LeaseError> {
        if let Some(GivenWay { is_freed }) = self.give_way(ask).await? {
            return Ok(if is_freed { Release::Released } else { Release::NotHeld });
        }
        let Some(held) = self.grants.under(ask).filter(|held| held.is(ask)) else { return Ok(Release::NotHeld) };
        let is_over = held.is_over();
        let unlocked = match self.session()?.unlock(Key::of(&ask.name)).await {
            // the server has ended the session, or will: it is not held, whatever it says
            Err(_) if is_over => {
                self.session = None;
                Ok(false)
            }
            unlocked => unlocked,
        };
        let unlocked = unlocked?;
        self.grants.take(ask);
        Ok(if unlocked && !is_over { Release::Released } else { Release::NotHeld })
    }

    async fn inspect(&mut self, prefix: &str) -> Result<Vec<LeaseRow>, LeaseError> {
        self.sweep().await?;
        let family = Family::of(prefix);
        let known: BTreeMap<Key, LeaseName> = self.grants.asks().map(|(key, ask)| (*key, ask.name.clone())).collect();
        let mut classes: Vec<i32> = known.keys().map(|key| key.class).collect();
        classes.push(family.class);
        let idle = self.session()?.idle();
        let mut rows = Vec::new();
        for lock in self.session()?.locks(&classes, idle).await? {
            let key = Key { class: lock.class, id: lock.id };
            let member = || family.member(lock.id).filter(|_| lock.class == family.class);
            let name = known.get(&key).cloned().or_else(member).filter(|name| name.as_str().starts_with(prefix));
            rows.extend(name.map(|name| row(name, &lock)));
        }
        rows.sort_by(|one: &LeaseRow, other| one.name.cmp(&other.name));
        Ok(rows)
    }

    async fn leave(&mut self) -> Result<(), LeaseError> {
        Ok(())
    }
}

fn row(name: LeaseName, lock: &Lock) -> LeaseRow {
    LeaseRow { name, holder: lock.holder(), nonce: None, expires_in_ms: lock.expires_in_ms }
}
