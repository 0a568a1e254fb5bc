//! The protocol of settlement in every order of **its steps**, within bounds: what no number of drills can try.
//!
//! The design's acquire → mint → prove → register → claim → settle, with leases that expire at any time, pauses anywhere (that is
//! what any order of steps is), answers that are lost, processes that die, lock services that forget or are restored, and
//! generations that are adopted. What is decided is decided by the product's own functions (`domain::fence`, `domain::outcome`,
//! `domain::batch`), so that a change there is checked here.
//!
//! - [`Scope`]: how much of everything, so that there is an end.
//! - [`Protection`]: what can be taken away; [`Damage`]: what must then appear, and never else.
//! - [`matrix`]: what is taken away in turn, and what breaks.
//!
//! Liveness is a matter of ends: every fault is counted, and where nothing but faults can happen any more everything must be settled.
//! A space that has no end is told as such. There is no local deadline in it: the promise does not rest on one.
//!
//! What is **not** in it, and why:
//!
//! - A drain: it hands back what is claimed and releases, both of which are steps here, and the rest is as if the process had died.
//! - Charges, and giving up after so many: counters would multiply the states. A batch whose entry is there already, so that it would
//!   fail each time, is given up at the first hand-back; no other ever is.
//! - Contention, after which a worker hands back and leaves: here it hands back and goes on, and leaves where it sees a loss.
//! - The guards without a lease (`row-lock`, `advisory-xact`): they have no fence to be late with, the database's locks are all of it.
//! - Requests that come late: each step happens at once, wherever it falls in the order. An acquire or a release that reaches the lock
//!   service after its sender gave up is the lease of nobody that expires, or names a nonce that nobody has; a statement that reaches
//!   the ledger late carries the stamp that it is judged by, and limits of time that the database keeps.
//! - Lost answers of the proof, of reading the generation, of reading back and of the release of a lease: they write nothing but the
//!   release, after which the worker has no grant either way; a worker that ends there without an answer is a process that dies there.
//! - Retries within one request to the ledger: they are the same transaction once more, under the same stamp.
//! - A refused registration is one step, though the product reads the stored stamp in a statement of its own: what comes between can
//!   only be newer.
//! - Failures inside a transaction, and what two transactions see of each other: PostgreSQL's isolation is taken as given, the tests
//!   with a real server are for that. So is a ledger that was restored from an older backup: drills do that.
//! - More than one unit, and more than one line of imports: units share the counter of tokens and the generation, and nothing else.
//! - Time: a pause is that others take steps, and deadlines only ever make somebody stop.
//!
//! The checker is Stateright's, breadth first, so that a counter-example is a shortest one.

mod action;
mod import;
mod invariant;
mod ledger;
mod lock;
pub mod matrix;
mod protection;
mod scope;
mod state;
mod tell;
mod worker;

pub use action::{Action, Reply, Told};
pub use invariant::Damage;
pub use protection::{Protection, Protocol};
pub use scope::{SCOPES, Scope, Source};
pub use state::State;
pub use tell::{Happening, Turn, timeline};

use stateright::Property;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use worker::Step;

/// The protocol within bounds.
#[derive(Clone)]
pub struct Model {
    /// How much of everything.
    pub scope: Scope,
    /// What it has of the protocol.
    pub protocol: Protocol,
    /// Damage that is looked for.
    watched: Vec<Damage>,
    /// How often a step came to each [`Happening`].
    happened: Arc<[AtomicU64; Happening::ALL.len()]>,
}

impl Model {
    /// Looks for these.
    #[must_use]
    pub fn new(scope: Scope, protocol: Protocol, watched: &[Damage]) -> Model {
        Model { scope, protocol, watched: watched.to_vec(), happened: Arc::default() }
    }

    /// How often a step came to this, whatever has been explored.
    #[must_use]
    pub fn happened(&self, happening: Happening) -> u64 {
        self.happened[happening as usize].load(Ordering::Relaxed)
    }

    /// Changes the state by the action.
    fn step(&self, state: &mut State, action: Action) -> Told {
        let step = |me: u8, state| Step { model: self, state, me };
        match action {
            Action::ReadGeneration(me) => step(me, state).read_generation(),
            Action::Acquire(me, reply) => step(me, state).acquire(reply),
            Action::Mint(me, reply) => step(me, state).mint(reply),
            Action::Prove(me) => step(me, state).prove(),
            Action::Register(me, reply) => step(me, state).register(reply),
            Action::Doubt(me) => step(me, state).doubt(),
            Action::Claim(me, reply) => step(me, state).claim(reply),
            Action::Settle(me, reply) => step(me, state).settle(reply),
            Action::HandBack(me, reply) => step(me, state).hand_back(reply),
            Action::Finish(me) => step(me, state).finish(),
            Action::ReadBack(me) => step(me, state).read_back(),
            Action::NoticeLoss(me) => step(me, state).notice_loss(),
            Action::Release(me) => step(me, state).release(),
            Action::Crash(me) => step(me, state).crash(),
            Action::Expire => lock::expire(state),
            Action::Forget => lock::reset(self, state, state::Memory::default()),
            Action::Restore => lock::reset(self, state, state.lock.saved.unwrap_or_default()),
            Action::Adopt => lock::adopt(self, state),
            Action::Look(me) => import::look(self, state, me),
            Action::Write(me, reply) => import::write(self, state, me, reply),
            Action::CrashImporter(me) => import::crash(state, me),
        }
    }

    /// Everything that can happen next.
    fn possible(&self, state: &State, actions: &mut Vec<Action>) {
        // what comes after damage is no news
        if state.damage.any() {
            return;
        }
        for (me, worker) in (0_u8..).zip(&state.workers) {
            worker::actions(self, state, me, actions);
            // they are alike: who has not begun yet is the next by number
            if !worker.begun {
                break;
            }
        }
        for me in (0_u8..).take(state.importers.len()) {
            import::actions(self, state, me, actions);
        }
        lock::actions(self, state, actions);
    }

    /// Nothing can happen but more faults, and not everything is done.
    fn is_stuck(&self, state: &State) -> bool {
        if state.damage.any() || state.is_done() {
            return false;
        }
        let mut actions = Vec::new();
        self.possible(state, &mut actions);
        actions.iter().all(|action| lock::is_fault(state, *action))
    }

    fn spares(&self, state: &State, damage: Damage) -> bool {
        if damage == Damage::Stuck { !self.is_stuck(state) } else { !state.damage.has(damage) }
    }

    fn never(damage: Damage) -> Property<Model> {
        let spares: fn(&Model, &State) -> bool = match damage {
            Damage::DoubleSettlement => |model, state| model.spares(state, Damage::DoubleSettlement),
            Damage::SupersededCommits => |model, state| model.spares(state, Damage::SupersededCommits),
            Damage::DoubleImport => |model, state| model.spares(state, Damage::DoubleImport),
            Damage::StaleOutranks => |model, state| model.spares(state, Damage::StaleOutranks),
            Damage::UntrueOutcome => |model, state| model.spares(state, Damage::UntrueOutcome),
            Damage::Stuck => |model, state| model.spares(state, Damage::Stuck),
        };
        Property::always(damage.as_str(), spares)
    }
}

impl stateright::Model for Model {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::first(self.scope)]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        self.possible(state, actions);
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        let told = self.step(&mut next, action);
        if let Some(happening) = tell::happening(action, told) {
            self.happened[happening as usize].fetch_add(1, Ordering::Relaxed);
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Model>> {
        self.watched.iter().copied().map(Model::never).collect()
    }
}
