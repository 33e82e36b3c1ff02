//! Tokens as rows.

use std::sync::Arc;

use arrow_schema::SchemaRef;

use super::super::cut::{BatchPiece, Cut, TextPart};
use crate::shared::columns::{TextsBuilder, column_batch};
use crate::shared::parameters::BATCH_BYTES;
use crate::shared::tokens::TextPosition;
use crate::shared::tokens::Tokenizer;
use crate::shared::tokens::{Token, TokenSink, Words};

/// Cuts texts into batches of a row per token.
pub(crate) struct CutItems {
    tokenizer: Tokenizer,
    schema: SchemaRef,
    items: ItemSink,
}

impl CutItems {
    /// A cutter of batches of `schema` of up to `batch` tokens.
    pub(crate) fn new(tokenizer: Tokenizer, schema: SchemaRef, batch: usize) -> Self {
        Self { tokenizer, schema, items: ItemSink { batch, texts: TextsBuilder::new() } }
    }
}

impl Cut for CutItems {
    type Piece = BatchPiece;

    fn cut(&mut self, part: &TextPart, from: TextPosition) -> (BatchPiece, TextPosition) {
        let next = self.tokenizer.tokens_of_rows(&part.texts, from, &mut self.items);
        let texts = &mut self.items.texts;
        let bytes = texts.bytes() + texts.len() * size_of::<i32>();
        (
            BatchPiece { records: Ok(column_batch(&self.schema, Arc::new(texts.take()))), bytes },
            next,
        )
    }
}

/// The tokens of the batch in progress.
struct ItemSink {
    /// Maximum number of tokens.
    batch: usize,
    texts: TextsBuilder,
}

impl TokenSink for ItemSink {
    #[inline(always)]
    fn token(&mut self, token: Token<'_>) -> bool {
        let (text, part) = token.part();
        self.texts.push(text.as_bytes(), part);
        // False stops the tokenizer within the text; the next call continues there.
        self.texts.len() < self.batch && self.texts.bytes() < BATCH_BYTES
    }

    fn end_row(&mut self) -> bool {
        true
    }

    const NEEDS_ROWS: bool = false;

    fn take_all(&mut self, Words { text, begins, ends, .. }: Words<'_>) -> bool {
        let has_room = self.texts.len() + begins.len() < self.batch
            && self.texts.bytes() + text.len() < BATCH_BYTES;
        if has_room {
            self.texts.extend(text, begins, ends);
        }
        has_room
    }
}
