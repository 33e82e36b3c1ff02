//! What a block of sixteen postings can do, as a trait.
//!
//! As in `filter::lanes`, a value of a [`Registers`] type is the proof that the processor has its
//! instructions.

use super::BLOCK;

/// A set of instructions for blocks. Of a selection, bit `i` stands for posting `i`.
pub(super) trait Registers: Copy {
    /// The places whose position is at most `position_max`, which fits 16 bits.
    fn near(self, places: &[u32; BLOCK], position_max: u32) -> u32;

    /// Those of the selected signatures that differ from the probe's in at most `distance_max` bits.
    fn similar<const WORDS: usize>(
        self,
        selected: u32,
        signatures: [&[u64; BLOCK]; WORDS],
        probe: [u64; WORDS],
        distance_max: u32,
    ) -> u32;

    /// Writes the selected values to the front of `to`, in their order; what is behind them may be
    /// overwritten.
    fn select(self, values: &[u32; BLOCK], selected: u32, to: &mut [u32; BLOCK]);
}

/// A call with its arguments, to be run on some level.
pub(super) trait Kernel {
    /// What the call returns.
    type Output;
    /// The reference.
    fn scalar(self) -> Self::Output;
    /// The loop over blocks; `#[inline(always)]`, so that it is compiled for the level that calls
    /// it.
    fn blocks<R: Registers>(self, registers: R) -> Self::Output;
}

/// In how many bits two signatures differ.
#[inline(always)]
pub(super) fn distance<const WORDS: usize>(left: [u64; WORDS], right: [u64; WORDS]) -> u32 {
    let mut distance = 0;
    for word in 0..WORDS {
        distance += (left[word] ^ right[word]).count_ones();
    }
    distance
}
