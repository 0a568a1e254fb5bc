//! Decimal numbers as a format writes them, read strictly: what could mean two amounts means none. Needs nothing else.
//!
//! `1,234` is a thousand somewhere and one elsewhere; a reader that guesses pays out the difference. So a profile says which
//! characters its provider uses and where the minus stands, and everything else (other signs, blanks, exponents, half a group)
//! is an error.

use rust_decimal::Decimal;
use serde::Deserialize;

/// How numbers are written. What they count, whole units or minor ones, is not said here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NumberFormat {
    /// Between whole units and their parts. `None`: there are only whole numbers.
    pub(crate) decimal: Option<char>,
    /// Between groups of three digits; none by default. Ungrouped numbers are read too.
    pub(crate) group: Option<char>,
    /// Where the minus of a negative number stands; at the other end it is an error.
    pub(crate) minus: Minus,
}

/// Where a minus stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Minus {
    /// `-12.50`
    #[default]
    Leading,
    /// `12.50-`, as mainframes print it.
    Trailing,
}

/// Most digits that a [`Decimal`] always holds.
const MAX_DIGITS: usize = 28;

impl NumberFormat {
    /// `1234.50`, `-0.30`: how our own formats write it.
    pub(crate) const PLAIN: NumberFormat = NumberFormat { decimal: Some('.'), group: None, minus: Minus::Leading };

    /// The number, or `None` where the text is none in this format: a minus at its place or none, digits, (decimal digits)?
    pub(crate) fn parse(&self, text: &str) -> Option<Decimal> {
        let positive = match self.minus {
            Minus::Leading => text.strip_prefix('-'),
            Minus::Trailing => text.strip_suffix('-'),
        };
        let (negative, unsigned) = positive.map_or((false, text), |rest| (true, rest));
        let (whole, parts) = match self.decimal.and_then(|decimal| unsigned.split_once(decimal)) {
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
        let amount = self.decimal.map_or_else(|| "123450".to_owned(), |decimal| format!("1234{decimal}50"));
        match self.minus {
            Minus::Leading => amount,
            Minus::Trailing => format!("{amount} or {amount}-"),
        }
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
