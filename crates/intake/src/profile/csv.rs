//! What a CSV profile says, checked: columns by the names in the header, and what they mean. Needs `number.rs`.
//!
//! Several header rows in one file, a batch per file and declared totals in a header row have no place here yet; they would be
//! another `RowType`, another `BatchRule` and another source of `Declared`, not another reader.

use crate::number::NumberFormat;
use domain::item::ItemKind;
use std::collections::BTreeMap;

/// Columns are named as in the header; order and further columns do not matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CsvLayout {
    pub(crate) delimiter: char,
    pub(crate) numbers: NumberFormat,
    /// Joined with `|`: the batch of a row.
    pub(crate) batch_columns: Vec<String>,
    pub(crate) date: DateRule,
    pub(crate) type_column: String,
    pub(crate) types: BTreeMap<String, RowType>,
    pub(crate) merchant: Fallback,
    pub(crate) currency: Fallback,
    pub(crate) amounts: Amounts,
    /// Joined with `|`: the identity of a row within the source.
    pub(crate) identity_columns: Vec<String>,
    /// Whether a row whose identity columns are all blank is told by its content; otherwise it is an error.
    pub(crate) blank_identity_is_content: bool,
    pub(crate) checks: Vec<Check>,
    pub(crate) declared: DeclaredColumns,
}

/// What rows of a type are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowType {
    /// A line of the batch.
    Item {
        kind: ItemKind,
        /// Whether the identity columns do not identify rows of this type (they hold a text).
        identity_is_content: bool,
    },
    /// Declared totals of a batch and currency.
    Total,
    /// Nothing that settles.
    Ignored,
}

/// Which date is the business date.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DateRule {
    /// The first of these that the file has and the row fills.
    pub(crate) columns: Vec<String>,
    /// In chrono's notation; only the date is used, as written (local to the source).
    pub(crate) format: String,
    /// Every row of a batch must say the same; otherwise the latest date counts.
    pub(crate) same: bool,
    /// Rows of these types decide, if the batch has any.
    pub(crate) decisive_types: Vec<String>,
}

/// The first filled column, else a constant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fallback {
    pub(crate) columns: Vec<String>,
    pub(crate) default: Option<String>,
}

/// Two of gross, fee and net; the third follows from gross − fee = net.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Amounts {
    GrossFee { gross: Amount, fee: Amount },
    GrossNet { gross: Amount, net: Amount },
    NetFee { net: Amount, fee: Amount },
}

/// One amount of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Amount {
    /// The sum of signed columns, blank ones being nothing.
    Sum { columns: Vec<String>, negate: bool },
    /// Credit (positive) or debit (negative), one of them filled, both unsigned.
    Sides { debit: String, credit: String },
}

impl Amount {
    /// Every column it reads.
    pub(crate) fn columns(&self) -> Vec<&str> {
        match self {
            Amount::Sum { columns, .. } => columns.iter().map(String::as_str).collect(),
            Amount::Sides { debit, credit } => vec![debit, credit],
        }
    }
}

/// Which measure of a row an amount must equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MeasureName {
    Gross,
    Fee,
    Net,
}

/// A rule that every row must keep; a row that does not is a break of its batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Check {
    /// The rule as a sentence.
    pub(crate) says: String,
    /// Only rows of these types; all when empty.
    pub(crate) types: Vec<String>,
    /// Only rows where these two columns are equal (e.g. both currencies).
    pub(crate) when_equal: Option<[String; 2]>,
    pub(crate) amount: Amount,
    pub(crate) equals: MeasureName,
}

/// Columns of a `Total` row; a blank field declares nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct DeclaredColumns {
    pub(crate) items: Option<String>,
    pub(crate) gross: Option<String>,
    pub(crate) fee: Option<String>,
    pub(crate) net: Option<String>,
}
