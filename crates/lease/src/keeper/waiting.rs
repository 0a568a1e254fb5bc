//! Waiting for a lease: in line where the service keeps one, else by asking again after pauses that grow and are jittered.

use super::{Command, Commands, Keeper, Try};
use crate::clock::{BootClock, BootInstant, Clock};
use crate::handle::Lease;
use crate::{Ask, LeaseError, LeaseName};
use std::time::Duration;

/// The first pause of who asks again; the longest one is [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(25);
/// A release is noticed within it, and nobody asks more often on average than twice in it.
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

impl Keeper {
    /// Waits until the lease is free and ours, at most `limit` and the request that is under way then. `None`: it was not.
    ///
    /// Where the service keeps a line, a release wakes the first in it and nobody else; elsewhere every waiter asks again, after a
    /// random part of a pause that doubles up to half a second, so that those who began together do not go on together.
    /// Dropping the future at any point leaves nothing owned and no place in line.
    ///
    /// # Errors
    /// The service did not answer, or forgot our place in its line. At once: whoever wants to wait out an outage calls again.
    pub async fn acquire(&self, name: &LeaseName, limit: Duration) -> Result<Option<Lease>, LeaseError> {
        let until = BootClock.now() + limit;
        let mut place = Place { ask: self.fresh(name), commands: self.commands.clone(), taken: false };
        let (mut tries, mut woken, mut in_line) = (0, 0, false);
        loop {
            place.taken = true; // until an answer says otherwise
            match self.attempt(place.ask.clone(), true).await {
                Ok(Try::Granted(lease)) => {
                    place.taken = false;
                    return Ok(Some(lease));
                }
                Ok(Try::Held) => {
                    place.taken = in_line;
                    tokio::time::sleep(pause(tries).min(left(until))).await;
                    tries += 1;
                }
                // a place lasts for a TTL: we say often enough that we are still here
                Ok(Try::InLine(turn)) => {
                    in_line = true;
                    let longest = self.settings.next_renewal().min(left(until));
                    let was_woken = tokio::time::timeout(longest, turn).await.is_ok();
                    woken = if was_woken { woken + 1 } else { 0 };
                    // in vain the last time, as when those before us give up, or the service keeps no watch for us
                    if woken > 1 {
                        tokio::time::sleep(pause(woken - 2).min(left(until))).await;
                    }
                }
                Err(error) => {
                    place.taken = false; // the keeper gives back what an unanswered request may have left
                    return Err(error);
                }
            }
            if left(until).is_zero() {
                return Ok(None);
            }
        }
    }
}

/// A random part of the pause after so many tries ("full jitter").
fn pause(tries: u32) -> Duration {
    let longest = FIRST_PAUSE.saturating_mul(2u32.saturating_pow(tries)).min(LONGEST_PAUSE);
    rand::random_range(Duration::ZERO..=longest)
}

fn left(until: BootInstant) -> Duration {
    BootClock.now().until(until)
}

/// A place in line that is given up when it goes out of scope, however that comes.
struct Place {
    ask: Ask,
    commands: Commands,
    taken: bool,
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.taken {
            // a keeper that has ended keeps no place: it expires
            let _ = self.commands.send(Command::Dismiss { ask: self.ask.clone(), reply: None });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_limit_and_differ() {
        let mean = |tries| (0..1_000).map(|_| pause(tries)).sum::<Duration>() / 1_000;
        assert!(mean(0) < FIRST_PAUSE && mean(0) > FIRST_PAUSE / 4, "{:?}", mean(0));
        for tries in [5, 10, 1_000] {
            assert!((0..1_000).all(|_| pause(tries) <= LONGEST_PAUSE));
            assert!(mean(tries) > LONGEST_PAUSE / 4, "{:?}", mean(tries));
        }
    }
}
