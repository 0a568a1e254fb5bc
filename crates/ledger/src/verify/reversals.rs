//! Every reversal, explained: what was taken back, by whom and why, and what took its place. Needs `domain::batch`, `domain::ids`.
//!
//! Not a judgement. A reversal is a decision of a person, and whoever reads the report shall see each of them; whether its entries
//! are right is for the checks.

use chrono::{DateTime, Utc};
use domain::ids::BatchId;
use serde::Serialize;

/// A batch that was settled and is reversed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reversal {
    /// Its row.
    pub batch: BatchId,
    /// Its source.
    pub source: String,
    /// Its identity within the source.
    pub external_batch_id: String,
    /// Which correction of it.
    pub revision: i32,
    /// What was taken back, by currency; nothing where it had posted nothing.
    pub amounts: Vec<ReversedAmount>,
    /// The line of the audit log; without one, a check fails.
    #[serde(flatten)]
    pub decision: Option<Decision>,
    /// The revision after it.
    pub replaced_by: Option<Replacement>,
}

/// One currency of a reversal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReversedAmount {
    /// ISO code.
    pub currency: String,
    /// Σ of the debits of the reversing entry, minor units. Its credits are as much.
    pub debits_minor: i128,
}

/// Who reversed a batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Decision {
    /// When.
    pub reversed_at: DateTime<Utc>,
    /// Who.
    pub operator: String,
    /// Why.
    pub reason: String,
}

/// The revision that followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Replacement {
    /// Its row.
    pub batch: BatchId,
    /// Its revision.
    pub revision: i32,
}

/// Reversed batches with their decision and the revision after them, in order of id.
pub(crate) const REVERSALS: &str =
    "SELECT b.id, b.source, b.external_batch_id, b.revision, l.at, l.operator, l.reason, n.id AS next_id, n.revision AS next_revision
    FROM settlement_batch b
    LEFT JOIN (SELECT subject, min(id) AS id FROM audit_log WHERE action = 'batch reverse' GROUP BY subject) f
        ON f.subject = CAST(b.id AS CHAR(20))
    LEFT JOIN audit_log l ON l.id = f.id
    LEFT JOIN settlement_batch n
        ON n.source = b.source AND n.external_batch_id = b.external_batch_id AND n.revision = b.revision + 1
    WHERE b.state = 'reversed' ORDER BY b.id";
/// What their reversing entries took back: batch, currency, debits as text (they may leave 64 bits), in order of id and currency.
pub(crate) const REVERSED_AMOUNTS: &str = "SELECT e.batch_id, e.currency, concat(sum(p.amount_minor), '') AS debits
    FROM journal_entry e JOIN settlement_batch b ON b.id = e.batch_id AND b.state = 'reversed' JOIN posting p ON p.entry_id = e.id
    WHERE e.kind = 'reverse' AND p.side = 'D' GROUP BY e.batch_id, e.currency ORDER BY e.batch_id, e.currency";

/// Gives each reversal its amounts; both are in order of id.
#[must_use]
pub(crate) fn with_amounts(mut reversals: Vec<Reversal>, amounts: Vec<(BatchId, ReversedAmount)>) -> Vec<Reversal> {
    let mut amounts = amounts.into_iter().peekable();
    for reversal in &mut reversals {
        while let Some((_, amount)) = amounts.next_if(|(batch, _)| *batch == reversal.batch) {
            reversal.amounts.push(amount);
        }
    }
    reversals
}
