//! Identities made of several texts, and what a text of an identity may be. Needs `error.rs`.

use crate::error::Fault;
use chrono::NaiveDate;
use std::ops::RangeInclusive;

/// Business dates that can be meant. Anything else is a slip, and engines do not agree how it sorts.
pub(crate) const DATES: RangeInclusive<NaiveDate> =
    NaiveDate::from_ymd_opt(1970, 1, 1).expect("a date")..=NaiveDate::from_ymd_opt(9999, 12, 31).expect("a date");
/// Longest identity of a batch, bytes.
pub(crate) const MAX_BATCH_BYTES: usize = 256;
/// Longest identity of an item, bytes: fits the index of every engine.
pub(crate) const MAX_KEY_BYTES: usize = 512;
/// Longest merchant, bytes.
pub(crate) const MAX_MERCHANT_BYTES: usize = 128;

/// Joins parts with `|`, injectively: a `|` or `\` inside a part is preceded by `\`.
pub(crate) fn join<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    let mut joined = String::new();
    for (index, part) in parts.into_iter().enumerate() {
        if index > 0 {
            joined.push('|');
        }
        for c in part.chars() {
            if matches!(c, '|' | '\\') {
                joined.push('\\');
            }
            joined.push(c);
        }
    }
    joined
}

/// Refuses what cannot be an identity: too long for an index, or with characters that a person cannot see.
pub(crate) fn check(text: &str, what: &str, max_bytes: usize, line: u64) -> Result<(), Fault> {
    if text.len() > max_bytes {
        let found = format!("the {what} is {} bytes long (at most {max_bytes} are read)", text.len());
        return Err(Fault::at(line, found, "correct the file, or the columns in the profile"));
    }
    if text.chars().any(char::is_control) {
        return Err(Fault::at(line, format!("the {what} {text:?} contains a control character"), "correct the file"));
    }
    Ok(())
}
