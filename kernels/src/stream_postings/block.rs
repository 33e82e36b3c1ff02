//! The test of eight postings, as a trait that each level implements.

use super::postings::{LookUp, Posting};
use crate::simd::{Portable, Scalar};

/// Postings that are tested together.
pub(super) const POSTINGS_PER_BLOCK: u32 = 8;

/// The number of postings of a block as a length.
pub(super) const BLOCK: usize = POSTINGS_PER_BLOCK as usize;

/// A level that tests blocks of postings.
pub(super) trait PostingTest: Copy {
    /// The postings that pass, as bits: bit i stands for posting i. The provided method is the code
    /// of the reference, compiled for the level, since most levels can count the bits of a word.
    #[inline(always)]
    fn passed(self, block: &[Posting; BLOCK], look_up: &LookUp) -> u32 {
        let passed = |bits: u32, (bit, posting): (usize, &Posting)| {
            bits | u32::from(look_up.passes(posting)) << bit
        };
        block.iter().enumerate().fold(0, passed)
    }
}

impl PostingTest for Scalar {}
impl PostingTest for Portable {}
