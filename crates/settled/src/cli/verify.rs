//! `settled verify`: every invariant of the books, on one snapshot.

use crate::config::Config;
use crate::output::say;
use crate::{exit, output, wire};
use ledger::verify::{Reversal, VerifyReport};
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
    report.reversals.iter().for_each(|reversal| say!("{}", told(reversal)));
    let batches: Vec<String> = report.batches.iter().map(|(state, n)| format!("{n} {state}")).collect();
    say!(
        "{} journal entries; batches: {}",
        report.journal_entries,
        if batches.is_empty() { "none".into() } else { batches.join(", ") }
    );
    say!("{}", if report.ok { "the books hold" } else { "THE BOOKS DO NOT HOLD" });
}

/// One line.
fn told(reversal: &Reversal) -> String {
    let Reversal { batch, source, external_batch_id, revision, amounts, decision, replaced_by } = reversal;
    let amounts: Vec<String> = amounts
        .iter()
        .map(|amount| format!("{} {}", output::amount(amount.debits_minor, &amount.currency), amount.currency))
        .collect();
    let amounts = if amounts.is_empty() { "nothing posted".to_owned() } else { format!("debits of {}", amounts.join(" and ")) };
    let decision = decision.as_ref().map_or_else(
        || "nobody said why".to_owned(),
        |said| {
            let why = said.reason.lines().collect::<Vec<_>>().join(" ");
            format!("{} by {}: {why}", said.reversed_at.format("%Y-%m-%d %H:%M:%S UTC"), said.operator)
        },
    );
    let next = replaced_by.map_or_else(
        || "nothing took its place".to_owned(),
        |next| format!("replaced by batch {} (revision {})", next.batch, next.revision),
    );
    format!("reversed: batch {batch} ({external_batch_id} of {source}, revision {revision}), {amounts}, {decision}; {next}")
}
