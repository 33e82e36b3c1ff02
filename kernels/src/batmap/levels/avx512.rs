//! Blocks in the 512-bit registers of AVX-512, one register for each block.

#![expect(unsafe_code, reason = "intrinsics of an instruction set that is detected at run time")]

use std::arch::x86_64::{
    __m512i, _mm512_load_si512, _mm512_mask_add_epi8, _mm512_reduce_add_epi64, _mm512_sad_epu8,
    _mm512_set1_epi8, _mm512_setzero_si512, _mm512_ternarylogic_epi64, _mm512_testn_epi8_mask,
};

use super::{Compared, Slots};
use crate::batmap::map::Block;
use crate::simd::{Avx512, avx512};

/// Functions of three bits in the form of `vpternlog`: bit `4 a + 2 b + c` is the result.
mod function {
    /// `if a { b ^ c } else { !(b | c) }`.
    pub(super) const DIFFERS_OR_NEITHER: i32 = 0b0110_0001;
    /// Not all equal.
    pub(super) const DIFFERS: i32 = 0b0111_1110;
    /// `!(a | b | c)`.
    pub(super) const NONE: i32 = 0b0000_0001;
    /// `!(a ^ b ^ c)`.
    pub(super) const EVEN: i32 = 0b0110_1001;
    /// `if a { b } else { c }`.
    pub(super) const SELECT: i32 = 0b1100_1010;
}

impl<E: Copy> Avx512<E> {
    /// Adds one to the counts of the bytes that have none of the compared bits.
    #[inline(always)]
    fn count_zeroes(self, counts: __m512i, bits: __m512i, compared: Compared<__m512i>) -> __m512i {
        let is_common = avx512!(self, _mm512_testn_epi8_mask(bits, compared.all));
        avx512!(self, _mm512_mask_add_epi8(counts, is_common, counts, compared.one))
    }
}

impl<E: Copy> Slots for Avx512<E> {
    type Bytes = __m512i;

    #[inline(always)]
    fn splat(self, byte: u8) -> __m512i {
        avx512!(self, _mm512_set1_epi8(byte.cast_signed()))
    }

    #[inline(always)]
    fn load(self, block: &Block) -> __m512i {
        // SAFETY: the block is 64 readable bytes, aligned to 64; features as in `avx512!`.
        unsafe { _mm512_load_si512(std::ptr::from_ref(block).cast()) }
    }

    #[inline(always)]
    fn count_pair(
        self,
        counts: __m512i,
        [left, right]: [__m512i; 2],
        compared: Compared<__m512i>,
    ) -> __m512i {
        const FUNCTION: i32 = function::DIFFERS_OR_NEITHER;
        let codes = compared.codes;
        let bits = avx512!(self, _mm512_ternarylogic_epi64::<FUNCTION>(codes, left, right));
        self.count_zeroes(counts, bits, compared)
    }

    #[inline(always)]
    fn count_triple<const IS_LAST: bool>(
        self,
        counts: __m512i,
        [a, b, c]: [__m512i; 3],
        compared: Compared<__m512i>,
    ) -> __m512i {
        use function::{DIFFERS, EVEN, NONE, SELECT};
        let differs = avx512!(self, _mm512_ternarylogic_epi64::<DIFFERS>(a, b, c));
        let lacks = if IS_LAST {
            avx512!(self, _mm512_ternarylogic_epi64::<EVEN>(a, b, c))
        } else {
            avx512!(self, _mm512_ternarylogic_epi64::<NONE>(a, b, c))
        };
        let codes = compared.codes;
        let bits = avx512!(self, _mm512_ternarylogic_epi64::<SELECT>(codes, differs, lacks));
        self.count_zeroes(counts, bits, compared)
    }

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "64 bytes")]
    fn sum(self, counts: __m512i) -> u32 {
        let zero = avx512!(self, _mm512_setzero_si512());
        let sums = avx512!(self, _mm512_sad_epu8(counts, zero));
        avx512!(self, _mm512_reduce_add_epi64(sums)) as u32
    }
}
