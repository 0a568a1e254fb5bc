//! Repeats a whole transaction that the database gave up for its own reasons, with the same keys. Needs `error.rs`.

use crate::LedgerError;
use backon::{ExponentialBuilder, Retryable, RetryableWithContext};
use std::time::{Duration, Instant};

/// Runs `transaction` again while it is contended, a few times with growing, jittered pauses. Only for transactions that are
/// safe to repeat from their first statement: nothing of a contended one is in the ledger.
///
/// # Errors
/// Its last error.
pub async fn transaction<T, F>(transaction: impl FnMut() -> F) -> Result<T, LedgerError>
where
    F: Future<Output = Result<T, LedgerError>>,
{
    transaction.retry(pauses()).when(LedgerError::is_contention).await
}

/// As [`transaction`], for one that may wait for a lock as long as it takes to give up on it: none is begun again after `window`, so
/// that the tries together have an end that can be named.
///
/// # Errors
/// Its last error.
pub(crate) async fn transaction_within<T, F>(window: Duration, transaction: impl FnMut() -> F) -> Result<T, LedgerError>
where
    F: Future<Output = Result<T, LedgerError>>,
{
    let begun = Instant::now();
    transaction.retry(pauses()).when(|error| error.is_contention() && begun.elapsed() < window).await
}

/// As [`transaction`], on one connection that is handed from try to try: for what was prepared in its session.
///
/// # Errors
/// Its last error, with the connection.
pub async fn transaction_on<C, T, F>(connection: C, transaction: impl FnMut(C) -> F) -> (C, Result<T, LedgerError>)
where
    F: Future<Output = (C, Result<T, LedgerError>)>,
{
    transaction.retry(pauses()).context(connection).when(LedgerError::is_contention).await
}

fn pauses() -> ExponentialBuilder {
    ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(5))
        .with_max_delay(Duration::from_millis(200))
        .with_max_times(4)
        .with_jitter()
}
