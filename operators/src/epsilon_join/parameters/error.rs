//! Errors of epsilon joins.

use thiserror::Error;

use crate::shared::budget::BudgetFull;

/// Error of an epsilon join.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EpsilonJoinError {
    /// The vectors of two inputs differ in length.
    #[error("vectors of {left} coordinates and of {right}; both inputs need vectors of one length")]
    Lengths {
        /// Coordinates of the vectors of the first input.
        left: usize,
        /// Coordinates of the vectors of the second input.
        right: usize,
    },
    /// An input has more vectors than a join can number.
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
