//! Columns of tokens.

use arrow_array::StringArray;
use arrow_array::builder::{ArrayBuilder, StringBuilder};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};

use super::token::{Token, TokenSink};
use crate::parameters::BATCH_BYTES;

/// Bytes that are copied at once: a register. Most words are not longer.
const COPIED: usize = 16;

/// Builds a column of the tokens of one batch after the other.
pub(super) struct ItemsBuilder {
    /// Maximum number of tokens.
    batch: usize,
    items: Building,
}

/// A column that is being built. Short tokens are copied faster as bytes, which a column checks
/// when they are handed over. That takes longer than cutting unless all of them are ASCII, so the
/// last batch decides about the next one.
enum Building {
    Bytes(Bytes),
    Texts(StringBuilder),
}

/// Tokens one after the other.
struct Bytes {
    text: Vec<u8>,
    /// Start of each token, and the end of the last one.
    offsets: Vec<i32>,
}

impl Bytes {
    fn with_capacity(items: usize, bytes: usize) -> Self {
        let mut offsets = Vec::with_capacity(items + 1);
        offsets.push(0);
        Self { text: Vec::with_capacity(bytes + COPIED), offsets }
    }

    #[inline(always)]
    fn push(&mut self, token: Token<'_>) {
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
    }

    fn finish(self) -> StringArray {
        let offsets = OffsetBuffer::new(ScalarBuffer::from(self.offsets));
        StringArray::new(offsets, self.text.into(), None)
    }
}

impl ItemsBuilder {
    pub(super) fn new(batch: usize) -> Self {
        Self { batch, items: Building::Bytes(Bytes::with_capacity(0, 0)) }
    }

    /// Number of tokens, and their bytes.
    #[inline(always)]
    fn size(&self) -> (usize, usize) {
        match &self.items {
            Building::Bytes(Bytes { text, offsets }) => (offsets.len() - 1, text.len()),
            Building::Texts(texts) => (texts.len(), texts.values_slice().len()),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.size().0 == 0
    }

    /// Returns the tokens so far and empties the builder.
    pub(super) fn take(&mut self) -> StringArray {
        // Sized by this batch: the next one is probably similar.
        let (items, bytes) = self.size();
        let is_ascii = match &self.items {
            Building::Bytes(Bytes { text, .. }) => text.is_ascii(),
            Building::Texts(texts) => texts.values_slice().is_ascii(),
        };
        let next = match is_ascii {
            true => Building::Bytes(Bytes::with_capacity(items, bytes)),
            false => Building::Texts(StringBuilder::with_capacity(items, bytes)),
        };
        match std::mem::replace(&mut self.items, next) {
            Building::Bytes(bytes) => bytes.finish(),
            Building::Texts(mut texts) => texts.finish(),
        }
    }
}

impl TokenSink for ItemsBuilder {
    #[inline(always)]
    fn token(&mut self, token: Token<'_>) -> bool {
        match &mut self.items {
            Building::Bytes(bytes) => bytes.push(token),
            Building::Texts(texts) => texts.append_value(token.as_str()),
        }
        let (items, bytes) = self.size();
        // False stops within the text; the next call continues there.
        items < self.batch && bytes < BATCH_BYTES
    }

    fn end_row(&mut self) -> bool {
        true
    }
}
