//! The ledger's transactions. Each is one step: the database serialises them by the lock on the unit's fence row, which claim and
//! settle share and register takes alone. What they decide is decided by the product's own functions.

use super::invariant::Damage;
use super::protection::{Protection, Protocol};
use super::state::{Batch, Ledger, NOBODY, Newest, Worker, fence};
use domain::batch::{self, BatchEvent, BatchState};
use domain::fence::{Stamp, Standing, may_register, standing};
use domain::outcome::{Seen, SettleOutcome, classify};

/// What came of a settle transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Posted {
    /// The batches that it settled, a bit each.
    pub(super) settled: u8,
    /// The unique key refused an entry: nothing of the transaction is there.
    pub(super) key_taken: bool,
}

impl Ledger {
    /// Whether a unit is worth a lease.
    pub(super) fn has_due(&self) -> bool {
        self.batches.iter().any(|batch| is_due(batch.state))
    }

    pub(super) fn mint(&mut self) -> i64 {
        self.counter += 1;
        self.counter
    }

    /// The stamp that is registered after it, and the damage it is if it is ours.
    pub(super) fn register(&mut self, mine: Stamp, worker: &Worker, protocol: Protocol) -> (Stamp, Option<Damage>) {
        if protocol.has(Protection::RegisterCheck) && !may_register(mine, self.unit) {
            return (self.unit, None);
        }
        let (order, was) = (worker.order, self.newest);
        let lower = order.epoch == was.order.epoch && order.serial < was.order.serial;
        let stale = order.generation < self.generation || (was.nonce != 0 && lower);
        self.unit = mine;
        self.newest = Newest { nonce: worker.nonce, order };
        (mine, stale.then_some(Damage::StaleOutranks))
    }

    /// `fence adopt`.
    pub(super) fn adopt(&mut self, ours: bool, protocol: Protocol) {
        self.generation += 1;
        self.adopted = ours;
        self.newest = Newest::default();
        if protocol.has(Protection::RaiseUnits) {
            self.unit = Stamp { fence: fence(self.generation, 0, protocol), ..NOBODY };
        }
    }

    /// Batches claimed, a bit each, or why none may be. What this stamp has in hand already is read back.
    pub(super) fn claim(&mut self, mine: Stamp, most: u8, protocol: Protocol) -> Result<u8, Standing> {
        if protocol.has(Protection::Fence) {
            match standing(mine, self.unit) {
                Standing::Current => {}
                refused => return Err(refused),
            }
        }
        let own = self.which(|batch| batch.state == BatchState::Settling && batch.stamp == mine);
        if own != 0 {
            return Ok(own);
        }
        let fresh = lowest(self.which(|batch| batch.state == BatchState::Pending), most);
        let again = lowest(self.which(|batch| may_claim(batch.state, protocol)), 1);
        let chosen = if fresh == 0 { again } else { fresh };
        for batch in of(&mut self.batches, chosen) {
            batch.state = batch::next(batch.state, BatchEvent::Claim).unwrap_or(BatchState::Settling);
            batch.stamp = mine;
        }
        Ok(chosen)
    }

    /// The rows that a settlement may take.
    fn settleable(&self, mine: Stamp, claimed: u8, protocol: Protocol) -> u8 {
        if protocol.has(Protection::Fence) && self.unit != mine {
            return 0;
        }
        let right = |batch: &Batch| !protocol.has(Protection::ClaimStamp) || batch.stamp == mine;
        let open = |batch: &Batch| !protocol.has(Protection::SettleState) || batch.state == BatchState::Settling;
        self.which(|batch| right(batch) && open(batch)) & claimed
    }

    /// State and effect, in one transaction.
    pub(super) fn settle(&mut self, mine: Stamp, nonce: u8, claimed: u8, protocol: Protocol) -> Posted {
        let settled = self.settleable(mine, claimed, protocol);
        if !self.post(settled, nonce, protocol) {
            return Posted { settled: 0, key_taken: true };
        }
        self.mark(settled, mine);
        Posted { settled, key_taken: false }
    }

    /// The effect alone.
    pub(super) fn post_only(&mut self, mine: Stamp, nonce: u8, claimed: u8, protocol: Protocol) -> Posted {
        let settled = self.settleable(mine, claimed, protocol);
        let posted = self.post(settled, nonce, protocol);
        Posted { settled: if posted { settled } else { 0 }, key_taken: !posted }
    }

