//! Why a join is refused or ends.

use thiserror::Error;

use super::similarity::Threshold;
use crate::budget::BudgetFull;
use crate::sets::SetError;

/// Why sets cannot be joined.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum JoinError {
    /// No two sets can reach the threshold.
    #[error("the threshold {threshold} is out of reach: this similarity is at most 1")]
    OutOfReach {
        /// The threshold.
        threshold: Threshold,
    },
    /// The overlap is a number of tokens.
    #[error("invalid threshold {threshold}: an overlap is a whole number of tokens")]
    NotWhole {
        /// The threshold.
        threshold: Threshold,
    },
    /// A stream numbers at most `most` of them.
    #[error("a join of a stream has at most {most} {what}; there are more")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many there can be.
        most: usize,
    },
    /// A set is refused.
    #[error(transparent)]
    Sets(#[from] SetError),
    /// The index does not fit the memory that the join may use.
    #[error(transparent)]
    MemoryFull(#[from] BudgetFull),
}
