//! Enumerated parameters of an epsilon join.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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

/// Action for a vector with a coordinate that is infinite or not a number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NotFinite {
    /// End the run with an error that names the row.
    #[default]
    Fail,
    /// Leave the vector out, and count it in `not_finite`.
    Skip,
}
