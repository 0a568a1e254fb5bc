//! Sections that make sense by themselves, and may contradict each other.

use super::{Checked, list};
use crate::profile::Remittance;
use crate::profile::csv::{CsvLayout, ItemType, RowType, Table};
use domain::item::ItemKind;
use domain::money::Currency;
use std::collections::BTreeSet;

pub(super) fn fit(layout: &CsvLayout, remittance: Remittance) -> Checked<()> {
    if let Some(code) = &layout.currency.default {
        Currency::parse(code).map_err(|error| format!("currency.default: {error}"))?;
    }
    separate(layout)?;
    remits(remittance, layout)?;
    tables(layout)?;
    blank_merchant(layout)?;
    fold_case(layout)
}

/// A column of money cannot be counted twice, nor be a name, a date or an identity.
fn separate(layout: &CsvLayout) -> Checked<()> {
    let texts = texts(layout);
    let mut seen = BTreeSet::new();
    for column in layout.amounts.given().into_iter().flat_map(|(_, amount)| amount.columns()) {
        if !seen.insert(column) || texts.contains(column) || of_rows(layout.date.table, &layout.date.columns).contains(&column) {
            return Err(format!("column {column:?} is mapped twice: an amount needs a column of its own"));
        }
    }
    Ok(())
}

/// Columns of the rows that hold names.
fn texts(layout: &CsvLayout) -> BTreeSet<&str> {
    let fallback = [&layout.merchant, &layout.currency].into_iter().flat_map(|from| of_rows(from.table, &from.columns));
    let texts = of_rows(layout.batch.table, &layout.batch.columns).into_iter().chain(fallback);
    texts.chain(layout.identity_columns.iter().map(String::as_str)).chain([layout.type_column.as_str()]).collect()
}

fn of_rows(table: Table, columns: &[String]) -> Vec<&str> {
    if table == Table::Rows { columns.iter().map(String::as_str).collect() } else { Vec::new() }
}

fn remits(remittance: Remittance, layout: &CsvLayout) -> Checked<()> {
    let remits = |row: &RowType| matches!(row, RowType::Item(ItemType { kind: ItemKind::Remittance, .. }));
    let has_lines = layout.types.values().any(remits);
    match remittance {
        Remittance::ByLine | Remittance::IfPresent if !has_lines => {
            Err("remittance is by line, but no type is of kind \"remittance\"".to_owned())
        }
        Remittance::Never if has_lines => Err("remittance is \"never\", but a type is of kind \"remittance\"".to_owned()),
        Remittance::DeclaredNet if layout.declared.net.is_none() => {
            Err("remittance is \"declared_net\", but [declared] names no column net".to_owned())
        }
        _ => Ok(()),
    }
}

/// What stands in a preamble speaks of the whole file.
fn tables(layout: &CsvLayout) -> Checked<()> {
    let sections = [
        ("batch", layout.batch.table),
        ("business_date", layout.date.table),
        ("merchant", layout.merchant.table),
        ("currency", layout.currency.table),
        ("declared", layout.declared.table),
    ];
    let used = sections.iter().find(|(_, table)| *table == Table::Preamble);
    match (&layout.preamble, used) {
        (None, None) => return Ok(()),
        (None, Some((section, _))) => {
            return Err(format!("{section}.table is \"preamble\", but there is no [preamble] that says what it looks like"));
        }
        (Some(_), None) => return Err("[preamble] is there, but no section has table = \"preamble\"".to_owned()),
        (Some(_), Some(_)) => {}
    }
    if !layout.batch.one_per_file {
        return Err("a preamble speaks of the whole file: batch.rule must be \"one_per_file\"".to_owned());
    }
    let rows_say_currency = layout.currency.table == Table::Rows && !layout.currency.columns.is_empty();
    if layout.declared.table == Table::Preamble && layout.declared.currency.is_none() && rows_say_currency {
        return Err("declared.currency is missing: in which column of the preamble is the currency of its totals?".to_owned());
    }
    Ok(())
}

fn blank_merchant(layout: &CsvLayout) -> Checked<()> {
    let merchant = &layout.merchant;
    if !layout.blank_merchant_is_batchs {
        return Ok(());
    }
    if merchant.default.is_some() {
        return Err("merchant.default and merchant.blank = \"batch\" both say whom a blank row is owed to: keep one".to_owned());
    }
    if merchant.table == Table::Preamble {
        return Err("merchant.blank = \"batch\" has no meaning for a preamble: its merchant is that of every row".to_owned());
    }
    Ok(())
}

/// Only names can be written in several ways; and words that are never read would silently never match.
fn fold_case(layout: &CsvLayout) -> Checked<()> {
    if layout.fold_case.is_empty() {
        return Ok(());
    }
    list("fold_case", layout.fold_case.clone())?;
    let mut names = texts(layout);
    let fallback = layout.merchant.columns.iter().chain(&layout.currency.columns).chain(&layout.batch.columns);
    names.extend(fallback.map(String::as_str));
    names.extend(layout.checks.iter().filter_map(|check| check.when_equal.as_ref()).flatten().map(String::as_str));
    let tell = layout.preamble.as_ref().and_then(|preamble| preamble.tell.as_ref());
    names.extend(tell.map(|(column, _)| column).into_iter().chain(&layout.declared.currency).map(String::as_str));
    if let Some(other) = layout.fold_case.iter().find(|column| !names.contains(column.as_str())) {
        return Err(format!("fold_case names {other:?}, which no key reads as a name"));
    }
    let told = layout.types.keys().map(|word| (&layout.type_column, word)).chain(tell.map(|(column, word)| (column, word)));
    let never = |(column, word): &(&String, &String)| layout.fold_case.contains(column) && **word != word.to_ascii_lowercase();
    match told.into_iter().find(never) {
        Some((column, word)) => {
            Err(format!("fold_case names {column:?}, so {word:?} is never read there: write it in small letters"))
        }
        None => Ok(()),
    }
}
