//! All words of a window at once.
//!
//! In a window without special characters, masks show where all words begin and end. The positions
//! of their bits are found without a branch, and the sink takes all words together. A loop over the
//! words of a block would end after a number of words that no branch predictor knows.

use trommel_kernels::Isa;
use trommel_kernels::text::places_of_bits;

use super::WINDOW;
use super::mask::{BLOCK, Blocks, Cuts};
use super::runs::is_word;
use crate::shared::tokens::token::{TokenSink, Words};

/// Maximum number of blocks of a window, and one block that begins at its end.
const BLOCKS: usize = WINDOW / BLOCK + 1;

/// Maximum number of words of a window, each of which may be a byte, and room for one more mask.
const WORDS: usize = WINDOW + BLOCK;

/// Buffers for the words of a window.
#[derive(Debug)]
pub(crate) struct PlainWindow {
    begins: [u32; WORDS],
    ends: [u32; WORDS],
    /// Number of words up to the end of each row.
    row_ends: Vec<u32>,
}

impl PlainWindow {
    pub(crate) fn new() -> Self {
        Self { begins: [0; WORDS], ends: [0; WORDS], row_ends: Vec::new() }
    }

    /// Gives `sink` all words of a window, in which rows end at `row_ends`. Returns false, and
    /// gives none, if the window has a special character or the sink has no room for all words.
    pub(super) fn take_words<S: TokenSink>(
        &mut self,
        isa: Isa,
        lower: &str,
        blocks: &Blocks<'_>,
        row_ends: &[usize],
        sink: &mut S,
    ) -> bool {
        // Bits of the first bytes of rows. A window begins with a row, or after a word.
        let mut rows = [0_u64; BLOCKS + 1];
        rows[0] = 1;
        // The bits of the last block stay in a register. In memory, the bits of each row would wait
        // for the row before.
        let (mut block, mut bits) = (0, 1);
        for &end in row_ends {
            bits = 1 << (end % BLOCK) | if end / BLOCK == block { bits } else { 0 };
            block = end / BLOCK;
            rows[block] = bits;
        }
        let (mut begins, mut ends) = ([0; BLOCKS], [0; BLOCKS]);
        let mut is_inside = false;
        for block in 0..=blocks.count() {
            let masks = blocks.at(block * BLOCK);
            if !masks.is_plain() {
                return false;
            }
            let cuts = Cuts::at([rows[block], rows[block + 1]]);
            (begins[block], ends[block], is_inside) = cuts.runs(masks, is_inside);
        }
        let (begins, ends) = (&begins[..=blocks.count()], &ends[..=blocks.count()]);
        let found = places_of_bits(isa, begins, &mut self.begins);
        places_of_bits(isa, ends, &mut self.ends);
        let words = self.drop_underscores(lower.as_bytes(), found);
        self.row_ends.clear();
        if S::NEEDS_ROWS {
            if words < found {
                return false;
            }
            self.count_words(begins, row_ends);
        }
        let Self { begins, ends, row_ends } = self;
        sink.take_all(Words {
            text: lower,
            begins: &begins[..words],
            ends: &ends[..words],
            row_ends,
        })
    }

    /// Counts the words up to the end of each row, by the bits of their first bytes.
    fn count_words(&mut self, begins: &[u64], row_ends: &[usize]) {
        let mut before = [0; BLOCKS + 1];
        for (block, bits) in begins.iter().enumerate() {
            before[block + 1] = before[block] + bits.count_ones();
        }
        self.row_ends.extend(row_ends.iter().map(|end| {
            let (block, bit) = (end / BLOCK, end % BLOCK);
            before[block] + (begins[block] & ((1 << bit) - 1)).count_ones()
        }));
    }

    /// Drops words that are underscores alone, among the first `found` words. Returns the number of
    /// words that are left.
    fn drop_underscores(&mut self, bytes: &[u8], found: usize) -> usize {
        let begins_with_one = |&begin: &u32| bytes[begin as usize] == b'_';
        if !self.begins[..found].iter().any(begins_with_one) {
            return found;
        }
        let mut kept = 0;
        for word in 0..found {
            let (begin, end) = (self.begins[word], self.ends[word]);
            (self.begins[kept], self.ends[kept]) = (begin, end);
            kept += usize::from(is_word(&bytes[begin as usize..end as usize]));
        }
        kept
    }
}
