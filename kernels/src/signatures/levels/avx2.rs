//! Lanes on the 256-bit registers of AVX2, four lanes in a register.

#![expect(unsafe_code, reason = "intrinsics of an instruction set that is detected at run time")]

use std::arch::x86_64::{
    _mm256_add_epi8, _mm256_castsi256_pd, _mm256_cmpgt_epi64, _mm256_movemask_pd,
    _mm256_set1_epi64x, _mm256_setzero_si256, _mm256_xor_si256,
};

use super::{DistanceTest, GROUP};
use crate::simd::{Avx2, avx2};

/// Lanes of a register.
const LANES: usize = 4;

impl DistanceTest for Avx2 {
    #[inline(always)]
    fn fewer<const WORDS: usize>(
        self,
        signature: [u64; WORDS],
        lanes: [&[u64; GROUP]; WORDS],
        bounds: &[u64; GROUP],
    ) -> u32 {
        let (halves, _) = bounds.as_chunks::<LANES>();
        let mut fewer = 0;
        for half in 0..GROUP / LANES {
            // Bytes are added up once, after all words: a byte of eight words counts at most 64.
            let mut bytes = avx2!(self, _mm256_setzero_si256());
            for word in 0..WORDS {
                let (words, _) = lanes[word].as_chunks::<LANES>();
                let own = avx2!(self, _mm256_set1_epi64x(signature[word].cast_signed()));
                let difference = avx2!(self, _mm256_xor_si256(self.load_u64(&words[half]), own));
                let counts = self.count_bits_of_bytes(difference);
                bytes = avx2!(self, _mm256_add_epi8(bytes, counts));
            }
            let distances = self.add_bytes(bytes);
            let bounds = self.load_u64(&halves[half]);
            let is_less = avx2!(self, _mm256_cmpgt_epi64(bounds, distances));
            let is_less = avx2!(self, _mm256_castsi256_pd(is_less));
            let bits = avx2!(self, _mm256_movemask_pd(is_less)).cast_unsigned();
            fewer |= bits << (LANES * half);
        }
        fewer
    }
}
