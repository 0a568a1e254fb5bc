//! Signals: the first asks for a drain, the second does not wait for its end.

use crate::exit;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use worker::Drain;

/// What the second signal still leaves to the transaction in hand. What is cut off then is cut off as by a kill, and a kill is safe:
/// it only costs an attempt and the wait for the lease's end.
const HURRY: Duration = Duration::from_secs(1);

/// Ends when a signal asks the process to end. Listens from when it is made: what is started afterwards can be ended in order.
pub(crate) fn asked_to_end() -> anyhow::Result<impl Future<Output = ()>> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let mut hangup = signal(SignalKind::hangup())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = hangup.recv() => {}
        }
    })
}

/// SIGTERM and SIGINT drain; once more, and the process ends within a second.
pub(crate) fn drain_on_signal(drain: Drain) -> anyhow::Result<()> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            if drain.is_asked() {
                tracing::warn!("asked again: ending within a second, whatever is in hand");
                tokio::time::sleep(HURRY).await;
                std::process::exit(i32::from(exit::FAILED));
            }
            tracing::warn!("draining: what has begun is finished, the rest is handed back (once more to hurry)");
            drain.ask();
        }
    });
    Ok(())
}
