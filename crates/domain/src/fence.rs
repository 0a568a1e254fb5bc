//! The fence: what the ledger remembers of the newest holder of a unit, and how a claim of ownership is judged against it.
//! Needs `ids.rs`.
//!
//! A lease tells its holder that it *was* alone; only the resource can tell whether it *still* is. The ledger keeps one
//! [`Stamp`] per unit and every write repeats it. Idea: Martin Kleppmann, "How to do distributed locking" (2016), and the
//! sequencers of Burrows, "The Chubby lock service" (OSDI 2006).

use crate::ids::HolderId;
use serde::{Deserialize, Serialize};

/// A fencing token within the generation of its source. Ordered by generation first.
///
/// Tokens of one source only grow. When a source is replaced or restored from a backup its tokens may start low again; an
/// operator then raises the generation, and every older fence is lower than every newer one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Fence {
    /// Raised only by `fence adopt`.
    pub generation: i64,
    /// Grows with every grant of the source.
    pub token: i64,
}

/// A fence and the process that holds it. Two processes never share a token, but a faulty lock service can issue one twice:
/// the holder keeps them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Stamp {
    /// The fencing token with its generation.
    pub fence: Fence,
    /// The process start that was granted it.
    pub holder: HolderId,
}

/// How a stamp relates to the one the ledger stored for the unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It is the registered one.
    Current,
    /// A newer holder has registered (or the same token was given to another holder): it may never write again.
    Superseded,
    /// The stored fence is lower: it was never registered, or the ledger lost its tail.
    Unregistered,
}

/// Judges `mine` against what the ledger has `stored`.
#[must_use]
pub fn standing(mine: Stamp, stored: Stamp) -> Standing {
    match mine.fence.cmp(&stored.fence) {
        std::cmp::Ordering::Less => Standing::Superseded,
        std::cmp::Ordering::Greater => Standing::Unregistered,
        std::cmp::Ordering::Equal if mine.holder == stored.holder => Standing::Current,
        std::cmp::Ordering::Equal => Standing::Superseded,
    }
}

/// Whether the ledger may let `mine` replace `stored`: strictly newer, or a repeat by the same holder.
#[must_use]
pub fn may_register(mine: Stamp, stored: Stamp) -> bool {
    !matches!(standing(mine, stored), Standing::Superseded)
}

impl std::fmt::Display for Fence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.generation, self.token)
    }
}
