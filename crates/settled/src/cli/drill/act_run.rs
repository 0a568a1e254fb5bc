//! `settled drill act-run`: a `settled run` that lacks a protection, for the arm of a drill that must go wrong. Here and not in
//! `run`, so that nobody who settles can ask for it.

use crate::cli::run::Run;
use crate::config::{Config, ConfigError};
use crate::telemetry;
use chaos::without::{ENVIRONMENT, Without};
use std::path::Path;
use std::process::ExitCode;

/// Play a worker that lacks a protection
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct ActRun {
    /// What it lacks: fence
    #[arg(long, value_name = "WHAT")]
    without: Without,
    #[command(flatten)]
    run: Run,
}

impl ActRun {
    pub(in crate::cli) async fn run(&self, config: Option<&Path>) -> anyhow::Result<ExitCode> {
        let config = Config::load(config)?;
        if config.environment != ENVIRONMENT {
            let (what, environment) = (self.without.as_str(), &config.environment);
            let why = format!(
                "a worker without the {what} is for ledgers that a drill makes and throws away, and environment is {environment:?}"
            );
            return Err(ConfigError(why).into());
        }
        telemetry::start(&config.log)?;
        tracing::warn!(without = self.without.as_str(), "this worker lacks a protection: its drill needs the damage");
        self.run.run_on(&config, |ledger| self.without.ledger(ledger)).await
    }
}
