//! Columns of tokens.

use std::ops::Range;

use arrow_array::StringArray;

use super::token::{Token, TokenSink};
use crate::columns::TextsBuilder;
use crate::parameters::BATCH_BYTES;

/// Builds a column of the tokens of one batch after the other.
pub(super) struct ItemsBuilder {
    /// Maximum number of tokens.
    batch: usize,
    items: TextsBuilder,
}

impl ItemsBuilder {
    pub(super) fn new(batch: usize) -> Self {
        Self { batch, items: TextsBuilder::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Returns the tokens so far and empties the builder.
    pub(super) fn take(&mut self) -> StringArray {
        self.items.take()
    }
}

impl TokenSink for ItemsBuilder {
    #[inline(always)]
    fn token(&mut self, token: Token<'_>) -> bool {
        let (text, part) = token.part();
        self.items.push(text, part);
        // False stops within the text; the next call continues there.
        self.items.len() < self.batch && self.items.bytes() < BATCH_BYTES
    }

    fn end_row(&mut self) -> bool {
        true
    }

    const NEEDS_ROWS: bool = false;

    fn take_all(
        &mut self,
        text: &str,
        tokens: impl ExactSizeIterator<Item = Range<usize>>,
    ) -> bool {
        let has_room = self.items.len() + tokens.len() < self.batch
            && self.items.bytes() + text.len() < BATCH_BYTES;
        if has_room {
            self.items.extend(text, tokens);
        }
        has_room
    }
}
