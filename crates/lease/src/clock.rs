//! The clock of local deadlines: one that also counts while the machine is suspended. Needs nothing else.
//!
//! The standard library's monotonic clock stands still during suspend (rust-lang/rust#87906): a laptop or a hibernated virtual
//! machine would wake and believe in a lease that expired hours ago. `CLOCK_BOOTTIME` goes on. What no clock of the guest sees is
//! a virtual machine that its host paused; the ledger's fence covers that.

use rustix::time::{ClockId, clock_gettime};
use std::ops::Add;
use std::time::Duration;

/// An instant since boot, in nanoseconds. Meaningless outside the machine that read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct BootInstant(i64);

impl BootInstant {
    /// `ns` nanoseconds after boot.
    #[must_use]
    pub fn from_nanos(ns: i64) -> BootInstant {
        BootInstant(ns.max(0))
    }

    /// Nanoseconds since boot.
    #[must_use]
    pub fn as_nanos(self) -> i64 {
        self.0
    }

    /// How long until `later`; zero when it is not later.
    #[must_use]
    pub fn until(self, later: BootInstant) -> Duration {
        Duration::from_nanos(u64::try_from(later.0.saturating_sub(self.0)).unwrap_or(0))
    }
}

impl Add<Duration> for BootInstant {
    type Output = BootInstant;

    fn add(self, span: Duration) -> BootInstant {
        BootInstant(self.0.saturating_add(i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)))
    }
}

/// Where local deadlines are read. Injected, so that tests can suspend a machine.
pub trait Clock: Send + Sync {
    /// Now. Never goes back.
    fn now(&self) -> BootInstant;
}

/// `CLOCK_BOOTTIME`.
#[derive(Debug, Clone, Copy, Default)]
pub struct BootClock;

// macOS has no CLOCK_BOOTTIME; its CLOCK_MONOTONIC counts through sleep
#[cfg(any(target_os = "linux", target_os = "android"))]
const COUNTS_THROUGH_SUSPEND: ClockId = ClockId::Boottime;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const COUNTS_THROUGH_SUSPEND: ClockId = ClockId::Monotonic;

impl Clock for BootClock {
    fn now(&self) -> BootInstant {
        let t = clock_gettime(COUNTS_THROUGH_SUSPEND);
        BootInstant(t.tv_sec.saturating_mul(1_000_000_000).saturating_add(t.tv_nsec))
    }
}
