//! Plans what has occurred, on any number of instances. Needs `plan.rs`, `report.rs`.
//!
//! Every instance may plan every schedule. What is between a schedule's mark and the database's now is planned and the mark moved in one
//! transaction, by whoever is first; the others find the mark moved. So it does not matter which instance lives when something occurs,
//! nor what its clock says, and an outage only means that the mark stands for a while.
//!
//! A look where nothing occurred moves a mark too, when it is some minutes old: so a definition that is adopted later is caught up with
//! from about then, and not from the last occurrence of the one before it. That is a small write per schedule every five minutes for
//! all instances together, since the first one that writes makes the mark young.
//!
//! Between looks an instance asks nobody: it remembers what the database's clock said and when that was, and counts on by itself until
//! something may have occurred. Whether it has is then decided by the database's clock again.

use crate::definition::Definition;
use crate::plan::{Plan, plan};
use crate::report::{Outcome, Report, Rung, ScheduleReport};
use chrono::{DateTime, TimeDelta, Utc};
use domain::ids::HolderId;
use ledger::schedule::{Advance, Advanced, Mark, Marks};
use ledger::{LedgerError, Schedules};
use rand::seq::SliceRandom;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tracing::{error, info, warn};

/// Longest pause before a look, so that instances whose bells ring together do not read together.
const JITTER: Duration = Duration::from_millis(400);
/// Longest time without a look: marks may be moved, and definitions adopted, by others.
const LONGEST: Duration = Duration::from_secs(60);
/// Longest pause between two tries while the ledger does not answer.
const LONGEST_RETRY: Duration = Duration::from_secs(15);
/// A mark is moved at this age, where nothing occurred.
const OLD: TimeDelta = TimeDelta::minutes(5);
/// How far a mark may be ahead of the database's clock: the correction of a clock, not a jump of it.
const AHEAD: TimeDelta = TimeDelta::minutes(5);
/// How often one look starts over because others moved a mark.
const ROUNDS: usize = 3;

/// The planner of one instance.
pub struct Planner {
    ledger: Arc<dyn Schedules>,
    holder: HolderId,
    schedules: Vec<Scheduled>,
    /// What the last look saw; `None`: look at the next ring.
    seen: Option<Seen>,
    outage: Option<Outage>,
}

/// A schedule, and what we know of it.
struct Scheduled {
    definition: Definition,
    hash: String,
    /// What was logged of it last, so that it is not logged every second.
    said: Option<String>,
}

/// The database's clock at a look, and until when nothing occurs.
#[derive(Debug, Clone, Copy)]
struct Seen {
    now: DateTime<Utc>,
    at: Instant,
    next: DateTime<Utc>,
    good_for: Duration,
}

#[derive(Debug, Clone, Copy)]
struct Outage {
    since: Instant,
    tries: u32,
    retry_at: Instant,
}

impl Planner {
    /// Plans `definitions`, whose names differ, for the instance `holder`.
    #[must_use]
    pub fn new(ledger: Arc<dyn Schedules>, holder: HolderId, definitions: Vec<Definition>) -> Planner {
        let mut planner = Planner { ledger, holder, schedules: Vec::new(), seen: None, outage: None };
        planner.replace(definitions);
        planner
    }

    /// Plans these from the next ring on, as after a start.
    pub fn replace(&mut self, definitions: Vec<Definition>) {
        let scheduled = |definition: Definition| Scheduled { hash: definition.hash(), definition, said: None };
        self.schedules = definitions.into_iter().map(scheduled).collect();
        self.seen = None;
    }

    /// The bell rang. Looks if something may have occurred, after a short pause by chance.
    ///
    /// Not to be dropped before it is done: a transaction may be open.
    pub async fn ring(&mut self) -> Rung {
        if !self.may_have_occurred() {
            return Rung::Quiet;
        }
        tokio::time::sleep(by_chance(Duration::ZERO, JITTER)).await;
        match self.look_at(None).await {
            Ok(report) => {
                self.note_recovery();
                Rung::Looked(report)
            }
            Err(Interrupted { error, report }) => {
                self.note_outage(&error);
                Rung::Unavailable { error, report }
            }
        }
    }

