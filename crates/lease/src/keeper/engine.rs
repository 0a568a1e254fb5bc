//! The keeper's thread: what it keeps, what is due next, and what each answer means.
//!
//! Everything happens in one task, one request after the other. That is how a release joins the renewal in flight: it is not even
//! looked at before the renewal has its answer or its timeout.

mod outgoing;

use super::session::Session;
use super::{Command, Commands, RENEWALS, TIME_LEFT, Try};
use crate::clock::{BootInstant, Clock};
use crate::deadline::{Deadline, LostWhy};
use crate::handle::{Grant, Lease, Proof};
use crate::{Acquire, Ask, Backend, KeeperSettings, LeaseError, LeaseName, Line, Renew};
use domain::ids::HolderId;
use metrics::{counter, histogram};
use outgoing::Outgoing;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, mpsc, oneshot};

type AcquireReply = oneshot::Sender<Result<Try, LeaseError>>;

pub(super) struct Engine {
    settings: KeeperSettings,
    holder: HolderId,
    clock: Arc<dyn Clock>,
    session: Session,
    inbox: mpsc::UnboundedReceiver<Command>,
    held: HashMap<LeaseName, Held>,
    outgoing: Vec<Outgoing>,
    wondered: HashSet<LeaseName>,
}

/// A lease that is renewed.
struct Held {
    grant: Arc<Grant>,
    due: BootInstant,
    failures: u32,
}

/// What the next request is for.
enum Due {
    Renewal(LeaseName),
    Release(usize),
}

impl Engine {
    pub(super) fn new(
        settings: KeeperSettings,
        holder: HolderId,
        clock: Arc<dyn Clock>,
        session: Session,
        inbox: mpsc::UnboundedReceiver<Command>,
    ) -> Engine {
        Engine { settings, holder, clock, session, inbox, held: HashMap::new(), outgoing: Vec::new(), wondered: HashSet::new() }
    }

    /// Runs until shutdown, whose reply it returns, or until nobody can send a command any more.
    pub(super) async fn run(mut self) -> Option<oneshot::Sender<()>> {
        let last_words = loop {
            // at most one request, so that renewals and commands take turns
            match self.next_due() {
                Some((due, what)) if due <= self.clock.now() => self.serve(what).await,
                _ => {}
            }
            let nap = self.nap();
            tokio::select! {
                biased;
                command = self.inbox.recv() => match command {
                    Some(Command::Shutdown { reply }) => break Some(reply),
                    Some(command) => self.obey(command).await,
                    None => break None,
                },
                () = tokio::time::sleep(nap) => {}
            }
        };
        self.leave().await;
        last_words
    }

    fn next_due(&self) -> Option<(BootInstant, Due)> {
        let renewals = self.held.iter().map(|(name, held)| (held.due, Due::Renewal(name.clone())));
        let releases = self.outgoing.iter().enumerate().map(|(at, outgoing)| (outgoing.due, Due::Release(at)));
        renewals.chain(releases).min_by_key(|(due, _)| *due)
    }

    /// How long to sleep. Timers stand still while the machine is suspended, so never long: what fell due meanwhile is seen soon
    /// after it wakes.
    fn nap(&self) -> Duration {
        let longest =
            if self.held.is_empty() && self.outgoing.is_empty() { Duration::from_secs(3600) } else { self.settings.ttl / 10 };
        self.next_due().map_or(longest, |(due, _)| self.clock.now().until(due).min(longest))
    }

    async fn serve(&mut self, what: Due) {
        match what {
            Due::Renewal(name) => self.renew(&name).await,
            Due::Release(at) => {
                let outgoing = self.outgoing.swap_remove(at);
                self.give_back(outgoing).await;
            }
        }
    }

