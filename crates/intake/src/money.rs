//! Exact amounts of a line and how they become integers. Needs `domain::money`.
//!
//! Rounding is per line: gross and fee each to minor units, half to even, net = gross − fee, and what that leaves of the exact
//! net is kept as the residual.

use crate::error::Fault;
use crate::profile::csv::MeasureName;
use domain::item::{Item, ItemKind};
use domain::money::{Currency, MoneyError, Rounded, round};
use rust_decimal::Decimal;
use std::collections::BTreeMap;

/// What a source's numbers count. The ledger counts in the minor units of ISO 4217, whatever the source does.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Units {
    /// Numbers are of minor units (`1250` is 12.50 EUR), not of whole ones.
    pub(crate) minor: bool,
    /// Decimals that this source gives a currency, where they are not those of ISO 4217.
    pub(crate) exponents: BTreeMap<Currency, u32>,
    /// Whether amounts may be finer than a minor unit. Then gross and fee of a line are rounded half to even and the rest is kept;
    /// otherwise such an amount is an error.
    pub(crate) round: bool,
}

/// ISO 4217, whole units, nothing finer: our own formats.
pub(crate) const PLAIN: Units = Units { minor: false, exponents: BTreeMap::new(), round: false };

const CORRECT: &str = "correct the amount";

impl Units {
    /// A number of the file in whole units of the currency; `None` beyond what a decimal holds.
    pub(crate) fn major(&self, mut number: Decimal, currency: Currency) -> Option<Decimal> {
        if self.minor {
            number.set_scale(number.scale() + self.exponent(currency)).ok()?;
        }
        Some(number)
    }

    fn exponent(&self, currency: Currency) -> u32 {
        self.exponents.get(&currency).copied().unwrap_or(currency.exponent())
    }

    /// Minor units of the ledger, rounded where the source's amounts may be finer than its own minor unit or the ledger's.
    fn rounded(&self, major: Decimal, currency: Currency, line: u64) -> Result<Rounded, Fault> {
        let fault = |error: MoneyError| Fault::at(line, error.to_string(), CORRECT);
        let decimals = self.exponent(currency).min(currency.exponent());
        let Rounded { minor, residual_micro } = round(major, decimals).map_err(fault)?;
        let finer = 10_i64.pow(currency.exponent() - decimals);
        let minor = minor.checked_mul(finer).ok_or_else(|| fault(MoneyError::Overflow(major.to_string())))?;
        Ok(Rounded { minor, residual_micro })
    }

    /// A declared total in minor units; it is a sum of rounded amounts, so it is never finer.
    pub(crate) fn declared_minor(&self, total: Decimal, currency: Currency, line: u64) -> Result<i64, Fault> {
        let rounded = self.rounded(total, currency, line)?;
        if rounded.residual_micro == 0 { Ok(rounded.minor) } else { Err(self.too_fine(total, currency, line)) }
    }

    fn too_fine(&self, amount: Decimal, currency: Currency, line: u64) -> Fault {
        let decimals = self.exponent(currency).min(currency.exponent());
        let here = if decimals == currency.exponent() { "" } else { " in this profile" };
        let what = format!("{amount} is finer than {currency}, which has {decimals} decimals{here}");
        Fault::at(line, what, "correct the amount or its currency, or let the profile round (numbers.round = true)")
    }
}

/// Gross, fee and net as the file says them: gross − fee = net.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Exact {
    gross: Decimal,
    fee: Decimal,
    net: Decimal,
}

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

    /// With the other sign.
    pub(crate) fn negated(self) -> Exact {
        Exact { gross: -self.gross, fee: -self.fee, net: -self.net }
    }

    pub(crate) fn measure(&self, measure: MeasureName) -> Decimal {
        match measure {
            MeasureName::Gross => self.gross,
            MeasureName::Fee => self.fee,
            MeasureName::Net => self.net,
        }
    }

    /// The line in integers; its identity is still blank.
    pub(crate) fn item(
        &self,
        kind: ItemKind,
        merchant: &str,
        currency: Currency,
        units: &Units,
        line: u64,
    ) -> Result<Item, Fault> {
        let gross = units.rounded(self.gross, currency, line)?;
        let fee = units.rounded(self.fee, currency, line)?;
        if !units.round && (gross.residual_micro != 0 || fee.residual_micro != 0) {
            return Err(units.too_fine(if gross.residual_micro != 0 { self.gross } else { self.fee }, currency, line));
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
