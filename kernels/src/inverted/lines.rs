//! Lines of bitmaps: 512 bits, as a trait of levels.

#![cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "instructions that are detected at run time")
)]

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{
    __m512i, _mm512_add_epi64, _mm512_and_si512, _mm512_maskz_expand_epi64,
    _mm512_reduce_add_epi64, _mm512_test_epi8_mask,
};

#[cfg(target_arch = "x86_64")]
use crate::simd::{Avx2, Avx512, Extension, avx512};
use crate::simd::{Portable, Scalar};

/// Words of a line.
pub(super) const LINE: usize = 16;

/// A level that works on lines.
pub(super) trait Lines: Copy {
    /// A line in registers.
    type Line: Copy;

    /// Loads a line.
    fn line(self, words: &[u32; LINE]) -> Self::Line;

    /// The words of a line.
    fn words(self, line: Self::Line) -> [u32; LINE];

    /// The bits of both lines.
    fn and(self, left: Self::Line, right: Self::Line) -> Self::Line;

    /// Bit `i`: whether byte `i` of a line is not zero, the lowest byte of the first word first.
    fn bytes(self, line: Self::Line) -> u64;

    /// A line of eight pairs of words: the next pair of `packed` where the bit of `present` is set,
    /// zeros elsewhere.
    fn expand(self, packed: &[u32; LINE], present: u8) -> Self::Line;

    /// Adds the number of bits of a line to sums.
    fn add_bits(self, sums: Self::Line, line: Self::Line) -> Self::Line;

    /// The total of sums.
    fn total(self, sums: Self::Line) -> u32;
}

/// Lines as arrays, of which the compiler makes registers of the level.
macro_rules! arrays {
    ($level:ty) => {
        impl Lines for $level {
            type Line = [u32; LINE];

            #[inline(always)]
            fn line(self, words: &[u32; LINE]) -> [u32; LINE] {
                *words
            }

            #[inline(always)]
            fn words(self, line: [u32; LINE]) -> [u32; LINE] {
                line
            }

            #[inline(always)]
            fn and(self, mut left: [u32; LINE], right: [u32; LINE]) -> [u32; LINE] {
                left.iter_mut().zip(right).for_each(|(left, right)| *left &= right);
                left
            }

            #[inline(always)]
            fn bytes(self, line: [u32; LINE]) -> u64 {
                let mut bytes = 0;
                for (at, word) in line.into_iter().enumerate() {
                    for (byte, value) in word.to_le_bytes().into_iter().enumerate() {
                        bytes |= u64::from(value != 0) << (4 * at + byte);
                    }
                }
                bytes
            }

            #[inline(always)]
            fn expand(self, packed: &[u32; LINE], present: u8) -> [u32; LINE] {
                let (mut line, mut next) = ([0; LINE], 0);
                for (bit, pair) in line.as_chunks_mut::<2>().0.iter_mut().enumerate() {
                    let is_present = u32::from(present >> bit & 1);
                    // The remainder changes nothing, and tells the compiler that it is in range.
                    let source = [packed[next % LINE], packed[(next + 1) % LINE]];
                    *pair = source.map(|word| word & is_present.wrapping_neg());
                    next += 2 * is_present as usize;
                }
                line
            }

            #[inline(always)]
            fn add_bits(self, mut sums: [u32; LINE], line: [u32; LINE]) -> [u32; LINE] {
                sums.iter_mut().zip(line).for_each(|(sum, word)| *sum += word.count_ones());
                sums
            }

            #[inline(always)]
            fn total(self, sums: [u32; LINE]) -> u32 {
                sums.iter().sum()
            }
        }
    };
}

arrays!(Scalar);
arrays!(Portable);
#[cfg(target_arch = "x86_64")]
arrays!(Avx2);

#[cfg(target_arch = "x86_64")]
impl<E: Extension> Lines for Avx512<E> {
    type Line = __m512i;

    #[inline(always)]
    fn line(self, words: &[u32; LINE]) -> __m512i {
        self.load_u32(words)
    }

    #[inline(always)]
    fn words(self, line: __m512i) -> [u32; LINE] {
        let mut words = [0; LINE];
        self.store_u32(line, &mut words);
        words
    }

    #[inline(always)]
    fn and(self, left: __m512i, right: __m512i) -> __m512i {
        avx512!(self, _mm512_and_si512(left, right))
    }

    #[inline(always)]
    fn bytes(self, line: __m512i) -> u64 {
        avx512!(self, _mm512_test_epi8_mask(line, line))
    }

    #[inline(always)]
    fn expand(self, packed: &[u32; LINE], present: u8) -> __m512i {
        avx512!(self, _mm512_maskz_expand_epi64(present, self.load_u32(packed)))
    }

    #[inline(always)]
    fn add_bits(self, sums: __m512i, line: __m512i) -> __m512i {
        let bits = self.count_bits(line);
        avx512!(self, _mm512_add_epi64(sums, bits))
    }

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "a segment has less than 2^32 documents")]
    fn total(self, sums: __m512i) -> u32 {
        avx512!(self, _mm512_reduce_add_epi64(sums)).cast_unsigned() as u32
    }
}