    async fn obey(&mut self, command: Command) {
        match command {
            Command::Acquire { ask, wait, commands, reply } => self.acquire(ask, wait, commands, reply).await,
            Command::Dismiss { ask, reply } => self.dismiss(ask, reply),
            Command::Source { reply } => {
                let limit = self.settings.attempt;
                let source = self.session.ask("connect", limit, async |backend| Ok(backend.token_source())).await;
                let _ = reply.send(source);
            }
            Command::Prove { grant, reply } => {
                let proof = self.prove(&grant).await;
                let _ = reply.send(proof);
            }
            Command::Release { grant, reply } => self.release(&grant, reply),
            Command::Inspect { prefix, reply } => {
                let limit = self.settings.attempt;
                let rows = self.session.ask("inspect", limit, async |backend| backend.inspect(&prefix).await).await;
                let _ = reply.send(rows);
            }
            Command::Shutdown { .. } => unreachable!("run() takes it"),
        }
    }

    async fn acquire(&mut self, ask: Ask, wait: bool, commands: Commands, reply: AcquireReply) {
        if reply.is_closed() {
            return; // cancelled while it waited for its turn: nothing was asked
        }
        if let Some(held) = self.held.get(&ask.name) {
            let grant = Arc::clone(&held.grant);
            if grant.remaining().is_ok() {
                let _ = reply.send(Ok(Try::Held));
                return;
            }
            self.forget(&grant);
            self.lost(&grant);
        }
        let answer = self.attempt(ask, wait, commands).await;
        // when nobody takes it, the handle comes back and its drop releases the grant
        drop(reply.send(answer));
    }

    async fn attempt(&mut self, ask: Ask, wait: bool, commands: Commands) -> Result<Try, LeaseError> {
        let (limit, sent) = (self.settings.attempt, self.clock.now());
        let mut asked = false;
        let tried = async |backend: &mut dyn Backend| {
            asked = true;
            backend.try_acquire(&ask).await
        };
        let answer = match self.session.ask("acquire", limit, tried).await {
            Ok(Acquire::Granted { token }) => return self.granted(ask, sent, token, commands).map(Try::Granted),
            Ok(Acquire::HeldByAnother { holder, remaining }) => {
                tracing::trace!(lease.name = %ask.name, ?holder, ?remaining, "lease held by another");
                self.wonder(&ask, remaining);
                if !wait {
                    return Ok(Try::Held);
                }
                self.session.ask("stand in line", limit, async |backend| backend.stand_in_line(&ask).await).await
            }
            Err(error) => Err(error),
        };
        match answer {
            Ok(Line::None) => Ok(Try::Held),
            Ok(Line::Place(turn)) => Ok(Try::InLine(turn)),
            Err(error) => {
                if asked {
                    self.dismiss(ask, None); // it may have been granted after we stopped listening
                }
                Err(error)
            }
        }
    }

    /// A lease that is held for much longer than ours are: said once for each name, or nobody knows why a unit stands still.
    fn wonder(&mut self, ask: &Ask, remaining: Option<Duration>) {
        if let Some(remaining) = remaining.filter(|remaining| *remaining > ask.ttl * 3)
            && self.wondered.insert(ask.name.clone())
        {
            tracing::warn!(
                lease.name = %ask.name, remaining_s = remaining.as_secs(), ttl_s = ask.ttl.as_secs(),
                "held by another for much longer than our TTL: an instance has another lease.ttl_ms, or the clock of the lock service was put back"
            );
        }
    }

    fn granted(&mut self, ask: Ask, sent: BootInstant, token: Option<i64>, commands: Commands) -> Result<Lease, LeaseError> {
        let deadline = Deadline::at(self.deadline(sent));
        let (source, clock) = (self.session.source().clone(), Arc::clone(&self.clock));
        let grant = Arc::new(Grant { ask, token, source, deadline, clock, ended: Notify::new() });
        if grant.remaining().is_err() {
            // the machine slept while the answer travelled
            self.dismiss(grant.ask.clone(), None);
            let after = sent.until(self.clock.now());
            return Err(LeaseError::TimedOut { what: grant.ask.name.to_string(), doing: "acquire", after });
        }
        let due = sent + self.settings.next_renewal();
        let name = grant.ask.name.clone();
        tracing::debug!(lease.name = %name, holder.id = %self.holder, "lease acquired");
        self.held.insert(name, Held { grant: Arc::clone(&grant), due, failures: 0 });
        Ok(Lease::new(grant, commands))
    }

