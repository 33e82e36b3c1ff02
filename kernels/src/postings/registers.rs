//! What a block of sixteen postings can do, as a trait.
//!
//! As in `filter::lanes`, a value of a [`Registers`] type is the proof that the processor has its
//! instructions.

use super::BLOCK;
use super::call::{Met, Posting};

/// What all postings of a block are tested by.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    /// The greatest position, which fits 16 bits.
    pub(super) position_max: u32,
    /// The signature of the probe.
    pub(super) signature: u64,
    /// In how many bits theirs may differ from it.
    pub(super) distance_max: u32,
}

/// A set of instructions for blocks.
pub(super) trait Registers: Copy {
    /// Writes those of the first `valid` postings that pass to the front of `to`, in any order, and
    /// returns how many they are; what is behind them may be overwritten.
    fn test(
        self,
        block: &[Posting; BLOCK],
        valid: usize,
        limits: Limits,
        to: &mut [Met; BLOCK],
    ) -> usize;
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
