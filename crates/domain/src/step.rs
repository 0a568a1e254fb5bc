//! The named instants of a settlement, at which a process may be paused or killed. Needs `ids.rs`.
//!
//! Spans, drills and the documentation use these names. In production the probe is [`NoProbe`].

use crate::ids::BatchId;
use serde::{Deserialize, Serialize};

/// An instant of the settlement protocol, in the order a worker meets them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Step {
    /// The run row exists.
    RunPlanned,
    /// The unit's lease was granted; no token yet.
    LeaseAcquired,
    /// A token was minted and ownership proven after it; not yet registered.
    OwnershipProven,
    /// The ledger knows our fence.
    FenceRegistered,
    /// Batches are claimed and their attempts charged.
    BatchesClaimed,
    /// The local deadline was checked; the settle transaction, or the next one of a job of one's own, has not begun.
    BeforeSettleTx,
    /// Effects are written, the commit is not.
    InsideSettleTx,
    /// The commit is acknowledged.
    Settled,
    /// The unit has nothing due; its lease is about to be released.
    BeforeRelease,
}

impl Step {
    /// Every step, in order.
    pub const ALL: [Step; 9] = [
        Step::RunPlanned,
        Step::LeaseAcquired,
        Step::OwnershipProven,
        Step::FenceRegistered,
        Step::BatchesClaimed,
        Step::BeforeSettleTx,
        Step::InsideSettleTx,
        Step::Settled,
        Step::BeforeRelease,
    ];
}

impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self:?}")
    }
}

/// A word that is no [`Step`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a step (one of RunPlanned, LeaseAcquired, OwnershipProven, FenceRegistered, BatchesClaimed, BeforeSettleTx, InsideSettleTx, Settled, BeforeRelease)"
)]
pub struct UnknownStep(pub String);

impl std::str::FromStr for Step {
    type Err = UnknownStep;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|s| s.to_string() == word).ok_or_else(|| UnknownStep(word.to_owned()))
    }
}

/// Told of every step. Synchronous on purpose: a probe that freezes or kills its process needs no runtime.
pub trait Probe: Send + Sync {
    /// The calling worker is at `step` now.
    fn at(&self, step: Step);

    /// The same, with the batches in hand: for a probe that waits for a certain one.
    fn at_with(&self, step: Step, _batches: &[BatchId]) {
        self.at(step);
    }
}

/// The probe of production: does nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoProbe;

impl Probe for NoProbe {
    fn at(&self, _step: Step) {}
}
