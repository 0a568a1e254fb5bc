//! The columns of a profile found in the headers of a file. Needs `profile/csv.rs`, `split.rs`.

use super::split::Record;
use crate::error::Fault;
use crate::profile::csv::{Amount, Amounts, Check, CsvLayout, Fallback, MeasureName, Table};

/// Positions of what rows and preambles have in common. What the profile expects in the other table is empty here.
pub(super) struct TableColumns {
    /// As the header has them, for messages.
    pub(super) names: Vec<String>,
    pub(super) batch: Vec<usize>,
    pub(super) date: Vec<usize>,
    pub(super) merchant: Vec<usize>,
    pub(super) currency: Vec<usize>,
    pub(super) declared: DeclaredPositions,
    /// Those that are read in small letters.
    pub(super) folded: Vec<usize>,
}

/// Positions of everything that a profile names in the rows.
pub(super) struct Columns {
    pub(super) table: TableColumns,
    pub(super) row_type: usize,
    pub(super) identity: Vec<usize>,
    pub(super) amounts: MoneyColumns,
    pub(super) checks: Vec<CheckColumns>,
}

pub(super) enum MoneyColumns {
    GrossFee { gross: Money, fee: Money },
    GrossNet { gross: Money, net: Money },
    NetFee { net: Money, fee: Money },
}

pub(super) enum Money {
    Sum { columns: Vec<usize>, negate: bool },
    Sides { debit: usize, credit: usize },
}

pub(super) struct CheckColumns {
    pub(super) when_equal: Option<[usize; 2]>,
    pub(super) amount: Money,
    pub(super) equals: MeasureName,
}

#[derive(Default)]
pub(super) struct DeclaredPositions {
    pub(super) currency: Option<usize>,
    pub(super) items: Option<usize>,
    pub(super) gross: Option<usize>,
    pub(super) fee: Option<usize>,
    pub(super) net: Option<usize>,
}

/// The header of a table and who looks into it.
pub(super) struct Header<'a> {
    pub(super) record: &'a Record,
    pub(super) layout: &'a CsvLayout,
    pub(super) profile: &'a str,
}

impl Header<'_> {
    /// All that the rows need.
    pub(super) fn columns(&self) -> Result<Columns, Fault> {
        let layout = self.layout;
        Ok(Columns {
            // the type column first: a file of another format fails there, and the message says so
            row_type: self.one(&layout.type_column)?,
            table: self.table(Table::Rows)?,
            identity: self.all(&layout.identity_columns)?,
            amounts: self.amounts(&layout.amounts)?,
            checks: layout.checks.iter().map(|check| self.check(check)).collect::<Result<_, _>>()?,
        })
    }

    /// What both tables can have, as far as the profile expects it in this one.
    pub(super) fn table(&self, table: Table) -> Result<TableColumns, Fault> {
        let CsvLayout { batch, date, merchant, currency, declared, fold_case, .. } = self.layout;
        let here = |other: Table| other == table;
        Ok(TableColumns {
            names: self.record.iter().map(str::to_owned).collect(),
            batch: if here(batch.table) { self.all(&batch.columns)? } else { Vec::new() },
            date: if here(date.table) { self.any(&date.columns)? } else { Vec::new() },
            merchant: if here(merchant.table) { self.fallback(merchant)? } else { Vec::new() },
            currency: if here(currency.table) { self.fallback(currency)? } else { Vec::new() },
            declared: if here(declared.table) {
                DeclaredPositions {
                    currency: self.optional(declared.currency.as_deref())?,
                    items: self.optional(declared.items.as_deref())?,
                    gross: self.optional(declared.gross.as_deref())?,
                    fee: self.optional(declared.fee.as_deref())?,
                    net: self.optional(declared.net.as_deref())?,
                }
            } else {
                DeclaredPositions::default()
            },
            folded: self.present(fold_case)?,
        })
    }

    fn position(&self, name: &str) -> Result<Option<usize>, Fault> {
        let mut found = self.record.iter().enumerate().filter(|(_, field)| *field == name).map(|(index, _)| index);
        let first = found.next();
        if found.next().is_some() {
            let what = format!("the header names the column {name:?} twice");
            return Err(Fault::at(self.record.line, what, "export the file with each column once"));
        }
        Ok(first)
    }

    pub(super) fn one(&self, name: &str) -> Result<usize, Fault> {
        self.position(name)?.ok_or_else(|| self.missing(&format!("{name:?}")))
    }

    fn all(&self, names: &[String]) -> Result<Vec<usize>, Fault> {
        names.iter().map(|name| self.one(name)).collect()
    }

    /// Those of these columns that the header has.
    fn present(&self, names: &[String]) -> Result<Vec<usize>, Fault> {
        let mut found = Vec::new();
        for name in names {
            found.extend(self.position(name)?);
        }
        Ok(found)
    }

    fn any(&self, names: &[String]) -> Result<Vec<usize>, Fault> {
        let found = self.present(names)?;
        if found.is_empty() && !names.is_empty() { Err(self.missing(&format!("of {names:?}"))) } else { Ok(found) }
    }

    /// Absent columns leave it to the default; a column that is there twice is wrong all the same.
    fn fallback(&self, fallback: &Fallback) -> Result<Vec<usize>, Fault> {
        if fallback.default.is_some() { self.present(&fallback.columns) } else { self.any(&fallback.columns) }
    }

    fn optional(&self, name: Option<&str>) -> Result<Option<usize>, Fault> {
        name.map(|name| self.one(name)).transpose()
    }

    fn amounts(&self, amounts: &Amounts) -> Result<MoneyColumns, Fault> {
        Ok(match amounts {
            Amounts::GrossFee { gross, fee } => MoneyColumns::GrossFee { gross: self.money(gross)?, fee: self.money(fee)? },
            Amounts::GrossNet { gross, net } => MoneyColumns::GrossNet { gross: self.money(gross)?, net: self.money(net)? },
            Amounts::NetFee { net, fee } => MoneyColumns::NetFee { net: self.money(net)?, fee: self.money(fee)? },
        })
    }

    fn check(&self, check: &Check) -> Result<CheckColumns, Fault> {
        let when_equal = match &check.when_equal {
            Some([one, other]) => Some([self.one(one)?, self.one(other)?]),
            None => None,
        };
        Ok(CheckColumns { when_equal, amount: self.money(&check.amount)?, equals: check.equals })
    }

    fn money(&self, amount: &Amount) -> Result<Money, Fault> {
        Ok(match amount {
            Amount::Sum { columns, negate } => Money::Sum { columns: self.all(columns)?, negate: *negate },
            Amount::Sides { debit, credit } => Money::Sides { debit: self.one(debit)?, credit: self.one(credit)? },
        })
    }

    fn missing(&self, column: &str) -> Fault {
        let what = format!("the header has no column {column} (profile {} expects it)", self.profile);
        Fault::at(self.record.line, what, "choose the profile of this file, or export it with that column")
    }
}
