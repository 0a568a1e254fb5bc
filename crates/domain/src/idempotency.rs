//! Idempotency keys: made of business facts, so that every repeat of an effect meets its first one. Needs `ids.rs`.

use crate::ids::BatchId;

/// Unique key of the journal entry that settles one currency of one revision of a batch.
#[must_use]
pub fn settle_entry_key(batch: BatchId, revision: i32, currency: &str) -> String {
    format!("settle:{batch}:{revision}:{currency}")
}

/// Unique key of the journal entry that takes one currency of one revision of a batch back: a settlement is reversed once.
#[must_use]
pub fn reverse_entry_key(batch: BatchId, revision: i32, currency: &str) -> String {
    format!("reverse:{batch}:{revision}:{currency}")
}

/// Identity of an item whose provider gives it no id: what it says, and how often the batch has said it before. Two legal
/// twins (same amount, same text) are two items; the same file read twice gives the same keys.
#[must_use]
pub fn occurrence_key(external_batch_id: &str, fingerprint_hex: &str, occurrence: u64) -> String {
    format!("{external_batch_id}|row:{fingerprint_hex}|{occurrence}")
}
