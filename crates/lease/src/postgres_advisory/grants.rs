//! What one session holds, and sessions that were given up while somebody still believed in a grant of theirs. Needs `contract.rs`,
//! `clock.rs`, `key.rs`.

use super::key::Key;
use super::session::Session;
use crate::clock::{BootClock, BootInstant, Clock};
use crate::{Ask, Nonce};
use domain::ids::HolderId;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The grants of one session. A session lock has no expiry of its own, so it is counted here.
#[derive(Debug, Default)]
pub(super) struct Grants(HashMap<Key, Held>);

#[derive(Debug, Clone)]
pub(super) struct Held {
    pub(super) ask: Ask,
    until: BootInstant,
}

impl Held {
    pub(super) fn is(&self, ask: &Ask) -> bool {
        let of = |ask: &Ask| -> (HolderId, Nonce) { (ask.holder, ask.nonce) };
        of(&self.ask) == of(ask) && self.ask.name == ask.name
    }

    pub(super) fn remaining(&self) -> Duration {
        BootClock.now().until(self.until)
    }

    pub(super) fn is_over(&self) -> bool {
        self.remaining().is_zero()
    }
}

impl Grants {
    /// From `sent`, an instant before the service was asked.
    pub(super) fn keep(&mut self, ask: &Ask, sent: BootInstant) {
        self.0.insert(Key::of(&ask.name), Held { ask: ask.clone(), until: sent + ask.ttl });
    }

    /// What is held under the key of the name, by whichever grant.
    pub(super) fn under(&self, ask: &Ask) -> Option<&Held> {
        self.0.get(&Key::of(&ask.name))
    }

    /// Takes out this very grant.
    pub(super) fn take(&mut self, ask: &Ask) -> Option<Held> {
        self.under(ask).filter(|held| held.is(ask))?;
        self.0.remove(&Key::of(&ask.name))
    }

    /// Takes out what is over.
    pub(super) fn over(&mut self) -> Vec<Key> {
        let over: Vec<Key> = self.0.iter().filter(|(_, held)| held.is_over()).map(|(key, _)| *key).collect();
        over.iter().for_each(|key| drop(self.0.remove(key)));
        over
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn asks(&self) -> impl Iterator<Item = (&Key, &Ask)> {
        self.0.iter().map(|(key, held)| (key, &held.ask))
    }
}

/// What becomes of a grant whose session was given up.
#[derive(Debug, Clone, Copy)]
pub(super) struct GivenWay {
    /// It was not over, and its lock goes with the session now. Else other grants still keep that, or its time had come.
    pub(super) is_freed: bool,
}

/// Sessions that are never asked again and stay open: to close one is to free its locks, and a holder may still believe in them. Each
/// is ended when the last of its grants is known to be lost, or is over; if we cannot, the server does it, after the same time.
#[derive(Debug, Clone, Default)]
pub(super) struct GivenUp(Arc<Mutex<Vec<(Session, Grants)>>>);

impl GivenUp {
    pub(super) fn add(&self, session: Session, grants: Grants) {
        self.sessions().push((session, grants));
    }

    /// Whether a session here has this grant, and it is not over.
    pub(super) fn has(&self, ask: &Ask) -> bool {
        self.sessions().iter().any(|(_, grants)| grants.under(ask).is_some_and(|held| held.is(ask) && !held.is_over()))
    }

    /// Nobody believes in this grant any more. Returns what becomes of it, if a session here has it, and the sessions of which that was the
    /// last: to be ended.
    pub(super) fn take(&self, ask: &Ask) -> (Option<GivenWay>, Vec<Session>) {
        let (mut told, mut ended, mut kept) = (None, Vec::new(), Vec::new());
        let mut sessions = self.sessions();
        for (session, mut grants) in sessions.drain(..) {
            let taken = grants.take(ask);
            grants.over();
            if let Some(held) = taken {
                told = Some(GivenWay { is_freed: grants.is_empty() && !held.is_over() });
            }
            if grants.is_empty() {
                ended.push(session);
            } else {
                kept.push((session, grants));
            }
        }
        *sessions = kept;
        (told, ended)
    }

    /// A connector that is gone has nobody left to tell.
    pub(super) fn is_ours_alone(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    fn sessions(&self) -> std::sync::MutexGuard<'_, Vec<(Session, Grants)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
