//! Lines of bitmaps: 512 bits, as a trait of levels.

#![cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "instructions that are detected at run time")
)]

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{
    __m256i, __m512i, _mm256_add_epi8, _mm256_add_epi64, _mm256_and_si256, _mm256_cmpeq_epi8,
    _mm256_cmpeq_epi64, _mm256_movemask_epi8, _mm256_permutevar8x32_epi32, _mm256_set1_epi64x,
    _mm256_setr_epi64x, _mm256_setzero_si256, _mm512_add_epi64, _mm512_and_si512,
    _mm512_maskz_expand_epi64, _mm512_reduce_add_epi64, _mm512_test_epi8_mask,
};

#[cfg(target_arch = "x86_64")]
use crate::simd::{Avx2, Avx512, Extension, avx2, avx512};
use crate::simd::{Portable, Scalar};

/// Words of a line.
pub(in crate::inverted) const LINE: usize = 16;

/// A level that works on lines.
pub(in crate::inverted) trait Lines: Copy {
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

/// Implements lines as arrays; the compiler turns arrays into registers if the level has any.
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
                    // The remainder changes nothing, and tells the compiler that the index is in
                    // range.
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

/// For each subset of four pairs that is present: the words that go to the places of the pairs.
#[cfg(target_arch = "x86_64")]
static EXPANDED: [[u32; LINE / 2]; 16] = expanded();

#[cfg(target_arch = "x86_64")]
const fn expanded() -> [[u32; LINE / 2]; 16] {
    let mut table = [[0; LINE / 2]; 16];
    let mut present = 0;
    while present < table.len() {
        let (mut pair, mut next) = (0, 0);
        while pair < LINE / 4 {
            if present >> pair & 1 == 1 {
                table[present][2 * pair] = next;
                table[present][2 * pair + 1] = next + 1;
                next += 2;
            }
            pair += 1;
        }
        present += 1;
    }
    table
}

#[cfg(target_arch = "x86_64")]
impl Avx2 {
    /// Half a line, as [`Lines::expand`] makes a whole one of `packed`.
    #[inline(always)]
    fn expand_half(self, packed: &[u32; LINE / 2], present: u8) -> __m256i {
        let places = self.load_u32(&EXPANDED[usize::from(present & 0xf)]);
        let words = avx2!(self, _mm256_permutevar8x32_epi32(self.load_u32(packed), places));
        let pairs = avx2!(self, _mm256_setr_epi64x(1, 2, 4, 8));
        let is_present = avx2!(self, {
            let present = _mm256_set1_epi64x(i64::from(present));
            _mm256_cmpeq_epi64(_mm256_and_si256(present, pairs), pairs)
        });
        avx2!(self, _mm256_and_si256(words, is_present))
    }
}

#[cfg(target_arch = "x86_64")]
impl Lines for Avx2 {
    type Line = [__m256i; 2];

    #[inline(always)]
    fn line(self, words: &[u32; LINE]) -> [__m256i; 2] {
        let (halves, _) = words.as_chunks();
        [self.load_u32(&halves[0]), self.load_u32(&halves[1])]
    }

    #[inline(always)]
    fn words(self, line: [__m256i; 2]) -> [u32; LINE] {
        let mut words = [0; LINE];
        let (halves, _) = words.as_chunks_mut();
        self.store_u32(line[0], &mut halves[0]);
        self.store_u32(line[1], &mut halves[1]);
        words
    }

    #[inline(always)]
    fn and(self, [low, high]: [__m256i; 2], right: [__m256i; 2]) -> [__m256i; 2] {
        avx2!(self, [_mm256_and_si256(low, right[0]), _mm256_and_si256(high, right[1])])
    }

    #[inline(always)]
    fn bytes(self, [low, high]: [__m256i; 2]) -> u64 {
        let zero = avx2!(self, _mm256_setzero_si256());
        let low = avx2!(self, _mm256_movemask_epi8(_mm256_cmpeq_epi8(low, zero)));
        let high = avx2!(self, _mm256_movemask_epi8(_mm256_cmpeq_epi8(high, zero)));
        !(u64::from(low.cast_unsigned()) | u64::from(high.cast_unsigned()) << 32)
    }

    #[inline(always)]
    fn expand(self, packed: &[u32; LINE], present: u8) -> [__m256i; 2] {
        let (low, _) = packed.as_chunks::<{ LINE / 2 }>();
        let before = 2 * (present & 0xf).count_ones() as usize;
        let high = packed[before..].first_chunk().expect("at most half a line is before");
        [self.expand_half(&low[0], present), self.expand_half(high, present >> 4)]
    }

    #[inline(always)]
    fn add_bits(self, [low, high]: [__m256i; 2], line: [__m256i; 2]) -> [__m256i; 2] {
        let (bits, more) = (self.count_bits_of_bytes(line[0]), self.count_bits_of_bytes(line[1]));
        // A byte of both halves has at most 16 bits.
        let bits = self.add_bytes(avx2!(self, _mm256_add_epi8(bits, more)));
        [avx2!(self, _mm256_add_epi64(low, bits)), high]
    }

    #[inline(always)]
    fn total(self, sums: [__m256i; 2]) -> u32 {
        // Sums are below 2^32: the upper words are zeros.
        self.words(sums).iter().sum()
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Isa;
    use crate::simd::{Popcount, RunOn, dispatch};

    /// All operations of a level on two lines.
    struct Both<'a>(&'a [u32; LINE], &'a [u32; LINE], u8);

    type Answer = ([u32; LINE], [u32; LINE], u64, u32);

    impl<L: Lines> RunOn<L, Answer> for Both<'_> {
        #[inline(always)]
        fn run_on(self, level: L) -> Answer {
            let Self(left, right, present) = self;
            let both = level.and(level.line(left), level.line(right));
            let mut sums = level.line(&[0; LINE]);
            for line in [left, right] {
                sums = level.add_bits(sums, level.line(line));
            }
            let expanded = level.words(level.expand(left, present));
            (level.words(both), expanded, level.bytes(both), level.total(sums))
        }
    }

    #[test]
    fn all_levels_agree_with_plain_loops() {
        let mut state = 1_u64;
        let mut word = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let bytes = u32::try_from(state >> 32).unwrap();
            // Half of the bytes are zeros.
            bytes & [0xff00_00ff, 0x00ff_ff00, 0, u32::MAX][(state >> 20 & 3) as usize]
        };
        for present in 0..=u8::MAX {
            let (left, right) = ([0; LINE].map(|_: u32| word()), [0; LINE].map(|_: u32| word()));
            let both: Vec<u32> = left.iter().zip(right).map(|(left, right)| left & right).collect();
            let mut packed = left.chunks(2);
            let expanded: Vec<u32> = (0..8)
                .flat_map(|pair| match present >> pair & 1 {
                    1 => packed.next().unwrap(),
                    _ => &[0, 0],
                })
                .copied()
                .collect();
            let bytes = both.iter().flat_map(|word| word.to_le_bytes());
            let bytes = bytes.zip(0..).fold(0, |all, (byte, at)| all | u64::from(byte != 0) << at);
            let total: u32 = left.iter().chain(&right).map(|word| word.count_ones()).sum();
            for isa in Isa::available() {
                let found = dispatch::<Popcount, _>(isa, Both(&left, &right, present));
                assert_eq!(
                    found,
                    (both[..].try_into().unwrap(), expanded[..].try_into().unwrap(), bytes, total),
                    "{isa}"
                );
            }
        }
    }
}
