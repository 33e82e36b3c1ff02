//! The signatures of sets, in strips.

use super::tile::STRIP;
use crate::Isa;
use crate::sets::{Sets, sign_sets};

/// The widths of signatures, in words of 64 bits.
pub const WORDS: [usize; 4] = [1, 2, 4, 8];

/// The signatures of sets, laid out in strips: `[set / 32][word][set % 32]`, with zeros at the end
/// of the last strip. A word of the 32 candidates of a strip is 32 neighbouring lanes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signatures {
    words: usize,
    sets: usize,
    bits: Vec<u64>,
}

impl Signatures {
    /// Signatures of `words` words: 1, 2, 4 or 8.
    ///
    /// # Cost
    ///
    /// As [`sign_sets`]; each word of each set takes 8 B.
    ///
    /// # Panics
    ///
    /// If `isa` is not available, or `words` is another number.
    #[must_use]
    pub fn new(isa: Isa, sets: Sets<'_>, words: usize) -> Self {
        let len = sets.len();
        let mut bits = vec![0; Self::len(len, words)];
        let strip = STRIP as usize;
        let mut signatures = vec![0; strip * words];
        for (begin, of_strip) in (0..len).step_by(strip).zip(bits.chunks_mut(strip * words)) {
            let end = (begin + strip).min(len);
            let signatures = &mut signatures[..(end - begin) * words];
            sign_sets(isa, &sets.offsets()[begin..=end], sets.tokens(), words, signatures);
            for (set, signature) in signatures.chunks(words).enumerate() {
                for (word, bits) in signature.iter().enumerate() {
                    of_strip[word * strip + set] = *bits;
                }
            }
        }
        Self { words, sets: len, bits }
    }

    /// The number of words of all signatures of `sets` sets.
    pub(crate) fn len(sets: usize, words: usize) -> usize {
        sets.next_multiple_of(STRIP as usize) * words
    }

    /// The bytes of the signatures of `sets` sets.
    #[must_use]
    pub fn bytes(sets: usize, words: usize) -> usize {
        Self::len(sets, words) * size_of::<u64>()
    }

    /// The number of signed sets.
    pub(super) fn sets(&self) -> usize {
        self.sets
    }

    /// Words of a signature.
    #[must_use]
    pub fn words(&self) -> usize {
        self.words
    }

    /// The words of all signatures, as laid out.
    #[must_use]
    pub fn bits(&self) -> &[u64] {
        &self.bits
    }
}
