//! A probe that stops or kills this very process at a step: what demo, drills and tests use to be hit at the worst instant.

use anyhow::{Context, bail};
use domain::ids::BatchId;
use domain::step::{Probe, Step};
use rustix::process::{Signal, getpid, kill_process};
use std::str::FromStr;
use std::sync::atomic::{AtomicU32, Ordering};

/// `STEP=stop` or `STEP=kill`; `STEP=stop@3` for the third time the step is reached; `STEP=kill#7` only with batch 7 in hand.
#[derive(Debug)]
pub(crate) struct SignalAt {
    step: Step,
    signal: Signal,
    nth: u32,
    batch: Option<BatchId>,
    reached: AtomicU32,
}

impl Clone for SignalAt {
    fn clone(&self) -> Self {
        SignalAt { step: self.step, signal: self.signal, nth: self.nth, batch: self.batch, reached: AtomicU32::new(0) }
    }
}

impl FromStr for SignalAt {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (step, what) = text.split_once('=').context("expects STEP=stop or STEP=kill")?;
        let (what, batch) = what.split_once('#').map_or((what, None), |(what, batch)| (what, Some(batch)));
        let (what, nth) = what.split_once('@').unwrap_or((what, "1"));
        let signal = match what {
            "stop" => Signal::STOP,
            "kill" => Signal::KILL,
            other => bail!("{other:?} is neither stop nor kill"),
        };
        let batch = batch.map(str::parse).transpose().context("expects a batch after #")?.map(BatchId);
        let nth = nth.parse().context("expects a count after @")?;
        Ok(SignalAt { step: step.parse()?, signal, nth, batch, reached: AtomicU32::new(0) })
    }
}

impl Probe for SignalAt {
    fn at(&self, step: Step) {
        self.at_with(step, &[]);
    }

    fn at_with(&self, step: Step, batches: &[BatchId]) {
        let meant = step == self.step && self.batch.is_none_or(|batch| batches.contains(&batch));
        if !meant || self.reached.fetch_add(1, Ordering::Relaxed) + 1 != self.nth {
            return;
        }
        tracing::warn!(%step, signal = ?self.signal, "signalling this process, as asked");
        if let Err(error) = kill_process(getpid(), self.signal) {
            tracing::error!(%error, "the signal could not be sent");
        }
    }
}
