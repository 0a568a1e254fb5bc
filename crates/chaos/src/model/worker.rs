//! The steps of a worker, as `worker::grant` and `worker::settle` take them.

use super::Model;
use super::action::{Action, Reply, Told};
use super::invariant::Damage;
use super::ledger::Posted;
use super::protection::Protection;
use super::scope::Source;
use super::state::{At, State, Worker};
use domain::batch::BatchState;
use domain::fence::Standing;
use domain::outcome::SettleOutcome;

/// What the worker can do next.
pub(super) fn actions(model: &Model, state: &State, me: u8, actions: &mut Vec<Action>) {
    let worker = &state.workers[usize::from(me)];
    let lost = state.left.lost > 0;
    let mut ask = |action: fn(u8, Reply) -> Action, replies: &[Reply]| {
        actions.extend(replies.iter().filter(|reply| lost || **reply == Reply::Comes).map(|reply| action(me, *reply)));
    };
    let either = [Reply::Comes, Reply::IsLost];
    let any = [Reply::Comes, Reply::IsLost, Reply::NeverAsked];
    match worker.at {
        At::Idle if state.ledger.has_due() && state.ledger.adopted => actions.push(Action::ReadGeneration(me)),
        At::Idle => {}
        At::Ready if mints_first(model, worker) => ask(Action::Mint, &either),
        At::Ready if state.lock.memory.held.is_none() => ask(Action::Acquire, &either),
        At::Ready => {}
        At::Acquired if mints_before_proof(model, worker) => ask(Action::Mint, &either),
        At::Acquired if model.protocol.has(Protection::Proof) => actions.push(Action::Prove(me)),
        At::Acquired | At::Proven if worker.token == 0 => ask(Action::Mint, &either),
        At::Acquired | At::Proven => ask(Action::Register, &either),
        At::Refused => actions.push(Action::Doubt(me)),
        At::Registered => ask(Action::Claim, &either),
        At::Claimed => ask(Action::Settle, &any),
        At::HandingBack { .. } => ask(Action::HandBack, &any),
        At::Half => actions.push(Action::Finish(me)),
        At::ReadBack { .. } => actions.push(Action::ReadBack(me)),
        At::Leaving => actions.push(Action::Release(me)),
    }
    if worker.at == At::Claimed && state.left.fails > 0 {
        actions.push(Action::Settle(me, Reply::Fails));
    }
    if matches!(worker.at, At::Registered | At::Claimed) && state.lock.memory.held != Some(worker.nonce) {
        actions.push(Action::NoticeLoss(me));
    }
    if worker.at != At::Idle && state.left.crashes > 0 {
        actions.push(Action::Crash(me));
    }
}

fn mints_first(model: &Model, worker: &Worker) -> bool {
    model.scope.source == Source::LedgerMinted && worker.token == 0 && !model.protocol.has(Protection::MintUnderLock)
}

fn mints_before_proof(model: &Model, worker: &Worker) -> bool {
    worker.token == 0 && model.protocol.has(Protection::MintBeforeProof)
}

/// One request: the worker as it is before, and what it changes.
pub(super) struct Step<'a> {
    pub(super) model: &'a Model,
    pub(super) state: &'a mut State,
    pub(super) me: u8,
}

