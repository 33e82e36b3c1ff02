//! Blocks in the 256-bit registers of AVX2, two registers for each block.

#![expect(unsafe_code, reason = "intrinsics of an instruction set that is detected at run time")]

use std::arch::x86_64::{
    __m256i, _mm256_add_epi64, _mm256_and_si256, _mm256_andnot_si256, _mm256_cmpeq_epi8,
    _mm256_extract_epi64, _mm256_load_si256, _mm256_or_si256, _mm256_set1_epi8,
    _mm256_setzero_si256, _mm256_sub_epi8, _mm256_xor_si256,
};

use super::{Compared, Slots};
use crate::batmap::map::Block;
use crate::simd::{Avx2, avx2};

/// Registers of a block.
const REGISTERS: usize = 2;

impl Avx2 {
    #[inline(always)]
    fn xor(self, left: __m256i, right: __m256i) -> __m256i {
        avx2!(self, _mm256_xor_si256(left, right))
    }

    #[inline(always)]
    fn or(self, left: __m256i, right: __m256i) -> __m256i {
        avx2!(self, _mm256_or_si256(left, right))
    }
}

impl Slots for Avx2 {
    type Bytes = [__m256i; REGISTERS];

    #[inline(always)]
    fn splat(self, byte: u8) -> Self::Bytes {
        [avx2!(self, _mm256_set1_epi8(byte.cast_signed())); REGISTERS]
    }

    #[inline(always)]
    fn load(self, block: &Block) -> Self::Bytes {
        let (halves, _) = block.0.as_chunks::<32>();
        std::array::from_fn(
            #[inline(always)]
            |index| {
                // SAFETY: the half block is 32 readable bytes, aligned as the block is; features
                // as in `avx2!`.
                unsafe { _mm256_load_si256(std::ptr::from_ref(&halves[index]).cast()) }
            },
        )
    }

    #[inline(always)]
    fn count_pair(
        self,
        counts: Self::Bytes,
        [left, right]: [Self::Bytes; 2],
        compared: Compared<Self::Bytes>,
    ) -> Self::Bytes {
        std::array::from_fn(
            #[inline(always)]
            |index| {
                let (left, right) = (left[index], right[index]);
                // A flag must be in one slot at least: where one slot lacks the flag, the slots
                // must differ.
                let differences = self.xor(left, right);
                let differences = avx2!(self, _mm256_and_si256(differences, compared.all[index]));
                let both = avx2!(self, _mm256_and_si256(left, right));
                let expected = avx2!(self, _mm256_andnot_si256(both, compared.flags[index]));
                // All bits of a byte are the number -1.
                let is_common = avx2!(self, _mm256_cmpeq_epi8(differences, expected));
                avx2!(self, _mm256_sub_epi8(counts[index], is_common))
            },
        )
    }

    #[inline(always)]
    fn count_triple<const IS_LAST: bool>(
        self,
        counts: Self::Bytes,
        [first, second, third]: [Self::Bytes; 3],
        compared: Compared<Self::Bytes>,
    ) -> Self::Bytes {
        std::array::from_fn(
            #[inline(always)]
            |index| {
                let [first, second, third] = [first[index], second[index], third[index]];
                let differences = self.or(self.xor(first, second), self.xor(first, third));
                let differences = avx2!(self, _mm256_and_si256(differences, compared.codes[index]));
                let flags = if IS_LAST {
                    self.xor(self.xor(first, second), third)
                } else {
                    self.or(self.or(first, second), third)
                };
                let lacking = avx2!(self, _mm256_andnot_si256(flags, compared.flags[index]));
                let zero = avx2!(self, _mm256_setzero_si256());
                let is_common = avx2!(self, _mm256_cmpeq_epi8(self.or(differences, lacking), zero));
                avx2!(self, _mm256_sub_epi8(counts[index], is_common))
            },
        )
    }

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "64 bytes")]
    fn sum(self, [low, high]: Self::Bytes) -> u32 {
        let sums = avx2!(self, _mm256_add_epi64(self.add_bytes(low), self.add_bytes(high)));
        let lanes = [
            avx2!(self, _mm256_extract_epi64::<0>(sums)),
            avx2!(self, _mm256_extract_epi64::<1>(sums)),
            avx2!(self, _mm256_extract_epi64::<2>(sums)),
            avx2!(self, _mm256_extract_epi64::<3>(sums)),
        ];
        lanes.iter().sum::<i64>() as u32
    }
}
