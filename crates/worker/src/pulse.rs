//! A sign of life: whether the loops of this process still turn. Needs nothing else.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Beaten by a loop at every turn, read by whoever answers "are you alive?". Says nothing about services: an instance that waits
/// out an outage is alive.
#[derive(Debug)]
pub struct Pulse {
    started: Instant,
    last_ms: AtomicU64,
}

impl Default for Pulse {
    fn default() -> Self {
        Pulse { started: Instant::now(), last_ms: AtomicU64::new(0) }
    }
}

impl Pulse {
    /// The loop turned.
    pub fn beat(&self) {
        let now = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_ms.store(now, Ordering::Relaxed);
    }

    /// How long ago it turned last.
    #[must_use]
    pub fn silent_for(&self) -> Duration {
        self.started.elapsed().saturating_sub(Duration::from_millis(self.last_ms.load(Ordering::Relaxed)))
    }
}
