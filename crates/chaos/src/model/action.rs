//! What can happen next, and what came of it.

use domain::fence::{Fence, Stamp};
use domain::outcome::SettleOutcome;

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reply {
    /// It is answered.
    Comes,
    /// It has its effect, and the answer is lost.
    IsLost,
    /// It is lost itself, and nobody knows.
    NeverAsked,
    /// It is answered by an error: nothing of it was done.
    Fails,
}

/// One step of somebody. A pause is that somebody takes none, for as long as the others like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// A worker reads the generation.
    ReadGeneration(u8),
    /// A worker asks for the lease while nobody has it.
    Acquire(u8, Reply),
    /// A worker draws a token from the ledger.
    Mint(u8, Reply),
    /// A worker asks the lock service whether it is still the owner.
    Prove(u8),
    /// A worker registers its fence.
    Register(u8, Reply),
    /// A worker whose external token was refused asks once more whether it is the owner, and stops the source if it is.
    Doubt(u8),
    /// A worker claims.
    Claim(u8, Reply),
    /// A worker settles what it claimed.
    Settle(u8, Reply),
    /// The second of two transactions, where they are two.
    Finish(u8),
    /// A worker whose settlement failed hands its batches back.
    HandBack(u8, Reply),
    /// A worker reads what became of its settlement.
    ReadBack(u8),
    /// A worker sees that its lease is gone.
    NoticeLoss(u8),
    /// A worker releases.
    Release(u8),
    /// A worker is killed, and started again.
    Crash(u8),
    /// The lease expires.
    Expire,
    /// The lock service forgets all.
    Forget,
    /// The lock service is restored to what it was after its first grant.
    Restore,
    /// An operator adopts the lock service as the source of a new generation.
    Adopt,
    /// An importer looks whether the file is there.
    Look(u8),
    /// An importer writes it, or not, and ends its transaction.
    Write(u8, Reply),
    /// An importer is killed, and started again.
    CrashImporter(u8),
}

/// What came of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// The generation.
    Generation(i64),
    /// The lease, with the lock service's own token if that is what counts.
    Granted(Option<i64>),
    /// A token.
    Token(i64),
    /// Still the owner.
    Owner,
    /// Not the owner any more.
    NotOwner,
    /// The ledger has this fence now.
    Registered(Fence),
    /// Mine was refused because of the stored one.
    Refused(Fence, Stamp),
    /// The generation was raised since.
    Raised(Fence, Stamp),
    /// The source was stopped.
    SourceStopped,
    /// These batches, a bit each, and whether one was another's.
    Claimed(u8, bool),
    /// Refused: superseded.
    ClaimFenced,
    /// Refused: unknown.
    ClaimLost,
    /// Settled by this call, a bit each.
    Settled(u8),
    /// The effect is there, the state is not.
    EffectPosted(u8),
    /// The row conditions were not met.
    NothingSettled,
    /// An entry with that key is there.
    KeyTaken,
    /// The database refused the settlement.
    Failed,
    /// Handed back, a bit each.
    HandedBack(u8),
    /// Of the last batch that was read back.
    Outcome(SettleOutcome),
    /// There or not.
    File(bool),
    /// The file was written.
    Imported,
    /// The unique key refused it.
    ImportRefused,
    /// The lease is free.
    LeaseFree,
    /// Another's lease was deleted.
    ReleasedAnothers,
    /// It was not held any more.
    NotHeld,
    /// Nothing to say.
    Plain,
}
