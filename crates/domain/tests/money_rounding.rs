//! Rounding and writing of money, against integer arithmetic.

use domain::money::{Currency, MoneyError, format_minor, round};
use proptest::prelude::*;
use rust_decimal::Decimal;

/// Half to even by integers: `digits` in units of 10^-scale, to `exponent` decimals.
fn by_hand(digits: i128, scale: u32, exponent: u32) -> (i128, i128) {
    if scale <= exponent {
        return (digits * 10_i128.pow(exponent - scale), 0);
    }
    let step = 10_i128.pow(scale - exponent);
    let floor = digits.div_euclid(step);
    let rest = digits.rem_euclid(step);
    let up = 2 * rest > step || (2 * rest == step && floor % 2 != 0);
    let minor = floor + i128::from(up);
    // exact − rounded, in millionths of the major unit
    let residual = (digits - minor * step) * 10_i128.pow(6 - scale);
    (minor, residual)
}

proptest! {
    #[test]
    fn rounding_is_half_to_even_and_loses_nothing(digits in any::<i64>(), scale in 0_u32..=6, exponent in 0_u32..=4) {
        let exact = Decimal::try_from_i128_with_scale(i128::from(digits), scale).expect("fits");
        let (minor, residual) = by_hand(i128::from(digits), scale, exponent);
        match round(exact, exponent) {
            Ok(rounded) => {
                prop_assert_eq!((i128::from(rounded.minor), i128::from(rounded.residual_micro)), (minor, residual));
                prop_assert!(2 * residual.abs() <= 10_i128.pow(6 - exponent));
            }
            Err(error) => {
                prop_assert!(matches!(error, MoneyError::Overflow(_)));
                prop_assert!(i64::try_from(minor).is_err());
            }
        }
    }

    /// What is written is read back as the same number of minor units.
    #[test]
    fn what_is_written_is_read_back(minor in any::<i64>(), exponent in 0_u32..=4) {
        let text = format_minor(i128::from(minor), exponent);
        prop_assert_eq!(text.split_once('.').map_or(0, |(_, cents)| cents.len()), exponent as usize);
        let exact: Decimal = text.parse().expect("a number");
        let rounded = round(exact, exponent).expect("fits");
        prop_assert_eq!((rounded.minor, rounded.residual_micro), (minor, 0));
    }
}

#[test]
fn halves_go_to_the_even_neighbour() {
    for (text, minor, residual) in
        [("0.005", 0, 5_000), ("0.015", 2, -5_000), ("-0.005", 0, -5_000), ("-0.015", -2, 5_000), ("2.675", 268, -5_000)]
    {
        let rounded = round(text.parse().expect("a number"), 2).expect("fits");
        assert_eq!((rounded.minor, rounded.residual_micro), (minor, residual), "{text}");
    }
}

#[test]
fn limits_are_errors() {
    let round = |text: &str| round(text.parse().expect("a number"), 2);
    assert_eq!(round("92233720368547758.07").map(|rounded| rounded.minor), Ok(i64::MAX));
    assert_eq!(round("-92233720368547758.08").map(|rounded| rounded.minor), Ok(i64::MIN));
    assert!(matches!(round("92233720368547758.08"), Err(MoneyError::Overflow(_))));
    assert!(matches!(round("79228162514264337593543950335"), Err(MoneyError::Overflow(_))));
    assert!(matches!(round("0.0000001"), Err(MoneyError::TooFine(_))));
}

#[test]
fn amounts_are_written_as_people_read_them() {
    for (minor, exponent, text) in
        [(5_530_807, 2, "55308.07"), (-5, 2, "-0.05"), (0, 2, "0.00"), (1200, 0, "1200"), (-1, 3, "-0.001"), (0, 0, "0")]
    {
        assert_eq!(format_minor(minor, exponent), text);
    }
    assert_eq!(format_minor(i128::from(i64::MIN), 2), "-92233720368547758.08");
}

#[test]
fn currencies_have_their_own_exponent() {
    let exponent = |code| Currency::parse(code).map(Currency::exponent);
    assert_eq!([exponent("JPY"), exponent("usd"), exponent("KWD"), exponent("UGX")], [Ok(0), Ok(2), Ok(3), Ok(0)]);
    for code in ["XXX", "XAU", "XTS", "", "EU", "EURO", "ÉUR"] {
        assert!(matches!(exponent(code), Err(MoneyError::UnknownCurrency(_))), "{code}");
    }
}
