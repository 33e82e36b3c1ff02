//! Thresholds as exact rationals, and how they are written.

use std::borrow::Cow;
use std::fmt;
use std::num::IntErrorKind;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};
use thiserror::Error;

/// The most digits behind the point of a decimal: 10^9 is below 2^32.
const DECIMALS_MAX: usize = 9;

/// A positive rational number: the least similarity of a result.
///
/// Numerator and denominator have no common factor and fit 32 bits, so that no bound that is made
/// from them and two sizes overflows 128 bits. Nothing is ever compared in floating point: that
/// loses pairs that are exactly as similar as asked for.
///
/// # Examples
/// ```
/// use trommel_operators::set_similarity_join::Threshold;
///
/// let threshold: Threshold = "0.8".parse()?;
/// assert_eq!(threshold, Threshold::new(4, 5)?);
/// assert_eq!(threshold, "8/10".parse()?);
/// assert_eq!(threshold.to_string(), "4/5");
/// # Ok::<(), trommel_operators::set_similarity_join::ThresholdError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Threshold {
    numerator: u32,
    denominator: u32,
}

/// Why something is no threshold.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ThresholdError {
    /// It is zero, or a fraction of zero.
    #[error("a threshold is a positive number, not {numerator}/{denominator}")]
    NotPositive {
        /// As given.
        numerator: u32,
        /// As given.
        denominator: u32,
    },
    /// It is neither a decimal number nor a fraction.
    #[error(
        "{text:?} is no threshold; write a decimal such as \"0.8\" or a fraction such as \"4/5\""
    )]
    Syntax {
        /// As given.
        text: String,
    },
    /// It has more digits than are kept.
    #[error(
        "{text:?} has too many digits for a threshold; at most {DECIMALS_MAX} behind the point, and \
         numbers below 2^32"
    )]
    TooLong {
        /// As given.
        text: String,
    },
}

impl Threshold {
    /// The threshold `numerator / denominator`.
    ///
    /// # Errors
    /// If one of them is 0.
    pub fn new(numerator: u32, denominator: u32) -> Result<Self, ThresholdError> {
        if numerator == 0 || denominator == 0 {
            return Err(ThresholdError::NotPositive { numerator, denominator });
        }
        let common = greatest_common_divisor(numerator, denominator);
        Ok(Self { numerator: numerator / common, denominator: denominator / common })
    }

    /// Above the line, in lowest terms.
    #[must_use]
    pub fn numerator(self) -> u32 {
        self.numerator
    }

    /// Below the line, in lowest terms.
    #[must_use]
    pub fn denominator(self) -> u32 {
        self.denominator
    }
}

fn greatest_common_divisor(mut a: u32, mut b: u32) -> u32 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
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

    /// Reads a decimal number or a fraction of two whole ones, exactly.
    fn from_str(text: &str) -> Result<Self, ThresholdError> {
        if let Some((numerator, denominator)) = text.split_once('/') {
            return Self::new(whole(numerator, text)?, whole(denominator, text)?);
        }
        let (digits, decimals) = text.split_once('.').unwrap_or((text, ""));
        let decimals = decimals.trim_end_matches('0');
        if decimals.len() > DECIMALS_MAX {
            return Err(ThresholdError::TooLong { text: text.to_owned() });
        }
        let scale = decimals.bytes().fold(1, |scale, _| scale * 10);
        Self::new(whole(&format!("{digits}{decimals}"), text)?, scale)
    }
}

/// A number of digits and nothing else; `text` is what it is a part of.
fn whole(digits: &str, text: &str) -> Result<u32, ThresholdError> {
    let text = || text.to_owned();
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(ThresholdError::Syntax { text: text() });
    }
    digits.parse::<u32>().map_err(|error| match error.kind() {
        IntErrorKind::PosOverflow => ThresholdError::TooLong { text: text() },
        _ => ThresholdError::Syntax { text: text() },
    })
}

/// A number is read as the shortest decimal that stands for it: 0.8 is 4/5.
impl<'de> Deserialize<'de> for Threshold {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Written;
        impl Visitor<'_> for Written {
            type Value = Threshold;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a decimal number or a fraction such as \"4/5\"")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Threshold, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Threshold, E> {
                self.visit_str(&number.to_string())
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<Threshold, E> {
                if number < 0.0 {
                    return Err(E::invalid_value(Unexpected::Float(number), &self));
                }
                self.visit_str(&number.to_string())
            }
        }
        deserializer.deserialize_any(Written)
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
    fn what_is_no_threshold_is_refused() {
        for text in ["", ".", "x", "-0.8", "+1", "0.8.1", "1/2/3", "1/", "/2", "1e-3", " 1", "NaN"]
        {
            assert!(read(text).unwrap_err().contains("is no threshold"), "{text}");
        }
        for text in ["0", "0.0", "0/3", "3/0"] {
            assert!(read(text).unwrap_err().contains("positive"), "{text}");
        }
        for text in ["0.1234567891", "4294967296", "9.123456789"] {
            assert!(read(text).unwrap_err().contains("too many digits"), "{text}");
        }
    }

    #[test]
    fn json_numbers_are_the_decimals_they_show() {
        let read = |json: &str| serde_json::from_str::<Threshold>(json).map_err(|e| e.to_string());
        for percent in 1..=100 {
            let expected = Threshold::new(percent, 100).ok();
            assert_eq!(read(&format!("{}.{:02}", percent / 100, percent % 100)).ok(), expected);
        }
        assert_eq!(read("12").ok(), Threshold::new(12, 1).ok());
        assert_eq!(read("\"4/5\"").ok(), Threshold::new(4, 5).ok());
        for json in ["-0.5", "-1", "true", "[1]", "0.12345678901", "1e300", "0"] {
            assert!(read(json).is_err(), "{json}");
        }
    }
}
