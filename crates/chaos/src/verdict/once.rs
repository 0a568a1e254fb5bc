//! Each batch is settled once, by whom the books say, and nobody is left who does not know.

use super::calls::Call;
use super::final_books::FinalBooks;
use super::{Finding, finding};
use crate::history::{Op, Phase};
use domain::batch::BatchState;
use domain::fence::{Fence, Stamp};
use domain::ids::HolderId;
use std::collections::{BTreeMap, HashSet};

/// Over all processes.
pub const SETTLED_ONCE: &str = "no batch is settled twice";
/// In both directions.
pub const AS_THE_BOOKS_SAY: &str = "who settled a batch is who the books say";
/// Those who were killed, cut off or not answered included.
pub const UNKNOWN_RESOLVED: &str = "every unknown is resolved by the books";

/// Every batch that a call was told it has settled, with the call.
fn told(calls: &[Call]) -> impl Iterator<Item = (i64, &Call)> {
    let settles = calls.iter().filter(|call| call.is_ok(Op::Settle));
    settles.flat_map(|call| call.answered.batches.iter().map(move |batch| (*batch, call)))
}

fn stamp(call: &Call) -> Stamp {
    Stamp { fence: call.fence(), holder: call.holder }
}

/// At most one call was told that it has settled a batch.
#[must_use]
pub fn settled_once(calls: &[Call]) -> Finding {
    let mut by: BTreeMap<i64, Vec<Fence>> = BTreeMap::new();
    for (batch, call) in told(calls) {
        by.entry(batch).or_default().push(call.fence());
    }
    let twice = by.iter().filter(|(_, fences)| fences.len() > 1);
    let against = twice.map(|(batch, fences)| {
        let fences: Vec<String> = fences.iter().map(Fence::to_string).collect();
        format!("batch {batch} under fences {}", fences.join(" and "))
    });
    finding(SETTLED_ONCE, format!("{} batches", by.len()), against.collect())
}

/// A batch that a call has settled is in the books under its stamp, and one that is in the books was settled by a call under that
/// stamp that was told so, or was told nothing.
#[must_use]
pub fn as_the_books_say(calls: &[Call], books: &FinalBooks) -> Finding {
    let mut against: Vec<String> = Vec::new();
    for (batch, call) in told(calls) {
        let said = books.settled_by(batch);
        if said != Some(stamp(call)) {
            let said = said.map_or("nobody".to_owned(), |stamp| format!("fence {}", stamp.fence));
            against.push(format!("batch {batch} was settled under fence {}, by the books by {said}", call.fence()));
        }
    }
    let mut settlers: HashSet<(i64, HolderId, Fence)> =
        told(calls).map(|(batch, call)| (batch, call.holder, call.fence())).collect();
    for call in calls.iter().filter(|call| call.op == Op::Settle && call.phase == Phase::Unknown) {
        settlers.extend(call.asked.batches.iter().map(|batch| (*batch, call.holder, call.fence())));
    }
    for batch in books.batches.keys() {
        if let Some(by) = books.settled_by(*batch).filter(|by| !settlers.contains(&(*batch, by.holder, by.fence))) {
            against.push(format!("batch {batch} is settled under fence {}, and no call did it", by.fence));
        }
    }
    finding(AS_THE_BOOKS_SAY, format!("{} batches", books.batches.len()), against)
}

/// What was claimed, or asked to be settled, has come to an end in the books.
#[must_use]
pub fn unknown_resolved(calls: &[Call], books: &FinalBooks) -> Finding {
    let asked: HashSet<i64> = calls
        .iter()
        .filter(|call| matches!(call.op, Op::Claim | Op::Settle))
        .flat_map(|call| call.asked.batches.iter().chain(&call.answered.batches).copied())
        .collect();
    let unknown = unanswered(calls);
    let mut open: Vec<i64> = asked.iter().copied().filter(|batch| !is_over(books, *batch)).collect();
    open.sort_unstable();
    let against = open.iter().map(|batch| match books.batches.get(batch) {
        Some((state, _)) => format!("batch {batch} is {state}"),
        None => format!("batch {batch} is not in the books"),
    });
    let looked_at = format!("{} batches asked for, {unknown} calls without an answer", asked.len());
    finding(UNKNOWN_RESOLVED, looked_at, against.collect())
}

pub(super) fn unanswered(calls: &[Call]) -> usize {
    calls.iter().filter(|call| call.op == Op::Settle && call.phase == Phase::Unknown).count()
}

fn is_over(books: &FinalBooks, batch: i64) -> bool {
    match books.batches.get(&batch).map(|(state, _)| *state) {
        None | Some(BatchState::Received | BatchState::Pending | BatchState::Settling) => false,
        Some(
            BatchState::Settled | BatchState::Reversed | BatchState::Broken | BatchState::Quarantined | BatchState::Cancelled,
        ) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::calls::calls;
    use crate::verdict::told::{A, B, Told};

    #[test]
    fn a_batch_that_two_have_settled_is_found() {
        let mut told = Told::default();
        told.settles(A, 5, &[1, 2]);
        assert!(settled_once(&calls(&told.lines)).ok);
        told.settles(B, 6, &[2]);
        let found = settled_once(&calls(&told.lines));
        assert_eq!((found.ok, found.seen.as_str()), (false, "batch 2 under fences 1.5 and 1.6"));
    }

    #[test]
    fn a_batch_that_the_books_do_not_have_as_told_is_found() {
        let mut told = Told::default();
        told.settles(A, 5, &[1]);
        let calls = calls(&told.lines);
        assert!(as_the_books_say(&calls, &told.books(&[(1, BatchState::Settled, A, 5)])).ok);
        assert!(!as_the_books_say(&calls, &told.books(&[(1, BatchState::Settled, B, 6)])).ok, "another's");
        assert!(!as_the_books_say(&calls, &told.books(&[(1, BatchState::Pending, A, 5)])).ok, "lost");
    }

    #[test]
    fn a_settlement_that_nobody_asked_for_is_found() {
        let mut told = Told::default();
        let books = told.books(&[(1, BatchState::Settled, A, 5)]);
        assert!(!as_the_books_say(&calls(&told.lines), &books).ok);
        told.asks(A, 5, &[1]);
        assert!(as_the_books_say(&calls(&told.lines), &books).ok, "its answer was lost");
    }

    #[test]
    fn a_batch_that_is_still_open_is_found() {
        let mut told = Told::default();
        told.asks(A, 5, &[1]);
        let calls = calls(&told.lines);
        assert!(unknown_resolved(&calls, &told.books(&[(1, BatchState::Settled, B, 6)])).ok);
        for open in [BatchState::Pending, BatchState::Settling] {
            assert!(!unknown_resolved(&calls, &told.books(&[(1, open, B, 6)])).ok, "{open}");
        }
        assert!(!unknown_resolved(&calls, &told.books(&[])).ok, "not even there");
    }
}
