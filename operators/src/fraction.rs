//! Exact fractions in texts and JSON, for shares and thresholds.

use std::fmt::{self, Display};
use std::marker::PhantomData;
use std::num::{IntErrorKind, ParseIntError};
use std::ops::Rem;
use std::str::FromStr;

use serde::de::{Deserializer, Error, Unexpected, Visitor};

/// Why a text is no fraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FractionError {
    /// The text is neither a decimal number nor a fraction.
    Syntax,
    /// A number has too many decimals, or is 2^64 or more.
    TooLong,
}

/// Reads a decimal number or a fraction of two whole numbers, exactly. Returns numerator and
/// denominator, not in lowest terms; the denominator may be 0. `decimals_max` is at most 38, as
/// 10^38 is below 2^127; zeros at the end do not count.
pub(crate) fn parse(text: &str, decimals_max: usize) -> Result<(u64, u128), FractionError> {
    if let Some((numerator, denominator)) = text.split_once('/') {
        return Ok((whole(numerator)?, whole(denominator)?.into()));
    }
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

pub(crate) fn greatest_common_divisor<N>(mut a: N, mut b: N) -> N
where
    N: Copy + PartialOrd + From<u8> + Rem<Output = N>,
{
    while b > 0.into() {
        (a, b) = (b, a % b);
    }
    a
}

/// Reads a `T` from a text, or from a number as its shortest decimal form: 0.07 is 7/100.
/// `expected` completes the error of another value; `round` is applied to a number before.
pub(crate) fn deserialize<'de, T, D>(
    deserializer: D,
    expected: &'static str,
    round: fn(f64) -> f64,
) -> Result<T, D::Error>
where
    T: FromStr<Err: Display>,
    D: Deserializer<'de>,
{
    deserializer.deserialize_any(Written { expected, round, read: PhantomData })
}

struct Written<T> {
    expected: &'static str,
    round: fn(f64) -> f64,
    read: PhantomData<T>,
}

impl<T: FromStr<Err: Display>> Visitor<'_> for Written<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
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
        let number = (self.round)(number);
        self.visit_str(&number.to_string())
    }
}
