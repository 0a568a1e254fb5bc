//! What people see of a ledger. Plain rows, ready for a table or for JSON.

use crate::LedgerError;
use chrono::{DateTime, NaiveDate, Utc};
use domain::batch::BatchState;
use domain::fence::Stamp;
use domain::ids::{BatchId, RunId};
use domain::unit::Unit;
use serde::Serialize;
use std::collections::BTreeMap;

/// Who does something by hand, and why. Ends up in `audit_log`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operator {
    /// Login name.
    pub name: String,
    /// Never blank.
    pub reason: String,
}

/// The ledger at a glance.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Status {
    /// Batches by state; states without batches are absent.
    pub batches: BTreeMap<BatchState, u64>,
    /// Lines of those batches.
    pub items: u64,
    /// Refused writes since the ledger was made. Should be 0.
    pub fence_rejections: u64,
    /// The newest run that was opened to settle something.
    pub last_run: Option<RunRow>,
}

/// By the indexes of what is due and of what waits for a person, never by counting the books.
pub(crate) const WAITING: &str = "SELECT
        (SELECT count(*) FROM settlement_batch WHERE state IN ('pending', 'settling') AND state = 'pending') AS pending,
        (SELECT count(*) FROM settlement_batch WHERE state IN ('pending', 'settling') AND state = 'settling') AS settling,
        (SELECT count(*) FROM settlement_batch WHERE state IN ('broken', 'quarantined') AND state = 'broken') AS broken,
        (SELECT count(*) FROM settlement_batch WHERE state IN ('broken', 'quarantined') AND state = 'quarantined') AS quarantined,
        (SELECT count(*) FROM fence_rejection) AS fence_rejections";

/// What has not come to its end: for metrics, so it must cost little however large the books are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Waiting {
    /// Batches nobody has in hand, due or not yet.
    pub pending: i64,
    /// Batches somebody has in hand.
    pub settling: i64,
    /// Batches that do not add up.
    pub broken: i64,
    /// Batches that were given up.
    pub quarantined: i64,
    /// Refused writes since the ledger was made.
    pub fence_rejections: i64,
}

/// A run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunRow {
    /// Its row.
    pub id: RunId,
    /// Its schedule.
    pub schedule: String,
    /// The day it is for.
    pub business_date: NaiveDate,
    /// Its slot.
    pub slot: String,
    /// When the first instance opened it.
    pub opened_at: DateTime<Utc>,
}

/// Which batches to list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BatchFilter {
    /// Only those in this state.
    pub state: Option<BatchState>,
    /// Only those of this business date.
    pub business_date: Option<NaiveDate>,
    /// At most so many.
    pub limit: u32,
}

/// A batch in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BatchRow {
    /// Its row.
    pub id: BatchId,
    /// Its source.
    pub source: String,
    /// Its identity within the source.
    pub external_batch_id: String,
    /// Which correction of it.
    pub revision: i32,
    /// The day it is due.
    pub business_date: NaiveDate,
    /// Its state.
    pub state: BatchState,
    /// Its lines.
    pub items: i64,
    /// How often it was charged.
    pub attempts: i32,
    /// Its unit.
    pub unit: Unit,
    /// Why it is broken.
    pub break_reason: Option<String>,
}

/// A batch with everything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BatchDetail {
    /// The row of the list.
    #[serde(flatten)]
    pub row: BatchRow,
    /// Who claimed or settled it last.
    pub stamp: Stamp,
    /// Name of the file it came from.
    pub file: String,
    /// When it settled.
    pub settled_at: Option<DateTime<Utc>>,
    /// Per currency.
    pub totals: Vec<TotalRow>,
    /// What it posted.
    pub postings: Vec<PostingRow>,
    /// What took that back; nothing where it is not reversed, or posted nothing.
    pub reversal: Vec<PostingRow>,
    /// The revision before it.
    pub replaces: Option<RevisionRow>,
    /// The revision after it.
    pub replaced_by: Option<RevisionRow>,
    /// What operators decided about it, in order: of a reversal, who and why.
    pub decisions: Vec<DecisionRow>,
}

/// Another revision of the same batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RevisionRow {
    /// Its row.
    pub id: BatchId,
    /// Its revision.
    pub revision: i32,
    /// Its state.
    pub state: BatchState,
}

/// Puts the neighbours of `revision` in their places: the one before, the one after.
#[must_use]
pub(crate) fn neighbours(revision: i32, neighbours: Vec<RevisionRow>) -> (Option<RevisionRow>, Option<RevisionRow>) {
    let (before, after): (Vec<_>, Vec<_>) = neighbours.into_iter().partition(|other| other.revision < revision);
    (before.into_iter().next(), after.into_iter().next())
}

/// A line of the audit log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DecisionRow {
    /// When.
    pub at: DateTime<Utc>,
    /// Who.
    pub operator: String,
    /// What, e.g. `batch accept`.
    pub action: String,
    /// Why.
    pub reason: String,
}

/// One currency of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TotalRow {
    /// ISO code.
    pub currency: String,
    /// Lines.
    pub items: i64,
    /// Σ gross, minor units.
    pub gross_minor: i64,
    /// Σ fee.
    pub fee_minor: i64,
    /// Σ net.
    pub net_minor: i64,
    /// Remitted, by line or by declaration.
    pub remittance_minor: i64,
    /// Within the tolerance.
    pub rounding_minor: i64,
    /// Beyond it.
    pub difference_minor: i64,
    /// Accepted by a person.
    pub accepted_minor: i64,
}

/// One posting of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PostingRow {
    /// Key of its entry.
    pub entry_key: String,
    /// Account code.
    pub account: String,
    /// ISO code.
    pub currency: String,
    /// `D` or `C`.
    pub side: String,
    /// Minor units, > 0.
    pub amount_minor: i64,
}

/// The newest holder of a unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FenceRow {
    /// The unit.
    pub unit: Unit,
    /// The job whose unit it is; nothing for a partition of the batches.
    pub job: Option<String>,
    /// Its fence and holder.
    pub stamp: Stamp,
    /// Since when.
    pub registered_at: Option<DateTime<Utc>>,
}

/// A write that the ledger refused because of its fence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RejectionRow {
    /// When.
    pub rejected_at: DateTime<Utc>,
    /// `register`, `claim`, `settle`, `release` or `job`.
    pub operation: String,
    /// The unit.
    pub unit: Unit,
    /// The batch, where it was for one.
    pub batch: Option<BatchId>,
    /// Who tried.
    pub stamp: Stamp,
    /// Who held the unit by then.
    pub newer: Stamp,
}

/// A source of tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SourceRow {
    /// Its generation.
    pub generation: i64,
    /// Its name: `ledger` for tokens that the ledger mints.
    pub source: String,
    /// Why it was adopted.
    pub reason: String,
    /// Who adopted it.
    pub adopted_by: String,
    /// When.
    pub adopted_at: DateTime<Utc>,
}

/// A batch with repeated lines cannot be accepted: the transaction they repeat would be settled twice.
///
/// # Errors
/// [`LedgerError::NotAcceptable`] naming the lines.
pub(crate) fn refuse_repeated(id: BatchId, lines: &[i64]) -> Result<(), LedgerError> {
    if lines.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> = lines.iter().map(i64::to_string).collect();
    let why = format!(
        "lines {} repeat transactions that another line or batch holds, and accepting would settle them twice; cancel it and import a corrected file",
        lines.join(", ")
    );
    Err(LedgerError::NotAcceptable(id, why))
}
