//! Blocks on the 256-bit registers of AVX2.

#![expect(unsafe_code, reason = "intrinsics of an instruction set that is detected at run time")]

use std::arch::x86_64::{
    __m256i, _mm_loadu_si128, _mm_storeu_si128, _mm256_add_epi8, _mm256_and_si256,
    _mm256_castsi256_si128, _mm256_cmpeq_epi8, _mm256_cvtepu32_epi64, _mm256_loadu_si256,
    _mm256_madd_epi16, _mm256_maddubs_epi16, _mm256_min_epu8, _mm256_movemask_epi8,
    _mm256_or_si256, _mm256_packus_epi32, _mm256_permute4x64_epi64, _mm256_set_epi64x,
    _mm256_set1_epi8, _mm256_set1_epi16, _mm256_set1_epi32, _mm256_set1_epi64x, _mm256_slli_epi64,
    _mm256_sllv_epi64, _mm256_storeu_si256, _mm256_sub_epi8, _mm256_sub_epi64,
};

use super::integers::{ConvertIntegers, GROUP, LineKinds};
use super::places::MatchBlock;
use super::{Block, ByteKinds, ClassifyBlock, HEXAGRAM, IDEOGRAPH, IDEOGRAPHS, ideographs};
use crate::simd::{Avx2, avx2};

/// Bytes of a register.
const LANES: usize = 32;

impl ClassifyBlock for Avx2 {
    #[inline(always)]
    fn classify(self, block: &Block, lower: &mut Block) -> ByteKinds {
        let mut kinds = ByteKinds::default();
        let (mut below_5000, mut hexagrams) = (0, 0);
        let (halves, _) = block.as_chunks::<LANES>();
        let (lower, _) = lower.as_chunks_mut::<LANES>();
        for (place, (half, lower)) in halves.iter().zip(lower).enumerate() {
            let at = LANES * place;
            // SAFETY: the array is 32 readable bytes, and the load needs no alignment; features
            // as in `avx2!`.
            let bytes = unsafe { _mm256_loadu_si256(std::ptr::from_ref(half).cast()) };
            let small = avx2!(self, _mm256_set1_epi8(0x20));
            // This bit turns capitals into small letters, and no other byte into a small letter.
            let letters = among(self, avx2!(self, _mm256_or_si256(bytes, small)), b'a', 26);
            let lowered = avx2!(self, _mm256_or_si256(bytes, _mm256_and_si256(letters, small)));
            // SAFETY: the array is 32 writable bytes, and the store needs no alignment; features
            // as in `avx2!`.
            unsafe { _mm256_storeu_si256(std::ptr::from_mut(lower).cast(), lowered) };
            let marks = either(self, is(self, bytes, b'.'), is(self, bytes, b'\''));
            let lists = either(self, is(self, bytes, b','), is(self, bytes, b';'));
            kinds.letters |= bits(self, letters) << at;
            kinds.digits |= bits(self, among(self, bytes, b'0', 10)) << at;
            kinds.underscores |= bits(self, is(self, bytes, b'_')) << at;
            kinds.join_letters |= bits(self, either(self, marks, is(self, bytes, b':'))) << at;
            kinds.join_digits |= bits(self, either(self, marks, lists)) << at;
            kinds.wide |= bits(self, bytes) << at;
            kinds.ideographs |= bits(self, among(self, bytes, IDEOGRAPH, IDEOGRAPHS)) << at;
            below_5000 |= bits(self, is(self, bytes, IDEOGRAPH)) << at;
            hexagrams |= bits(self, is(self, bytes, HEXAGRAM)) << at;
            // The sum moves the second-highest bit of each byte to the highest place.
            kinds.leads |= bits(self, avx2!(self, _mm256_add_epi8(bytes, bytes))) << at;
        }
        kinds.leads &= kinds.wide;
        kinds.ideographs = ideographs(kinds.ideographs, below_5000, hexagrams);
        kinds
    }
}

impl MatchBlock for Avx2 {
    #[inline(always)]
    fn matches(self, block: &Block, byte: u8) -> u64 {
        let (halves, _) = block.as_chunks::<LANES>();
        let of = |half: &[u8; LANES]| {
            // SAFETY: as in `classify`.
            let bytes = unsafe { _mm256_loadu_si256(std::ptr::from_ref(half).cast()) };
            bits(self, is(self, bytes, byte))
        };
        of(&halves[0]) | of(&halves[1]) << LANES
    }
}

