//! What protects the books, one by one, so that each can be taken away.

use serde::{Serialize, Serializer};

/// One protection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protection {
    /// Claim and settle compare the stored fence of the unit with their own.
    Fence,
    /// The holder is part of what is compared: a token that was given twice is not the same claim.
    Holder,
    /// A batch is settled only by the very stamp that claimed it.
    ClaimStamp,
    /// Only a newer fence replaces the stored one.
    RegisterCheck,
    /// Ownership is proven before the fence is registered.
    Proof,
    /// The token is minted before that proof, not after it.
    MintBeforeProof,
    /// The token is minted under the lock, not before it is had.
    MintUnderLock,
    /// The generation is part of the fence.
    Generation,
    /// An adoption raises every unit's stored fence at once.
    RaiseUnits,
    /// The claim takes only what is pending or settling.
    ClaimState,
    /// The settlement takes only what is settling.
    SettleState,
    /// A batch is handed back only under the fence of its unit, and by the stamp that claimed it.
    ReleaseFence,
    /// Only what is settling is handed back.
    ReleaseState,
    /// Effect and state are written in one transaction; without, the effect is first.
    OneTransaction,
    /// An entry's key is unique.
    EntryKey,
    /// A file that is there already is found by its identity.
    LookUp,
    /// That identity is unique in the ledger.
    UniqueIdentity,
    /// Imports take turns: looking and writing are not interrupted by another's.
    Turn,
    /// A lease is released only by its own grant.
    Nonce,
}

impl Protection {
    /// All.
    pub const ALL: [Protection; 19] = [
        Protection::Fence,
        Protection::Holder,
        Protection::ClaimStamp,
        Protection::RegisterCheck,
        Protection::Proof,
        Protection::MintBeforeProof,
        Protection::MintUnderLock,
        Protection::Generation,
        Protection::RaiseUnits,
        Protection::ClaimState,
        Protection::SettleState,
        Protection::ReleaseFence,
        Protection::ReleaseState,
        Protection::OneTransaction,
        Protection::EntryKey,
        Protection::LookUp,
        Protection::UniqueIdentity,
        Protection::Turn,
        Protection::Nonce,
    ];

    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Protection::Fence => "fence",
            Protection::Holder => "holder in the stamp",
            Protection::ClaimStamp => "claimer's stamp on the batch",
            Protection::RegisterCheck => "register check",
            Protection::Proof => "proof of ownership",
            Protection::MintBeforeProof => "mint before the proof",
            Protection::MintUnderLock => "mint under the lock",
            Protection::Generation => "generation",
            Protection::RaiseUnits => "adoption raises all units",
            Protection::ClaimState => "state condition of the claim",
            Protection::SettleState => "state condition of the settlement",
            Protection::ReleaseFence => "fence of the hand-back",
            Protection::ReleaseState => "state condition of the hand-back",
            Protection::OneTransaction => "one transaction",
            Protection::EntryKey => "entry key",
            Protection::LookUp => "look-up of the identity",
            Protection::UniqueIdentity => "unique identity",
            Protection::Turn => "imports in turn",
            Protection::Nonce => "nonce of the release",
        }
    }
}

impl std::fmt::Display for Protection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

impl Serialize for Protection {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// The protocol, less what was taken away from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Protocol(u32);

impl Protocol {
    /// All of it.
    pub const FULL: Protocol = Protocol(u32::MAX);

    /// All but these.
    #[must_use]
    pub fn without(away: &[Protection]) -> Protocol {
        Protocol(away.iter().fold(u32::MAX, |bits, protection| bits & !(1 << *protection as u32)))
    }

    /// Whether it has this one.
    #[must_use]
    pub const fn has(self, protection: Protection) -> bool {
        self.0 & (1 << protection as u32) != 0
    }
}
