//! One batch while its file is read. Needs `digest.rs`, `waiting.rs`, `domain::totals`, `domain::summary`.

use super::waiting::{Merchants, Waiting};
use super::{Dated, Identity};
use crate::digest::{BatchDigest, fingerprint};
use crate::error::Fault;
use crate::profile::{Profile, Remittance};
use domain::idempotency::occurrence_key;
use domain::item::Item;
use domain::money::Currency;
use domain::summary::BatchSummary;
use domain::totals::{Counted, Declared, Remits, Total, judge};
use std::collections::{BTreeMap, HashMap};

/// Sentences about what does not hold that are kept per batch; a file that fails a check on every line must not fill the memory.
const MAX_BREAKS: usize = 20;
/// Lines that are named as not naming their batch.
const MAX_UNNAMED: usize = 5;

pub(super) struct Open {
    /// Its name and the line that said it.
    id: Option<(String, u64)>,
    pub(super) first_line: u64,
    digest: BatchDigest,
    pub(super) date: Option<Dated>,
    counted: BTreeMap<Currency, Counted>,
    pub(super) declared: BTreeMap<Currency, Declared>,
    occurrences: HashMap<[u8; 32], u64>,
    pub(super) breaks: Sentences,
    pub(super) unnamed: Sentences,
    pub(super) merchants: Merchants,
    pub(super) waiting: Vec<Waiting>,
}

/// The first sentences of many.
pub(super) struct Sentences {
    said: Vec<String>,
    most: usize,
    unsaid: usize,
}

impl Sentences {
    fn at_most(most: usize) -> Sentences {
        Sentences { said: Vec::new(), most, unsaid: 0 }
    }

    pub(super) fn note(&mut self, sentence: String) {
        if self.said.len() < self.most {
            self.said.push(sentence);
        } else {
            self.unsaid += 1;
        }
    }

    fn finish(mut self, more: &str) -> Vec<String> {
        if self.unsaid > 0 {
            self.said.push(format!("and {} more{more}", self.unsaid));
        }
        self.said
    }
}

impl Open {
    pub(super) fn new(id: Option<(String, u64)>, first_line: u64) -> Open {
        let (digest, date, counted, declared, occurrences, merchants, waiting) = Default::default();
        let (breaks, unnamed) = (Sentences::at_most(MAX_BREAKS), Sentences::at_most(MAX_UNNAMED));
        Open { id, first_line, digest, date, counted, declared, occurrences, breaks, unnamed, merchants, waiting }
    }

    /// For messages.
    pub(super) fn called(&self) -> String {
        self.id.as_ref().map_or_else(|| "the batch of the file".to_owned(), |(id, _)| format!("batch {id:?}"))
    }

    pub(super) fn name(&mut self, id: String, line: u64) -> Result<(), Fault> {
        match &self.id {
            None => self.id = Some((id, line)),
            Some((other, _)) if *other == id => {}
            Some((other, at)) => {
                let what = format!("the row is of batch {id:?}, the file of {other:?} (line {at}): it is read as one batch");
                return Err(Fault::at(line, what, "export one batch a file, or give the profile batch.rule = \"by_row\""));
            }
        }
        Ok(())
    }

    /// Whether this line, or one before it, needs what nobody has said yet.
    pub(super) fn must_wait(&self, item: &Item, identity: &Identity<'_>) -> bool {
        let unnamed = self.id.is_none() && matches!(identity, Identity::Content(_));
        let nobodys = item.merchant.is_empty() && self.merchants.known().is_none();
        unnamed || nobodys || !self.waiting.is_empty()
    }

    /// Whether everything that lines can wait for is known.
    pub(super) fn is_ready(&self) -> bool {
        self.id.is_some() && (self.merchants.known().is_some() || self.merchants.blank().is_none())
    }

    /// Why its lines cannot be taken, found at this line.
    pub(super) fn still_waiting(&self, line: u64) -> Fault {
        if self.id.is_none() {
            return Fault::at(line, "no row names the batch of the file", "correct the file, or [batch] in the profile");
        }
        let blank = self.merchants.blank().unwrap_or_default();
        let what = format!("line {blank} leaves its merchant to {}, of which no row names one", self.called());
        Fault::at(line, what, "correct the file, or give the profile merchant.default instead of merchant.blank")
    }

    /// Counts a line and gives it what it left to its batch.
    pub(super) fn take(&mut self, mut item: Item, identity: Identity<'_>) -> Item {
        if item.merchant.is_empty() {
            self.merchants.known().unwrap_or_default().clone_into(&mut item.merchant);
        }
        item.dedupe_key = match identity {
            Identity::Named(key) => key,
            Identity::Content(texts) => self.content_key(&item, texts),
        };
        self.digest.item(&item);
        self.counted.entry(item.currency).or_default().add(&item);
        item
    }

    /// The identity of a line without an id: what it says, and how often the batch has said it before.
    fn content_key(&mut self, item: &Item, texts: &[&str]) -> String {
        let fingerprint = fingerprint(item, texts);
        let occurrence = self.occurrences.entry(fingerprint).or_default();
        *occurrence += 1;
        let id = self.id.as_ref().map_or("", |(id, _)| id);
        occurrence_key(id, &hex::encode(fingerprint), *occurrence)
    }

    pub(super) fn finish(mut self, profile: &Profile) -> Result<BatchSummary, Fault> {
        let line = self.first_line;
        if self.id.is_none() || !self.waiting.is_empty() {
            return Err(self.still_waiting(line));
        }
        let undated = || {
            let what = format!("{} has no business date on any of its lines", self.called());
            Fault::at(line, what, "correct the file, or [business_date] in the profile")
        };
        let date = self.date.ok_or_else(undated)?.date;
        let totals = self.judge(profile)?;
        let mut breaks = self.breaks.finish("");
        if !breaks.is_empty() {
            breaks.extend(self.unnamed.finish(" lines that name none"));
        }
        Ok(BatchSummary {
            business_date: date,
            fee_mode: profile.fee_mode,
            digest: self.digest.finish(date, profile.fee_mode, self.declared.iter()),
            first_line: i64::try_from(line).unwrap_or(i64::MAX),
            totals,
            breaks,
            external_batch_id: self.id.map(|(id, _)| id).unwrap_or_default(),
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
                Fault::at(self.first_line, format!("{}: {error}", self.called()), "split the batch, or correct its amounts")
            })?;
            totals.push(total);
            self.breaks.said.extend(breaks);
        }
        Ok(totals)
    }
}

impl Remittance {
    fn of(self, counted: &Counted) -> Remits {
        match self {
            Remittance::Never => Remits::Never,
            Remittance::ByLine => Remits::ByLine,
            Remittance::IfPresent if counted.remittances == 0 => Remits::Never,
            Remittance::IfPresent => Remits::ByLine,
            Remittance::DeclaredNet => Remits::DeclaredNet,
        }
    }
}
