//! Invocations and their ends, put together.

use crate::history::{Line, Of, Op, Phase};
use domain::fence::Fence;
use domain::ids::HolderId;
use std::collections::HashMap;

/// One call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Of which process start.
    pub holder: HolderId,
    /// What was asked for.
    pub op: Op,
    /// When it was sent.
    pub invoked_us: u64,
    /// When it was answered. Nothing: never, so it may have its effect at any later time.
    pub answered_us: Option<u64>,
    /// What came of it; unknown where it has no end.
    pub phase: Phase,
    /// What was asked.
    pub asked: Of,
    /// What was answered.
    pub answered: Of,
}

impl Call {
    /// Under which fence it was asked. The guards without a lease have none, which is lower than all.
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.asked.fence.unwrap_or(Fence { generation: 0, token: 0 })
    }

    /// Whether it was answered, and had its effect.
    #[must_use]
    pub fn is_ok(&self, op: Op) -> bool {
        self.op == op && self.phase == Phase::Ok
    }
}

/// The calls of a history, in the order in which they were invoked. Notes are none.
#[must_use]
pub fn calls(history: &[Line]) -> Vec<Call> {
    let mut calls: Vec<Call> = Vec::new();
    let mut open: HashMap<(HolderId, u64), usize> = HashMap::new();
    for line in history {
        if line.phase == Phase::Invoke {
            open.insert((line.holder, line.call), calls.len());
            calls.push(Call {
                holder: line.holder,
                op: line.op,
                invoked_us: line.at_us,
                answered_us: None,
                phase: Phase::Unknown,
                asked: line.of.clone(),
                answered: Of::default(),
            });
        } else if let Some(call) = open.remove(&(line.holder, line.call)).and_then(|at| calls.get_mut(at)) {
            call.phase = line.phase;
            // an error is an answer too, but no instant at which the effect is there
            call.answered_us = (line.phase != Phase::Unknown).then_some(line.at_us);
            call.answered = line.of.clone();
        }
    }
    calls.sort_by_key(|call| call.invoked_us);
    calls
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::told::{A, B, Told};

    #[test]
    fn a_call_without_an_end_is_unknown_and_numbers_are_of_their_process() {
        let mut told = Told::default();
        told.asks(A, 5, &[1]).settles(B, 6, &[2]);
        let calls = calls(&told.lines);
        let seen: Vec<_> = calls.iter().map(|call| (call.holder, call.phase, call.answered_us.is_some())).collect();
        assert_eq!(seen, [(A, Phase::Unknown, false), (B, Phase::Ok, true)]);
    }
}
