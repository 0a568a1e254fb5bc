//! What a settled batch posts: templates as data, and the generator that the ledger's SQL must agree with.
//! Needs `item.rs`, `money.rs`, `totals.rs`.
//!
//! A template is a list of (account, measure, sign). A line's measure times the sign is the signed amount of the posting:
//! positive goes to the debit side, negative to the credit side, zero is dropped. Within a template the signs cancel, so
//! every line balances, whatever its kind and sign. Lines are summed per (account, side) and never netted.

use crate::item::{FeeMode, Item, ItemKind};
use crate::totals::Total;
use std::collections::BTreeMap;

/// The account of a posting. The code of merchant payable carries the merchant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Money at the source that has not reached the bank.
    Clearing,
    /// What we owe a merchant.
    MerchantPayable,
    /// Our own fees.
    FeeRevenue,
    /// Money in the bank.
    Bank,
    /// Differences a person accepted, to be explained.
    Suspense,
    /// Differences within the tolerance of the profile.
    RoundingDifference,
}

impl Role {
    /// The account code; of merchant payable, the part before the merchant.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Role::Clearing => "clearing",
            Role::MerchantPayable => "merchant_payable",
            Role::FeeRevenue => "fee_revenue",
            Role::Bank => "bank",
            Role::Suspense => "suspense",
            Role::RoundingDifference => "rounding_difference",
        }
    }

    /// The full account code for `merchant`.
    #[must_use]
    pub fn account_code(self, merchant: &str) -> String {
        match self {
            Role::MerchantPayable => format!("{}:{merchant}", self.code()),
            _ => self.code().to_owned(),
        }
    }

    /// The accounts every currency has besides those of its merchants.
    pub const COMMON: [Role; 5] = [Role::Clearing, Role::FeeRevenue, Role::Bank, Role::Suspense, Role::RoundingDifference];
}

/// Which amount of a line a template line takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Measure {
    /// The gross amount.
    Gross,
    /// The fee.
    Fee,
    /// gross − fee.
    Net,
}

/// One line of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TemplateLine {
    /// Where it posts.
    pub role: Role,
    /// What it posts.
    pub measure: Measure,
    /// +1: a positive measure is a debit; −1: a credit.
    pub sign: i8,
}

const fn line(role: Role, measure: Measure, sign: i8) -> TemplateLine {
    TemplateLine { role, measure, sign }
}

/// The source keeps its fee: only the net reaches clearing.
const NET: &[TemplateLine] = &[line(Role::Clearing, Measure::Net, 1), line(Role::MerchantPayable, Measure::Net, -1)];

/// We keep the fee: the gross reaches clearing, the merchant is owed the net, the fee is ours.
const GROSS_WITH_FEE: &[TemplateLine] = &[
    line(Role::Clearing, Measure::Gross, 1),
    line(Role::MerchantPayable, Measure::Net, -1),
    line(Role::FeeRevenue, Measure::Fee, -1),
];

/// The source's own payout row: its net is negative, so the bank is debited and clearing credited.
const REMITTANCE: &[TemplateLine] = &[line(Role::Bank, Measure::Net, -1), line(Role::Clearing, Measure::Net, 1)];

/// The template of a kind of line.
#[must_use]
pub const fn template(kind: ItemKind, fee_mode: FeeMode) -> &'static [TemplateLine] {
    match (kind, fee_mode) {
        (ItemKind::Remittance, _) => REMITTANCE,
        (kind, FeeMode::Charged) if kind.carries_our_fee() => GROSS_WITH_FEE,
        (_, FeeMode::Charged | FeeMode::Withheld) => NET,
    }
}

/// Amounts that a batch posts besides those of its lines, as (account, signed amount) against clearing.
#[must_use]
pub fn batch_lines(total: &Total, accepted_minor: i64) -> [(Role, i64); 3] {
    [
        (Role::Bank, total.declared_remittance_minor),
        (Role::RoundingDifference, total.rounding_minor),
        (Role::Suspense, accepted_minor),
    ]
}

/// Debits and credits of one account in one entry, each summed, never netted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sides {
    /// Σ of debits, minor units.
    pub debit_minor: i128,
    /// Σ of credits, minor units.
    pub credit_minor: i128,
}

impl Sides {
    /// Puts |amount| on the side of its sign.
    pub fn post(&mut self, signed_minor: i128) {
        if signed_minor > 0 {
            self.debit_minor += signed_minor;
        } else {
            self.credit_minor -= signed_minor;
        }
    }
}

/// The postings of one currency of a batch, by account code: the rule that the SQL of every engine is tested against.
/// Accounts that nothing touches are absent; an empty map means the batch settles without an entry.
#[must_use]
pub fn entry<'a>(
    items: impl IntoIterator<Item = &'a Item>,
    fee_mode: FeeMode,
    total: &Total,
    accepted_minor: i64,
) -> BTreeMap<String, Sides> {
    let mut accounts: BTreeMap<String, Sides> = BTreeMap::new();
    let mut post = |code: String, signed: i128| {
        if signed != 0 {
            accounts.entry(code).or_default().post(signed);
        }
    };
    for item in items {
        for line in template(item.kind, fee_mode) {
            let (gross, fee) = (i128::from(item.gross_minor), i128::from(item.fee_minor));
            let amount = match line.measure {
                Measure::Gross => gross,
                Measure::Fee => fee,
                Measure::Net => gross - fee,
            };
            post(line.role.account_code(&item.merchant), amount * i128::from(line.sign));
        }
    }
    for (role, signed) in batch_lines(total, accepted_minor) {
        post(role.account_code(""), i128::from(signed));
        post(Role::Clearing.account_code(""), -i128::from(signed));
    }
    accounts
}
