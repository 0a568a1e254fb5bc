//! The lines of a settlement batch. Needs `money.rs`.

use crate::money::Currency;
use serde::{Deserialize, Serialize};

/// What a line is. The sign of its amounts says the direction, so a reversal is the same kind with the other sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemKind {
    /// A payer paid (gross > 0), or such a payment was taken back.
    Charge,
    /// Money back to a payer (gross < 0).
    Refund,
    /// A payer's bank took the money back (gross < 0), or gave it back after a won dispute.
    Chargeback,
    /// Money sent out on the merchant's behalf (gross < 0).
    Disbursement,
    /// The source's own fee, as a line of its own.
    Fee,
    /// A correction by the source.
    Adjustment,
    /// The source's own payout to our bank (net < 0 from the batch's point of view).
    Remittance,
}

impl ItemKind {
    /// Every kind.
    pub const ALL: [ItemKind; 7] = [
        ItemKind::Charge,
        ItemKind::Refund,
        ItemKind::Chargeback,
        ItemKind::Disbursement,
        ItemKind::Fee,
        ItemKind::Adjustment,
        ItemKind::Remittance,
    ];

    /// Whether a fee on such a line is ours where the fee is charged ([`FeeMode::Charged`]). A fee or an adjustment of the source
    /// is the source's in both modes.
    #[must_use]
    pub const fn carries_our_fee(self) -> bool {
        match self {
            ItemKind::Charge | ItemKind::Refund | ItemKind::Chargeback | ItemKind::Disbursement => true,
            ItemKind::Fee | ItemKind::Adjustment | ItemKind::Remittance => false,
        }
    }

    /// The word used in SQL, JSON and profiles.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            ItemKind::Charge => "charge",
            ItemKind::Refund => "refund",
            ItemKind::Chargeback => "chargeback",
            ItemKind::Disbursement => "disbursement",
            ItemKind::Fee => "fee",
            ItemKind::Adjustment => "adjustment",
            ItemKind::Remittance => "remittance",
        }
    }
}

/// A word that is no [`ItemKind`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an item kind (one of charge, refund, chargeback, disbursement, fee, adjustment, remittance)")]
pub struct UnknownKind(pub String);

impl std::str::FromStr for ItemKind {
    type Err = UnknownKind;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|k| k.as_str() == word).ok_or_else(|| UnknownKind(word.to_owned()))
    }
}

/// Whose fee the `fee` of a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FeeMode {
    /// The source keeps it: only the net reaches us.
    Withheld,
    /// We keep it: the gross reaches us, the merchant gets the net, the fee is our revenue.
    Charged,
}

impl FeeMode {
    /// The word used in SQL and profiles.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            FeeMode::Withheld => "withheld",
            FeeMode::Charged => "charged",
        }
    }
}

/// One line of a batch, immutable once imported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Physical line in the file it came from, from 1: unique within the batch, and what an error names.
    pub line_no: i64,
    /// What it is.
    pub kind: ItemKind,
    /// Whom we owe; never blank (a blank one is the batch's merchant).
    pub merchant: String,
    /// Of all three amounts.
    pub currency: Currency,
    /// Minor units, signed from the merchant's point of view: > 0 is owed to the merchant.
    pub gross_minor: i64,
    /// Minor units; > 0 lowers what the merchant gets.
    pub fee_minor: i64,
    /// What rounding gross and fee left over of the net, in millionths of the major unit.
    pub residual_micro: i64,
    /// Identity within the source: the same transaction in two batches is one too many.
    pub dedupe_key: String,
}

impl Item {
    /// gross − fee, in minor units. `None` where it overflows: readers refuse such a line.
    #[must_use]
    pub fn net_minor(&self) -> Option<i64> {
        self.gross_minor.checked_sub(self.fee_minor)
    }
}
