//! Repeats a whole transaction that the database gave up for its own reasons, with the same keys. Needs `error.rs`.

use crate::LedgerError;
use backon::{ExponentialBuilder, Retryable};
use std::time::Duration;

/// Runs `transaction` again while it is contended, a few times with growing, jittered pauses. Only for transactions that are
/// safe to repeat from their first statement: nothing of a contended one is in the ledger.
///
/// # Errors
/// Its last error.
pub async fn transaction<T, F>(transaction: impl FnMut() -> F) -> Result<T, LedgerError>
where
    F: Future<Output = Result<T, LedgerError>>,
{
    let pauses = ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(5))
        .with_max_delay(Duration::from_millis(200))
        .with_max_times(4)
        .with_jitter();
    transaction.retry(pauses).when(LedgerError::is_contention).await
}
