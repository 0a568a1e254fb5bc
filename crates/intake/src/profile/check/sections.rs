//! Each section of a CSV profile by itself.

use super::{Checked, Types, list, no_blank};
use crate::money::Units;
use crate::number::NumberFormat;
use crate::profile::csv::{
    Amount, Amounts, BatchRule, Check, DateRule, DeclaredColumns, Fallback, ItemType, PreambleRule, RowType, Table,
};
use crate::profile::raw::{
    RawAmount, RawAmounts, RawBatch, RawBatchRule, RawCheck, RawDate, RawDateRule, RawDeclared, RawNumbers, RawPreamble, RawType,
    RawTypeIdentity, RawTypes, RawUnit,
};
use domain::money::Currency;
use std::collections::BTreeMap;

/// Finer is no remainder: those are kept in millionths.
const MAX_EXPONENT: u32 = 6;

pub(super) fn numbers(raw: RawNumbers) -> Checked<(NumberFormat, Units)> {
    let minor = raw.unit == RawUnit::Minor;
    let decimal = raw.decimal.unwrap_or('.');
    if minor && raw.decimal.is_some() {
        return Err("numbers.decimal has no meaning with unit = \"minor\": amounts are whole numbers".to_owned());
    }
    if !matches!(decimal, '.' | ',') {
        return Err(format!("numbers.decimal {decimal:?} is neither . nor ,"));
    }
    let is_decimal = |group: char| !minor && group == decimal;
    if let Some(group) = raw.group.filter(|group| is_decimal(*group) || !matches!(group, '.' | ',' | '\'' | ' ' | '_')) {
        return Err(format!("numbers.group {group:?} is the decimal separator, or not one of . , ' _ and blank"));
    }
    let numbers = NumberFormat { decimal: (!minor).then_some(decimal), group: raw.group, minus: raw.minus };
    Ok((numbers, Units { minor, exponents: exponents(raw.exponents)?, round: raw.round }))
}

fn exponents(raw: BTreeMap<String, u32>) -> Checked<BTreeMap<Currency, u32>> {
    let mut exponents = BTreeMap::new();
    for (code, exponent) in raw {
        let currency = Currency::parse(&code).map_err(|error| format!("numbers.exponents: {error}"))?;
        if exponent > MAX_EXPONENT {
            return Err(format!("numbers.exponents.{code} is {exponent}: give a number of decimals from 0 to {MAX_EXPONENT}"));
        }
        if exponents.insert(currency, exponent).is_some() {
            return Err(format!("numbers.exponents names {currency} twice"));
        }
    }
    Ok(exponents)
}

pub(super) fn preamble(raw: RawPreamble) -> Checked<PreambleRule> {
    match (raw.column, raw.r#type) {
        (None, None) => Ok(PreambleRule { tell: None }),
        (Some(column), Some(word)) => {
            no_blank("preamble.column", [&column])?;
            Ok(PreambleRule { tell: Some((column, word)) })
        }
        _ => Err("preamble needs both column and type: which word stands where in its records (or neither)".to_owned()),
    }
}

pub(super) fn batch(raw: RawBatch) -> Checked<BatchRule> {
    let one_per_file = raw.rule == RawBatchRule::OnePerFile;
    Ok(BatchRule { table: raw.table, columns: list("batch.columns", raw.columns)?, one_per_file })
}

pub(super) fn types(raw: RawTypes) -> Checked<(String, Types)> {
    no_blank("types.column", [&raw.column])?;
    if raw.values.is_empty() {
        return Err("types.values is empty: say what the words of the type column mean".to_owned());
    }
    let item = |RawType { kind, identity, negate }| {
        RowType::Item(ItemType { kind, identity_is_content: identity == RawTypeIdentity::Content, negate })
    };
    let mut types: Types = raw.values.into_iter().map(|(word, raw)| (word, item(raw))).collect();
    for word in raw.ignore {
        if types.insert(word.clone(), RowType::Ignored).is_some() {
            return Err(format!("types.ignore names {word:?}, which is given twice"));
        }
    }
    Ok((raw.column, types))
}

