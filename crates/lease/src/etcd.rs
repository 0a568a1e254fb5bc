//! Leases as keys in etcd. Needs `contract.rs` and its own folder.
//!
//! **Guarantees.** A grant is one transaction that puts our key if the lock has no key, so it is refused while another's key is there,
//! by the agreement of a majority of the members. Whether we own a lease is decided by a transaction that compares the revision of our
//! key and reads with that same agreement; that etcd prolonged the time of our keys proves nothing, and is only done before. Without a
//! majority there is no answer and nothing is granted. Who waits stands in line, and a release wakes the next one alone.
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
mod rows;
mod sessions;

use crate::{
    Acquire, Ask, Backend, Capabilities, Connector, KeeperSettings, LeaseError, LeaseRow, Line, Release, Renew, TokenSource,
};
use async_trait::async_trait;
use etcd_client::{Client, Error, KeyValue, LeaseKeepAliveStream, LeaseKeeper, Txn, TxnResponse};
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
    async fn transact(&mut self, txn: Txn, doing: &'static str) -> Result<TxnResponse, LeaseError> {
        self.client.txn(txn).await.map_err(|error| unavailable(&self.place, doing, error))
    }

    /// The etcd lease for a new key, and whether it is as new as the key.
    async fn lease(&mut self, ask: &Ask, doing: &'static str) -> Result<(i64, bool), LeaseError> {
        let ttl_s = whole_seconds(ask.ttl);
        if let Some(lease) = self.sessions.current(ttl_s) {
            return Ok((lease, false));
        }
        // one whose answer is lost holds nothing and expires
        let granted = self.client.lease_grant(ttl_s, None).await.map_err(|error| unavailable(&self.place, doing, error))?;
        self.sessions.opened(granted.id(), ttl_s);
        Ok((granted.id(), true))
    }

    /// A transaction that may put a key under that etcd lease. `None`: the lease was gone, which is no surprise when the process held
    /// nothing for a while; another one is to be taken.
    async fn put(&mut self, txn: Txn, lease: i64, fresh: bool, doing: &'static str) -> Result<Option<TxnResponse>, LeaseError> {
        let doubt = self.sessions.doubt(lease);
        match self.client.txn(txn).await {
            Ok(answer) => {
                doubt.over();
                Ok(Some(answer))
            }
            Err(error) => {
                if is_refusal(&error) {
                    doubt.over();
                }
                if !fresh && is_lease_not_found(&error) {
                    self.sessions.ended(lease);
                    return Ok(None);
                }
                Err(unavailable(&self.place, doing, error))
            }
        }
    }

    /// Another TTL for everything under that etcd lease. `false`: etcd does not know it any more, and never will again.
    async fn beat(&mut self, lease: i64, doing: &'static str) -> Result<bool, LeaseError> {
        let known = match self.streams.get_mut(&lease) {
            Some((keeper, answers)) => {
                let answer = async {
                    keeper.keep_alive().await?;
                    answers.message().await
                };
                match answer.await {
                    Ok(Some(answer)) => Ok(answer.ttl() > 0),
                    Ok(None) => Err(Error::LeaseKeepAliveError("the stream of answers has ended".to_owned())),
                    Err(error) => Err(error),
                }
            }
            None => match self.client.lease_keep_alive(lease).await {
                Ok(stream) => {
                    self.streams.insert(lease, stream);
                    Ok(true)
                }
                Err(Error::LeaseKeepAliveError(said)) if said == "lease not found" => Ok(false),
                Err(error) => Err(error),
            },
        };
        let known = known.map_err(|error| unavailable(&self.place, doing, error))?;
        if !known {
            self.streams.remove(&lease);
            self.sessions.ended(lease);
        }
        Ok(known)
    }

    /// Gives a key another TTL, under the current etcd lease when its own is retired. `None`: it is gone.
    async fn alive(&mut self, ask: &Ask, mut kept: Kept, doing: &'static str) -> Result<Option<Kept>, LeaseError> {
        if kept.standing == Standing::Gone {
            return Ok(None);
        }
        if self.sessions.is_retired(kept.lease) {
            let (lease, _) = self.lease(ask, doing).await?;
            if !self.transact(keys::hand_over(&kept.key, kept.revision, lease), doing).await?.succeeded() {
                self.gone(ask, kept);
                return Ok(None);
            }
            kept.lease = lease;
            self.sessions.keep(ask, kept.clone());
            self.tidy().await;
        }
        Ok(self.beat(kept.lease, doing).await?.then_some(kept))
    }

    /// The key is not there any more. Who held it learns it from the answer, who waited must be told also when he asks twice.
    fn gone(&self, ask: &Ask, kept: Kept) {
        match kept.standing {
            Standing::Holds => self.sessions.forget(ask),
            Standing::Waits | Standing::Gone => self.sessions.keep(ask, Kept { standing: Standing::Gone, ..kept }),
        }
    }

    async fn take(&mut self, ask: &Ask) -> Result<Acquire, LeaseError> {
        const DOING: &str = "acquire";
        let lock = Lock::of(&self.prefix, &ask.name);
        loop {
            let (lease, fresh) = self.lease(ask, DOING).await?;
            let Some(answer) = self.put(lock.take(ask, lease), lease, fresh, DOING).await? else { continue };
            let first = found(&answer).into_iter().next();
            let (key, revision, lease, fresh) = match &first {
                // nobody was there
                None if answer.succeeded() => (lock.key(lease), revision(&answer), lease, fresh),
                // we were: a repeat after a lost answer
                Some(first) if first.value() == keys::value(ask).as_bytes() => {
                    (first.key_str().unwrap_or_default().to_owned(), first.create_revision(), first.lease(), false)
                }
                _ => return Ok(held(first.as_ref())),
            };
            self.sessions.keep(ask, Kept { key, revision, lease, standing: Standing::Holds });
            // the time of a key under a lease that was there before began with the lease
            if fresh || self.beat(lease, DOING).await? {
                return Ok(Acquire::Granted { token: Some(revision) });
            }
        }
    }

    /// The key is there, first or in line.
    async fn come_forward(&mut self, ask: &Ask, kept: Kept) -> Result<Option<Acquire>, LeaseError> {
        const DOING: &str = "acquire";
        let is_place = kept.standing != Standing::Holds;
        let lost = |backend: &Self| if is_place { Err(backend.place_gone()) } else { Ok(None) };
        if kept.standing == Standing::Gone {
            return lost(self);
        }
        let lock = Lock::of(&self.prefix, &ask.name);
        let answer = self.transact(lock.who_is_first(&kept.key, kept.revision), DOING).await?;
        if !answer.succeeded() {
            self.gone(ask, kept);
            return lost(self);
        }
        let first = found(&answer).into_iter().next();
        if !first.as_ref().is_some_and(|first| first.create_revision() == kept.revision) {
            return Ok(Some(held(first.as_ref())));
        }
        let Some(kept) = self.alive(ask, kept, DOING).await? else { return lost(self) };
        let token = Some(kept.revision);
        self.sessions.keep(ask, Kept { standing: Standing::Holds, ..kept });
        Ok(Some(Acquire::Granted { token }))
    }

    /// A key that another connector put, or whose confirmation was lost.
    async fn find(&mut self, ask: &Ask, doing: &'static str) -> Result<Option<Kept>, LeaseError> {
        let (range, everybody) = Lock::of(&self.prefix, &ask.name).everybody();
        let read = self.client.get(range, Some(everybody)).await.map_err(|error| unavailable(&self.place, doing, error))?;
        let wanted = keys::value(ask);
        let at = read.kvs().iter().position(|found| found.value() == wanted.as_bytes());
        Ok(at.map(|at| {
            let ours = &read.kvs()[at];
            let standing = if at == 0 { Standing::Holds } else { Standing::Waits };
            let (key, revision) = (ours.key_str().unwrap_or_default().to_owned(), ours.create_revision());
            Kept { key, revision, lease: ours.lease(), standing }
        }))
    }

    /// Revokes etcd leases that nothing confirmed is under, with whatever arrived late. What fails is tried again with the next
    /// connection, and expires.
    async fn tidy(&mut self) {
        for lease in self.sessions.idle() {
            if let Err(error) = self.revoke(lease).await {
                tracing::debug!(etcd.place = %self.place, %error, "a retired etcd lease was not revoked");
                return;
            }
        }
    }

    async fn revoke(&mut self, lease: i64) -> Result<(), Error> {
        match self.client.lease_revoke(lease).await {
            Err(error) if !is_lease_not_found(&error) => return Err(error),
            _ => self.sessions.ended(lease),
        }
        self.streams.remove(&lease);
        Ok(())
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
        let Some(kept) = self.alive(ask, kept, DOING).await? else { return Ok(Renew::Lost) };
        if self.transact(keys::prove(&kept.key, kept.revision), DOING).await?.succeeded() {
            self.sessions.keep(ask, kept);
            return Ok(Renew::Renewed);
        }
        self.gone(ask, kept);
        Ok(Renew::Lost)
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

fn held(first: Option<&KeyValue>) -> Acquire {
    let holder = first.and_then(|first| keys::whose(first.value())).map(|(holder, _)| holder);
    Acquire::HeldByAnother { holder, remaining: None }
}

/// The store's when the transaction was done; that of a key which it put.
fn revision(answer: &TxnResponse) -> i64 {
    answer.header().map_or(0, etcd_client::ResponseHeader::revision)
}

fn whole_seconds(ttl: Duration) -> i64 {
    i64::try_from(ttl.as_millis().div_ceil(1000)).unwrap_or(i64::MAX)
}

fn is_lease_not_found(error: &Error) -> bool {
    matches!(error, Error::GRpcStatus(status) if status.message().contains("requested lease not found"))
}

/// An answer that says that the request had no effect, unlike a time-out or a broken connection.
fn is_refusal(error: &Error) -> bool {
    let Error::GRpcStatus(status) = error else { return false };
    status.message().starts_with("etcdserver: ")
        && ["lease not found", "auth", "permission denied", "user"].iter().any(|part| status.message().contains(part))
}
