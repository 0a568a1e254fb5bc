//! Journal entries balance, whatever the lines are, and clear what was remitted (M19).

mod common;

use common::{eur, items};
use domain::item::{FeeMode, Item, ItemKind};
use domain::journal::{Measure, Role, entry, template};
use domain::totals::{Counted, Declared, Remits, Total, judge};
use proptest::prelude::*;

fn fee_mode() -> impl Strategy<Value = FeeMode> {
    prop::sample::select(vec![FeeMode::Withheld, FeeMode::Charged])
}

fn judged(
    items: &[Item],
    declared_net: Option<i64>,
    remits: Remits,
    fee_mode: FeeMode,
    tolerance: i64,
) -> Option<(Counted, Total)> {
    let mut counted = Counted::default();
    items.iter().for_each(|item| counted.add(item));
    let declared = Declared { net_minor: declared_net, ..Declared::default() };
    judge(eur(), counted, declared, remits, fee_mode, tolerance).ok().map(|(total, _)| (counted, total))
}

/// Debits less credits of an account.
fn balance(accounts: &std::collections::BTreeMap<String, domain::journal::Sides>, code: &str) -> i128 {
    accounts.get(code).map_or(0, |sides| sides.debit_minor - sides.credit_minor)
}

proptest! {
    #[test]
    fn every_entry_balances(
        items in items(),
        fee_mode in fee_mode(),
        net in prop::option::of(-1_000_i64..1_000),
        remits in prop::sample::select(vec![Remits::Never, Remits::ByLine, Remits::DeclaredNet]),
        tolerance in 0_i64..600,
        accepted in -1_000_i64..1_000,
    ) {
        let Some((_, total)) = judged(&items, net, remits, fee_mode, tolerance) else { return Ok(()) };
        let accounts = entry(&items, fee_mode, &total, accepted);
        let debits: i128 = accounts.values().map(|sides| sides.debit_minor).sum();
        let credits: i128 = accounts.values().map(|sides| sides.credit_minor).sum();
        prop_assert_eq!(debits, credits);
        prop_assert!(accounts.values().all(|sides| sides.debit_minor >= 0 && sides.credit_minor >= 0));
        prop_assert!(accounts.values().all(|sides| sides.debit_minor > 0 || sides.credit_minor > 0), "zeros are dropped");
    }

    /// Clearing = net of the rows − what was remitted − rounding − what a person accepted; where the fee is ours, the fees of
    /// the rows that carry one stay in clearing too.
    #[test]
    fn clearing_is_rows_less_remittance(
        items in items(),
        fee_mode in fee_mode(),
        net in -1_000_i64..1_000,
        remits in prop::sample::select(vec![Remits::Never, Remits::ByLine, Remits::DeclaredNet]),
        tolerance in 0_i64..600,
        accepted in -1_000_i64..1_000,
    ) {
        let Some((counted, total)) = judged(&items, Some(net), remits, fee_mode, tolerance) else { return Ok(()) };
        let accounts = entry(&items, fee_mode, &total, accepted);
        let carries = |item: &&Item| !matches!(item.kind, ItemKind::Fee | ItemKind::Adjustment | ItemKind::Remittance);
        let ours: i128 = match fee_mode {
            FeeMode::Withheld => 0,
            FeeMode::Charged => items.iter().filter(carries).map(|item| i128::from(item.fee_minor)).sum(),
        };
        let remitted = counted.remittance_minor + i128::from(total.declared_remittance_minor);
        let expected = counted.net_minor + ours - remitted - i128::from(total.rounding_minor) - i128::from(accepted);
        prop_assert_eq!(balance(&accounts, "clearing"), expected);
        prop_assert_eq!(balance(&accounts, "bank"), remitted);
        prop_assert_eq!(balance(&accounts, "fee_revenue"), -ours);
        prop_assert_eq!(balance(&accounts, "rounding_difference"), i128::from(total.rounding_minor));
        prop_assert_eq!(balance(&accounts, "suspense"), i128::from(accepted));
    }

    /// Every merchant is owed exactly the net of their lines, in both fee modes.
    #[test]
    fn merchants_are_owed_their_net(items in items(), fee_mode in fee_mode()) {
        let Some((_, total)) = judged(&items, None, Remits::Never, fee_mode, i64::MAX / 2) else { return Ok(()) };
        let accounts = entry(&items, fee_mode, &total, 0);
        for merchant in ["a", "b", "c"] {
            let theirs = items.iter().filter(|item| item.merchant == merchant && item.kind != ItemKind::Remittance);
            let net: i128 = theirs.map(|item| i128::from(item.gross_minor) - i128::from(item.fee_minor)).sum();
            prop_assert_eq!(balance(&accounts, &format!("merchant_payable:{merchant}")), -net);
        }
    }

    /// A batch that foots leaves clearing at zero, whoever keeps the fee; and one whose payout takes exactly what its lines
    /// brought into clearing foots.
    #[test]
    fn a_batch_that_foots_clears(items in items(), fee_mode in fee_mode(), tolerance in 0_i64..600) {
        let mut items = items;
        let Some((_, total)) = judged(&items, None, Remits::Never, fee_mode, 0) else { return Ok(()) };
        let Ok(left) = i64::try_from(balance(&entry(&items, fee_mode, &unpaid(total), 0), "clearing")) else { return Ok(()) };
        items.push(Item { kind: ItemKind::Remittance, gross_minor: -left + tolerance, fee_minor: 0, ..line() });
        let Some((_, total)) = judged(&items, None, Remits::ByLine, fee_mode, tolerance) else { return Ok(()) };
        prop_assert_eq!(total.difference_minor, 0);
        prop_assert_eq!(balance(&entry(&items, fee_mode, &total, 0), "clearing"), 0);
    }
}

/// Nothing posted but the lines.
fn unpaid(total: Total) -> Total {
    Total { rounding_minor: 0, difference_minor: 0, declared_remittance_minor: 0, ..total }
}

fn line() -> Item {
    Item {
        line_no: 1,
        kind: ItemKind::Charge,
        merchant: "a".to_owned(),
        currency: eur(),
        gross_minor: 0,
        fee_minor: 0,
        residual_micro: 0,
        dedupe_key: String::new(),
    }
}

/// Within a template the amounts cancel for any gross and fee: that is why every line balances.
#[test]
fn templates_cancel() {
    for kind in ItemKind::ALL {
        for fee_mode in [FeeMode::Withheld, FeeMode::Charged] {
            for (gross, fee) in [(100_i64, 30_i64), (-100, 30), (100, -30), (0, 7), (7, 0), (5, 9)] {
                let sum: i64 = template(kind, fee_mode)
                    .iter()
                    .map(|line| {
                        let amount = match line.measure {
                            Measure::Gross => gross,
                            Measure::Fee => fee,
                            Measure::Net => gross - fee,
                        };
                        amount * i64::from(line.sign)
                    })
                    .sum();
                assert_eq!(sum, 0, "{kind:?} {fee_mode:?} {gross} {fee}");
            }
        }
    }
}

/// A batch without amounts settles without an entry.
#[test]
fn zero_lines_post_nothing() {
    let zero = vec![line(), Item { kind: ItemKind::Remittance, ..line() }];
    let (_, total) = judged(&zero, None, Remits::ByLine, FeeMode::Charged, 0).expect("fits");
    assert!(entry(&zero, FeeMode::Charged, &total, 0).is_empty());
    assert_eq!(Role::MerchantPayable.account_code("shop"), "merchant_payable:shop");
}
