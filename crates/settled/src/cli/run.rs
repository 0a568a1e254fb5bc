//! `settled run`: settle every due batch, together with whoever else runs.

use crate::config::{Config, LogFormat};
use crate::exit::Unavailable;
use crate::output::say;
use crate::progress::Progress;
use crate::runs::{self, Asked};
use crate::signals::drain_on_signal;
use crate::{exit, output, wire};
use chaos::mode::Rule;
use chrono::{NaiveDate, Utc};
use domain::batch::BatchState;
use ledger::Ledger;
use ledger::schedule::Due;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use worker::{RunReport, Worker};

/// After the wait, for a transaction in flight to end by itself.
const GRACE: Duration = Duration::from_secs(2);

/// Settle every due batch, together with whoever else runs
#[derive(Debug, clap::Args)]
pub(super) struct Run {
    /// Batches due on or before this day. If not given: the newest business date that is over, where there is a schedule, else
    /// today in run.zone
    #[arg(long, value_name = "YYYY-MM-DD")]
    business_date: Option<NaiveDate>,
    /// The schedule whose run it is; the only one there is, if not given
    #[arg(long, value_name = "NAME")]
    schedule: Option<String>,
    /// Allow a business date after today
    #[arg(long)]
    allow_future: bool,
    /// Give up (exit code 4) when batches are still due after so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(..=31_536_000))]
    wait: Option<u64>,
    /// Print the outcome as JSON
    #[arg(long)]
    json: bool,
    /// Stop or kill this process at a step of the protocol: STEP=stop or STEP=kill, @N for the Nth time, #B with batch B in hand
    #[arg(long, value_name = "STEP=SIGNAL", hide = true)]
    signal_at: Option<Rule>,
}

impl Run {
    /// With `--wait`, nothing lasts longer: not a database that does not answer, not a frozen writer of an SQLite file. What is
    /// cut off here is cut off as by a kill, and a kill is safe.
    pub(super) async fn run(&self, config: &Config) -> anyhow::Result<ExitCode> {
        self.run_on(config, |ledger| ledger).await
    }

    /// The same on a ledger that something is put around.
    pub(super) async fn run_on(
        &self,
        config: &Config,
        around: impl FnOnce(Arc<dyn Ledger>) -> Arc<dyn Ledger>,
    ) -> anyhow::Result<ExitCode> {
        let work = self.work(config, around);
        let Some(wait) = self.wait else { return work.await };
        match tokio::time::timeout(Duration::from_secs(wait) + GRACE, work).await {
            Ok(ended) => ended,
            Err(_) => Err(Unavailable(format!("the ledger or the lock service did not answer within {wait} s")).into()),
        }
    }

    async fn work(&self, config: &Config, around: impl FnOnce(Arc<dyn Ledger>) -> Arc<dyn Ledger>) -> anyhow::Result<ExitCode> {
        let asked =
            Asked { schedule: self.schedule.as_deref(), business_date: self.business_date, allow_future: self.allow_future };
        let planned = runs::asked_for(config, &asked, Utc::now())?;
        let due = planned.due();
        let faults = wire::faults(config, self.signal_at.as_ref())?;
        let ledger = around(wire::ledger(config).await?);
        wire::refuse_other_source(config, ledger.as_ref()).await?;
        runs::refuse_other_definition(config, ledger.as_ref(), &planned).await?;
        let mut worker = wire::worker(config, Arc::clone(&ledger), &faults)?;
        drain_on_signal(worker.drain.clone())?;
        // A log for machines has no other lines in it.
        let quiet = self.json || config.log.format == LogFormat::Json;
        let watched = watch(ledger.as_ref(), &worker, &due, quiet).await?;
        let ended = worker.run(&planned, self.wait.map(Duration::from_secs)).await;
        watched.abort();
        if let Some(keeper) = worker.keeper.take() {
            keeper.shutdown().await;
        }
        let report = ended?;
        // What was imported after the run had ended is the next run's.
        let left = if worker.drain.is_asked() { ledger.due_units(&due).await?.len() } else { 0 };
        self.show(&report, left)
    }

    fn show(&self, report: &RunReport, left: usize) -> anyhow::Result<ExitCode> {
        if self.json {
            output::json(report)?;
        } else {
            say!(
                "run {}: {} batches settled here ({} items), {} settled by others or before, {} broken, {} quarantined, {} late writes refused, in {:.1} s",
                report.run_id,
                report.batches_settled,
                report.items,
                report.batches_already_settled,
                report.batches_broken,
                report.batches_quarantined,
                report.fenced,
                Duration::from_millis(report.duration_ms).as_secs_f64()
            );
        }
        if left > 0 {
            exit::tell(&format!("stopped before everything was settled: {left} units still have batches due"));
            return Ok(ExitCode::from(exit::FAILED));
        }
        let held = report.batches_broken == 0 && report.batches_quarantined == 0;
        Ok(ExitCode::from(if held { exit::DONE } else { exit::BOOKS }))
    }
}

async fn watch(ledger: &dyn Ledger, worker: &Worker, due: &Due, quiet: bool) -> anyhow::Result<tokio::task::JoinHandle<()>> {
    let status = ledger.status(Some(due)).await?;
    let open = |state| status.batches.get(&state).copied().unwrap_or(0);
    let waiting = open(BatchState::Pending) + open(BatchState::Settling);
    let counters = Arc::clone(&worker.counters);
    let mut progress = Progress::start("batches settled here", waiting, quiet || waiting == 0);
    Ok(tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_millis(200)).await;
            progress.at(counters.settled.get());
        }
    }))
}
