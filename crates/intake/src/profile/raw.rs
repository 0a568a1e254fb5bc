//! A profile as its TOML says it, unchecked. `check` makes a `Profile` of it. A test holds that config/profiles/README.md
//! explains every key and every word that stands here.

use super::Remittance;
use super::csv::{MeasureName, Table};
use crate::number::Minus;
use crate::text::Encoding;
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
    pub(crate) encoding: Option<Encoding>,
    #[serde(default)]
    pub(crate) fold_case: Vec<String>,
    pub(crate) numbers: Option<RawNumbers>,
    pub(crate) preamble: Option<RawPreamble>,
    pub(crate) batch: Option<RawBatch>,
    pub(crate) business_date: Option<RawDate>,
    pub(crate) types: Option<RawTypes>,
    pub(crate) merchant: Option<RawMerchant>,
    pub(crate) currency: Option<RawCurrency>,
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

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawNumbers {
    pub(crate) decimal: Option<char>,
    pub(crate) group: Option<char>,
    #[serde(default)]
    pub(crate) minus: Minus,
    #[serde(default)]
    pub(crate) unit: RawUnit,
    #[serde(default)]
    pub(crate) exponents: BTreeMap<String, u32>,
    #[serde(default)]
    pub(crate) round: bool,
}

#[derive(Deserialize, Default, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RawUnit {
    #[default]
    Major,
    Minor,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawPreamble {
    pub(crate) column: Option<String>,
    pub(crate) r#type: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawBatch {
    #[serde(default)]
    pub(crate) table: Table,
    pub(crate) columns: Vec<String>,
    #[serde(default)]
    pub(crate) rule: RawBatchRule,
}

#[derive(Deserialize, Default, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RawBatchRule {
    #[default]
    ByRow,
    OnePerFile,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawDate {
    #[serde(default)]
    pub(crate) table: Table,
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
    #[serde(default)]
    pub(crate) negate: bool,
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
pub(crate) struct RawMerchant {
    #[serde(default)]
    pub(crate) table: Table,
    #[serde(default)]
    pub(crate) columns: Vec<String>,
    pub(crate) default: Option<String>,
    #[serde(default)]
    pub(crate) blank: RawBlankMerchant,
}

#[derive(Deserialize, Default, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RawBlankMerchant {
    #[default]
    Error,
    Batch,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawCurrency {
    #[serde(default)]
    pub(crate) table: Table,
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
    #[serde(default)]
    pub(crate) table: Table,
    pub(crate) r#type: Option<String>,
    pub(crate) currency: Option<String>,
    pub(crate) items: Option<String>,
    pub(crate) gross: Option<String>,
    pub(crate) fee: Option<String>,
    pub(crate) net: Option<String>,
}
