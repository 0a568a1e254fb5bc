//! R11: a write that is dropped at whatever await leaves no transaction open, no connection poisoned and no gate shut.

use super::{BEGIN, SqliteLedger};
use crate::{Fences, Guard, OpenOptions};
use sqlx::Connection;
use sqlx::sqlite::SqliteConnection;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r11_writes_dropped_at_every_await() {
    let folder = tempfile::tempdir().expect("a folder");
    let url = format!("sqlite:{}", folder.path().join("settled.db").display());
    let options = OpenOptions { url: url.clone(), partitions: 1, guard: Guard::Lease, migrate: true, connections: 2 };
    let ledger = SqliteLedger::open(&options).await.expect("a ledger");
    let (mut last, mut most_waits) = (0, 0);
    for _ in 0..20 {
        for waits in 0.. {
            let Some(token) = dropped_after(ledger.mint(), waits).await else { continue };
            let token = token.expect("a token");
            assert!(token > last, "{token} after {last}");
            (last, most_waits) = (token, most_waits.max(waits));
            break;
        }
    }
    assert!(most_waits >= 4, "gate, begin, update and commit are waited for, not only {most_waits}");
    tokio::time::timeout(LIMIT, ledger.mint()).await.expect("the gate is open").expect("a token");
    assert_nothing_is_open(&url).await;
}

/// Polls `future` until it has waited so often, then drops it. Its output, where it ends before.
async fn dropped_after<F: Future>(future: F, waits: u32) -> Option<F::Output> {
    let (mut future, mut waited) = (pin!(future), 0);
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending if waited == waits => Poll::Ready(None),
        Poll::Pending => {
            waited += 1;
            Poll::Pending
        }
    })
    .await
}

/// Another program is given the write lock at once.
async fn assert_nothing_is_open(url: &str) {
    let options = super::connect_options(url).expect("options").busy_timeout(Duration::ZERO);
    let mut beside = SqliteConnection::connect_with(&options).await.expect("the same file");
    beside.begin_with(BEGIN).await.expect("the write lock").rollback().await.expect("an end");
}
