//! CSV by profile: the header is looked up once, every row becomes a line, a total or nothing. Needs `preamble.rs`, `row.rs`.

mod cells;
mod columns;
mod preamble;
mod row;
mod split;

use crate::batches::{Batches, Identity};
use crate::error::Fault;
use crate::profile::Profile;
use crate::profile::csv::{CsvLayout, ItemType, RowType, Table};
use crate::source::Source;
use cells::Cells;
use columns::Header;
use domain::item::Item;
use domain::money::format_minor;
use preamble::Preamble;
use row::Row;
use split::Record;
use std::io::Read;

/// What helps where not even the header can be read.
const CHOOSE: &str = "choose the profile of this file, which names its encoding and its delimiter";

pub(crate) fn read(
    source: &mut Source<impl Read>,
    profile: &Profile,
    layout: &CsvLayout,
    batches: &mut Batches<'_>,
) -> Result<(), Fault> {
    let mut record = Record::default();
    if !record.read(source, layout.delimiter).map_err(|fault| fault.with_remedy(CHOOSE))? {
        return Err(Fault::at(source.line(), "the file has no header", "transfer it again"));
    }
    let preamble = match &layout.preamble {
        Some(rule) => preamble::read(source, profile, layout, rule, &mut record, batches)?,
        None => Preamble::default(),
    };
    let columns = Header { record: &record, layout, profile: &profile.name }.columns()?;
    while record.read(source, layout.delimiter)? {
        record.fold_case(&columns.table.folded);
        let cells = Cells { record: &record, table: &columns.table, layout, profile: &profile.name };
        take(&Row { cells, columns: &columns, preamble: &preamble }, batches)?;
    }
    Ok(())
}

fn take(row: &Row<'_>, batches: &mut Batches<'_>) -> Result<(), Fault> {
    row.cells.as_long_as_its_header()?;
    let row_type = row.row_type()?;
    if row_type == RowType::Ignored {
        return Ok(());
    }
    let Belongs { batch, named } = belongs(row, batches)?;
    row.cells.tell_date(row.type_word(), batch, batches)?;
    match row_type {
        RowType::Total => {
            let currency = row.cells.declared_currency()?.map_or_else(|| row.currency(), Ok)?;
            batches.declare(batch, currency, row.cells.declared(currency)?, row.line())
        }
        RowType::Item(item_type) => line(row, item_type, batch, named, batches),
        RowType::Ignored => Ok(()),
    }
}

/// Which batch a row belongs to, and whether it says so itself.
struct Belongs {
    batch: u32,
    named: bool,
}

fn belongs(row: &Row<'_>, batches: &mut Batches<'_>) -> Result<Belongs, Fault> {
    let (rule, line) = (&row.cells.layout.batch, row.line());
    if !rule.one_per_file {
        let id = row.cells.batch_id()?.unwrap_or_default();
        return Ok(Belongs { batch: batches.find_or_open(&id, line)?, named: true });
    }
    let batch = batches.only(line);
    if rule.table == Table::Preamble {
        return Ok(Belongs { batch, named: true });
    }
    let id = row.cells.batch_id()?;
    let named = id.is_some();
    if let Some(id) = id {
        batches.name(batch, id, line)?;
    }
    Ok(Belongs { batch, named })
}

fn line(row: &Row<'_>, item_type: ItemType, batch: u32, named: bool, batches: &mut Batches<'_>) -> Result<(), Fault> {
    let (item, exact) = row.item(item_type)?;
    for sentence in row.failed_checks(&exact, item.currency)? {
        batches.note_break(batch, sentence);
    }
    let identity = row.identity(item_type)?;
    if !named {
        batches.note_unnamed(batch, unnamed(row, &item, identity.as_deref()));
    }
    match identity {
        Some(key) => batches.push(batch, item, Identity::Named(key)),
        None => batches.push(batch, item, Identity::Content(&row.identity_texts())),
    }
}

/// Which line does not say that it is of this batch.
fn unnamed(row: &Row<'_>, item: &Item, identity: Option<&str>) -> String {
    let net = item.net_minor().map_or_else(String::new, |net| format_minor(net.into(), item.currency.exponent()));
    let who = identity.unwrap_or_else(|| row.type_word());
    let columns = row.cells.layout.batch.columns.join(" and ");
    format!("line {} ({who}, net {net} {}) names no {columns}", row.line(), item.currency)
}