impl ConvertIntegers for Avx2 {
    #[inline(always)]
    fn line_kinds(self, block: &Block) -> LineKinds {
        let mut kinds = LineKinds { digits: 0, newlines: 0, returns: 0, blanks: 0 };
        let (halves, _) = block.as_chunks::<LANES>();
        for (place, half) in halves.iter().enumerate() {
            let at = LANES * place;
            // SAFETY: as in `classify`.
            let bytes = unsafe { _mm256_loadu_si256(std::ptr::from_ref(half).cast()) };
            let blanks = either(self, is(self, bytes, b' '), is(self, bytes, b'\t'));
            kinds.digits |= bits(self, among(self, bytes, b'0', 10)) << at;
            kinds.newlines |= bits(self, is(self, bytes, b'\n')) << at;
            kinds.returns |= bits(self, is(self, bytes, b'\r')) << at;
            kinds.blanks |= bits(self, blanks) << at;
        }
        kinds
    }

    #[inline(always)]
    fn convert(self, words: [u64; GROUP], digits: &[u32; GROUP]) -> [u32; GROUP] {
        let [a, b, c, d] = words.map(u64::cast_signed);
        let words = avx2!(self, _mm256_set_epi64x(d, c, b, a));
        // SAFETY: the array is 16 readable bytes, and the load needs no alignment; features as in
        // `avx2!`.
        let digits = unsafe { _mm_loadu_si128(std::ptr::from_ref(digits).cast()) };
        let bits = avx2!(self, _mm256_slli_epi64::<3>(_mm256_cvtepu32_epi64(digits)));
        // The shift drops the bytes that follow an integer.
        let moved = avx2!(self, {
            _mm256_sllv_epi64(words, _mm256_sub_epi64(_mm256_set1_epi64x(64), bits))
        });
        // A digit is the low half of its byte, and so is an empty byte, which is zero.
        let ones = avx2!(self, _mm256_and_si256(moved, _mm256_set1_epi8(0xf)));
        let pairs = avx2!(self, _mm256_maddubs_epi16(ones, _mm256_set1_epi16(1 << 8 | 10)));
        let fours = avx2!(self, _mm256_madd_epi16(pairs, _mm256_set1_epi32(1 << 16 | 100)));
        let fours = avx2!(self, _mm256_packus_epi32(fours, fours));
        let values = avx2!(self, _mm256_madd_epi16(fours, _mm256_set1_epi32(1 << 16 | 10_000)));
        // The first two values of each half.
        let values = avx2!(self, _mm256_permute4x64_epi64::<0b10_00>(values));
        let values = avx2!(self, _mm256_castsi256_si128(values));
        let mut integers = [0; GROUP];
        // SAFETY: the array is 16 writable bytes, and the store needs no alignment; features as in
        // `avx2!`.
        unsafe { _mm_storeu_si128(std::ptr::from_mut(&mut integers).cast(), values) };
        integers
    }
}

/// The highest bits of all bytes.
#[inline(always)]
fn bits(simd: Avx2, bytes: __m256i) -> u64 {
    avx2!(simd, _mm256_movemask_epi8(bytes)).cast_unsigned().into()
}

/// The bytes that are `byte`.
#[inline(always)]
fn is(simd: Avx2, bytes: __m256i, byte: u8) -> __m256i {
    avx2!(simd, _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(byte.cast_signed())))
}

#[inline(always)]
fn either(simd: Avx2, left: __m256i, right: __m256i) -> __m256i {
    avx2!(simd, _mm256_or_si256(left, right))
}

/// The bytes that are among the `count` values from `first` on.
#[inline(always)]
fn among(simd: Avx2, bytes: __m256i, first: u8, count: u8) -> __m256i {
    let last = avx2!(simd, _mm256_set1_epi8((count - 1).cast_signed()));
    let above = avx2!(simd, _mm256_sub_epi8(bytes, _mm256_set1_epi8(first.cast_signed())));
    avx2!(simd, _mm256_cmpeq_epi8(_mm256_min_epu8(above, last), above))
}
