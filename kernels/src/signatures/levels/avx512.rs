//! Lanes on the 512-bit registers of AVX-512, eight lanes in a register.

#![expect(unsafe_code, reason = "intrinsics of an instruction set that is detected at run time")]

use std::arch::x86_64::{
    _mm512_add_epi64, _mm512_cmplt_epu64_mask, _mm512_set1_epi64, _mm512_setzero_si512,
    _mm512_xor_si512,
};

use super::{DistanceTest, GROUP};
use crate::simd::{Avx512, Extension, avx512};

impl<E: Extension> DistanceTest for Avx512<E> {
    #[inline(always)]
    fn fewer<const WORDS: usize>(
        self,
        signature: [u64; WORDS],
        lanes: [&[u64; GROUP]; WORDS],
        bounds: &[u64; GROUP],
    ) -> u32 {
        let mut distances = avx512!(self, _mm512_setzero_si512());
        for word in 0..WORDS {
            let own = avx512!(self, _mm512_set1_epi64(signature[word].cast_signed()));
            let difference = avx512!(self, _mm512_xor_si512(self.load_u64(lanes[word]), own));
            distances = avx512!(self, _mm512_add_epi64(distances, self.count_bits(difference)));
        }
        u32::from(avx512!(self, _mm512_cmplt_epu64_mask(distances, self.load_u64(bounds))))
    }
}
