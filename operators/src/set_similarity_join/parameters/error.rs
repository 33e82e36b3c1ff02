//! Errors of joins.

use thiserror::Error;

use crate::set_similarity_join::similarity::Threshold;
use crate::shared::budget::BudgetFull;
use crate::shared::sets::SetError;

/// Error of a set join.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum JoinError {
    /// No two sets can reach the threshold.
    #[error("invalid threshold {threshold}: this similarity is at most 1")]
    OutOfReach {
        /// The threshold.
        threshold: Threshold,
    },
    /// The threshold of an overlap is not a whole number of tokens.
    #[error("invalid threshold {threshold}: an overlap is a whole number of tokens")]
    NotWhole {
        /// The threshold.
        threshold: Threshold,
    },
    /// A streaming join has more than `most` sets, tokens or postings.
    #[error("too many {what}: a streaming join allows at most {most}")]
    TooMany {
        /// Kind of the items.
        what: &'static str,
        /// Maximum number of the items.
        most: usize,
    },
    /// A set is invalid.
    #[error(transparent)]
    Sets(#[from] SetError),
    /// The index does not fit `memory_max`.
    #[error(transparent)]
    MemoryFull(#[from] BudgetFull),
}
