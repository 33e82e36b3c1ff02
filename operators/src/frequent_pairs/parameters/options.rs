//! Parameters of the operator that are enumerations or numbers with a meaning.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer};
use thiserror::Error;

use trommel_engine::error::BindError;

use crate::shared::fraction::{self, Given};
use crate::shared::parameters::parameters;
use crate::shared::share::Share;
use crate::shared::window::slides::{Slides, one_of_two};

/// Number of transactions that hold both items of a frequent pair, at least: a number of
/// transactions, or a share of them.
///
/// A whole number is a number of transactions: `1` and `"1"` are one. Everything else is a share:
/// 0.01, `"0.01"`, `"1/100"` and `"1%"` are one transaction of a hundred, and 1.0, `"1.0"`, `"1/1"`
/// and `"100%"` are all of them. A float stands for the simplest fraction that rounds to it.
///
/// # Examples
/// ```
/// use trommel_operators::frequent_pairs::Support;
///
/// let least = |text: &str| text.parse::<Support>().map(|support| support.least_count(1000));
/// assert_eq!(least("7")?, 7);
/// assert_eq!(least("0.007")?, 7);
/// assert_eq!(least("1/3")?, 334);
/// assert_eq!(least("1")?, 1);
/// assert_eq!(least("1.0")?, 1000);
/// assert!(least("0").is_err());
/// # Ok::<(), trommel_operators::frequent_pairs::SupportError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Support {
    /// Transactions, at least 1.
    Count(u32),
    /// Share of the transactions of a window or of a stream.
    Share(Share),
}

impl Support {
    /// The least support of a frequent pair among `transactions`: at least 1.
    #[must_use]
    pub fn least_count(self, transactions: u32) -> u32 {
        let least = match self {
            Self::Count(count) => count,
            Self::Share(share) => {
                u32::try_from(share.least_count(transactions.into())).unwrap_or(u32::MAX)
            }
        };
        least.max(1)
    }
}

/// A support is invalid.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "invalid support {text:?}: expected a number of transactions, a whole number from 1 to {max}, or \
     a share of them, such as 0.01, \"1/100\" or 1.0 for all", max = u32::MAX
)]
pub struct SupportError {
    /// The support as given.
    pub text: String,
}

impl FromStr for Support {
    type Err = SupportError;

    fn from_str(text: &str) -> Result<Self, SupportError> {
        let invalid = || SupportError { text: text.to_owned() };
        match text.parse() {
            Ok(0) => Err(invalid()),
            Ok(count) => Ok(Self::Count(count)),
            Err(_) => text.parse().map(Self::Share).map_err(|_| invalid()),
        }
    }
}

impl fmt::Display for Support {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => count.fmt(f),
            Self::Share(share) => share.fmt(f),
        }
    }
}

impl Given for Support {
    const EXPECTED: &'static str =
        "a number of transactions, or a share such as 0.01, \"1/100\" or 1.0 for all";

    fn of_float(float: f64) -> Result<Self, String> {
        let share = Share::of_float(float).map(Self::Share);
        // A whole float keeps its point, which makes it a share.
        share.map_err(|_| SupportError { text: format!("{float:?}") }.to_string())
    }
}

impl<'de> Deserialize<'de> for Support {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        fraction::deserialize(deserializer)
    }
}

impl JsonSchema for Support {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        Cow::Borrowed("Support")
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["number", "string"],
            "exclusiveMinimum": 0,
            "maximum": u32::MAX,
            "minLength": 1
        })
    }
}

/// Windows of transactions: `{"transactions": 100000}` or `{"seconds": 60}`, one after the other,
/// or overlapping with `slide`.
///
/// When a window closes, its pairs come out with the columns `window_start`, `window_end` and
/// `complete`, as for [`Window`](crate::Window). A null is not counted as a transaction.
///
/// # Examples
/// ```
/// use trommel_operators::FrequentPairs;
/// use trommel_operators::frequent_pairs::{PairWindow, Support};
///
/// let last_hour = PairWindow::seconds(3600.0).slide(60.0);
/// let pairs = FrequentPairs::new(Support::Count(100)).window(last_hour);
/// # let _ = pairs;
/// ```
#[parameters(own_new)]
#[derive(Copy)]
pub struct PairWindow {
    /// Transactions of a window.
    #[schemars(range(min = 1))]
    #[setter(none)]
    transactions: Option<u64>,
    /// Seconds of a window.
    #[schemars(range(min = 0.001, max = 1_000_000_000.0))]
    #[setter(none)]
    seconds: Option<f64>,
    /// Distance between the beginnings of two windows, in transactions or seconds; the window must
    /// be a multiple of it, up to 1,000 times. Its own length when left out.
    #[schemars(range(min = 0.001))]
    slide: Option<f64>,
}

