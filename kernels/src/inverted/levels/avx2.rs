//! Blocks on the 256-bit registers of AVX2.

#![expect(unsafe_code, reason = "intrinsics of an instruction set that is detected at run time")]

use std::arch::x86_64::{
    __m256i, _mm_loadu_si128, _mm256_add_epi32, _mm256_andnot_si256, _mm256_castsi256_ps,
    _mm256_cmpeq_epi16, _mm256_cmpeq_epi32, _mm256_cmpgt_epi32, _mm256_cvtepu16_epi32,
    _mm256_loadu_si256, _mm256_mask_i32gather_epi32, _mm256_movemask_epi8, _mm256_movemask_ps,
    _mm256_or_si256, _mm256_set1_epi16, _mm256_set1_epi32, _mm256_setzero_si256, _mm256_sllv_epi32,
    _mm256_srli_epi32,
};

use super::{BLOCK, Blocks};
use crate::Isa;
use crate::simd::{Avx2, avx2};

/// The number of each lane.
const LANES: [u32; 8] = [0, 1, 2, 3, 4, 5, 6, 7];

impl Avx2 {
    /// As [`Blocks::test`] for half a block.
    #[inline(always)]
    fn test_half(self, ids: &[u32; 8], words: &[u32]) -> u32 {
        // Positions are below 2^27, as ids have 32 bits: signed comparisons suffice.
        let len = avx2!(self, _mm256_set1_epi32(i32::try_from(words.len()).unwrap_or(i32::MAX)));
        let ids = self.load_u32(ids);
        let positions = avx2!(self, _mm256_srli_epi32::<5>(ids));
        let valid = avx2!(self, _mm256_cmpgt_epi32(len, positions));
        let zero = avx2!(self, _mm256_setzero_si256());
        // SAFETY: only words at valid positions, which are below the number of words, are read;
        // features as in `avx2!`.
        let words = unsafe {
            _mm256_mask_i32gather_epi32::<4>(zero, words.as_ptr().cast(), positions, valid)
        };
        // The shift moves the bit of an id to the sign.
        let counts = avx2!(self, _mm256_andnot_si256(ids, _mm256_set1_epi32(31)));
        let signs = avx2!(self, _mm256_castsi256_ps(_mm256_sllv_epi32(words, counts)));
        avx2!(self, _mm256_movemask_ps(signs)).cast_unsigned()
    }
}

impl Blocks for Avx2 {
    const ISA: Isa = Isa::Avx2;

    #[inline(always)]
    fn has(self, block: &[u16; BLOCK], len: usize, half: u16) -> bool {
        // SAFETY: the array is 32 readable bytes, and the load needs no alignment; features as in
        // `avx2!`.
        let block: __m256i = unsafe { _mm256_loadu_si256(std::ptr::from_ref(block).cast()) };
        let half = avx2!(self, _mm256_set1_epi16(half.cast_signed()));
        let equal = avx2!(self, _mm256_cmpeq_epi16(block, half));
        // The mask has two bits for each half.
        let bits = avx2!(self, _mm256_movemask_epi8(equal)).cast_unsigned();
        u64::from(bits) & !(u64::MAX << (2 * len)) != 0
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

    #[inline(always)]
    fn widen(self, halves: &[u16; BLOCK], upper: u16, ids: &mut [u32; BLOCK]) {
        let upper = avx2!(self, _mm256_set1_epi32((u32::from(upper) << 16).cast_signed()));
        for (ids, halves) in ids.as_chunks_mut().0.iter_mut().zip(halves.as_chunks::<8>().0) {
            // SAFETY: the array is 16 readable bytes, and the load needs no alignment; features as
            // in `avx2!`.
            let halves = unsafe { _mm_loadu_si128(std::ptr::from_ref(halves).cast()) };
            let wide = avx2!(self, _mm256_cvtepu16_epi32(halves));
            self.store_u32(avx2!(self, _mm256_or_si256(wide, upper)), ids);
        }
    }

    #[inline(always)]
    fn test(self, ids: &[u32; BLOCK], words: &[u32]) -> u32 {
        let (halves, _) = ids.as_chunks();
        let [low, high] = [self.test_half(&halves[0], words), self.test_half(&halves[1], words)];
        low | high << 8
    }

    #[inline(always)]
    fn keep(self, ids: &[u32; BLOCK], hits: u32, kept: &mut [u32; BLOCK]) {
        let (halves, _) = ids.as_chunks::<8>();
        let low = kept.first_chunk_mut().expect("a block has two halves");
        self.compress_u32(self.load_u32(&halves[0]), hits, low);
        let rest = kept[(hits & 0xff).count_ones() as usize..].first_chunk_mut();
        let rest = rest.expect("a block has two halves");
        self.compress_u32(self.load_u32(&halves[1]), hits >> 8, rest);
    }

    #[inline(always)]
    fn ids_of(self, base: u32, word: u32, ids: &mut [u32; 32]) {
        if word == 0 {
            return;
        }
        let eight = avx2!(self, _mm256_set1_epi32(8));
        let base = avx2!(self, _mm256_set1_epi32(base.cast_signed()));
        let mut next = avx2!(self, _mm256_add_epi32(base, self.load_u32(&LANES)));
        let mut free = &mut ids[..];
        for hits in word.to_le_bytes() {
            self.compress_u32(next, hits.into(), free.first_chunk_mut().expect("four quarters"));
            next = avx2!(self, _mm256_add_epi32(next, eight));
            free = &mut free[hits.count_ones() as usize..];
        }
    }
}
