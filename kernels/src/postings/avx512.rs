//! Blocks on the 512-bit registers of AVX-512. Population counts of vectors are
//! an extension that most of these processors have; without it, the bits of each half byte are
//! looked up.

#![expect(unsafe_code, reason = "intrinsics of an instruction set that is detected at run time")]

use std::arch::x86_64::{
    __m512i, __mmask16, _mm512_add_epi64, _mm512_and_si512, _mm512_cmple_epu64_mask,
    _mm512_loadu_si512, _mm512_mask_cmpge_epu32_mask, _mm512_mask_cmple_epu32_mask,
    _mm512_mask_cmpneq_epu32_mask, _mm512_maskz_compress_epi32, _mm512_popcnt_epi64,
    _mm512_set1_epi32, _mm512_set1_epi64, _mm512_setzero_si512, _mm512_storeu_si512,
    _mm512_xor_si512,
};

use super::registers::{BEFORES, Kernel, Line, PLACES, Registers, SIGNATURES, Sought};
use crate::bits;

/// Runs a kernel on 512-bit registers. The features are those of `Isa::Avx512`.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn run<T: Kernel>(kernel: T) -> T::Output {
    kernel.run(Avx512::<false>(()))
}

/// As [`run`], with the population count.
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vpopcntdq,avx2,bmi1,bmi2,lzcnt,popcnt"
)]
pub(super) fn run_with_popcount<T: Kernel>(kernel: T) -> T::Output {
    kernel.run(Avx512::<true>(()))
}

/// The proof that the processor has AVX-512, and with `POPCOUNT` the population count: made by
/// [`run`] and [`run_with_popcount`] alone.
#[derive(Clone, Copy)]
struct Avx512<const POPCOUNT: bool>(());

/// Calls an intrinsic in a place that holds an [`Avx512`].
macro_rules! avx512 {
    ($call:expr) => {
        // SAFETY: an `Avx512` exists only where `run` or `run_with_popcount` was entered, whose
        // features these are.
        unsafe { $call }
    };
}

impl<const POPCOUNT: bool> Avx512<POPCOUNT> {
    #[inline(always)]
    fn load(self, numbers: &Line) -> __m512i {
        // SAFETY: the array is 64 readable bytes, and the load needs no alignment; features as in
        // `avx512!`.
        unsafe { _mm512_loadu_si512(std::ptr::from_ref(numbers).cast()) }
    }

    /// How many bits each 64-bit lane has set.
    #[inline(always)]
    fn count_bits(self, words: __m512i) -> __m512i {
        if POPCOUNT { avx512!(_mm512_popcnt_epi64(words)) } else { avx512!(bits::of_words(words)) }
    }

    /// Of the postings those whose signatures are near.
    #[inline(always)]
    fn is_near<const WORDS: usize>(self, block: &[Line], sought: &Sought<WORDS>) -> u16 {
        let mut distances = [avx512!(_mm512_setzero_si512()); 2];
        for (word, sought) in sought.signature.iter().enumerate() {
            let sought = avx512!(_mm512_set1_epi64(sought.cast_signed()));
            for (half, distances) in distances.iter_mut().enumerate() {
                let words = self.load(&block[SIGNATURES + 2 * word + half]);
                let difference = avx512!(_mm512_xor_si512(words, sought));
                *distances = avx512!(_mm512_add_epi64(*distances, self.count_bits(difference)));
            }
        }
        let distance_max = avx512!(_mm512_set1_epi64(sought.distance_max.cast_signed()));
        let [low, high] =
            distances.map(|half| avx512!(_mm512_cmple_epu64_mask(half, distance_max)));
        u16::from_le_bytes([low, high])
    }
}

impl<const POPCOUNT: bool> Registers for Avx512<POPCOUNT> {
    #[inline(always)]
    fn test<const WORDS: usize>(self, block: &[Line], _: u32, sought: &Sought<WORDS>) -> u32 {
        let near: __mmask16 = if WORDS == 0 { u16::MAX } else { self.is_near(block, sought) };
        let places = self.load(&block[PLACES]);
        let place_min = avx512!(_mm512_set1_epi32(sought.place_min.cast_signed()));
        let passed = avx512!(_mm512_mask_cmpge_epu32_mask(near, places, place_min));
        let positions = avx512!(_mm512_and_si512(places, _mm512_set1_epi32(0xffff)));
        let position_max = avx512!(_mm512_set1_epi32(sought.position_max.cast_signed()));
        let passed = avx512!(_mm512_mask_cmple_epu32_mask(passed, positions, position_max));
        let before = avx512!(_mm512_set1_epi32(sought.before.cast_signed()));
        let befores = self.load(&block[BEFORES]);
        avx512!(_mm512_mask_cmpneq_epu32_mask(passed, befores, before)).into()
    }

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "there are sixteen bits")]
    fn compress(self, bits: u32, from: &Line, to: &mut Line) {
        let kept = avx512!(_mm512_maskz_compress_epi32(bits as u16, self.load(from)));
        // SAFETY: the array is 64 writable bytes, and the store needs no alignment; features as in
        // `avx512!`.
        unsafe { _mm512_storeu_si512(std::ptr::from_mut(to).cast(), kept) };
    }
}
