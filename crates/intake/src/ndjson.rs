//! The canonical format as one JSON object a line; `config/profiles/README.md` has the fields. Needs `money.rs`, `number.rs`.
//!
//! Amounts are strings: a JSON number is a float to most who write and read one.

use crate::batches::{Batches, Identity};
use crate::error::Fault;
use crate::money::{Exact, PLAIN};
use crate::number::NumberFormat;
use crate::profile::Profile;
use crate::source::Source;
use crate::{key, profile};
use chrono::NaiveDate;
use domain::item::ItemKind;
use domain::money::Currency;
use domain::totals::Declared;
use rust_decimal::Decimal;
use serde::Deserialize;
use std::borrow::Cow;
use std::io::Read;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a JSON object")]
struct Line<'a> {
    #[serde(borrow)]
    batch_id: Cow<'a, str>,
    business_date: NaiveDate,
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    merchant: Cow<'a, str>,
    #[serde(borrow)]
    currency: Cow<'a, str>,
    #[serde(borrow, default)]
    gross: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    fee: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    id: Cow<'a, str>,
    /// Of a total: number of lines.
    #[serde(default)]
    items: Option<u32>,
}

const NUMBERS: NumberFormat = NumberFormat::PLAIN;

pub(crate) fn read(source: &mut Source<impl Read>, profile: &Profile, batches: &mut Batches<'_>) -> Result<(), Fault> {
    while let Some((number, text)) = source.line_text()? {
        if text.trim().is_empty() {
            continue;
        }
        let line: Line<'_> = serde_json::from_str(&text).map_err(|error| {
            let what = format!("{} (profile {} expects one JSON object a line)", reason(&error), profile.name);
            Fault::at(number, what, "correct the line, or choose the profile of this file")
        })?;
        take(&line, number, batches)?;
    }
    Ok(())
}

/// The parser's words without its own line number: it only ever sees one line.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" at line ") {
        Some((reason, _)) => format!("{reason} at byte {}", error.column()),
        None => text,
    }
}

fn take(line: &Line<'_>, number: u64, batches: &mut Batches<'_>) -> Result<(), Fault> {
    if line.batch_id.trim().is_empty() {
        return Err(Fault::at(number, "batch_id is blank: the line belongs to no batch", "correct the file"));
    }
    let currency =
        Currency::parse(&line.currency).map_err(|error| Fault::at(number, error.to_string(), "correct the currency"))?;
    let batch = batches.find_or_open(&key::join([&*line.batch_id]), number)?;
    if !key::DATES.contains(&line.business_date) {
        let what = format!("business_date {} is no date of business (1970-01-01 to 9999-12-31)", line.business_date);
        return Err(Fault::at(number, what, "correct the date"));
    }
    batches.date_same(batch, line.business_date, number)?;
    if line.kind == profile::TOTAL {
        let minor =
            |text: Option<&str>| amount(text, number)?.map(|total| PLAIN.declared_minor(total, currency, number)).transpose();
        let (gross_minor, fee_minor) = (minor(line.gross.as_deref())?, minor(line.fee.as_deref())?);
        let declared = Declared { items: line.items.map(i64::from), gross_minor, fee_minor, ..Declared::default() };
        return batches.declare(batch, currency, declared, number);
    }
    item(line, number, currency, batch, batches)
}

fn item(line: &Line<'_>, number: u64, currency: Currency, batch: u32, batches: &mut Batches<'_>) -> Result<(), Fault> {
    let kind: ItemKind = line
        .kind
        .parse()
        .map_err(|error: domain::item::UnknownKind| Fault::at(number, format!("kind {error}, or total"), "correct the kind"))?;
    if line.items.is_some() {
        return Err(Fault::at(number, "items belongs to a total", "leave it out"));
    }
    if line.merchant.trim().is_empty() {
        return Err(Fault::at(number, "merchant is blank", "name whom the line is owed to"));
    }
    key::check(&line.merchant, "merchant", key::MAX_MERCHANT_BYTES, number)?;
    let gross = amount(line.gross.as_deref(), number)?;
    let gross = gross.ok_or_else(|| Fault::at(number, "gross is missing", "give every line its gross amount"))?;
    let exact = Exact::gross_fee(gross, amount(line.fee.as_deref(), number)?.unwrap_or_default(), number)?;
    let item = exact.item(kind, &line.merchant, currency, &PLAIN, number)?;
    if line.id.trim().is_empty() {
        return batches.push(batch, item, Identity::Content(&[&line.id]));
    }
    let joined = key::join([&*line.id]);
    key::check(&joined, "id", key::MAX_KEY_BYTES, number)?;
    batches.push(batch, item, Identity::Named(joined))
}

/// An absent or empty amount is `None`.
fn amount(text: Option<&str>, number: u64) -> Result<Option<Decimal>, Fault> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(None) };
    NUMBERS.parse(text).map(Some).ok_or_else(|| {
        let what = format!("{text:?} is not an amount (a string such as {:?} is expected)", NUMBERS.example());
        Fault::at(number, what, "correct the amount")
    })
}
