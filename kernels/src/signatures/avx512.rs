//! Lanes on the 512-bit registers of AVX-512, eight each. Population counts of vectors are an
//! extension that most of these processors have; without it, the bits of each half byte are looked
//! up.

#![expect(unsafe_code, reason = "intrinsics of an instruction set that is detected at run time")]

use std::arch::x86_64::{
    __m512i, _mm512_add_epi64, _mm512_cmplt_epu64_mask, _mm512_loadu_si512, _mm512_popcnt_epi64,
    _mm512_set1_epi64, _mm512_setzero_si512, _mm512_xor_si512,
};

use super::registers::{GROUP, Kernel, Registers};
use crate::bits;

/// Runs a kernel on 512-bit registers. The features are those of `Isa::Avx512`.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn run<T: Kernel>(kernel: T) -> T::Output {
    kernel.groups(Avx512::<false>(()))
}

/// As [`run`], with the population count.
#[target_feature(
    enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vpopcntdq,avx2,bmi1,bmi2,lzcnt,popcnt"
)]
pub(super) fn run_with_popcount<T: Kernel>(kernel: T) -> T::Output {
    kernel.groups(Avx512::<true>(()))
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
    fn load(self, words: &[u64; GROUP]) -> __m512i {
        // SAFETY: the array is 64 readable bytes, and the load needs no alignment; features as in
        // `avx512!`.
        unsafe { _mm512_loadu_si512(std::ptr::from_ref(words).cast()) }
    }

    /// How many bits each 64-bit lane has set.
    #[inline(always)]
    fn count_bits(self, words: __m512i) -> __m512i {
        if POPCOUNT { avx512!(_mm512_popcnt_epi64(words)) } else { avx512!(bits::of_words(words)) }
    }
}

impl<const POPCOUNT: bool> Registers for Avx512<POPCOUNT> {
    #[inline(always)]
    fn fewer<const WORDS: usize>(
        self,
        signature: [u64; WORDS],
        lanes: [&[u64; GROUP]; WORDS],
        bounds: &[u64; GROUP],
    ) -> u32 {
        let mut distances = avx512!(_mm512_setzero_si512());
        for word in 0..WORDS {
            let own = avx512!(_mm512_set1_epi64(signature[word].cast_signed()));
            let difference = avx512!(_mm512_xor_si512(self.load(lanes[word]), own));
            distances = avx512!(_mm512_add_epi64(distances, self.count_bits(difference)));
        }
        u32::from(avx512!(_mm512_cmplt_epu64_mask(distances, self.load(bounds))))
    }
}
