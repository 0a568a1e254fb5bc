//! Units: partitions of batches, each worked by one holder at a time. Needs nothing else.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// A partition of batches under one lease, `0 .. partitions`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Unit(pub i32);

impl Unit {
    /// The unit of a batch. Stable across versions and platforms, because rows carry it: SHA-256 of the source and the
    /// batch id of the source (separated by a byte that neither contains), its first eight bytes, modulo `partitions`.
    ///
    /// # Panics
    /// If `partitions` is not positive; configuration is checked before.
    #[must_use]
    pub fn of_batch(source: &str, external_batch_id: &str, partitions: i32) -> Unit {
        assert!(partitions > 0, "partitions must be positive");
        let mut hash = Sha256::new();
        hash.update(source.as_bytes());
        hash.update([0]);
        hash.update(external_batch_id.as_bytes());
        let mut head = [0; 8];
        head.copy_from_slice(&hash.finalize()[..8]);
        let unit = u64::from_be_bytes(head) % u64::from(partitions.unsigned_abs());
        Unit(i32::try_from(unit).expect("less than an i32"))
    }
}

impl std::fmt::Display for Unit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}
