//! The lock service: one name. A lease expires at any time, whatever its holder believes; and the service can lose its memory.

use super::Model;
use super::action::{Action, Told};
use super::scope::Source;
use super::state::{At, Lock, Memory, Order, State};

impl Lock {
    /// Nobody has it: a nonce, the truth about its place, and the service's own token.
    pub(super) fn grant(&mut self) -> (u8, Order, i64) {
        self.nonces += 1;
        self.serials += 1;
        self.memory = Memory { held: Some(self.nonces), revision: self.memory.revision + 1 };
        self.saved.get_or_insert(self.memory);
        (self.nonces, Order { generation: 0, epoch: self.epoch, serial: self.serials }, self.memory.revision)
    }
}

/// What can happen to it, and to the source of tokens.
pub(super) fn actions(model: &Model, state: &State, actions: &mut Vec<Action>) {
    if let Some(held) = state.lock.memory.held
        && (state.left.expiries > 0 || !is_anybodys(state, held))
    {
        actions.push(Action::Expire);
    }
    if state.left.resets > 0 && state.lock.nonces > 0 {
        actions.push(Action::Forget);
        actions.push(Action::Restore);
    }
    if !state.ledger.adopted || state.left.adoptions > 0 && model.scope.workers > 0 {
        actions.push(Action::Adopt);
    }
}

/// What need not happen: nothing may depend on it.
pub(super) fn is_fault(state: &State, action: Action) -> bool {
    match action {
        Action::Forget | Action::Restore | Action::Crash(_) | Action::CrashImporter(_) => true,
        Action::Expire => state.lock.memory.held.is_some_and(|held| is_anybodys(state, held)),
        Action::Adopt => state.ledger.adopted,
        _ => false,
    }
}

/// Whether a worker believes in it.
fn is_anybodys(state: &State, nonce: u8) -> bool {
    state.workers.iter().any(|worker| worker.nonce == nonce && worker.at != At::Idle)
}

pub(super) fn expire(state: &mut State) -> Told {
    if let Some(held) = state.lock.memory.held.take()
        && is_anybodys(state, held)
    {
        state.left.expiries -= 1;
    }
    Told::LeaseFree
}

/// Whoever has the lease by what is restored is the live holder from now on, as if it had been granted now.
pub(super) fn reset(model: &Model, state: &mut State, to: Memory) -> Told {
    state.left.resets -= 1;
    let revision = if model.scope.source == Source::External { to.revision } else { state.lock.memory.revision };
    state.lock.memory = Memory { held: to.held, revision };
    state.lock.epoch += 1;
    state.lock.serials += 1;
    let (epoch, serial) = (state.lock.epoch, state.lock.serials);
    for worker in state.workers.iter_mut().filter(|worker| Some(worker.nonce) == to.held) {
        (worker.order.epoch, worker.order.serial) = (epoch, serial);
        if state.ledger.newest.nonce == worker.nonce {
            state.ledger.newest.order = worker.order;
        }
    }
    Told::Plain
}

pub(super) fn adopt(model: &Model, state: &mut State) -> Told {
    state.left.adoptions -= u8::from(state.ledger.adopted);
    state.ledger.adopt(true, model.protocol);
    Told::Generation(state.ledger.generation)
}
