//! Histories made by hand.

use super::final_books::FinalBooks;
use crate::history::{Line, Of, Op, Phase};
use crate::recorded::FENCED;
use domain::batch::BatchState;
use domain::fence::{Fence, Stamp};
use domain::ids::HolderId;
use uuid::Uuid;

pub(super) const A: HolderId = HolderId(Uuid::from_u128(0xa));
pub(super) const B: HolderId = HolderId(Uuid::from_u128(0xb));

/// One line a millisecond, in unit 1 and generation 1 unless it says otherwise.
#[derive(Default)]
pub(super) struct Told {
    pub(super) lines: Vec<Line>,
    calls: u64,
}

impl Told {
    fn line(&mut self, holder: HolderId, call: u64, op: Op, phase: Phase, of: Of) {
        let at_us = (self.lines.len() as u64 + 1) * 1_000;
        self.lines.push(Line { at_us, holder, call, op, phase, of });
    }

    fn call(&mut self, holder: HolderId, op: Op, phase: Phase, of: Of) -> &mut Told {
        self.calls += 1;
        self.line(holder, self.calls, op, Phase::Invoke, Of { word: String::new(), ..of.clone() });
        self.line(holder, self.calls, op, phase, of);
        self
    }

    pub(super) fn registers(&mut self, holder: HolderId, unit: i32, token: i64) -> &mut Told {
        let fence = Some(Fence { generation: 1, token });
        self.call(holder, Op::Register, Phase::Ok, Of { unit: Some(unit), fence, ..Of::default() })
    }

    pub(super) fn settles(&mut self, holder: HolderId, token: i64, batches: &[i64]) -> &mut Told {
        self.call(holder, Op::Settle, Phase::Ok, of(token, batches))
    }

    pub(super) fn refused(&mut self, holder: HolderId, token: i64, batches: &[i64]) -> &mut Told {
        self.call(holder, Op::Settle, Phase::Fail, Of { word: FENCED.to_owned(), ..of(token, batches) })
    }

    /// And is never answered.
    pub(super) fn asks(&mut self, holder: HolderId, token: i64, batches: &[i64]) -> &mut Told {
        self.begins(holder, token, batches);
        self
    }

    pub(super) fn begins(&mut self, holder: HolderId, token: i64, batches: &[i64]) -> u64 {
        self.calls += 1;
        self.line(holder, self.calls, Op::Settle, Phase::Invoke, of(token, batches));
        self.calls
    }

    pub(super) fn ends(&mut self, call: u64, holder: HolderId, token: i64, batches: &[i64]) -> &mut Told {
        self.line(holder, call, Op::Settle, Phase::Ok, of(token, batches));
        self
    }

    #[expect(clippy::unused_self, reason = "reads as part of what is told")]
    pub(super) fn books(&self, batches: &[(i64, BatchState, HolderId, i64)]) -> FinalBooks {
        let row = |(batch, state, holder, token): &(i64, BatchState, HolderId, i64)| {
            (*batch, (*state, Stamp { fence: Fence { generation: 1, token: *token }, holder: *holder }))
        };
        FinalBooks { batches: batches.iter().map(row).collect(), broken: Vec::new() }
    }
}

fn of(token: i64, batches: &[i64]) -> Of {
    Of { unit: Some(1), fence: Some(Fence { generation: 1, token }), batches: batches.to_vec(), ..Of::default() }
}
