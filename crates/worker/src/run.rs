//! A run: open or join it, then work until every due batch is settled, broken or quarantined — by anyone.
//!
//! The run row gates nothing. Ten instances that start the same run at once share its units; the one that starts last finds
//! nothing to do and says so.

use crate::grant::Take;
use crate::report::{RunReport, millis};
use crate::settle::Shift;
use crate::{Worker, WorkerError};
use domain::batch::BatchState;
use domain::step::Step;
use domain::unit::Unit;
use lease::Keeper;
use ledger::schedule::PlannedRun;
use rand::RngExt;
use rand::seq::SliceRandom;
use std::time::{Duration, Instant};
use tracing::{info, warn};

/// The longest pause between two looks for work when a service is out.
const OUTAGE_PAUSE: Duration = Duration::from_secs(2);

/// What a look for work came to.
enum Round {
    /// Nothing is due any more.
    Done,
    /// So many units have work, and it is time to stop.
    Over(usize),
    /// Look again.
    More,
}

impl Worker {
    /// Works the run of `planned` to its end, or until `wait` is over, or until a drain is asked.
    ///
    /// Outages of ledger and lock service are waited out: nothing is settled meanwhile, and the work goes on by itself.
    ///
    /// # Errors
    /// [`WorkerError::WaitEnded`]; the last outage, where one lasted to the end of the wait; everything that waiting cannot cure.
    pub async fn run(&self, planned: &PlannedRun, wait: Option<Duration>) -> Result<RunReport, WorkerError> {
        let begun = Instant::now();
        let until = wait.map(|wait| begun + wait);
        let mut outage: Option<WorkerError> = None;
        let run = loop {
            match self.ledger.open_run(planned, self.holder).await.map_err(WorkerError::from) {
                Ok(run) => break run,
                Err(error) => self.sit_out(error, &mut outage, until).await?,
            }
        };
        let shift = Shift { run, due: planned.due(), until };
        self.probe.at(Step::RunPlanned);
        info!(run.id = %run, upto = %shift.due.upto, holder.id = %self.holder, "run opened or joined");
        loop {
            match self.round(&shift, &mut outage).await {
                Ok(Round::Done) => break,
                Ok(Round::Over(_)) if self.drain.is_asked() => break,
                Ok(Round::Over(units)) => return Err(outage.unwrap_or(WorkerError::WaitEnded(units))),
                Ok(Round::More) => {}
                Err(error) => self.sit_out(error, &mut outage, until).await?,
            }
        }
        if !self.drain.is_asked() {
            self.ledger.finish(&shift.due).await?;
        }
        self.report(&shift, begun).await
    }

    /// Waits a moment when a service is out; any other error, and the end of the wait, is an error.
    pub(crate) async fn sit_out(
        &self,
        error: WorkerError,
        outage: &mut Option<WorkerError>,
        until: Option<Instant>,
    ) -> Result<(), WorkerError> {
        if !error.is_outage() || is_over(until) || self.drain.is_asked() {
            return Err(error);
        }
        if outage.is_none() {
            warn!(%error, "a service is out; nothing is settled until it is back");
        }
        *outage = Some(error);
        self.pause(OUTAGE_PAUSE).await;
        Ok(())
    }

    /// Looks for units that have work and works one of them. Pauses when all of them are busy.
    async fn round(&self, shift: &Shift, outage: &mut Option<WorkerError>) -> Result<Round, WorkerError> {
        let units = self.ledger.due_units(&shift.due).await?;
        if units.is_empty() {
            return Ok(Round::Done);
        }
        if self.is_to_stop(shift) {
            return Ok(Round::Over(units.len()));
        }
        let worked = self.work_some(units, shift).await?;
        *outage = None;
        if !worked {
            self.pause(self.pace.get().poll).await;
        }
        Ok(Round::More)
    }

    /// Works one of the units, or a handful of rows where there are no leases. `false`: others have all of it.
    pub(crate) async fn work_some(&self, mut units: Vec<Unit>, shift: &Shift) -> Result<bool, WorkerError> {
        // Everybody in an order of their own, so that instances spread over the units instead of queueing for the first.
        units.shuffle(&mut rand::rng());
        match &self.keeper {
            Some(keeper) => self.work_one_of(keeper, &units, shift).await,
            None => self.work_rows(&units, shift).await,
        }
    }

    /// Takes the first unit that is free and gives something out, and works it to its end; a worker holds one at a time. `false`:
    /// there was none, or the one that was got lost at once (whatever the cause, it must not be tried again without a pause).
    async fn work_one_of(&self, keeper: &Keeper, units: &[Unit], shift: &Shift) -> Result<bool, WorkerError> {
        for unit in units {
            if self.is_to_stop(shift) {
                return Ok(true);
            }
            match self.take(keeper, *unit).await? {
                Take::Granted(grant) => {
                    if self.work_unit(*grant, shift).await? {
                        return Ok(true);
                    }
                }
                Take::Busy => {}
                Take::Lost | Take::Fenced => return Ok(false),
            }
        }
        Ok(false)
    }

    /// Sleeps a random part of `longest`, or until a drain is asked.
    pub(crate) async fn pause(&self, longest: Duration) {
        let part = rand::rng().random_range(0.2..=1.0);
        self.sleep(longest.mul_f64(part)).await;
    }

    /// The same, nearer to it: what costs is how often, what must differ is when.
    pub(crate) async fn pause_about(&self, longest: Duration) {
        let part = rand::rng().random_range(0.7..=1.0);
        self.sleep(longest.mul_f64(part)).await;
    }

    async fn sleep(&self, duration: Duration) {
        tokio::select! {
            () = tokio::time::sleep(duration) => {}
            () = self.drain.asked() => {}
        }
    }

    async fn report(&self, shift: &Shift, begun: Instant) -> Result<RunReport, WorkerError> {
        let status = self.ledger.status(Some(&shift.due)).await?;
        let batches = |state| status.batches.get(&state).copied().unwrap_or(0);
        let settled = self.counters.settled.get();
        Ok(RunReport {
            run_id: shift.run,
            batches_settled: settled,
            batches_already_settled: self.ledger.run_settled(shift.run).await?.saturating_sub(settled),
            batches_broken: batches(BatchState::Broken),
            batches_quarantined: batches(BatchState::Quarantined),
            fenced: self.counters.fenced.get(),
            items: self.counters.items.get(),
            duration_ms: millis(begun.elapsed()),
        })
    }
}

fn is_over(until: Option<Instant>) -> bool {
    until.is_some_and(|until| Instant::now() >= until)
}
