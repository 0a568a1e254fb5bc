//! Identities. Needs nothing else.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Row id of a settlement batch in one ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BatchId(pub i64);

/// Row id of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(pub i64);

/// One process start. Never a host name or a configured worker name: two processes that share a name would share locks, and a
/// restarted process would take its predecessor's claims for its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct HolderId(pub Uuid);

impl HolderId {
    /// The holder of a fence nobody has registered yet.
    pub const NOBODY: HolderId = HolderId(Uuid::nil());
}

/// One ledger (one timeline of one database). Prefixes lease names, so that two ledgers on one lock service do not exclude each
/// other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LedgerId(pub Uuid);

macro_rules! display_inner {
    ($($name:ident),*) => {$(
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}
display_inner!(BatchId, RunId, HolderId, LedgerId);
