//! Counting a batch and judging it against what its source declares. Needs `item.rs`, `money.rs`.

use crate::item::{FeeMode, Item, ItemKind};
use crate::money::{Currency, MoneyError, format_minor};

/// Sums of one currency of a batch. i128 while counting, so that no order of lines can overflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counted {
    /// Lines, remittances included.
    pub items: i64,
    /// Remittance lines. Their sum does not say whether there are any: two may cancel, and a payout may be of nothing.
    pub remittances: i64,
    /// Σ of gross > 0: drawn from payers (NACHA: debits).
    pub debit_minor: i128,
    /// Σ of |gross| where gross < 0: sent out (NACHA: credits).
    pub credit_minor: i128,
    /// Σ gross without remittances.
    pub gross_minor: i128,
    /// Σ fee without remittances.
    pub fee_minor: i128,
    /// Σ fee of the lines whose fee is ours where the fee is charged ([`ItemKind::carries_our_fee`]).
    pub carried_fee_minor: i128,
    /// Σ net without remittances.
    pub net_minor: i128,
    /// −Σ net of remittance lines: what the source says it paid out.
    pub remittance_minor: i128,
}

impl Counted {
    /// Adds one line.
    pub fn add(&mut self, item: &Item) {
        self.items += 1;
        let (gross, fee) = (i128::from(item.gross_minor), i128::from(item.fee_minor));
        if item.kind == ItemKind::Remittance {
            self.remittances += 1;
            self.remittance_minor -= gross - fee;
            return;
        }
        if gross > 0 {
            self.debit_minor += gross;
        } else {
            self.credit_minor -= gross;
        }
        self.gross_minor += gross;
        self.fee_minor += fee;
        if item.kind.carries_our_fee() {
            self.carried_fee_minor += fee;
        }
        self.net_minor += gross - fee;
    }

    /// What the lines bring into clearing, and a remittance must take out: the net, and with it the fee where it is ours.
    fn owed_minor(&self, fee_mode: FeeMode) -> i128 {
        match fee_mode {
            FeeMode::Withheld => self.net_minor,
            FeeMode::Charged => self.net_minor + self.carried_fee_minor,
        }
    }
}

/// What the source declares of one currency of a batch; only what **binds** is here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Declared {
    /// Number of lines.
    pub items: Option<i64>,
    /// Σ debits.
    pub debit_minor: Option<i64>,
    /// Σ credits.
    pub credit_minor: Option<i64>,
    /// Σ gross.
    pub gross_minor: Option<i64>,
    /// Σ fees.
    pub fee_minor: Option<i64>,
    /// Σ net.
    pub net_minor: Option<i64>,
}

/// How a batch of this source comes to clearing = 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Remits {
    /// It never does: the money moves elsewhere.
    #[default]
    Never,
    /// By its own remittance lines, which must equal the net of the others, with our fees where the fee is charged.
    ByLine,
    /// By its declared net, which is taken for what was paid out. Foots only where the source withholds its fee: with a fee of
    /// ours, more than the net is paid out.
    DeclaredNet,
}

/// One currency of a batch, judged. Everything fits into i64 minor units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Total {
    /// Of every amount here.
    pub currency: Currency,
    /// Lines.
    pub items: i64,
    /// See [`Counted`].
    pub debit_minor: i64,
    /// See [`Counted`].
    pub credit_minor: i64,
    /// See [`Counted`].
    pub gross_minor: i64,
    /// See [`Counted`].
    pub fee_minor: i64,
    /// See [`Counted`].
    pub net_minor: i64,
    /// Remittance by line.
    pub remittance_minor: i64,
    /// Remittance that is posted from the declared net instead of a line.
    pub declared_remittance_minor: i64,
    /// Difference within the tolerance, posted to `rounding_difference`.
    pub rounding_minor: i64,
    /// Difference beyond it: > 0 when the lines say more than was remitted. Posted to `suspense` if a person accepts it.
    pub difference_minor: i64,
    /// What bound it.
    pub declared: Declared,
    /// By how much a declared amount may differ.
    pub tolerance_minor: i64,
}

/// Judges one currency. The breaks are sentences with both figures; none means it foots.
///
/// # Errors
/// [`MoneyError::Overflow`] where a sum does not fit into i64 minor units.
pub fn judge(
    currency: Currency,
    counted: Counted,
    declared: Declared,
    remits: Remits,
    fee_mode: FeeMode,
    tolerance_minor: i64,
) -> Result<(Total, Vec<String>), MoneyError> {
    let fit = |sum: i128| i64::try_from(sum).map_err(|_| MoneyError::Overflow(format!("a total of {currency} ({sum})")));
    let declared_remittance = match remits {
        Remits::DeclaredNet => declared.net_minor.unwrap_or(0),
        Remits::Never | Remits::ByLine => 0,
    };
    let owed = counted.owed_minor(fee_mode);
    let left = match remits {
        Remits::Never => -counted.remittance_minor,
        Remits::ByLine | Remits::DeclaredNet => owed - counted.remittance_minor - i128::from(declared_remittance),
    };
    let within = left.abs() <= i128::from(tolerance_minor);
    let total = Total {
        currency,
        items: counted.items,
        debit_minor: fit(counted.debit_minor)?,
        credit_minor: fit(counted.credit_minor)?,
        gross_minor: fit(counted.gross_minor)?,
        fee_minor: fit(counted.fee_minor)?,
        net_minor: fit(counted.net_minor)?,
        remittance_minor: fit(counted.remittance_minor)?,
        declared_remittance_minor: declared_remittance,
        rounding_minor: if within { fit(left)? } else { 0 },
        difference_minor: if within { 0 } else { fit(left)? },
        declared,
        tolerance_minor,
    };
    let mut breaks = binding_breaks(currency, &counted, &declared, tolerance_minor);
    if !within {
        let show = |sum: i128| format_minor(sum, currency.exponent());
        let paid = counted.remittance_minor + i128::from(declared_remittance);
        let fees = match owed - counted.net_minor {
            0 => String::new(),
            fees => format!(" and our fees {} {currency}", show(fees)),
        };
        breaks.push(format!(
            "rows net {} {currency}{fees}, remittance {} {currency}: {} left over",
            show(counted.net_minor),
            show(paid),
            show(left)
        ));
    }
    Ok((total, breaks))
}

fn binding_breaks(currency: Currency, counted: &Counted, declared: &Declared, tolerance_minor: i64) -> Vec<String> {
    let amounts = [
        ("debits", declared.debit_minor, counted.debit_minor),
        ("credits", declared.credit_minor, counted.credit_minor),
        ("gross", declared.gross_minor, counted.gross_minor),
        ("fees", declared.fee_minor, counted.fee_minor),
        ("net", declared.net_minor, counted.net_minor),
    ];
    let mut breaks = Vec::new();
    if let Some(items) = declared.items.filter(|items| *items != counted.items) {
        breaks.push(format!("declares {items} items, has {}", counted.items));
    }
    for (what, declared, counted) in amounts {
        let Some(declared) = declared.map(i128::from) else { continue };
        if (declared - counted).abs() > i128::from(tolerance_minor) {
            let show = |sum: i128| format_minor(sum, currency.exponent());
            breaks.push(format!("declares {what} of {} {currency}, rows sum to {}", show(declared), show(counted)));
        }
    }
    breaks
}