impl Step<'_> {
    fn worker(&mut self) -> &mut Worker {
        &mut self.state.workers[usize::from(self.me)]
    }

    fn go(&mut self, at: At) {
        self.worker().at = at;
    }

    fn lose(&mut self, reply: Reply) -> bool {
        let lost = reply != Reply::Comes;
        self.state.left.lost -= u8::from(lost);
        lost
    }

    pub(super) fn read_generation(mut self) -> Told {
        let generation = self.state.ledger.generation;
        let worker = self.worker();
        (worker.begun, worker.at, worker.generation) = (true, At::Ready, generation);
        Told::Generation(generation)
    }

    pub(super) fn acquire(mut self, reply: Reply) -> Told {
        let (nonce, mut order, revision) = self.state.lock.grant();
        if self.lose(reply) {
            self.worker().drop_grant();
            return Told::Granted(None);
        }
        let external = self.model.scope.source == Source::External;
        let worker = self.worker();
        order.generation = worker.generation;
        (worker.at, worker.nonce, worker.order) = (At::Acquired, nonce, order);
        worker.token = if external { revision } else { worker.token };
        Told::Granted(external.then_some(revision))
    }

    pub(super) fn mint(mut self, reply: Reply) -> Told {
        let token = self.state.ledger.mint();
        if self.lose(reply) {
            match self.worker().at {
                At::Ready => self.worker().drop_grant(),
                _ => self.go(At::Leaving),
            }
        } else {
            self.worker().token = token;
        }
        Told::Token(token)
    }

    pub(super) fn prove(mut self) -> Told {
        let owner = self.is_owner();
        self.go(if owner { At::Proven } else { At::Leaving });
        if owner { Told::Owner } else { Told::NotOwner }
    }

    fn is_owner(&mut self) -> bool {
        let nonce = self.worker().nonce;
        self.state.lock.memory.held == Some(nonce)
    }

    pub(super) fn register(mut self, reply: Reply) -> Told {
        let (mine, worker) = (self.stamp(), *self.worker());
        let (stored, damage) = self.state.ledger.register(mine, &worker, self.model.protocol);
        if let Some(damage) = damage {
            self.state.damage.set(damage);
        }
        let lost = self.lose(reply);
        if stored == mine {
            self.go(if lost { At::Leaving } else { At::Registered });
            return Told::Registered(mine.fence);
        }
        if stored.fence.generation > mine.fence.generation {
            self.go(At::Leaving);
            return Told::Raised(mine.fence, stored);
        }
        let external = !lost && self.model.scope.source == Source::External;
        self.go(if external { At::Refused } else { At::Leaving });
        Told::Refused(mine.fence, stored)
    }

    /// One step though it asks two servers: what comes between can only make a stop needless.
    pub(super) fn doubt(mut self) -> Told {
        let owner = self.is_owner();
        self.go(At::Leaving);
        if !owner {
            return Told::NotOwner;
        }
        self.state.ledger.adopt(false, self.model.protocol);
        Told::SourceStopped
    }

    pub(super) fn claim(mut self, reply: Reply) -> Told {
        let mine = self.stamp();
        let anothers = self.state.ledger.anothers(mine);
        let claimed = self.state.ledger.claim(mine, self.model.scope.most, self.model.protocol);
        let lost = self.lose(reply);
        match claimed {
            Err(standing) => {
                self.go(At::Leaving);
                if standing == Standing::Superseded { Told::ClaimFenced } else { Told::ClaimLost }
            }
            Ok(batches) => {
                self.go(if lost || batches == 0 { At::Leaving } else { At::Claimed });
                self.worker().claimed = if lost { 0 } else { batches };
                Told::Claimed(batches, batches & anothers != 0)
            }
        }
    }

    pub(super) fn settle(mut self, reply: Reply) -> Told {
        if reply == Reply::Fails {
            self.state.left.fails -= 1;
            self.go(At::HandingBack { in_vain: false });
            return Told::Failed;
        }
        if self.lose(reply) && reply == Reply::NeverAsked {
            self.go(At::ReadBack { lost: true });
            return Told::NothingSettled;
        }
        let (mine, worker) = (self.stamp(), *self.worker());
        let (whole, protocol) = (self.model.protocol.has(Protection::OneTransaction), self.model.protocol);
        let ledger = &mut self.state.ledger;
        let posted = match whole {
            true => ledger.settle(mine, worker.nonce, worker.claimed, protocol),
            false => ledger.post_only(mine, worker.nonce, worker.claimed, protocol),
        };
        self.judge(posted.settled);
        if whole || posted.key_taken || posted.settled == 0 {
            return self.settled(posted, reply == Reply::IsLost);
        }
        self.go(if reply == Reply::IsLost { At::ReadBack { lost: true } } else { At::Half });
        Told::EffectPosted(posted.settled)
    }

    pub(super) fn finish(mut self) -> Told {
        let (mine, worker) = (self.stamp(), *self.worker());
        let posted = self.state.ledger.mark_only(mine, worker.claimed, self.model.protocol);
        self.settled(posted, false)
    }

    fn settled(&mut self, posted: Posted, lost: bool) -> Told {
        if posted.key_taken {
            self.go(At::HandingBack { in_vain: true });
            return Told::KeyTaken;
        }
        let claimed = self.worker().claimed;
        let open = if lost { claimed } else { claimed & !posted.settled };
        self.worker().claimed = open;
        self.go(if open == 0 { At::Registered } else { At::ReadBack { lost } });
        if posted.settled == 0 { Told::NothingSettled } else { Told::Settled(posted.settled) }
    }

    pub(super) fn hand_back(mut self, reply: Reply) -> Told {
        let (mine, claimed) = (self.stamp(), self.worker().claimed);
        let in_vain = self.worker().at == At::HandingBack { in_vain: true };
        let lost = self.lose(reply);
        let back = match reply {
            Reply::NeverAsked => 0,
            _ => self.state.ledger.hand_back(mine, claimed, in_vain, self.model.protocol),
        };
        self.worker().claimed = 0;
        self.go(if lost { At::Leaving } else { At::Registered });
        Told::HandedBack(back)
    }

    /// Of a commit, at its instant.
    fn judge(&mut self, committed: u8) {
        if committed != 0 && self.state.ledger.newest.nonce != self.worker().nonce {
            self.state.damage.set(Damage::SupersededCommits);
        }
        if self.state.ledger.batches.iter().any(|batch| batch.entries > 1) {
            self.state.damage.set(Damage::DoubleSettlement);
        }
    }

    pub(super) fn read_back(mut self) -> Told {
        let (mine, worker) = (self.stamp(), *self.worker());
        let lost = worker.at == At::ReadBack { lost: true };
        let mut told = Told::Plain;
        let mut over = false;
        for number in (0..8).filter(|number| worker.claimed & (1 << number) != 0) {
            let (outcome, is_true) = self.state.ledger.read_back(number, mine, worker.nonce);
            if !is_true && self.model.protocol.has(Protection::OneTransaction) {
                self.state.damage.set(Damage::UntrueOutcome);
            }
            over |= match outcome {
                SettleOutcome::Settled | SettleOutcome::AlreadySettled => false,
                SettleOutcome::Fenced { .. } | SettleOutcome::ClaimLost => true,
                SettleOutcome::NotClaimable { state } => lost && matches!(state, BatchState::Settling | BatchState::Pending),
            };
            told = Told::Outcome(outcome);
        }
        self.worker().claimed = 0;
        self.go(if over { At::Leaving } else { At::Registered });
        told
    }

    pub(super) fn notice_loss(mut self) -> Told {
        self.worker().drop_grant();
        Told::Plain
    }

    pub(super) fn release(mut self) -> Told {
        let nonce = self.worker().nonce;
        let held = self.state.lock.memory.held;
        let own = held == Some(nonce);
        let stray = !own && held.is_some() && !self.model.protocol.has(Protection::Nonce) && self.state.left.strays > 0;
        self.state.left.strays -= u8::from(stray);
        if own || stray {
            self.state.lock.memory.held = None;
        }
        self.worker().drop_grant();
        match (own, stray) {
            (true, _) => Told::LeaseFree,
            (_, true) => Told::ReleasedAnothers,
            _ => Told::NotHeld,
        }
    }

    pub(super) fn crash(mut self) -> Told {
        self.state.left.crashes -= 1;
        let worker = self.worker();
        worker.start += 1;
        worker.drop_grant();
        Told::Plain
    }

    fn stamp(&mut self) -> domain::fence::Stamp {
        let (me, protocol) = (self.me, self.model.protocol);
        self.worker().stamp(me, protocol)
    }
}
