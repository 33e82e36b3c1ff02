//! Blocks of sixteen postings, and their test as a trait that each level implements.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;

use crate::simd::{Portable, Scalar};

/// Postings of a block.
pub const BLOCK: usize = 16;

/// One field of a block, or half a word of its signatures.
///
/// A block is a line of places, a line of previous tokens, a line of sets, and for each word of a
/// signature two lines: the words of the first eight postings, then the words of the last eight,
/// each with its low half first.
pub(super) type Line = [u32; BLOCK];

pub(super) const PLACES: usize = 0;
pub(super) const BEFORES: usize = 1;
pub(super) const SETS: usize = 2;
pub(super) const SIGNATURES: usize = 3;

/// Lines of a block.
pub(super) const fn lines_per_block(words: usize) -> usize {
    SIGNATURES + 2 * words
}

/// The bounds and the probe that all postings of a block are tested by.
#[derive(Clone, Copy)]
pub(super) struct Sought<const WORDS: usize> {
    /// The minimum place: sets with a smaller place are too small.
    pub(super) place_min: u32,
    /// The maximum position, below 2^31.
    pub(super) position_max: u32,
    /// The token before the common token in the probe: sets that have this token too were found in
    /// its list.
    pub(super) before: u32,
    /// The signature of the probe.
    pub(super) signature: [u64; WORDS],
    /// The maximum number of bits in which signatures may differ, below 2^63.
    pub(super) distance_max: u64,
}

/// A level that tests blocks.
pub(super) trait BlockTest: Copy {
    /// The postings of a block that pass, as bits. Bits of postings that are not `valid` are
    /// unspecified.
    fn test<const WORDS: usize>(self, block: &[Line], valid: u32, sought: &Sought<WORDS>) -> u32;

    /// Writes the numbers with a bit to the front of `to`, in their order; all later numbers of
    /// `to` may be overwritten.
    fn compress(self, bits: u32, from: &Line, to: &mut Line);
}

/// One posting at a time: the reference.
impl BlockTest for Scalar {
    #[inline(always)]
    fn test<const WORDS: usize>(self, block: &[Line], valid: u32, sought: &Sought<WORDS>) -> u32 {
        // Sets that are too small are first in a block.
        let too_small = block[PLACES].iter().take_while(|place| **place < sought.place_min).count();
        let (mut left, mut passed) = (valid >> too_small << too_small, 0);
        while left != 0 {
            let lane = left.trailing_zeros() as usize % BLOCK;
            // Clears the lowest bit.
            left &= left - 1;
            let place = block[PLACES][lane];
            let is_new = block[BEFORES][lane] != sought.before;
            if is_new && place & 0xffff <= sought.position_max {
                let mut distance = 0;
                for word in 0..WORDS {
                    let line = &block[SIGNATURES + 2 * word + lane / 8];
                    let low = u64::from(line[lane % 8 * 2]);
                    let high = u64::from(line[lane % 8 * 2 + 1]);
                    let difference = (high << 32 | low) ^ sought.signature[word];
                    distance += u64::from(difference.count_ones());
                }
                passed |= u32::from(distance <= sought.distance_max) << lane;
            }
        }
        passed
    }

    #[inline(always)]
    fn compress(self, bits: u32, from: &Line, to: &mut Line) {
        let (mut left, mut written) = (bits, 0);
        while left != 0 {
            // The remainders change nothing, as there are at most sixteen bits, and tell the
            // compiler that the indices are in range.
            to[written % BLOCK] = from[left.trailing_zeros() as usize % BLOCK];
            left &= left - 1;
            written += 1;
        }
    }
}

/// The level takes the reference: a default x86-64 build has no population count, neither of
/// vectors nor of words, and no 128-bit instruction makes up for it.
impl BlockTest for Portable {
    #[inline(always)]
    fn test<const WORDS: usize>(self, block: &[Line], valid: u32, sought: &Sought<WORDS>) -> u32 {
        Scalar.test(block, valid, sought)
    }

    #[inline(always)]
    fn compress(self, bits: u32, from: &Line, to: &mut Line) {
        Scalar.compress(bits, from, to);
    }
}
