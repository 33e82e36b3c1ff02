//! Blocks on the 256-bit registers of AVX2. There is no population count of
//! vectors: the bits of each half byte are looked up, and the bytes of a word added.

#![expect(unsafe_code, reason = "intrinsics of an instruction set that is detected at run time")]

use std::arch::x86_64::{
    __m256i, _mm256_add_epi64, _mm256_and_si256, _mm256_andnot_si256, _mm256_castsi256_pd,
    _mm256_castsi256_ps, _mm256_cmpeq_epi32, _mm256_cmpgt_epi32, _mm256_cmpgt_epi64,
    _mm256_loadu_si256, _mm256_max_epu32, _mm256_movemask_pd, _mm256_movemask_ps, _mm256_or_si256,
    _mm256_sad_epu8, _mm256_set1_epi32, _mm256_set1_epi64x, _mm256_setzero_si256, _mm256_xor_si256,
};

use super::BLOCK;
use super::registers::{BEFORES, Kernel, Line, OneByOne, PLACES, Registers, SIGNATURES, Sought};
use crate::bits;

/// Runs a kernel on 256-bit registers. The features are those of `Isa::Avx2`.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn run<T: Kernel>(kernel: T) -> T::Output {
    kernel.run(Avx2(()))
}

/// The proof that the processor has AVX2: made by [`run`] alone.
#[derive(Clone, Copy)]
struct Avx2(());

/// Calls an intrinsic in a place that holds an [`Avx2`].
macro_rules! avx2 {
    ($call:expr) => {
        // SAFETY: an `Avx2` exists only where `run` was entered, whose features these are.
        unsafe { $call }
    };
}

impl Avx2 {
    #[inline(always)]
    fn load(self, numbers: &[u32; 8]) -> __m256i {
        // SAFETY: the array is 32 readable bytes, and the load needs no alignment; features as in
        // `avx2!`.
        unsafe { _mm256_loadu_si256(std::ptr::from_ref(numbers).cast()) }
    }

    /// How many bits each 64-bit lane has set.
    #[inline(always)]
    fn count_bits(self, words: __m256i) -> __m256i {
        let bytes = avx2!(bits::of_bytes(words));
        let zero = avx2!(_mm256_setzero_si256());
        avx2!(_mm256_sad_epu8(bytes, zero))
    }

    /// Of eight postings those whose size, position and token before are right, as bits.
    #[inline(always)]
    fn passed<const WORDS: usize>(
        self,
        places: &[u32; 8],
        befores: &[u32; 8],
        sought: &Sought<WORDS>,
    ) -> u32 {
        let places = self.load(places);
        let place_min = avx2!(_mm256_set1_epi32(sought.place_min.cast_signed()));
        let is_large = avx2!(_mm256_cmpeq_epi32(_mm256_max_epu32(places, place_min), places));
        let positions = avx2!(_mm256_and_si256(places, _mm256_set1_epi32(0xffff)));
        let position_max = avx2!(_mm256_set1_epi32(sought.position_max.cast_signed()));
        let is_far = avx2!(_mm256_cmpgt_epi32(positions, position_max));
        let before = avx2!(_mm256_set1_epi32(sought.before.cast_signed()));
        let is_met = avx2!(_mm256_cmpeq_epi32(self.load(befores), before));
        let failed = avx2!(_mm256_or_si256(is_far, is_met));
        let passed = avx2!(_mm256_castsi256_ps(_mm256_andnot_si256(failed, is_large)));
        avx2!(_mm256_movemask_ps(passed)).cast_unsigned()
    }

    /// Of four postings those whose signatures are not near, as bits.
    #[inline(always)]
    fn is_different<const WORDS: usize>(
        self,
        block: &[Line],
        quarter: usize,
        sought: &Sought<WORDS>,
    ) -> u32 {
        let mut distances = avx2!(_mm256_setzero_si256());
        for (word, sought) in sought.signature.iter().enumerate() {
            let sought = avx2!(_mm256_set1_epi64x(sought.cast_signed()));
            let line = &block[SIGNATURES + 2 * word + quarter / 2];
            let words = self.load(&line.as_chunks().0[quarter % 2]);
            let difference = avx2!(_mm256_xor_si256(words, sought));
            distances = avx2!(_mm256_add_epi64(distances, self.count_bits(difference)));
        }
        let distance_max = avx2!(_mm256_set1_epi64x(sought.distance_max.cast_signed()));
        let is_different = avx2!(_mm256_cmpgt_epi64(distances, distance_max));
        let is_different = avx2!(_mm256_castsi256_pd(is_different));
        avx2!(_mm256_movemask_pd(is_different)).cast_unsigned()
    }
}

impl Registers for Avx2 {
    #[inline(always)]
    fn test<const WORDS: usize>(self, block: &[Line], valid: u32, sought: &Sought<WORDS>) -> u32 {
        let mut passed = 0;
        let halves = block[PLACES].as_chunks().0.iter().zip(block[BEFORES].as_chunks().0);
        for (half, (places, befores)) in halves.enumerate() {
            passed |= self.passed(places, befores, sought) << (8 * half);
        }
        let mut left = valid & passed;
        if WORDS > 0 {
            for quarter in 0..BLOCK / 4 {
                if left >> (4 * quarter) & 0xf != 0 {
                    left &= !(self.is_different(block, quarter, sought) << (4 * quarter));
                }
            }
        }
        left
    }

    #[inline(always)]
    fn compress(self, bits: u32, from: &Line, to: &mut Line) {
        OneByOne.compress(bits, from, to);
    }
}
