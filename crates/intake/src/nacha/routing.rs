//! The check digit of a routing number. Needs nothing else.

/// The ninth digit of a routing number, from its first eight: weights 3, 7, 1, modulo 10. `None` where they are not digits.
pub(crate) fn check_digit(eight: &str) -> Option<u32> {
    if eight.len() != 8 {
        return None;
    }
    let mut sum = 0;
    for (c, weight) in eight.chars().zip([3, 7, 1, 3, 7, 1, 3, 7]) {
        sum += c.to_digit(10)? * weight;
    }
    Some((10 - sum % 10) % 10)
}
