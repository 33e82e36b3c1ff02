//! Answers of a step: counted or written.

use crate::inverted::levels::{BLOCK, Blocks};

/// Takes the hits of a step, block by block.
pub(super) trait Sink {
    /// Takes the ids whose bits are set in `hits`.
    fn take<L: Blocks>(&mut self, level: L, ids: &[u32; BLOCK], hits: u32);

    /// Takes one id if it is a hit.
    fn take_one(&mut self, id: u32, is_hit: bool);
}

/// Counts hits.
#[derive(Debug, Default)]
pub(super) struct Counted(pub(super) u32);

impl Sink for Counted {
    #[inline(always)]
    fn take<L: Blocks>(&mut self, _: L, _: &[u32; BLOCK], hits: u32) {
        self.0 += hits.count_ones();
    }

    #[inline(always)]
    fn take_one(&mut self, _: u32, is_hit: bool) {
        self.0 += u32::from(is_hit);
    }
}

/// Writes hits one after another.
#[derive(Debug)]
pub(super) struct Kept<'a> {
    /// Memory for all hits and a block.
    ids: &'a mut [u32],
    len: usize,
}

impl<'a> Kept<'a> {
    /// Memory for at most `len_max` hits.
    #[inline(always)]
    pub(in crate::inverted) fn new(memory: &'a mut Vec<u32>, len_max: usize) -> Self {
        // The memory never shrinks, so that only its growth is cleared.
        if memory.len() < len_max + BLOCK {
            memory.resize(len_max + BLOCK, 0);
        }
        Self { ids: memory, len: 0 }
    }

    /// The number of hits.
    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.len
    }
}

impl Sink for Kept<'_> {
    #[inline(always)]
    fn take<L: Blocks>(&mut self, level: L, ids: &[u32; BLOCK], hits: u32) {
        let free = self.ids[self.len..].first_chunk_mut().expect("there is room for a block");
        level.keep(ids, hits, free);
        self.len += hits.count_ones() as usize;
    }

    #[inline(always)]
    fn take_one(&mut self, id: u32, is_hit: bool) {
        self.ids[self.len] = id;
        self.len += usize::from(is_hit);
    }
}
