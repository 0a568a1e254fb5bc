//! What an import is given and what it answers. Needs `domain::summary`, `correct.rs`, `operate.rs` and
//! its own folder.

mod sort;

use crate::correct::ReplacedBatch;
use crate::operate::Operator;
use chrono::NaiveDate;
use domain::batch::{BatchEvent, BatchState, IllegalTransition, next};
use domain::ids::BatchId;
use domain::summary::{BatchSummary, FileSummary, StagedItem};
use serde::Serialize;
pub(crate) use sort::{Changed, StoredRevision, StoredTotal, difference, sort};
use std::collections::BTreeMap;

/// What a reader sends: chunks of lines while it reads, the summary when it has read everything.
#[derive(Debug)]
pub enum Staged {
    /// Some lines, in file order.
    Items(Vec<StagedItem>),
    /// The end of the file. Nothing may follow.
    End(Box<FileSummary>),
}

/// What is done about a batch of the file that the ledger has with other content. Everything else is the same in both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImportMode {
    /// The file is refused, and told how they differ: what is to become of them is for a person to decide.
    Add {
        /// Who imports.
        imported_by: String,
    },
    /// A person has decided: what is there is taken back (see [`crate::correct`]), and the file's is its next revision.
    Replace {
        /// Who.
        operator: Operator,
    },
}

impl ImportMode {
    /// An import that only adds.
    #[must_use]
    pub fn add(imported_by: &str) -> ImportMode {
        ImportMode::Add { imported_by: imported_by.to_owned() }
    }

    /// Who takes the file in.
    #[must_use]
    pub fn imported_by(&self) -> &str {
        match self {
            ImportMode::Add { imported_by } => imported_by,
            ImportMode::Replace { operator } => &operator.name,
        }
    }
}

/// What became of a file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct ImportOutcome {
    /// Its batches, in file order.
    pub batches: Vec<ImportedBatch>,
    /// Lines of batches that went in.
    pub items_accepted: u64,
    /// Lines that were there before: of batches already there, and lines whose identity another live batch holds.
    pub items_duplicate: u64,
    /// What a person should know.
    pub warnings: Vec<String>,
    /// Revisions that batches of the file have replaced; an import that only adds replaces none.
    pub replaced: Vec<ReplacedBatch>,
}

/// What became of one batch of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ImportedBatch {
    /// Its row.
    pub id: BatchId,
    /// Its identity within the source.
    pub external_batch_id: String,
    /// Which correction of it.
    pub revision: i32,
    /// The day it is due.
    pub business_date: NaiveDate,
    /// `pending` or `broken`; of one already there, whatever it is now.
    pub state: BatchState,
    /// Its lines.
    pub items: u64,
    /// Whether it was in the ledger before, with the same content, live or taken back.
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

/// What was decided of each new batch, by its identity within the source, and how many of its lines are repeated.
pub(crate) type Judged = BTreeMap<String, (ImportedBatch, u64)>;

/// A batch of the file as it went in: its row and revision.
#[must_use]
pub(crate) fn imported(
    batch: &BatchSummary,
    (id, revision): (BatchId, i32),
    state: BatchState,
    break_reason: Option<String>,
) -> ImportedBatch {
    ImportedBatch {
        id,
        external_batch_id: batch.external_batch_id.clone(),
        revision,
        business_date: batch.business_date,
        state,
        items: batch.totals.iter().map(|total| total.items.unsigned_abs()).sum(),
        already_there: false,
        break_reason,
    }
}

/// The answer of an import: `there` was there before, `judged` went in.
#[must_use]
pub(crate) fn outcome(
    file: &FileSummary,
    there: &BTreeMap<String, ImportedBatch>,
    judged: &Judged,
    replaced: Vec<ReplacedBatch>,
) -> ImportOutcome {
    let mut outcome =
        ImportOutcome { batches: Vec::new(), items_accepted: 0, items_duplicate: 0, warnings: file.warnings.clone(), replaced };
    for batch in &file.batches {
        if let Some((imported, repeated)) = judged.get(&batch.external_batch_id) {
            outcome.items_accepted += imported.items - repeated;
            outcome.items_duplicate += repeated;
            outcome.batches.push(imported.clone());
        } else if let Some(there) = there.get(&batch.external_batch_id) {
            outcome.items_duplicate += there.items;
            outcome.batches.push(there.clone());
        }
    }
    outcome.warnings.extend(stays_taken_back(file, &outcome.batches));
    outcome
}

/// Whoever imports a file expects it to be settled.
fn stays_taken_back(file: &FileSummary, batches: &[ImportedBatch]) -> Option<String> {
    let taken_back: Vec<&ImportedBatch> =
        batches.iter().filter(|batch| batch.already_there && sort::is_taken_back(batch.state)).collect();
    let first = taken_back.first()?;
    Some(format!(
        "{}: {} of its batches were taken back with this very content (the first: {:?}, batch {}, {}) and stay so. Only `settled batch \
         replace --file {} --profile … --reason …` takes them in once more, in place of what has replaced them",
        file.name,
        taken_back.len(),
        first.external_batch_id,
        first.id,
        first.state,
        file.name,
    ))
}
