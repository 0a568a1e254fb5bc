//! Whether the loops of this process turn. One that does not is stuck: on a statement whose answer never comes, since the host at the
//! other end is gone without a word, say. (Between two statements that is found out: a connection is tried before it is used.)
//!
//! Nothing waits for ever here except an answer from the database, and TCP alone tells of a dead host after many minutes or never. So
//! the process ends itself, as if killed, which is safe: its leases expire, others go on, and whoever started it starts it again.

use std::sync::Arc;
use std::time::Duration;
use worker::{Pulse, Worker};

/// How often it is looked at.
const EVERY: Duration = Duration::from_secs(5);
/// Longer than anything a loop does beside what is configured.
const SLACK: Duration = Duration::from_secs(60);

/// Loops, by name.
#[derive(Clone)]
pub(super) struct Watched {
    pub(super) worker: Arc<Worker>,
    pub(super) planner: Arc<Pulse>,
}

impl Watched {
    fn pulses(&self) -> [(&'static str, &Pulse); 2] {
        [("worker", &self.worker.pulse), ("planner", &self.planner)]
    }

    /// A reload may change how long a transaction or a pause takes.
    fn patience(&self) -> Duration {
        let pace = self.worker.pace.get();
        SLACK + pace.limits.total + pace.idle_poll
    }

    /// Which loop has been silent for too long.
    pub(super) fn stuck(&self) -> Option<String> {
        let patience = self.patience();
        let (name, pulse) = self.pulses().into_iter().find(|(_, pulse)| pulse.silent_for() > patience)?;
        Some(format!("the {name} has not turned for {} s", pulse.silent_for().as_secs()))
    }

    /// Resolves when a loop is stuck. A process that was frozen as a whole looks so, too, when it wakes: it gets the time to turn.
    pub(super) async fn wait(self) {
        let mut seen = 0;
        loop {
            tokio::time::sleep(EVERY).await;
            match self.stuck() {
                Some(why) if seen > 1 => {
                    tracing::error!(why, "stuck; ending, to be started again (is a host or a network gone?)");
                    return;
                }
                Some(_) => seen += 1,
                None => seen = 0,
            }
        }
    }
}
