//! What one row says, by the columns of the profile. Needs `columns.rs`, `number.rs`, `money.rs` next door.

use super::columns::{Columns, Money, MoneyColumns};
use super::split::Record;
use crate::error::Fault;
use crate::key;
use crate::money::{Exact, declared_minor};
use crate::profile::csv::{CsvLayout, Fallback, MeasureName, RowType};
use domain::item::{Item, ItemKind};
use domain::money::Currency;
use domain::totals::Declared;
use rust_decimal::Decimal;

/// A row, its columns, and what the profile says about them.
pub(super) struct Row<'a> {
    pub(super) record: &'a Record,
    pub(super) columns: &'a Columns,
    pub(super) layout: &'a CsvLayout,
    pub(super) profile: &'a str,
}

pub(super) fn blank(text: &str) -> bool {
    text.trim().is_empty()
}

impl Row<'_> {
    fn fault(&self, what: impl Into<String>, remedy: &str) -> Fault {
        Fault::at(self.record.line, what, remedy)
    }

    pub(super) fn type_word(&self) -> &str {
        self.record.get(self.columns.row_type)
    }

    pub(super) fn row_type(&self) -> Result<RowType, Fault> {
        let word = self.type_word();
        self.layout.types.get(word).copied().ok_or_else(|| {
            let known = self.layout.types.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
            let what = format!("unknown {} {word:?} (profile {} knows {known})", self.layout.type_column, self.profile);
            self.fault(what, "add it to types.values or types.ignore of the profile")
        })
    }

    pub(super) fn batch_id(&self) -> Result<String, Fault> {
        for (column, name) in self.columns.batch.iter().zip(&self.layout.batch_columns) {
            if blank(self.record.get(*column)) {
                return Err(self.fault(format!("{name:?} is blank: the row belongs to no batch"), "correct the file"));
            }
        }
        Ok(key::join(self.columns.batch.iter().map(|column| self.record.get(*column))))
    }

    pub(super) fn currency(&self) -> Result<Currency, Fault> {
        let code = self.first_filled(&self.columns.currency, &self.layout.currency, "currency")?;
        Currency::parse(code).map_err(|error| self.fault(error.to_string(), "correct the currency"))
    }

    /// The line without its identity, and its exact amounts.
    pub(super) fn item(&self, kind: ItemKind) -> Result<(Item, Exact), Fault> {
        let currency = self.currency()?;
        let merchant = self.first_filled(&self.columns.merchant, &self.layout.merchant, "merchant")?;
        key::check(merchant, "merchant", key::MAX_MERCHANT_BYTES, self.record.line)?;
        let exact = self.exact()?;
        let item = exact.item(kind, merchant, currency, self.layout.numbers.round, self.record.line)?;
        Ok((item, exact))
    }

    /// The identity that the columns give, or `None` where the row is told by its content.
    pub(super) fn identity(&self, is_content: bool) -> Result<Option<String>, Fault> {
        let texts = self.identity_texts();
        if is_content || (self.layout.blank_identity_is_content && texts.iter().all(|text| blank(text))) {
            return Ok(None);
        }
        for (text, name) in texts.iter().zip(&self.layout.identity_columns) {
            if blank(text) {
                let remedy = "correct the file, or give the type identity = \"content\" in the profile";
                return Err(self.fault(format!("{name:?} is blank: the row has no identity"), remedy));
            }
        }
        let joined = key::join(texts);
        key::check(&joined, "identity", key::MAX_KEY_BYTES, self.record.line)?;
        Ok(Some(joined))
    }

    pub(super) fn identity_texts(&self) -> Vec<&str> {
        self.columns.identity.iter().map(|column| self.record.get(*column)).collect()
    }

    /// Rules of the profile that the row breaks, as sentences.
    pub(super) fn failed_checks(&self, exact: &Exact) -> Result<Vec<String>, Fault> {
        let mut failed = Vec::new();
        for (check, columns) in self.layout.checks.iter().zip(&self.columns.checks) {
            let other_type = !check.types.is_empty() && !check.types.iter().any(|word| word == self.type_word());
            let differ = columns.when_equal.is_some_and(|[a, b]| self.record.get(a) != self.record.get(b));
            if other_type || differ {
                continue;
            }
            let says = self.amount(&columns.amount)?.unwrap_or_default();
            let is = exact.measure(columns.equals);
            if says != is {
                let measure = match columns.equals {
                    MeasureName::Gross => "gross",
                    MeasureName::Fee => "fee",
                    MeasureName::Net => "net",
                };
                failed.push(format!("line {}: {} does not hold: {measure} is {says}, not {is}", self.record.line, check.says));
            }
        }
        Ok(failed)
    }

    /// What a row of totals declares.
    pub(super) fn declared(&self, currency: Currency) -> Result<Declared, Fault> {
        let positions = &self.columns.declared;
        let amount = |column: Option<usize>| -> Result<Option<i64>, Fault> {
            let Some(number) = column.map(|column| self.number(column)).transpose()?.flatten() else { return Ok(None) };
            declared_minor(number, currency, self.record.line).map(Some)
        };
        Ok(Declared {
            items: positions.items.map(|column| self.count(column)).transpose()?.flatten(),
            gross_minor: amount(positions.gross)?,
            fee_minor: amount(positions.fee)?,
            net_minor: amount(positions.net)?,
            ..Declared::default()
        })
    }

    fn exact(&self) -> Result<Exact, Fault> {
        let line = self.record.line;
        match &self.columns.amounts {
            MoneyColumns::GrossFee { gross, fee } => Exact::gross_fee(self.required(gross)?, self.or_zero(fee)?, line),
            MoneyColumns::GrossNet { gross, net } => Exact::gross_net(self.required(gross)?, self.required(net)?, line),
            MoneyColumns::NetFee { net, fee } => Exact::net_fee(self.required(net)?, self.or_zero(fee)?, line),
        }
    }

    fn required(&self, money: &Money) -> Result<Decimal, Fault> {
        self.amount(money)?.ok_or_else(|| {
            let what = format!("no amount in {} (profile {} expects one)", self.names(money), self.profile);
            self.fault(what, "correct the file")
        })
    }

    fn or_zero(&self, money: &Money) -> Result<Decimal, Fault> {
        Ok(self.amount(money)?.unwrap_or_default())
    }

    fn amount(&self, money: &Money) -> Result<Option<Decimal>, Fault> {
        match money {
            Money::Sum { columns, negate } => {
                let mut sum: Option<Decimal> = None;
                for column in columns {
                    let Some(number) = self.number(*column)? else { continue };
                    let added = sum.unwrap_or_default().checked_add(number);
                    sum = Some(added.ok_or_else(|| self.fault("the amounts of the row overflow", "correct them"))?);
                }
                Ok(if *negate { sum.map(|sum| -sum) } else { sum })
            }
            Money::Sides { debit, credit } => {
                let sides = [self.number(*debit)?, self.number(*credit)?];
                if sides.iter().flatten().any(|side| side.is_sign_negative()) {
                    let what = format!("{} holds a negative amount: its sign is said twice", self.names(money));
                    return Err(self.fault(what, "correct the file, or map the columns as signed"));
                }
                match sides {
                    [Some(debit), Some(credit)] if !debit.is_zero() && !credit.is_zero() => {
                        Err(self.fault(format!("{} are both filled", self.names(money)), "correct the file"))
                    }
                    [None, None] => Ok(None),
                    [debit, credit] => Ok(Some(credit.unwrap_or_default() - debit.unwrap_or_default())),
                }
            }
        }
    }

    /// The number in a column; `None` where the field is empty (not where it is blank).
    fn number(&self, column: usize) -> Result<Option<Decimal>, Fault> {
        let text = self.record.get(column);
        if text.is_empty() {
            return Ok(None);
        }
        let numbers = &self.layout.numbers;
        numbers.parse(text).map(Some).ok_or_else(|| {
            let expected = numbers.example();
            let what = format!("{text:?} is not an amount (profile {} expects e.g. {expected})", self.profile);
            self.fault(what, "correct the amount, or [numbers] in the profile")
        })
    }

    fn count(&self, column: usize) -> Result<Option<i64>, Fault> {
        let text = self.record.get(column);
        if text.is_empty() {
            return Ok(None);
        }
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        let count = text.parse().ok().filter(|_| digits);
        count.map(Some).ok_or_else(|| self.fault(format!("{text:?} is not a number of lines"), "write digits only"))
    }

    fn first_filled<'a>(&'a self, columns: &[usize], fallback: &'a Fallback, what: &str) -> Result<&'a str, Fault> {
        let filled = columns.iter().map(|column| self.record.get(*column)).find(|text| !blank(text));
        filled.or(fallback.default.as_deref()).ok_or_else(|| {
            let what = format!("no {what} in {:?} (profile {} has no default)", fallback.columns, self.profile);
            self.fault(what, "correct the file, or give the profile a default")
        })
    }

    fn names(&self, money: &Money) -> String {
        let columns = match money {
            Money::Sum { columns, .. } => columns.clone(),
            Money::Sides { debit, credit } => vec![*debit, *credit],
        };
        let name = |column: usize| self.columns.names.get(column).map_or("?", String::as_str);
        columns.into_iter().map(|column| format!("{:?}", name(column))).collect::<Vec<_>>().join(" and ")
    }
}
