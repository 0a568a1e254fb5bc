//! A profile as its TOML says it, unchecked. `check.rs` makes a `Profile` of it.

use super::Remittance;
use super::csv::MeasureName;
use crate::number::NumberFormat;
use domain::item::{FeeMode, ItemKind};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawProfile {
    pub(crate) format: Format,
    pub(crate) source: String,
    pub(crate) fee_mode: FeeMode,
    pub(crate) remittance: Remittance,
    #[serde(default)]
    pub(crate) tolerance_minor: i64,
    // everything below belongs to `format = "csv"`
    pub(crate) delimiter: Option<char>,
    pub(crate) numbers: Option<NumberFormat>,
    pub(crate) batch: Option<RawBatch>,
    pub(crate) business_date: Option<RawDate>,
    pub(crate) types: Option<RawTypes>,
    pub(crate) merchant: Option<RawFallback>,
    pub(crate) currency: Option<RawFallback>,
    pub(crate) amounts: Option<RawAmounts>,
    pub(crate) identity: Option<RawIdentity>,
    #[serde(default)]
    pub(crate) check: Vec<RawCheck>,
    pub(crate) declared: Option<RawDeclared>,
}

#[derive(Deserialize, PartialEq, Eq, Clone, Copy)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Format {
    Csv,
    CanonicalNdjson,
    Nacha,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawBatch {
    pub(crate) columns: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawDate {
    pub(crate) columns: Vec<String>,
    pub(crate) format: String,
    pub(crate) rule: RawDateRule,
    #[serde(default)]
    pub(crate) types: Vec<String>,
}

#[derive(Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RawDateRule {
    Same,
    Latest,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawTypes {
    pub(crate) column: String,
    #[serde(default)]
    pub(crate) ignore: Vec<String>,
    pub(crate) values: BTreeMap<String, RawType>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawType {
    pub(crate) kind: ItemKind,
    #[serde(default)]
    pub(crate) identity: RawTypeIdentity,
}

#[derive(Deserialize, Default, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RawTypeIdentity {
    #[default]
    Columns,
    Content,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawFallback {
    #[serde(default)]
    pub(crate) columns: Vec<String>,
    pub(crate) default: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawAmounts {
    pub(crate) gross: Option<RawAmount>,
    pub(crate) fee: Option<RawAmount>,
    pub(crate) net: Option<RawAmount>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawAmount {
    #[serde(default)]
    pub(crate) columns: Vec<String>,
    pub(crate) debit: Option<String>,
    pub(crate) credit: Option<String>,
    #[serde(default)]
    pub(crate) negate: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawIdentity {
    pub(crate) columns: Vec<String>,
    #[serde(default)]
    pub(crate) blank: RawBlank,
}

#[derive(Deserialize, Default, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RawBlank {
    #[default]
    Error,
    Content,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawCheck {
    pub(crate) says: String,
    #[serde(default)]
    pub(crate) types: Vec<String>,
    #[serde(default)]
    pub(crate) when_equal: Vec<String>,
    pub(crate) amount: RawAmount,
    pub(crate) equals: MeasureName,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawDeclared {
    pub(crate) r#type: String,
    pub(crate) items: Option<String>,
    pub(crate) gross: Option<String>,
    pub(crate) fee: Option<String>,
    pub(crate) net: Option<String>,
}