    /// Plans everything up to the database's now.
    ///
    /// # Errors
    /// Those of the ledger. What is planned by then stays planned; the rest is planned by the next look.
    pub async fn look(&mut self) -> Result<Report, LedgerError> {
        self.look_at(None).await.map_err(|interrupted| interrupted.error)
    }

    /// The same as if the database's clock showed `now`.
    ///
    /// # Errors
    /// Those of [`Planner::look`].
    pub async fn look_as_if(&mut self, now: DateTime<Utc>) -> Result<Report, LedgerError> {
        self.look_at(Some(now)).await.map_err(|interrupted| interrupted.error)
    }

    async fn look_at(&mut self, as_if: Option<DateTime<Utc>>) -> Result<Report, Interrupted> {
        self.seen = None;
        let mut so_far: Option<Report> = None;
        // instances go through them in different orders, so that each plans a part
        let mut todo: Vec<usize> = (0..self.schedules.len()).collect();
        todo.shuffle(&mut rand::rng());
        let mut rounds = 0;
        loop {
            let asked = Instant::now();
            let Marks { now, marks } = match self.ledger.marks().await {
                Ok(marks) => marks,
                Err(error) => return Err(Interrupted { error, report: so_far }),
            };
            let now = as_if.unwrap_or(now);
            let schedules = so_far.take().map(|report| report.schedules).unwrap_or_default();
            let mut report = Report { now, schedules };
            todo = match self.plan_each(&todo, &marks, &mut report).await {
                Ok(again) => again,
                Err(error) => return Err(Interrupted { error, report: Some(report) }),
            };
            rounds += 1;
            if todo.is_empty() || rounds == ROUNDS {
                // where others kept us from it we look again at the next ring
                self.seen = todo.is_empty().then(|| self.seen_at(now, asked));
                return Ok(report);
            }
            so_far = Some(report);
        }
    }

    /// Plans some schedules; those for which others were faster are to be read and planned again.
    async fn plan_each(&mut self, todo: &[usize], marks: &[Mark], report: &mut Report) -> Result<Vec<usize>, LedgerError> {
        let mut again = Vec::new();
        for &index in todo {
            let Some(scheduled) = self.schedules.get_mut(index) else { continue };
            let mark = marks.iter().find(|mark| mark.schedule == scheduled.definition.name());
            match scheduled.plan(self.ledger.as_ref(), self.holder, mark, report.now).await? {
                Turn::Quiet => scheduled.note_well(),
                Turn::Behind => again.push(index),
                Turn::Done(outcome) => {
                    scheduled.note(&outcome);
                    report.schedules.push(ScheduleReport { schedule: scheduled.definition.name().to_owned(), outcome });
                }
            }
        }
        Ok(again)
    }

    fn seen_at(&self, now: DateTime<Utc>, at: Instant) -> Seen {
        let next = self.schedules.iter().filter_map(|scheduled| scheduled.definition.next_after(now));
        let next = next.map(|next| next.at).min().unwrap_or(DateTime::<Utc>::MAX_UTC);
        Seen { now, at, next, good_for: by_chance(LONGEST * 3 / 4, LONGEST) }
    }

    fn may_have_occurred(&self) -> bool {
        if let Some(outage) = self.outage {
            return outage.retry_at <= Instant::now();
        }
        let Some(seen) = self.seen else { return true };
        let passed = seen.at.elapsed();
        passed >= seen.good_for || TimeDelta::from_std(passed).is_ok_and(|passed| seen.now + passed >= seen.next)
    }

    fn note_outage(&mut self, error: &LedgerError) {
        let now = Instant::now();
        if self.outage.is_none() {
            error!(%error, "schedules cannot be planned; they will be when the ledger answers again");
        }
        let outage = self.outage.get_or_insert(Outage { since: now, tries: 0, retry_at: now });
        outage.tries = outage.tries.saturating_add(1);
        let pause = Duration::from_secs(1 << outage.tries.min(4)).min(LONGEST_RETRY);
        outage.retry_at = now + by_chance(pause / 2, pause);
    }

    fn note_recovery(&mut self) {
        if let Some(outage) = self.outage.take() {
            info!(outage_s = outage.since.elapsed().as_secs(), "schedules are planned again, from where they were left");
        }
    }
}

