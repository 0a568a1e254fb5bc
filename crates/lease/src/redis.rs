//! Leases as keys of one Redis. Needs `contract.rs`, `pem.rs` and its own folder.
//!
//! **Guarantees.** A grant is one `SET key value NX PX ttl`, so it is refused while a key of that name is there by the clock of the
//! server, and no key is without an expiry for an instant. A renewal and a release are one script each, which compares the value, the
//! holder and the nonce, with ours before it extends or deletes: they touch no other's grant, and an expired one is not revived.
//!
//! **Does not guarantee** that two holders never overlap, and has more ways to it than a database. Redis answers before its replicas
//! know: when a replica is promoted that has not heard of a grant, another holder is granted while the first still believes. A Redis
//! that is started again has forgotten everything, or, with an append-only file, its last second. It expires keys by the wall clock:
//! when that steps forward, they are gone early. A Redis that evicts may forget a lease when its memory is full, which is told once.
//! The ledger's fence covers all of this.
//!
//! **Token:** none; the ledger mints. A counter kept here by `INCR` would be lost with the grants, in the same failovers and restarts,
//! and then give numbers again that a frozen holder still has: a token must outlive what forgets the lease.
//!
//! **`wait_replicas`.** After a grant or a renewal, so many replicas must say that they have it (`WAIT`); otherwise the grant is given
//! back and nobody is told that he holds it, and a renewal counts as unanswered. That narrows the gap of a failover, and does not
//! close it: a replica that has not heard of the grant may be the one that is promoted, and what the replicas have is in their memory.
//!
//! **Sentinel:** see `redis/reach.rs`. A primary that was demoted answers READONLY; every error ends the connection, and the next one
//! begins by asking who is the primary.
//!
//! **Rights.** A user limited to these keys and commands is enough:
//! `ACL SETUSER settled on >… ~settled:* +set +get +mget +del +pexpire +pttl +eval +evalsha +scan +role +wait`, with `+select` for a
//! database other than 0.
//!
//! Source of the idea: "Distributed Locks with Redis", "Correct implementation with a single instance", redis.io.

pub(crate) mod keys;
pub(crate) mod reach;

use crate::{
    Acquire, Ask, Backend, Capabilities, Connector, KeeperSettings, LeaseError, LeaseName, LeaseRow, Line, Release, Renew,
    TokenSource,
};
use async_trait::async_trait;
use keys::{Prefix, Stored, Taken};
use reach::{Reach, Server, unavailable};
use redis::aio::MultiplexedConnection;
use std::collections::BTreeMap;
use std::time::Duration;

pub use reach::RedisTls;

/// What the file head says, for the table.
pub const CAPABILITIES: Capabilities = Capabilities {
    name: "redis",
    makes_tokens: false,
    outlives_connection: true,
    outlives_restart: false,
    outlives_minority: false,
    withstands_clock_step: false,
    keeps_line: false,
    notices_death: false,
    shortest_ttl: KeeperSettings::SHORTEST_TTL,
    takeover: "TTL",
};

/// The longest attempt of any keeper; a shorter one is bounded by the keeper itself.
const LONGEST: Duration = Duration::from_secs(5);

/// How to reach one Redis, and what to ask of it.
#[derive(Clone)]
pub struct RedisOptions {
    /// `redis://user:password@host:6379/0`, or `rediss://…` for TLS. With sentinels the host is the name under which they know the
    /// primary, and user, password, database and TLS are for whichever server that is.
    pub url: String,
    /// URLs of the sentinels, with their own user and password where they have any; none where there are none.
    pub sentinels: Vec<String>,
    /// The files of TLS.
    pub tls: RedisTls,
    /// What every key begins with. Programs that are to exclude each other use the same.
    pub prefix: String,
    /// How many replicas must have a grant before it counts.
    pub wait_replicas: u32,
}

impl RedisOptions {
    /// What keys begin with where nothing is said.
    pub const PREFIX: &'static str = "settled:";

    /// One server, without sentinels and without waiting for replicas.
    #[must_use]
    pub fn new(url: &str) -> RedisOptions {
        let (url, prefix) = (url.to_owned(), Self::PREFIX.to_owned());
        RedisOptions { url, sentinels: Vec::new(), tls: RedisTls::default(), prefix, wait_replicas: 0 }
    }
}

/// Makes connections to one Redis, wherever its primary is.
#[derive(Debug)]
pub struct RedisConnector {
    reach: Reach,
    prefix: Prefix,
    wait_replicas: u32,
}

impl RedisConnector {
    /// # Errors
    /// A URL or a prefix that cannot be used.
    pub fn new(options: RedisOptions) -> Result<RedisConnector, LeaseError> {
        let RedisOptions { url, sentinels, tls, prefix, wait_replicas } = options;
        tls.check()?;
        let server = Server::new("the URL of redis", &url, &tls)?;
        let reach = if sentinels.is_empty() {
            Reach::One(server)
        } else {
            let sentinels = sentinels.iter().map(|url| {
                let its_tls = if url.starts_with("rediss:") { tls.clone() } else { RedisTls::default() };
                Server::new("the URL of a sentinel", url, &its_tls)
            });
            Reach::Sentinels { sentinels: sentinels.collect::<Result<_, _>>()?, primary: server }
        };
        Ok(RedisConnector { reach, prefix: usable(prefix)?, wait_replicas })
    }
}

/// The prefix, checked.
pub(crate) fn usable(prefix: String) -> Result<Prefix, LeaseError> {
    if prefix.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(Prefix(prefix));
    }
    Err(LeaseError::Invalid { what: format!("the redis prefix {prefix:?} is not of visible ASCII characters without spaces") })
}

