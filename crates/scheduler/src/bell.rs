//! A bell that rings every second. Needs nothing else.
//!
//! This is all that tokio-cron-scheduler does here. It freezes zones to an offset (its issue 107), keeps what it must remember in memory,
//! and its ticker can stop for good when it is starved (61, 113): so it says *look now*, and neither when nor what. What has occurred is
//! found out from the ledger, and a ring that is missed or comes twice changes nothing.
//!
//! It has a thread and a runtime of its own: work that keeps every other thread busy does not starve it, and all its tasks end with the
//! runtime, which they would not by themselves.

use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, mpsc};
use tokio_cron_scheduler::{Job, JobScheduler, JobSchedulerError};
use tracing::warn;

/// Every second of every minute.
const EVERY_SECOND: &str = "* * * * * *";
/// A bell that was silent for so long is built anew.
const SILENCE: Duration = Duration::from_secs(5);

/// Rings until it is stopped or dropped.
#[derive(Debug)]
pub struct Bell {
    rings: Arc<Notify>,
    silence: Duration,
    /// The ringer ends when this is dropped.
    ringer: mpsc::UnboundedSender<Order>,
}

/// What a ringer can be told: nothing, unless a test wants to disturb it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// Shut the scheduler down, and stay.
    #[cfg(test)]
    FallSilent,
    /// Keep its only thread busy.
    #[cfg(test)]
    Starve(Duration),
}

impl Order {
    async fn carry_out(self, _scheduler: &mut JobScheduler) -> Result<(), JobSchedulerError> {
        match self {
            #[cfg(test)]
            Order::FallSilent => _scheduler.shutdown().await,
            #[cfg(test)]
            Order::Starve(span) => {
                std::thread::sleep(span);
                Ok(())
            }
        }
    }
}

impl Bell {
    /// Starts it. That it does not come up is told by its silence, like everything else that can happen to it.
    #[must_use]
    pub fn start() -> Bell {
        let rings = Arc::new(Notify::new());
        Bell { ringer: start_ringer(Arc::clone(&rings)), rings, silence: SILENCE }
    }

    /// Waits until it rings. Rings that nobody waited for are one. May be dropped at any time.
    pub async fn rung(&mut self) {
        while tokio::time::timeout(self.silence, self.rings.notified()).await.is_err() {
            warn!(silent_s = self.silence.as_secs(), "the bell of the schedules fell silent; it is built anew");
            self.ringer = start_ringer(Arc::clone(&self.rings));
        }
    }

    /// Ends it.
    pub fn stop(self) {}
}

/// Starts a thread that rings until the sender is dropped.
fn start_ringer(rings: Arc<Notify>) -> mpsc::UnboundedSender<Order> {
    let (orders, given) = mpsc::unbounded_channel();
    let ringer = move || -> Result<(), RingerError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
        runtime.block_on(ring(rings, given))?;
        Ok(())
    };
    let logged = move || ringer().unwrap_or_else(|error| warn!(%error, "the bell of the schedules does not come up"));
    if let Err(error) = std::thread::Builder::new().name("bell".to_owned()).spawn(logged) {
        warn!(%error, "the bell of the schedules does not come up");
    }
    orders
}

async fn ring(rings: Arc<Notify>, mut orders: mpsc::UnboundedReceiver<Order>) -> Result<(), JobSchedulerError> {
    let mut scheduler = JobScheduler::new().await?;
    let job = Job::new_async(EVERY_SECOND, move |_, _| {
        let rings = Arc::clone(&rings);
        Box::pin(async move { rings.notify_one() })
    })?;
    scheduler.add(job).await?;
    scheduler.start().await?;
    while let Some(order) = orders.recv().await {
        order.carry_out(&mut scheduler).await?;
    }
    scheduler.shutdown().await
}

/// Why a ringer did not come up.
#[derive(Debug, thiserror::Error)]
enum RingerError {
    #[error("no runtime: {0}")]
    Runtime(#[from] std::io::Error),
    #[error("no scheduler: {0}")]
    Scheduler(#[from] JobSchedulerError),
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    const SHORT: Duration = Duration::from_secs(2);

    fn bell() -> Bell {
        Bell { silence: SHORT, ..Bell::start() }
    }

    async fn rings(bell: &mut Bell, count: u32) -> Duration {
        let started = Instant::now();
        for _ in 0..count {
            tokio::time::timeout(Duration::from_secs(20), bell.rung()).await.expect("it rings");
        }
        started.elapsed()
    }

    #[tokio::test]
    async fn it_rings_every_second() {
        let mut bell = bell();
        rings(&mut bell, 1).await;
        let took = rings(&mut bell, 3).await;
        assert!((Duration::from_secs(2)..Duration::from_secs(6)).contains(&took), "{took:?}");
    }

    /// S7: a scheduler that is shut down behind our back, and one whose ticker is starved.
    #[tokio::test]
    async fn s7_a_silent_bell_is_built_anew() {
        for order in [Order::FallSilent, Order::Starve(Duration::from_secs(15))] {
            let mut bell = bell();
            rings(&mut bell, 2).await;
            let first = bell.ringer.clone();
            first.send(order).expect("a ringer");
            // it may ring once more for what had begun
            rings(&mut bell, 3).await;
            assert!(!bell.ringer.same_channel(&first), "{order:?} did not silence it: the test shows nothing");
        }
    }

    /// S7: while every thread of the worker is busy the bell goes on: what was not heard is one ring.
    #[tokio::test]
    async fn s7_a_starved_worker_does_not_starve_the_bell() {
        let mut bell = bell();
        rings(&mut bell, 1).await;
        let first = bell.ringer.clone();
        std::thread::sleep(SHORT * 2);
        assert!(rings(&mut bell, 1).await < Duration::from_millis(100));
        assert!(bell.ringer.same_channel(&first), "it was built anew for nothing");
    }

    #[tokio::test]
    async fn a_stopped_bell_leaves_no_thread_behind() {
        let mut bell = bell();
        rings(&mut bell, 1).await;
        let rings = Arc::downgrade(&bell.rings);
        assert!(rings.strong_count() > 1, "the ringer has it too");
        bell.stop();
        for _ in 0..200 {
            if rings.strong_count() == 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("the ringer is still there");
    }
}
