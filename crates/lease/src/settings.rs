//! How long leases last, and whether what is configured fits together. Needs `error.rs`.

use crate::LeaseError;
use std::time::Duration;

/// How long leases last and how hard the keeper tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeeperSettings {
    /// How long the service keeps a lease without renewal. Also the longest a dead holder delays its successor.
    pub ttl: Duration,
    /// How much earlier than the service's expiry we stop believing: the drift of two clocks over one TTL, and the way from a check
    /// to the write that follows.
    pub margin: Duration,
    /// The longest a single request may take, connecting included.
    pub attempt: Duration,
}

impl KeeperSettings {
    /// Below this, scheduling noise loses leases.
    pub const SHORTEST_TTL: Duration = Duration::from_millis(500);
    /// Above this, nobody waits for a takeover.
    pub const LONGEST_TTL: Duration = Duration::from_secs(3600);

    /// A margin of a tenth of the TTL, and attempts of a fifth of it or 5 s: who has not answered by then has not heard us.
    #[must_use]
    pub fn new(ttl: Duration) -> KeeperSettings {
        KeeperSettings { ttl, margin: ttl / 10, attempt: (ttl / 5).min(Duration::from_secs(5)) }
    }

    /// # Errors
    /// [`LeaseError::Invalid`] with a sentence about the relation that does not hold.
    pub fn validate(&self) -> Result<(), LeaseError> {
        let KeeperSettings { ttl, margin, attempt } = *self;
        let refuse = |what: String| Err(LeaseError::Invalid { what });
        if ttl < Self::SHORTEST_TTL || ttl > Self::LONGEST_TTL {
            let (low, high) = (Self::SHORTEST_TTL, Self::LONGEST_TTL);
            return refuse(format!("a lease TTL of {ttl:?} cannot be kept; choose between {low:?} and {high:?}"));
        }
        if margin < Duration::from_millis(10) || attempt < Duration::from_millis(10) {
            return refuse(format!("a margin of {margin:?} or an attempt of {attempt:?} is too short; give each at least 10ms"));
        }
        // the latest first renewal, and one repeat after an attempt without an answer
        let pause = self.longest_pause(0);
        if self.latest_renewal() + attempt + pause + attempt + margin > ttl {
            return refuse(format!(
                "two renewal attempts of {attempt:?}, {pause:?} between them and a margin of {margin:?} do not fit between a third of \
                 the TTL {ttl:?} and its end; lengthen the TTL or shorten the others"
            ));
        }
        Ok(())
    }

    /// A third of the TTL, give or take a tenth of that, so that the instances of a fleet do not renew in step.
    pub(crate) fn next_renewal(&self) -> Duration {
        let third = self.ttl / 3;
        rand::random_range(third - third / 10..=third + third / 10)
    }

    fn latest_renewal(&self) -> Duration {
        self.ttl / 3 + self.ttl / 30
    }

    /// How long after an unanswered attempt the next one starts.
    pub(crate) fn pause(&self, failures: u32) -> Duration {
        let longest = self.longest_pause(failures);
        rand::random_range(longest / 2..=longest)
    }

    fn longest_pause(&self, failures: u32) -> Duration {
        (self.ttl / 50 * 2u32.saturating_pow(failures)).min(self.ttl / 10)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_hold_at_both_ends() {
        for ttl in [KeeperSettings::SHORTEST_TTL, Duration::from_secs(30), KeeperSettings::LONGEST_TTL] {
            assert!(KeeperSettings::new(ttl).validate().is_ok(), "{ttl:?}");
        }
    }

    #[test]
    fn relations_are_checked() {
        let fine = KeeperSettings::new(Duration::from_secs(10));
        for broken in [
            KeeperSettings { ttl: Duration::from_millis(499), ..fine },
            KeeperSettings { ttl: Duration::from_secs(3601), ..fine },
            KeeperSettings { margin: Duration::ZERO, ..fine },
            KeeperSettings { attempt: Duration::ZERO, ..fine },
            KeeperSettings { margin: Duration::from_secs(3), ..fine },
            // fits only without the pause
            KeeperSettings { margin: Duration::from_millis(2_200), ..fine },
            KeeperSettings { attempt: Duration::from_secs(4), ..fine },
        ] {
            assert!(matches!(broken.validate(), Err(LeaseError::Invalid { .. })), "{broken:?}");
        }
    }

    #[test]
    fn two_attempts_end_before_the_deadline() {
        let fine = KeeperSettings::new(Duration::from_secs(10));
        let widest = (1..).map(|ms| KeeperSettings { margin: fine.margin + Duration::from_millis(ms), ..fine });
        let widest = widest.take_while(|settings| settings.validate().is_ok()).last().expect("there is room");
        for settings in [fine, widest] {
            for _ in 0..1000 {
                let first = settings.next_renewal();
                assert!(first <= settings.latest_renewal());
                let last = first + settings.attempt + settings.pause(0) + settings.attempt;
                assert!(last <= settings.ttl - settings.margin, "{settings:?}");
            }
        }
    }
}
