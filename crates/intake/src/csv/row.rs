//! What one row says, by the columns of the profile. Needs `cells.rs`, `columns.rs`, `money.rs` next door.

use super::cells::{Cells, blank};
use super::columns::{Columns, Money, MoneyColumns};
use super::preamble::Preamble;
use crate::error::Fault;
use crate::key;
use crate::money::Exact;
use crate::profile::csv::{ItemType, MeasureName, RowType, Table};
use domain::item::Item;
use domain::money::Currency;
use rust_decimal::Decimal;

/// A row, its columns, and what the preamble says for all of them.
pub(super) struct Row<'a> {
    pub(super) cells: Cells<'a>,
    pub(super) columns: &'a Columns,
    pub(super) preamble: &'a Preamble,
}

impl Row<'_> {
    pub(super) fn line(&self) -> u64 {
        self.cells.record.line
    }

    pub(super) fn type_word(&self) -> &str {
        self.cells.record.get(self.columns.row_type)
    }

    pub(super) fn row_type(&self) -> Result<RowType, Fault> {
        let (word, layout) = (self.type_word(), self.cells.layout);
        layout.types.get(word).copied().ok_or_else(|| {
            let known = layout.types.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
            let what = format!("unknown {} {word:?} (profile {} knows {known})", layout.type_column, self.cells.profile);
            self.cells.fault(what, "add it to types.values or types.ignore of the profile")
        })
    }

    pub(super) fn currency(&self) -> Result<Currency, Fault> {
        // a preamble that is to say it was read before any row
        self.preamble.currency.map_or_else(|| self.cells.currency(), Ok)
    }

    /// Whom the row names: blank where it leaves that to its batch.
    fn merchant(&self) -> Result<&str, Fault> {
        match (self.cells.layout.merchant.table, &self.preamble.merchant) {
            (Table::Preamble, Some(merchant)) => Ok(merchant),
            _ => Ok(self.cells.merchant()?.unwrap_or_default()),
        }
    }

    /// The line without its identity, and its exact amounts as written.
    pub(super) fn item(&self, row_type: ItemType) -> Result<(Item, Exact), Fault> {
        let currency = self.currency()?;
        let merchant = self.merchant()?;
        let exact = self.exact(currency)?;
        let signed = if row_type.negate { exact.negated() } else { exact };
        let item = signed.item(row_type.kind, merchant, currency, &self.cells.layout.units, self.line())?;
        Ok((item, exact))
    }

    /// The identity that the columns give, or `None` where the row is told by its content.
    pub(super) fn identity(&self, row_type: ItemType) -> Result<Option<String>, Fault> {
        let (texts, layout) = (self.identity_texts(), self.cells.layout);
        let is_content = row_type.identity_is_content;
        if is_content || (layout.blank_identity_is_content && texts.iter().all(|text| blank(text))) {
            return Ok(None);
        }
        for (text, name) in texts.iter().zip(&layout.identity_columns) {
            if blank(text) {
                let remedy = "correct the file, or give the type identity = \"content\" in the profile";
                return Err(self.cells.fault(format!("{name:?} is blank: the row has no identity"), remedy));
            }
        }
        let joined = key::join(texts);
        key::check(&joined, "identity", key::MAX_KEY_BYTES, self.line())?;
        Ok(Some(joined))
    }

    pub(super) fn identity_texts(&self) -> Vec<&str> {
        self.columns.identity.iter().map(|column| self.cells.record.get(*column)).collect()
    }

    /// Rules of the profile that the row breaks, as sentences.
    pub(super) fn failed_checks(&self, exact: &Exact, currency: Currency) -> Result<Vec<String>, Fault> {
        let (record, mut failed) = (self.cells.record, Vec::new());
        for (check, columns) in self.cells.layout.checks.iter().zip(&self.columns.checks) {
            let other_type = !check.types.is_empty() && !check.types.iter().any(|word| word == self.type_word());
            let differ = columns.when_equal.is_some_and(|[a, b]| record.get(a) != record.get(b));
            if other_type || differ {
                continue;
            }
            let says = self.amount(&columns.amount, currency)?.unwrap_or_default();
            let is = exact.measure(columns.equals);
            if says != is {
                let measure = match columns.equals {
                    MeasureName::Gross => "gross",
                    MeasureName::Fee => "fee",
                    MeasureName::Net => "net",
                };
                failed.push(format!("line {}: {} does not hold: {measure} is {says}, not {is}", record.line, check.says));
            }
        }
        Ok(failed)
    }

    fn exact(&self, currency: Currency) -> Result<Exact, Fault> {
        let line = self.line();
        let (required, or_zero) = (|money| self.required(money, currency), |money| self.or_zero(money, currency));
        match &self.columns.amounts {
            MoneyColumns::GrossFee { gross, fee } => Exact::gross_fee(required(gross)?, or_zero(fee)?, line),
            MoneyColumns::GrossNet { gross, net } => Exact::gross_net(required(gross)?, required(net)?, line),
            MoneyColumns::NetFee { net, fee } => Exact::net_fee(required(net)?, or_zero(fee)?, line),
        }
    }

    fn required(&self, money: &Money, currency: Currency) -> Result<Decimal, Fault> {
        self.amount(money, currency)?.ok_or_else(|| {
            let what = format!("no amount in {} (profile {} expects one)", self.names(money), self.cells.profile);
            self.cells.fault(what, "correct the file")
        })
    }

    fn or_zero(&self, money: &Money, currency: Currency) -> Result<Decimal, Fault> {
        Ok(self.amount(money, currency)?.unwrap_or_default())
    }

    fn amount(&self, money: &Money, currency: Currency) -> Result<Option<Decimal>, Fault> {
        match money {
            Money::Sum { columns, negate } => {
                let mut sum: Option<Decimal> = None;
                for column in columns {
                    let Some(number) = self.cells.number(*column, currency)? else { continue };
                    let added = sum.unwrap_or_default().checked_add(number);
                    sum = Some(added.ok_or_else(|| self.cells.fault("the amounts of the row overflow", "correct them"))?);
                }
                Ok(if *negate { sum.map(|sum| -sum) } else { sum })
            }
            Money::Sides { debit, credit } => self.sides(money, *debit, *credit, currency),
        }
    }

    fn sides(&self, money: &Money, debit: usize, credit: usize, currency: Currency) -> Result<Option<Decimal>, Fault> {
        let sides = [self.cells.number(debit, currency)?, self.cells.number(credit, currency)?];
        if sides.iter().flatten().any(|side| side.is_sign_negative()) {
            let what = format!("{} holds a negative amount: its sign is said twice", self.names(money));
            return Err(self.cells.fault(what, "correct the file, or map the columns as signed"));
        }
        match sides {
            [Some(debit), Some(credit)] if !debit.is_zero() && !credit.is_zero() => {
                Err(self.cells.fault(format!("{} are both filled", self.names(money)), "correct the file"))
            }
            [None, None] => Ok(None),
            [debit, credit] => Ok(Some(credit.unwrap_or_default() - debit.unwrap_or_default())),
        }
    }

    fn names(&self, money: &Money) -> String {
        let columns = match money {
            Money::Sum { columns, .. } => columns.clone(),
            Money::Sides { debit, credit } => vec![*debit, *credit],
        };
        let name = |column: usize| self.columns.table.names.get(column).map_or("?", String::as_str);
        columns.into_iter().map(|column| format!("{:?}", name(column))).collect::<Vec<_>>().join(" and ")
    }
}
