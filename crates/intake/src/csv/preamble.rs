//! The small table that some files have before their rows: a header of its own and a few records that speak of the whole file.
//! Needs `cells.rs`, `columns.rs`.

use super::cells::Cells;
use super::columns::{Header, TableColumns};
use super::split::Record;
use crate::batches::Batches;
use crate::error::Fault;
use crate::profile::Profile;
use crate::profile::csv::{CsvLayout, PreambleRule, Table};
use crate::source::Source;
use domain::money::Currency;
use std::io::Read;

/// What a preamble says for every row.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Preamble {
    pub(super) currency: Option<Currency>,
    pub(super) merchant: Option<String>,
}

/// Reads the preamble, whose header is in `record`, and leaves the header of the rows there.
pub(super) fn read(
    source: &mut Source<impl Read>,
    profile: &Profile,
    layout: &CsvLayout,
    rule: &PreambleRule,
    record: &mut Record,
    batches: &mut Batches<'_>,
) -> Result<Preamble, Fault> {
    let header = Header { record, layout, profile: &profile.name };
    let tell = rule.tell.as_ref().map(|(column, word)| Ok((header.one(column)?, word.as_str()))).transpose()?;
    let table = header.table(Table::Preamble)?;
    let mut said: Option<Preamble> = None;
    loop {
        if !record.read(source, layout.delimiter)? {
            let what = format!("the file ends in its preamble: no header with the column {:?} follows", layout.type_column);
            return Err(Fault::at(source.line(), what, "check that the file is whole and the profile is its own"));
        }
        if record.iter().any(|field| field == layout.type_column) {
            let line = record.line;
            let missing = || Fault::at(line, "the preamble has no record: the rows begin here", "check that the file is whole");
            return said.ok_or_else(missing);
        }
        record.fold_case(&table.folded);
        let cells = Cells { record, table: &table, layout, profile: &profile.name };
        let says = take(&cells, tell, batches)?;
        if said.as_ref().is_some_and(|said| *said != says) {
            let what = "the records of the preamble name different currencies or merchants, and the rows name none";
            return Err(cells.fault(what, "split the file, or read the currency or merchant from the rows"));
        }
        said = Some(says);
    }
}

fn take(cells: &Cells<'_>, tell: Option<(usize, &str)>, batches: &mut Batches<'_>) -> Result<Preamble, Fault> {
    let layout = cells.layout;
    cells.as_long_as_its_header()?;
    if let Some((column, word)) = tell
        && cells.record.get(column) != word
    {
        let (name, found) = (name_of(cells.table, column), cells.record.get(column));
        let what = format!("unknown {name} {found:?} before the header of the rows (profile {} expects {word})", cells.profile);
        return Err(cells.fault(what, "check that the file is whole, or correct preamble.type in the profile"));
    }
    let batch = batches.only(cells.record.line);
    if layout.batch.table == Table::Preamble {
        let unnamed = || cells.fault(format!("{:?} is blank: the file names no batch", layout.batch.columns), "correct the file");
        batches.name(batch, cells.batch_id()?.ok_or_else(unnamed)?, cells.record.line)?;
    }
    cells.tell_date("", batch, batches)?;
    let currency = if layout.currency.table == Table::Preamble { Some(cells.currency()?) } else { None };
    let merchant = if layout.merchant.table == Table::Preamble { cells.merchant()? } else { None };
    if layout.declared.table == Table::Preamble {
        let of_totals = match (cells.declared_currency()?, currency) {
            (Some(own), _) => own,
            (None, Some(currency)) => currency,
            // neither: the rows have a constant one, the profile was checked for that
            (None, None) => cells.currency()?,
        };
        batches.declare(batch, of_totals, cells.declared(of_totals)?, cells.record.line)?;
    }
    Ok(Preamble { currency, merchant: merchant.map(str::to_owned) })
}

fn name_of(table: &TableColumns, column: usize) -> &str {
    table.names.get(column).map_or("?", String::as_str)
}
