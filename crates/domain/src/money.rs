//! Money: integer minor units with a currency. No floating point anywhere. Needs nothing else.

use rust_decimal::{Decimal, RoundingStrategy};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// An ISO 4217 currency that has minor units (so no metals, test codes or "no currency").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Currency(iso_currency::Currency);

/// Why a text or a number is no amount.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MoneyError {
    /// Not a three-letter code of ISO 4217 with minor units.
    #[error("{0:?} is not an ISO 4217 currency")]
    UnknownCurrency(String),
    /// Larger than an i64 of minor units.
    #[error("{0} does not fit into 64 bits of minor units")]
    Overflow(String),
    /// Finer than a millionth of the currency's unit.
    #[error("{0} has more than six decimals beyond what can be kept as a remainder")]
    TooFine(Decimal),
}

impl Currency {
    /// Reads an ISO code; upper or lower case.
    ///
    /// # Errors
    /// [`MoneyError::UnknownCurrency`].
    pub fn parse(code: &str) -> Result<Currency, MoneyError> {
        let unknown = || MoneyError::UnknownCurrency(code.to_owned());
        let currency = iso_currency::Currency::from_code(&code.to_ascii_uppercase()).ok_or_else(unknown)?;
        currency.exponent().ok_or_else(unknown)?;
        Ok(Currency(currency))
    }

    /// The three-letter code, upper case.
    #[must_use]
    pub fn code(self) -> &'static str {
        self.0.code()
    }

    /// Decimals of the minor unit: 0 for JPY, 2 for USD, 3 for KWD.
    #[must_use]
    pub fn exponent(self) -> u32 {
        self.0.exponent().map_or(0, u32::from)
    }
}

impl PartialOrd for Currency {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Currency {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.code().cmp(other.code())
    }
}

impl std::fmt::Display for Currency {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.code())
    }
}

impl Serialize for Currency {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.code())
    }
}

impl<'de> Deserialize<'de> for Currency {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let code = String::deserialize(deserializer)?;
        Currency::parse(&code).map_err(serde::de::Error::custom)
    }
}

/// An amount rounded to minor units, and what rounding left over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rounded {
    /// Minor units, rounded half to even.
    pub minor: i64,
    /// exact − rounded, in millionths of the currency's *major* unit.
    pub residual_micro: i64,
}

/// Rounds an exact amount of major units to minor units of `exponent` decimals, half to even.
///
/// # Errors
/// [`MoneyError::Overflow`] beyond i64; [`MoneyError::TooFine`] where the remainder is no whole number of millionths.
pub fn round(major: Decimal, exponent: u32) -> Result<Rounded, MoneyError> {
    let overflow = || MoneyError::Overflow(major.to_string());
    let rounded = major.round_dp_with_strategy(exponent, RoundingStrategy::MidpointNearestEven);
    let minor = rounded.checked_mul(pow10(exponent)).ok_or_else(overflow)?;
    let residual = (major - rounded).checked_mul(pow10(6)).ok_or_else(overflow)?;
    if !residual.is_integer() {
        return Err(MoneyError::TooFine(major));
    }
    Ok(Rounded { minor: to_i64(minor).ok_or_else(overflow)?, residual_micro: to_i64(residual).ok_or_else(overflow)? })
}

/// Writes minor units as a person reads them: `55308.07`, `-0.05`, `1200` (JPY).
#[must_use]
pub fn format_minor(minor: i128, exponent: u32) -> String {
    let sign = if minor < 0 { "-" } else { "" };
    let digits = format!("{:0width$}", minor.unsigned_abs(), width = exponent as usize + 1);
    let (major, cents) = digits.split_at(digits.len() - exponent as usize);
    if cents.is_empty() { format!("{sign}{major}") } else { format!("{sign}{major}.{cents}") }
}

fn pow10(exponent: u32) -> Decimal {
    Decimal::from(10_i64.pow(exponent))
}

fn to_i64(whole: Decimal) -> Option<i64> {
    i64::try_from(whole).ok()
}
