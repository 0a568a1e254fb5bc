//! Chaos mode: a deployed instance that hurts itself at named steps. For staging; off unless it is configured.
//!
//! At a [`Step`](domain::step::Step) of the protocol, on its n-th time or by chance, the process freezes itself past its lease, kills
//! itself, holds its thread up, or cuts its own way to the lock service. What it does to itself is what hosts, schedulers and networks do
//! to it anyway, only more often and at the worst instant. `settled verify` afterwards is the judge.
//!
//! Chance comes from a seed: a rule's n-th draw is the same in every process that is started with the same seed and the same rules, so
//! that what went wrong once is met again at the same count. Every fault is logged, counted ([`FAULTS`]) and, where the process keeps one,
//! noted in its history.
//!
//! [`rule`] is the form of a fault, `probe.rs` what does it; the two that need more than a line are [`freeze`] and [`cut`].

pub mod cut;
pub mod freeze;
mod probe;
pub mod rule;

pub use cut::Way;
pub use freeze::wake_frozen;
pub use probe::{FAULTS, NotHere};
pub use rule::{Probability, Rule, What, When};

use crate::history::History;
use domain::step::{NoProbe, Probe};
use lease::Connector;
use probe::Faults;
use std::sync::Arc;

/// The faults of one process. Without rules it does nothing and says nothing.
pub struct Mode {
    rules: Vec<Rule>,
    seed: u64,
    way: Way,
}

impl Mode {
    /// Loads the rules; says so.
    ///
    /// # Errors
    /// They cannot be carried out where this process runs.
    pub fn arm(rules: Vec<Rule>, seed: u64) -> Result<Mode, NotHere> {
        probe::can_be_done(&rules, rustix::process::getpid())?;
        if !rules.is_empty() {
            let listed = rules.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
            tracing::warn!(seed, rules = listed, "chaos mode: this process hurts itself on purpose");
        }
        rules.iter().for_each(probe::count_from_zero);
        Ok(Mode { rules, seed, way: Way::whole() })
    }

    /// What the worker is to tell its steps to. A fault is noted in `history` before it is done.
    #[must_use]
    pub fn probe(&self, history: Option<Arc<History>>) -> Arc<dyn Probe> {
        if self.rules.is_empty() {
            return Arc::new(NoProbe);
        }
        Arc::new(Faults::new(self.rules.clone(), self.seed, self.way.clone(), history))
    }

    /// The lock service, by the way that the rules may cut.
    #[must_use]
    pub fn connector(&self, service: Box<dyn Connector>) -> Box<dyn Connector> {
        let cuts = self.rules.iter().any(|rule| matches!(rule.what, What::Cut(_)));
        if cuts { self.way.to(service) } else { service }
    }
}
