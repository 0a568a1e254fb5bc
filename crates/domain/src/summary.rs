//! What a reader of settlement files tells the ledger. Needs `item.rs`, `totals.rs`.
//!
//! Lines stream in chunks while a file is read (memory stays bounded however large it is); the summaries follow at its end,
//! because only then is it known whether the file is whole and every batch foots.

use crate::item::{FeeMode, Item};
use crate::totals::Total;
use chrono::NaiveDate;

/// A line and the batch it belongs to: an index into [`FileSummary::batches`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StagedItem {
    /// Index of its batch, in order of first appearance in the file.
    pub batch: u32,
    /// The line.
    pub item: Item,
}

/// One batch of a file, read to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchSummary {
    /// Identity of the batch within its source.
    pub external_batch_id: String,
    /// The day it is due.
    pub business_date: NaiveDate,
    /// Whose fee it is.
    pub fee_mode: FeeMode,
    /// SHA-256 over everything that settles: a batch that comes again must be the same.
    pub digest: [u8; 32],
    /// First line of the batch in the file.
    pub first_line: i64,
    /// One per currency, in order of the code. Empty for a batch without lines.
    pub totals: Vec<Total>,
    /// Why it does not foot, as sentences with both figures. Empty: it does.
    pub breaks: Vec<String>,
}

/// A whole file, read to its end without error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSummary {
    /// Name as the user gave it, for messages.
    pub name: String,
    /// SHA-256 of the decompressed bytes.
    pub sha256: [u8; 32],
    /// Namespace of batch and item identities; named by the profile.
    pub source: String,
    /// Name of the profile it was read by.
    pub profile: String,
    /// Decompressed bytes.
    pub bytes: u64,
    /// Lines of items.
    pub items: u64,
    /// Its batches, in order of first appearance.
    pub batches: Vec<BatchSummary>,
    /// What a person should know and what does not stop the batches.
    pub warnings: Vec<String>,
}
