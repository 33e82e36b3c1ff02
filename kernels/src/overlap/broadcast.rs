//! Blocks on the registers of any instruction set: a register of the candidate is compared with
//! each token of the block.
//!
//! Broadcasting from memory leaves the shuffle port to the comparisons; rotating a register, the
//! usual form, needs it for both.

use super::blocks::Meet;
use crate::filter::lanes::{Lanes, Simd};

/// Compares tokens of the probe one after the other.
#[derive(Clone, Copy)]
pub(super) struct Broadcast<S>(pub(super) S);

impl<S: Simd> Broadcast<S> {
    /// How many of the first `valid` tokens of a window are among those of a block, which may come
    /// twice.
    #[inline(always)]
    fn compare<const WINDOW: usize>(
        self,
        token: impl Fn(usize) -> u32,
        window: &[u32],
        valid: usize,
    ) -> u32 {
        let lanes = Self::LANES;
        let mut common = 0;
        for (index, register) in window.chunks_exact(lanes).take(WINDOW).enumerate() {
            let register = S::U32::load(self.0, register);
            let mut any = register.matches(S::U32::splat(self.0, token(0)));
            for at in 1..Self::BLOCK {
                any = S::U32::either(any, register.matches(S::U32::splat(self.0, token(at))));
            }
            let valid = valid.saturating_sub(index * lanes).min(lanes);
            common += (S::U32::bits(any) & !(u64::MAX << valid)).count_ones();
        }
        common
    }
}

impl<S: Simd> Meet for Broadcast<S> {
    const LANES: usize = <S::U32 as Lanes>::COUNT;
    /// Larger blocks compare more and step less.
    const BLOCK: usize = if Self::LANES < 8 { Self::LANES } else { 8 };

    #[inline(always)]
    fn common<const WINDOW: usize>(self, block: &[u32], window: &[u32], valid: usize) -> u32 {
        if block.len() == Self::BLOCK {
            self.compare::<WINDOW>(|at| block[at], window, valid)
        } else {
            let last = block.len() - 1;
            self.compare::<WINDOW>(|at| block[at.min(last)], window, valid)
        }
    }
}
