//! Lines that cannot be handed over yet, because only a later line says whose they are. Needs `domain::item`.
//!
//! Two things may come later: the name of a batch that its rows do not all say, which is part of the identity of lines without
//! an id, and the merchant that blank ones mean. Either is known within the first lines of a real file; the limit is there for
//! the others.

use super::Identity;
use crate::error::Fault;
use domain::item::Item;

/// All lines that wait, together: some tens of thousands.
pub(super) const MAX_WAITING_BYTES: usize = 16 << 20;

/// A line that waits.
pub(super) struct Waiting {
    pub(super) item: Item,
    /// Its identity, if it has one; else `texts` are part of what it says.
    pub(super) named: Option<String>,
    pub(super) texts: Vec<String>,
}

impl Waiting {
    pub(super) fn new(item: Item, identity: Identity<'_>) -> Waiting {
        match identity {
            Identity::Named(key) => Waiting { item, named: Some(key), texts: Vec::new() },
            Identity::Content(texts) => {
                Waiting { item, named: None, texts: texts.iter().map(|text| (*text).to_owned()).collect() }
            }
        }
    }

    /// About what it takes.
    pub(super) fn bytes(&self) -> usize {
        let texts: usize = self.texts.iter().map(|text| text.len() + size_of::<String>()).sum();
        size_of::<Waiting>() + self.item.merchant.len() + self.named.as_ref().map_or(0, String::len) + texts
    }
}

/// The merchants that a batch names, each with its first line. More than two need not be known.
#[derive(Default)]
pub(super) struct Merchants {
    first: Option<(String, i64)>,
    other: Option<(String, i64)>,
    blank: Option<i64>,
}

impl Merchants {
    /// Notes whom a line names. A blank one means the batch's, so there may be only one.
    pub(super) fn see(&mut self, item: &Item) -> Result<(), Fault> {
        let line = item.line_no;
        match &self.first {
            _ if item.merchant.is_empty() => self.blank = self.blank.or(Some(line)),
            None => self.first = Some((item.merchant.clone(), line)),
            Some((first, _)) if *first == item.merchant || self.other.is_some() => {}
            Some(_) => self.other = Some((item.merchant.clone(), line)),
        }
        let (Some((first, at)), Some((other, also_at)), Some(blank)) = (&self.first, &self.other, self.blank) else {
            return Ok(());
        };
        let what = format!(
            "line {blank} leaves its merchant to its batch, and that has two: {first:?} (line {at}) and {other:?} (line {also_at})"
        );
        Err(Fault::at(line.unsigned_abs(), what, "correct the file, or let every row of the batch name its merchant"))
    }

    /// The batch's merchant, once a line has named one.
    pub(super) fn known(&self) -> Option<&str> {
        self.first.as_ref().map(|(name, _)| name.as_str())
    }

    /// The first line that leaves it to the batch.
    pub(super) fn blank(&self) -> Option<i64> {
        self.blank
    }
}
