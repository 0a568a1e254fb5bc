//! `settled status`.

use crate::config::Config;
use crate::output::say;
use crate::{output, wire};
use std::process::ExitCode;

/// The ledger at a glance
#[derive(Debug, clap::Args)]
pub(super) struct Status {
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

impl Status {
    pub(super) async fn run(&self, config: &Config) -> anyhow::Result<ExitCode> {
        let ledger = wire::existing(config).await?;
        let status = ledger.status(None).await?;
        if self.json {
            output::json(&status)?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut table = output::table(["state", "batches"]);
        for (state, batches) in &status.batches {
            table.add_row([state.to_string(), batches.to_string()]);
        }
        say!("{table}");
        say!("{} items; {} late writes refused", status.items, status.fence_rejections);
        match &status.last_run {
            Some(run) => say!(
                "last run: {} for {} ({} {}), opened {}",
                run.id,
                run.business_date,
                run.schedule,
                run.slot,
                run.opened_at.format("%Y-%m-%d %H:%M:%S UTC")
            ),
            None => say!("no run yet"),
        }
        Ok(ExitCode::SUCCESS)
    }
}
