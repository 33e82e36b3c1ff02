//! Shares of a stream as exact fractions.

use std::borrow::Cow;
use std::fmt;
use std::num::IntErrorKind;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};
use thiserror::Error;

/// The most decimals: 10^18 is below 2^63.
const DECIMALS_MAX: usize = 18;

/// A share of a stream, from 0 to 1: an exact fraction.
///
/// Counts are compared with a share in whole numbers: floating point loses items exactly on the
/// border, such as 7 of 100 with the share 0.07.
///
/// # Examples
/// ```
/// use trommel_operators::Share;
///
/// let share: Share = "0.07".parse()?;
/// assert_eq!(share, Share::new(7, 100)?);
/// assert!(share.is_reached_by(7, 100) && !share.is_reached_by(6, 100));
/// assert!("1/3".parse::<Share>()?.is_reached_by(1, 3));
/// assert!("1.5".parse::<Share>().is_err());
/// # Ok::<(), trommel_operators::ShareError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    numerator: u64,
    denominator: u64,
}

/// Why a share is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ShareError {
    /// The share is below 0 or above 1, or its denominator is 0.
    #[error("invalid share {text}: expected 0 to 1")]
    OutOfRange {
        /// The share as given.
        text: String,
    },
    /// The text is neither a decimal number nor a fraction.
    #[error(
        "invalid share {text:?}: expected a decimal such as 0.07 or a fraction such as \"1/3\""
    )]
    Syntax {
        /// The share as given.
        text: String,
    },
    /// The share has more digits than are kept.
    #[error("invalid share {text:?}: expected at most {DECIMALS_MAX} decimals, numbers below 2^64")]
    TooLong {
        /// The share as given.
        text: String,
    },
}

impl Share {
    /// The share `numerator / denominator`.
    ///
    /// # Errors
    /// If that is above 1, or `denominator` is 0.
    pub fn new(numerator: u64, denominator: u64) -> Result<Self, ShareError> {
        if denominator == 0 || numerator > denominator {
            return Err(ShareError::OutOfRange { text: format!("{numerator}/{denominator}") });
        }
        let common = greatest_common_divisor(numerator, denominator);
        Ok(Self { numerator: numerator / common, denominator: denominator / common })
    }

    /// Whether `count` of `observed` is at least this share.
    #[must_use]
    pub fn is_reached_by(self, count: u64, observed: u64) -> bool {
        let [left, right] = [(count, self.denominator), (observed, self.numerator)]
            .map(|(number, factor)| u128::from(number) * u128::from(factor));
        left >= right
    }
}

/// All of a stream reaches it.
impl Default for Share {
    fn default() -> Self {
        Self { numerator: 0, denominator: 1 }
    }
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.numerator, self.denominator)
    }
}

impl FromStr for Share {
    type Err = ShareError;

    /// Reads a decimal number or a fraction of two whole ones, exactly.
    fn from_str(text: &str) -> Result<Self, ShareError> {
        let out_of_range = |_| ShareError::OutOfRange { text: text.to_owned() };
        if let Some((numerator, denominator)) = text.split_once('/') {
            let [numerator, denominator] = [whole(numerator, text)?, whole(denominator, text)?];
            return Self::new(numerator, denominator).map_err(out_of_range);
        }
        let (digits, decimals) = text.split_once('.').unwrap_or((text, ""));
        let decimals = decimals.trim_end_matches('0');
        if decimals.len() > DECIMALS_MAX {
            return Err(ShareError::TooLong { text: text.to_owned() });
        }
        let scale = decimals.bytes().fold(1, |scale, _| scale * 10);
        Self::new(whole(&format!("{digits}{decimals}"), text)?, scale).map_err(out_of_range)
    }
}

/// The number that `digits`, a part of `text`, stand for.
fn whole(digits: &str, text: &str) -> Result<u64, ShareError> {
    let text = || text.to_owned();
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(ShareError::Syntax { text: text() });
    }
    digits.parse::<u64>().map_err(|error| match error.kind() {
        IntErrorKind::PosOverflow => ShareError::TooLong { text: text() },
        _ => ShareError::Syntax { text: text() },
    })
}

/// A number is read as the shortest decimal that stands for it: 0.07 is 7/100.
impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Written;
        impl Visitor<'_> for Written {
            type Value = Share;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a decimal number from 0 to 1 or a fraction such as \"1/3\"")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Share, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Share, E> {
                self.visit_str(&number.to_string())
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<Share, E> {
                if number < 0.0 {
                    return Err(E::invalid_value(Unexpected::Float(number), &self));
                }
                self.visit_str(&number.to_string())
            }
        }
        deserializer.deserialize_any(Written)
    }
}

impl JsonSchema for Share {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        Cow::Borrowed("Share")
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["number", "string"], "minimum": 0, "maximum": 1, "minLength": 1 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_percent_is_reached_on_its_border() {
        for percent in 0..=100_u64 {
            let written = f64::from(u32::try_from(percent).unwrap()) / 100.0;
            let share: Share = serde_json::from_value(serde_json::json!(written)).unwrap();
            assert_eq!(share, Share::new(percent, 100).unwrap());
            assert!(share.is_reached_by(percent, 100) && share.is_reached_by(percent + 1, 100));
            assert!(percent == 0 || !share.is_reached_by(percent - 1, 100));
        }
    }

    #[test]
    fn the_largest_counts_do_not_overflow() {
        let third = Share::new(1, 3).unwrap();
        assert!(third.is_reached_by(u64::MAX / 3, u64::MAX));
        assert!(!third.is_reached_by(u64::MAX / 3 - 1, u64::MAX));
        let least = "0.000000000000000001".parse::<Share>().unwrap();
        assert!(least.is_reached_by(u64::MAX, u64::MAX) && !least.is_reached_by(0, 1));
    }

    #[test]
    fn other_texts_are_refused_with_the_reason() {
        let refused = |text: &str| text.parse::<Share>().unwrap_err().to_string();
        assert_eq!(refused("1.5"), "invalid share 1.5: expected 0 to 1");
        assert_eq!(refused("1/0"), "invalid share 1/0: expected 0 to 1");
        for text in ["", "x", "-0.1", "1/", "0.1/2", "1e-3"] {
            assert!(refused(text).contains("a fraction such as"), "{text}");
        }
        assert!(refused("0.0000000000000000001").contains("at most 18 decimals"));
        assert!(refused("1/99999999999999999999").contains("below 2^64"));
        let error = serde_json::from_str::<Share>("-0.5").unwrap_err().to_string();
        assert!(error.contains("from 0 to 1"), "{error}");
    }
}
