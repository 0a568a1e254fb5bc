//! The columns of a profile found in the header of a file. Needs `profile/csv.rs`, `split.rs`.

use super::split::Record;
use crate::error::Fault;
use crate::profile::csv::{Amount, Amounts, CsvLayout, Fallback, MeasureName};

/// Positions of everything that a profile names.
pub(super) struct Columns {
    /// As the header has them, for messages.
    pub(super) names: Vec<String>,
    pub(super) batch: Vec<usize>,
    pub(super) date: Vec<usize>,
    pub(super) row_type: usize,
    pub(super) merchant: Vec<usize>,
    pub(super) currency: Vec<usize>,
    pub(super) identity: Vec<usize>,
    pub(super) amounts: MoneyColumns,
    pub(super) checks: Vec<CheckColumns>,
    pub(super) declared: DeclaredPositions,
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

pub(super) struct DeclaredPositions {
    pub(super) items: Option<usize>,
    pub(super) gross: Option<usize>,
    pub(super) fee: Option<usize>,
    pub(super) net: Option<usize>,
}

/// The header of the file and who looks into it.
struct Header<'a> {
    record: &'a Record,
    profile: &'a str,
}

impl Columns {
    pub(super) fn find(record: &Record, layout: &CsvLayout, profile: &str) -> Result<Columns, Fault> {
        let header = Header { record, profile };
        let declared = &layout.declared;
        Ok(Columns {
            names: record.iter().map(str::to_owned).collect(),
            // the type column first: a file of another format fails there, and the message says so
            row_type: header.one(&layout.type_column)?,
            batch: header.all(&layout.batch_columns)?,
            date: header.any(&layout.date.columns)?,
            merchant: header.fallback(&layout.merchant)?,
            currency: header.fallback(&layout.currency)?,
            identity: header.all(&layout.identity_columns)?,
            amounts: match &layout.amounts {
                Amounts::GrossFee { gross, fee } => {
                    MoneyColumns::GrossFee { gross: header.money(gross)?, fee: header.money(fee)? }
                }
                Amounts::GrossNet { gross, net } => {
                    MoneyColumns::GrossNet { gross: header.money(gross)?, net: header.money(net)? }
                }
                Amounts::NetFee { net, fee } => MoneyColumns::NetFee { net: header.money(net)?, fee: header.money(fee)? },
            },
            checks: layout
                .checks
                .iter()
                .map(|check| {
                    let when_equal = match &check.when_equal {
                        Some([one, other]) => Some([header.one(one)?, header.one(other)?]),
                        None => None,
                    };
                    Ok(CheckColumns { when_equal, amount: header.money(&check.amount)?, equals: check.equals })
                })
                .collect::<Result<_, Fault>>()?,
            declared: DeclaredPositions {
                items: header.optional(declared.items.as_deref())?,
                gross: header.optional(declared.gross.as_deref())?,
                fee: header.optional(declared.fee.as_deref())?,
                net: header.optional(declared.net.as_deref())?,
            },
        })
    }
}

impl Header<'_> {
    fn position(&self, name: &str) -> Result<Option<usize>, Fault> {
        let mut found = self.record.iter().enumerate().filter(|(_, field)| *field == name).map(|(index, _)| index);
        let first = found.next();
        if found.next().is_some() {
            let what = format!("the header names the column {name:?} twice");
            return Err(Fault::at(self.record.line, what, "export the file with each column once"));
        }
        Ok(first)
    }

    fn one(&self, name: &str) -> Result<usize, Fault> {
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
