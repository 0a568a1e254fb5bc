//! `settled profile check FILE --profile NAME|FILE`: the import's own reader, with a table where the ledger would be.

use super::repeated::Repeated;
use super::report::{Batch, CurrencyTotal, Report, Row};
use crate::cli::import;
use crate::output::say;
use crate::progress::Progress;
use crate::{exit, output};
use domain::batch::BatchState;
use domain::money::format_minor;
use domain::summary::StagedItem;
use intake::Profile;
use std::path::PathBuf;
use std::process::ExitCode;

/// Batches that are shown one by one; of larger files only those that would be broken.
const SHOWN: usize = 20;

/// Read a file as an import would, without a ledger, and show what it is taken for
#[derive(Debug, clap::Args)]
pub(crate) struct Check {
    /// The file, plain or .gz
    file: PathBuf,
    /// How it is read: a built-in profile, or a profile file
    #[arg(long, value_name = "NAME|FILE")]
    profile: String,
    /// Show so many of its rows
    #[arg(long, value_name = "N", default_value_t = 10)]
    rows: usize,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

impl Check {
    pub(super) fn run(&self) -> anyhow::Result<ExitCode> {
        let report = self.read()?;
        report.warnings.iter().for_each(|warning| exit::tell(&format!("warning: {warning}")));
        if self.json {
            output::json(&report)?;
        } else {
            show(&report);
        }
        Ok(ExitCode::from(if report.is_broken() { exit::BOOKS } else { exit::DONE }))
    }

    fn read(&self) -> anyhow::Result<Report> {
        let profile = Profile::load(&self.profile)?;
        let mut progress = Progress::start("lines read", 0, self.json);
        let (mut first, mut repeated, mut lines) = (Vec::<StagedItem>::new(), Repeated::default(), 0);
        let mut summary = import::read(&self.file, &profile, &mut |chunk| {
            lines += chunk.len() as u64;
            progress.at(lines);
            chunk.iter().for_each(|staged| repeated.see(staged));
            let wanted = self.rows.saturating_sub(first.len());
            first.extend(chunk.into_iter().take(wanted));
            Ok(())
        })?;
        repeated.tell(&mut summary);
        Ok(Report::new(summary, first)?)
    }
}

fn show(report: &Report) {
    let Report { file, profile, source, items, batches, .. } = report;
    say!("{file} by profile {profile} (source {source}): {items} lines, {} batches", batches.len());
    show_rows(&report.rows);
    let all = batches.len() <= SHOWN;
    let shown = batches.iter().filter(|batch| all || batch.state == BatchState::Broken);
    shown.for_each(show_batch);
    let broken = batches.iter().filter(|batch| batch.state == BatchState::Broken).count();
    say!("{} batches would come in pending, {broken} broken; nothing was written", batches.len() - broken);
}

fn show_rows(rows: &[Row]) {
    if rows.is_empty() {
        return;
    }
    let mut table = output::table(["line", "kind", "merchant", "currency", "gross", "fee", "net", "identity", "batch"]);
    for row in rows {
        let show = |minor: i64| format_minor(minor.into(), row.currency.exponent());
        table.add_row([
            row.line.to_string(),
            row.kind.as_str().to_owned(),
            row.merchant.clone(),
            row.currency.to_string(),
            show(row.gross_minor),
            show(row.fee_minor),
            show(row.net_minor),
            short(&row.identity),
            row.batch.clone(),
        ]);
    }
    say!("{table}");
}

/// A line without an id has 64 digits for one, which nobody reads.
fn short(identity: &str) -> String {
    match identity.split_once("|row:") {
        Some((batch, rest)) if rest.len() > 64 && rest.is_char_boundary(8) && rest.is_char_boundary(64) => {
            format!("{batch}|row:{}…{}", &rest[..8], &rest[64..])
        }
        _ => identity.to_owned(),
    }
}

fn show_batch(batch: &Batch) {
    let Batch { external_batch_id, business_date, items, state, .. } = batch;
    say!("batch {external_batch_id}, business date {business_date}, {items} items: {state}");
    if let Some(reason) = &batch.break_reason {
        say!("break: {reason}");
    }
    let headings = ["currency", "items", "gross", "fee", "net", "remitted", "rounding", "left over", "declared, and binds"];
    let mut table = output::table(headings);
    for total in &batch.totals {
        let show = |minor: i64| format_minor(minor.into(), total.currency.exponent());
        table.add_row([
            total.currency.to_string(),
            total.items.to_string(),
            show(total.gross_minor),
            show(total.fee_minor),
            show(total.net_minor),
            show(total.remittance_minor),
            show(total.rounding_minor),
            show(total.difference_minor),
            binding(total),
        ]);
    }
    if !table.is_empty() {
        say!("{table}");
    }
}

fn binding(total: &CurrencyTotal) -> String {
    let show = |minor: i64| format_minor(minor.into(), total.currency.exponent());
    let declared = &total.declared;
    let amounts = [
        ("debits", declared.debit_minor),
        ("credits", declared.credit_minor),
        ("gross", declared.gross_minor),
        ("fees", declared.fee_minor),
        ("net", declared.net_minor),
    ];
    let mut said: Vec<String> = declared.items.map(|items| format!("{items} items")).into_iter().collect();
    said.extend(amounts.iter().filter_map(|(what, amount)| amount.map(|minor| format!("{what} {}", show(minor)))));
    if !said.is_empty() && total.tolerance_minor > 0 {
        said.push(format!("amounts within {}", show(total.tolerance_minor)));
    }
    said.join(", ")
}
