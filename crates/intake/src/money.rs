//! Exact amounts of a line and how they become integers. Needs `domain::money`.
//!
//! Rounding is per line: gross and fee each to minor units, half to even, net = gross − fee, and what that leaves of the exact
//! net is kept as the residual.

use crate::error::Fault;
use crate::profile::csv::MeasureName;
use domain::item::{Item, ItemKind};
use domain::money::{Currency, MoneyError, round};
use rust_decimal::Decimal;

/// Gross, fee and net as the file says them: gross − fee = net.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Exact {
    gross: Decimal,
    fee: Decimal,
    net: Decimal,
}

const CORRECT: &str = "correct the amount";

fn or_overflow(sum: Option<Decimal>, line: u64) -> Result<Decimal, Fault> {
    sum.ok_or_else(|| Fault::at(line, "the amounts of the line overflow", CORRECT))
}

impl Exact {
    pub(crate) fn gross_fee(gross: Decimal, fee: Decimal, line: u64) -> Result<Exact, Fault> {
        Ok(Exact { gross, fee, net: or_overflow(gross.checked_sub(fee), line)? })
    }

    pub(crate) fn gross_net(gross: Decimal, net: Decimal, line: u64) -> Result<Exact, Fault> {
        Ok(Exact { gross, fee: or_overflow(gross.checked_sub(net), line)?, net })
    }

    pub(crate) fn net_fee(net: Decimal, fee: Decimal, line: u64) -> Result<Exact, Fault> {
        Ok(Exact { gross: or_overflow(net.checked_add(fee), line)?, fee, net })
    }

    pub(crate) fn measure(&self, measure: MeasureName) -> Decimal {
        match measure {
            MeasureName::Gross => self.gross,
            MeasureName::Fee => self.fee,
            MeasureName::Net => self.net,
        }
    }

    /// The line in integers; its identity is still blank. Without `may_round`, amounts finer than the minor unit are errors.
    pub(crate) fn item(
        &self,
        kind: ItemKind,
        merchant: &str,
        currency: Currency,
        may_round: bool,
        line: u64,
    ) -> Result<Item, Fault> {
        let exponent = currency.exponent();
        let fault = |error: MoneyError| Fault::at(line, error.to_string(), CORRECT);
        let gross = round(self.gross, exponent).map_err(fault)?;
        let fee = round(self.fee, exponent).map_err(fault)?;
        if !may_round && (gross.residual_micro != 0 || fee.residual_micro != 0) {
            return Err(too_fine(if gross.residual_micro != 0 { self.gross } else { self.fee }, currency, line));
        }
        let item = Item {
            line_no: i64::try_from(line).unwrap_or(i64::MAX),
            kind,
            merchant: merchant.to_owned(),
            currency,
            gross_minor: gross.minor,
            fee_minor: fee.minor,
            residual_micro: gross.residual_micro - fee.residual_micro,
            dedupe_key: String::new(),
        };
        match item.net_minor() {
            Some(_) => Ok(item),
            None => Err(Fault::at(line, format!("the net of the line ({}) does not fit into 64 bits", self.net), CORRECT)),
        }
    }
}

/// A declared total in minor units; it is a sum of rounded amounts, so it is never finer.
pub(crate) fn declared_minor(total: Decimal, currency: Currency, line: u64) -> Result<i64, Fault> {
    let rounded = round(total, currency.exponent()).map_err(|error| Fault::at(line, error.to_string(), CORRECT))?;
    if rounded.residual_micro == 0 { Ok(rounded.minor) } else { Err(too_fine(total, currency, line)) }
}

fn too_fine(amount: Decimal, currency: Currency, line: u64) -> Fault {
    let decimals = currency.exponent();
    let what = format!("{amount} is finer than {currency}, which has {decimals} decimals");
    Fault::at(line, what, "correct the amount or its currency, or let the profile round (numbers.round = true)")
}
