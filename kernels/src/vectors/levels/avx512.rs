//! Sixteen points in one 512-bit register of AVX-512.

#![expect(unsafe_code, reason = "intrinsics of an instruction set that is detected at run time")]

use std::arch::x86_64::{
    __m512, __m512i, __mmask16, _CMP_LE_OQ, _mm512_add_epi32, _mm512_castsi512_ps,
    _mm512_cmp_ps_mask, _mm512_cmple_epi32_mask, _mm512_cmplt_epu32_mask, _mm512_fmadd_ps,
    _mm512_load_si512, _mm512_madd_epi16, _mm512_maskz_compress_epi32, _mm512_max_epi16,
    _mm512_max_ps, _mm512_min_ps, _mm512_or_si512, _mm512_set1_epi32, _mm512_setzero_ps,
    _mm512_setzero_si512, _mm512_slli_epi32, _mm512_sub_epi16, _mm512_sub_ps, _mm512_subs_epu16,
};

use super::{Filter, Float, LANES, Line, Short, Sixteen};
use crate::simd::{Avx512, avx512};

/// The number of each lane.
const NUMBERS: Line = Line([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);

/// Adds to each 32-bit lane the squares of its two 16-bit numbers. VNNI has one instruction for
/// both steps, but the compiler splits it again.
#[inline(always)]
fn add_squares(level: Avx512, sums: __m512i, numbers: __m512i) -> __m512i {
    avx512!(level, _mm512_add_epi32(sums, _mm512_madd_epi16(numbers, numbers)))
}

/// Loads a line.
#[inline(always)]
fn load(level: Avx512, line: &Line) -> __m512i {
    let _ = level;
    // SAFETY: the line is 64 readable bytes, aligned to 64; features as in `avx512!`.
    unsafe { _mm512_load_si512(std::ptr::from_ref(line).cast()) }
}

impl Filter for Avx512 {
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "sixteen bits")]
    fn keep<const SHIFT: u32>(self, first: u32, hits: u32, kept: &mut [u32; LANES]) {
        // The numbers are compressed in a register and stored whole: the compressing store is many
        // times slower on some processors.
        let first = avx512!(self, _mm512_set1_epi32(first.cast_signed()));
        let numbers = avx512!(self, _mm512_slli_epi32::<SHIFT>(load(self, &NUMBERS)));
        let numbers = avx512!(self, _mm512_add_epi32(first, numbers));
        self.store_u32(
            avx512!(self, _mm512_maskz_compress_epi32(hits as __mmask16, numbers)),
            kept,
        );
    }

    #[inline(always)]
    fn below(self, numbers: &[u32; LANES], pivot: u32) -> u32 {
        let pivot = avx512!(self, _mm512_set1_epi32(pivot.cast_signed()));
        avx512!(self, _mm512_cmplt_epu32_mask(self.load_u32(numbers), pivot)).into()
    }

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "sixteen bits")]
    fn compress(self, numbers: &[u32; LANES], hits: u32, kept: &mut [u32; LANES]) {
        let numbers = self.load_u32(numbers);
        self.store_u32(
            avx512!(self, _mm512_maskz_compress_epi32(hits as __mmask16, numbers)),
            kept,
        );
    }
}

impl Sixteen<Short> for Avx512 {
    type Words = __m512i;
    type Sums = __m512i;

    #[inline(always)]
    fn zero(self) -> __m512i {
        avx512!(self, _mm512_setzero_si512())
    }

    #[inline(always)]
    fn splat_sum(self, bits: u32) -> __m512i {
        avx512!(self, _mm512_set1_epi32(bits.cast_signed()))
    }

    #[inline(always)]
    fn splat(self, word: u32) -> __m512i {
        avx512!(self, _mm512_set1_epi32(word.cast_signed()))
    }

    #[inline(always)]
    fn load(self, line: &Line) -> __m512i {
        load(self, line)
    }

    #[inline(always)]
    fn add_differences(self, sums: __m512i, left: __m512i, right: __m512i) -> __m512i {
        add_squares(self, sums, avx512!(self, _mm512_sub_epi16(left, right)))
    }

    #[inline(always)]
    fn add_gaps(self, sums: __m512i, point: __m512i, low: __m512i, high: __m512i) -> __m512i {
        // At most one of the two differences is above zero; the other saturates at zero.
        let below = avx512!(self, _mm512_subs_epu16(low, point));
        let above = avx512!(self, _mm512_subs_epu16(point, high));
        add_squares(self, sums, avx512!(self, _mm512_or_si512(below, above)))
    }

    #[inline(always)]
    fn add_farthest(self, sums: __m512i, point: __m512i, low: __m512i, high: __m512i) -> __m512i {
        let above = avx512!(self, _mm512_sub_epi16(point, low));
        let below = avx512!(self, _mm512_sub_epi16(high, point));
        add_squares(self, sums, avx512!(self, _mm512_max_epi16(above, below)))
    }

    #[inline(always)]
    fn at_most(self, sums: __m512i, limit: __m512i) -> u32 {
        avx512!(self, _mm512_cmple_epi32_mask(sums, limit)).into()
    }
}

impl Sixteen<Float> for Avx512 {
    type Words = __m512;
    type Sums = __m512;

    #[inline(always)]
    fn zero(self) -> __m512 {
        avx512!(self, _mm512_setzero_ps())
    }

    #[inline(always)]
    fn splat_sum(self, bits: u32) -> __m512 {
        Sixteen::<Float>::splat(self, bits)
    }

    #[inline(always)]
    fn splat(self, word: u32) -> __m512 {
        avx512!(self, _mm512_castsi512_ps(_mm512_set1_epi32(word.cast_signed())))
    }

    #[inline(always)]
    fn load(self, line: &Line) -> __m512 {
        avx512!(self, _mm512_castsi512_ps(load(self, line)))
    }

    #[inline(always)]
    fn add_differences(self, sums: __m512, left: __m512, right: __m512) -> __m512 {
        let differences = avx512!(self, _mm512_sub_ps(left, right));
        avx512!(self, _mm512_fmadd_ps(differences, differences, sums))
    }

    #[inline(always)]
    fn add_gaps(self, sums: __m512, point: __m512, low: __m512, high: __m512) -> __m512 {
        let nearest = avx512!(self, _mm512_min_ps(_mm512_max_ps(point, low), high));
        Sixteen::<Float>::add_differences(self, sums, point, nearest)
    }

    #[inline(always)]
    fn add_farthest(self, sums: __m512, point: __m512, low: __m512, high: __m512) -> __m512 {
        let above = avx512!(self, _mm512_sub_ps(point, low));
        let below = avx512!(self, _mm512_sub_ps(high, point));
        let farthest = avx512!(self, _mm512_max_ps(above, below));
        avx512!(self, _mm512_fmadd_ps(farthest, farthest, sums))
    }

    #[inline(always)]
    fn at_most(self, sums: __m512, limit: __m512) -> u32 {
        avx512!(self, _mm512_cmp_ps_mask::<_CMP_LE_OQ>(sums, limit)).into()
    }
}
