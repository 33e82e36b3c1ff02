//! Consecutive sets of a stream with their stamps.

use std::sync::Arc;

use arrow_schema::ArrowError;
use trommel_kernels::Isa;
use trommel_kernels::sets::sort_lists;

use crate::shared::columns::carry::CarriedRows;
use crate::shared::sets::{SetBlock, SetError, Side, TOKENS_MAX};
use crate::shared::window::panes;

/// Bytes of a set in addition to its tokens: offset, id, place, side and stamp.
const SET_BYTES: usize = 3 * size_of::<u32>() + 1 + size_of::<u64>();

/// Bytes of `sets` sets that have `tokens` tokens in all.
fn bytes_of(sets: usize, tokens: usize) -> usize {
    SET_BYTES * sets + size_of::<u32>() * tokens
}

/// Sets of a micro-batch as they arrive, before their tokens are numbered.
#[derive(Debug)]
pub(super) struct Arrivals {
    /// Start of each set among the tokens, and the end of the last set.
    pub(super) offsets: Vec<u32>,
    pub(super) tokens: Vec<u32>,
    pub(super) ids: Vec<u32>,
    pub(super) stamps: Vec<u64>,
}

impl Arrivals {
    /// No sets yet, with memory for `sets` sets of `tokens` tokens in all.
    pub(super) fn with_capacity(sets: usize, tokens: usize) -> Self {
        let mut offsets = Vec::with_capacity(sets + 1);
        offsets.push(0);
        let (ids, stamps) = (Vec::with_capacity(sets), Vec::with_capacity(sets));
        Self { offsets, tokens: Vec::with_capacity(tokens), ids, stamps }
    }

    /// Number of sets.
    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }

    pub(super) fn bytes(&self) -> usize {
        bytes_of(self.len(), self.tokens.len())
    }

    /// Tokens of a set.
    pub(super) fn set(&self, set: usize) -> &[u32] {
        &self.tokens[self.offsets[set] as usize..self.offsets[set + 1] as usize]
    }

    /// Adds a set, whose tokens ascend.
    ///
    /// # Errors
    /// If there are too many tokens in all.
    pub(super) fn push(&mut self, id: u32, tokens: &[u32], stamp: u64) -> Result<(), SetError> {
        if tokens.len() > TOKENS_MAX - self.tokens.len() {
            return Err(SetError::TooManyTokens);
        }
        self.tokens.extend_from_slice(tokens);
        self.close(id, stamp);
        Ok(())
    }

    /// Ends a set: its tokens are the tokens after the last set.
    fn close(&mut self, id: u32, stamp: u64) {
        self.offsets.push(u32::try_from(self.tokens.len()).expect("at most 2^31 tokens"));
        self.ids.push(id);
        self.stamps.push(stamp);
    }

    /// Keeps the sets whose flag in `is_kept` is true.
    pub(super) fn retain(&mut self, is_kept: &[bool]) {
        let mut kept = Self::with_capacity(self.len(), self.tokens.len());
        for (set, _) in is_kept.iter().enumerate().filter(|(_, is_kept)| **is_kept) {
            kept.tokens.extend_from_slice(self.set(set));
            kept.close(self.ids[set], self.stamps[set]);
        }
        *self = kept;
    }
}

/// Consecutive sets of one cell, in the order of arrival.
#[derive(Debug)]
pub(super) struct SetPane {
    pub(super) sets: Arc<SetBlock>,
    /// For each set: its stamp, or, if duplicates are dropped, the stamp of its latest duplicate.
    pub(super) stamps: Vec<u64>,
    /// Number of the first set. The later sets have consecutive numbers; 0 follows 2^32 - 1.
    pub(super) begin: u32,
    /// Cell of all sets.
    pub(super) cell: u64,
    /// Latest stamp.
    pub(super) newest: u64,
    /// Bytes of a batch of carried columns.
    pub(super) batch_bytes: usize,
}

impl SetPane {
    /// Renews the stamp of a set, because an equal set has arrived at `stamp`.
    pub(super) fn refresh(&mut self, set: u32, stamp: u64) {
        self.stamps[set as usize] = stamp;
        self.newest = self.newest.max(stamp);
    }

    /// Replaces each token by its new `number`.
    pub(super) fn renumber(&mut self, isa: Isa, number: impl Fn(u32) -> u32) {
        let mut tokens: Vec<u32> =
            self.sets.sets().tokens().iter().map(|&token| number(token)).collect();
        sort_lists(isa, self.sets.offsets(), &mut tokens);
        self.sets = Arc::new(self.sets.with_tokens(tokens));
    }

    /// Bytes without the carried columns.
    pub(super) fn bytes_of_sets(&self) -> usize {
        bytes_of(self.sets.len(), self.sets.tokens())
    }
}

impl panes::Pane for SetPane {
    fn cell(&self) -> u64 {
        self.cell
    }

    fn newest(&self) -> u64 {
        self.newest
    }

    fn weight(&self) -> usize {
        self.sets.len() + self.sets.tokens()
    }

    fn bytes(&self) -> usize {
        self.sets.carried(Side::Left).map_or(0, CarriedRows::bytes) + self.bytes_of_sets()
    }

    fn may_merge(parts: &[Self]) -> bool {
        parts.iter().map(|pane| pane.sets.tokens()).sum::<usize>() <= TOKENS_MAX
    }
}

impl panes::MergePane for SetPane {
    type Error = ArrowError;

    fn merged(parts: &[Self]) -> Result<Self, ArrowError> {
        let Self { begin, cell, batch_bytes, .. } = parts[0];
        let blocks = parts.iter().map(|pane| &*pane.sets);
        let carried = blocks.clone().map(|sets| sets.carried(Side::Left));
        let carried = CarriedRows::joined(carried, batch_bytes)?;
        let sets = Arc::new(SetBlock::joined(blocks, carried));
        let stamps = parts.iter().map(|pane| &pane.stamps[..]).collect::<Vec<_>>().concat();
        let newest = parts.iter().map(|pane| pane.newest).max().unwrap_or_default();
        Ok(Self { sets, stamps, begin, cell, newest, batch_bytes })
    }
}
