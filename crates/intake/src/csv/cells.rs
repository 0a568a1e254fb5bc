//! What one record says, in whichever table it stands. Needs `columns.rs`, `split.rs`, `number.rs`, `money.rs`.

use super::columns::TableColumns;
use super::split::Record;
use crate::batches::{Batches, Dated};
use crate::error::Fault;
use crate::key;
use crate::profile::csv::{CsvLayout, Fallback, MeasureName};
use chrono::{NaiveDate, NaiveDateTime};
use domain::money::Currency;
use domain::totals::Declared;
use rust_decimal::Decimal;

/// A record, where its columns are, and what the profile says about them.
#[derive(Clone, Copy)]
pub(super) struct Cells<'a> {
    pub(super) record: &'a Record,
    pub(super) table: &'a TableColumns,
    pub(super) layout: &'a CsvLayout,
    pub(super) profile: &'a str,
}

pub(super) fn blank(text: &str) -> bool {
    text.trim().is_empty()
}

impl<'a> Cells<'a> {
    pub(super) fn fault(&self, what: impl Into<String>, remedy: &str) -> Fault {
        Fault::at(self.record.line, what, remedy)
    }

    /// A record that was cut, or joined with the next one, is told by its number of fields.
    pub(super) fn as_long_as_its_header(&self) -> Result<(), Fault> {
        let (fields, expected) = (self.record.len(), self.table.names.len());
        if fields == expected {
            return Ok(());
        }
        let what = format!("the row has {fields} fields, the header {expected}");
        Err(self.fault(what, "check that the file is whole and the profile's delimiter is right"))
    }

    /// The name of the batch; `None` where the record names none and its file is one batch.
    pub(super) fn batch_id(&self) -> Result<Option<String>, Fault> {
        let texts: Vec<&str> = self.table.batch.iter().map(|column| self.record.get(*column)).collect();
        if self.layout.batch.one_per_file && texts.iter().all(|text| blank(text)) {
            return Ok(None);
        }
        match texts.iter().zip(&self.layout.batch.columns).find(|(text, _)| blank(text)) {
            Some((_, name)) => Err(self.fault(format!("{name:?} is blank: the row belongs to no batch"), "correct the file")),
            None => Ok(Some(key::join(texts))),
        }
    }

    pub(super) fn currency(&self) -> Result<Currency, Fault> {
        self.parse_currency(self.required(&self.table.currency, &self.layout.currency, "currency")?)
    }

    /// Currency of declared totals that have a column of their own for it.
    pub(super) fn declared_currency(&self) -> Result<Option<Currency>, Fault> {
        let Some(column) = self.table.declared.currency else { return Ok(None) };
        self.parse_currency(self.record.get(column)).map(Some)
    }

    fn parse_currency(&self, code: &str) -> Result<Currency, Fault> {
        Currency::parse(code).map_err(|error| self.fault(error.to_string(), "correct the currency"))
    }

    /// Whom the record names; `None` where it leaves that to its batch.
    pub(super) fn merchant(&self) -> Result<Option<&'a str>, Fault> {
        let (columns, rule) = (&self.table.merchant, &self.layout.merchant);
        if self.layout.blank_merchant_is_batchs && self.first_filled(columns, rule).is_none() {
            return Ok(None);
        }
        let merchant = self.required(columns, rule, "merchant")?;
        key::check(merchant, "merchant", key::MAX_MERCHANT_BYTES, self.record.line)?;
        Ok(Some(merchant))
    }

    /// Tells the batch which date the record names, if it names one.
    pub(super) fn tell_date(&self, type_word: &str, batch: u32, batches: &mut Batches<'_>) -> Result<(), Fault> {
        let rule = &self.layout.date;
        let filled = self.table.date.iter().map(|column| self.record.get(*column)).find(|text| !blank(text));
        let Some(text) = filled else { return Ok(()) };
        let parsed = NaiveDateTime::parse_from_str(text, &rule.format)
            .map(|instant| instant.date())
            .or_else(|_| NaiveDate::parse_from_str(text, &rule.format));
        let date = parsed.ok().filter(|date| key::DATES.contains(date)).ok_or_else(|| {
            let what = format!("{text:?} is not a date (profile {} expects {})", self.profile, rule.format);
            self.fault(what, "correct the date, or business_date.format in the profile")
        })?;
        if rule.same {
            return batches.date_same(batch, date, self.record.line);
        }
        let decisive = rule.decisive_types.iter().any(|word| word == type_word);
        batches.date_latest(batch, Dated { decisive, date });
        Ok(())
    }

    /// What a record of totals declares.
    pub(super) fn declared(&self, currency: Currency) -> Result<Declared, Fault> {
        let positions = &self.table.declared;
        let amount = |column: Option<usize>, measure| -> Result<Option<i64>, Fault> {
            let Some(number) = column.map(|column| self.number(column, currency)).transpose()?.flatten() else { return Ok(None) };
            let total = if self.layout.amounts.negates(measure) { -number } else { number };
            self.layout.units.declared_minor(total, currency, self.record.line).map(Some)
        };
        Ok(Declared {
            items: positions.items.map(|column| self.count(column)).transpose()?.flatten(),
            gross_minor: amount(positions.gross, MeasureName::Gross)?,
            fee_minor: amount(positions.fee, MeasureName::Fee)?,
            net_minor: amount(positions.net, MeasureName::Net)?,
            ..Declared::default()
        })
    }

    /// The amount in a column, in whole units of its currency; `None` where the field is empty (not where it is blank).
    pub(super) fn number(&self, column: usize, currency: Currency) -> Result<Option<Decimal>, Fault> {
        let text = self.record.get(column);
        if text.is_empty() {
            return Ok(None);
        }
        let numbers = &self.layout.numbers;
        let number = numbers.parse(text).and_then(|number| self.layout.units.major(number, currency));
        number.map(Some).ok_or_else(|| {
            let expected = numbers.example();
            let what = format!("{text:?} is not an amount (profile {} expects e.g. {expected})", self.profile);
            self.fault(what, "correct the amount, or [numbers] in the profile")
        })
    }

    fn count(&self, column: usize) -> Result<Option<i64>, Fault> {
        let text = self.record.get(column);
        if text.is_empty() {
            return Ok(None);
        }
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        let count = text.parse().ok().filter(|_| digits);
        count.map(Some).ok_or_else(|| self.fault(format!("{text:?} is not a number of lines"), "write digits only"))
    }

    fn first_filled(&self, columns: &[usize], fallback: &'a Fallback) -> Option<&'a str> {
        let filled = columns.iter().map(|column| self.record.get(*column)).find(|text| !blank(text));
        filled.or(fallback.default.as_deref())
    }

    fn required(&self, columns: &[usize], fallback: &'a Fallback, what: &str) -> Result<&'a str, Fault> {
        self.first_filled(columns, fallback).ok_or_else(|| {
            let what = format!("no {what} in {:?} (profile {} has no default)", fallback.columns, self.profile);
            self.fault(what, "correct the file, or give the profile a default")
        })
    }
}
