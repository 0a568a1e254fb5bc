//! From what a TOML says to a profile that makes sense, or a sentence about why it does not.

use super::csv::{Amount, Amounts, Check, CsvLayout, DateRule, DeclaredColumns, Fallback, RowType};
use super::raw::{
    Format, RawAmount, RawAmounts, RawBlank, RawCheck, RawDate, RawDateRule, RawDeclared, RawFallback, RawProfile, RawType,
    RawTypeIdentity, RawTypes,
};
use super::{Layout, Profile, Remittance};
use domain::item::{FeeMode, ItemKind};
use domain::money::Currency;
use std::collections::{BTreeMap, BTreeSet};

type Checked<T> = Result<T, String>;

pub(super) fn profile(mut raw: RawProfile, name: &str) -> Checked<Profile> {
    no_blank("source", [&raw.source])?;
    if raw.source.len() > 64 || raw.source.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err("source is part of every identity: at most 64 bytes, without blanks".to_owned());
    }
    if !(0..=1_000_000).contains(&raw.tolerance_minor) {
        return Err(format!("tolerance_minor is {}: give minor units from 0 to 1000000", raw.tolerance_minor));
    }
    if (raw.remittance, raw.fee_mode) == (Remittance::DeclaredNet, FeeMode::Charged) {
        // no batch with a fee would foot
        let what = "remittance is \"declared_net\", but fee_mode is \"charged\": then more than the net is paid out; read the payouts \
                    as lines (\"by_line\"), or leave the fee to the source (\"withheld\")";
        return Err(what.to_owned());
    }
    let layout = match raw.format {
        Format::Csv => Layout::Csv(Box::new(csv(&mut raw)?)),
        Format::CanonicalNdjson => fixed(&raw, Layout::Ndjson)?,
        Format::Nacha if raw.remittance != Remittance::Never => {
            return Err("remittance must be \"never\": a NACHA file moves money elsewhere".to_owned());
        }
        Format::Nacha => fixed(&raw, Layout::Nacha)?,
    };
    let RawProfile { source, fee_mode, tolerance_minor, remittance, .. } = raw;
    Ok(Profile { name: name.to_owned(), source, fee_mode, tolerance_minor, remittance, layout })
}

/// A format whose layout is fixed takes no sections.
fn fixed(raw: &RawProfile, layout: Layout) -> Checked<Layout> {
    let sections = [
        ("delimiter", raw.delimiter.is_some()),
        ("numbers", raw.numbers.is_some()),
        ("batch", raw.batch.is_some()),
        ("business_date", raw.business_date.is_some()),
        ("types", raw.types.is_some()),
        ("merchant", raw.merchant.is_some()),
        ("currency", raw.currency.is_some()),
        ("amounts", raw.amounts.is_some()),
        ("identity", raw.identity.is_some()),
        ("check", !raw.check.is_empty()),
        ("declared", raw.declared.is_some()),
    ];
    match sections.iter().find(|(_, given)| *given) {
        Some((section, _)) => Err(format!("{section} belongs to format = \"csv\": the layout of this format is fixed")),
        None => Ok(layout),
    }
}

fn csv(raw: &mut RawProfile) -> Checked<CsvLayout> {
    let numbers = raw.numbers.take().unwrap_or_default();
    let delimiter = raw.delimiter.unwrap_or(',');
    if !matches!(delimiter, ',' | ';' | '\t' | '|' | ':') {
        return Err(format!("delimiter {delimiter:?} is not one of , ; | : and tab"));
    }
    if !matches!(numbers.decimal, '.' | ',') {
        return Err(format!("numbers.decimal {:?} is neither . nor ,", numbers.decimal));
    }
    if let Some(group) = numbers.group.filter(|group| *group == numbers.decimal || !matches!(group, '.' | ',' | '\'' | ' ' | '_'))
    {
        return Err(format!("numbers.group {group:?} is the decimal separator, or not one of . , ' _ and blank"));
    }
    let batch_columns = list("batch.columns", need("[batch]", raw.batch.take())?.columns)?;
    let identity = need("[identity]", raw.identity.take())?;
    let (type_column, mut types) = types(need("[types]", raw.types.take())?)?;
    let declared = declared(raw.declared.take(), &mut types)?;
    let layout = CsvLayout {
        delimiter,
        numbers,
        batch_columns,
        date: date(need("[business_date]", raw.business_date.take())?, &types)?,
        type_column,
        merchant: fallback("merchant", need("[merchant]", raw.merchant.take())?)?,
        currency: fallback("currency", need("[currency]", raw.currency.take())?)?,
        amounts: amounts(need("[amounts]", raw.amounts.take())?)?,
        identity_columns: identity_columns(identity.columns, &types)?,
        blank_identity_is_content: identity.blank == RawBlank::Content,
        checks: raw.check.drain(..).map(|check| row_check(check, &types)).collect::<Checked<_>>()?,
        types,
        declared,
    };
    if let Some(code) = &layout.currency.default {
        Currency::parse(code).map_err(|error| format!("currency.default: {error}"))?;
    }
    separate(&layout)?;
    remits(raw.remittance, &layout)?;
    Ok(layout)
}

fn need<T>(section: &str, value: Option<T>) -> Checked<T> {
    value.ok_or_else(|| format!("{section} is missing: a CSV profile needs it"))
}