impl PairWindow {
    /// Windows of `transactions` transactions.
    #[must_use]
    pub fn transactions(transactions: u64) -> Self {
        Self { transactions: Some(transactions), ..Self::defaults() }
    }

    /// Windows of `seconds` seconds.
    #[must_use]
    pub fn seconds(seconds: f64) -> Self {
        Self { seconds: Some(seconds), ..Self::defaults() }
    }

    /// Panes and borders of the windows.
    pub(crate) fn resolve(self) -> Result<Slides, BindError> {
        match (self.transactions, self.seconds) {
            (Some(transactions), None) => Slides::of_items(transactions, self.slide),
            (None, Some(seconds)) => Slides::of_time(seconds, self.slide),
            _ => Err(one_of_two("window", "transactions", "seconds")),
        }
    }
}

/// Layout in which pairs are counted. All give the same pairs at different speeds. `auto`,
/// `batmap`, `bitmap`, `sparse` and `tensor` can be counted on a GPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Layout {
    /// On a GPU `tensor` or `sparse`, whichever costs less for a window. On a CPU `sliced` for the
    /// items with the highest supports and `sparse` for pairs of the others, divided where both
    /// together cost least.
    #[default]
    Auto,
    /// Batmaps: each tid in two of three hash tables of bytes (Amossen, Pagh 2011).
    Batmap,
    /// A bit a transaction for each item.
    Bitmap,
    /// Tid lists, which are merged.
    Lists,
    /// Transactions as rows of bits, 512 items wide, which are added up for each item.
    Sliced,
    /// Transactions as lists, and a counter for each partner of an item.
    Sparse,
    /// A bit a transaction for each item, multiplied by the tensor cores of a GPU, or by its
    /// integer units if these are older or newer than compute capability 8 and 9. Without a GPU,
    /// as `sliced`.
    Tensor,
    /// Transactions as lists, and a counter for each pair; `sparse` for triples.
    Triangle,
}

impl Layout {
    /// All layouts.
    pub const ALL: [Self; 8] = [
        Self::Auto,
        Self::Batmap,
        Self::Bitmap,
        Self::Lists,
        Self::Sliced,
        Self::Sparse,
        Self::Tensor,
        Self::Triangle,
    ];

    /// Name in configurations.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Batmap => "batmap",
            Self::Bitmap => "bitmap",
            Self::Lists => "lists",
            Self::Sliced => "sliced",
            Self::Sparse => "sparse",
            Self::Tensor => "tensor",
            Self::Triangle => "triangle",
        }
    }
}

/// Measure of association of a pair: more columns of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Measure {
    /// `left_confidence` and `right_confidence`: share of the transactions with the left (right)
    /// item that hold the other one, too.
    Confidence,
    /// `lift`: support, divided by the support to be expected of independent items.
    Lift,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_json(text: &str) -> Result<Support, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn whole_numbers_are_transactions_and_fractions_are_shares() {
        assert_eq!(of_json("10"), Ok(Support::Count(10)));
        assert_eq!(of_json("1"), Ok(Support::Count(1)));
        assert_eq!(of_json("\"12\""), Ok(Support::Count(12)));
        let share = |n, d| Ok(Support::Share(Share::new(n, d).unwrap()));
        assert_eq!(of_json("0.01"), share(1, 100));
        for all in ["1.0", "\"1.0\"", "\"1/1\"", "\"100%\""] {
            assert_eq!(of_json(all), share(1, 1), "{all}");
        }
        assert_eq!(of_json("\"1%\""), share(1, 100));
        assert_eq!(of_json(&(1.0 / 3.0).to_string()), share(1, 3));
        assert_eq!(of_json("\"1/300\""), share(1, 300));
    }

    #[test]
    fn other_values_are_refused() {
        for text in [
            "0",
            "-1",
            "1.5",
            "2.0",
            "\"2.0\"",
            "\"101%\"",
            "\"x\"",
            "\"3/2\"",
            "true",
            "5000000000",
        ] {
            assert!(of_json(text).is_err(), "{text}");
        }
        for text in ["1.5", "\"x\"", "\"3/2\"", "0"] {
            let error = of_json(text).unwrap_err();
            assert!(error.contains("invalid support") && error.contains("1/100"), "{error}");
        }
    }

    #[test]
    fn a_share_of_no_transaction_is_one() {
        assert_eq!(Support::Share(Share::default()).least_count(0), 1);
        assert_eq!(Support::Share(Share::new(1, 2).unwrap()).least_count(5), 3);
        assert_eq!(Support::Count(9).least_count(5), 9);
    }
}
