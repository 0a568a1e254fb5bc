//! Leases as keys in etcd. Needs `contract.rs`, `clock.rs`, `pem.rs` and its own folder.
//!
//! **Guarantees.** A grant is one transaction that puts our key if the lock has no key, so it is refused while another's key is there,
//! by the agreement of a majority of the members. Whether we own a lease is decided by a transaction that compares the revision of our
//! key and reads with that same agreement, after etcd has prolonged the time of our keys and under the same leader
//! (`etcd/requests.rs`). Without a majority there is no answer and nothing is granted. Who waits stands in line, and a release wakes the next one alone.
//!
//! **Does not guarantee** that two holders never overlap. A holder that is frozen for longer than the TTL does not know that its key is
//! gone. A cluster that was restored from a snapshot has forgotten grants, and its revisions went back: the ledger notices that a token
//! is below one that it knows while the lease is still ours, stops, and names `fence adopt`. The ledger's fence covers both.
//!
//! **Token:** the revision that created our key, made by etcd and compared by etcd when ownership is proven. The revision in the header
//! of an answer is the store's at that moment, grows with what others write, and cannot be compared with a key. A lock's revisions
//! grow with each grant, across release, expiry and restarts. They belong to one cluster: the source is its id.
//!
//! **Layout:** `<prefix><lease name>/<etcd lease in hexadecimal>`, the Go client's, so that `etcdctl lock <prefix><lease name>` and
//! services in Go exclude each other with us (see `etcd/keys.rs`).
//!
//! **Time.** etcd counts whole seconds by its leader's monotonic clock, a TTL is rounded up, and a lease shorter than one and a half
//! election timeouts is lengthened by etcd: 2 s with its own defaults. Expired leases are collected twice a second. A new leader
//! gives every lease its whole TTL again. All of this delays a takeover, none hastens it. All keys of a process are under one etcd
//! lease (`etcd/sessions.rs`).
//!
//! **Members:** see `etcd/reach.rs`. Versions with known faults are told once (`etcd/faults.rs`).

mod faults;
mod keys;
mod line;
mod options;
mod reach;
mod requests;
mod rows;
mod sessions;

use crate::{
    Acquire, Ask, Backend, BootClock, Capabilities, Clock, Connector, KeeperSettings, LeaseError, LeaseRow, Line, Release, Renew,
    TokenSource,
};
use async_trait::async_trait;
use etcd_client::{Client, KeyValue, LeaseKeepAliveStream, LeaseKeeper, TxnResponse};
use keys::{Lock, found};
use reach::{Members, unavailable};
use sessions::{Kept, Sessions, Standing};
use std::collections::HashMap;
use std::time::Duration;

pub use options::EtcdOptions;

/// What the file head says, for the table.
pub const CAPABILITIES: Capabilities = Capabilities {
    name: "etcd",
    makes_tokens: true,
    outlives_connection: true,
    outlives_restart: true,
    outlives_minority: true,
    withstands_clock_step: true,
    keeps_line: true,
    notices_death: false,
    shortest_ttl: Duration::from_secs(2),
    takeover: "TTL in whole seconds + 1 s; twice that when etcd changes its leader",
};

/// Makes connections to one cluster.
#[derive(Debug)]
pub struct EtcdConnector {
    options: EtcdOptions,
    members: Members,
    sessions: Sessions,
}

impl EtcdConnector {
    /// # Errors
    /// Options that do not fit together.
    pub fn new(options: EtcdOptions) -> Result<EtcdConnector, LeaseError> {
        options.validate()?;
        Ok(EtcdConnector { options, members: Members::default(), sessions: Sessions::default() })
    }
}

#[async_trait]
impl Connector for EtcdConnector {
    async fn connect(&mut self) -> Result<Box<dyn Backend>, LeaseError> {
        let reached = self.members.reach(&self.options).await?;
        let mut backend = EtcdBackend {
            client: reached.client,
            place: reached.place,
            source: format!("etcd:{:x}", reached.cluster),
            prefix: self.options.prefix.clone(),
            sessions: self.sessions.clone(),
            streams: HashMap::new(),
        };
        self.sessions.drop_orphans(BootClock.now());
        backend.tidy().await;
        Ok(Box::new(backend))
    }

    fn capabilities(&self) -> Capabilities {
        CAPABILITIES
    }

    fn check(&self, _settings: &KeeperSettings) -> Result<(), LeaseError> {
        Ok(())
    }
}

/// One connection to one member.
pub struct EtcdBackend {
    client: Client,
    place: String,
    source: String,
    prefix: String,
    sessions: Sessions,
    /// One for each etcd lease that was prolonged over this connection.
    streams: HashMap<i64, (LeaseKeeper, LeaseKeepAliveStream)>,
}

