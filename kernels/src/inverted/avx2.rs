//! Blocks on the 256-bit registers of AVX2.

#![expect(unsafe_code, reason = "intrinsics of an instruction set that is detected at run time")]

use std::arch::x86_64::{
    __m256i, _mm256_castsi256_ps, _mm256_cmpeq_epi16, _mm256_cmpeq_epi32, _mm256_loadu_si256,
    _mm256_movemask_epi8, _mm256_movemask_ps, _mm256_or_si256, _mm256_packs_epi16,
    _mm256_permute4x64_epi64, _mm256_set1_epi16, _mm256_set1_epi32, _mm256_setzero_si256,
};

use super::blocks::{BLOCK, Blocks};
use crate::Isa;
use crate::simd::{Avx2, avx2};

impl Blocks for Avx2 {
    const ISA: Isa = Isa::Avx2;

    #[inline(always)]
    fn matches(self, block: &[u16; BLOCK], half: u16) -> u32 {
        // SAFETY: the array is 32 readable bytes, and the load needs no alignment; features as in
        // `avx2!`.
        let block: __m256i = unsafe { _mm256_loadu_si256(std::ptr::from_ref(block).cast()) };
        let half = avx2!(self, _mm256_set1_epi16(half.cast_signed()));
        let equal = avx2!(self, _mm256_cmpeq_epi16(block, half));
        // A byte a lane, the upper lanes in the third quarter.
        let bytes = avx2!(self, _mm256_packs_epi16(equal, _mm256_setzero_si256()));
        let bytes = avx2!(self, _mm256_permute4x64_epi64::<0b11_01_10_00>(bytes));
        avx2!(self, _mm256_movemask_epi8(bytes)).cast_unsigned()
    }

    #[inline(always)]
    fn common(self, left: &[u32; BLOCK], right: &[u32; BLOCK]) -> u32 {
        let (registers, _) = left.as_chunks::<8>();
        let (low, high) = (self.load_u32(&registers[0]), self.load_u32(&registers[1]));
        let mut any_low = avx2!(self, _mm256_setzero_si256());
        let mut any_high = any_low;
        for &id in right {
            let id = avx2!(self, _mm256_set1_epi32(id.cast_signed()));
            let (equal_low, equal_high) =
                avx2!(self, (_mm256_cmpeq_epi32(low, id), _mm256_cmpeq_epi32(high, id)));
            any_low = avx2!(self, _mm256_or_si256(any_low, equal_low));
            any_high = avx2!(self, _mm256_or_si256(any_high, equal_high));
        }
        let bits = |any| {
            let lanes = avx2!(self, _mm256_castsi256_ps(any));
            avx2!(self, _mm256_movemask_ps(lanes)).cast_unsigned()
        };
        bits(any_low) | bits(any_high) << 8
    }
}
