//! A row of 512 bits, one for each column, as a trait that each level implements.

use crate::simd::{Portable, Scalar};

/// Columns of a block.
pub const COLUMNS: usize = 512;

/// The bits of one transaction, or one binary digit of the counts of all columns: column `c` is
/// bit `c % 64` of word `c / 64`. Fills a cache line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(align(64))]
pub(in crate::supports) struct BitRow(pub(in crate::supports) [u64; COLUMNS / 64]);

/// A level with registers for the bits of all columns.
pub(super) trait BitLanes: Copy {
    /// A row of bits in registers.
    type Bits: Copy;

    /// A row without bits.
    fn zero(self) -> Self::Bits;
    /// The bits of a row.
    fn load(self, row: &BitRow) -> Self::Bits;
    /// Writes the bits to a row.
    fn store(self, bits: Self::Bits, row: &mut BitRow);
    /// Adds three bits of each column; returns the carries and the sums.
    fn add3(self, a: Self::Bits, b: Self::Bits, c: Self::Bits) -> (Self::Bits, Self::Bits);
    /// The bits of both rows.
    fn and(self, a: Self::Bits, b: Self::Bits) -> Self::Bits;
    /// The bits of either row, but not of both.
    fn xor(self, a: Self::Bits, b: Self::Bits) -> Self::Bits;
    /// Whether no bit is set.
    fn is_zero(self, bits: Self::Bits) -> bool;
}

/// Implements the trait word by word, for the levels without registers for a row.
macro_rules! words {
    ($level:ty) => {
        impl BitLanes for $level {
            type Bits = [u64; COLUMNS / 64];

            #[inline(always)]
            fn zero(self) -> Self::Bits {
                [0; COLUMNS / 64]
            }

            #[inline(always)]
            fn load(self, row: &BitRow) -> Self::Bits {
                row.0
            }

            #[inline(always)]
            fn store(self, bits: Self::Bits, row: &mut BitRow) {
                row.0 = bits;
            }

            #[inline(always)]
            fn add3(self, a: Self::Bits, b: Self::Bits, c: Self::Bits) -> (Self::Bits, Self::Bits) {
                let (mut carry, mut sum) = (self.zero(), self.zero());
                for word in 0..COLUMNS / 64 {
                    let either = a[word] ^ b[word];
                    carry[word] = a[word] & b[word] | either & c[word];
                    sum[word] = either ^ c[word];
                }
                (carry, sum)
            }

            #[inline(always)]
            fn and(self, mut a: Self::Bits, b: Self::Bits) -> Self::Bits {
                a.iter_mut().zip(b).for_each(|(a, b)| *a &= b);
                a
            }

            #[inline(always)]
            fn xor(self, mut a: Self::Bits, b: Self::Bits) -> Self::Bits {
                a.iter_mut().zip(b).for_each(|(a, b)| *a ^= b);
                a
            }

            #[inline(always)]
            fn is_zero(self, bits: Self::Bits) -> bool {
                bits.iter().fold(0, |all, word| all | word) == 0
            }
        }
    };
}

words!(Scalar);
words!(Portable);

#[cfg(target_arch = "x86_64")]
mod x86 {
    #![expect(unsafe_code, reason = "intrinsics of instruction sets that are detected at run time")]

    use std::arch::x86_64::{
        __m256i, __m512i, _mm256_and_si256, _mm256_or_si256, _mm256_setzero_si256,
        _mm256_storeu_si256, _mm256_testz_si256, _mm256_xor_si256, _mm512_and_si512,
        _mm512_setzero_si512, _mm512_ternarylogic_epi64, _mm512_test_epi64_mask, _mm512_xor_si512,
    };

    use super::{BitLanes, BitRow};
    use crate::simd::{Avx2, Avx512, Extension, avx2, avx512};

    /// The truth tables of majority and of exclusive or.
    const MAJORITY: i32 = 0xe8;
    const ODD: i32 = 0x96;

    impl<E: Extension> BitLanes for Avx512<E> {
        type Bits = __m512i;

        #[inline(always)]
        fn zero(self) -> __m512i {
            avx512!(self, _mm512_setzero_si512())
        }

        #[inline(always)]
        fn load(self, row: &BitRow) -> __m512i {
            self.load_u64(&row.0)
        }

        #[inline(always)]
        fn store(self, bits: __m512i, row: &mut BitRow) {
            self.store_u64(bits, &mut row.0);
        }

        #[inline(always)]
        fn add3(self, a: __m512i, b: __m512i, c: __m512i) -> (__m512i, __m512i) {
            let carry = avx512!(self, _mm512_ternarylogic_epi64::<MAJORITY>(a, b, c));
            (carry, avx512!(self, _mm512_ternarylogic_epi64::<ODD>(a, b, c)))
        }

        #[inline(always)]
        fn and(self, a: __m512i, b: __m512i) -> __m512i {
            avx512!(self, _mm512_and_si512(a, b))
        }

        #[inline(always)]
        fn xor(self, a: __m512i, b: __m512i) -> __m512i {
            avx512!(self, _mm512_xor_si512(a, b))
        }

        #[inline(always)]
        fn is_zero(self, bits: __m512i) -> bool {
            avx512!(self, _mm512_test_epi64_mask(bits, bits)) == 0
        }
    }

    impl BitLanes for Avx2 {
        type Bits = [__m256i; 2];

        #[inline(always)]
        fn zero(self) -> Self::Bits {
            [avx2!(self, _mm256_setzero_si256()); 2]
        }

        #[inline(always)]
        fn load(self, row: &BitRow) -> Self::Bits {
            let (halves, _) = row.0.as_chunks();
            [self.load_u64(&halves[0]), self.load_u64(&halves[1])]
        }

        #[inline(always)]
        fn store(self, bits: Self::Bits, row: &mut BitRow) {
            let (halves, _) = row.0.as_chunks_mut::<4>();
            for (half, bits) in halves.iter_mut().zip(bits) {
                // SAFETY: the array is 32 writable bytes, and the store needs no alignment;
                // features as in `avx2!`.
                unsafe { _mm256_storeu_si256(std::ptr::from_mut(half).cast(), bits) };
            }
        }

        #[inline(always)]
        fn add3(self, a: Self::Bits, b: Self::Bits, c: Self::Bits) -> (Self::Bits, Self::Bits) {
            let either = self.xor(a, b);
            let (both, third) = (self.and(a, b), self.and(either, c));
            // No column has a bit in both carries, so exclusive or acts as or.
            (self.xor(both, third), self.xor(either, c))
        }

        #[inline(always)]
        fn and(self, a: Self::Bits, b: Self::Bits) -> Self::Bits {
            [avx2!(self, _mm256_and_si256(a[0], b[0])), avx2!(self, _mm256_and_si256(a[1], b[1]))]
        }

        #[inline(always)]
        fn xor(self, a: Self::Bits, b: Self::Bits) -> Self::Bits {
            [avx2!(self, _mm256_xor_si256(a[0], b[0])), avx2!(self, _mm256_xor_si256(a[1], b[1]))]
        }

        #[inline(always)]
        fn is_zero(self, [low, high]: Self::Bits) -> bool {
            let either = avx2!(self, _mm256_or_si256(low, high));
            avx2!(self, _mm256_testz_si256(either, either)) == 1
        }
    }
}
