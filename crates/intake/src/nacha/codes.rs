//! Transaction codes, standard entry classes and service classes. Needs `record.rs`.

use super::record::Record;
use crate::error::Fault;
use domain::item::ItemKind;

/// What a transaction code moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Movement {
    pub(super) direction: Direction,
    /// Prenotes and zero-dollar entries with remittance data: their amount must be zero.
    pub(super) zero: bool,
}

/// Seen from the receiver's account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    /// Drawn from the receiver: owed to the merchant.
    Debit,
    /// Sent to the receiver on the merchant's behalf.
    Credit,
}

impl Direction {
    pub(super) fn kind(self) -> ItemKind {
        match self {
            Direction::Debit => ItemKind::Charge,
            Direction::Credit => ItemKind::Disbursement,
        }
    }
}

impl Movement {
    /// Reads positions 2-3 of an entry.
    pub(super) fn of(entry: &Record<'_>) -> Result<Movement, Fault> {
        let (direction, zero) = match entry.text(2, 3) {
            "22" | "32" | "42" | "52" => (Direction::Credit, false),
            "27" | "37" | "47" | "55" => (Direction::Debit, false),
            "23" | "33" | "43" | "53" | "24" | "34" | "44" | "54" => (Direction::Credit, true),
            "28" | "38" | "48" | "29" | "39" | "49" => (Direction::Debit, true),
            code @ ("21" | "26" | "31" | "36" | "41" | "46" | "51" | "56") => {
                let what =
                    format!("transaction code {code} is a return or a notification of change, which is no settlement input");
                return Err(entry.fault(what, "import the file of originated entries; handle returns apart"));
            }
            code => return Err(entry.fault(format!("unknown transaction code {code:?}"), "correct the file")),
        };
        Ok(Movement { direction, zero })
    }
}

/// Standard entry class: decides the layout of entries and their addenda.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryClass {
    /// PPD, CCD, WEB: at most one addenda record.
    OneAddenda,
    /// TEL: none.
    NoAddenda,
    /// CTX: as many as the entry says.
    Ctx,
    /// IAT: an entry layout and addenda of its own.
    Iat,
}

impl EntryClass {
    /// Reads positions 51-53 of a batch header.
    pub(super) fn of(header: &Record<'_>) -> Result<EntryClass, Fault> {
        match header.text(51, 53) {
            "PPD" | "CCD" | "WEB" => Ok(EntryClass::OneAddenda),
            "TEL" => Ok(EntryClass::NoAddenda),
            "CTX" => Ok(EntryClass::Ctx),
            "IAT" => Ok(EntryClass::Iat),
            code => {
                let what = format!("standard entry class {code:?} is not read (PPD, CCD, WEB, TEL, CTX and IAT are)");
                Err(header.fault(what, "import that batch from a file of another format"))
            }
        }
    }
}

/// Service class: what a batch may contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServiceClass {
    Mixed,
    CreditsOnly,
    DebitsOnly,
}

impl ServiceClass {
    /// Reads positions 2-4 of a batch header or control.
    pub(super) fn of(record: &Record<'_>) -> Result<ServiceClass, Fault> {
        match record.text(2, 4) {
            "200" => Ok(ServiceClass::Mixed),
            "220" => Ok(ServiceClass::CreditsOnly),
            "225" => Ok(ServiceClass::DebitsOnly),
            code => Err(record.fault(format!("service class {code:?} is not 200, 220 or 225"), "correct the file")),
        }
    }

    /// Why an entry of this direction does not belong into the batch.
    pub(super) fn objection(self, direction: Direction) -> Option<&'static str> {
        match (self, direction) {
            (ServiceClass::CreditsOnly, Direction::Debit) => Some("a debit in a batch of service class 220 (credits only)"),
            (ServiceClass::DebitsOnly, Direction::Credit) => Some("a credit in a batch of service class 225 (debits only)"),
            _ => None,
        }
    }
}
