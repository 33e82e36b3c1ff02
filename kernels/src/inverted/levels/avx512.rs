//! Blocks on the registers of AVX-512: 256 bits of halves, 512 bits of ids.

#![expect(unsafe_code, reason = "instructions that are detected at run time")]

use std::arch::asm;
use std::arch::x86_64::{
    __m256i, __m512i, __mmask16, _mm256_cmpeq_epi16_mask, _mm256_loadu_si256, _mm256_set1_epi16,
    _mm512_add_epi32, _mm512_and_si512, _mm512_cmpeq_epi32_mask, _mm512_cmplt_epu32_mask,
    _mm512_cvtepu16_epi32, _mm512_mask_i32gather_epi32, _mm512_maskz_compress_epi32,
    _mm512_or_si512, _mm512_set1_epi32, _mm512_setzero_si512, _mm512_sllv_epi32, _mm512_srli_epi32,
    _mm512_test_epi32_mask,
};

use super::{BLOCK, Blocks};
use crate::Isa;
use crate::simd::{Avx512, Base, Extension, Vp2Intersect, avx512};

/// The number of each lane.
const LANES: [u32; BLOCK] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

/// The ids of one register that are in another register, as a trait of extensions.
pub(super) trait Common: Copy {
    /// The lanes of `left` whose ids are in `right`.
    fn lanes_in(self, left: __m512i, right: &[u32; BLOCK]) -> __mmask16;
}

impl Common for Avx512<Base> {
    #[inline(always)]
    fn lanes_in(self, left: __m512i, right: &[u32; BLOCK]) -> __mmask16 {
        let mut lanes = 0;
        for &id in right {
            let id = avx512!(self, _mm512_set1_epi32(id.cast_signed()));
            lanes |= avx512!(self, _mm512_cmpeq_epi32_mask(left, id));
        }
        lanes
    }
}

impl Common for Avx512<Vp2Intersect> {
    #[inline(always)]
    fn lanes_in(self, left: __m512i, right: &[u32; BLOCK]) -> __mmask16 {
        avx512!(self, intersect(left, self.load_u32(right)))
    }
}

impl<E: Extension> Blocks for Avx512<E>
where
    Self: Common,
{
    const ISA: Isa = Isa::Avx512;

    #[inline(always)]
    fn has(self, block: &[u16; BLOCK], len: usize, half: u16) -> bool {
        // SAFETY: the array is 32 readable bytes, and the load needs no alignment; features as in
        // `avx512!`.
        let block: __m256i = unsafe { _mm256_loadu_si256(std::ptr::from_ref(block).cast()) };
        let half = avx512!(self, _mm256_set1_epi16(half.cast_signed()));
        let equal: u32 = avx512!(self, _mm256_cmpeq_epi16_mask(block, half)).into();
        equal & !(u32::MAX << len) != 0
    }

    #[inline(always)]
    fn common(self, left: &[u32; BLOCK], right: &[u32; BLOCK]) -> u32 {
        self.lanes_in(self.load_u32(left), right).into()
    }

    #[inline(always)]
    fn widen(self, halves: &[u16; BLOCK], upper: u16, ids: &mut [u32; BLOCK]) {
        // SAFETY: as in `has`.
        let halves: __m256i = unsafe { _mm256_loadu_si256(std::ptr::from_ref(halves).cast()) };
        let upper = avx512!(self, _mm512_set1_epi32((u32::from(upper) << 16).cast_signed()));
        let wide = avx512!(self, _mm512_cvtepu16_epi32(halves));
        self.store_u32(avx512!(self, _mm512_or_si512(wide, upper)), ids);
    }

    #[inline(always)]
    fn test(self, ids: &[u32; BLOCK], words: &[u32]) -> u32 {
        // Positions are below 2^27, as ids have 32 bits.
        let len = i32::try_from(words.len()).unwrap_or(i32::MAX);
        let ids = self.load_u32(ids);
        let positions = avx512!(self, _mm512_srli_epi32::<5>(ids));
        let len = avx512!(self, _mm512_set1_epi32(len));
        let valid = avx512!(self, _mm512_cmplt_epu32_mask(positions, len));
        let zero = avx512!(self, _mm512_setzero_si512());
        // SAFETY: only words at valid positions, which are below the number of words, are read;
        // features as in `avx512!`.
        let words = unsafe {
            _mm512_mask_i32gather_epi32::<4>(zero, valid, positions, words.as_ptr().cast())
        };
        let bits = avx512!(self, _mm512_and_si512(ids, _mm512_set1_epi32(31)));
        let bits = avx512!(self, _mm512_sllv_epi32(_mm512_set1_epi32(1), bits));
        avx512!(self, _mm512_test_epi32_mask(words, bits)).into()
    }

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "a bit a lane")]
    fn keep(self, ids: &[u32; BLOCK], hits: u32, kept: &mut [u32; BLOCK]) {
        // The ids are compressed in a register and stored whole: the compressing store is many
        // times slower on some processors.
        let ids = self.load_u32(ids);
        self.store_u32(avx512!(self, _mm512_maskz_compress_epi32(hits as __mmask16, ids)), kept);
    }

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "the two halves")]
    fn ids_of(self, base: u32, word: u32, ids: &mut [u32; 32]) {
        if word == 0 {
            return;
        }
        let base = avx512!(self, _mm512_set1_epi32(base.cast_signed()));
        let low = avx512!(self, _mm512_add_epi32(base, self.load_u32(&LANES)));
        let high = avx512!(self, _mm512_add_epi32(low, _mm512_set1_epi32(16)));
        let (low_hits, high_hits) = (word as __mmask16, (word >> 16) as __mmask16);
        let low = avx512!(self, _mm512_maskz_compress_epi32(low_hits, low));
        let high = avx512!(self, _mm512_maskz_compress_epi32(high_hits, high));
        self.store_u32(low, ids.first_chunk_mut().expect("a word has two blocks"));
        let rest = ids[low_hits.count_ones() as usize..].first_chunk_mut();
        self.store_u32(high, rest.expect("a word has two blocks"));
    }
}

/// The lanes of the first register whose ids are in the second.
#[target_feature(enable = "avx512f,avx512vp2intersect")]
#[inline]
fn intersect(left: __m512i, right: __m512i) -> __mmask16 {
    let of_left;
    // SAFETY: a function of its registers; the processor has the instruction, since this function
    // has its feature. The instruction writes a pair of masks: the named mask, which has an even
    // number, and the next mask.
    unsafe {
        asm!(
            "vp2intersectd k2, {left}, {right}",
            left = in(zmm_reg) left,
            right = in(zmm_reg) right,
            out("k2") of_left,
            out("k3") _,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    of_left
}
