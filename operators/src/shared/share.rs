//! Shares of a stream as exact fractions.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer};
use thiserror::Error;

use crate::shared::fraction::{self, FractionError, Given, greatest_common_divisor};

/// Maximum decimals of a share.
const DECIMALS_MAX: usize = 38;

/// A share of a stream, from 0 to 1: an exact fraction.
///
/// Counts are compared with a share in whole numbers: floating point loses items exactly on the
/// border, such as 7 of 100 with the share 0.07. A text is read exactly: `"0.07"`, `"7/100"` and
/// `"7%"` are one share. A float stands for the simplest fraction that rounds to it: `0.07` is
/// 7/100, and 5.0 / 6.0 is 5/6. Of the shares below 2^-65, which each item of a stream reaches, a
/// float stands for 0.
///
/// # Examples
/// ```
/// use trommel_operators::Share;
///
/// let share: Share = "0.07".parse()?;
/// assert_eq!(share, Share::new(7, 100)?);
/// assert_eq!(share.least_count(100), 7);
/// assert_eq!("1/3".parse::<Share>()?.least_count(10), 4);
/// assert!("1.5".parse::<Share>().is_err());
/// # Ok::<(), trommel_operators::ShareError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// At most the denominator.
    numerator: u64,
    denominator: u128,
}

/// Reason why a share is refused.
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
        "invalid share {text:?}: expected a decimal such as 0.07, a fraction such as \"1/3\" or a \
         percentage such as \"7%\""
    )]
    Syntax {
        /// The share as given.
        text: String,
    },
    /// The share has more digits than a share can have.
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
    /// If the share is above 1, or `denominator` is 0.
    pub fn new(numerator: u64, denominator: u64) -> Result<Self, ShareError> {
        Self::of(numerator, denominator.into())
    }

    fn of(numerator: u64, denominator: u128) -> Result<Self, ShareError> {
        if denominator == 0 || u128::from(numerator) > denominator {
            return Err(ShareError::OutOfRange { text: format!("{numerator}/{denominator}") });
        }
        let common = greatest_common_divisor(numerator.into(), denominator);
        let numerator = u128::from(numerator) / common;
        let numerator = u64::try_from(numerator).expect("a quotient is not larger");
        Ok(Self { numerator, denominator: denominator / common })
    }

    /// The least count that is at least this share of `observed`.
    ///
    /// # Panics
    /// Never: the count is at most `observed`.
    #[must_use]
    pub fn least_count(self, observed: u64) -> u64 {
        let least = (u128::from(observed) * u128::from(self.numerator)).div_ceil(self.denominator);
        u64::try_from(least).expect("the numerator is at most the denominator")
    }
}

/// The share 0, which every item reaches.
impl Default for Share {
    fn default() -> Self {
        Self { numerator: 0, denominator: 1 }
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.numerator, self.denominator)
    }
}

impl FromStr for Share {
    type Err = ShareError;

    /// Reads a decimal number, a fraction of two whole numbers or a percentage, exactly.
    fn from_str(text: &str) -> Result<Self, ShareError> {
        let given = || text.to_owned();
        let (numerator, denominator) =
            fraction::parse(text, DECIMALS_MAX).map_err(|error| match error {
                FractionError::Syntax => ShareError::Syntax { text: given() },
                FractionError::TooLong => ShareError::TooLong { text: given() },
            })?;
        Self::of(numerator, denominator).map_err(|_| ShareError::OutOfRange { text: given() })
    }
}

impl Given for Share {
    const EXPECTED: &'static str = "a number from 0 to 1 or a fraction such as \"1/3\"";

    fn of_float(float: f64) -> Result<Self, String> {
        let out_of_range = || ShareError::OutOfRange { text: float.to_string() }.to_string();
        let (numerator, denominator) = fraction::simplest(float).ok_or_else(out_of_range)?;
        Self::of(numerator, denominator).map_err(|_| out_of_range())
    }
}

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        fraction::deserialize(deserializer)
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

    fn of_json(text: &str) -> Share {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn every_percent_is_reached_on_its_border() {
        for percent in 0..=100_u64 {
            let written = f64::from(u32::try_from(percent).unwrap()) / 100.0;
            let share = of_json(&serde_json::json!(written).to_string());
            assert_eq!(share, Share::new(percent, 100).unwrap());
            assert_eq!(share.least_count(100), percent);
        }
    }

    #[test]
    fn the_share_of_a_part_is_reached_by_that_part() {
        for whole in 1..300_u32 {
            for part in 0..=whole {
                let written = f64::from(part) / f64::from(whole);
                let share = of_json(&serde_json::json!(written).to_string());
                assert_eq!(share.least_count(whole.into()), u64::from(part), "{part} of {whole}");
            }
        }
        assert_eq!("7%".parse::<Share>(), Share::new(7, 100));
    }

    #[test]
    fn the_largest_counts_do_not_overflow() {
        let third = Share::new(1, 3).unwrap();
        assert_eq!(third.least_count(u64::MAX), u64::MAX / 3);
        assert_eq!(Share::new(u64::MAX, u64::MAX).unwrap().least_count(u64::MAX), u64::MAX);
        let almost = Share::new(u64::MAX - 1, u64::MAX).unwrap();
        assert_eq!(almost.least_count(u64::MAX), u64::MAX - 1);
        let least = "0.00000000000000000000000000000000000001".parse::<Share>().unwrap();
        assert_eq!((least.least_count(u64::MAX), least.least_count(0)), (1, 0));
    }

    #[test]
    fn every_float_from_0_to_1_is_a_share() {
        for float in [1.0 / 300.0, f64::MIN_POSITIVE, 5e-324, 1e-20, 1.0 - f64::EPSILON, 0.0] {
            let share = of_json(&serde_json::json!(float).to_string());
            let expected = (float * 1e15).ceil();
            assert!((share.least_count(10_u64.pow(15)) as f64 - expected).abs() <= 1.0, "{float}");
        }
    }

    #[test]
    fn other_texts_are_refused_with_the_reason() {
        let refused = |text: &str| text.parse::<Share>().unwrap_err().to_string();
        assert_eq!(refused("1.5"), "invalid share 1.5: expected 0 to 1");
        assert_eq!(refused("1/0"), "invalid share 1/0: expected 0 to 1");
        for text in ["", "x", "-0.1", "1/", "0.1/2", "1e-3"] {
            assert!(refused(text).contains("a fraction such as"), "{text}");
        }
        assert!(refused(&format!("0.{}1", "0".repeat(38))).contains("at most 38 decimals"));
        assert!(refused("0.98765432109876543211").contains("below 2^64"));
        assert!(refused("1/99999999999999999999").contains("below 2^64"));
        let error = serde_json::from_str::<Share>("-0.5").unwrap_err().to_string();
        assert!(error.contains("from 0 to 1"), "{error}");
    }
}
