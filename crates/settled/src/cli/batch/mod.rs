//! `settled batch list | show | retry | cancel | accept | reverse | replace`.

mod replace;
mod show;

use super::Because;
use crate::config::Config;
use crate::output::say;
use crate::{output, wire};
use chrono::NaiveDate;
use clap::Subcommand;
use domain::batch::BatchState;
use domain::ids::BatchId;
use ledger::Ledger;
use ledger::operate::{BatchFilter, BatchRow};
use std::process::ExitCode;

/// Look at batches, decide about those that wait for a person, and correct them
#[derive(Debug, Subcommand)]
pub(super) enum Batch {
    /// List batches, the newest business date first
    List(List),
    /// Show one batch with its totals and postings
    Show(Show),
    /// Let a quarantined batch be tried again
    Retry(Decide),
    /// Withdraw a batch that has not settled
    Cancel(Decide),
    /// Settle a broken batch as it is; what is left over goes to suspense
    Accept(Decide),
    /// Take a settled batch back: every posting is mirrored, and balances are as before it settled
    Reverse(Decide),
    /// Take a corrected file in: batches that the ledger has with other content are cancelled or reversed, and the file's follow
    Replace(replace::Replace),
}

/// Filters of the list.
#[derive(Debug, clap::Args)]
pub(super) struct List {
    /// Only batches in this state
    #[arg(long)]
    state: Option<BatchState>,
    /// Only batches of this business date
    #[arg(long, value_name = "YYYY-MM-DD")]
    business_date: Option<NaiveDate>,
    /// At most so many
    #[arg(long, default_value_t = 100)]
    limit: u32,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// Which batch to show.
#[derive(Debug, clap::Args)]
pub(super) struct Show {
    /// The batch
    id: i64,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// Which batch to decide about, and why.
#[derive(Debug, clap::Args)]
pub(super) struct Decide {
    /// The batch
    id: i64,
    #[command(flatten)]
    because: Because,
    /// Print the batch as JSON
    #[arg(long)]
    json: bool,
}

impl Batch {
    pub(super) async fn run(&self, config: &Config) -> anyhow::Result<ExitCode> {
        let ledger = wire::existing(config).await?;
        let ledger = ledger.as_ref();
        match self {
            Batch::List(list) => list.run(ledger).await?,
            Batch::Show(show) => show::print(&ledger.batch(BatchId(show.id)).await?, show.json)?,
            Batch::Retry(decide) => {
                ledger.retry_batch(BatchId(decide.id), &decide.because.operator()?).await?;
                decide.confirm(ledger).await?;
            }
            Batch::Cancel(decide) => {
                ledger.cancel_batch(BatchId(decide.id), &decide.because.operator()?).await?;
                decide.confirm(ledger).await?;
            }
            Batch::Accept(decide) => {
                ledger.accept_batch(BatchId(decide.id), &decide.because.operator()?).await?;
                decide.confirm(ledger).await?;
            }
            Batch::Reverse(decide) => {
                ledger.reverse_batch(BatchId(decide.id), &decide.because.operator()?).await?;
                decide.confirm(ledger).await?;
            }
            Batch::Replace(replace) => return replace.run(ledger).await,
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl List {
    async fn run(&self, ledger: &dyn Ledger) -> anyhow::Result<()> {
        let filter = BatchFilter { state: self.state, business_date: self.business_date, limit: self.limit };
        let batches = ledger.batches(&filter).await?;
        if self.json {
            return output::json(&batches);
        }
        let mut table =
            output::table(["batch", "source", "id of its source", "rev", "business date", "state", "items", "attempts", "note"]);
        batches.iter().for_each(|batch| {
            table.add_row(row(batch));
        });
        say!("{table}");
        Ok(())
    }
}

fn row(batch: &BatchRow) -> [String; 9] {
    [
        batch.id.to_string(),
        batch.source.clone(),
        batch.external_batch_id.clone(),
        batch.revision.to_string(),
        batch.business_date.to_string(),
        batch.state.to_string(),
        batch.items.to_string(),
        batch.attempts.to_string(),
        batch.break_reason.clone().unwrap_or_default(),
    ]
}

impl Decide {
    async fn confirm(&self, ledger: &dyn Ledger) -> anyhow::Result<()> {
        let batch = ledger.batch(BatchId(self.id)).await?;
        if self.json {
            return output::json(&batch);
        }
        say!("batch {} is {}", batch.row.id, batch.row.state);
        Ok(())
    }
}
