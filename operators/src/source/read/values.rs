//! Values of columns from their texts: nothing is rounded or cut but the digits of a float and of
//! a point in time.

use std::str::FromStr;

use arrow_array::ArrowPrimitiveType;
use arrow_array::types::{Date32Type, TimestampMicrosecondType};
use arrow_cast::parse::{Parser as _, string_to_datetime};
use chrono::Utc;

/// The largest number up to which each whole number has a form as float64.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// A whole number, which may be written as `2.0` or `2e3`.
pub(super) fn integer<T: FromStr + TryFrom<i64>>(text: &str) -> Option<T> {
    text.parse().ok().or_else(|| {
        let number: f64 = text.parse().ok()?;
        let is_exact = number.fract() == 0.0 && number.abs() <= EXACT_MAX;
        #[expect(clippy::cast_possible_truncation, reason = "a whole number of 54 bits")]
        is_exact.then_some(number as i64)?.try_into().ok()
    })
}

/// A float that is nearest to the number, if the number is in range.
pub(super) fn float32(text: &str) -> Option<f32> {
    text.parse().ok().filter(|number: &f32| number.is_finite() || is_named(text))
}

/// As [`float32`].
pub(super) fn float64(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite() || is_named(text))
}

/// Whether the text is one of `nan` and `inf`, which are floats by name.
fn is_named(text: &str) -> bool {
    !text.bytes().any(|byte| byte.is_ascii_digit())
}

/// A truth value, `true` or `false` in any case.
pub(super) fn boolean(text: &str) -> Option<bool> {
    let is = |word: &str| text.eq_ignore_ascii_case(word);
    if is("true") { Some(true) } else { is("false").then_some(false) }
}

/// A day, such as `2024-02-29`.
pub(super) fn date(text: &str) -> Option<<Date32Type as ArrowPrimitiveType>::Native> {
    Date32Type::parse(text)
}

/// A point in time, such as `2024-02-29T12:00:00.5+01:00`; in UTC without an offset.
pub(super) fn microseconds(
    text: &str,
) -> Option<<TimestampMicrosecondType as ArrowPrimitiveType>::Native> {
    string_to_datetime(&Utc, text).ok().map(|time| time.timestamp_micros())
}
