//! `settled batch list | show | retry | cancel | accept`.

use super::Because;
use crate::config::Config;
use crate::output::say;
use crate::{output, wire};
use chrono::NaiveDate;
use clap::Subcommand;
use domain::batch::BatchState;
use domain::ids::BatchId;
use ledger::Ledger;
use ledger::operate::{BatchDetail, BatchFilter, BatchRow};
use std::process::ExitCode;

/// Look at batches, and decide about those that wait for a person
#[derive(Debug, Subcommand)]
pub(super) enum Batch {
    /// List batches, the newest business date first
    List(List),
    /// Show one batch with its totals and postings
    Show(Show),
    /// Let a quarantined batch be tried again
    Retry(Decide),
    /// Withdraw a batch that has not settled, so that a corrected file can be imported
    Cancel(Decide),
    /// Settle a broken batch as it is; what is left over goes to suspense
    Accept(Decide),
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
        match self {
            Batch::List(list) => list.run(ledger.as_ref()).await?,
            Batch::Show(show) => print(&ledger.batch(BatchId(show.id)).await?, show.json)?,
            Batch::Retry(decide) => {
                ledger.retry_batch(BatchId(decide.id), &decide.because.operator()?).await?;
                decide.confirm(ledger.as_ref()).await?;
            }
            Batch::Cancel(decide) => {
                ledger.cancel_batch(BatchId(decide.id), &decide.because.operator()?).await?;
                decide.confirm(ledger.as_ref()).await?;
            }
            Batch::Accept(decide) => {
                ledger.accept_batch(BatchId(decide.id), &decide.because.operator()?).await?;
                decide.confirm(ledger.as_ref()).await?;
            }
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

fn print(batch: &BatchDetail, json: bool) -> anyhow::Result<()> {
    if json {
        return output::json(batch);
    }
    print_head(batch);
    print_amounts(batch);
    for decision in &batch.decisions {
        let at = decision.at.format("%Y-%m-%d %H:%M:%S UTC");
        say!("{at} {} by {}: {}", decision.action, decision.operator, decision.reason);
    }
    match batch.row.state {
        BatchState::Quarantined => {
            say!("next: settled batch retry {0} --reason … | settled batch cancel {0} --reason …", batch.row.id)
        }
        BatchState::Broken => {
            say!("next: settled batch accept {0} --reason … | settled batch cancel {0} --reason …", batch.row.id)
        }
        _ => {}
    }
    Ok(())
}

fn print_head(batch: &BatchDetail) {
    let row = &batch.row;
    say!("batch {}: {} of {} (revision {}), from {}", row.id, row.external_batch_id, row.source, row.revision, batch.file);
    say!("{}, business date {}, {} items, unit {}, {} attempts", row.state, row.business_date, row.items, row.unit, row.attempts);
    if let Some(reason) = &row.break_reason {
        say!("break: {reason}");
    }
    if let Some(at) = batch.settled_at {
        say!("settled {} under fence {} by {}", at.format("%Y-%m-%d %H:%M:%S UTC"), batch.stamp.fence, batch.stamp.holder);
    }
}

fn print_amounts(batch: &BatchDetail) {
    let mut totals =
        output::table(["currency", "items", "gross", "fee", "net", "remitted", "rounding", "difference", "accepted"]);
    for total in &batch.totals {
        let show = |minor: i64| output::amount(minor.into(), &total.currency);
        totals.add_row([
            total.currency.clone(),
            total.items.to_string(),
            show(total.gross_minor),
            show(total.fee_minor),
            show(total.net_minor),
            show(total.remittance_minor),
            show(total.rounding_minor),
            show(total.difference_minor),
            show(total.accepted_minor),
        ]);
    }
    say!("{totals}");
    let mut postings = output::table(["account", "currency", "debit", "credit"]);
    for posting in &batch.postings {
        let amount = output::amount(posting.amount_minor.into(), &posting.currency);
        let (debit, credit) = if posting.side == "D" { (amount, String::new()) } else { (String::new(), amount) };
        postings.add_row([posting.account.clone(), posting.currency.clone(), debit, credit]);
    }
    if !postings.is_empty() {
        say!("{postings}");
    }
}
