//! Columns of tokens.

use arrow_array::StringArray;
use arrow_buffer::{OffsetBuffer, ScalarBuffer};

use super::token::{Token, TokenSink};
use crate::parameters::BATCH_BYTES;

/// Bytes that are copied at once: a register. Most words are not longer.
const COPIED: usize = 16;

/// Builds a column of the tokens of one batch after the other.
pub(super) struct ItemsBuilder {
    /// Maximum number of tokens.
    batch: usize,
    text: Vec<u8>,
    /// Start of each token, and the end of the last one.
    offsets: Vec<i32>,
}

impl ItemsBuilder {
    pub(super) fn new(batch: usize) -> Self {
        Self { batch, text: Vec::new(), offsets: vec![0] }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.offsets.len() == 1
    }

    /// Returns the tokens so far and empties the builder.
    pub(super) fn take(&mut self) -> StringArray {
        // Sized by this batch: the next one is probably similar.
        let text = Vec::with_capacity(self.text.len() + COPIED);
        let mut offsets = Vec::with_capacity(self.offsets.len());
        offsets.push(0);
        let text = std::mem::replace(&mut self.text, text);
        let offsets = std::mem::replace(&mut self.offsets, offsets);
        let offsets = OffsetBuffer::new(ScalarBuffer::from(offsets));
        StringArray::new(offsets, text.into(), None)
    }
}

impl TokenSink for ItemsBuilder {
    #[inline(always)]
    fn token(&mut self, token: Token<'_>) -> bool {
        let (len, bytes) = (token.len(), token.bytes_and_more());
        match bytes.first_chunk::<COPIED>() {
            // A copy of a fixed length is two instructions.
            Some(first) if len <= COPIED => {
                let end = self.text.len() + len;
                self.text.extend_from_slice(first);
                self.text.truncate(end);
            }
            _ => self.text.extend_from_slice(&bytes[..len]),
        }
        self.offsets.push(i32::try_from(self.text.len()).expect("a batch and one token"));
        // False stops within the text; the next call continues there.
        self.offsets.len() <= self.batch && self.text.len() < BATCH_BYTES
    }

    fn end_row(&mut self) -> bool {
        true
    }
}
