//! What a CSV profile says, checked: columns by the names in the header, and what they mean. Needs `number.rs`, `money.rs`.

use crate::money::Units;
use crate::number::NumberFormat;
use crate::text::Encoding;
use domain::item::ItemKind;
use std::collections::BTreeMap;

/// Columns are named as in the header; order and further columns do not matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CsvLayout {
    pub(crate) delimiter: char,
    pub(crate) encoding: Encoding,
    pub(crate) numbers: NumberFormat,
    pub(crate) units: Units,
    /// Columns whose ASCII letters are read as small ones, because the source writes one word in several ways.
    pub(crate) fold_case: Vec<String>,
    /// The table before the rows, where there is one.
    pub(crate) preamble: Option<PreambleRule>,
    pub(crate) batch: BatchRule,
    pub(crate) date: DateRule,
    pub(crate) type_column: String,
    pub(crate) types: BTreeMap<String, RowType>,
    pub(crate) merchant: Fallback,
    /// Whether a blank merchant is the batch's, which other rows of it name.
    pub(crate) blank_merchant_is_batchs: bool,
    pub(crate) currency: Fallback,
    pub(crate) amounts: Amounts,
    /// Joined with `|`: the identity of a row within the source.
    pub(crate) identity_columns: Vec<String>,
    /// Whether a row whose identity columns are all blank is told by its content; otherwise it is an error.
    pub(crate) blank_identity_is_content: bool,
    pub(crate) checks: Vec<Check>,
    pub(crate) declared: DeclaredColumns,
}

/// Which table of the file a column stands in. Most files have rows only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Table {
    /// The rows, each with what it says of itself.
    #[default]
    Rows,
    /// A small table before them, with a header of its own, that speaks of the whole file. It ends where the header of the rows
    /// stands: the first record that has the type column's name in it.
    Preamble,
}

/// What records of a preamble are told by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PreambleRule {
    /// A column and the word that stands in it; any other is an error.
    pub(crate) tell: Option<(String, String)>,
}

/// Which batch a row belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BatchRule {
    pub(crate) table: Table,
    /// Joined with `|`: the name of the batch.
    pub(crate) columns: Vec<String>,
    /// The whole file is one batch: rows that do not name it belong to it all the same. Otherwise each row names its own.
    pub(crate) one_per_file: bool,
}

/// What rows of a type are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowType {
    /// A line of the batch.
    Item(ItemType),
    /// Declared totals of a batch and currency.
    Total,
    /// Nothing that settles.
    Ignored,
}

/// What lines of a type are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ItemType {
    pub(crate) kind: ItemKind,
    /// Whether the identity columns do not identify rows of this type (they hold a text).
    pub(crate) identity_is_content: bool,
    /// Whether rows of this type write their amounts with the other sign than the rest.
    pub(crate) negate: bool,
}

/// Which date is the business date.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DateRule {
    pub(crate) table: Table,
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
    pub(crate) table: Table,
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

impl Amounts {
    /// Both amounts that rows give.
    pub(crate) fn given(&self) -> [(MeasureName, &Amount); 2] {
        match self {
            Amounts::GrossFee { gross, fee } => [(MeasureName::Gross, gross), (MeasureName::Fee, fee)],
            Amounts::GrossNet { gross, net } => [(MeasureName::Gross, gross), (MeasureName::Net, net)],
            Amounts::NetFee { net, fee } => [(MeasureName::Net, net), (MeasureName::Fee, fee)],
        }
    }

    /// Whether the source writes this measure with the other sign, in rows and in totals.
    pub(crate) fn negates(&self, measure: MeasureName) -> bool {
        self.given().iter().any(|(given, amount)| *given == measure && matches!(amount, Amount::Sum { negate: true, .. }))
    }
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

/// Columns of declared totals, which bind; what the source declares in other columns does not. A blank field declares nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct DeclaredColumns {
    pub(crate) table: Table,
    /// Currency of the totals, where it stands in another column than that of the rows.
    pub(crate) currency: Option<String>,
    pub(crate) items: Option<String>,
    pub(crate) gross: Option<String>,
    pub(crate) fee: Option<String>,
    pub(crate) net: Option<String>,
}
