//! Columns of tokens.

use arrow_array::StringArray;
use arrow_array::builder::{ArrayBuilder, StringBuilder};

use super::token::{Token, TokenSink};
use crate::parameters::BATCH_BYTES;

/// Builds a column of the tokens of one batch after the other.
pub(super) struct ItemsBuilder {
    /// Maximum number of tokens.
    batch: usize,
    // Not from bytes: a column checks them, which takes longer than cutting where not all is ASCII.
    items: StringBuilder,
}

impl ItemsBuilder {
    pub(super) fn new(batch: usize) -> Self {
        Self { batch, items: StringBuilder::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Returns the tokens so far and empties the builder.
    pub(super) fn take(&mut self) -> StringArray {
        // Sized by this batch: the next one is probably similar.
        let bytes = self.items.values_slice().len();
        let next = StringBuilder::with_capacity(self.items.len(), bytes);
        std::mem::replace(&mut self.items, next).finish()
    }
}

impl TokenSink for ItemsBuilder {
    #[inline(always)]
    fn token(&mut self, token: Token<'_>) -> bool {
        self.items.append_value(token.as_str());
        // False stops within the text; the next call continues there.
        self.items.len() < self.batch && self.items.values_slice().len() < BATCH_BYTES
    }

    fn end_row(&mut self) -> bool {
        true
    }
}
