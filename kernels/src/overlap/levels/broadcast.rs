//! Blocks on the registers of any level: a register of the candidate is compared with each token
//! of the block.
//!
//! A broadcast from memory leaves the shuffle port to the comparisons; a rotation of a register,
//! the usual form, occupies that port too.

use super::blocks::BlockIntersect;
use super::diagonals;
use crate::overlap::pairs::{Alone, Pair};
use crate::simd::{Lanes, Simd};

impl<S: Simd> BlockIntersect for S {
    const LANES: usize = <S::U32 as Lanes>::COUNT;
    /// Larger blocks compare more tokens in fewer steps.
    const BLOCK: usize = if Self::LANES < 8 { Self::LANES } else { 8 };

    #[inline(always)]
    fn common<const WINDOW: usize>(self, block: &[u32], window: &[u32], valid: usize) -> u32 {
        if block.len() == Self::BLOCK {
            compare::<S, WINDOW>(self, |at| block[at], window, valid)
        } else {
            // A repeated token is found once, so short blocks take the same loop.
            let last = block.len() - 1;
            compare::<S, WINDOW>(self, |at| block[at.min(last)], window, valid)
        }
    }

    #[inline(always)]
    fn on_diagonals<const EXACT: bool>(
        self,
        pair: Pair<'_>,
        needed: usize,
        alone: Alone,
    ) -> Option<u32> {
        diagonals::overlap::<S, EXACT>(self, pair, needed, alone)
    }
}

/// The number of tokens, among the first `valid` tokens of a window, that are in a block. A token
/// of the block may repeat.
#[inline(always)]
fn compare<S: Simd, const WINDOW: usize>(
    simd: S,
    token: impl Fn(usize) -> u32,
    window: &[u32],
    valid: usize,
) -> u32 {
    let lanes = S::LANES;
    let mut common = 0;
    for (index, register) in window.chunks_exact(lanes).take(WINDOW).enumerate() {
        let register = S::U32::load(simd, register);
        let mut any = register.matches(S::U32::splat(simd, token(0)));
        for at in 1..S::BLOCK {
            any = S::U32::either(any, register.matches(S::U32::splat(simd, token(at))));
        }
        // Lanes past the candidate hold tokens of the next sets.
        let valid = valid.saturating_sub(index * lanes).min(lanes);
        common += (S::U32::bits(any) & !(u64::MAX << valid)).count_ones();
    }
    common
}
