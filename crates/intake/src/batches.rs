//! Batches in the making: lines pass through to the sink, and what stays of each is a running digest and counts.
//! Needs `digest.rs`, `domain::totals`, `domain::summary`.
//!
//! Batches of one file may come in any order and interleaved. Nothing here knows a format.

use crate::digest::{BatchDigest, fingerprint};
use crate::error::{Fault, Stopped};
use crate::profile::{Profile, Remittance};
use crate::source::Finished;
use crate::{CHUNK_ITEMS, key};
use chrono::NaiveDate;
use domain::idempotency::occurrence_key;
use domain::item::Item;
use domain::money::Currency;
use domain::summary::{BatchSummary, FileSummary, StagedItem};
use domain::totals::{Counted, Declared, Total, judge};
use std::collections::{BTreeMap, HashMap};

/// Sentences kept per batch; a file that fails a check on every line must not fill the memory with it.
const MAX_BREAKS: usize = 20;

/// All batches of the file that is being read.
pub(crate) struct Batches<'a> {
    profile: &'a Profile,
    sink: &'a mut dyn FnMut(Vec<StagedItem>) -> Result<(), Stopped>,
    chunk: Vec<StagedItem>,
    items: u64,
    by_id: HashMap<String, u32>,
    open: Vec<Open>,
    warnings: Vec<String>,
}

struct Open {
    id: String,
    first_line: u64,
    digest: BatchDigest,
    date: Option<Dated>,
    counted: BTreeMap<Currency, Counted>,
    declared: BTreeMap<Currency, Declared>,
    occurrences: HashMap<[u8; 32], u64>,
    breaks: Vec<String>,
    unsaid: usize,
}

/// A candidate for the business date.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Dated {
    /// From a line that decides (the source's own payout line): beats every other.
    pub(crate) decisive: bool,
    pub(crate) date: NaiveDate,
}

impl<'a> Batches<'a> {
    pub(crate) fn new(profile: &'a Profile, sink: &'a mut dyn FnMut(Vec<StagedItem>) -> Result<(), Stopped>) -> Batches<'a> {
        let (chunk, by_id, open, warnings) = Default::default();
        Batches { profile, sink, chunk, items: 0, by_id, open, warnings }
    }

    /// The batch of this identity; opened where the file names it for the first time.
    pub(crate) fn find_or_open(&mut self, id: &str, line: u64) -> Result<u32, Fault> {
        if let Some(index) = self.by_id.get(id) {
            return Ok(*index);
        }
        key::check(id, "batch id", key::MAX_BATCH_BYTES, line)?;
        let index = u32::try_from(self.open.len()).map_err(|_| Fault::at(line, "too many batches in one file", "split it"))?;
        self.by_id.insert(id.to_owned(), index);
        self.open.push(Open::new(id.to_owned(), line));
        Ok(index)
    }

    /// The first line of a batch of this identity, if the file had one before.
    pub(crate) fn first_line_of(&self, id: &str) -> Option<u64> {
        self.by_id.get(id).map(|index| self.open[*index as usize].first_line)
    }

    /// Takes one line. Its own checks are done.
    pub(crate) fn push(&mut self, batch: u32, item: Item) -> Result<(), Fault> {
        let open = &mut self.open[batch as usize];
        open.digest.item(&item);
        open.counted.entry(item.currency).or_default().add(&item);
        self.items += 1;
        self.chunk.push(StagedItem { batch, item });
        if self.chunk.len() >= CHUNK_ITEMS { self.flush() } else { Ok(()) }
    }

    /// The identity of a line without an id: what it says, and how often the batch has said it before.
    pub(crate) fn content_key(&mut self, batch: u32, item: &Item, texts: &[&str]) -> String {
        let open = &mut self.open[batch as usize];
        let fingerprint = fingerprint(item, texts);
        let occurrence = open.occurrences.entry(fingerprint).or_default();
        *occurrence += 1;
        occurrence_key(&open.id, &hex::encode(fingerprint), *occurrence)
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
        let what = format!("batch {:?} has the business date {} and here {date}", open.id, dated.date);
        Err(Fault::at(line, what, "give one batch one business date"))
    }

    /// What the source declares of one currency; once per currency and batch.
    pub(crate) fn declare(&mut self, batch: u32, currency: Currency, declared: Declared, line: u64) -> Result<(), Fault> {
        let open = &mut self.open[batch as usize];
        if open.declared.insert(currency, declared).is_none() {
            return Ok(());
        }
        let what = format!("a second total of {currency} for batch {:?}", open.id);
        Err(Fault::at(line, what, "declare each currency of a batch once"))
    }

    /// Something that does not hold within the batch, as a sentence with both figures.
    pub(crate) fn note_break(&mut self, batch: u32, sentence: String) {
        let open = &mut self.open[batch as usize];
        if open.breaks.len() < MAX_BREAKS {
            open.breaks.push(sentence);
        } else {
            open.unsaid += 1;
        }
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

impl Open {
    fn new(id: String, first_line: u64) -> Open {
        let (digest, date, counted, declared, occurrences, breaks) = Default::default();
        Open { id, first_line, digest, date, counted, declared, occurrences, breaks, unsaid: 0 }
    }

    fn finish(mut self, profile: &Profile) -> Result<BatchSummary, Fault> {
        let line = self.first_line;
        let undated = || {
            let what = format!("batch {:?} has no business date on any of its lines", self.id);
            Fault::at(line, what, "correct the file, or [business_date] in the profile")
        };
        let date = self.date.ok_or_else(undated)?.date;
        let totals = self.judge(profile)?;
        if self.unsaid > 0 {
            self.breaks.push(format!("and {} more", self.unsaid));
        }
        Ok(BatchSummary {
            business_date: date,
            fee_mode: profile.fee_mode,
            digest: self.digest.finish(date, profile.fee_mode, self.declared.iter()),
            first_line: i64::try_from(line).unwrap_or(i64::MAX),
            totals,
            breaks: self.breaks,
            external_batch_id: self.id,
        })
    }

    fn judge(&mut self, profile: &Profile) -> Result<Vec<Total>, Fault> {
        let mut totals = Vec::new();
        for currency in self.declared.keys() {
            self.counted.entry(*currency).or_default();
        }
        for (currency, counted) in &self.counted {
            let declared = self.declared.get(currency).copied().unwrap_or_default();
            let remits = profile.remittance.of(counted);
            let judged = judge(*currency, *counted, declared, remits, profile.fee_mode, profile.tolerance_minor);
            let (total, breaks) = judged.map_err(|error| {
                Fault::at(self.first_line, format!("batch {:?}: {error}", self.id), "split the batch, or correct its amounts")
            })?;
            totals.push(total);
            self.breaks.extend(breaks);
        }
        Ok(totals)
    }
}

impl Remittance {
    fn of(self, counted: &Counted) -> domain::totals::Remits {
        use domain::totals::Remits;
        match self {
            Remittance::Never => Remits::Never,
            Remittance::ByLine => Remits::ByLine,
            Remittance::IfPresent if counted.remittances == 0 => Remits::Never,
            Remittance::IfPresent => Remits::ByLine,
            Remittance::DeclaredNet => Remits::DeclaredNet,
        }
    }
}
