//! One batch: header, entries, control. Needs `addenda.rs`, `codes.rs`, `record.rs`, `routing.rs`.

use super::addenda::Addenda;
use super::codes::{Direction, EntryClass, Movement, ServiceClass};
use super::record::Record;
use super::{FileHeader, HASH_MODULUS, Sums, routing};
use crate::batches::{Batches, Dated, Identity};
use crate::error::Fault;
use crate::key;
use domain::item::Item;
use domain::money::Currency;
use domain::totals::Declared;

/// A batch whose control has not come yet.
pub(super) struct Batch {
    index: u32,
    id: String,
    /// The header's fields of [`REPEATED`].
    repeated: [String; 4],
    service: ServiceClass,
    class: EntryClass,
    merchant: String,
    entries: u64,
    counted: Sums,
    addenda: Option<Addenda>,
}

/// A header field that the control repeats: its name and positions in both.
struct Repeated {
    what: &'static str,
    header: (usize, usize),
    control: (usize, usize),
}

const REPEATED: [Repeated; 4] = [
    Repeated { what: "service class", header: (2, 4), control: (2, 4) },
    Repeated { what: "company identification", header: (41, 50), control: (45, 54) },
    Repeated { what: "originating bank", header: (80, 87), control: (80, 87) },
    Repeated { what: "batch number", header: (88, 94), control: (88, 94) },
];

impl Batch {
    pub(super) fn open(record: &Record<'_>, file: &FileHeader, batches: &mut Batches<'_>) -> Result<Batch, Fault> {
        let (service, class) = (ServiceClass::of(record)?, EntryClass::of(record)?);
        let number = record.digits(88, 94, "batch number")?;
        let id = key::join(file.identity.iter().map(String::as_str).chain([number]));
        if let Some(line) = batches.first_line_of(&id) {
            let what = format!("batch number {number} is taken by the batch of line {line}");
            return Err(record.fault(what, "number the batches of a file apart"));
        }
        let merchant = record.text(41, 50).trim().to_owned();
        if merchant.is_empty() {
            return Err(record.fault("the company identification is blank: the entries are owed to nobody", "correct the file"));
        }
        let effective = record.date(70, 75, "effective entry date")?;
        let index = batches.find_or_open(&id, record.line)?;
        batches.date_latest(index, Dated { decisive: true, date: effective.unwrap_or(file.created) });
        let repeated = REPEATED.map(|Repeated { header: (from, to), .. }| record.text(from, to).to_owned());
        let (entries, counted, addenda) = Default::default();
        Ok(Batch { index, id, repeated, service, class, merchant, entries, counted, addenda })
    }

    pub(super) fn entry(&mut self, record: &Record<'_>, currency: Currency, batches: &mut Batches<'_>) -> Result<(), Fault> {
        self.complete_addenda()?;
        let Movement { direction, zero } = Movement::of(record)?;
        let hash = routing_number(record)?;
        let cents = record.number(30, 39, "amount")?;
        let trace = record.digits(80, 94, "trace number")?;
        if zero && cents != 0 {
            let what = format!("transaction code {} moves nothing, but its amount is {cents} cents", record.text(2, 3));
            return Err(record.fault(what, "correct the file"));
        }
        if let Some(objection) = self.service.objection(direction) {
            batches.note_break(self.index, format!("line {}: {objection}", record.line));
        }
        self.addenda = Some(Addenda::announced(record, self.class, trace)?);
        self.entries += 1;
        let (debit, credit) = if direction == Direction::Debit { (cents, 0) } else { (0, cents) };
        self.counted.add(Sums { entries_and_addenda: 1, hash, debit, credit });
        // traces repeat within a batch: the position tells twins apart
        let identity = Identity::Named(format!("{}|{trace}|{}", self.id, self.entries));
        batches.push(self.index, self.item(record, currency, direction, cents)?, identity)
    }

    fn item(&self, record: &Record<'_>, currency: Currency, direction: Direction, cents: u64) -> Result<Item, Fault> {
        // ten digits fit
        let amount = i64::try_from(cents).map_err(|_| record.fault("the amount is too large", "correct the file"))?;
        Ok(Item {
            line_no: i64::try_from(record.line).unwrap_or(i64::MAX),
            kind: direction.kind(),
            merchant: self.merchant.clone(),
            currency,
            gross_minor: if direction == Direction::Debit { amount } else { -amount },
            fee_minor: 0,
            residual_micro: 0,
            dedupe_key: String::new(),
        })
    }

    pub(super) fn addenda(&mut self, record: &Record<'_>) -> Result<(), Fault> {
        let Some(addenda) = &mut self.addenda else {
            return Err(record.fault("addenda before the first entry of the batch", "transfer the file again"));
        };
        addenda.take(record)?;
        self.counted.entries_and_addenda += 1;
        Ok(())
    }

    /// Judges the control against header and entries; gives what was counted and what it declares.
    pub(super) fn close(
        &self,
        record: &Record<'_>,
        currency: Currency,
        batches: &mut Batches<'_>,
    ) -> Result<(Sums, Sums), Fault> {
        self.complete_addenda()?;
        for (Repeated { what, control: (from, to), .. }, header) in REPEATED.iter().zip(&self.repeated) {
            let control = record.text(*from, *to);
            if control != header {
                let found = format!("the {what} is {control:?}, in the batch header {header:?}");
                return Err(record.fault(found, "transfer the file again: records are missing or out of order"));
            }
        }
        let declared = Sums {
            entries_and_addenda: record.number(5, 10, "entry and addenda count")?,
            hash: record.number(11, 20, "entry hash")? % HASH_MODULUS,
            debit: record.number(21, 32, "total of debits")?,
            credit: record.number(33, 44, "total of credits")?,
        };
        self.compare("entries and addenda", declared.entries_and_addenda, self.counted.entries_and_addenda, batches);
        self.compare("an entry hash", declared.hash, self.counted.hash, batches);
        let fits = declared.entries_and_addenda == self.counted.entries_and_addenda;
        let totals = Declared {
            items: i64::try_from(self.entries).ok().filter(|_| fits),
            debit_minor: i64::try_from(declared.debit).ok(),
            credit_minor: i64::try_from(declared.credit).ok(),
            ..Declared::default()
        };
        batches.declare(self.index, currency, totals, record.line)?;
        Ok((self.counted, declared))
    }

    fn compare(&self, what: &str, declared: u64, counted: u64, batches: &mut Batches<'_>) {
        if declared != counted {
            batches.note_break(self.index, format!("declares {what} of {declared}, its entries come to {counted}"));
        }
    }

    fn complete_addenda(&self) -> Result<(), Fault> {
        self.addenda.as_ref().map_or(Ok(()), Addenda::complete)
    }
}

/// The receiving bank's eight digits, for the entry hash, once their check digit holds.
fn routing_number(record: &Record<'_>) -> Result<u64, Fault> {
    let number = record.number(4, 11, "routing number")?;
    let expected = routing::check_digit(record.text(4, 11)).map(|digit| digit.to_string());
    if expected.as_deref() == Some(record.text(12, 12)) {
        return Ok(number);
    }
    let what = format!(
        "routing number {} has the check digit {:?}, computed is {}",
        record.text(4, 11),
        record.text(12, 12),
        expected.unwrap_or_default()
    );
    Err(record.fault(what, "correct the routing number: the entry would go to another bank"))
}
