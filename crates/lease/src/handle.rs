//! The holder's side of one grant. Needs `deadline.rs` and the commands of `keeper.rs`.

use crate::clock::Clock;
use crate::deadline::{Deadline, LostWhy};
use crate::keeper::{Command, Commands};
use crate::{Ask, LeaseError, LeaseName, Release, TokenSource};
use domain::ids::HolderId;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, oneshot};

/// What [`Lease::prove`] found.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// We owned the lease at an instant between the call and its return.
    Owner,
    /// We do not own it any more; the handle is lost.
    NotOwner,
}

/// The lease is not ours any more. Final.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("lease {name} is lost ({why:?}): stop writing under it, and acquire anew")]
pub struct Lost {
    /// Which lease.
    pub name: LeaseName,
    /// How.
    pub why: LostWhy,
}

/// What the keeper and the handle share of one grant.
pub(crate) struct Grant {
    pub(crate) ask: Ask,
    pub(crate) token: Option<i64>,
    pub(crate) source: TokenSource,
    pub(crate) deadline: Deadline,
    pub(crate) clock: Arc<dyn Clock>,
    /// Wakes [`Lease::lost`]; the truth is in `deadline`.
    pub(crate) ended: Notify,
}

impl Grant {
    pub(crate) fn remaining(&self) -> Result<Duration, LostWhy> {
        self.deadline.remaining(self.clock.now())
    }

    pub(crate) fn lose(&self, why: LostWhy) {
        self.deadline.lose(why);
        self.ended.notify_waiters();
    }
}

/// A lease we hold, or held. Dropping it releases it without waiting for the answer.
pub struct Lease {
    grant: Arc<Grant>,
    commands: Commands,
    released: bool,
}

impl Lease {
    pub(crate) fn new(grant: Arc<Grant>, commands: Commands) -> Lease {
        Lease { grant, commands, released: false }
    }

    /// Which lease.
    #[must_use]
    pub fn name(&self) -> &LeaseName {
        &self.grant.ask.name
    }

    /// This process start.
    #[must_use]
    pub fn holder(&self) -> HolderId {
        self.grant.ask.holder
    }

    /// The fencing token of an external source; `None` when the ledger mints.
    #[must_use]
    pub fn token(&self) -> Option<i64> {
        self.grant.token
    }

    /// Who makes the tokens of the service that granted this one.
    #[must_use]
    pub fn source(&self) -> &TokenSource {
        &self.grant.source
    }

    /// The guard in front of every write: what remains until the local deadline.
    ///
    /// Reads one atomic and one clock, asks nobody and never waits, so that it is right even when the keeper has not run since
    /// this process woke up. Sticky: once lost, always lost.
    pub fn check(&self) -> Result<Duration, Lost> {
        self.grant.remaining().map_err(|why| Lost { name: self.name().clone(), why })
    }

    /// Compares and extends on the service, now. The answer also moves the local deadline.
    ///
    /// # Errors
    /// The service did not answer: ownership is unknown, the local deadline still counts.
    pub async fn prove(&self) -> Result<Proof, LeaseError> {
        let (reply, answer) = oneshot::channel();
        let prove = Command::Prove { grant: Arc::clone(&self.grant), reply };
        self.commands.send(prove).map_err(|_| LeaseError::Closed)?;
        answer.await.map_err(|_| LeaseError::Closed)?
    }

    /// Gives the lease back and waits for the answer. From the call on it counts as lost. A caller that stops waiting has still
    /// released it.
    #[must_use = "NotHeld means that somebody else may have worked meanwhile"]
    pub async fn release(mut self) -> Release {
        let (reply, answer) = oneshot::channel();
        self.give_back(Some(reply));
        answer.await.unwrap_or(Release::Unknown)
    }

    /// Resolves when the lease is lost. For waits between transactions, not as a guard: look with [`Lease::check`] before a write.
    pub async fn lost(&self) {
        // timers do not count while the machine is suspended; with short naps a loss shows soon after it wakes
        const NAP: Duration = Duration::from_millis(250);
        loop {
            let ended = self.grant.ended.notified();
            let Ok(left) = self.grant.remaining() else { return };
            let _ = tokio::time::timeout(left.min(NAP), ended).await;
        }
    }

    fn give_back(&mut self, reply: Option<oneshot::Sender<Release>>) {
        if std::mem::replace(&mut self.released, true) {
            return;
        }
        self.grant.lose(LostWhy::Released);
        // a keeper that has ended releases nothing more: the row expires
        let _ = self.commands.send(Command::Release { grant: Arc::clone(&self.grant), reply });
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.give_back(None);
    }
}

impl std::fmt::Debug for Lease {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lease").field("ask", &self.grant.ask).field("left", &self.grant.remaining()).finish_non_exhaustive()
    }
}
