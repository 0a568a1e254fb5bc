//! `settled batch replace --file FILE --profile NAME|FILE --reason TEXT`: an import that corrects.

use crate::cli::Because;
use crate::cli::import::{LISTED, Reading, exit_code, import_file, show};
use crate::output;
use crate::output::say;
use ledger::Ledger;
use ledger::import::{ImportMode, ImportOutcome};
use serde::Serialize;
use std::path::PathBuf;
use std::process::ExitCode;

/// Take a corrected file in
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Replace {
    /// The corrected file, plain or .gz
    #[arg(long)]
    file: PathBuf,
    #[command(flatten)]
    reading: Reading,
    #[command(flatten)]
    because: Because,
    /// Print the outcome as JSON
    #[arg(long)]
    json: bool,
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Report<'a> {
    batches_replaced: usize,
    batches_added: usize,
    batches_already_there: usize,
    #[serde(flatten)]
    outcome: &'a ImportOutcome,
}

impl Replace {
    pub(super) async fn run(&self, ledger: &dyn Ledger) -> anyhow::Result<ExitCode> {
        let mode = ImportMode::Replace { operator: self.because.operator()? };
        let outcome = import_file(ledger, &self.file, &self.reading.profile()?, &mode, self.json).await?;
        show(&self.file, &outcome, self.json);
        if self.json {
            output::json(&report(&outcome))?;
        } else {
            tell(&report(&outcome));
        }
        Ok(exit_code(&outcome))
    }
}

fn report(outcome: &ImportOutcome) -> Report<'_> {
    let batches_replaced = outcome.replaced.len();
    let batches_already_there = outcome.batches.iter().filter(|batch| batch.already_there).count();
    let batches_added = outcome.batches.len() - batches_already_there - batches_replaced;
    Report { batches_replaced, batches_added, batches_already_there, outcome }
}

fn tell(report: &Report<'_>) {
    for pair in report.outcome.replaced.iter().take(LISTED) {
        say!(
            "batch {} ({}, revision {}) is {}; batch {} is revision {}",
            pair.old_id,
            pair.external_batch_id,
            pair.old_revision,
            pair.old_state,
            pair.new_id,
            pair.new_revision
        );
    }
    let Report { batches_replaced, batches_added, batches_already_there, .. } = report;
    let what =
        if *batches_replaced == 0 { "nothing was replaced".to_owned() } else { format!("{batches_replaced} batches replaced") };
    say!("{what}; {batches_added} added, {batches_already_there} already there with this content");
}
