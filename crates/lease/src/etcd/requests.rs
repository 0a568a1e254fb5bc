//! Single requests, and the one that decides: is the key ours, and for another TTL? Needs `keys.rs`, `sessions.rs`.
//!
//! **What a renewal proves.** etcd's leader prolongs a lease from memory, without asking anybody. One that was paused, and has a
//! successor it does not know of yet, still says yes, also to a lease that was revoked, and prolongs nothing. So the answer to that is
//! followed by a transaction that compares the revision of our key and reads with the agreement of a majority. When both answers come
//! from the same term, of which there is one leader, the time was prolonged by the leader that the majority follows. When they do not,
//! both are asked again.

use super::keys::{self, Lock};
use super::reach::unavailable;
use super::sessions::{Kept, Standing};
use super::{EtcdBackend, is_ours};
use crate::{Ask, BootClock, BootInstant, Clock, LeaseError};
use etcd_client::{Error, ResponseHeader, Txn, TxnResponse};
use std::time::Duration;

/// More changes of leader than one within a single attempt are no time to hold a lease.
const TERMS: usize = 3;

/// The etcd lease for a new key.
pub(super) struct NewKey {
    pub(super) id: i64,
    /// When its time was asked for.
    pub(super) sent: BootInstant,
    /// The term in which it was prolonged; nothing when it was granted just now, which takes a majority.
    term: Option<u64>,
}

impl NewKey {
    pub(super) fn is_confirmed_by(&self, answer: &TxnResponse) -> bool {
        self.term.is_none() || self.term == term(answer.header())
    }
}

impl EtcdBackend {
    /// Prolongs the key's time and proves with `proof`, a transaction that succeeds while the key is the one we know, that it is ours.
    /// `None`: it is gone.
    pub(super) async fn confirm(
        &mut self,
        ask: &Ask,
        mut kept: Kept,
        proof: Txn,
        doing: &'static str,
    ) -> Result<Option<(Kept, TxnResponse)>, LeaseError> {
        for _ in 0..TERMS {
            let sent = BootClock.now();
            kept = match self.under_current_lease(ask, kept, doing).await? {
                Some(kept) => kept,
                None => return Ok(None),
            };
            let Some(prolonged_in) = self.beat(kept.lease, doing).await? else { return Ok(None) };
            let answer = self.transact(proof.clone(), doing).await?;
            if !answer.succeeded() {
                self.gone(ask, kept);
                return Ok(None);
            }
            if term(answer.header()) == Some(prolonged_in) {
                kept = kept.prolonged(sent, ask);
                self.sessions.keep(ask, kept.clone());
                return Ok(Some((kept, answer)));
            }
        }
        Err(unavailable(&self.place, doing, Error::EndpointError("its leader changes all the time".to_owned())))
    }

    pub(super) async fn transact(&mut self, txn: Txn, doing: &'static str) -> Result<TxnResponse, LeaseError> {
        self.client.txn(txn).await.map_err(|error| unavailable(&self.place, doing, error))
    }

    /// The etcd lease for a new key, with all of its time ahead.
    pub(super) async fn lease(&mut self, ask: &Ask, doing: &'static str) -> Result<NewKey, LeaseError> {
        let (ttl_s, sent) = (whole_seconds(ask.ttl), BootClock.now());
        if let Some(id) = self.sessions.current(ttl_s)
            && let Some(term) = self.beat(id, doing).await?
        {
            return Ok(NewKey { id, sent, term: Some(term) });
        }
        // one whose answer is lost holds nothing and expires
        let granted = self.client.lease_grant(ttl_s, None).await.map_err(|error| unavailable(&self.place, doing, error))?;
        self.sessions.opened(granted.id(), ttl_s);
        Ok(NewKey { id: granted.id(), sent, term: None })
    }

    /// A transaction that may put a key under that etcd lease. `None`: the lease is gone, another one is to be taken.
    pub(super) async fn put(&mut self, txn: Txn, lease: &NewKey, doing: &'static str) -> Result<Option<TxnResponse>, LeaseError> {
        let doubt = self.sessions.doubt(lease.id);
        let error = match self.client.txn(txn).await {
            Ok(answer) => {
                doubt.over();
                return Ok(Some(answer));
            }
            Err(error) => error,
        };
        if is_refusal(&error) {
            doubt.over();
        }
        if lease.term.is_some() && is_lease_not_found(&error) {
            self.sessions.ended(lease.id);
            return Ok(None);
        }
        Err(unavailable(&self.place, doing, error))
    }

