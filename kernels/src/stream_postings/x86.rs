//! Blocks on the levels of x86-64: the 512-bit registers of AVX-512 with the population count that
//! most of these processors have, and otherwise the code of the reference.

#![expect(unsafe_code, reason = "intrinsics of an instruction set that is detected at run time")]

use std::arch::x86_64::{
    __m512i, _mm512_and_si512, _mm512_cmple_epu64_mask, _mm512_loadu_si512,
    _mm512_mask_cmple_epu64_mask, _mm512_permutex2var_epi64, _mm512_set_epi64, _mm512_set1_epi64,
    _mm512_srli_epi64, _mm512_sub_epi64, _mm512_xor_si512,
};

use super::block::{BLOCK, PostingTest};
use super::postings::{LookUp, Posting};
use crate::simd::{Avx2, Avx512, Popcount, avx512};

/// A posting is two words: set, size and position; and the signature.
const _: () = assert!(size_of::<Posting>() == 16 && size_of::<[Posting; BLOCK / 2]>() == 64);

impl PostingTest for Avx2 {}
impl PostingTest for Avx512 {}

impl PostingTest for Avx512<Popcount> {
    #[inline(always)]
    fn passed(self, block: &[Posting; BLOCK], look_up: &LookUp) -> u32 {
        let (low, high) = block.split_at(BLOCK / 2);
        let [low, high] =
            [low, high].map(|half| load(self, half.first_chunk().expect("half a block")));
        // Two registers of postings become one of their first words and one of their signatures.
        let even = avx512!(self, _mm512_set_epi64(14, 12, 10, 8, 6, 4, 2, 0));
        let odd = avx512!(self, _mm512_set_epi64(15, 13, 11, 9, 7, 5, 3, 1));
        let places = avx512!(self, _mm512_permutex2var_epi64(low, even, high));
        let signatures = avx512!(self, _mm512_permutex2var_epi64(low, odd, high));
        let splat = |number: u64| avx512!(self, _mm512_set1_epi64(number.cast_signed()));
        let difference = avx512!(self, _mm512_xor_si512(signatures, splat(look_up.signature)));
        let distances = self.count_bits(difference);
        let distance_max = splat(look_up.distance_max.into());
        let near = avx512!(self, _mm512_cmple_epu64_mask(distances, distance_max));
        let sizes = avx512!(self, _mm512_srli_epi64::<32>(places));
        let sizes = avx512!(self, _mm512_and_si512(sizes, splat(0xffff)));
        // One comparison for both bounds: sizes below the minimum wrap to great numbers.
        let above = avx512!(self, _mm512_sub_epi64(sizes, splat(look_up.size_min.into())));
        let above_max = splat((look_up.size_max - look_up.size_min).into());
        avx512!(self, _mm512_mask_cmple_epu64_mask(near, above, above_max)).into()
    }
}

#[inline(always)]
fn load(_: Avx512<Popcount>, postings: &[Posting; BLOCK / 2]) -> __m512i {
    // SAFETY: the array is 64 readable bytes, as asserted above, and the load needs no alignment;
    // features as in `avx512!`.
    unsafe { _mm512_loadu_si512(std::ptr::from_ref(postings).cast()) }
}