pub(super) fn declared(raw: Option<RawDeclared>, types: &mut Types) -> Checked<DeclaredColumns> {
    let Some(RawDeclared { table, r#type, currency, items, gross, fee, net }) = raw else {
        return Ok(DeclaredColumns::default());
    };
    let columns = [&items, &gross, &fee, &net];
    if columns.iter().all(|column| column.is_none()) {
        return Err("declared names no column: rows of totals would bind nothing".to_owned());
    }
    list("declared", columns.into_iter().chain([&currency]).flatten().cloned().collect())?;
    match (table, r#type) {
        (Table::Rows, Some(word)) => {
            if types.insert(word.clone(), RowType::Total).is_some() {
                return Err(format!("declared.type {word:?} is also a type of lines"));
            }
        }
        (Table::Rows, None) => return Err("declared.type is missing: by which word are rows of totals told?".to_owned()),
        (Table::Preamble, None) => {}
        (Table::Preamble, Some(_)) => {
            return Err("declared.type tells rows of totals; those of a preamble are told by preamble.type".to_owned());
        }
    }
    Ok(DeclaredColumns { table, currency, items, gross, fee, net })
}

pub(super) fn date(raw: RawDate, types: &Types) -> Checked<DateRule> {
    let columns = list("business_date.columns", raw.columns)?;
    known("business_date.types", &raw.types, types)?;
    let same = raw.rule == RawDateRule::Same;
    if same && !raw.types.is_empty() {
        return Err("business_date.types has no meaning with rule = \"same\": every row says the date".to_owned());
    }
    if raw.table == Table::Preamble && !raw.types.is_empty() {
        return Err("business_date.types are types of rows, but the date is in the preamble".to_owned());
    }
    let bad = chrono::format::StrftimeItems::new(&raw.format).any(|item| item == chrono::format::Item::Error);
    if bad || !raw.format.contains('%') {
        return Err(format!("business_date.format {:?} is no date format such as %Y-%m-%d", raw.format));
    }
    Ok(DateRule { table: raw.table, columns, format: raw.format, same, decisive_types: raw.types })
}

fn known(what: &str, words: &[String], types: &Types) -> Checked<()> {
    match words.iter().find(|word| !types.contains_key(*word)) {
        Some(word) => Err(format!("{what} names {word:?}, which types.values does not have")),
        None => Ok(()),
    }
}

pub(super) fn fallback(what: &str, table: Table, columns: Vec<String>, default: Option<String>) -> Checked<Fallback> {
    if columns.is_empty() && default.is_none() {
        return Err(format!("{what} has neither columns nor a default"));
    }
    if default.as_ref().is_some_and(|default| default.trim().is_empty()) {
        return Err(format!("{what}.default is blank: leave it out, or name one"));
    }
    let columns = if columns.is_empty() { columns } else { list(&format!("{what}.columns"), columns)? };
    Ok(Fallback { table, columns, default })
}

pub(super) fn amounts(raw: RawAmounts) -> Checked<Amounts> {
    let read = |what, raw: Option<RawAmount>| raw.map(|raw| amount(what, raw)).transpose();
    match (read("amounts.gross", raw.gross)?, read("amounts.fee", raw.fee)?, read("amounts.net", raw.net)?) {
        (Some(gross), Some(fee), None) => Ok(Amounts::GrossFee { gross, fee }),
        (Some(gross), None, Some(net)) => Ok(Amounts::GrossNet { gross, net }),
        (None, Some(fee), Some(net)) => Ok(Amounts::NetFee { net, fee }),
        _ => Err("amounts must give two of gross, fee and net: the third follows, and a [[check]] can compare it".to_owned()),
    }
}

fn amount(what: &str, raw: RawAmount) -> Checked<Amount> {
    match (raw.debit, raw.credit) {
        (None, None) => Ok(Amount::Sum { columns: list(&format!("{what}.columns"), raw.columns)?, negate: raw.negate }),
        (Some(debit), Some(credit)) if raw.columns.is_empty() && !raw.negate && debit != credit => {
            no_blank(what, [&debit, &credit])?;
            Ok(Amount::Sides { debit, credit })
        }
        _ => Err(format!("{what} must be either columns (signed, with negate if need be) or two columns debit and credit")),
    }
}

pub(super) fn identity_columns(columns: Vec<String>, types: &Types) -> Checked<Vec<String>> {
    let by_content = |row: &RowType| !matches!(row, RowType::Item(ItemType { identity_is_content: false, .. }));
    if columns.is_empty() && types.values().all(by_content) {
        return Ok(columns);
    }
    if columns.is_empty() {
        let what = "identity.columns is empty: name the columns that identify a row, or give every type identity = \"content\"";
        return Err(what.to_owned());
    }
    list("identity.columns", columns)
}

pub(super) fn row_check(raw: RawCheck, types: &Types) -> Checked<Check> {
    no_blank("check.says", [&raw.says])?;
    known("check.types", &raw.types, types)?;
    let when_equal = match <[String; 2]>::try_from(raw.when_equal) {
        Ok(pair) => Some(pair),
        Err(none) if none.is_empty() => None,
        Err(_) => return Err("check.when_equal must name two columns".to_owned()),
    };
    let amount = amount("check.amount", raw.amount)?;
    Ok(Check { says: raw.says, types: raw.types, when_equal, amount, equals: raw.equals })
}
