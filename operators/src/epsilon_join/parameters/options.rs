//! Enumerated parameters of an epsilon join.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trommel_engine::error::BindError;

use crate::shared::parameters::parameters;
use crate::shared::window::{self, Extent};

/// Output of an epsilon join.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EpsilonOutput {
    /// One row per pair.
    #[default]
    Pairs,
    /// One row with the number of pairs.
    Count,
    /// One row per vector of the first input, with the number of its partners.
    Partners,
    /// The vectors that have no partner among the vectors before them: one row each. For one
    /// input.
    First,
}

/// Algorithm of an epsilon join. All find the same pairs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EpsilonAlgorithm {
    /// The one that is likely to be faster for these vectors.
    #[default]
    Auto,
    /// Compares all vectors with all vectors.
    NestedLoop,
    /// Puts the vectors into a directory and searches it.
    Directory,
}

/// Length of the window of a streaming join: `{"vectors": 100000}` or `{"seconds": 60}`.
///
/// `vectors` = N: a vector is joined to the N - 1 vectors before it. Rows that are not joined do
/// not count. `seconds` = S: a vector is joined to the earlier vectors whose batch entered the
/// pipeline less than S seconds before its own batch. A batch that is overtaken by a younger one
/// counts as entering with that one.
#[parameters(own_new)]
#[derive(Copy)]
pub struct VectorWindow {
    /// Number of vectors in the window.
    #[schemars(range(min = 1))]
    #[setter(none)]
    vectors: Option<u64>,
    /// Length of the window in seconds.
    #[schemars(range(min = 0.001, max = 1_000_000_000.0))]
    #[setter(none)]
    seconds: Option<f64>,
}

impl VectorWindow {
    /// A window of `vectors` vectors, at least 1.
    #[must_use]
    pub fn vectors(vectors: u64) -> Self {
        Self { vectors: Some(vectors), ..Self::defaults() }
    }

    /// A window of `seconds` seconds, from 0.001 to 10^9.
    #[must_use]
    pub fn seconds(seconds: f64) -> Self {
        Self { seconds: Some(seconds), ..Self::defaults() }
    }

    pub(crate) fn resolve(self) -> Result<Extent, BindError> {
        window::extent("vectors", self.vectors, self.seconds)
    }
}
