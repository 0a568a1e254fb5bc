//! Gauges about the ledger, read when somebody asks and not more often than every few seconds: an instance that nobody scrapes costs
//! the database nothing, and many scrapers cost as much as one.
//!
//! They are rendered anew from what was read. So a schedule that is configured no more, or a ledger that does not answer, leaves no old
//! value behind that keeps an alert on.

use super::metrics::{self as name, describe_gauges};
use chrono::{DateTime, Utc};
use ledger::operate::Waiting;
use ledger::schedule::{Marks, ScheduleState};
use ledger::{Ledger, LedgerError};
use metrics::gauge;
use metrics_exporter_prometheus::PrometheusBuilder;
use scheduler::definition::Definition;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Mutex, OwnedMutexGuard, watch};

/// How old an answer may be.
const FRESH: Duration = Duration::from_secs(2);
/// How long somebody who asks waits for it.
const PATIENCE: Duration = Duration::from_secs(3);

/// When the ledger was read, and what it said: the gauges as text, or why there are none.
type Answer = (Instant, Result<String, String>);

/// Reads the ledger at most every few seconds.
#[derive(Clone)]
pub(super) struct Gauges {
    pub(super) ledger: Arc<dyn Ledger>,
    pub(super) definitions: watch::Receiver<Vec<Definition>>,
    /// Schedules that this process does not plan, though it should.
    pub(super) refused: watch::Receiver<BTreeSet<String>>,
    pub(super) last: Arc<Mutex<Option<Answer>>>,
}

/// What the ledger said at one time.
struct Reading {
    marks: Marks,
    waiting: Waiting,
    states: Vec<ScheduleState>,
    unfinished: BTreeMap<String, DateTime<Utc>>,
    units_due: usize,
}

impl Gauges {
    /// The gauges as text, or why the ledger cannot be read.
    pub(super) async fn text(&self) -> Result<String, String> {
        let late = || format!("the ledger did not answer within {} s", PATIENCE.as_secs());
        let Ok(last) = tokio::time::timeout(PATIENCE, Arc::clone(&self.last).lock_owned()).await else { return Err(late()) };
        if let Some((at, answer)) = &*last
            && at.elapsed() < FRESH
        {
            return answer.clone();
        }
        // In a task of its own, one at a time: who asks may go away, but a statement that is cut off leaves its connection in the
        // middle of an answer.
        let reading = self.clone();
        match tokio::time::timeout(PATIENCE, tokio::spawn(async move { reading.answer(last).await })).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => Err(format!("reading the ledger failed: {error}")),
            Err(_) => Err(late()),
        }
    }

    async fn answer(&self, mut last: OwnedMutexGuard<Option<Answer>>) -> Result<String, String> {
        let answer = self.read().await.map(|reading| self.render(&reading)).map_err(|error| error.to_string());
        *last = Some((Instant::now(), answer.clone()));
        answer
    }

    async fn read(&self) -> Result<Reading, LedgerError> {
        let runs = self.ledger.open_work().await?;
        // runs may cover the same sources, and so the same units
        let units: BTreeSet<_> = runs.iter().flat_map(|run| &run.units).collect();
        Ok(Reading {
            marks: self.ledger.marks().await?,
            waiting: self.ledger.waiting().await?,
            states: self.ledger.schedule_states().await?,
            unfinished: self.ledger.unfinished().await?.into_iter().collect(),
            units_due: units.len(),
        })
    }

    fn render(&self, reading: &Reading) -> String {
        let recorder = PrometheusBuilder::new().build_recorder();
        metrics::with_local_recorder(&recorder, || {
            describe_gauges();
            show_batches(reading);
            self.definitions.borrow().iter().for_each(|definition| self.show_schedule(definition, reading));
        });
        recorder.handle().render()
    }

    fn show_schedule(&self, definition: &Definition, Reading { marks, states, unfinished, .. }: &Reading) {
        let name = definition.name();
        let set = |gauge: &'static str, value: i64| gauge!(gauge, "schedule" => name.to_owned()).set(float(value));
        let state = states.iter().find(|state| state.schedule == name);
        // one that never missed a run says so, or nobody would notice the first time
        set(name::MISSED_RUNS, state.map_or(0, |state| state.missed));
        if let Some(last) = state.and_then(|state| state.last_run) {
            set(name::LAST_RUN, last.timestamp());
        }
        // the first that nobody has planned: in the past only when nobody plans
        let mark = marks.marks.iter().find(|mark| mark.schedule == name);
        if let Some(next) = mark.and_then(|mark| definition.next_after(mark.at)) {
            set(name::NEXT_RUN, next.at.timestamp());
        }
        set(name::RUN_LATENESS, unfinished.get(name).map_or(0, |since| (marks.now - since).num_seconds().max(0)));
        set(name::SCHEDULE_REFUSED, i64::from(self.refused.borrow().contains(name)));
    }
}

fn show_batches(Reading { waiting, units_due, .. }: &Reading) {
    let states = [
        ("pending", waiting.pending),
        ("settling", waiting.settling),
        ("broken", waiting.broken),
        ("quarantined", waiting.quarantined),
    ];
    states.into_iter().for_each(|(state, batches)| gauge!(name::BATCHES, "state" => state).set(float(batches)));
    gauge!(name::LEDGER_FENCE_REJECTIONS).set(float(waiting.fence_rejections));
    gauge!(name::UNITS_DUE).set(u32::try_from(*units_due).unwrap_or(u32::MAX));
}

#[expect(clippy::cast_precision_loss, reason = "Prometheus has only floats; counts and seconds, never money")]
fn float(value: i64) -> f64 {
    value as f64
}
