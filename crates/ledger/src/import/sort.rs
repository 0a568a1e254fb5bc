//! Which batches of a file are new, which are there, and which are there with other content. Needs `domain::summary` and the
//! module around it.

use super::{ImportMode, ImportedBatch};
use domain::batch::BatchState;
use domain::money::format_minor;
use domain::summary::{BatchSummary, FileSummary};
use domain::totals::Total;
use std::collections::BTreeMap;

/// A revision as the ledger has it of a batch that is in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredRevision {
    /// As an import shows it.
    pub(crate) batch: ImportedBatch,
    /// Of its content.
    pub(crate) digest: Vec<u8>,
}

/// A batch of the file, and the live revision that it is not the same as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Changed<'a> {
    /// In the file.
    pub(crate) batch: &'a BatchSummary,
    /// In the ledger.
    pub(crate) there: ImportedBatch,
}

/// The batches of a file, sorted by what the ledger has of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Sorted<'a> {
    /// There with the same content, live or taken back: left alone.
    pub(crate) there: BTreeMap<String, ImportedBatch>,
    /// Live with other content: refused, or taken back.
    pub(crate) changed: Vec<Changed<'a>>,
    /// To go in, those of `changed` among them, with their index in the file.
    pub(crate) new: Vec<(i32, &'a BatchSummary)>,
}

/// Sorts the batches of a file. `stored` are all revisions of them, in order of revision.
///
/// Content that a person has taken back does not come again because its file does: files are imported again without a thought,
/// every night or after a failover. Only a replacement, which is a decision too, brings it in once more.
#[must_use]
pub(crate) fn sort<'a>(file: &'a FileSummary, stored: Vec<StoredRevision>, mode: &ImportMode) -> Sorted<'a> {
    let mut revisions: BTreeMap<String, Vec<StoredRevision>> = BTreeMap::new();
    for revision in stored {
        revisions.entry(revision.batch.external_batch_id.clone()).or_default().push(revision);
    }
    let mut sorted = Sorted::default();
    for (index, batch) in (0..).zip(&file.batches) {
        let mut revisions = revisions.remove(&batch.external_batch_id).unwrap_or_default();
        let is_live = |revision: &StoredRevision| !is_taken_back(revision.batch.state);
        let counts = |revision: &StoredRevision| is_live(revision) || matches!(mode, ImportMode::Add { .. });
        if let Some(same) = revisions.iter().rposition(|revision| revision.digest == batch.digest && counts(revision)) {
            sorted.there.insert(batch.external_batch_id.clone(), revisions.swap_remove(same).batch);
            continue;
        }
        sorted.new.push((index, batch));
        if let Some(live) = revisions.pop().filter(is_live) {
            sorted.changed.push(Changed { batch, there: live.batch });
        }
    }
    sorted
}

pub(super) fn is_taken_back(state: BatchState) -> bool {
    matches!(state, BatchState::Cancelled | BatchState::Reversed)
}

/// The totals of a batch as the ledger knows them, to show how a file differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredTotal {
    /// ISO code.
    pub(crate) currency: String,
    /// Lines.
    pub(crate) items: i64,
    /// Σ gross.
    pub(crate) gross_minor: i64,
    /// Σ fee.
    pub(crate) fee_minor: i64,
    /// Σ net.
    pub(crate) net_minor: i64,
}

/// The sentence for a batch that is already there with other content.
#[must_use]
pub(crate) fn difference(file: &FileSummary, changed: &Changed<'_>, stored: &[StoredTotal]) -> String {
    let (batch, there) = (changed.batch, &changed.there);
    let new: Vec<String> = batch.totals.iter().map(describe_total).collect();
    let old: Vec<String> = stored.iter().map(describe_stored).collect();
    format!(
        "{}:{}: batch {:?} is already there as batch {}, which is {}, with other content: the ledger has {}, the file {}; nothing was \
         written. If the file corrects it: `settled batch replace --file {} --profile … --reason …` takes batch {} back and the file's in",
        file.name,
        batch.first_line,
        batch.external_batch_id,
        there.id,
        there.state,
        list(&old),
        list(&new),
        file.name,
        there.id,
    )
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
