//! Blocks on the 256-bit registers of AVX2. There is no population count of vectors: the bits of
//! each half byte are looked up, and the bytes of a word added.

#![expect(unsafe_code, reason = "intrinsics of an instruction set that is detected at run time")]

use std::arch::x86_64::{
    __m256i, _mm256_add_epi8, _mm256_add_epi64, _mm256_and_si256, _mm256_castsi256_pd,
    _mm256_castsi256_ps, _mm256_cmpgt_epi32, _mm256_cmpgt_epi64, _mm256_loadu_si256,
    _mm256_movemask_pd, _mm256_movemask_ps, _mm256_sad_epu8, _mm256_set1_epi8, _mm256_set1_epi32,
    _mm256_set1_epi64x, _mm256_setr_epi8, _mm256_setzero_si256, _mm256_shuffle_epi8,
    _mm256_srli_epi16, _mm256_xor_si256,
};

use super::BLOCK;
use super::registers::{Kernel, Registers};

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
    fn load<T, const N: usize>(self, values: &[T; N]) -> __m256i {
        const { assert!(size_of::<[T; N]>() == 32, "a register is 32 bytes") };
        // SAFETY: the array is 32 readable bytes, and the load needs no alignment; features as in
        // `avx2!`.
        unsafe { _mm256_loadu_si256(std::ptr::from_ref(values).cast()) }
    }

    /// How many bits each 64-bit lane has set.
    #[inline(always)]
    fn count_bits(self, words: __m256i) -> __m256i {
        let halves = avx2!(_mm256_setr_epi8(
            0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, 0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2,
            3, 3, 4,
        ));
        let low = avx2!(_mm256_set1_epi8(0x0f));
        let high_bits = avx2!(_mm256_srli_epi16::<4>(words));
        let high_bits = avx2!(_mm256_and_si256(high_bits, low));
        let low_bits = avx2!(_mm256_and_si256(words, low));
        let of_high = avx2!(_mm256_shuffle_epi8(halves, high_bits));
        let of_low = avx2!(_mm256_shuffle_epi8(halves, low_bits));
        let bytes = avx2!(_mm256_add_epi8(of_high, of_low));
        let zero = avx2!(_mm256_setzero_si256());
        avx2!(_mm256_sad_epu8(bytes, zero))
    }
}

impl Registers for Avx2 {
    #[inline(always)]
    fn near(self, places: &[u32; BLOCK], position_max: u32) -> u32 {
        let (halves, _) = places.as_chunks::<8>();
        let low = avx2!(_mm256_set1_epi32(0xffff));
        // Positions fit 16 bits, so the comparison may be a signed one.
        let position_max = avx2!(_mm256_set1_epi32(position_max.cast_signed()));
        let mut far = 0;
        for (half, places) in halves.iter().enumerate() {
            let positions = avx2!(_mm256_and_si256(self.load(places), low));
            let is_far = avx2!(_mm256_cmpgt_epi32(positions, position_max));
            let is_far = avx2!(_mm256_castsi256_ps(is_far));
            far |= avx2!(_mm256_movemask_ps(is_far)).cast_unsigned() << (8 * half);
        }
        far ^ 0xffff
    }

    #[inline(always)]
    fn similar<const WORDS: usize>(
        self,
        selected: u32,
        signatures: [&[u64; BLOCK]; WORDS],
        probe: [u64; WORDS],
        distance_max: u32,
    ) -> u32 {
        let probe = probe.map(|word| avx2!(_mm256_set1_epi64x(word.cast_signed())));
        let distance_max = avx2!(_mm256_set1_epi64x(distance_max.into()));
        let mut different = 0;
        for quarter in 0..4 {
            let mut distances = avx2!(_mm256_setzero_si256());
            for word in 0..WORDS {
                let (quarters, _) = signatures[word].as_chunks::<4>();
                let words = self.load(&quarters[quarter]);
                let difference = avx2!(_mm256_xor_si256(words, probe[word]));
                let bits = self.count_bits(difference);
                distances = avx2!(_mm256_add_epi64(distances, bits));
            }
            let is_different = avx2!(_mm256_cmpgt_epi64(distances, distance_max));
            let is_different = avx2!(_mm256_castsi256_pd(is_different));
            let is_different = avx2!(_mm256_movemask_pd(is_different)).cast_unsigned();
            different |= is_different << (4 * quarter);
        }
        selected & !different
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
