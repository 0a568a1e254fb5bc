//! Batches in the making: lines pass through to the sink, and what stays of each is a running digest and counts.
//! Needs `open.rs`, `waiting.rs`, `domain::summary`.
//!
//! Batches of one file may come in any order and interleaved. Nothing here knows a format.

mod open;
mod waiting;

use crate::error::{Fault, Stopped};
use crate::profile::Profile;
use crate::source::Finished;
use crate::{CHUNK_ITEMS, key};
use chrono::NaiveDate;
use domain::item::Item;
use domain::money::Currency;
use domain::summary::{FileSummary, StagedItem};
use domain::totals::Declared;
use open::Open;
use std::collections::HashMap;
use waiting::{MAX_WAITING_BYTES, Waiting};

/// All batches of the file that is being read.
pub(crate) struct Batches<'a> {
    profile: &'a Profile,
    sink: &'a mut dyn FnMut(Vec<StagedItem>) -> Result<(), Stopped>,
    chunk: Vec<StagedItem>,
    items: u64,
    by_id: HashMap<String, u32>,
    open: Vec<Open>,
    waiting_bytes: usize,
    warnings: Vec<String>,
}

/// A candidate for the business date.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Dated {
    /// From a line that decides (the source's own payout line): beats every other.
    pub(crate) decisive: bool,
    pub(crate) date: NaiveDate,
}

/// What identifies a line within its source.
pub(crate) enum Identity<'a> {
    /// An id of the source's.
    Named(String),
    /// Nothing: what the line says (these texts, besides what every item has), and how often its batch has said it before.
    Content(&'a [&'a str]),
}

