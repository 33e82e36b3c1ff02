//! Blocks on the 128-bit vectors of `wide`, which every target has or emulates.
//!
//! A default x86-64 build has no population count, neither of vectors nor of words, so only the
//! signatures of selected postings are compared, word by word.

use wide::u32x4;

use super::BLOCK;
use super::registers::{Kernel, Registers, distance};

/// Runs a kernel on 128-bit registers.
pub(super) fn run<T: Kernel>(kernel: T) -> T::Output {
    kernel.blocks(Portable)
}

/// The instruction set that needs no proof.
#[derive(Clone, Copy)]
struct Portable;

impl Registers for Portable {
    #[inline(always)]
    fn near(self, places: &[u32; BLOCK], position_max: u32) -> u32 {
        let (quarters, _) = places.as_chunks::<4>();
        // Positions fit 16 bits, so the comparison may be a signed one.
        let beyond = u32x4::splat(position_max + 1);
        let mut near = 0;
        for (quarter, places) in quarters.iter().enumerate() {
            let positions = u32x4::new(*places) & u32x4::splat(0xffff);
            let is_near = beyond.simd_gt(positions).to_bitmask();
            near |= is_near << (4 * quarter);
        }
        near
    }

    #[inline(always)]
    fn similar<const WORDS: usize>(
        self,
        selected: u32,
        signatures: [&[u64; BLOCK]; WORDS],
        probe: [u64; WORDS],
        distance_max: u32,
    ) -> u32 {
        let (mut left, mut similar) = (selected, 0);
        while left != 0 {
            let lane = left.trailing_zeros() as usize % BLOCK;
            let signature = signatures.map(|words| words[lane]);
            similar |= u32::from(distance(signature, probe) <= distance_max) << lane;
            left &= left - 1;
        }
        similar
    }

    #[inline(always)]
    fn select(self, values: &[u32; BLOCK], selected: u32, to: &mut [u32; BLOCK]) {
        let (mut left, mut end) = (selected, 0);
        while left != 0 {
            to[end] = values[left.trailing_zeros() as usize % BLOCK];
            end = (end + 1) % BLOCK;
            left &= left - 1;
        }
    }
}
