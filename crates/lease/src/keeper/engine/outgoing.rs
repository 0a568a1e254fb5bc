//! Giving grants back: what a handle released or dropped, what was lost by deadline, and what the service may have granted after we
//! stopped listening. The second half of `engine.rs`, which runs it.

use super::Engine;
use crate::clock::BootInstant;
use crate::deadline::LostWhy;
use crate::handle::Grant;
use crate::{Ask, Release};
use std::sync::Arc;
use tokio::sync::oneshot;

/// One grant on its way back. Repeated until the service answers or the grant must have expired.
pub(super) struct Outgoing {
    pub(super) ask: Ask,
    pub(super) due: BootInstant,
    failures: u32,
    until: BootInstant,
    reply: Option<oneshot::Sender<Release>>,
}

impl Engine {
    /// What a handle asks for. Whatever was under way for the same grant is replaced.
    pub(super) fn release(&mut self, grant: &Arc<Grant>, mut reply: Option<oneshot::Sender<Release>>) {
        self.forget(grant);
        if grant.remaining() == Err(LostWhy::TakenOver) {
            if let Some(reply) = reply.take() {
                let _ = reply.send(Release::NotHeld);
            }
            return;
        }
        self.outgoing.retain(|outgoing| outgoing.ask.nonce != grant.ask.nonce);
        self.dismiss(grant.ask.clone(), reply);
    }

    /// Has the grant released when its turn comes.
    pub(super) fn dismiss(&mut self, ask: Ask, reply: Option<oneshot::Sender<Release>>) {
        let due = self.clock.now();
        self.outgoing.push(Outgoing { ask, due, failures: 0, until: due + self.settings.ttl, reply });
    }

    /// One release. Who waits for it is told now; a failure is repeated without him. Says whether the service answered.
    pub(super) async fn give_back(&mut self, mut outgoing: Outgoing) -> bool {
        let (ask, mut tries) = (&outgoing.ask, 0u32);
        let answer = self
            .session
            .ask("release", self.settings.attempt, async |backend| {
                tries += 1;
                backend.release(ask).await
            })
            .await;
        let outcome = match answer {
            // the try before this one may have released it and lost its reply
            Ok(Release::NotHeld) if tries + outgoing.failures > 1 => Release::Unknown,
            Ok(outcome) => outcome,
            Err(ref error) => {
                tracing::debug!(lease.name = %ask.name, %error, "release without an answer");
                Release::Unknown
            }
        };
        if let Some(reply) = outgoing.reply.take() {
            let _ = reply.send(outcome);
        }
        let (answered, now) = (answer.is_ok(), self.clock.now());
        if !answered && now < outgoing.until {
            outgoing.due = now + self.settings.pause(outgoing.failures);
            outgoing.failures += 1;
            self.outgoing.push(outgoing);
        }
        answered
    }

    /// Gives everything back, and what the grants shared, until the service does not answer once: it will not the next time either.
    pub(super) async fn leave(&mut self) {
        for (_, held) in std::mem::take(&mut self.held) {
            held.grant.lose(LostWhy::Released);
            self.dismiss(held.grant.ask.clone(), None);
        }
        for outgoing in std::mem::take(&mut self.outgoing) {
            if !self.give_back(outgoing).await {
                return;
            }
        }
        if self.session.was_reached() {
            let left = self.session.ask("leave", self.settings.attempt, async |backend| backend.leave().await).await;
            if let Err(error) = left {
                tracing::debug!(%error, "left without an answer; what is left expires");
            }
        }
    }
}
