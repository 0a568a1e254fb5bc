//! `settled migrate`.

use crate::config::Config;
use crate::output::say;
use crate::wire;
use std::process::ExitCode;

/// Create the ledger's schema or bring it up to date
#[derive(Debug, clap::Args)]
pub(super) struct Migrate {}

impl Migrate {
    pub(super) async fn run(&self, config: &Config) -> anyhow::Result<ExitCode> {
        let mut options = wire::open_options(config);
        options.migrate = true;
        let meta = ledger::open(&options).await?.meta();
        say!("ledger {} is up to date: {} units, guard {}", meta.ledger_id, meta.partitions, meta.guard.as_str());
        Ok(ExitCode::SUCCESS)
    }
}
