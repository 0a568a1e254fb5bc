//! What a process has at etcd, beyond any connection: its etcd leases, and the keys it put under them. Needs `keys.rs`.
//!
//! One etcd lease carries all keys of the process, so that renewals and expiries do not grow with the number of grants. It is given
//! up when a key may arrive under it that nobody will wait for: a request without an answer can still take effect, minutes later, and
//! a lease that other grants keep alive would keep that key alive as well. New keys then go under another etcd lease, the old keys
//! are handed over to it at their next renewals, and the old one is revoked with whatever did arrive.

use crate::{Ask, BootClock, BootInstant, Clock, LeaseName, Nonce};
use domain::ids::HolderId;
use etcd_client::KeyValue;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An etcd lease of this process.
#[derive(Debug)]
struct Shared {
    id: i64,
    ttl_s: i64,
    retired: bool,
}

/// What our key of a grant means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// It was the first: the lock is ours.
    Holds,
    /// It stands in line.
    Waits,
    /// It stood in line and is gone, which is remembered until its owner was told.
    Gone,
}

/// A key that was confirmed.
#[derive(Debug, Clone)]
pub(super) struct Kept {
    pub(super) key: String,
    /// The revision that created the key: the token, and the only thing that tells this key from a later one of the same name.
    pub(super) revision: i64,
    pub(super) lease: i64,
    pub(super) standing: Standing,
    /// Not asked for again by then, it is nobody's: its owner has counted from an earlier instant.
    until: BootInstant,
}

impl Kept {
    pub(super) fn new(key: String, revision: i64, lease: i64, standing: Standing, sent: BootInstant, ask: &Ask) -> Kept {
        Kept { key, revision, lease, standing, until: sent + ask.ttl }
    }

    /// A key that etcd has, but of which nothing was known here.
    pub(super) fn found(key: &KeyValue, standing: Standing, ask: &Ask) -> Kept {
        let name = String::from_utf8_lossy(key.key()).into_owned();
        Kept::new(name, key.create_revision(), key.lease(), standing, BootClock.now(), ask)
    }

    pub(super) fn standing(self, standing: Standing) -> Kept {
        Kept { standing, ..self }
    }

    /// It was asked for again at that instant, with success.
    pub(super) fn prolonged(self, sent: BootInstant, ask: &Ask) -> Kept {
        Kept { until: sent + ask.ttl, ..self }
    }
}

#[derive(Debug, Default)]
struct Inner {
    shared: Vec<Shared>,
    kept: HashMap<(LeaseName, HolderId, Nonce), Kept>,
}

/// See the file head. Shared by a connector and its connections.
#[derive(Debug, Clone, Default)]
pub(super) struct Sessions(Arc<Mutex<Inner>>);

fn of(ask: &Ask) -> (LeaseName, HolderId, Nonce) {
    (ask.name.clone(), ask.holder, ask.nonce)
}

impl Sessions {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn kept(&self, ask: &Ask) -> Option<Kept> {
        self.inner().kept.get(&of(ask)).cloned()
    }

    pub(super) fn keep(&self, ask: &Ask, kept: Kept) {
        self.inner().kept.insert(of(ask), kept);
    }

    pub(super) fn forget(&self, ask: &Ask) {
        self.inner().kept.remove(&of(ask));
    }

    /// The etcd lease for new keys of that TTL.
    pub(super) fn current(&self, ttl_s: i64) -> Option<i64> {
        self.inner().shared.iter().find(|shared| !shared.retired && shared.ttl_s == ttl_s).map(|shared| shared.id)
    }

    pub(super) fn opened(&self, id: i64, ttl_s: i64) {
        self.inner().shared.push(Shared { id, ttl_s, retired: false });
    }

    pub(super) fn is_retired(&self, id: i64) -> bool {
        self.inner().shared.iter().any(|shared| shared.id == id && shared.retired)
    }

    /// etcd does not know the lease any more, and with it went its keys.
    pub(super) fn ended(&self, id: i64) {
        let mut inner = self.inner();
        inner.shared.retain(|shared| shared.id != id);
        inner.kept.retain(|_, kept| kept.lease != id || kept.standing != Standing::Holds);
        for kept in inner.kept.values_mut().filter(|kept| kept.lease == id) {
            kept.standing = Standing::Gone;
        }
    }

    /// Forgets the keys whose owners have given up, in an outage that outlasted their patience, and retires the leases they are under:
    /// one that others keep alive would keep such a key for ever.
    pub(super) fn drop_orphans(&self, now: BootInstant) {
        let Inner { shared, kept } = &mut *self.inner();
        kept.retain(|_, kept| {
            let is_orphan = kept.until < now;
            if is_orphan {
                shared.iter_mut().filter(|shared| shared.id == kept.lease).for_each(|shared| shared.retired = true);
            }
            !is_orphan
        });
    }

