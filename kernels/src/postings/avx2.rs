//! Blocks on the 256-bit registers of AVX2, two postings each. There is no population count of
//! vectors: the bits of each half byte are looked up, and the bytes of a word added.

#![expect(unsafe_code, reason = "intrinsics of an instruction set that is detected at run time")]

use std::arch::x86_64::{
    __m256i, _mm256_add_epi8, _mm256_and_si256, _mm256_castsi256_pd, _mm256_cmpgt_epi64,
    _mm256_loadu_si256, _mm256_movemask_pd, _mm256_or_si256, _mm256_sad_epu8, _mm256_set1_epi8,
    _mm256_set1_epi64x, _mm256_setr_epi8, _mm256_setzero_si256, _mm256_shuffle_epi8,
    _mm256_srli_epi16, _mm256_unpackhi_epi64, _mm256_unpacklo_epi64, _mm256_xor_si256,
};

use super::BLOCK;
use super::call::{Met, Posting};
use super::registers::{Kernel, Limits, Registers};

/// Which posting of four is in which lane, when two registers of two have been interleaved.
const ORDER: [usize; 4] = [0, 2, 1, 3];

/// Runs a kernel on 256-bit registers. The features are those of `Isa::Avx2`.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn run<T: Kernel>(kernel: T) -> T::Output {
    kernel.blocks(Avx2(()))
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
    fn load(self, postings: &[Posting; 2]) -> __m256i {
        // SAFETY: the array is 32 readable bytes without padding, and the load needs no alignment;
        // features as in `avx2!`.
        unsafe { _mm256_loadu_si256(std::ptr::from_ref(postings).cast()) }
    }

    /// How many bits each 64-bit lane has set.
    #[inline(always)]
    fn count_bits(self, words: __m256i) -> __m256i {
        let of_half = avx2!(_mm256_setr_epi8(
            0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, 0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2,
            3, 3, 4,
        ));
        let low = avx2!(_mm256_set1_epi8(0x0f));
        let high_bits = avx2!(_mm256_srli_epi16::<4>(words));
        let high_bits = avx2!(_mm256_and_si256(high_bits, low));
        let low_bits = avx2!(_mm256_and_si256(words, low));
        let of_high = avx2!(_mm256_shuffle_epi8(of_half, high_bits));
        let of_low = avx2!(_mm256_shuffle_epi8(of_half, low_bits));
        let bytes = avx2!(_mm256_add_epi8(of_high, of_low));
        let zero = avx2!(_mm256_setzero_si256());
        avx2!(_mm256_sad_epu8(bytes, zero))
    }

    /// Of four postings those that fail, as bits in [`ORDER`].
    #[inline(always)]
    fn failed(self, postings: &[Posting; 4], limits: Limits) -> u32 {
        let (pairs, _) = postings.as_chunks::<2>();
        let (first, second) = (self.load(&pairs[0]), self.load(&pairs[1]));
        let met = avx2!(_mm256_unpacklo_epi64(first, second));
        let signatures = avx2!(_mm256_unpackhi_epi64(first, second));
        let low = avx2!(_mm256_set1_epi64x(0xffff));
        let positions = avx2!(_mm256_and_si256(met, low));
        let position_max = avx2!(_mm256_set1_epi64x(limits.position_max.into()));
        let is_far = avx2!(_mm256_cmpgt_epi64(positions, position_max));
        let signature = avx2!(_mm256_set1_epi64x(limits.signature.cast_signed()));
        let difference = avx2!(_mm256_xor_si256(signatures, signature));
        let distances = self.count_bits(difference);
        let distance_max = avx2!(_mm256_set1_epi64x(limits.distance_max.into()));
        let is_different = avx2!(_mm256_cmpgt_epi64(distances, distance_max));
        let has_failed = avx2!(_mm256_or_si256(is_far, is_different));
        let has_failed = avx2!(_mm256_castsi256_pd(has_failed));
        avx2!(_mm256_movemask_pd(has_failed)).cast_unsigned()
    }
}

impl Registers for Avx2 {
    #[inline(always)]
    fn test(
        self,
        block: &[Posting; BLOCK],
        valid: usize,
        limits: Limits,
        to: &mut [Met; BLOCK],
    ) -> usize {
        let (quarters, _) = block.as_chunks::<4>();
        let mut passed = 0;
        for (quarter, postings) in quarters.iter().enumerate() {
            if 4 * quarter >= valid {
                break;
            }
            let mut left = self.failed(postings, limits) ^ 0xf;
            while left != 0 {
                let posting = ORDER[left.trailing_zeros() as usize % 4];
                let Posting { place, set, .. } = postings[posting];
                // The remainder is no change: fewer than sixteen passed before.
                to[passed % BLOCK] = Met { place, set };
                passed += usize::from(4 * quarter + posting < valid);
                left &= left - 1;
            }
        }
        passed
    }
}
