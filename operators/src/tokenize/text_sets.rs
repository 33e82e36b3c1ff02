//! Sets of tokens as texts.

use arrow_schema::SchemaRef;

use super::cut::{Batch, Cut, Part};
use super::numbers::BatchNumbers;
use super::token::{Token, TokenSink, Words};
use super::tokens::Tokenizer;
use super::words::Place;
use crate::columns::{SetsBuilder, sets_of_texts};
use crate::parameters::BATCH_BYTES;

/// Cuts texts into batches of sets, each batch with a dictionary of its own.
pub(super) struct CutTextSets {
    tokenizer: Tokenizer,
    /// Indices of the columns to copy.
    carry: Vec<usize>,
    schema: SchemaRef,
    sets: Sets,
}

impl CutTextSets {
    /// Batches of `schema` of up to `batch` sets, with the columns of these indices.
    pub(super) fn new(
        tokenizer: Tokenizer,
        batch: usize,
        carry: Vec<usize>,
        schema: SchemaRef,
    ) -> Self {
        let (numbers, sets) = (BatchNumbers::new(), SetsBuilder::new());
        Self { tokenizer, carry, schema, sets: Sets { batch, next_id: 0, numbers, sets } }
    }
}

impl Cut for CutTextSets {
    type Piece = Batch;

    fn cut(&mut self, part: &Part, from: Place) -> (Batch, Place) {
        self.sets.next_id = part.id(from.row).into();
        let next = self.tokenizer.tokens_of_rows(&part.texts, from, &mut self.sets);
        let bytes = self.sets.bytes();
        let Sets { numbers, sets, .. } = &mut self.sets;
        numbers.finish(sets.tokens_mut());
        let sets = sets_of_texts(&sets.take(), numbers.take_texts());
        let records = part.carry_to(&sets, from.row..next.row, &self.carry, &self.schema);
        (Batch { records, bytes }, next)
    }
}

/// The sets of a batch.
struct Sets {
    /// Maximum number.
    batch: usize,
    next_id: u64,
    numbers: BatchNumbers,
    sets: SetsBuilder,
}

impl Sets {
    fn bytes(&self) -> usize {
        self.sets.bytes() + self.numbers.text_bytes()
    }

    fn close(&mut self) {
        self.sets.close(u32::try_from(self.next_id).expect("the part has ids"));
        self.next_id += 1;
    }
}

impl TokenSink for Sets {
    #[inline(always)]
    fn token(&mut self, token: Token<'_>) -> bool {
        self.numbers.add(token, self.sets.tokens_mut());
        true
    }

    fn end_row(&mut self) -> bool {
        self.close();
        // A set is never divided, so a batch may exceed BATCH_BYTES by one set.
        self.sets.len() < self.batch && self.bytes() < BATCH_BYTES
    }

    const NEEDS_ROWS: bool = true;

    fn take_all(&mut self, words: Words<'_>) -> bool {
        let bytes = words.text.len() + size_of_val(words.begins);
        let has_room = self.sets.len() + words.row_ends.len() < self.batch
            && self.bytes() + bytes < BATCH_BYTES;
        if has_room {
            words.for_each(
                self,
                |sink, word| sink.numbers.add(word, sink.sets.tokens_mut()),
                Self::close,
            );
        }
        has_room
    }
}
