//! What an import is given and what it answers. Needs `domain::summary`.

use chrono::NaiveDate;
use domain::batch::{BatchEvent, BatchState, IllegalTransition, next};
use domain::ids::BatchId;
use domain::money::format_minor;
use domain::summary::{BatchSummary, FileSummary, StagedItem};
use domain::totals::Total;
use serde::Serialize;
use std::collections::BTreeMap;

/// What a reader sends: chunks of lines while it reads, the summary when it has read everything.
#[derive(Debug)]
pub enum Staged {
    /// Some lines, in file order.
    Items(Vec<StagedItem>),
    /// The end of the file. Nothing may follow.
    End(Box<FileSummary>),
}

/// What became of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ImportOutcome {
    /// Its batches, in file order.
    pub batches: Vec<ImportedBatch>,
    /// Lines of batches that went in.
    pub items_accepted: u64,
    /// Lines that were there before: of batches already there, and lines whose identity another live batch holds.
    pub items_duplicate: u64,
    /// What a person should know.
    pub warnings: Vec<String>,
}

/// What became of one batch of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ImportedBatch {
    /// Its row.
    pub id: BatchId,
    /// Its identity within the source.
    pub external_batch_id: String,
    /// The day it is due.
    pub business_date: NaiveDate,
    /// `pending` or `broken`; of one already there, whatever it is now.
    pub state: BatchState,
    /// Its lines.
    pub items: u64,
    /// Whether it was in the ledger before, with the same content.
    pub already_there: bool,
    /// Why it is broken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub break_reason: Option<String>,
}

/// A line whose identity is held by an earlier one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DuplicateLine {
    /// The line that came second.
    pub line_no: i64,
    /// The identity.
    pub dedupe_key: String,
    /// Who holds it: a batch and a line of its file.
    pub held_by: (BatchId, i64),
}

/// The state an import gives a batch, and why. The breaks of the reader and those of identity are one list.
///
/// # Errors
/// Never for a batch that was just received.
pub fn judge(summary: &BatchSummary, duplicates: &[DuplicateLine]) -> Result<(BatchState, Option<String>), IllegalTransition> {
    let mut reasons = summary.breaks.clone();
    let shown = duplicates.iter().take(5).map(|duplicate| {
        let (batch, line) = duplicate.held_by;
        format!("line {} repeats {:?} of batch {batch}, line {line}", duplicate.line_no, duplicate.dedupe_key)
    });
    reasons.extend(shown);
    if duplicates.len() > 5 {
        reasons.push(format!("and {} more repeated lines", duplicates.len() - 5));
    }
    let event = if reasons.is_empty() { BatchEvent::Validate } else { BatchEvent::Break };
    Ok((next(BatchState::Received, event)?, (!reasons.is_empty()).then(|| reasons.join("; "))))
}

/// The totals of a batch as the ledger knows them, to show how a file differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredTotal {
    /// ISO code.
    pub currency: String,
    /// Lines.
    pub items: i64,
    /// Σ gross.
    pub gross_minor: i64,
    /// Σ fee.
    pub fee_minor: i64,
    /// Σ net.
    pub net_minor: i64,
}

/// The sentence for a batch that is already there with other content.
#[must_use]
pub fn difference(file: &str, summary: &BatchSummary, id: BatchId, state: BatchState, stored: &[StoredTotal]) -> String {
    let new: Vec<String> = summary.totals.iter().map(describe_total).collect();
    let old: Vec<String> = stored.iter().map(describe_stored).collect();
    format!(
        "{file}:{}: batch {:?} is already there as batch {id} with other content: the ledger has {}, the file {}; nothing was written. {}",
        summary.first_line,
        summary.external_batch_id,
        list(&old),
        list(&new),
        remedy(id, state),
    )
}

fn remedy(id: BatchId, state: BatchState) -> String {
    match next(state, BatchEvent::Cancel) {
        Ok(_) => format!("If the file corrects it, cancel batch {id} first (`settled batch cancel {id} --reason …`)"),
        Err(_) => format!("Batch {id} is {state} and stays as it is: ask the source for the correction as a batch of its own"),
    }
}

fn list(totals: &[String]) -> String {
    if totals.is_empty() { "no lines".to_owned() } else { totals.join(" and ") }
}

fn describe_total(total: &Total) -> String {
    describe_stored(&StoredTotal {
        currency: total.currency.code().to_owned(),
        items: total.items,
        gross_minor: total.gross_minor,
        fee_minor: total.fee_minor,
        net_minor: total.net_minor,
    })
}

fn describe_stored(total: &StoredTotal) -> String {
    let exponent = domain::money::Currency::parse(&total.currency).map_or(0, domain::money::Currency::exponent);
    let show = |minor: i64| format_minor(i128::from(minor), exponent);
    let StoredTotal { currency, items, gross_minor, fee_minor, net_minor } = total;
    format!("{items} lines, gross {}, fee {}, net {} {currency}", show(*gross_minor), show(*fee_minor), show(*net_minor))
}

/// What was decided of each new batch, by its identity within the source, and how many of its lines are repeated.
pub type Judged = BTreeMap<String, (ImportedBatch, u64)>;

/// A batch of the file as it went in.
#[must_use]
pub fn imported(batch: &BatchSummary, id: BatchId, state: BatchState, break_reason: Option<String>) -> ImportedBatch {
    ImportedBatch {
        id,
        external_batch_id: batch.external_batch_id.clone(),
        business_date: batch.business_date,
        state,
        items: batch.totals.iter().map(|total| total.items.unsigned_abs()).sum(),
        already_there: false,
        break_reason,
    }
}

/// The answer of an import: `live` was there before, `judged` went in.
#[must_use]
pub fn outcome(file: &FileSummary, live: &BTreeMap<String, ImportedBatch>, judged: &Judged) -> ImportOutcome {
    let mut outcome =
        ImportOutcome { batches: Vec::new(), items_accepted: 0, items_duplicate: 0, warnings: file.warnings.clone() };
    for batch in &file.batches {
        if let Some((imported, repeated)) = judged.get(&batch.external_batch_id) {
            outcome.items_accepted += imported.items - repeated;
            outcome.items_duplicate += repeated;
            outcome.batches.push(imported.clone());
        } else if let Some(there) = live.get(&batch.external_batch_id) {
            outcome.items_duplicate += there.items;
            outcome.batches.push(there.clone());
        }
    }
    outcome
}
