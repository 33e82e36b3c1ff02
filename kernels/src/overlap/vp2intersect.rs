//! Blocks on the 512-bit registers of AVX-512 with VP2INTERSECT, which few processors have: one
//! instruction compares sixteen tokens with sixteen.

#![expect(unsafe_code, reason = "an instruction that is detected at run time and has no intrinsic")]

use std::arch::asm;
use std::arch::x86_64::{
    __m512i, __mmask16, _mm512_loadu_si512, _mm512_mask_loadu_epi32, _mm512_set1_epi32,
};

use super::Verification;
use super::blocks::{Blocks, Meet};
use crate::Isa;

const LANES: usize = 16;

/// Whether the processor has the instruction, and all of [`Isa::Avx512`].
pub(super) fn is_available() -> bool {
    Isa::Avx512.is_available() && is_x86_feature_detected!("avx512vp2intersect")
}

/// Runs a call on these registers.
///
/// # Panics
///
/// If the processor lacks the instruction.
pub(super) fn run<T: Verification>(call: T) -> T::Output {
    assert!(is_available(), "this machine lacks VP2INTERSECT");
    // SAFETY: the processor has the features, as asserted above.
    unsafe { enter(call) }
}

#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vp2intersect,avx2,bmi1,bmi2,lzcnt,popcnt"
)]
fn enter<T: Verification>(call: T) -> T::Output {
    call.run(Blocks(Vp2Intersect(())))
}

/// The proof that the processor has the instruction: made by [`enter`] alone.
#[derive(Clone, Copy)]
struct Vp2Intersect(());

impl Vp2Intersect {
    #[inline(always)]
    fn load(self, tokens: &[u32; LANES]) -> __m512i {
        // SAFETY: the array is 64 readable bytes, and the load needs no alignment; a proof exists
        // only where `enter` was entered, which has the features.
        unsafe { _mm512_loadu_si512(std::ptr::from_ref(tokens).cast()) }
    }

    /// The tokens of a block, the last one again in the lanes behind it.
    #[inline(always)]
    fn load_block(self, block: &[u32]) -> __m512i {
        if let Ok(block) = block.try_into() {
            return self.load(block);
        }
        let lanes: __mmask16 = (1 << block.len()) - 1;
        // SAFETY: features as in `load`.
        let last = unsafe { _mm512_set1_epi32(block[block.len() - 1].cast_signed()) };
        // SAFETY: only as many lanes are read as the block has tokens, fewer than 16; features as
        // in `load`.
        unsafe { _mm512_mask_loadu_epi32(last, lanes, block.as_ptr().cast()) }
    }
}

/// The lanes of the second register whose tokens are in the first.
#[target_feature(enable = "avx512f,avx512vp2intersect")]
#[inline]
fn intersect(block: __m512i, register: __m512i) -> __mmask16 {
    let of_register;
    // SAFETY: a function of its registers; the processor has the instruction, since this has its
    // feature. It writes the mask that is named and the next one.
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

impl Meet for Vp2Intersect {
    const LANES: usize = LANES;
    const BLOCK: usize = LANES;

    #[inline(always)]
    fn common<const WINDOW: usize>(self, block: &[u32], window: &[u32], valid: usize) -> u32 {
        let block = self.load_block(block);
        let mut common = 0;
        for (index, register) in window.as_chunks().0.iter().take(WINDOW).enumerate() {
            // SAFETY: features as in `load`.
            let lanes = unsafe { intersect(block, self.load(register)) };
            let valid = valid.saturating_sub(index * LANES).min(LANES);
            common += (u32::from(lanes) & !(u32::MAX << valid)).count_ones();
        }
        common
    }
}
