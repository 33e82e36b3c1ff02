//! Thresholds as exact rational numbers, and their text form.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer};
use thiserror::Error;

use crate::shared::fraction::{self, FractionError, Given, greatest_common_divisor};

/// Maximum digits after the point of a decimal: 10^9 is below 2^32.
const DECIMALS_MAX: usize = 9;

/// A positive rational number: the minimum similarity of a result.
///
/// Numerator and denominator have no common factor and fit 32 bits, so bounds made from them and
/// two sizes fit 128 bits. No comparison is in floating point, because rounding would lose pairs
/// whose similarity equals the threshold. A text is read exactly: `"0.8"`, `"4/5"` and `"80%"` are
/// one threshold. A float stands for the simplest fraction that rounds to it: `0.8` is 4/5, and 1.0
/// / 3.0 is 1/3.
///
/// # Examples
/// ```
/// use trommel_operators::set_similarity_join::Threshold;
///
/// let threshold: Threshold = "0.8".parse()?;
/// assert_eq!(threshold, Threshold::new(4, 5)?);
/// assert_eq!(threshold, "8/10".parse()?);
/// assert_eq!(threshold.to_string(), "4/5");
///
/// let error = "4/0".parse::<Threshold>().unwrap_err();
/// let said = "invalid threshold 4/0: numerator and denominator must be positive";
/// assert_eq!(error.to_string(), said);
/// # Ok::<(), trommel_operators::set_similarity_join::ThresholdError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Threshold {
    numerator: u32,
    denominator: u32,
}

/// A threshold is invalid.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ThresholdError {
    /// The numerator or the denominator is 0.
    #[error(
        "invalid threshold {numerator}/{denominator}: numerator and denominator must be positive"
    )]
    NotPositive {
        /// Numerator as given.
        numerator: u32,
        /// Denominator as given.
        denominator: u32,
    },
    /// The text is neither a decimal number nor a fraction.
    #[error(
        "invalid threshold {text:?}: expected a decimal such as \"0.8\", a fraction such as \"4/5\" or \
         a percentage such as \"80%\""
    )]
    Syntax {
        /// Text as given.
        text: String,
    },
    /// The number has too many digits to be kept exactly.
    #[error(
        "invalid threshold {text:?}: at most {DECIMALS_MAX} digits after the point, or a fraction of \
         numbers below 2^32, are allowed"
    )]
    TooLong {
        /// Text as given.
        text: String,
    },
}

impl Threshold {
    /// The threshold `numerator / denominator`.
    ///
    /// # Errors
    /// If `numerator` or `denominator` is 0.
    pub fn new(numerator: u32, denominator: u32) -> Result<Self, ThresholdError> {
        if numerator == 0 || denominator == 0 {
            return Err(ThresholdError::NotPositive { numerator, denominator });
        }
        let common = greatest_common_divisor(numerator, denominator);
        Ok(Self { numerator: numerator / common, denominator: denominator / common })
    }

    /// Numerator, in lowest terms.
    #[must_use]
    pub fn numerator(self) -> u32 {
        self.numerator
    }

    /// Denominator, in lowest terms.
    #[must_use]
    pub fn denominator(self) -> u32 {
        self.denominator
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { numerator, denominator } = self;
        if *denominator == 1 {
            write!(f, "{numerator}")
        } else {
            write!(f, "{numerator}/{denominator}")
        }
    }
}

impl FromStr for Threshold {
    type Err = ThresholdError;

    /// Reads a decimal number, a fraction of two whole numbers or a percentage, exactly.
    fn from_str(text: &str) -> Result<Self, ThresholdError> {
        let too_long = || ThresholdError::TooLong { text: text.to_owned() };
        let (numerator, denominator) =
            fraction::parse(text, DECIMALS_MAX).map_err(|error| match error {
                FractionError::Syntax => ThresholdError::Syntax { text: text.to_owned() },
                FractionError::TooLong => too_long(),
            })?;
        let numerator = u32::try_from(numerator).map_err(|_| too_long())?;
        let denominator = u32::try_from(denominator).map_err(|_| too_long())?;
        Self::new(numerator, denominator)
    }
}

impl Given for Threshold {
    const EXPECTED: &'static str = "a number or a fraction such as \"4/5\"";

    fn of_float(float: f64) -> Result<Self, String> {
        let too_long = || ThresholdError::TooLong { text: float.to_string() }.to_string();
        let (numerator, denominator) = fraction::simplest(float).ok_or_else(too_long)?;
        let numerator = u32::try_from(numerator).map_err(|_| too_long())?;
        let denominator = u32::try_from(denominator).map_err(|_| too_long())?;
        Self::new(numerator, denominator).map_err(|error| error.to_string())
    }
}

impl<'de> Deserialize<'de> for Threshold {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        fraction::deserialize(deserializer)
    }
}

impl JsonSchema for Threshold {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        Cow::Borrowed("Threshold")
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["number", "string"], "exclusiveMinimum": 0, "minLength": 1 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(u32, u32), String> {
        text.parse::<Threshold>().map(|t| (t.numerator, t.denominator)).map_err(|e| e.to_string())
    }

    #[test]
    fn decimals_and_fractions_are_read_exactly() {
        for (text, expected) in [
            ("0.8", (4, 5)),
            (".8", (4, 5)),
            ("0.80000000000000", (4, 5)),
            ("1", (1, 1)),
            ("1.0", (1, 1)),
            ("12", (12, 1)),
            ("80/100", (4, 5)),
            ("1/3", (1, 3)),
            ("0.123456789", (123_456_789, 1_000_000_000)),
            ("4294967295", (u32::MAX, 1)),
        ] {
            assert_eq!(read(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn invalid_thresholds_are_refused() {
        for text in ["", ".", "x", "-0.8", "+1", "0.8.1", "1/2/3", "1/", "/2", "1e-3", " 1", "NaN"]
        {
            assert!(read(text).unwrap_err().contains("expected a decimal"), "{text}");
        }
        for text in ["0", "0.0", "0/3", "3/0"] {
            assert!(read(text).unwrap_err().contains("positive"), "{text}");
        }
        for text in ["0.1234567891", "4294967296", "9.123456789"] {
            assert!(read(text).unwrap_err().contains("digits after the point"), "{text}");
        }
    }

    #[test]
    fn json_numbers_are_the_simplest_fractions_that_round_to_them() {
        let read = |json: &str| serde_json::from_str::<Threshold>(json).map_err(|e| e.to_string());
        for percent in 1..=100 {
            let expected = Threshold::new(percent, 100).ok();
            assert_eq!(read(&format!("{}.{:02}", percent / 100, percent % 100)).ok(), expected);
        }
        assert_eq!(read("12").ok(), Threshold::new(12, 1).ok());
        for denominator in 1..200_u32 {
            for numerator in 1..=denominator {
                let float = f64::from(numerator) / f64::from(denominator);
                let expected = Threshold::new(numerator, denominator);
                assert_eq!(read(&serde_json::json!(float).to_string()).ok(), expected.ok());
            }
        }
        assert_eq!(read("\"4/5\"").ok(), Threshold::new(4, 5).ok());
        for json in ["-0.5", "-1", "true", "[1]", "0.9999999999999", "1e300", "0", "1e-30"] {
            assert!(read(json).is_err(), "{json}");
        }
    }
}
