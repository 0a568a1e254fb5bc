//! No superseded holder writes.

use super::calls::Call;
use super::final_books::FinalBooks;
use super::{Finding, finding};
use crate::history::{Op, Phase};
use domain::fence::{Fence, Stamp};
use std::collections::BTreeMap;

/// In the order of commits, as far as it is certain.
pub const NEVER_DECREASE: &str = "fences of a unit never decrease";
/// What the fence is there for.
pub const SUPERSEDED: &str = "no superseded holder commits";
/// Two may believe that they hold a unit, if the one that lost writes nothing from then on.
pub const LEFT_NOTHING: &str = "where holders overlap, the superseded one leaves nothing";

/// Among the writes that went in: none is under a lower fence than one that was answered before it was invoked.
#[must_use]
pub fn never_decrease(calls: &[Call]) -> Finding {
    let writes = |call: &&Call| call.phase == Phase::Ok && is_write(call.op);
    let all: Vec<&Call> = calls.iter().filter(writes).collect();
    let looked_at = format!("{} writes", all.len());
    let against = overtaken(&all, &all).into_iter().map(|(newest, call)| {
        format!("{:?} in unit {} under fence {} after one under {newest}", call.op, unit(call), call.fence())
    });
    finding(NEVER_DECREASE, looked_at, against.collect())
}

/// No commit was invoked and answered wholly after a newer holder's registration had been answered.
#[must_use]
pub fn superseded(calls: &[Call]) -> Finding {
    let registered: Vec<&Call> = calls.iter().filter(|call| call.is_ok(Op::Register)).collect();
    let settled: Vec<&Call> = calls.iter().filter(|call| call.is_ok(Op::Settle)).collect();
    let looked_at = format!("{} commits, {} registrations", settled.len(), registered.len());
    let against = overtaken(&registered, &settled).into_iter().map(|(newest, call)| {
        format!(
            "batches {:?} of unit {} under fence {}, though {newest} was registered",
            call.answered.batches,
            unit(call),
            call.fence()
        )
    });
    finding(SUPERSEDED, looked_at, against.collect())
}

/// A call that was not answered may have gone in: the books must not have it where it was invoked after a newer holder registered.
#[must_use]
pub fn losers_left_nothing(calls: &[Call], books: &FinalBooks) -> Finding {
    let registered: Vec<&Call> = calls.iter().filter(|call| call.is_ok(Op::Register)).collect();
    let settles: Vec<&Call> = calls.iter().filter(|call| call.op == Op::Settle).collect();
    let late = overtaken(&registered, &settles);
    let looked_at = format!("{} late writes", late.len());
    let is_in = |call: &Call| {
        let mine = Stamp { fence: call.fence(), holder: call.holder };
        call.asked.batches.iter().copied().find(|batch| books.settled_by(*batch) == Some(mine))
    };
    let against = late.into_iter().filter_map(|(newest, call)| {
        let batch = is_in(call)?;
        Some(format!("batch {batch} is settled under fence {}, asked for after {newest} had registered", call.fence()))
    });
    finding(LEFT_NOTHING, looked_at, against.collect())
}

/// How many writes were asked for after a newer holder of the unit had registered.
pub(super) fn late(calls: &[Call]) -> usize {
    let registered: Vec<&Call> = calls.iter().filter(|call| call.is_ok(Op::Register)).collect();
    let writes: Vec<&Call> = calls.iter().filter(|call| is_write(call.op)).collect();
    overtaken(&registered, &writes).len()
}

const fn is_write(op: Op) -> bool {
    matches!(op, Op::Register | Op::Claim | Op::Settle | Op::HandBack)
}

fn unit(call: &Call) -> i32 {
    call.asked.unit.unwrap_or_default()
}

/// Those of `later` that were invoked after one of `earlier` in the same unit was answered that has a higher fence; with the highest.
/// Both in the order of invocation.
fn overtaken<'a>(earlier: &[&Call], later: &[&'a Call]) -> Vec<(Fence, &'a Call)> {
    let mut answered: Vec<(u64, i32, Fence)> =
        earlier.iter().filter_map(|call| Some((call.answered_us?, call.asked.unit?, call.fence()))).collect();
    answered.sort_unstable_by_key(|(at_us, ..)| *at_us);
    let mut answered = answered.into_iter().peekable();
    let mut newest: BTreeMap<i32, Fence> = BTreeMap::new();
    let mut found = Vec::new();
    for call in later {
        while let Some((_, unit, fence)) = answered.next_if(|(at_us, ..)| *at_us < call.invoked_us) {
            newest.entry(unit).and_modify(|newest| *newest = fence.max(*newest)).or_insert(fence);
        }
        if let Some(newest) = call.asked.unit.and_then(|unit| newest.get(&unit)).filter(|newest| **newest > call.fence()) {
            found.push((*newest, *call));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::calls::calls;
    use crate::verdict::told::{A, B, Told};
    use domain::batch::BatchState;

    #[test]
    fn a_commit_under_a_lower_fence_than_the_one_before_is_found() {
        let mut told = Told::default();
        told.settles(A, 5, &[1]).settles(B, 6, &[2]);
        assert!(never_decrease(&calls(&told.lines)).ok);
        told.settles(A, 5, &[3]);
        assert!(!never_decrease(&calls(&told.lines)).ok);
    }

    #[test]
    fn a_commit_after_a_newer_holder_registered_is_found() {
        let mut told = Told::default();
        told.registers(A, 1, 5).settles(A, 5, &[1]).registers(B, 1, 6);
        assert!(superseded(&calls(&told.lines)).ok);
        told.settles(A, 5, &[2]);
        let found = superseded(&calls(&told.lines));
        assert_eq!((found.ok, found.seen.as_str()), (false, "batches [2] of unit 1 under fence 1.5, though 1.6 was registered"));
    }

    #[test]
    fn a_refused_commit_is_no_commit() {
        let mut told = Told::default();
        told.registers(B, 1, 6).refused(A, 5, &[2]);
        assert!(superseded(&calls(&told.lines)).ok);
    }

    #[test]
    fn one_that_was_under_way_while_the_newer_registered_may_have_been_first() {
        let mut told = Told::default();
        let call = told.begins(A, 5, &[1]);
        told.registers(B, 1, 6).ends(call, A, 5, &[1]);
        assert!(superseded(&calls(&told.lines)).ok);
    }

    #[test]
    fn another_unit_is_another_matter() {
        let mut told = Told::default();
        told.registers(B, 2, 6).settles(A, 5, &[1]);
        assert!(superseded(&calls(&told.lines)).ok);
    }

    #[test]
    fn a_late_write_that_was_not_answered_and_is_in_the_books_is_found() {
        let mut told = Told::default();
        told.registers(B, 1, 6).asks(A, 5, &[1]);
        let calls = calls(&told.lines);
        assert!(superseded(&calls).ok, "nobody was told that it went in");
        assert!(losers_left_nothing(&calls, &told.books(&[(1, BatchState::Settled, B, 6)])).ok);
        assert!(!losers_left_nothing(&calls, &told.books(&[(1, BatchState::Settled, A, 5)])).ok);
    }
}
