//! Exact fractions in texts and JSON, for shares and thresholds.
//!
//! A text is read exactly: a decimal, a fraction of two whole numbers, or a percentage. A float of
//! JSON or of a program stands for the *simplest* fraction that rounds to the float, the fraction
//! with the least denominator: 0.07 is 7/100, and 5.0 / 6.0 is 5/6. A share that a program has
//! computed by a division is therefore the share that the program means.

use std::fmt::{self, Display};
use std::marker::PhantomData;
use std::num::{IntErrorKind, ParseIntError};
use std::ops::Rem;
use std::str::FromStr;

use serde::de::{Deserializer, Error, Unexpected, Visitor};

/// Reason why a text is no fraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FractionError {
    /// The text is neither a decimal number nor a fraction.
    Syntax,
    /// A number has too many decimals, or is 2^64 or more.
    TooLong,
}

/// Reads a decimal number, a fraction of two whole numbers or a percentage, exactly. Returns
/// numerator and denominator, not in lowest terms; the denominator may be 0. `decimals_max` is at
/// most 36, as 10^38 is below 2^127; zeros at the end do not count.
pub(crate) fn parse(text: &str, decimals_max: usize) -> Result<(u64, u128), FractionError> {
    if let Some((numerator, denominator)) = text.split_once('/') {
        return Ok((whole(numerator)?, whole(denominator)?.into()));
    }
    if let Some(percent) = text.strip_suffix('%') {
        let (numerator, denominator) = decimal(percent, decimals_max.saturating_sub(2))?;
        return Ok((numerator, denominator * 100));
    }
    decimal(text, decimals_max)
}

fn decimal(text: &str, decimals_max: usize) -> Result<(u64, u128), FractionError> {
    let (digits, decimals) = text.split_once('.').unwrap_or((text, ""));
    let decimals = decimals.trim_end_matches('0');
    if decimals.len() > decimals_max {
        return Err(FractionError::TooLong);
    }
    let scale = decimals.bytes().fold(1, |scale, _| scale * 10);
    Ok((whole(&format!("{digits}{decimals}"))?, scale))
}

fn whole(digits: &str) -> Result<u64, FractionError> {
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(FractionError::Syntax);
    }
    digits.parse().map_err(|error: ParseIntError| match error.kind() {
        IntErrorKind::PosOverflow => FractionError::TooLong,
        _ => FractionError::Syntax,
    })
}

/// Bits of a float after the first bit, and the exponent of the last bit at most.
const MANTISSA_BITS: i32 = 52;

/// The simplest fraction that rounds to `float`: the fraction with the least denominator, in lowest
/// terms. Zero for numbers below 2^-65; `None` for numbers from 2^63 on and for negative numbers.
///
/// The fraction lies between the middles of the float and its neighbours. A middle belongs to the
/// float whose last bit is 0. A walk down the continued fractions of the two middles finds the
/// fraction in as many steps as the continued fractions have terms.
pub(crate) fn simplest(float: f64) -> Option<(u64, u128)> {
    if !(0.0..2.0_f64.powi(63)).contains(&float) {
        return None;
    }
    if float < 2.0_f64.powi(-65) {
        return Some((0, 1));
    }
    let bits = float.to_bits();
    let exponent = i32::try_from(bits >> MANTISSA_BITS).ok()? - 1023 - MANTISSA_BITS;
    let mantissa = u128::from(bits & ((1 << MANTISSA_BITS) - 1) | 1 << MANTISSA_BITS);
    let is_power = mantissa == 1 << MANTISSA_BITS;
    // The unit is a quarter of the last bit; below a power of two, the neighbour is half as far
    // away.
    let (middle, below, above) = (mantissa * 4, if is_power { 1 } else { 2 }, 2);
    let shift = u32::try_from(-(exponent - 2)).unwrap_or(0);
    let scale = u32::try_from(exponent - 2).unwrap_or(0);
    let bound = |units: u128| (units << scale, 1_u128 << shift);
    let is_closed = mantissa % 2 == 0;
    let found = between(bound(middle - below), bound(middle + above), is_closed);
    Some((u64::try_from(found.0).ok()?, found.1))
}

/// The fraction with the least denominator between two fractions; a bound counts if `is_closed`.
fn between(mut low: (u128, u128), mut high: (u128, u128), is_closed: bool) -> (u128, u128) {
    // Terms of the continued fraction. Both bounds have the same terms up to the last term.
    let mut terms = Vec::new();
    loop {
        let (term, rest) = (low.0 / low.1, low.0 % low.1);
        if rest == 0 && is_closed {
            terms.push(term);
            break;
        }
        // Whether the next whole number lies between the bounds.
        let next = (term + 1) * high.1;
        if next < high.0 || next == high.0 && is_closed {
            terms.push(term + 1);
            break;
        }
        terms.push(term);
        // The rests of both bounds are below one, so their reciprocals change places.
        (low, high) = ((high.1, high.0 - term * high.1), (low.1, rest));
        if high.1 == 0 {
            // The lower bound is a whole number and does not count: the fraction may lie as near to
            // the bound as needed.
            terms.push(low.0 / low.1 + 1);
            break;
        }
    }
    let last = terms.pop().unwrap_or(0);
    terms.iter().rev().fold((last, 1), |(numerator, denominator), term| {
        (term * numerator + denominator, numerator)
    })
}

