//! Late occurrences, in bounded memory: the newest as they are, those before them as a count. Needs `occurrence.rs`.
//!
//! A schedule that occurs every second has 1.2 million occurrences in two weeks.

use crate::occurrence::Occurrence;
use chrono::{DateTime, Utc};
use std::collections::VecDeque;

/// A late occurrence.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lateness {
    pub(crate) occurrence: Occurrence,
    /// An earlier plan has decided its key already.
    pub(crate) decided: bool,
}

/// Those that have no row of their own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Older {
    /// The newest.
    pub(crate) newest: Occurrence,
    /// The oldest.
    pub(crate) oldest: Occurrence,
    /// How many they are.
    pub(crate) slots: u32,
}

/// Late occurrences, pushed oldest first.
#[derive(Debug)]
pub(crate) struct Late {
    keep: usize,
    newest: VecDeque<Lateness>,
    older: Option<Older>,
}

impl Late {
    /// Keeps the newest `keep` as they are.
    pub(crate) fn keeping(keep: usize) -> Late {
        Late { keep, newest: VecDeque::new(), older: None }
    }

    pub(crate) fn push(&mut self, late: Lateness) {
        self.newest.push_back(late);
        self.count_beyond(self.keep);
    }

    /// How many of those kept are not before an instant.
    pub(crate) fn since(&self, instant: DateTime<Utc>) -> usize {
        self.newest.iter().filter(|late| late.occurrence.at >= instant).count()
    }

    /// Takes the newest ones out, in order.
    pub(crate) fn take_newest(&mut self, count: usize) -> Vec<Occurrence> {
        let taken = self.newest.split_off(self.newest.len().saturating_sub(count));
        taken.into_iter().map(|late| late.occurrence).collect()
    }

    /// The rest: what is only counted, and at most `rows` as they are.
    pub(crate) fn finish(mut self, rows: usize) -> (Option<Older>, Vec<Occurrence>) {
        self.count_beyond(rows);
        (self.older, self.newest.into_iter().map(|late| late.occurrence).collect())
    }

    fn count_beyond(&mut self, keep: usize) {
        while self.newest.len() > keep {
            let Some(Lateness { occurrence, decided }) = self.newest.pop_front() else { return };
            if decided {
                continue;
            }
            let older = self.older.get_or_insert(Older { newest: occurrence, oldest: occurrence, slots: 0 });
            older.slots = older.slots.saturating_add(1);
            older.newest = occurrence;
        }
    }
}
