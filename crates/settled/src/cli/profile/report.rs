//! What a file is taken for, ready for a table or for JSON. Amounts are minor units of their currency.

use domain::batch::{BatchState, IllegalTransition};
use domain::item::{FeeMode, ItemKind};
use domain::money::Currency;
use domain::summary::{BatchSummary, FileSummary, StagedItem};
use domain::totals::{Declared, Total};
use serde::Serialize;

/// A whole file.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) file: String,
    pub(super) profile: String,
    pub(super) source: String,
    pub(super) bytes: u64,
    pub(super) items: u64,
    /// The first of its lines.
    pub(super) rows: Vec<Row>,
    pub(super) batches: Vec<Batch>,
    pub(super) warnings: Vec<String>,
}

/// How a row was read.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    pub(super) line: i64,
    pub(super) kind: ItemKind,
    pub(super) merchant: String,
    pub(super) currency: Currency,
    pub(super) gross_minor: i64,
    pub(super) fee_minor: i64,
    pub(super) net_minor: i64,
    pub(super) residual_micro: i64,
    pub(super) identity: String,
    pub(super) batch: String,
}

/// A batch as it would come in.
#[derive(Debug, Serialize)]
pub(super) struct Batch {
    pub(super) external_batch_id: String,
    pub(super) business_date: String,
    pub(super) fee_mode: FeeMode,
    pub(super) first_line: i64,
    pub(super) items: i64,
    pub(super) state: BatchState,
    pub(super) break_reason: Option<String>,
    pub(super) totals: Vec<CurrencyTotal>,
}

/// One currency of a batch.
#[derive(Debug, Serialize)]
pub(super) struct CurrencyTotal {
    pub(super) currency: Currency,
    pub(super) items: i64,
    pub(super) gross_minor: i64,
    pub(super) fee_minor: i64,
    pub(super) net_minor: i64,
    /// By line or by declaration.
    pub(super) remittance_minor: i64,
    pub(super) rounding_minor: i64,
    pub(super) difference_minor: i64,
    pub(super) tolerance_minor: i64,
    pub(super) declared: Binding,
}

/// What the source declares and what binds; nothing else of it is known here.
#[derive(Debug, Serialize)]
pub(super) struct Binding {
    pub(super) items: Option<i64>,
    pub(super) debit_minor: Option<i64>,
    pub(super) credit_minor: Option<i64>,
    pub(super) gross_minor: Option<i64>,
    pub(super) fee_minor: Option<i64>,
    pub(super) net_minor: Option<i64>,
}

impl Report {
    /// # Errors
    /// Never: every batch of a file was just received.
    pub(super) fn new(summary: FileSummary, first: Vec<StagedItem>) -> Result<Report, IllegalTransition> {
        let rows = first.into_iter().map(|staged| row(staged, &summary.batches)).collect();
        let batches = summary.batches.iter().map(batch).collect::<Result<_, _>>()?;
        let FileSummary { name, source, profile, bytes, items, warnings, .. } = summary;
        Ok(Report { file: name, profile, source, bytes, items, rows, batches, warnings })
    }

    pub(super) fn is_broken(&self) -> bool {
        self.batches.iter().any(|batch| batch.state == BatchState::Broken)
    }
}

fn row(StagedItem { batch, item }: StagedItem, batches: &[BatchSummary]) -> Row {
    Row {
        line: item.line_no,
        kind: item.kind,
        currency: item.currency,
        gross_minor: item.gross_minor,
        fee_minor: item.fee_minor,
        // a reader refuses a line whose net overflows
        net_minor: item.net_minor().unwrap_or_default(),
        residual_micro: item.residual_micro,
        merchant: item.merchant,
        identity: item.dedupe_key,
        batch: batches[batch as usize].external_batch_id.clone(),
    }
}

/// The import's own judgement; only that it cannot know what a ledger already has.
fn batch(summary: &BatchSummary) -> Result<Batch, IllegalTransition> {
    let (state, break_reason) = ledger::import::judge(summary, &[])?;
    Ok(Batch {
        external_batch_id: summary.external_batch_id.clone(),
        business_date: summary.business_date.to_string(),
        fee_mode: summary.fee_mode,
        first_line: summary.first_line,
        items: summary.totals.iter().map(|total| total.items).sum(),
        state,
        break_reason,
        totals: summary.totals.iter().map(total).collect(),
    })
}

fn total(total: &Total) -> CurrencyTotal {
    let Declared { items, debit_minor, credit_minor, gross_minor, fee_minor, net_minor } = total.declared;
    CurrencyTotal {
        currency: total.currency,
        items: total.items,
        gross_minor: total.gross_minor,
        fee_minor: total.fee_minor,
        net_minor: total.net_minor,
        remittance_minor: total.remittance_minor.saturating_add(total.declared_remittance_minor),
        rounding_minor: total.rounding_minor,
        difference_minor: total.difference_minor,
        tolerance_minor: total.tolerance_minor,
        declared: Binding { items, debit_minor, credit_minor, gross_minor, fee_minor, net_minor },
    }
}
