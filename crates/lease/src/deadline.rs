//! The local deadline of one grant: one atomic word, written by the keeper and read by the holder. Needs `clock.rs`.
//!
//! A word that is not negative is the deadline in nanoseconds since boot; a negative one says that the lease is lost, and why. With
//! both in one word no reader can see a deadline that was moved after the loss: loss is final.

use crate::BootInstant;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// How a lease was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LostWhy {
    /// The local deadline passed without a successful renewal: the service did not answer, or this process stood still.
    Deadline,
    /// The service says that the grant is not there: expired or taken over.
    TakenOver,
    /// It was released, or its keeper shut down.
    Released,
}

impl LostWhy {
    const ALL: [LostWhy; 3] = [LostWhy::Deadline, LostWhy::TakenOver, LostWhy::Released];

    fn word(self) -> i64 {
        match self {
            LostWhy::Deadline => -1,
            LostWhy::TakenOver => -2,
            LostWhy::Released => -3,
        }
    }
}

/// See the file head.
#[derive(Debug)]
pub(crate) struct Deadline(AtomicI64);

impl Deadline {
    pub(crate) fn at(deadline: BootInstant) -> Deadline {
        Deadline(AtomicI64::new(deadline.as_nanos()))
    }

    /// What remains at `now`. A deadline that has passed is made a loss here, by whoever looks first.
    pub(crate) fn remaining(&self, now: BootInstant) -> Result<Duration, LostWhy> {
        loop {
            let word = self.0.load(Ordering::Acquire);
            if let Some(why) = LostWhy::ALL.into_iter().find(|why| why.word() == word) {
                return Err(why);
            }
            let left = now.until(BootInstant::from_nanos(word));
            if !left.is_zero() {
                return Ok(left);
            }
            // fails when the keeper moved the deadline between our two looks: look again
            let _ = self.0.compare_exchange(word, LostWhy::Deadline.word(), Ordering::AcqRel, Ordering::Acquire);
        }
    }

    /// Moves the deadline after a renewal. Refused once lost, and when the old deadline passed before the answer came: the holder
    /// may already have been told.
    pub(crate) fn extend(&self, now: BootInstant, to: BootInstant) -> Result<(), LostWhy> {
        loop {
            self.remaining(now)?;
            let word = self.0.load(Ordering::Acquire);
            let moved = word.max(to.as_nanos());
            if word >= 0 && self.0.compare_exchange(word, moved, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                return Ok(());
            }
        }
    }

    /// Ends the lease. The first reason stays.
    pub(crate) fn lose(&self, why: LostWhy) {
        let _ = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, |word| (word >= 0).then_some(why.word()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ns: i64) -> BootInstant {
        BootInstant::from_nanos(ns)
    }

    #[test]
    fn lost_at_the_deadline_and_for_ever() {
        let deadline = Deadline::at(at(100));
        assert_eq!(deadline.remaining(at(99)), Ok(Duration::from_nanos(1)));
        assert_eq!(deadline.remaining(at(100)), Err(LostWhy::Deadline));
        assert_eq!(deadline.extend(at(50), at(500)), Err(LostWhy::Deadline));
        assert_eq!(deadline.remaining(at(0)), Err(LostWhy::Deadline));
    }

    #[test]
    fn an_answer_after_the_old_deadline_extends_nothing() {
        let deadline = Deadline::at(at(100));
        assert_eq!(deadline.extend(at(100), at(500)), Err(LostWhy::Deadline));
        assert_eq!(deadline.remaining(at(0)), Err(LostWhy::Deadline));
    }

    #[test]
    fn never_moves_back() {
        let deadline = Deadline::at(at(100));
        assert_eq!(deadline.extend(at(10), at(60)), Ok(()));
        assert_eq!(deadline.remaining(at(99)), Ok(Duration::from_nanos(1)));
    }

    #[test]
    fn the_first_reason_stays() {
        let deadline = Deadline::at(at(100));
        deadline.lose(LostWhy::TakenOver);
        deadline.lose(LostWhy::Released);
        assert_eq!(deadline.remaining(at(1000)), Err(LostWhy::TakenOver));
    }
}
