//! What a process asks of ledger and lock service, written into its [`History`] as it asks.
//!
//! Put outside of everything else that is around a ledger: what is written down is the fence of the process itself, whatever is
//! presented in its place.

mod leases;
mod ledgers;

use crate::history::{History, Of, Op, Phase};
use domain::ids::BatchId;
use domain::step::{Probe, Step};
use std::sync::Arc;

pub use leases::connector;
pub use ledgers::ledger;

/// Written where a call was refused because of its fence; the judge counts them.
pub const FENCED: &str = "fenced";

/// Sends a call and writes down both of its ends. Where it is dropped before, it has no end, and so is unknown.
async fn call<T, E>(
    history: &History,
    (op, of): (Op, Of),
    sent: impl Future<Output = Result<T, E>>,
    end: impl FnOnce(&Result<T, E>) -> (Phase, Of),
) -> Result<T, E> {
    let call = history.invoke(op, of);
    let answer = sent.await;
    let (phase, of) = end(&answer);
    history.end(call, op, phase, of);
    answer
}

/// The probe, with every step written down before it is told of it: it may never come back.
#[must_use]
pub fn probe(probe: Arc<dyn Probe>, history: &Arc<History>) -> Arc<dyn Probe> {
    Arc::new(RecordedProbe { probe, history: Arc::clone(history) })
}

struct RecordedProbe {
    probe: Arc<dyn Probe>,
    history: Arc<History>,
}

impl Probe for RecordedProbe {
    fn at(&self, step: Step) {
        self.at_with(step, &[]);
    }

    fn at_with(&self, step: Step, batches: &[BatchId]) {
        self.history.note(Op::Step, Of { batches: numbers(batches), word: step.to_string(), ..Of::default() });
        self.probe.at_with(step, batches);
    }
}

fn numbers(batches: &[BatchId]) -> Vec<i64> {
    batches.iter().map(|batch| batch.0).collect()
}
