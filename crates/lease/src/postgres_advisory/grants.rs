//! What one session holds. Needs `contract.rs`, `clock.rs`, `key.rs`.

use super::key::Key;
use crate::clock::{BootClock, BootInstant, Clock};
use crate::{Ask, Nonce};
use domain::ids::HolderId;
use std::collections::HashMap;
use std::time::Duration;

/// The grants of one session. A session lock has no expiry of its own, so it is counted here.
#[derive(Debug, Default)]
pub(super) struct Grants(HashMap<Key, Held>);

#[derive(Debug, Clone)]
pub(super) struct Held {
    pub(super) ask: Ask,
    until: BootInstant,
    /// Its holder knows that it lost.
    is_told: bool,
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

    fn is_believed(&self) -> bool {
        !self.is_told && !self.is_over()
    }
}

impl Grants {
    /// From `sent`, an instant before the service was asked.
    pub(super) fn keep(&mut self, ask: &Ask, sent: BootInstant) {
        self.0.insert(Key::of(&ask.name), Held { ask: ask.clone(), until: sent + ask.ttl, is_told: false });
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

    /// Whatever is under this key is not at the service any more.
    pub(super) fn freed(&mut self, key: Key) {
        self.0.remove(&key);
    }

    /// Nobody believes in this very grant any more; its lock may be there all the same.
    pub(super) fn tell(&mut self, ask: &Ask) -> Option<&Held> {
        let held = self.0.get_mut(&Key::of(&ask.name)).filter(|held| held.is(ask))?;
        held.is_told = true;
        Some(held)
    }

    /// The keys of what is over.
    pub(super) fn over(&self) -> Vec<Key> {
        self.0.iter().filter(|(_, held)| held.is_over()).map(|(key, _)| *key).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a holder may count on any of them.
    pub(super) fn are_believed(&self) -> bool {
        self.0.values().any(Held::is_believed)
    }

    pub(super) fn asks(&self) -> impl Iterator<Item = (&Key, &Ask)> {
        self.0.iter().map(|(key, held)| (key, &held.ask))
    }
}
