//! Decimal numbers as a format writes them, read strictly: what could mean two amounts means none. Needs nothing else.
//!
//! `1,234` is a thousand somewhere and one elsewhere; a reader that guesses pays out the difference. So a profile says which
//! characters its provider uses, and everything else (signs, blanks, exponents, half a group) is an error.

use rust_decimal::Decimal;
use serde::Deserialize;

/// How numbers are written. Room for more styles (trailing minus, amounts in minor units with the provider's own exponents)
/// is here and in [`NumberFormat::parse`], nowhere else.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct NumberFormat {
    /// Between whole units and their parts.
    pub(crate) decimal: char,
    /// Between groups of three digits; none by default. Ungrouped numbers are read too.
    pub(crate) group: Option<char>,
    /// Whether amounts may be finer than the currency's minor unit. Then gross and fee of a line are rounded half to even and
    /// the rest is kept; otherwise such an amount is an error.
    pub(crate) round: bool,
}

impl Default for NumberFormat {
    fn default() -> Self {
        NumberFormat { decimal: '.', group: None, round: false }
    }
}

/// Most digits that a [`Decimal`] always holds.
const MAX_DIGITS: usize = 28;

impl NumberFormat {
    /// The number, or `None` where the text is none in this format: `-`? digits (decimal digits)?
    pub(crate) fn parse(&self, text: &str) -> Option<Decimal> {
        let (negative, unsigned) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let (whole, parts) = match unsigned.split_once(self.decimal) {
            Some((whole, parts)) => (whole, Some(parts)),
            None => (unsigned, None),
        };
        let mut digits = Digits::default();
        self.whole(whole, &mut digits)?;
        if let Some(parts) = parts {
            digits.push_all(parts)?;
        }
        let scale = u32::try_from(parts.map_or(0, str::len)).ok()?;
        let mut number = Decimal::try_from_i128_with_scale(digits.value, scale).ok()?;
        number.set_sign_negative(negative && !number.is_zero());
        Some(number)
    }

    /// An amount as this format writes it, for messages.
    pub(crate) fn example(&self) -> String {
        format!("1234{}50", self.decimal)
    }

    fn whole(&self, text: &str, digits: &mut Digits) -> Option<()> {
        let Some(group) = self.group.filter(|group| text.contains(*group)) else { return digits.push_all(text) };
        for (index, part) in text.split(group).enumerate() {
            if if index == 0 { part.len() > 3 } else { part.len() != 3 } {
                return None;
            }
            digits.push_all(part)?;
        }
        Some(())
    }
}

#[derive(Default)]
struct Digits {
    value: i128,
    count: usize,
}

impl Digits {
    fn push_all(&mut self, text: &str) -> Option<()> {
        self.count += text.len();
        if text.is_empty() || self.count > MAX_DIGITS {
            return None;
        }
        for byte in text.bytes() {
            let digit = byte.is_ascii_digit().then(|| i128::from(byte - b'0'))?;
            self.value = self.value * 10 + digit;
        }
        Some(())
    }
}
