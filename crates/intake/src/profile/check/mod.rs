//! From what a TOML says to a profile that makes sense, or a sentence about why it does not. Needs `sections.rs`, `together.rs`.

mod sections;
mod together;

use super::csv::{CsvLayout, RowType};
use super::raw::{Format, RawBlank, RawBlankMerchant, RawProfile};
use super::{Layout, Profile, Remittance};
use domain::item::FeeMode;
use std::collections::{BTreeMap, BTreeSet};

type Checked<T> = Result<T, String>;

/// What each word of the type column means.
type Types = BTreeMap<String, RowType>;

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
        ("encoding", raw.encoding.is_some()),
        ("fold_case", !raw.fold_case.is_empty()),
        ("numbers", raw.numbers.is_some()),
        ("preamble", raw.preamble.is_some()),
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
    let (numbers, units) = sections::numbers(raw.numbers.take().unwrap_or_default())?;
    let delimiter = raw.delimiter.unwrap_or(',');
    if !matches!(delimiter, ',' | ';' | '\t' | '|' | ':') {
        return Err(format!("delimiter {delimiter:?} is not one of , ; | : and tab"));
    }
    let batch = sections::batch(need("[batch]", raw.batch.take())?)?;
    let identity = need("[identity]", raw.identity.take())?;
    let (type_column, mut types) = sections::types(need("[types]", raw.types.take())?)?;
    let declared = sections::declared(raw.declared.take(), &mut types)?;
    let merchant = need("[merchant]", raw.merchant.take())?;
    let blank_merchant_is_batchs = merchant.blank == RawBlankMerchant::Batch;
    let currency = need("[currency]", raw.currency.take())?;
    let layout = CsvLayout {
        delimiter,
        encoding: raw.encoding.unwrap_or_default(),
        numbers,
        units,
        fold_case: std::mem::take(&mut raw.fold_case),
        preamble: raw.preamble.take().map(sections::preamble).transpose()?,
        batch,
        date: sections::date(need("[business_date]", raw.business_date.take())?, &types)?,
        type_column,
        merchant: sections::fallback("merchant", merchant.table, merchant.columns, merchant.default)?,
        blank_merchant_is_batchs,
        currency: sections::fallback("currency", currency.table, currency.columns, currency.default)?,
        amounts: sections::amounts(need("[amounts]", raw.amounts.take())?)?,
        identity_columns: sections::identity_columns(identity.columns, &types)?,
        blank_identity_is_content: identity.blank == RawBlank::Content,
        checks: raw.check.drain(..).map(|check| sections::row_check(check, &types)).collect::<Checked<_>>()?,
        types,
        declared,
    };
    together::fit(&layout, raw.remittance)?;
    Ok(layout)
}

fn need<T>(section: &str, value: Option<T>) -> Checked<T> {
    value.ok_or_else(|| format!("{section} is missing: a CSV profile needs it"))
}

/// Names of columns: one at least, none blank, none twice.
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
