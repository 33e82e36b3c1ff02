//! Errors of epsilon joins.

use thiserror::Error;

use crate::budget::BudgetFull;
use crate::columns::DIMS_MAX;

/// Error of an epsilon join.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EpsilonJoinError {
    /// A coordinate is infinite or not a number.
    #[error(
        "row {row} of input {input}: coordinate {coordinate} of the vector is {value}; expected \
         finite numbers (`not_finite`: \"skip\" leaves such vectors out)"
    )]
    NotFinite {
        /// Number of the input, from 1.
        input: usize,
        /// Position of the row in the input, from 0.
        row: u64,
        /// Number of the coordinate, from 0.
        coordinate: usize,
        /// The value.
        value: f32,
    },
    /// The id, the vector or a coordinate is null.
    #[error(
        "row {row} of input {input}: the vector, a coordinate or the id is null; expected finite \
         numbers (`not_finite`: \"skip\" leaves such vectors out)"
    )]
    Null {
        /// Number of the input, from 1.
        input: usize,
        /// Position of the row in the input, from 0.
        row: u64,
    },
    /// A vector has another length than others.
    #[error(
        "row {row} of input {input}: the vector has {found} coordinates; expected {}",
        expected.map_or_else(|| format!("1 to {DIMS_MAX}"), |dims| format!("{dims}, as others"))
    )]
    Length {
        /// Number of the input, from 1.
        input: usize,
        /// Position of the row in the input, from 0.
        row: u64,
        /// Coordinates of the vector.
        found: usize,
        /// Coordinates of others, if these are known.
        expected: Option<usize>,
    },
    /// The vectors of two inputs differ in length.
    #[error("vectors of {left} coordinates and of {right}; both inputs need vectors of one length")]
    Lengths {
        /// Coordinates of the vectors of the first input.
        left: usize,
        /// Those of the second input.
        right: usize,
    },
    /// There are more vectors than numbers for them.
    #[error("input {input} has more than {most} vectors")]
    TooManyVectors {
        /// Number of the input, from 1.
        input: usize,
        /// Maximum vectors of an input.
        most: usize,
    },
    /// The vectors do not fit `memory_max`.
    #[error(transparent)]
    MemoryFull(#[from] BudgetFull),
}
