//! CSV by profile: the header is looked up once, every row becomes a line, a total or nothing. Needs `columns.rs`, `row.rs`.

mod columns;
mod row;
mod split;

use crate::batches::{Batches, Dated};
use crate::error::Fault;
use crate::profile::Profile;
use crate::profile::csv::{CsvLayout, RowType};
use crate::source::Source;
use chrono::NaiveDateTime;
use columns::Columns;
use row::{Row, blank};
use split::Record;
use std::io::Read;

pub(crate) fn read(
    source: &mut Source<impl Read>,
    profile: &Profile,
    layout: &CsvLayout,
    batches: &mut Batches<'_>,
) -> Result<(), Fault> {
    let mut record = Record::default();
    if !record.read(source, layout.delimiter).map_err(|fault| fault.with_remedy("choose the profile of this file"))? {
        return Err(Fault::at(source.line(), "the file has no header", "transfer it again"));
    }
    let columns = Columns::find(&record, layout, &profile.name)?;
    while record.read(source, layout.delimiter)? {
        let row = Row { record: &record, columns: &columns, layout, profile: &profile.name };
        take(&row, batches)?;
    }
    Ok(())
}

fn take(row: &Row<'_>, batches: &mut Batches<'_>) -> Result<(), Fault> {
    let line = row.record.line;
    if row.record.len() != row.columns.names.len() {
        let what = format!("the row has {} fields, the header {}", row.record.len(), row.columns.names.len());
        return Err(Fault::at(line, what, "check that the file is whole and the profile's delimiter is right"));
    }
    let row_type = row.row_type()?;
    if row_type == RowType::Ignored {
        return Ok(());
    }
    let batch = batches.find_or_open(&row.batch_id()?, line)?;
    date(row, batch, batches)?;
    match row_type {
        RowType::Total => {
            let currency = row.currency()?;
            batches.declare(batch, currency, row.declared(currency)?, line)
        }
        RowType::Item { kind, identity_is_content } => {
            let (mut item, exact) = row.item(kind)?;
            for sentence in row.failed_checks(&exact)? {
                batches.note_break(batch, sentence);
            }
            item.dedupe_key = match row.identity(identity_is_content)? {
                Some(key) => key,
                None => batches.content_key(batch, &item, &row.identity_texts()),
            };
            batches.push(batch, item)
        }
        RowType::Ignored => Ok(()),
    }
}

/// Tells the batch which date the row names, if it names one.
fn date(row: &Row<'_>, batch: u32, batches: &mut Batches<'_>) -> Result<(), Fault> {
    let rule = &row.layout.date;
    let filled = row.columns.date.iter().map(|column| row.record.get(*column)).find(|text| !blank(text));
    let Some(text) = filled else { return Ok(()) };
    let parsed = NaiveDateTime::parse_from_str(text, &rule.format)
        .map(|instant| instant.date())
        .or_else(|_| chrono::NaiveDate::parse_from_str(text, &rule.format));
    let date = parsed.ok().filter(|date| crate::key::DATES.contains(date)).ok_or_else(|| {
        let what = format!("{text:?} is not a date (profile {} expects {})", row.profile, rule.format);
        Fault::at(row.record.line, what, "correct the date, or business_date.format in the profile")
    })?;
    if rule.same {
        return batches.date_same(batch, date, row.record.line);
    }
    let decisive = rule.decisive_types.iter().any(|word| word == row.type_word());
    batches.date_latest(batch, Dated { decisive, date });
    Ok(())
}