    /// The state alone.
    pub(super) fn mark_only(&mut self, mine: Stamp, claimed: u8, protocol: Protocol) -> Posted {
        let settled = self.settleable(mine, claimed, protocol);
        self.mark(settled, mine);
        Posted { settled, key_taken: false }
    }

    /// `false`: the key refused one, and there is none.
    fn post(&mut self, batches: u8, nonce: u8, protocol: Protocol) -> bool {
        if protocol.has(Protection::EntryKey) && of(&mut self.batches, batches).any(|batch| batch.entries > 0) {
            return false;
        }
        for batch in of(&mut self.batches, batches) {
            batch.entries += 1;
            batch.posted_by = if batch.entries == 1 { nonce } else { batch.posted_by };
        }
        true
    }

    fn mark(&mut self, batches: u8, mine: Stamp) {
        for batch in of(&mut self.batches, batches) {
            batch.state = batch::next(batch.state, BatchEvent::Settle).unwrap_or(BatchState::Settled);
            batch.stamp = mine;
        }
    }

    /// After a settlement that failed: its batches come back one by one, and the one that fails each time is given up. The product
    /// counts attempts until it does that; here it is given up at once.
    pub(super) fn hand_back(&mut self, mine: Stamp, claimed: u8, in_vain: bool, protocol: Protocol) -> u8 {
        let fenced = protocol.has(Protection::ReleaseFence);
        if fenced && self.unit != mine {
            return 0;
        }
        let right = |batch: &Batch| !fenced || batch.stamp == mine;
        let open = |batch: &Batch| !protocol.has(Protection::ReleaseState) || batch.state == BatchState::Settling;
        let back = self.which(|batch| right(batch) && open(batch)) & claimed;
        for batch in of(&mut self.batches, back) {
            let event = if in_vain && batch.entries > 0 { BatchEvent::GiveUp } else { BatchEvent::Release };
            batch.state = batch::next(batch.state, event).unwrap_or(BatchState::Pending);
        }
        back
    }

    /// What a locking read says of a batch, and whether that is the truth.
    pub(super) fn read_back(&self, number: u8, mine: Stamp, nonce: u8) -> (SettleOutcome, bool) {
        let batch = &self.batches[usize::from(number)];
        let settled_by = (batch.state == BatchState::Settled).then_some(batch.stamp);
        let outcome = classify(mine, Seen { state: batch.state, settled_by, unit: self.unit });
        let is_mine = batch.entries > 0 && batch.posted_by == nonce;
        let is_true = match outcome {
            SettleOutcome::Settled => is_mine,
            SettleOutcome::AlreadySettled => !is_mine && batch.entries > 0,
            SettleOutcome::Fenced { settled } => !is_mine && settled == (batch.entries > 0),
            SettleOutcome::ClaimLost | SettleOutcome::NotClaimable { .. } => !is_mine,
        };
        (outcome, is_true)
    }

    /// What others have in hand, or had.
    pub(super) fn anothers(&self, mine: Stamp) -> u8 {
        self.which(|batch| batch.state == BatchState::Settling && batch.stamp != mine)
    }

    fn which(&self, is: impl Fn(&Batch) -> bool) -> u8 {
        self.batches.iter().enumerate().fold(0, |bits, (number, batch)| bits | u8::from(is(batch)) << number)
    }
}

fn is_due(state: BatchState) -> bool {
    matches!(state, BatchState::Pending | BatchState::Settling)
}

/// What is given up is not claimed even where nothing looks at the state: or it would never end.
fn may_claim(state: BatchState, protocol: Protocol) -> bool {
    match protocol.has(Protection::ClaimState) {
        true => batch::next(state, BatchEvent::Claim).is_ok(),
        false => state != BatchState::Quarantined,
    }
}

/// The lowest `most` bits that are set.
fn lowest(bits: u8, most: u8) -> u8 {
    let mut left = bits;
    for _ in 0..most {
        left &= left.wrapping_sub(1);
    }
    bits & !left
}

fn of(batches: &mut [Batch], bits: u8) -> impl Iterator<Item = &mut Batch> {
    batches.iter_mut().enumerate().filter(move |(number, _)| bits & (1 << number) != 0).map(|(_, batch)| batch)
}
