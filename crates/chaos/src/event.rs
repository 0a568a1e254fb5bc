//! What happens in a drill, told as it happens and kept for the report.

use lease::clock::{BootClock, Clock};
use serde::{Deserialize, Serialize};
use std::sync::{Mutex, PoisonError};

/// The kind of an event: what it is drawn as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mark {
    /// Something to know.
    Note,
    /// A process or a server begins.
    Start,
    /// A process or a server ended by itself.
    End,
    /// A lease, or a lock, is held from now on.
    Holds,
    /// It is given back.
    Releases,
    /// Its holder knows that it is gone.
    Lost,
    /// Stopped where it is, SIGSTOP.
    Freeze,
    /// Goes on, SIGCONT.
    Wake,
    /// Killed, SIGKILL.
    Kill,
    /// A network, a clock or a server is worse from now on.
    Fault,
    /// And well again.
    Heal,
    /// A write that went in.
    Write,
    /// A write that was refused.
    Refused,
    /// The damage that a protection is there to prevent.
    Damage,
}

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Microseconds since the drill began.
    pub at_us: u64,
    /// Who: an instance, a server, or the director of the drill.
    pub who: String,
    /// What kind of thing.
    pub mark: Mark,
    /// In words.
    pub text: String,
}

type Tell = Box<dyn Fn(&Event) + Send + Sync>;

/// All events of a drill, in the order in which they were told.
pub struct Timeline {
    begun_us: u64,
    events: Mutex<Vec<Event>>,
    tell: Tell,
}

impl Timeline {
    /// Begins now. Every event is also given to `tell` as it comes.
    pub fn begin(tell: impl Fn(&Event) + Send + Sync + 'static) -> Timeline {
        Timeline { begun_us: since_boot_us(), events: Mutex::default(), tell: Box::new(tell) }
    }

    /// Something happens now.
    pub fn tell(&self, who: &str, mark: Mark, text: impl Into<String>) {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        let event = Event { at_us: self.since_begin_us(since_boot_us()), who: who.to_owned(), mark, text: text.into() };
        (self.tell)(&event);
        events.push(event);
    }

    /// An instant of [`since_boot_us`] on the axis of this timeline; what was before it began is at its beginning.
    #[must_use]
    pub fn since_begin_us(&self, since_boot_us: u64) -> u64 {
        since_boot_us.saturating_sub(self.begun_us)
    }

    /// Everything so far.
    #[must_use]
    pub fn events(&self) -> Vec<Event> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Microseconds since this machine booted: the axis on which the processes of one machine can be compared, whatever their wall
/// clocks say.
#[must_use]
pub fn since_boot_us() -> u64 {
    u64::try_from(BootClock.now().as_nanos() / 1_000).unwrap_or(0)
}
