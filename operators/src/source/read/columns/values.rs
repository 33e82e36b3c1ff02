//! Values of columns from their texts. Only a float and a point in time may lose digits; all other
//! values are exact.

use std::str::FromStr;

use arrow_array::ArrowPrimitiveType;
use arrow_array::types::{Date32Type, TimestampMicrosecondType};
use arrow_cast::parse::{Parser as _, string_to_datetime};
use chrono::Utc;

/// A whole number, which may be written as `2.0` or `2e3`.
pub(crate) fn integer<T: FromStr + TryFrom<i128>>(text: &str) -> Option<T> {
    text.parse().ok().or_else(|| whole(text)?.try_into().ok())
}

/// The exact whole number that a decimal stands for; `None` for a number with a fraction.
fn whole(text: &str) -> Option<i128> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
        None => (text, 0),
    };
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, mantissa),
    };
    let (before, after) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let after = after.trim_end_matches('0');
    let digits = [before.trim_start_matches('0'), after].concat();
    let are_digits = [before, after].iter().all(|part| part.bytes().all(|b| b.is_ascii_digit()));
    if before.is_empty() || !are_digits {
        return None;
    }
    if digits.bytes().all(|digit| digit == b'0') {
        return Some(0);
    }
    // Zeros to append after the last digit or, if negative, digits to cut after the point.
    let shift = exponent.checked_sub(i64::try_from(after.len()).ok()?)?;
    let cut = usize::try_from(shift.min(0).unsigned_abs()).ok()?;
    let (digits, rest) = digits.split_at(digits.len().checked_sub(cut)?);
    let factor = 10_i128.checked_pow(u32::try_from(shift.max(0)).ok()?)?;
    let is_whole = rest.bytes().all(|digit| digit == b'0');
    is_whole.then_some(sign * digits.parse::<i128>().ok()?.checked_mul(factor)?)
}

/// The float nearest to the number, if the number is in range.
pub(crate) fn float32(text: &str) -> Option<f32> {
    text.parse().ok().filter(|number: &f32| number.is_finite() || is_named(text))
}

/// As [`float32`], with 64 bits.
pub(crate) fn float64(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite() || is_named(text))
}

/// Whether the text is a name of a float, such as `nan` or `inf`.
fn is_named(text: &str) -> bool {
    !text.bytes().any(|byte| byte.is_ascii_digit())
}

/// A truth value, `true` or `false` in any case.
pub(crate) fn boolean(text: &str) -> Option<bool> {
    let is = |word: &str| text.eq_ignore_ascii_case(word);
    if is("true") { Some(true) } else { is("false").then_some(false) }
}

/// A day, such as `2024-02-29`.
pub(crate) fn date(text: &str) -> Option<<Date32Type as ArrowPrimitiveType>::Native> {
    Date32Type::parse(text)
}

/// A point in time, such as `2024-02-29T12:00:00.5+01:00`. A time without an offset is in UTC.
pub(crate) fn microseconds(
    text: &str,
) -> Option<<TimestampMicrosecondType as ArrowPrimitiveType>::Native> {
    string_to_datetime(&Utc, text).ok().map(|time| time.timestamp_micros())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_exact_in_every_form() {
        for (text, expected) in [
            ("7", Some(7)),
            ("2.0", Some(2)),
            ("2e3", Some(2000)),
            ("1e18", Some(1_000_000_000_000_000_000)),
            ("9007199254740993.0", Some(9_007_199_254_740_993)),
            ("9223372036854775807.00", Some(i64::MAX)),
            ("-9223372036854775808.0", Some(i64::MIN)),
            ("1.50e1", Some(15)),
            ("120e-1", Some(12)),
            ("-0.0", Some(0)),
            ("0e-400", Some(0)),
            ("9223372036854775808.0", None),
            ("4503599627370497.5", None),
            ("0.99999999999999999", None),
            ("2.0000000000000001", None),
            ("1e-400", None),
            ("1e400", None),
            ("15e-1", None),
            (".5", None),
            ("1e", None),
            ("", None),
            ("-", None),
            ("x", None),
        ] {
            assert_eq!(integer::<i64>(text), expected, "{text}");
        }
    }
}
