//! `settled verify`: every invariant of the books, on one snapshot.

use crate::config::Config;
use crate::output::say;
use crate::{exit, output, wire};
use ledger::verify::VerifyReport;
use std::process::ExitCode;

/// Check every invariant of the books
#[derive(Debug, clap::Args)]
pub(super) struct Verify {
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

impl Verify {
    pub(super) async fn run(&self, config: &Config) -> anyhow::Result<ExitCode> {
        let ledger = wire::existing(config).await?;
        let report = ledger.verify().await?;
        if self.json {
            output::json(&report)?;
        } else {
            show(&report);
        }
        Ok(ExitCode::from(if report.ok { exit::DONE } else { exit::BOOKS }))
    }
}

/// The report as a person reads it.
pub(super) fn show(report: &VerifyReport) {
    let mut checks = output::table(["check", "", "detail"]);
    for check in &report.checks {
        checks.add_row([check.id, if check.ok { "holds" } else { "BROKEN" }, &check.detail]);
    }
    say!("{checks}");
    let mut totals = output::table(["currency", "debits", "credits"]);
    for total in &report.totals {
        totals.add_row([
            total.currency.clone(),
            output::amount(total.debits_minor, &total.currency),
            output::amount(total.credits_minor, &total.currency),
        ]);
    }
    if !totals.is_empty() {
        say!("{totals}");
    }
    let batches: Vec<String> = report.batches.iter().map(|(state, n)| format!("{n} {state}")).collect();
    say!(
        "{} journal entries; batches: {}",
        report.journal_entries,
        if batches.is_empty() { "none".into() } else { batches.join(", ") }
    );
    say!("{}", if report.ok { "the books hold" } else { "THE BOOKS DO NOT HOLD" });
}
