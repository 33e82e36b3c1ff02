//! Registers of ids, as a trait that each level implements.

use super::lines::Lines;
use crate::Isa;

/// Ids and halves of a block.
pub(super) const BLOCK: usize = 16;

/// A level that works on blocks of 16 ids.
pub(super) trait Blocks: Lines {
    /// The name of the level.
    const ISA: Isa;

    /// Bit `i`: whether half `i` of the block is `half`.
    fn matches(self, block: &[u16; BLOCK], half: u16) -> u32;

    /// Bit `i`: whether id `i` of `left` is in `right`.
    fn common(self, left: &[u32; BLOCK], right: &[u32; BLOCK]) -> u32;

    /// Bit `i`: whether the bit of id `i` is set in `words`; false past their end.
    #[inline(always)]
    fn test(self, ids: &[u32; BLOCK], words: &[u32]) -> u32 {
        let mut hits = 0;
        for (lane, &id) in ids.iter().enumerate() {
            let word = words.get((id / 32) as usize).copied().unwrap_or(0);
            hits |= (word >> (id % 32) & 1) << lane;
        }
        hits
    }

    /// Writes the ids whose bits are set in `hits` to the front of `kept`, in their order; ids
    /// past them may be overwritten.
    #[inline(always)]
    fn keep(self, ids: &[u32; BLOCK], hits: u32, kept: &mut [u32; BLOCK]) {
        let mut end = 0;
        for (lane, &id) in ids.iter().enumerate() {
            // Every id is stored, and the next one overwrites it if it is no hit. The remainder
            // changes nothing, and tells the compiler that the index is in range.
            kept[end % BLOCK] = id;
            end += (hits >> lane & 1) as usize;
        }
    }

    /// Writes the ids `base + i` of the bits `i` of a word to the front of `ids`; ids past them may
    /// be overwritten.
    #[inline(always)]
    fn ids_of(self, base: u32, mut word: u32, ids: &mut [u32; 32]) {
        let mut end = 0;
        while word != 0 {
            ids[end % 32] = base + word.trailing_zeros();
            end += 1;
            word &= word - 1;
        }
    }
}
