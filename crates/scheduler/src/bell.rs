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
use tokio::sync::{Notify, oneshot};
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
    ringer: oneshot::Sender<()>,
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
fn start_ringer(rings: Arc<Notify>) -> oneshot::Sender<()> {
    let (ringer, dropped) = oneshot::channel();
    on_a_thread(ring(rings, dropped));
    ringer
}

fn on_a_thread(ringing: impl Future<Output = Result<(), JobSchedulerError>> + Send + 'static) {
    let ringer = move || -> Result<(), RingerError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
        runtime.block_on(ringing)?;
        Ok(())
    };
    let logged = move || ringer().unwrap_or_else(|error| warn!(%error, "the bell of the schedules does not come up"));
    if let Err(error) = std::thread::Builder::new().name("bell".to_owned()).spawn(logged) {
        warn!(%error, "the bell of the schedules does not come up");
    }
}

async fn ring(rings: Arc<Notify>, dropped: oneshot::Receiver<()>) -> Result<(), JobSchedulerError> {
    let mut scheduler = every_second(rings).await?;
    // nothing is ever sent
    let _ = dropped.await;
    scheduler.shutdown().await
}

async fn every_second(rings: Arc<Notify>) -> Result<JobScheduler, JobSchedulerError> {
    let scheduler = JobScheduler::new().await?;
    let job = Job::new_async(EVERY_SECOND, move |_, _| {
        let rings = Arc::clone(&rings);
        Box::pin(async move { rings.notify_one() })
    })?;
    scheduler.add(job).await?;
    scheduler.start().await?;
    Ok(scheduler)
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
    use tokio::sync::oneshot::error::TryRecvError;

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
        assert!(took < Duration::from_secs(6), "{took:?}");
    }

    /// What becomes of a ringer that the bell shall notice.
    #[derive(Debug, Clone, Copy)]
    enum Disturbance {
        /// The scheduler is shut down, and stays.
        FallSilent,
        /// Its only thread is busy.
        Starve,
    }

    /// A ringer like the bell's own until it is told to be disturbed.
    async fn disturbed(
        rings: Arc<Notify>,
        told: oneshot::Receiver<Disturbance>,
        dropped: oneshot::Receiver<()>,
    ) -> Result<(), JobSchedulerError> {
        let mut scheduler = every_second(rings).await?;
        match told.await.expect("it is told") {
            Disturbance::FallSilent => scheduler.shutdown().await?,
            Disturbance::Starve => std::thread::sleep(Duration::from_secs(15)),
        }
        let _ = dropped.await;
        scheduler.shutdown().await
    }

    /// S7: a scheduler that is shut down behind our back, and one whose ticker is starved.
    #[tokio::test]
    async fn s7_a_silent_bell_is_built_anew() {
        for disturbance in [Disturbance::FallSilent, Disturbance::Starve] {
            let (rung, (tell, told)) = (Arc::new(Notify::new()), oneshot::channel());
            let (_lives_on, dropped) = oneshot::channel();
            on_a_thread(disturbed(Arc::clone(&rung), told, dropped));
            let (ringer, mut replaced) = oneshot::channel();
            let mut bell = Bell { rings: rung, silence: SHORT, ringer };
            rings(&mut bell, 2).await;
            tell.send(disturbance).expect("a ringer");
            // it may ring once more for what had begun
            rings(&mut bell, 3).await;
            assert_eq!(
                replaced.try_recv(),
                Err(TryRecvError::Closed),
                "{disturbance:?} did not silence it: the test shows nothing"
            );
        }
    }

    /// S7: while every thread of the worker is busy the bell goes on: what was not heard is one ring.
    #[tokio::test]
    async fn s7_a_starved_worker_does_not_starve_the_bell() {
        let mut bell = bell();
        rings(&mut bell, 1).await;
        let (watched, mut replaced) = oneshot::channel();
        let _ringer = std::mem::replace(&mut bell.ringer, watched);
        std::thread::sleep(SHORT * 2);
        assert!(rings(&mut bell, 1).await < Duration::from_millis(100));
        assert_eq!(replaced.try_recv(), Err(TryRecvError::Empty), "it was built anew for nothing");
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
