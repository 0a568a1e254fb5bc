//! The planning loop: a bell rings, the planner looks whether an occurrence has come, the ledger keeps what it plans.

use super::metrics as name;
use domain::ids::HolderId;
use ledger::{Ledger, Schedules};
use metrics::counter;
use scheduler::bell::Bell;
use scheduler::definition::Definition;
use scheduler::planner::Planner;
use scheduler::report::{Outcome, Report, Rung};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::sync::{Notify, watch};
use worker::{Drain, Pulse};

/// What the loop needs.
pub(super) struct Planning {
    pub(super) ledger: Arc<dyn Ledger>,
    pub(super) holder: HolderId,
    /// In force; a reload of the configuration sends others.
    pub(super) definitions: watch::Receiver<Vec<Definition>>,
    /// Told when a run was opened here.
    pub(super) wake: Arc<Notify>,
    pub(super) drain: Drain,
    pub(super) pulse: Arc<Pulse>,
    /// Schedules that are not planned here, as of the last look.
    pub(super) refused: watch::Sender<BTreeSet<String>>,
}

impl Planning {
    /// Plans until a drain is asked. Outages are waited out by the planner: the marks stand meanwhile.
    pub(super) async fn plan(mut self) -> anyhow::Result<()> {
        let ledger: Arc<dyn Schedules> = self.ledger.clone();
        let mut definitions = self.definitions.borrow_and_update().clone();
        let mut planner = Planner::new(ledger, self.holder, definitions.clone());
        let mut bell = Bell::start();
        loop {
            self.pulse.beat();
            tokio::select! {
                () = bell.rung() => {}
                () = self.drain.asked() => break,
            }
            if self.definitions.has_changed().unwrap_or(false) {
                definitions = self.definitions.borrow_and_update().clone();
                planner.replace(definitions.clone());
            }
            // never inside the select: what is dropped there may be a transaction
            match planner.ring().await {
                Rung::Looked(report) => {
                    self.refused.send_replace(unplanned(&report));
                    self.count(&definitions, &report);
                }
                // cut short: what it has is so, what it has not is as it was
                Rung::Unavailable { report: Some(report), .. } => self.count(&definitions, &report),
                Rung::Quiet | Rung::Unavailable { report: None, .. } => {}
            }
        }
        bell.stop();
        Ok(())
    }

    fn count(&self, definitions: &[Definition], report: &Report) {
        for definition in definitions {
            let schedule = definition.name();
            let outcome = report.schedules.iter().find(|row| row.schedule == schedule).map(|row| &row.outcome);
            let (opened, missed) = match outcome {
                Some(Outcome::Planned { opened, missed }) => (*opened, *missed),
                Some(Outcome::Started | Outcome::Refused { .. } | Outcome::Failed { .. }) | None => (0, 0),
            };
            counter!(name::RUNS_PLANNED, "schedule" => schedule.to_owned()).increment(opened);
            counter!(name::RUNS_MISSED, "schedule" => schedule.to_owned()).increment(missed);
        }
        if report.opened() > 0 {
            self.wake.notify_one();
        }
    }
}

fn unplanned(report: &Report) -> BTreeSet<String> {
    let is_unplanned = |outcome: &Outcome| matches!(outcome, Outcome::Refused { .. } | Outcome::Failed { .. });
    report.schedules.iter().filter(|row| is_unplanned(&row.outcome)).map(|row| row.schedule.clone()).collect()
}
