//! Blocks of eight postings on the 512-bit registers of AVX-512, with the population count that
//! most of these processors have. Those without it take the reference.

#![expect(unsafe_code, reason = "intrinsics of an instruction set that is detected at run time")]

use std::arch::x86_64::{
    __m512i, _mm512_and_si512, _mm512_cmple_epu64_mask, _mm512_loadu_si512,
    _mm512_mask_cmple_epu64_mask, _mm512_permutex2var_epi64, _mm512_popcnt_epi64, _mm512_set_epi64,
    _mm512_set1_epi64, _mm512_srli_epi64, _mm512_sub_epi64, _mm512_xor_si512,
};

use super::{BLOCK, Blocks, LookUp, Posting, Sift};

/// A posting is two words: set, size and position; and the signature.
const _: () = assert!(size_of::<Posting>() == 16 && size_of::<[Posting; BLOCK / 2]>() == 64);

/// Runs the loop on 512-bit registers. The features are those of `Isa::Avx512` and
/// [`has_popcount`](crate::bits::has_popcount).
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vpopcntdq,avx2,bmi1,bmi2,lzcnt,popcnt"
)]
pub(super) fn run(sift: Sift<'_>) -> usize {
    sift.run(Avx512(()))
}

/// The proof that the processor has the instructions: made by [`run`] alone.
#[derive(Clone, Copy)]
struct Avx512(());

/// Calls an intrinsic in a place that holds an [`Avx512`].
macro_rules! avx512 {
    ($call:expr) => {
        // SAFETY: an `Avx512` exists only where `run` was entered, whose features these are.
        unsafe { $call }
    };
}

impl Avx512 {
    #[inline(always)]
    fn load(self, postings: &[Posting; BLOCK / 2]) -> __m512i {
        // SAFETY: the array is 64 readable bytes, as asserted above, and the load needs no
        // alignment; features as in `avx512!`.
        unsafe { _mm512_loadu_si512(std::ptr::from_ref(postings).cast()) }
    }
}

impl Blocks for Avx512 {
    #[inline(always)]
    fn passed(self, block: &[Posting; BLOCK], look_up: &LookUp) -> u32 {
        let (low, high) = block.split_at(BLOCK / 2);
        let [low, high] = [low, high].map(|half| self.load(half.first_chunk().expect("a half")));
        let even = avx512!(_mm512_set_epi64(14, 12, 10, 8, 6, 4, 2, 0));
        let odd = avx512!(_mm512_set_epi64(15, 13, 11, 9, 7, 5, 3, 1));
        let places = avx512!(_mm512_permutex2var_epi64(low, even, high));
        let signatures = avx512!(_mm512_permutex2var_epi64(low, odd, high));
        let splat = |number: u64| avx512!(_mm512_set1_epi64(number.cast_signed()));
        let difference = avx512!(_mm512_xor_si512(signatures, splat(look_up.signature)));
        let distances = avx512!(_mm512_popcnt_epi64(difference));
        let distance_max = splat(look_up.distance_max.into());
        let near = avx512!(_mm512_cmple_epu64_mask(distances, distance_max));
        let sizes = avx512!(_mm512_srli_epi64::<32>(places));
        let sizes = avx512!(_mm512_and_si512(sizes, splat(0xffff)));
        let above = avx512!(_mm512_sub_epi64(sizes, splat(look_up.size_min.into())));
        let above_max = splat((look_up.size_max - look_up.size_min).into());
        avx512!(_mm512_mask_cmple_epu64_mask(near, above, above_max)).into()
    }
}
