//! Sets of tokens that have numbers of the whole stream.
//!
//! ```text
//! texts ──► CutSets: keys of tokens ──► NumberSets: numbers in the dictionary ──► sets
//! ```
//!
//! Keys are most of the work, and any kernel can make keys. There is one dictionary, which numbers
//! the tokens in the order of the input, because the first occurrence of a token decides its
//! number.

use std::mem;
use std::ops::Range;

use arrow_schema::SchemaRef;
use trommel_engine::memory::{MemoryBudget, Reservation};
use trommel_engine::operator::{Counters, OperatorError, Output};

use super::super::TokenizeError;
use super::super::cut::{Cut, Piece, RowMaker, TextPart};
use super::super::numbers::TokenKeys;
use super::super::numbers::dictionary::Dictionary;
use crate::shared::budget::bytes_with;
use crate::shared::columns::SetsBuilder;
use crate::shared::parameters::BATCH_BYTES;
use crate::shared::texts::{TextHash, TextKey};
use crate::shared::tokens::TextPosition;
use crate::shared::tokens::Tokenizer;
use crate::shared::tokens::{Token, TokenSink, Words};

/// The keys of the tokens of some texts. A piece can begin and end within a text.
pub(crate) struct SetPiece {
    keys: TokenKeys,
    /// End of each text among the tokens.
    ends: Vec<u32>,
}

impl Piece for SetPiece {
    fn bytes(&self) -> usize {
        self.keys.bytes() + size_of_val(&self.ends[..])
    }
}

/// Cuts texts into the keys of their tokens.
pub(crate) struct CutSets {
    tokenizer: Tokenizer,
    keys: KeySink,
}

impl CutSets {
    /// A cutter of pieces of up to `batch` texts, whose keys have this hash.
    pub(crate) fn new(tokenizer: Tokenizer, batch: usize, hash: TextHash) -> Self {
        let keys = KeySink { batch, hash, keys: TokenKeys::default(), ends: Vec::new() };
        Self { tokenizer, keys }
    }
}

impl Cut for CutSets {
    type Piece = SetPiece;

    fn cut(&mut self, part: &TextPart, from: TextPosition) -> (SetPiece, TextPosition) {
        let next = self.tokenizer.tokens_of_rows(&part.texts, from, &mut self.keys);
        let KeySink { keys, ends, .. } = &mut self.keys;
        let ends = mem::replace(ends, Vec::with_capacity(ends.len()));
        (SetPiece { keys: keys.take(), ends }, next)
    }
}

/// The keys of the piece in progress.
struct KeySink {
    /// Maximum number of texts of a piece.
    batch: usize,
    hash: TextHash,
    keys: TokenKeys,
    ends: Vec<u32>,
}

impl KeySink {
    fn end_text(&mut self) {
        self.ends.push(u32::try_from(self.keys.len()).expect("keys of about BATCH_BYTES"));
    }
}

impl TokenSink for KeySink {
    #[inline(always)]
    fn token(&mut self, token: Token<'_>) -> bool {
        self.keys.add_named(token, &self.hash);
        self.keys.bytes() < BATCH_BYTES
    }

    fn end_row(&mut self) -> bool {
        self.end_text();
        self.ends.len() < self.batch
    }

    const NEEDS_ROWS: bool = true;

    fn take_all(&mut self, words: Words<'_>) -> bool {
        let bytes = words.text.len() + words.begins.len() * size_of::<TextKey>();
        let has_room = self.ends.len() + words.row_ends.len() < self.batch
            && self.keys.bytes() + bytes < BATCH_BYTES;
        if has_room {
            words.for_each(
                self,
                |sink, word| sink.keys.add_named(word, &sink.hash),
                |sink| sink.end_text(),
            );
        }
        has_room
    }
}

/// Sets whose tokens have the numbers of a dictionary.
pub(crate) struct NumberSets {
    dictionary: Dictionary,
    /// Indices of the columns to copy.
    carry: Vec<usize>,
    schema: SchemaRef,
    sets: SetsBuilder,
    /// Reservation for a set that exceeds a batch.
    room: Reservation,
}

impl NumberSets {
    /// A maker of sets of `schema`, with the columns of these indices.
    pub(crate) fn new(dictionary: Dictionary, carry: Vec<usize>, schema: SchemaRef) -> Self {
        let (sets, room) = (SetsBuilder::new(), Reservation::default());
        Self { dictionary, carry, schema, sets, room }
    }

    /// Reserves the memory of sets that exceed a batch from this budget.
    pub(crate) fn within(mut self, memory: &MemoryBudget) -> Self {
        self.room = memory.reservation();
        self
    }

    /// Makes room for `tokens` more tokens of a set.
    fn reserve(&mut self, tokens: usize) -> Result<(), TokenizeError> {
        let sets = self.sets.tokens_mut();
        let bytes = bytes_with(sets.capacity(), sets.len(), tokens, size_of::<u32>());
        if bytes > 2 * BATCH_BYTES && bytes > self.room.bytes() {
            self.room.resize(bytes).map_err(TokenizeError::SetMemory)?;
        }
        Ok(())
    }
}

impl RowMaker for NumberSets {
    type Piece = SetPiece;

    fn send(
        &mut self,
        SetPiece { keys, ends }: &SetPiece,
        part: &TextPart,
        rows: Range<usize>,
        out: &mut Output,
    ) -> Result<(), OperatorError> {
        self.reserve(keys.len())?;
        let Self { dictionary, carry, schema, sets, .. } = self;
        let tokens = sets.tokens_mut();
        let before = u32::try_from(tokens.len()).expect("a set is far below 2^31 tokens");
        keys.number(dictionary, tokens)?;
        if !ends.is_empty() {
            sets.close_at(part.id(rows.start), ends.iter().map(|end| before + end));
            out.send(part.carry_to(&sets.take(), rows, carry, schema));
        }
        Ok(())
    }

    fn counters(&self) -> Counters {
        self.dictionary.counters()
    }
}