impl EtcdBackend {
    async fn take(&mut self, ask: &Ask) -> Result<Acquire, LeaseError> {
        const DOING: &str = "acquire";
        let lock = Lock::of(&self.prefix, &ask.name);
        loop {
            let lease = self.lease(ask, DOING).await?;
            let Some(answer) = self.put(lock.take(ask, lease.id), &lease, DOING).await? else { continue };
            let first = found(&answer).into_iter().next();
            let (kept, confirmed) = match &first {
                // nobody was there
                None if answer.succeeded() => {
                    let kept = Kept::new(lock.key(lease.id), revision(&answer), lease.id, Standing::Holds, lease.sent, ask);
                    (kept, lease.is_confirmed_by(&answer))
                }
                // we were: a repeat after a lost answer
                Some(first) if is_ours(first, ask) => (Kept::found(first, Standing::Holds, ask), false),
                _ => return Ok(held(first.as_ref())),
            };
            let (key, at) = (kept.key.clone(), kept.revision);
            self.sessions.keep(ask, kept.clone());
            if confirmed || self.confirm(ask, kept, keys::prove(&key, at), DOING).await?.is_some() {
                return Ok(Acquire::Granted { token: Some(at) });
            }
        }
    }

    /// The key is there, first or in line. `None`: it was first and is gone, so that there is nothing to come forward with.
    async fn come_forward(&mut self, ask: &Ask, kept: Kept) -> Result<Option<Acquire>, LeaseError> {
        let is_place = kept.standing != Standing::Holds;
        let first = Lock::of(&self.prefix, &ask.name).who_is_first(&kept.key, kept.revision);
        let Some((kept, answer)) = self.confirm(ask, kept, first, "acquire").await? else {
            return if is_place { Err(self.place_gone()) } else { Ok(None) };
        };
        let first = found(&answer).into_iter().next();
        if first.as_ref().is_none_or(|first| first.create_revision() != kept.revision) {
            return Ok(Some(held(first.as_ref())));
        }
        let token = Some(kept.revision);
        self.sessions.keep(ask, kept.standing(Standing::Holds));
        Ok(Some(Acquire::Granted { token }))
    }
}

#[async_trait]
impl Backend for EtcdBackend {
    fn kind(&self) -> &'static str {
        "etcd"
    }

    fn token_source(&self) -> TokenSource {
        TokenSource::External { id: self.source.clone() }
    }

    async fn try_acquire(&mut self, ask: &Ask) -> Result<Acquire, LeaseError> {
        if let Some(kept) = self.sessions.kept(ask)
            && let Some(answer) = self.come_forward(ask, kept).await?
        {
            return Ok(answer);
        }
        self.take(ask).await
    }

    async fn stand_in_line(&mut self, ask: &Ask) -> Result<Line, LeaseError> {
        self.queue(ask).await
    }

    async fn renew(&mut self, ask: &Ask) -> Result<Renew, LeaseError> {
        const DOING: &str = "renew";
        let kept = match self.sessions.kept(ask) {
            Some(kept) if kept.standing == Standing::Holds => Some(kept),
            _ => self.find(ask, DOING).await?.filter(|found| found.standing == Standing::Holds),
        };
        let Some(kept) = kept else { return Ok(Renew::Lost) };
        let proof = keys::prove(&kept.key, kept.revision);
        let confirmed = self.confirm(ask, kept, proof, DOING).await?;
        Ok(if confirmed.is_some() { Renew::Renewed } else { Renew::Lost })
    }

    async fn release(&mut self, ask: &Ask) -> Result<Release, LeaseError> {
        const DOING: &str = "release";
        let kept = match self.sessions.kept(ask) {
            None => self.find(ask, DOING).await?,
            Some(kept) if kept.standing == Standing::Gone => None,
            known => known,
        };
        let was_held = match kept {
            None => false,
            Some(Kept { key, revision, standing, .. }) => {
                let deleted = self.transact(keys::delete(&key, revision), DOING).await?.succeeded();
                deleted && standing == Standing::Holds
            }
        };
        self.sessions.forget(ask);
        self.tidy().await;
        Ok(if was_held { Release::Released } else { Release::NotHeld })
    }

    async fn inspect(&mut self, prefix: &str) -> Result<Vec<LeaseRow>, LeaseError> {
        self.rows(prefix).await
    }

    async fn leave(&mut self) -> Result<(), LeaseError> {
        for lease in self.sessions.all() {
            self.revoke(lease).await.map_err(|error| unavailable(&self.place, "leave", error))?;
        }
        Ok(())
    }
}

fn is_ours(key: &KeyValue, ask: &Ask) -> bool {
    key.value() == keys::value(ask).as_bytes()
}

fn held(first: Option<&KeyValue>) -> Acquire {
    let holder = first.and_then(|first| keys::whose(first.value())).map(|(holder, _)| holder);
    Acquire::HeldByAnother { holder, remaining: None }
}

/// The store's when the transaction was done; that of a key which it put.
fn revision(answer: &TxnResponse) -> i64 {
    answer.header().map_or(0, etcd_client::ResponseHeader::revision)
}
