//! NACHA files of originated entries: the order of records, file header and file control. Needs `record.rs`, `batch.rs`.
//!
//! PPD, CCD, WEB, TEL, CTX and IAT are read. A batch control that does not foot is a break of its batch; a file control that
//! does not is an error, because then a batch is missing or was altered and nobody knows which. Returns and notifications of
//! change are no settlement input and are refused. Layouts: Nacha Operating Rules, appendix three.

mod addenda;
mod batch;
mod codes;
mod framing;
mod record;
pub(crate) mod routing;

use crate::batches::Batches;
use crate::error::Fault;
use crate::source::Source;
use batch::Batch;
use chrono::NaiveDate;
use domain::money::{Currency, format_minor};
use framing::Framing;
use record::Record;
use std::io::Read;

/// Records per block.
const BLOCKING: u64 = 10;
/// The entry hash keeps ten digits.
const HASH_MODULUS: u64 = 10_000_000_000;

/// Counts and sums of a batch or a file, in records and cents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Sums {
    entries_and_addenda: u64,
    hash: u64,
    debit: u64,
    credit: u64,
}

impl Sums {
    fn add(&mut self, other: Sums) {
        self.entries_and_addenda += other.entries_and_addenda;
        self.hash = (self.hash + other.hash) % HASH_MODULUS;
        self.debit += other.debit;
        self.credit += other.credit;
    }
}

/// What every batch of the file shares.
struct FileHeader {
    /// Origin, destination, creation date and time, modifier: batch numbers start again in every file.
    identity: [String; 5],
    created: NaiveDate,
    currency: Currency,
}

enum Place {
    Start,
    BetweenBatches(FileHeader),
    InBatch(FileHeader, Box<Batch>),
    AfterControl,
}

pub(crate) fn read(source: &mut Source<impl Read>, batches: &mut Batches<'_>) -> Result<(), Fault> {
    let framing = Framing::of(source)?;
    let mut reader = Reader { batches, counted: Sums::default(), declared: Sums::default(), batches_seen: 0, declared_blocks: 0 };
    let mut place = Place::Start;
    let mut records = 0;
    while let Some(record) = framing.next(source)? {
        records += 1;
        place = reader.take(place, &record)?;
    }
    reader.end(&place, source.line(), records)
}

struct Reader<'b, 'a> {
    batches: &'b mut Batches<'a>,
    /// Over all entries read.
    counted: Sums,
    /// Over all batch controls.
    declared: Sums,
    batches_seen: u64,
    declared_blocks: u64,
}

impl Reader<'_, '_> {
    fn take(&mut self, place: Place, record: &Record<'_>) -> Result<Place, Fault> {
        match (record.kind(), place) {
            ('1', Place::Start) => Ok(Place::BetweenBatches(FileHeader::read(record)?)),
            ('5', Place::BetweenBatches(header)) => {
                let batch = Batch::open(record, &header, self.batches)?;
                Ok(Place::InBatch(header, Box::new(batch)))
            }
            ('6', Place::InBatch(header, mut batch)) => {
                batch.entry(record, header.currency, self.batches)?;
                Ok(Place::InBatch(header, batch))
            }
            ('7', Place::InBatch(header, mut batch)) => {
                batch.addenda(record)?;
                Ok(Place::InBatch(header, batch))
            }
            ('8', Place::InBatch(header, batch)) => {
                let (counted, declared) = batch.close(record, header.currency, self.batches)?;
                self.counted.add(counted);
                self.declared.add(declared);
                self.batches_seen += 1;
                Ok(Place::BetweenBatches(header))
            }
            ('9', Place::AfterControl) if record.is_padding() => Ok(Place::AfterControl),
            ('9', Place::BetweenBatches(_)) if !record.is_padding() => {
                self.file_control(record)?;
                Ok(Place::AfterControl)
            }
            (_, place) => Err(out_of_order(&place, record)),
        }
    }

    fn file_control(&mut self, record: &Record<'_>) -> Result<(), Fault> {
        let batches = record.number(2, 7, "batch count")?;
        self.declared_blocks = record.number(8, 13, "block count")?;
        if batches != self.batches_seen {
            let seen = self.batches_seen;
            self.batches.warn(format!("line {}: the file control declares {batches} batches, the file has {seen}", record.line));
        }
        let (counted, declared) = (self.counted, self.declared);
        let count = |value: u64| value.to_string();
        let says = |from, to, what, counted: u64, declared: u64, show: &dyn Fn(u64) -> String| {
            let value = record.number(from, to, what)?;
            // a batch whose own control does not foot is a break of that batch, not of the file
            if value == counted || value == declared {
                return Ok(());
            }
            let what = format!("the file control declares {what} of {}, its batches come to {}", show(value), show(counted));
            Err(Fault::at(record.line, what, "a batch is missing or was altered: get the whole file from its sender"))
        };
        says(14, 21, "entries and addenda", counted.entries_and_addenda, declared.entries_and_addenda, &count)?;
        says(22, 31, "an entry hash", counted.hash, declared.hash, &count)?;
        says(32, 43, "debits", counted.debit, declared.debit, &dollars)?;
        says(44, 55, "credits", counted.credit, declared.credit, &dollars)
    }

    fn end(&mut self, place: &Place, line: u64, records: u64) -> Result<(), Fault> {
        if !matches!(place, Place::AfterControl) {
            return Err(Fault::at(line, "the file ends without a file control record (it was cut off)", "transfer it again"));
        }
        let blocks = records.div_ceil(BLOCKING);
        if blocks != self.declared_blocks {
            let declared = self.declared_blocks;
            self.batches.warn(format!("the file control declares {declared} blocks, the file has {blocks}"));
        }
        Ok(())
    }
}

impl FileHeader {
    fn read(record: &Record<'_>) -> Result<FileHeader, Fault> {
        if record.text(35, 37) != "094" || record.text(40, 40) != "1" {
            let what = "the file header is not one of 94-character records (094 in 35-37, 1 in 40)";
            return Err(record.fault(what, "choose the profile of this file"));
        }
        let identity =
            [(14, 23), (4, 13), (24, 29), (30, 33), (34, 34)].map(|(from, to)| record.text(from, to).trim().to_owned());
        let created = record.date(24, 29, "file creation date")?;
        let created = created.ok_or_else(|| record.fault("the file creation date is blank", "correct the file header"))?;
        let currency = Currency::parse("USD").map_err(|error| record.fault(error.to_string(), "report this"))?;
        Ok(FileHeader { identity, created, currency })
    }
}

/// Cents as a person reads them.
fn dollars(cents: u64) -> String {
    format_minor(i128::from(cents), 2)
}

fn out_of_order(place: &Place, record: &Record<'_>) -> Fault {
    let expected = match place {
        Place::Start => "a file header (1)",
        Place::BetweenBatches(_) => "a batch header (5) or the file control (9)",
        Place::InBatch(..) => "an entry (6), addenda (7) or the batch control (8)",
        Place::AfterControl => "nothing but padding",
    };
    let what = format!("a record of type {:?} where {expected} is expected", record.kind());
    record.fault(what, "choose the profile of this file, or transfer it again as one whole file")
}