#[async_trait]
impl Connector for RedisConnector {
    async fn connect(&mut self) -> Result<Box<dyn Backend>, LeaseError> {
        let (connection, place) = (self.reach.connect(LONGEST).await?, self.reach.place());
        let (prefix, wait_replicas) = (self.prefix.clone(), self.wait_replicas);
        Ok(Box::new(RedisBackend { connection, place, prefix, wait_replicas }))
    }

    fn capabilities(&self) -> Capabilities {
        CAPABILITIES
    }

    fn check(&self, _settings: &KeeperSettings) -> Result<(), LeaseError> {
        Ok(())
    }
}

/// One connection.
#[derive(Debug)]
pub struct RedisBackend {
    connection: MultiplexedConnection,
    place: String,
    prefix: Prefix,
    wait_replicas: u32,
}

impl RedisBackend {
    /// Every answer is bounded, by the driver too: a connection whose other end is gone without a word hangs otherwise.
    fn bound(&mut self, ttl: Duration) -> Duration {
        let bound = (ttl / 5).min(LONGEST);
        self.connection.set_response_timeout(bound);
        bound
    }

    /// # Errors
    /// Not enough replicas have what this connection wrote last, or nobody says.
    async fn replicated(&mut self, doing: &'static str, ttl: Duration) -> Result<(), LeaseError> {
        if self.wait_replicas == 0 {
            return Ok(());
        }
        // well below the bound of the answer
        let patience = (ttl / 20).clamp(Duration::from_millis(20), Duration::from_secs(1));
        let mut wait = redis::cmd("WAIT");
        wait.arg(self.wait_replicas).arg(u64::try_from(patience.as_millis()).unwrap_or(u64::MAX));
        let bound = self.bound(ttl);
        let have: u32 =
            wait.query_async(&mut self.connection).await.map_err(|error| unavailable(&self.place, doing, bound, error))?;
        if have >= self.wait_replicas {
            return Ok(());
        }
        let wanted = self.wait_replicas;
        let source = format!("{have} of {wanted} replicas have it after {patience:?}, so it does not count").into();
        Err(LeaseError::Unavailable { what: self.place.clone(), doing, source })
    }
}

#[async_trait]
impl Backend for RedisBackend {
    fn kind(&self) -> &'static str {
        "redis"
    }

    fn token_source(&self) -> TokenSource {
        TokenSource::LedgerMinted
    }

    async fn try_acquire(&mut self, ask: &Ask) -> Result<Acquire, LeaseError> {
        let bound = self.bound(ask.ttl);
        let taken = keys::take(&mut self.connection, &self.prefix, ask).await;
        match taken.map_err(|error| unavailable(&self.place, "acquire", bound, error))? {
            Taken::Theirs(stored) => Ok(held(&stored)),
            Taken::Ours => {
                if let Err(error) = self.replicated("acquire", ask.ttl).await {
                    // or it expires: the error is told in any case
                    let _ = keys::give_up(&mut self.connection, &self.prefix, ask).await;
                    return Err(error);
                }
                Ok(Acquire::Granted { token: None })
            }
        }
    }

    async fn stand_in_line(&mut self, _ask: &Ask) -> Result<Line, LeaseError> {
        Ok(Line::None)
    }

    async fn renew(&mut self, ask: &Ask) -> Result<Renew, LeaseError> {
        let bound = self.bound(ask.ttl);
        let extended = keys::extend(&mut self.connection, &self.prefix, ask).await;
        if !extended.map_err(|error| unavailable(&self.place, "renew", bound, error))? {
            return Ok(Renew::Lost);
        }
        self.replicated("renew", ask.ttl).await?;
        Ok(Renew::Renewed)
    }

    async fn release(&mut self, ask: &Ask) -> Result<Release, LeaseError> {
        let bound = self.bound(ask.ttl);
        let was_ours = keys::give_up(&mut self.connection, &self.prefix, ask).await;
        let was_ours = was_ours.map_err(|error| unavailable(&self.place, "release", bound, error))?;
        Ok(if was_ours { Release::Released } else { Release::NotHeld })
    }

    async fn inspect(&mut self, prefix: &str) -> Result<Vec<LeaseRow>, LeaseError> {
        self.connection.set_response_timeout(LONGEST);
        let found = keys::list(&mut self.connection, &self.prefix, prefix).await;
        let found = found.map_err(|error| unavailable(&self.place, "inspect", LONGEST, error))?;
        // in order, and what was found twice once
        let found: BTreeMap<_, _> = found.into_iter().collect();
        Ok(found.into_iter().map(|(name, stored)| row(name, stored.value.as_deref(), stored.left_ms)).collect())
    }

    async fn leave(&mut self) -> Result<(), LeaseError> {
        Ok(())
    }
}

/// What is known of another's grant.
pub(crate) fn held(stored: &Stored) -> Acquire {
    let holder = stored.value.as_deref().and_then(keys::owner).map(|(holder, _)| holder);
    let remaining = stored.left_ms.and_then(|left| u64::try_from(left).ok()).map(Duration::from_millis);
    Acquire::HeldByAnother { holder, remaining }
}

pub(crate) fn row(name: LeaseName, value: Option<&[u8]>, expires_in_ms: Option<i64>) -> LeaseRow {
    let (holder, nonce) = value.and_then(keys::owner).unzip();
    LeaseRow { name, holder, nonce, expires_in_ms }
}