/// A look that the ledger did not let us finish.
struct Interrupted {
    error: LedgerError,
    /// What was done by then; nothing where the marks were not told.
    report: Option<Report>,
}

/// What one try with one schedule came to.
enum Turn {
    /// Nothing occurred.
    Quiet,
    /// Somebody else moved the mark, or holds it.
    Behind,
    Done(Outcome),
}

impl Scheduled {
    /// Plans from the mark to now; or begins to, where there is no mark.
    async fn plan(
        &self,
        ledger: &dyn Schedules,
        holder: HolderId,
        mark: Option<&Mark>,
        now: DateTime<Utc>,
    ) -> Result<Turn, LedgerError> {
        let name = self.definition.name();
        let written = match mark {
            None => ledger.start_schedule(name, &self.hash).await.map(|()| Turn::Done(Outcome::Started)),
            Some(mark) if mark.definition != self.hash => Ok(Turn::Done(self.refused(&mark.definition))),
            Some(mark) if mark.at > now + AHEAD => Ok(Turn::Done(self.ahead(mark))),
            Some(mark) => {
                let planned = plan(&self.definition, mark.at, now);
                let empty = planned.is_empty();
                if empty && planned.mark - mark.at <= OLD {
                    return Ok(Turn::Quiet);
                }
                let advanced = ledger.advance(&self.advance(mark, planned), holder).await;
                advanced.map(|advanced| match advanced {
                    // whoever moved it was no later than we
                    Advanced::Done { .. } | Advanced::Behind if empty => Turn::Quiet,
                    Advanced::Done { opened, missed } => Turn::Done(Outcome::Planned { opened, missed }),
                    Advanced::Behind => Turn::Behind,
                    Advanced::Refused { stored } => Turn::Done(self.refused(&stored)),
                })
            }
        };
        match written {
            Err(error) if error.is_contention() => Ok(Turn::Behind),
            // one schedule's trouble is not the others'
            Err(error) if !error.is_unavailable() => Ok(Turn::Done(Outcome::Failed { text: error.to_string() })),
            other => other,
        }
    }

    fn advance(&self, mark: &Mark, Plan { runs, missed, mark: to }: Plan) -> Advance {
        let (schedule, definition) = (mark.schedule.clone(), self.hash.clone());
        Advance { schedule, definition, from: mark.at, to, runs, missed }
    }

    fn ahead(&self, mark: &Mark) -> Outcome {
        let (name, at) = (self.definition.name(), mark.at.format("%Y-%m-%d %H:%M:%S UTC"));
        let text = format!(
            "schedule {name}: the ledger says that it is planned up to {at}, which is yet to come, so nothing is planned until then (did the database's clock step?); run `settled schedule adopt {name} --from-now --reason …`"
        );
        Outcome::Failed { text }
    }

    fn refused(&self, stored: &str) -> Outcome {
        let (name, hash) = (self.definition.name(), &self.hash);
        let text = format!(
            "schedule {name}: the ledger plans it by another definition ({stored:.12}…, here {hash:.12}…), so this instance does not plan it; set schedule.{name} as the other instances have it, or run `settled schedule adopt {name} --reason …`"
        );
        Outcome::Refused { text }
    }

    /// Logs what is new.
    fn note(&mut self, outcome: &Outcome) {
        let schedule = self.definition.name();
        match outcome {
            Outcome::Started => info!(schedule, "first planned from now on"),
            Outcome::Planned { opened, missed: 0 } => info!(schedule, opened, "planned"),
            Outcome::Planned { opened, missed } => warn!(schedule, opened, missed, "planned; occurrences were missed"),
            Outcome::Refused { text } | Outcome::Failed { text } => {
                if self.said.as_ref() != Some(text) {
                    error!(schedule, "{text}");
                    self.said = Some(text.clone());
                }
                return;
            }
        }
        self.note_well();
    }

    fn note_well(&mut self) {
        if self.said.take().is_some() {
            info!(schedule = self.definition.name(), "is planned again");
        }
    }
}

fn by_chance(least: Duration, most: Duration) -> Duration {
    rand::random_range(least..=most)
}
