//! A list of postings in blocks, field by field.

use super::levels::{BEFORES, BLOCK, Line, PLACES, SETS, SIGNATURES, lines_per_block};
use super::lists::{NO_TOKEN, Posting, SIDE_BIT};

/// Postings in blocks of sixteen, field by field. A list is transposed once, and then each of its
/// probes tests it, so it stays in the nearest cache.
#[derive(Debug, Default)]
pub(super) struct BlockList {
    /// The first posting of the first block that may have a set large enough for later probes.
    begin: usize,
    len: usize,
    /// Block after block, each as [`Line`] says.
    lines: Vec<Line>,
}

impl BlockList {
    /// Room for `len_max` postings with signatures of `words` words.
    pub(super) fn with_capacity(len_max: usize, words: usize) -> Self {
        Self { begin: 0, len: 0, lines: vec![[0; BLOCK]; Self::lines(len_max, words)] }
    }

    /// The bytes of [`Self::with_capacity`].
    pub(super) fn bytes(len_max: usize, words: usize) -> usize {
        Self::lines(len_max, words) * size_of::<Line>()
    }

    fn lines(len_max: usize, words: usize) -> usize {
        len_max.div_ceil(BLOCK) * lines_per_block(words)
    }

    pub(super) fn clear(&mut self) {
        (self.begin, self.len) = (0, 0);
    }

    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Adds a posting if `is_indexed`, that is, if other sets find its set by this token.
    #[inline(always)]
    pub(super) fn push<const WORDS: usize>(
        &mut self,
        posting: Posting,
        signature: &[u64; WORDS],
        is_indexed: bool,
    ) {
        let lines_per_block = const { lines_per_block(WORDS) };
        let lane = self.len % BLOCK;
        // The posting is always written; if it is not indexed, the next posting overwrites it.
        let block = &mut self.lines[self.len / BLOCK * lines_per_block..][..lines_per_block];
        block[PLACES][lane] = posting.place;
        // Two sets that begin with the common token do not share an earlier token: so the mark for
        // no token has another number here than in a probe.
        block[BEFORES][lane] = posting.before.min(NO_TOKEN - 1);
        block[SETS][lane] = posting.set & !SIDE_BIT;
        for (halves, word) in block[SIGNATURES..].as_chunks_mut().0.iter_mut().zip(*signature) {
            let halves: &mut [Line; 2] = halves;
            let line = &mut halves[lane / 8];
            line[lane % 8 * 2] = (word & 0xffff_ffff) as u32;
            line[lane % 8 * 2 + 1] = (word >> 32) as u32;
        }
        self.len += usize::from(is_indexed);
    }

    /// The first block, among the first `visible` postings, with a set that is large enough; if no
    /// full block has such a set, the block after the last full block. Probes ascend in size, so
    /// earlier blocks are never needed again.
    #[inline(always)]
    pub(super) fn first_not_below<const WORDS: usize>(
        &mut self,
        place_min: u32,
        visible: usize,
    ) -> usize {
        let lines_per_block = const { lines_per_block(WORDS) };
        let last_place =
            |begin: usize| self.lines[begin / BLOCK * lines_per_block + PLACES][BLOCK - 1];
        while self.begin + BLOCK <= visible && last_place(self.begin) < place_min {
            self.begin += BLOCK;
        }
        self.begin
    }

    /// The blocks from the block that begins with posting `begin` on.
    #[inline(always)]
    pub(super) fn blocks_from<const WORDS: usize>(
        &self,
        begin: usize,
    ) -> impl Iterator<Item = &[Line]> {
        let lines_per_block = const { lines_per_block(WORDS) };
        self.lines[begin / BLOCK * lines_per_block..].chunks_exact(lines_per_block)
    }
}