pub(crate) fn greatest_common_divisor<N>(mut a: N, mut b: N) -> N
where
    N: Copy + PartialOrd + From<u8> + Rem<Output = N>,
{
    while b > 0.into() {
        (a, b) = (b, a % b);
    }
    a
}

/// A number that is given as a whole number, a float or a text.
pub(crate) trait Given: FromStr<Err: Display> {
    /// The part of an error message that says which values are valid.
    const EXPECTED: &'static str;

    /// The number for a float, which stands for its simplest fraction.
    ///
    /// # Errors
    /// A sentence if the number is out of range.
    fn of_float(float: f64) -> Result<Self, String>;
}

/// Reads a `T` from JSON: a whole number or a text by its digits, a float as the simplest fraction.
pub(crate) fn deserialize<'de, T: Given, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    deserializer.deserialize_any(Written(PhantomData))
}

struct Written<T>(PhantomData<T>);

impl<T: Given> Visitor<'_> for Written<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<T, E> {
        if number < 0.0 {
            return Err(E::invalid_value(Unexpected::Float(number), &self));
        }
        T::of_float(number).map_err(E::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The simplest fraction, found by trying all denominators; each quotient is rounded once.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is small")]
    fn tried(float: f64, most: u32) -> Option<(u64, u128)> {
        (1..=most).find_map(|denominator| {
            let near = (float * f64::from(denominator)).round();
            [near - 1.0, near, near + 1.0].into_iter().find_map(|numerator| {
                (numerator >= 0.0 && numerator / f64::from(denominator) == float)
                    .then_some((numerator as u64, denominator.into()))
            })
        })
    }

    #[test]
    fn a_quotient_of_small_numbers_is_that_fraction() {
        for denominator in 1..400_u32 {
            for numerator in 0..=denominator + 3 {
                let common = greatest_common_divisor(numerator, denominator);
                let float = f64::from(numerator) / f64::from(denominator);
                let expected = (u64::from(numerator / common), u128::from(denominator / common));
                assert_eq!(simplest(float), Some(expected), "{numerator}/{denominator}");
            }
        }
        assert_eq!(simplest(f64::from(u32::MAX)), Some((u32::MAX.into(), 1)));
    }

    #[test]
    fn floats_at_the_ends_have_fractions() {
        for float in [1.0 - f64::EPSILON / 2.0, 1.0 + f64::EPSILON, 2.0_f64.powi(-65), 0.5, 1e18] {
            let (numerator, denominator) = simplest(float).unwrap();
            // The numbers may need more than 53 bits, and are then rounded as well.
            let ratio = numerator as f64 / denominator as f64 / float;
            assert!((ratio - 1.0).abs() <= f64::EPSILON, "{numerator}/{denominator}");
        }
        assert_eq!(simplest(f64::MIN_POSITIVE), Some((0, 1)));
        assert_eq!(
            (simplest(2.0_f64.powi(63)), simplest(-0.1), simplest(f64::NAN)),
            (None, None, None)
        );
    }

    #[test]
    fn percentages_are_read_exactly() {
        assert_eq!(parse("7%", 9), Ok((7, 100)));
        assert_eq!(parse("0.5%", 9), Ok((5, 1_000)));
        assert_eq!(parse("0.12345678%", 9), Err(FractionError::TooLong));
        assert_eq!(parse("%", 9), Err(FractionError::Syntax));
    }

    proptest! {
        #[test]
        fn no_fraction_with_a_smaller_denominator_rounds_to_a_float(
            numerator in 1_u32..5_000,
            denominator in 1_u32..5_000,
            step in -3_i64..=3,
        ) {
            let near = f64::from(numerator) / f64::from(denominator);
            let float = f64::from_bits(near.to_bits().checked_add_signed(step).unwrap());
            let found = simplest(float).unwrap();
            // A whole number of 53 bits is exact, and the quotient of two such numbers is rounded
            // only once.
            if found.0 < 1 << 53 && found.1 < 1 << 53 {
                prop_assert_eq!(found.0 as f64 / found.1 as f64, float);
            }
            match tried(float, 6_000) {
                Some(expected) => prop_assert_eq!(found, expected),
                None => prop_assert!(found.1 > 6_000),
            }
        }
    }
}
