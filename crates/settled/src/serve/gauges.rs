//! Gauges about the ledger, read when somebody asks and not more often than every few seconds: an instance that nobody scrapes costs
//! the database nothing, and many scrapers cost as much as one.

use super::metrics as name;
use ledger::Ledger;
use ledger::schedule::{Marks, OpenRun, ScheduleState};
use metrics::gauge;
use scheduler::definition::Definition;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Mutex, watch};

/// How old an answer may be.
const FRESH: Duration = Duration::from_secs(2);
/// How long somebody who asks waits for it.
const PATIENCE: Duration = Duration::from_secs(3);

/// When the ledger was read, and why it could not be.
type Answer = (Instant, Result<(), String>);

/// Reads the ledger at most every few seconds.
#[derive(Clone)]
pub(super) struct Gauges {
    ledger: Arc<dyn Ledger>,
    definitions: watch::Receiver<Vec<Definition>>,
    last: Arc<Mutex<Option<Answer>>>,
}

impl Gauges {
    pub(super) fn new(ledger: Arc<dyn Ledger>, definitions: watch::Receiver<Vec<Definition>>) -> Gauges {
        Gauges { ledger, definitions, last: Arc::default() }
    }

    /// Brings the gauges up to date, or says why they are not.
    pub(super) async fn refresh(&self) -> Result<(), String> {
        // In a task of its own: who asks may go away, but a statement that is cut off leaves its connection in the middle of an answer.
        let reading = self.clone();
        match tokio::time::timeout(PATIENCE, tokio::spawn(async move { reading.read_if_old().await })).await {
            Ok(Ok(read)) => read,
            Ok(Err(error)) => Err(format!("reading the ledger failed: {error}")),
            Err(_) => {
                gauge!(name::LEDGER_UP).set(0);
                Err(format!("the ledger did not answer within {} s", PATIENCE.as_secs()))
            }
        }
    }

    /// Whoever comes while it is read waits for that answer.
    async fn read_if_old(&self) -> Result<(), String> {
        let mut last = self.last.lock().await;
        match &*last {
            Some((at, read)) if at.elapsed() < FRESH => read.clone(),
            Some(_) | None => {
                let read = self.read().await.map_err(|error| error.to_string());
                gauge!(name::LEDGER_UP).set(if read.is_ok() { 1 } else { 0 });
                *last = Some((Instant::now(), read.clone()));
                read
            }
        }
    }

    async fn read(&self) -> Result<(), ledger::LedgerError> {
        let marks = self.ledger.marks().await?;
        self.show_schedules(&marks, &self.ledger.schedule_states().await?);
        let waiting = self.ledger.waiting().await?;
        let states = [
            ("pending", waiting.pending),
            ("settling", waiting.settling),
            ("broken", waiting.broken),
            ("quarantined", waiting.quarantined),
        ];
        states.into_iter().for_each(|(state, batches)| gauge!(name::BATCHES, "state" => state).set(float(batches)));
        gauge!(name::LEDGER_FENCE_REJECTIONS).set(float(waiting.fence_rejections));
        let runs = self.ledger.open_work().await?;
        let units: usize = runs.iter().map(|run| run.units.len()).sum();
        gauge!(name::UNITS_DUE).set(u32::try_from(units).unwrap_or(u32::MAX));
        for run in &runs {
            if let Some(late) = lateness(run, marks.now) {
                gauge!(name::RUN_LATENESS, "schedule" => run.key.schedule.clone()).set(float(late));
            }
        }
        Ok(())
    }

    /// The next run is the first one that nobody has planned: when nobody plans, it lies in the past. Schedules that never missed a
    /// run say so, or nobody would notice the first time.
    fn show_schedules(&self, marks: &Marks, states: &[ScheduleState]) {
        for definition in self.definitions.borrow().iter() {
            let schedule = definition.name();
            let missed = states.iter().find(|state| state.schedule == schedule).map_or(0, |state| state.missed);
            gauge!(name::MISSED_RUNS, "schedule" => schedule.to_owned()).set(float(missed));
            let mark = marks.marks.iter().find(|mark| mark.schedule == schedule);
            if let Some(next) = mark.and_then(|mark| definition.next_after(mark.at)) {
                gauge!(name::NEXT_RUN, "schedule" => schedule.to_owned()).set(float(next.at.timestamp()));
            }
        }
        for state in states {
            if let Some(last) = state.last_run {
                gauge!(name::LAST_RUN, "schedule" => state.schedule.clone()).set(float(last.timestamp()));
            }
        }
    }
}

/// Seconds; nothing for a run by hand, which has no time it was due.
fn lateness(run: &OpenRun, now: chrono::DateTime<chrono::Utc>) -> Option<i64> {
    let due = run.scheduled_for?;
    Some(if run.units.is_empty() { 0 } else { (now - due).num_seconds().max(0) })
}

#[expect(clippy::cast_precision_loss, reason = "Prometheus has only floats; counts and seconds, never money")]
fn float(value: i64) -> f64 {
    value as f64
}