    fn deadline(&self, sent: BootInstant) -> BootInstant {
        sent + (self.settings.ttl - self.settings.margin)
    }

    async fn renew(&mut self, name: &LeaseName) {
        let Some(mut held) = self.held.remove(name) else { return };
        let sent = self.clock.now();
        let mut left = None;
        match self.extend(&held.grant, |was_left| left = Some(was_left)).await {
            Ok(Proof::Owner) => {
                // one that was answered too late is told where it is lost
                left.into_iter().for_each(|left| histogram!(TIME_LEFT).record(left));
                counter!(RENEWALS, "outcome" => "renewed").increment(1);
                held.due = sent + self.settings.next_renewal();
                held.failures = 0;
            }
            Ok(Proof::NotOwner) => {
                counter!(RENEWALS, "outcome" => "lost").increment(1);
                return self.lost(&held.grant);
            }
            Err(error) => {
                counter!(RENEWALS, "outcome" => "unknown").increment(1);
                tracing::debug!(lease.name = %name, attempt = held.failures + 1, %error, "renewal without an answer");
                let now = self.clock.now();
                let left = held.grant.remaining().unwrap_or_default();
                held.due = now + self.settings.pause(held.failures).min(left);
                held.failures += 1;
            }
        }
        self.held.insert(name.clone(), held);
    }

    async fn prove(&mut self, grant: &Arc<Grant>) -> Result<Proof, LeaseError> {
        let sent = self.clock.now();
        let proof = self.extend(grant, |_| {}).await?;
        match proof {
            Proof::Owner => {
                if let Some(held) = self.held.get_mut(&grant.ask.name) {
                    held.due = sent + self.settings.next_renewal();
                }
            }
            Proof::NotOwner => {
                if self.forget(grant) {
                    self.lost(grant);
                }
            }
        }
        Ok(proof)
    }

    /// One compare-and-extend, never longer than what remains of the lease. Tells how much was left when the answer came.
    async fn extend(&mut self, grant: &Arc<Grant>, was_left: impl FnOnce(Duration)) -> Result<Proof, LeaseError> {
        let Ok(left) = grant.remaining() else { return Ok(Proof::NotOwner) };
        let sent = self.clock.now();
        let limit = self.settings.attempt.min(left);
        match self.session.ask("renew", limit, async |backend| backend.renew(&grant.ask).await).await? {
            Renew::Renewed => {
                was_left(grant.remaining().unwrap_or_default());
                let extended = grant.deadline.extend(self.clock.now(), self.deadline(sent));
                Ok(extended.map_or(Proof::NotOwner, |()| Proof::Owner))
            }
            Renew::Lost => {
                grant.lose(LostWhy::TakenOver);
                Ok(Proof::NotOwner)
            }
        }
    }

    /// Takes the grant out of the kept ones, unless a newer one of the same name is there. Says whether it was kept.
    fn forget(&mut self, grant: &Arc<Grant>) -> bool {
        let name = &grant.ask.name;
        let kept = self.held.get(name).is_some_and(|held| held.grant.ask.nonce == grant.ask.nonce);
        if kept {
            self.held.remove(name);
        }
        kept
    }

    /// A kept lease came to its end without being released. Said once, here.
    fn lost(&mut self, grant: &Arc<Grant>) {
        grant.lose(LostWhy::Deadline); // in vain when the reason is known
        match grant.remaining() {
            Err(LostWhy::TakenOver) => tracing::warn!(lease.name = %grant.ask.name, "lease lost: expired or taken over"),
            Err(LostWhy::Deadline) => {
                tracing::warn!(lease.name = %grant.ask.name, "lease lost: not renewed before its local deadline");
                histogram!(TIME_LEFT).record(0.0);
                // the service may keep it for the margin, or for another TTL if the last attempt did arrive: let others have it
                self.dismiss(grant.ask.clone(), None);
            }
            Err(LostWhy::Released) | Ok(_) => {} // its release is under way
        }
        grant.ended.notify_waiters();
    }
}
