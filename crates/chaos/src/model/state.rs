//! Everything there is: the ledger, the lock service, the processes.
//!
//! Some of it nobody in the protocol can see (`nonce` as a number, [`Order`], [`Newest`], who posted an entry): it is there to judge.

use super::invariant::Seen;
use super::protection::{Protection, Protocol};
use super::scope::Scope;
use domain::batch::BatchState;
use domain::fence::{Fence, Stamp};
use domain::ids::HolderId;
use uuid::Uuid;

/// The stamp of a unit that nobody has registered.
pub(super) const NOBODY: Stamp = Stamp { fence: Fence { generation: 0, token: 0 }, holder: HolderId::NOBODY };

/// All of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    pub(super) ledger: Ledger,
    pub(super) lock: Lock,
    pub(super) workers: Vec<Worker>,
    pub(super) importers: Vec<Importer>,
    pub(super) left: Left,
    pub(super) damage: Seen,
}

/// What may still go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Left {
    pub(super) expiries: u8,
    pub(super) lost: u8,
    pub(super) crashes: u8,
    pub(super) fails: u8,
    /// Releases of another's lease, where nothing else keeps them apart: each can call for the next, without an end.
    pub(super) strays: u8,
    pub(super) resets: u8,
    pub(super) adoptions: u8,
}

/// When a lease was granted: the truth about who is newer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct Order {
    pub(super) generation: i64,
    pub(super) epoch: u8,
    pub(super) serial: u8,
}

/// Whose registration was the last; an adoption is nobody's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct Newest {
    pub(super) nonce: u8,
    pub(super) order: Order,
}

/// One ledger with one unit.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Ledger {
    /// The newest.
    pub(super) generation: i64,
    /// Whether the newest generation's source is the lock service in use; else nobody may start.
    pub(super) adopted: bool,
    pub(super) counter: i64,
    pub(super) unit: Stamp,
    pub(super) newest: Newest,
    pub(super) batches: Vec<Batch>,
    /// How often the file is in it.
    pub(super) imported: u8,
    /// Which importer's turn it is.
    pub(super) turn: Option<u8>,
}

/// One batch.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Batch {
    pub(super) state: BatchState,
    pub(super) stamp: Stamp,
    pub(super) entries: u8,
    /// The nonce under which the first entry was posted.
    pub(super) posted_by: u8,
}

/// What the lock service remembers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct Memory {
    /// The nonce of the grant that is alive.
    pub(super) held: Option<u8>,
    /// The token of the last grant.
    pub(super) revision: i64,
}

/// The lock service.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Lock {
    pub(super) memory: Memory,
    /// After the first grant: what a restore brings back.
    pub(super) saved: Option<Memory>,
    /// How often it was reset.
    pub(super) epoch: u8,
    /// Nonces so far; they are never given twice.
    pub(super) nonces: u8,
    /// Grants so far, those that a restore made good again included.
    pub(super) serials: u8,
}

/// Where a worker is; what it does next follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) enum At {
    /// Holds nothing.
    #[default]
    Idle,
    /// Has read the generation.
    Ready,
    /// `Step::LeaseAcquired`.
    Acquired,
    /// `Step::OwnershipProven`.
    Proven,
    /// Its fence was refused though the source is an external one.
    Refused,
    /// `Step::FenceRegistered`, or after a settlement.
    Registered,
    /// `Step::BatchesClaimed`, and `BeforeSettleTx`: the check of the local deadline between them is no protection.
    Claimed,
    /// Where effect and state are two transactions: between them.
    Half,
    /// Its settlement failed; the batches are still its own.
    HandingBack {
        /// An entry's key refused it, and will each time.
        in_vain: bool,
    },
    /// Has no answer to a settlement, or one that leaves batches open.
    ReadBack {
        /// There was no answer.
        lost: bool,
    },
    /// `Step::BeforeRelease`.
    Leaving,
}

/// One process that settles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct Worker {
    /// Which process start it is.
    pub(super) start: u8,
    /// Whether it has ever done anything.
    pub(super) begun: bool,
    pub(super) at: At,
    pub(super) generation: i64,
    pub(super) nonce: u8,
    pub(super) order: Order,
    /// 0: none yet.
    pub(super) token: i64,
    /// Batches in hand, a bit each.
    pub(super) claimed: u8,
}

/// One process that imports the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Importer {
    /// Has not begun, or begins again.
    Idle,
    /// Has looked whether the file is there; its transaction is open.
    Looked {
        /// It is.
        there: bool,
    },
    /// Was told that the file is in.
    Done,
}

impl State {
    pub(super) fn first(scope: Scope) -> State {
        let batch = Batch { state: BatchState::Pending, stamp: NOBODY, entries: 0, posted_by: 0 };
        let Scope { expiries, lost, crashes, fails, resets, adoptions, .. } = scope;
        let ledger = Ledger {
            generation: 1,
            adopted: true,
            counter: 0,
            unit: NOBODY,
            newest: Newest::default(),
            batches: vec![batch; scope.batches.into()],
            imported: 0,
            turn: None,
        };
        State {
            ledger,
            lock: Lock::default(),
            workers: vec![Worker::default(); scope.workers.into()],
            importers: vec![Importer::Idle; scope.importers.into()],
            left: Left { expiries, lost, crashes, fails, strays: 1, resets, adoptions },
            damage: Seen::default(),
        }
    }

    /// Whether everything that was to be done is done, once.
    pub(super) fn is_done(&self) -> bool {
        let settled = |batch: &Batch| batch.state == BatchState::Settled && batch.entries == 1;
        self.ledger.batches.iter().all(settled) && (self.importers.is_empty() || self.ledger.imported == 1)
    }
}

impl Worker {
    /// What the ledger is shown.
    pub(super) fn stamp(&self, me: u8, protocol: Protocol) -> Stamp {
        let holder = match protocol.has(Protection::Holder) {
            true => HolderId(Uuid::from_u128(u128::from(me) * 16 + u128::from(self.start) + 1)),
            false => HolderId::NOBODY,
        };
        Stamp { fence: fence(self.generation, self.token, protocol), holder }
    }

    /// The grant is over.
    pub(super) fn drop_grant(&mut self) {
        *self = Worker { start: self.start, begun: self.begun, ..Worker::default() };
    }
}

/// A fence, as far as the protocol knows generations.
pub(super) fn fence(generation: i64, token: i64, protocol: Protocol) -> Fence {
    Fence { generation: if protocol.has(Protection::Generation) { generation } else { 1 }, token }
}
