//! Items of every kind and sign, for the property tests.

use domain::item::{Item, ItemKind};
use domain::money::Currency;
use proptest::prelude::*;

pub(crate) fn eur() -> Currency {
    Currency::parse("EUR").expect("a currency")
}

/// Any kind, merchant, sign: zero, small and very large amounts, fees above the gross (M19).
pub(crate) fn item() -> impl Strategy<Value = Item> {
    let amount = prop_oneof![Just(0_i64), -500_i64..500, -(i64::MAX / 64)..i64::MAX / 64];
    (prop::sample::select(ItemKind::ALL.to_vec()), "[abc]", amount.clone(), amount).prop_map(|(kind, merchant, gross, fee)| {
        Item {
            line_no: 1,
            kind,
            merchant,
            currency: eur(),
            gross_minor: gross,
            fee_minor: fee,
            residual_micro: 0,
            dedupe_key: String::new(),
        }
    })
}

pub(crate) fn items() -> impl Strategy<Value = Vec<Item>> {
    prop::collection::vec(item(), 0..12)
}
