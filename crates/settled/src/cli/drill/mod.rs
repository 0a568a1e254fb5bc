//! `settled drill`: experiments with real processes and servers, each with an arm that must go wrong.

mod act_run;
mod model;
mod show;

use crate::config::ConfigError;
use crate::exit;
use crate::output;
use crate::signals::asked_to_end;
use anyhow::Context;
use chaos::drill::{Options, drills_named};
use chaos::drills::ALL;
use chaos::stage::Servers;
use chaos::{Drill, Record, Verdict};
use clap::Subcommand;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// Experiments with real processes and servers: what breaks without a protection, and holds with it
#[derive(Debug, Subcommand)]
pub(super) enum DrillCommand {
    /// Every drill, in a sentence
    List(List),
    /// Run some
    Run(Run),
    /// Run all
    All(All),
    /// Every order of events of the protocol, and what breaks without each protection
    Model(model::Model),
    /// Play a part in a drill
    #[command(hide = true)]
    Act(Act),
    /// Play a worker that lacks a protection
    #[command(hide = true)]
    ActRun(act_run::ActRun),
}

/// Every drill, in a sentence
#[derive(Debug, clap::Args)]
pub(super) struct List {
    /// Print them as JSON
    #[arg(long)]
    json: bool,
}

/// Run some
#[derive(Debug, clap::Args)]
pub(super) struct Run {
    /// Which; see `settled drill list`
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,
    #[command(flatten)]
    how: How,
}

/// Run all
#[derive(Debug, clap::Args)]
pub(super) struct All {
    /// Only those that are run with every change, in a few minutes
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    how: How,
}

/// Play a part in a drill
#[derive(Debug, clap::Args)]
pub(super) struct Act {
    /// As JSON
    part: String,
}

/// How drills are run.
#[derive(Debug, clap::Args)]
struct How {
    /// Where all chance comes from; a fresh one is printed
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Write report.html and report.json into this folder, which is created
    #[arg(long, value_name = "FOLDER")]
    report: Option<PathBuf>,
    /// Print the outcome as JSON, and no timeline
    #[arg(long)]
    json: bool,
    /// How long `soak` lasts
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(10..=86_400))]
    soak_s: u64,
    /// How many instances `soak` has
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u8).range(2..=32))]
    instances: u8,
}

impl DrillCommand {
    pub(super) async fn run(self, config: Option<&Path>) -> anyhow::Result<ExitCode> {
        match self {
            DrillCommand::List(list) => list.run(),
            DrillCommand::Run(run) => run.how.run(&drills_named(&run.names).map_err(ConfigError)?).await,
            DrillCommand::All(all) => {
                all.how.run(&ALL.iter().filter(|drill| drill.quick || !all.quick).collect::<Vec<_>>()).await
            }
            DrillCommand::Model(model) => model.run(),
            DrillCommand::Act(act) => {
                let part = serde_json::from_str(&act.part).context("a part in a drill")?;
                chaos::actors::play(part).await?;
                Ok(ExitCode::from(exit::DONE))
            }
            DrillCommand::ActRun(act) => act.run(config).await,
        }
    }
}

impl List {
    fn run(&self) -> anyhow::Result<ExitCode> {
        if self.json {
            output::json(&ALL)?
        } else {
            show::list(ALL)
        }
        Ok(ExitCode::from(exit::DONE))
    }
}

impl How {
    async fn run(&self, drills: &[&'static Drill]) -> anyhow::Result<ExitCode> {
        let options = Options {
            seed: self.seed.unwrap_or_else(|| uuid::Uuid::new_v4().as_u64_pair().0 >> 32),
            program: std::env::current_exe().context("this program's own path")?,
            soak: Duration::from_secs(self.soak_s),
            instances: self.instances.into(),
        };
        let run = chaos::report::Run::here();
        // now, not after a quarter of an hour of drills
        self.write_report(&run, &[])?;
        let asked_to_end = asked_to_end()?;
        let records = tokio::select! {
            biased;
            // what was started ends with what is dropped; a server that is just starting is waited for
            () = asked_to_end => anyhow::bail!("stopped"),
            records = self.tell(drills, &options, &run) => records?,
        };
        if self.json {
            output::json(&records)?;
        } else {
            show::summary(&records);
        }
        if let Some(page) = self.write_report(&run, &records)? {
            // beside the JSON, not in it
            exit::tell(&format!("report: {}", page.display()));
        }
        Ok(ExitCode::from(code(&records)))
    }

    fn write_report(&self, run: &chaos::report::Run, records: &[Record]) -> anyhow::Result<Option<PathBuf>> {
        Ok(self.report.as_deref().map(|folder| chaos::report::write(folder, run, records)).transpose()?)
    }

    async fn tell(&self, drills: &[&'static Drill], options: &Options, run: &chaos::report::Run) -> anyhow::Result<Vec<Record>> {
        let servers = Arc::new(Servers::none());
        let mut records = Vec::new();
        for drill in drills {
            let quiet = self.json;
            if !quiet {
                show::begin(drill, options.seed);
            }
            let record = drill
                .run(options, &servers, move |event| {
                    if !quiet {
                        show::event(event)
                    }
                })
                .await;
            if !quiet {
                show::record(&record);
            }
            records.push(record);
            // so that whoever stops the others has the report of these
            self.write_report(run, &records)?;
        }
        Ok(records)
    }
}

fn code(records: &[Record]) -> u8 {
    if records.iter().any(|record| record.verdict.is_some_and(|verdict| verdict != Verdict::Holds)) {
        return exit::BOOKS;
    }
    if records.iter().any(|record| record.error.is_some()) { exit::FAILED } else { exit::DONE }
}
