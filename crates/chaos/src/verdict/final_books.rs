//! The books as they are when everything is over.

use super::{Finding, finding};
use crate::DrillError;
use domain::batch::BatchState;
use domain::fence::Stamp;
use ledger::Ledger;
use ledger::operate::BatchFilter;
use std::collections::BTreeMap;

/// Every invariant of the books holds.
pub const VERIFIED: &str = "the books hold";

/// What the ledger says at the end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FinalBooks {
    /// By id: the state, and whose stamp is on the row.
    pub batches: BTreeMap<i64, (BatchState, Stamp)>,
    /// Invariants that do not hold, in words.
    pub broken: Vec<String>,
}

impl FinalBooks {
    /// Reads them.
    ///
    /// # Errors
    /// The ledger's.
    pub async fn read(ledger: &dyn Ledger) -> Result<FinalBooks, DrillError> {
        let report = ledger.verify().await?;
        let failed = report.checks.iter().filter(|check| !check.ok);
        let broken = failed.map(|check| format!("{}: {}", check.id, check.detail)).collect();
        let mut batches = BTreeMap::new();
        for row in ledger.batches(&BatchFilter { limit: u32::MAX, ..BatchFilter::default() }).await? {
            let detail = ledger.batch(row.id).await?;
            batches.insert(row.id.0, (detail.row.state, detail.stamp));
        }
        Ok(FinalBooks { batches, broken })
    }

    /// Whose settlement of this batch is in the books.
    #[must_use]
    pub fn settled_by(&self, batch: i64) -> Option<Stamp> {
        let (state, stamp) = self.batches.get(&batch)?;
        matches!(state, BatchState::Settled | BatchState::Reversed).then_some(*stamp)
    }
}

/// `verify` is the oracle of what is in the books; the other rules say how it may have come there.
#[must_use]
pub fn verified(books: &FinalBooks) -> Finding {
    finding(VERIFIED, format!("every invariant, {} batches", books.batches.len()), books.broken.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invariant_that_does_not_hold_is_found() {
        let broken = FinalBooks { broken: vec!["entry_balances: entry 1".to_owned()], ..FinalBooks::default() };
        assert!(!verified(&broken).ok);
        assert!(verified(&FinalBooks::default()).ok);
    }
}