impl<'a> Batches<'a> {
    pub(crate) fn new(profile: &'a Profile, sink: &'a mut dyn FnMut(Vec<StagedItem>) -> Result<(), Stopped>) -> Batches<'a> {
        let (chunk, by_id, open, warnings) = Default::default();
        Batches { profile, sink, chunk, items: 0, by_id, open, waiting_bytes: 0, warnings }
    }

    /// The batch of this identity; opened where the file names it for the first time.
    pub(crate) fn find_or_open(&mut self, id: &str, line: u64) -> Result<u32, Fault> {
        if let Some(index) = self.by_id.get(id) {
            return Ok(*index);
        }
        key::check(id, "batch id", key::MAX_BATCH_BYTES, line)?;
        let index = u32::try_from(self.open.len()).map_err(|_| Fault::at(line, "too many batches in one file", "split it"))?;
        self.by_id.insert(id.to_owned(), index);
        self.open.push(Open::new(Some((id.to_owned(), line)), line));
        Ok(index)
    }

    /// The one batch of a file that is one batch; it may get its name from a later line.
    pub(crate) fn only(&mut self, line: u64) -> u32 {
        if self.open.is_empty() {
            self.open.push(Open::new(None, line));
        }
        0
    }

    /// Names the one batch of the file. Every line that names it must say the same.
    pub(crate) fn name(&mut self, batch: u32, id: String, line: u64) -> Result<(), Fault> {
        key::check(&id, "batch id", key::MAX_BATCH_BYTES, line)?;
        self.open[batch as usize].name(id, line)?;
        self.release_if_ready(batch)
    }

    /// The first line of a batch of this identity, if the file had one before.
    pub(crate) fn first_line_of(&self, id: &str) -> Option<u64> {
        self.by_id.get(id).map(|index| self.open[*index as usize].first_line)
    }

    /// Takes one line. Its own checks are done. A blank merchant is the batch's. A line that needs what only a later line says
    /// waits, and with it, to keep their order, those of its batch that follow.
    pub(crate) fn push(&mut self, batch: u32, item: Item, identity: Identity<'_>) -> Result<(), Fault> {
        let open = &mut self.open[batch as usize];
        open.merchants.see(&item)?;
        self.release_if_ready(batch)?;
        let open = &mut self.open[batch as usize];
        if !open.must_wait(&item, &identity) {
            return self.take(batch, item, identity);
        }
        let line = item.line_no.unsigned_abs();
        let waiting = Waiting::new(item, identity);
        self.waiting_bytes += waiting.bytes();
        open.waiting.push(waiting);
        if self.waiting_bytes > MAX_WAITING_BYTES { Err(self.open[batch as usize].still_waiting(line)) } else { Ok(()) }
    }

    fn release_if_ready(&mut self, batch: u32) -> Result<(), Fault> {
        let open = &mut self.open[batch as usize];
        if open.waiting.is_empty() || !open.is_ready() {
            return Ok(());
        }
        for waiting in std::mem::take(&mut open.waiting) {
            self.waiting_bytes -= waiting.bytes();
            let Waiting { item, named, texts } = waiting;
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            self.take(batch, item, named.map_or(Identity::Content(&texts), Identity::Named))?;
        }
        Ok(())
    }

    fn take(&mut self, batch: u32, item: Item, identity: Identity<'_>) -> Result<(), Fault> {
        let item = self.open[batch as usize].take(item, identity);
        self.items += 1;
        self.chunk.push(StagedItem { batch, item });
        if self.chunk.len() >= CHUNK_ITEMS { self.flush() } else { Ok(()) }
    }

    /// The latest date wins, a decisive one before every other.
    pub(crate) fn date_latest(&mut self, batch: u32, dated: Dated) {
        let date = &mut self.open[batch as usize].date;
        *date = (*date).max(Some(dated));
    }

    /// Every line must name the same date.
    pub(crate) fn date_same(&mut self, batch: u32, date: NaiveDate, line: u64) -> Result<(), Fault> {
        let open = &mut self.open[batch as usize];
        let dated = *open.date.get_or_insert(Dated { decisive: false, date });
        if dated.date == date {
            return Ok(());
        }
        let what = format!("{} has the business date {} and here {date}", open.called(), dated.date);
        Err(Fault::at(line, what, "give one batch one business date"))
    }

    /// What the source declares of one currency; once per currency and batch.
    pub(crate) fn declare(&mut self, batch: u32, currency: Currency, declared: Declared, line: u64) -> Result<(), Fault> {
        let open = &mut self.open[batch as usize];
        if open.declared.insert(currency, declared).is_none() {
            return Ok(());
        }
        let what = format!("a second total of {currency} for {}", open.called());
        Err(Fault::at(line, what, "declare each currency of a batch once"))
    }

    /// Something that does not hold within the batch, as a sentence with both figures.
    pub(crate) fn note_break(&mut self, batch: u32, sentence: String) {
        self.open[batch as usize].breaks.note(sentence);
    }

    /// A line that does not name its batch: no fault as long as the batch adds up, and where to look first when it does not.
    pub(crate) fn note_unnamed(&mut self, batch: u32, sentence: String) {
        self.open[batch as usize].unnamed.note(sentence);
    }

    /// Something a person should know and that stops nothing.
    pub(crate) fn warn(&mut self, sentence: String) {
        self.warnings.push(sentence);
    }

    /// Hands over what is left and judges every batch.
    pub(crate) fn finish(mut self, name: &str, file: Finished) -> Result<FileSummary, Fault> {
        self.flush()?;
        if self.open.is_empty() {
            self.warn("the file contains no batch".to_owned());
        }
        let profile = self.profile;
        let batches = self.open.into_iter().map(|open| open.finish(profile)).collect::<Result<_, _>>()?;
        Ok(FileSummary {
            name: name.to_owned(),
            sha256: file.sha256,
            source: profile.source.clone(),
            profile: profile.name.clone(),
            bytes: file.bytes,
            items: self.items,
            batches,
            warnings: self.warnings,
        })
    }

    fn flush(&mut self) -> Result<(), Fault> {
        if self.chunk.is_empty() {
            return Ok(());
        }
        (self.sink)(std::mem::take(&mut self.chunk)).map_err(Fault::Stopped)
    }
}
