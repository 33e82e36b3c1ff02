//! Blocks on the 512-bit registers of AVX-512.

#![expect(unsafe_code, reason = "intrinsics of an instruction set that is detected at run time")]

use std::arch::x86_64::{
    __mmask16, _mm512_add_epi64, _mm512_and_si512, _mm512_cmple_epu64_mask,
    _mm512_mask_cmpge_epu32_mask, _mm512_mask_cmple_epu32_mask, _mm512_mask_cmpneq_epu32_mask,
    _mm512_maskz_compress_epi32, _mm512_set1_epi32, _mm512_set1_epi64, _mm512_setzero_si512,
    _mm512_xor_si512,
};

use super::{BEFORES, BlockTest, Line, PLACES, SIGNATURES, Sought};
use crate::simd::{Avx512, Extension, avx512};

impl<E: Extension> BlockTest for Avx512<E> {
    #[inline(always)]
    fn test<const WORDS: usize>(self, block: &[Line], _: u32, sought: &Sought<WORDS>) -> u32 {
        // Each comparison is masked by the lanes that remain, at no cost; so there is no branch,
        // not even when no lane remains.
        let near: __mmask16 = if WORDS == 0 { u16::MAX } else { are_near(self, block, sought) };
        let places = self.load_u32(&block[PLACES]);
        let place_min = avx512!(self, _mm512_set1_epi32(sought.place_min.cast_signed()));
        let passed = avx512!(self, _mm512_mask_cmpge_epu32_mask(near, places, place_min));
        let positions = avx512!(self, _mm512_and_si512(places, _mm512_set1_epi32(0xffff)));
        let position_max = avx512!(self, _mm512_set1_epi32(sought.position_max.cast_signed()));
        let passed = avx512!(self, _mm512_mask_cmple_epu32_mask(passed, positions, position_max));
        let before = avx512!(self, _mm512_set1_epi32(sought.before.cast_signed()));
        let befores = self.load_u32(&block[BEFORES]);
        avx512!(self, _mm512_mask_cmpneq_epu32_mask(passed, befores, before)).into()
    }

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "there are sixteen bits")]
    fn compress(self, bits: u32, from: &Line, to: &mut Line) {
        let from = self.load_u32(from);
        // The numbers are compressed in a register and stored whole: the compressing store is many
        // times slower on some processors.
        let front = avx512!(self, _mm512_maskz_compress_epi32(bits as u16, from));
        self.store_u32(front, to);
    }
}

/// The postings whose signatures are near, as bits.
#[inline(always)]
fn are_near<E: Extension, const WORDS: usize>(
    simd: Avx512<E>,
    block: &[Line],
    sought: &Sought<WORDS>,
) -> u16 {
    let mut distances = [avx512!(simd, _mm512_setzero_si512()); 2];
    for (word, sought) in sought.signature.iter().enumerate() {
        let sought = avx512!(simd, _mm512_set1_epi64(sought.cast_signed()));
        for (half, distances) in distances.iter_mut().enumerate() {
            let words = simd.load_u32(&block[SIGNATURES + 2 * word + half]);
            let difference = avx512!(simd, _mm512_xor_si512(words, sought));
            *distances = avx512!(simd, _mm512_add_epi64(*distances, simd.count_bits(difference)));
        }
    }
    let distance_max = avx512!(simd, _mm512_set1_epi64(sought.distance_max.cast_signed()));
    let [low, high] =
        distances.map(|half| avx512!(simd, _mm512_cmple_epu64_mask(half, distance_max)));
    u16::from_le_bytes([low, high])
}
