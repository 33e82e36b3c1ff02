//! Errors of sets.

use thiserror::Error;

use super::TOKENS_MAX;
use crate::shared::budget::BudgetFull;

/// A set is invalid, or the sets do not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SetError {
    /// The tokens of a set do not ascend strictly.
    #[error("invalid set with id {id}: its tokens must ascend strictly")]
    NotAscending {
        /// Id of the set.
        id: u32,
    },
    /// The sets have more than [`TOKENS_MAX`] tokens in all.
    #[error("too many tokens: all sets of a join may have at most {TOKENS_MAX}")]
    TooManyTokens,
    /// An input of a join with carried columns has more than 2^32 rows.
    #[error("too many rows: an input of a join with carried columns has at most 2^32")]
    TooManyRows,
    /// The sets do not fit into `memory_max`.
    #[error(transparent)]
    MemoryFull(#[from] BudgetFull),
}
