//! What must never be so.

use serde::Serialize;

/// One damage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Damage {
    /// A batch's effect was posted twice.
    DoubleSettlement,
    /// Somebody committed an effect after a newer holder had registered, or a generation had been adopted.
    SupersededCommits,
    /// A file is in the ledger twice.
    DoubleImport,
    /// Somebody replaced a holder whose lease was granted after his own, by the same memory of the lock service, or whose generation is
    /// newer: the order of tokens is not the order of locks.
    StaleOutranks,
    /// A worker was told another outcome than its batch had.
    UntrueOutcome,
    /// Nothing can happen any more, and not everything is settled, or imported.
    Stuck,
}

impl Damage {
    /// All.
    pub const ALL: [Damage; 6] = [
        Damage::DoubleSettlement,
        Damage::SupersededCommits,
        Damage::DoubleImport,
        Damage::StaleOutranks,
        Damage::UntrueOutcome,
        Damage::Stuck,
    ];

    /// In words; the name of the property that it never happens.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Damage::DoubleSettlement => "double settlement",
            Damage::SupersededCommits => "a superseded holder commits",
            Damage::DoubleImport => "double import",
            Damage::StaleOutranks => "the stale holder outranks the live one",
            Damage::UntrueOutcome => "an outcome is untrue",
            Damage::Stuck => "work is left undone for good",
        }
    }
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// The damage that was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct Seen(u8);

impl Seen {
    /// It happened.
    pub(super) fn set(&mut self, damage: Damage) {
        self.0 |= 1 << damage as u8;
    }

    /// Whether it happened.
    #[must_use]
    pub(super) const fn has(self, damage: Damage) -> bool {
        self.0 & (1 << damage as u8) != 0
    }

    /// Whether anything did.
    #[must_use]
    pub(super) const fn any(self) -> bool {
        self.0 != 0
    }
}