    /// Retired, and nothing confirmed is left under them: to be revoked.
    pub(super) fn idle(&self) -> Vec<i64> {
        let inner = self.inner();
        let used = |id| inner.kept.values().any(|kept| kept.lease == id && kept.standing != Standing::Gone);
        inner.shared.iter().filter(|shared| shared.retired && !used(shared.id)).map(|shared| shared.id).collect()
    }

    pub(super) fn all(&self) -> Vec<i64> {
        self.inner().shared.iter().map(|shared| shared.id).collect()
    }

    /// A key is about to be put under that lease.
    pub(super) fn doubt(&self, id: i64) -> Doubt {
        Doubt { sessions: self.clone(), id, answered: false }
    }
}

/// A key that may or may not have been put. Dropped without an answer, it retires the etcd lease.
#[must_use]
pub(super) struct Doubt {
    sessions: Sessions,
    id: i64,
    answered: bool,
}

impl Doubt {
    /// Whether the key was put is known.
    pub(super) fn over(mut self) {
        self.answered = true;
    }
}

impl Drop for Doubt {
    fn drop(&mut self) {
        if self.answered {
            return;
        }
        for shared in self.sessions.inner().shared.iter_mut().filter(|shared| shared.id == self.id) {
            shared.retired = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use uuid::Uuid;

    fn ask(nonce: u128) -> Ask {
        let (holder, nonce) = (HolderId(Uuid::from_u128(1)), Nonce(Uuid::from_u128(nonce)));
        Ask { name: "x".parse().expect("a name"), holder, nonce, ttl: Duration::from_secs(2) }
    }

    fn kept(lease: i64, standing: Standing) -> Kept {
        Kept::new("x/1".to_owned(), 5, lease, standing, BootInstant::from_nanos(0), &ask(1))
    }

    const NOBODY: [i64; 0] = [];

    #[test]
    fn an_answer_keeps_the_lease_and_none_retires_it() {
        let sessions = Sessions::default();
        sessions.opened(1, 2);
        sessions.doubt(1).over();
        assert_eq!(sessions.current(2), Some(1));
        assert_eq!(sessions.current(3), None, "another TTL is another lease");
        drop(sessions.doubt(1));
        assert!(sessions.current(2).is_none() && sessions.is_retired(1));
    }

    #[test]
    fn a_retired_lease_is_idle_when_its_last_key_is_gone() {
        let sessions = Sessions::default();
        sessions.opened(1, 2);
        sessions.keep(&ask(1), kept(1, Standing::Holds));
        sessions.keep(&ask(2), kept(1, Standing::Waits));
        drop(sessions.doubt(1));
        assert_eq!(sessions.idle(), NOBODY);
        sessions.forget(&ask(1));
        assert_eq!(sessions.idle(), NOBODY);
        sessions.forget(&ask(2));
        assert_eq!(sessions.idle(), [1]);
    }

    #[test]
    fn who_waited_under_an_ended_lease_is_told() {
        let sessions = Sessions::default();
        sessions.opened(1, 2);
        sessions.keep(&ask(1), kept(1, Standing::Holds));
        sessions.keep(&ask(2), kept(1, Standing::Waits));
        sessions.ended(1);
        assert!(sessions.kept(&ask(1)).is_none());
        assert_eq!(sessions.kept(&ask(2)).map(|kept| kept.standing), Some(Standing::Gone));
        assert_eq!(sessions.all(), NOBODY);
    }

    #[test]
    fn a_key_that_nobody_asks_for_any_more_takes_its_lease_along() {
        let sessions = Sessions::default();
        sessions.opened(1, 2);
        sessions.keep(&ask(1), kept(1, Standing::Holds));
        let later = BootInstant::from_nanos(1_500_000_000);
        sessions.keep(&ask(2), kept(1, Standing::Holds).prolonged(later, &ask(2)));
        sessions.drop_orphans(BootInstant::from_nanos(1_900_000_000));
        assert_eq!(sessions.current(2), Some(1), "both are in time");
        sessions.drop_orphans(BootInstant::from_nanos(2_100_000_000));
        assert!(sessions.kept(&ask(1)).is_none() && sessions.kept(&ask(2)).is_some());
        assert!(sessions.is_retired(1));
        assert_eq!(sessions.idle(), NOBODY, "the other is still under it");
    }
}
