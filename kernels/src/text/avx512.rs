//! Blocks on the 512-bit registers of AVX-512: a register is a block, and a comparison a mask.

#![expect(unsafe_code, reason = "intrinsics of an instruction set that is detected at run time")]

use std::arch::x86_64::{
    __m512i, __mmask16, _mm512_add_epi32, _mm512_cmpeq_epi8_mask, _mm512_cmpge_epu8_mask,
    _mm512_cmplt_epu8_mask, _mm512_loadu_si512, _mm512_mask_add_epi8, _mm512_maskz_compress_epi32,
    _mm512_movepi8_mask, _mm512_set1_epi8, _mm512_set1_epi32, _mm512_setr_epi32,
    _mm512_storeu_si512, _mm512_sub_epi8,
};

use super::integers::{ConvertIntegers, GROUP, LineKinds};
use super::places::MatchBlock;
use super::{
    Block, ByteKinds, ClassifyBlock, HEXAGRAM, IDEOGRAPH, IDEOGRAPHS, TEXT_BLOCK, ideographs,
};
use crate::simd::{Avx512, avx512};

/// Places in a register.
const LANES: usize = 16;
/// The difference between a small letter and the capital.
const SMALL: i8 = 0x20;

impl<E: Copy> ClassifyBlock for Avx512<E> {
    #[inline(always)]
    fn classify(self, block: &Block, lower: &mut Block) -> ByteKinds {
        // SAFETY: the array is 64 readable bytes, and the load needs no alignment; features as in
        // `avx512!`.
        let bytes = unsafe { _mm512_loadu_si512(std::ptr::from_ref(block).cast()) };
        let small = avx512!(self, _mm512_set1_epi8(SMALL));
        let capitals = among(self, bytes, b'A', 26);
        let lowered = avx512!(self, _mm512_mask_add_epi8(bytes, capitals, bytes, small));
        // SAFETY: the array is 64 writable bytes, and the store needs no alignment; features as
        // in `avx512!`.
        unsafe { _mm512_storeu_si512(std::ptr::from_mut(lower).cast(), lowered) };
        let marks = is(self, bytes, b'.') | is(self, bytes, b'\'');
        ByteKinds {
            letters: among(self, lowered, b'a', 26),
            digits: among(self, bytes, b'0', 10),
            underscores: is(self, bytes, b'_'),
            join_letters: marks | is(self, bytes, b':'),
            join_digits: marks | is(self, bytes, b',') | is(self, bytes, b';'),
            wide: avx512!(self, _mm512_movepi8_mask(bytes)),
            leads: avx512!(self, _mm512_cmpge_epu8_mask(bytes, _mm512_set1_epi8(-0x40))),
            ideographs: ideographs(
                among(self, bytes, IDEOGRAPH, IDEOGRAPHS),
                is(self, bytes, IDEOGRAPH),
                is(self, bytes, HEXAGRAM),
            ),
        }
    }
}

impl<E: Copy> MatchBlock for Avx512<E> {
    #[inline(always)]
    fn matches(self, block: &Block, byte: u8) -> u64 {
        // SAFETY: as in `classify`.
        let bytes = unsafe { _mm512_loadu_si512(std::ptr::from_ref(block).cast()) };
        is(self, bytes, byte)
    }

    #[inline(always)]
    fn write_places(self, bits: u64, begin: u32, places: &mut [u32; TEXT_BLOCK]) -> usize {
        let first = avx512!(self, _mm512_set1_epi32(begin.cast_signed()));
        let counted = avx512!(self, {
            _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
        });
        let mut all = avx512!(self, _mm512_add_epi32(first, counted));
        let mut found = 0;
        for bits in bits.to_le_bytes().as_chunks().0 {
            let bits: __mmask16 = u16::from_le_bytes(*bits);
            let compressed = avx512!(self, _mm512_maskz_compress_epi32(bits, all));
            // The places so far are at most as many as the earlier bits.
            let to: &mut [u32; LANES] = places[found..].first_chunk_mut().expect("a register");
            // SAFETY: the array is 64 writable bytes, and the store needs no alignment; features
            // as in `avx512!`.
            unsafe { _mm512_storeu_si512(std::ptr::from_mut(to).cast(), compressed) };
            found += bits.count_ones() as usize;
            all = avx512!(self, _mm512_add_epi32(all, _mm512_set1_epi32(16)));
        }
        found
    }
}

impl<E: Copy> ConvertIntegers for Avx512<E> {
    #[inline(always)]
    fn line_kinds(self, block: &Block) -> LineKinds {
        // SAFETY: as in `classify`.
        let bytes = unsafe { _mm512_loadu_si512(std::ptr::from_ref(block).cast()) };
        LineKinds {
            digits: among(self, bytes, b'0', 10),
            newlines: is(self, bytes, b'\n'),
            returns: is(self, bytes, b'\r'),
            blanks: is(self, bytes, b' ') | is(self, bytes, b'\t'),
        }
    }

    #[inline(always)]
    fn convert(self, words: [u64; GROUP], digits: &[u32; GROUP]) -> [u32; GROUP] {
        self.avx2().convert(words, digits)
    }
}

/// The bytes that are `byte`.
#[inline(always)]
fn is<E>(simd: Avx512<E>, bytes: __m512i, byte: u8) -> u64 {
    avx512!(simd, _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(byte.cast_signed())))
}

/// The bytes that are among the `count` values from `first` on.
#[inline(always)]
fn among<E>(simd: Avx512<E>, bytes: __m512i, first: u8, count: u8) -> u64 {
    let above = avx512!(simd, _mm512_sub_epi8(bytes, _mm512_set1_epi8(first.cast_signed())));
    avx512!(simd, _mm512_cmplt_epu8_mask(above, _mm512_set1_epi8(count.cast_signed())))
}
