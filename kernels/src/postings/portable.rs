//! Blocks without vectors. A default x86-64 build has a population count neither of vectors nor of
//! words, and nothing of 128 bits makes up for that; so signatures are compared word by word, and
//! only those of postings whose position passes.

use super::BLOCK;
use super::call::{Met, Posting};
use super::registers::{Kernel, Limits, Registers};

/// Runs a kernel.
pub(super) fn run<T: Kernel>(kernel: T) -> T::Output {
    kernel.blocks(Portable)
}

/// The instruction set that needs no proof.
#[derive(Clone, Copy)]
struct Portable;

impl Registers for Portable {
    #[inline(always)]
    fn test(
        self,
        block: &[Posting; BLOCK],
        valid: usize,
        limits: Limits,
        to: &mut [Met; BLOCK],
    ) -> usize {
        let mut passed = 0;
        for posting in &block[..valid] {
            let Posting { place, set, signature } = *posting;
            if place & 0xffff <= limits.position_max {
                // The remainder is no change: fewer than sixteen passed before.
                to[passed % BLOCK] = Met { place, set };
                let distance = (signature ^ limits.signature).count_ones();
                passed += usize::from(distance <= limits.distance_max);
            }
        }
        passed
    }
}
