//! Counting and judging a batch, against sums written a second way.

mod common;

use common::{eur, items};
use domain::item::{FeeMode, Item, ItemKind};
use domain::money::MoneyError;
use domain::totals::{Counted, Declared, Remits, judge};
use proptest::prelude::*;

fn count(items: &[Item]) -> Counted {
    let mut counted = Counted::default();
    items.iter().for_each(|item| counted.add(item));
    counted
}

fn sum<'a>(items: impl Iterator<Item = &'a Item>, of: fn(&Item) -> i64) -> i128 {
    items.map(|item| i128::from(of(item))).sum()
}

fn remits() -> impl Strategy<Value = Remits> {
    prop::sample::select(vec![Remits::Never, Remits::ByLine, Remits::DeclaredNet])
}

proptest! {
    #[test]
    fn counting_is_a_sum_per_measure(items in items()) {
        let counted = count(&items);
        let lines = || items.iter().filter(|item| item.kind != ItemKind::Remittance);
        let paid = || items.iter().filter(|item| item.kind == ItemKind::Remittance);
        prop_assert_eq!(counted.items, i64::try_from(items.len()).expect("few"));
        prop_assert_eq!(counted.gross_minor, sum(lines(), |item| item.gross_minor));
        prop_assert_eq!(counted.fee_minor, sum(lines(), |item| item.fee_minor));
        let theirs = lines().filter(|item| matches!(item.kind, ItemKind::Fee | ItemKind::Adjustment));
        prop_assert_eq!(counted.carried_fee_minor, counted.fee_minor - sum(theirs, |item| item.fee_minor));
        prop_assert_eq!(counted.remittances, i64::try_from(paid().count()).expect("few"));
        prop_assert_eq!(counted.net_minor, counted.gross_minor - counted.fee_minor);
        prop_assert_eq!(counted.debit_minor - counted.credit_minor, counted.gross_minor);
        prop_assert!(counted.debit_minor >= 0 && counted.credit_minor >= 0);
        prop_assert_eq!(counted.debit_minor, sum(lines(), |item| item.gross_minor.max(0)));
        prop_assert_eq!(counted.remittance_minor, -(sum(paid(), |item| item.gross_minor) - sum(paid(), |item| item.fee_minor)));
    }

    #[test]
    fn the_order_of_lines_does_not_matter(items in items()) {
        let mut reversed = items.clone();
        reversed.reverse();
        prop_assert_eq!(count(&items), count(&reversed));
    }

    /// What is left over is rounding within the tolerance, a difference beyond it, never both.
    #[test]
    fn what_is_left_is_rounding_or_a_difference(
        items in items(),
        net in prop::option::of(-1_000_i64..1_000),
        remits in remits(),
        fee_mode in prop::sample::select(vec![FeeMode::Withheld, FeeMode::Charged]),
        tolerance in 0_i64..600,
    ) {
        let counted = count(&items);
        let declared = Declared { net_minor: net, ..Declared::default() };
        let Ok((total, breaks)) = judge(eur(), counted, declared, remits, fee_mode, tolerance) else { return Ok(()) };
        let paid = counted.remittance_minor + i128::from(if remits == Remits::DeclaredNet { net.unwrap_or(0) } else { 0 });
        let ours = if fee_mode == FeeMode::Charged { counted.carried_fee_minor } else { 0 };
        let owed = if remits == Remits::Never { 0 } else { counted.net_minor + ours };
        let left = owed - paid;
        prop_assert_eq!(i128::from(total.rounding_minor) + i128::from(total.difference_minor), left);
        prop_assert!(total.rounding_minor == 0 || total.difference_minor == 0);
        prop_assert_eq!(total.difference_minor != 0, left.abs() > i128::from(tolerance));
        let net_differs = net.is_some_and(|net| (i128::from(net) - counted.net_minor).abs() > i128::from(tolerance));
        prop_assert_eq!(breaks.len(), usize::from(net_differs) + usize::from(total.difference_minor != 0));
        prop_assert_eq!(i128::from(total.declared_remittance_minor) + counted.remittance_minor, paid);
    }

    /// A batch that declares exactly what it counts binds and foots; one unit more than the tolerance in any figure breaks.
    #[test]
    fn every_declared_figure_binds(items in items(), which in 0_usize..6, tolerance in 0_i64..3, sign in prop::bool::ANY) {
        let counted = count(&items.into_iter().filter(|item| item.kind != ItemKind::Remittance).collect::<Vec<_>>());
        let fit = |sum: i128| i64::try_from(sum).expect("few items, each far below the limit");
        let mut declared = Declared {
            items: Some(counted.items),
            debit_minor: Some(fit(counted.debit_minor)),
            credit_minor: Some(fit(counted.credit_minor)),
            gross_minor: Some(fit(counted.gross_minor)),
            fee_minor: Some(fit(counted.fee_minor)),
            net_minor: Some(fit(counted.net_minor)),
        };
        let (total, breaks) = judge(eur(), counted, declared, Remits::Never, FeeMode::Withheld, tolerance).expect("fits");
        prop_assert_eq!((breaks.len(), total.declared), (0, declared));
        let figure = match which {
            0 => &mut declared.items,
            1 => &mut declared.debit_minor,
            2 => &mut declared.credit_minor,
            3 => &mut declared.gross_minor,
            4 => &mut declared.fee_minor,
            _ => &mut declared.net_minor,
        };
        // a number of lines has no tolerance
        let beyond = if which == 0 { 1 } else { tolerance + 1 };
        *figure = figure.map(|figure| if sign { figure + beyond } else { figure - beyond });
        let (_, breaks) = judge(eur(), counted, declared, Remits::Never, FeeMode::Withheld, tolerance).expect("fits");
        prop_assert_eq!(breaks.len(), 1, "{:?}", breaks);
    }
}

#[test]
fn a_total_beyond_64_bits_is_an_error() {
    let counted = Counted { gross_minor: i128::from(i64::MAX) + 1, ..Counted::default() };
    let error = judge(eur(), counted, Declared::default(), Remits::Never, FeeMode::Withheld, 0);
    assert!(matches!(error, Err(MoneyError::Overflow(_))), "{error:?}");
}
