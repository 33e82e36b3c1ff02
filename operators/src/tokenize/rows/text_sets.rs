//! Sets of tokens as texts.

use arrow_schema::SchemaRef;
use trommel_engine::memory::{MemoryBudget, Reservation};

use super::super::TokenizeError;
use super::super::cut::{BatchPiece, Cut, TextPart};
use super::super::numbers::BatchNumbers;
use crate::shared::columns::{SetsBuilder, sets_of_texts};
use crate::shared::parameters::BATCH_BYTES;
use crate::shared::tokens::TextPosition;
use crate::shared::tokens::Tokenizer;
use crate::shared::tokens::{Token, TokenSink, Words};

/// Number of tokens after which the bytes of a set are checked.
const CHECKED_TOKENS: usize = 1_024;
/// Maximum bytes of the texts of a set, which have offsets of 32 bits in a column.
const SET_BYTES_MAX: usize = 1 << 30;

/// Cuts texts into batches of sets, each batch with a dictionary of its own.
pub(crate) struct CutTextSets {
    tokenizer: Tokenizer,
    /// Indices of the columns to copy.
    carry: Vec<usize>,
    schema: SchemaRef,
    sets: SetSink,
}

impl CutTextSets {
    /// A cutter of batches of `schema` of up to `batch` sets, with the columns of these indices.
    pub(crate) fn new(
        tokenizer: Tokenizer,
        batch: usize,
        carry: Vec<usize>,
        schema: SchemaRef,
    ) -> Self {
        let (numbers, sets) = (BatchNumbers::new(), SetsBuilder::new());
        let (checked, room, failure) = (0, Reservation::default(), None);
        let sets = SetSink { batch, next_id: 0, numbers, sets, checked, room, failure };
        Self { tokenizer, carry, schema, sets }
    }

    /// Reserves the memory of sets that exceed a batch from this budget.
    pub(crate) fn within(mut self, memory: &MemoryBudget) -> Self {
        self.sets.room = memory.reservation();
        self
    }
}

impl Cut for CutTextSets {
    type Piece = BatchPiece;

    fn cut(&mut self, part: &TextPart, from: TextPosition) -> (BatchPiece, TextPosition) {
        self.sets.next_id = part.id(from.row).into();
        let next = self.tokenizer.tokens_of_rows(&part.texts, from, &mut self.sets);
        let bytes = self.sets.bytes();
        let SetSink { numbers, sets, failure, .. } = &mut self.sets;
        numbers.finish(sets.tokens_mut());
        if let Some(failure) = failure.take() {
            sets.abandon();
            drop(sets.take());
            *numbers = BatchNumbers::new();
            // The run ends, so nothing more is cut.
            let end = TextPosition { row: part.records.num_rows(), at: 0 };
            return (BatchPiece { records: Err(failure), bytes: 0 }, end);
        }
        let sets = sets_of_texts(&sets.take(), numbers.take_texts());
        let records = part.carry_to(&sets, from.row..next.row, &self.carry, &self.schema);
        (BatchPiece { records: Ok(records), bytes }, next)
    }
}

/// The sets of the batch in progress.
struct SetSink {
    /// Maximum number of sets.
    batch: usize,
    next_id: u64,
    numbers: BatchNumbers,
    sets: SetsBuilder,
    /// Number of tokens since the last check of the bytes.
    checked: usize,
    /// Reservation for a set that exceeds a batch.
    room: Reservation,
    failure: Option<TokenizeError>,
}

impl SetSink {
    /// Whether the set in progress may grow on.
    #[inline(never)]
    fn has_room(&mut self) -> bool {
        self.checked = 0;
        let bytes = self.bytes();
        if bytes <= 2 * BATCH_BYTES {
            return true;
        }
        // Twice the bytes: the table of texts, and the column that is made of the table.
        let reserved = match bytes < SET_BYTES_MAX {
            true => self.room.resize(2 * bytes).map_err(TokenizeError::SetMemory),
            false => Err(TokenizeError::SetTooLarge { bytes_max: SET_BYTES_MAX }),
        };
        self.failure = reserved.err();
        self.failure.is_none()
    }

    fn bytes(&self) -> usize {
        self.sets.bytes() + self.numbers.text_bytes()
    }

    fn close(&mut self) {
        self.sets.close(u32::try_from(self.next_id).expect("the part has ids"));
        self.next_id += 1;
    }
}

impl TokenSink for SetSink {
    #[inline(always)]
    fn token(&mut self, token: Token<'_>) -> bool {
        self.numbers.add(token, self.sets.tokens_mut());
        self.checked += 1;
        self.checked < CHECKED_TOKENS || self.has_room()
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