fn list(what: &str, columns: Vec<String>) -> Checked<Vec<String>> {
    if columns.is_empty() {
        return Err(format!("{what} is empty: name at least one column"));
    }
    no_blank(what, &columns)?;
    let mut seen = BTreeSet::new();
    match columns.iter().find(|column| !seen.insert(*column)) {
        Some(twice) => Err(format!("{what} names {twice:?} twice")),
        None => Ok(columns.clone()),
    }
}

fn no_blank<'a>(what: &str, names: impl IntoIterator<Item = &'a String>) -> Checked<()> {
    if names.into_iter().any(|name| name.trim().is_empty()) { Err(format!("{what} has a blank name")) } else { Ok(()) }
}

fn types(raw: RawTypes) -> Checked<(String, BTreeMap<String, RowType>)> {
    no_blank("types.column", [&raw.column])?;
    if raw.values.is_empty() {
        return Err("types.values is empty: say what the words of the type column mean".to_owned());
    }
    let item = |RawType { kind, identity }| RowType::Item { kind, identity_is_content: identity == RawTypeIdentity::Content };
    let mut types: BTreeMap<String, RowType> = raw.values.into_iter().map(|(word, raw)| (word, item(raw))).collect();
    for word in raw.ignore {
        if types.insert(word.clone(), RowType::Ignored).is_some() {
            return Err(format!("types.ignore names {word:?}, which is given twice"));
        }
    }
    Ok((raw.column, types))
}

fn declared(raw: Option<RawDeclared>, types: &mut BTreeMap<String, RowType>) -> Checked<DeclaredColumns> {
    let Some(RawDeclared { r#type, items, gross, fee, net }) = raw else { return Ok(DeclaredColumns::default()) };
    let columns = [&items, &gross, &fee, &net];
    if columns.iter().all(|column| column.is_none()) {
        return Err("declared names no column: rows of totals would bind nothing".to_owned());
    }
    list("declared", columns.into_iter().flatten().cloned().collect())?;
    if types.insert(r#type.clone(), RowType::Total).is_some() {
        return Err(format!("declared.type {type:?} is also a type of lines"));
    }
    Ok(DeclaredColumns { items, gross, fee, net })
}

fn date(raw: RawDate, types: &BTreeMap<String, RowType>) -> Checked<DateRule> {
    let columns = list("business_date.columns", raw.columns)?;
    known("business_date.types", &raw.types, types)?;
    let same = raw.rule == RawDateRule::Same;
    if same && !raw.types.is_empty() {
        return Err("business_date.types has no meaning with rule = \"same\": every row says the date".to_owned());
    }
    let bad = chrono::format::StrftimeItems::new(&raw.format).any(|item| item == chrono::format::Item::Error);
    if bad || !raw.format.contains('%') {
        return Err(format!("business_date.format {:?} is no date format such as %Y-%m-%d", raw.format));
    }
    Ok(DateRule { columns, format: raw.format, same, decisive_types: raw.types })
}

fn known(what: &str, words: &[String], types: &BTreeMap<String, RowType>) -> Checked<()> {
    match words.iter().find(|word| !types.contains_key(*word)) {
        Some(word) => Err(format!("{what} names {word:?}, which types.values does not have")),
        None => Ok(()),
    }
}

fn fallback(what: &str, raw: RawFallback) -> Checked<Fallback> {
    if raw.columns.is_empty() && raw.default.is_none() {
        return Err(format!("{what} has neither columns nor a default"));
    }
    if raw.default.as_ref().is_some_and(|default| default.trim().is_empty()) {
        return Err(format!("{what}.default is blank: leave it out, or name one"));
    }
    let columns = if raw.columns.is_empty() { raw.columns } else { list(&format!("{what}.columns"), raw.columns)? };
    Ok(Fallback { columns, default: raw.default })
}

fn amounts(raw: RawAmounts) -> Checked<Amounts> {
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

fn identity_columns(columns: Vec<String>, types: &BTreeMap<String, RowType>) -> Checked<Vec<String>> {
    let by_content = |row: &RowType| !matches!(row, RowType::Item { identity_is_content: false, .. });
    if columns.is_empty() && types.values().all(by_content) {
        return Ok(columns);
    }
    if columns.is_empty() {
        let what = "identity.columns is empty: name the columns that identify a row, or give every type identity = \"content\"";
        return Err(what.to_owned());
    }
    list("identity.columns", columns)
}

fn row_check(raw: RawCheck, types: &BTreeMap<String, RowType>) -> Checked<Check> {
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

/// A column of money cannot be counted twice, nor be a name, a date or an identity.
fn separate(layout: &CsvLayout) -> Checked<()> {
    let (one, other) = match &layout.amounts {
        Amounts::GrossFee { gross, fee } => (gross, fee),
        Amounts::GrossNet { gross, net } => (gross, net),
        Amounts::NetFee { net, fee } => (net, fee),
    };
    let texts = layout.batch_columns.iter().chain(&layout.date.columns).chain(&layout.merchant.columns);
    let texts = texts.chain(&layout.currency.columns).chain(&layout.identity_columns).chain([&layout.type_column]);
    let texts: BTreeSet<&str> = texts.map(String::as_str).collect();
    let mut seen = BTreeSet::new();
    for column in one.columns().into_iter().chain(other.columns()) {
        if !seen.insert(column) || texts.contains(column) {
            return Err(format!("column {column:?} is mapped twice: an amount needs a column of its own"));
        }
    }
    Ok(())
}

fn remits(remittance: Remittance, layout: &CsvLayout) -> Checked<()> {
    let remits = |row: &RowType| matches!(row, RowType::Item { kind: ItemKind::Remittance, .. });
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
