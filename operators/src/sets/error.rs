//! Why sets are refused.

use thiserror::Error;

use super::TOKENS_MAX;
use crate::budget::BudgetFull;

/// Why sets cannot be collected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SetError {
    /// The tokens of a set have to ascend strictly.
    #[error("the tokens of the set with id {id} do not ascend strictly")]
    NotAscending {
        /// The set.
        id: u32,
    },
    /// A collection holds at most [`TOKENS_MAX`] tokens.
    #[error("the sets have more than {TOKENS_MAX} tokens in all, the most that can be joined")]
    TooManyTokens,
    /// The sets do not fit the memory that they may use.
    #[error(transparent)]
    MemoryFull(#[from] BudgetFull),
}

impl SetError {
    /// Names the set `id`, if the error is about one.
    pub(crate) fn of_set(self, id: u32) -> Self {
        match self {
            Self::NotAscending { .. } => Self::NotAscending { id },
            other => other,
        }
    }
}