    /// Another TTL for everything under that etcd lease, and the term in which that was said. `None`: etcd does not know the lease any
    /// more, and never will again.
    async fn beat(&mut self, lease: i64, doing: &'static str) -> Result<Option<u64>, LeaseError> {
        let answer = self.ask_for_time(lease).await.map_err(|error| unavailable(&self.place, doing, error))?;
        if answer.is_none() {
            self.streams.remove(&lease);
            self.sessions.ended(lease);
        }
        Ok(answer)
    }

    async fn ask_for_time(&mut self, lease: i64) -> Result<Option<u64>, Error> {
        if !self.streams.contains_key(&lease) {
            // the driver keeps this first answer to itself, with its term
            match self.client.lease_keep_alive(lease).await {
                Ok(stream) => drop(self.streams.insert(lease, stream)),
                Err(Error::LeaseKeepAliveError(said)) if said == "lease not found" => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        let ended = || Error::LeaseKeepAliveError("the stream of answers has ended".to_owned());
        let (keeper, answers) = self.streams.get_mut(&lease).ok_or_else(ended)?;
        keeper.keep_alive().await?;
        let answer = answers.message().await?.ok_or_else(ended)?;
        Ok(if answer.ttl() > 0 { term(answer.header()) } else { None })
    }

    /// Hands the key over where its etcd lease is retired. `None`: it is gone.
    async fn under_current_lease(&mut self, ask: &Ask, mut kept: Kept, doing: &'static str) -> Result<Option<Kept>, LeaseError> {
        if kept.standing == Standing::Gone {
            return Ok(None);
        }
        if self.sessions.is_retired(kept.lease) {
            let lease = self.lease(ask, doing).await?;
            if !self.transact(keys::hand_over(&kept.key, kept.revision, lease.id), doing).await?.succeeded() {
                self.gone(ask, kept);
                return Ok(None);
            }
            kept.lease = lease.id;
            self.sessions.keep(ask, kept.clone());
            self.tidy().await;
        }
        Ok(Some(kept))
    }

    /// The key is not there any more. Who held it learns it from the answer; who waited must be told also when he asks twice.
    fn gone(&self, ask: &Ask, kept: Kept) {
        match kept.standing {
            Standing::Holds => self.sessions.forget(ask),
            Standing::Waits | Standing::Gone => self.sessions.keep(ask, kept.standing(Standing::Gone)),
        }
    }

    /// A key that another connector put, or whose confirmation was lost.
    pub(super) async fn find(&mut self, ask: &Ask, doing: &'static str) -> Result<Option<Kept>, LeaseError> {
        let (range, everybody) = Lock::of(&self.prefix, &ask.name).everybody();
        let read = self.client.get(range, Some(everybody)).await.map_err(|error| unavailable(&self.place, doing, error))?;
        let at = read.kvs().iter().position(|key| is_ours(key, ask));
        let standing = if at == Some(0) { Standing::Holds } else { Standing::Waits };
        Ok(at.map(|at| Kept::found(&read.kvs()[at], standing, ask)))
    }

    /// Revokes etcd leases that nothing confirmed is under, with whatever arrived late. What fails is tried again with the next
    /// connection, and expires.
    pub(super) async fn tidy(&mut self) {
        for lease in self.sessions.idle() {
            if let Err(error) = self.revoke(lease).await {
                tracing::debug!(etcd.place = %self.place, %error, "a retired etcd lease was not revoked");
                return;
            }
        }
    }

    pub(super) async fn revoke(&mut self, lease: i64) -> Result<(), Error> {
        match self.client.lease_revoke(lease).await {
            Err(error) if !is_lease_not_found(&error) => return Err(error),
            _ => self.sessions.ended(lease),
        }
        self.streams.remove(&lease);
        Ok(())
    }
}

fn term(header: Option<&ResponseHeader>) -> Option<u64> {
    header.map(ResponseHeader::raft_term)
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
    let said = status.message();
    said.starts_with("etcdserver: ")
        && ["lease not found", "auth", "permission denied", "user"].iter().any(|part| said.contains(part))
}
