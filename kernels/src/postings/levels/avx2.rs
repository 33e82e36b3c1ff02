//! Blocks on the 256-bit registers of AVX2.

#![expect(unsafe_code, reason = "intrinsics of an instruction set that is detected at run time")]

use std::arch::x86_64::{
    _mm256_add_epi64, _mm256_and_si256, _mm256_andnot_si256, _mm256_castsi256_pd,
    _mm256_castsi256_ps, _mm256_cmpeq_epi32, _mm256_cmpgt_epi32, _mm256_cmpgt_epi64,
    _mm256_max_epu32, _mm256_movemask_pd, _mm256_movemask_ps, _mm256_or_si256, _mm256_set1_epi32,
    _mm256_set1_epi64x, _mm256_setzero_si256, _mm256_xor_si256,
};

use super::{BEFORES, BLOCK, BlockTest, Line, PLACES, SIGNATURES, Sought};
use crate::simd::{Avx2, Scalar, avx2};

impl BlockTest for Avx2 {
    #[inline(always)]
    fn test<const WORDS: usize>(self, block: &[Line], valid: u32, sought: &Sought<WORDS>) -> u32 {
        let mut passed = 0;
        let halves = block[PLACES].as_chunks().0.iter().zip(block[BEFORES].as_chunks().0);
        for (half, (places, befores)) in halves.enumerate() {
            passed |= have_right_places(self, places, befores, sought) << (8 * half);
        }
        let mut left = valid & passed;
        if WORDS > 0 {
            for quarter in 0..BLOCK / 4 {
                // Population counts are expensive here, and most quarters have no posting left.
                if left >> (4 * quarter) & 0xf != 0 {
                    left &= !(are_different(self, block, quarter, sought) << (4 * quarter));
                }
            }
        }
        left
    }

    #[inline(always)]
    fn compress(self, bits: u32, from: &Line, to: &mut Line) {
        // AVX2 has no compression; few postings pass, so a loop over the bits suffices.
        Scalar.compress(bits, from, to);
    }
}

/// The postings, of eight, whose size, position and previous token pass, as bits.
#[inline(always)]
fn have_right_places<const WORDS: usize>(
    simd: Avx2,
    places: &[u32; 8],
    befores: &[u32; 8],
    sought: &Sought<WORDS>,
) -> u32 {
    let places = simd.load_u32(places);
    let place_min = avx2!(simd, _mm256_set1_epi32(sought.place_min.cast_signed()));
    // There is no unsigned comparison: `a >= b` if `a` is the maximum of both.
    let is_large = avx2!(simd, _mm256_cmpeq_epi32(_mm256_max_epu32(places, place_min), places));
    let positions = avx2!(simd, _mm256_and_si256(places, _mm256_set1_epi32(0xffff)));
    let position_max = avx2!(simd, _mm256_set1_epi32(sought.position_max.cast_signed()));
    // The comparison is signed, as both numbers are below 2^31.
    let is_far = avx2!(simd, _mm256_cmpgt_epi32(positions, position_max));
    let before = avx2!(simd, _mm256_set1_epi32(sought.before.cast_signed()));
    let is_known = avx2!(simd, _mm256_cmpeq_epi32(simd.load_u32(befores), before));
    let failed = avx2!(simd, _mm256_or_si256(is_far, is_known));
    let passed = avx2!(simd, _mm256_castsi256_ps(_mm256_andnot_si256(failed, is_large)));
    avx2!(simd, _mm256_movemask_ps(passed)).cast_unsigned()
}

/// The postings, of four, whose signatures differ in too many bits, as bits.
#[inline(always)]
fn are_different<const WORDS: usize>(
    simd: Avx2,
    block: &[Line],
    quarter: usize,
    sought: &Sought<WORDS>,
) -> u32 {
    let mut distances = avx2!(simd, _mm256_setzero_si256());
    for (word, sought) in sought.signature.iter().enumerate() {
        let sought = avx2!(simd, _mm256_set1_epi64x(sought.cast_signed()));
        let line = &block[SIGNATURES + 2 * word + quarter / 2];
        let words = simd.load_u32(&line.as_chunks().0[quarter % 2]);
        let difference = avx2!(simd, _mm256_xor_si256(words, sought));
        let bits = simd.add_bytes(simd.count_bits_of_bytes(difference));
        distances = avx2!(simd, _mm256_add_epi64(distances, bits));
    }
    let distance_max = avx2!(simd, _mm256_set1_epi64x(sought.distance_max.cast_signed()));
    let are_different = avx2!(simd, _mm256_cmpgt_epi64(distances, distance_max));
    let are_different = avx2!(simd, _mm256_castsi256_pd(are_different));
    avx2!(simd, _mm256_movemask_pd(are_different)).cast_unsigned()
}
