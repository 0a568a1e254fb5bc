//! Sessions that were given up while somebody still believed in a grant of theirs, and those whose backend was. Needs `contract.rs`,
//! `grants.rs`, `session.rs`.

use super::grants::Grants;
use super::session::{Named, Session};
use crate::Ask;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a connector keeps for the backends to come.
///
/// A session that did not answer is never asked again, and stays open: to close one is to free its locks, and a holder may still believe in
/// them. It is ended when the last of its grants is known to be lost, or is over; if we cannot, the server does it, after the same time.
#[derive(Debug, Clone, Default)]
pub(super) struct GivenUp(Arc<Mutex<Shared>>);

#[derive(Debug, Default)]
struct Shared {
    silent: Vec<(Session, Grants)>,
    resting: Vec<(Session, Grants)>,
}

/// A grant of a session that was given up.
#[derive(Debug)]
pub(super) struct GivenWay {
    pub(super) session: Named,
    /// Nobody believes in any grant of the session: it can be ended.
    pub(super) is_last: bool,
    pub(super) is_over: bool,
}

impl GivenUp {
    pub(super) fn add(&self, session: Session, grants: Grants) {
        self.shared().silent.push((session, grants));
    }

    /// Whether a session here has this grant, told or over or neither.
    pub(super) fn has(&self, ask: &Ask) -> bool {
        self.shared().silent.iter().any(|(_, grants)| grants.under(ask).is_some_and(|held| held.is(ask)))
    }

    /// Nobody believes in this grant any more. It stays known until its session is forgotten: so long its lock may be there.
    pub(super) fn tell(&self, ask: &Ask) -> Option<GivenWay> {
        self.shared().silent.iter_mut().find_map(|(session, grants)| {
            let is_over = grants.tell(ask)?.is_over();
            Some(GivenWay { session: session.named(), is_last: !grants.are_believed(), is_over })
        })
    }

    /// The sessions in which nobody believes any more: to be ended.
    pub(super) fn to_end(&self) -> Vec<Named> {
        self.shared().silent.iter().filter(|(_, grants)| !grants.are_believed()).map(|(session, _)| session.named()).collect()
    }

    /// It was ended. Closes our side.
    pub(super) fn forget(&self, ended: &Named) {
        self.shared().silent.retain(|(session, _)| session.named() != *ended);
    }

    /// A session that answers, of a backend that must say "unknown" for a reason that is not the session's: for the next backend.
    pub(super) fn rest(&self, session: Session, grants: Grants) {
        self.shared().resting.push((session, grants));
    }

    pub(super) fn rested(&self) -> Option<(Session, Grants)> {
        self.shared().resting.pop()
    }

    /// A connector that is gone has nobody left to tell.
    pub(super) fn is_ours_alone(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
