//! Blocks on the 512-bit registers of AVX-512 with VP2INTERSECT, which few processors have: one
//! instruction compares sixteen tokens with sixteen.

#![expect(unsafe_code, reason = "an instruction that is detected at run time and has no intrinsic")]

use std::arch::asm;
use std::arch::x86_64::{__m512i, __mmask16, _mm512_mask_loadu_epi32, _mm512_set1_epi32};

use super::blocks::BlockIntersect;
use crate::overlap::pairs::{Alone, Pair};
use crate::simd::{Avx512, Vp2Intersect, avx512};

const LANES: usize = 16;

impl BlockIntersect for Avx512<Vp2Intersect> {
    const LANES: usize = LANES;
    const BLOCK: usize = LANES;

    #[inline(always)]
    fn common<const WINDOW: usize>(self, block: &[u32], window: &[u32], valid: usize) -> u32 {
        let block = load_block(self, block);
        let mut common = 0;
        for (index, register) in window.as_chunks().0.iter().take(WINDOW).enumerate() {
            let lanes = avx512!(self, intersect(block, self.load_u32(register)));
            // Lanes past the candidate hold tokens of the next sets.
            let valid = valid.saturating_sub(index * LANES).min(LANES);
            common += (u32::from(lanes) & !(u32::MAX << valid)).count_ones();
        }
        common
    }

    /// Always `None`: an instruction for each block is faster.
    #[inline(always)]
    fn on_diagonals<const EXACT: bool>(self, _: Pair<'_>, _: usize, _: Alone) -> Option<u32> {
        None
    }
}

/// The tokens of a block, with the last token repeated in the further lanes.
#[inline(always)]
fn load_block(simd: Avx512<Vp2Intersect>, block: &[u32]) -> __m512i {
    if let Ok(block) = block.try_into() {
        return simd.load_u32(block);
    }
    let lanes: __mmask16 = (1 << block.len()) - 1;
    let last = avx512!(simd, _mm512_set1_epi32(block[block.len() - 1].cast_signed()));
    // SAFETY: only the lanes of the block's tokens are read, fewer than 16; features as in
    // `avx512!`.
    unsafe { _mm512_mask_loadu_epi32(last, lanes, block.as_ptr().cast()) }
}

/// The lanes of the second register whose tokens are in the first.
#[target_feature(enable = "avx512f,avx512vp2intersect")]
#[inline]
fn intersect(block: __m512i, register: __m512i) -> __mmask16 {
    let of_register;
    // SAFETY: a function of its registers; the processor has the instruction, since this function
    // has its feature. The instruction writes a pair of masks: the named mask, which has an even
    // number, and the next mask.
    unsafe {
        asm!(
            "vp2intersectd k2, {register}, {block}",
            register = in(zmm_reg) register,
            block = in(zmm_reg) block,
            out("k2") of_register,
            out("k3") _,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    of_register
}
