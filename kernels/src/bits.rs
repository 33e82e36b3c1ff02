//! How many bits of a vector are set, where the processor has no instruction for it: the bits of
//! each half byte are looked up (Muła, Kurz, Lemire, *Faster Population Counts Using AVX2
//! Instructions*, The Computer Journal 61(1), 2018, §3).

use std::arch::x86_64::{
    __m256i, __m512i, _mm256_add_epi8, _mm256_and_si256, _mm256_set1_epi8, _mm256_setr_epi8,
    _mm256_shuffle_epi8, _mm256_srli_epi16, _mm512_add_epi8, _mm512_and_si512, _mm512_sad_epu8,
    _mm512_set1_epi8, _mm512_set4_epi32, _mm512_setzero_si512, _mm512_shuffle_epi8,
    _mm512_srli_epi16,
};

/// Whether the processor counts the bits of 512-bit registers itself.
pub(crate) fn has_popcount() -> bool {
    is_x86_feature_detected!("avx512vpopcntdq")
}

/// How many bits each byte has set.
#[target_feature(enable = "avx2")]
#[inline]
pub(crate) fn of_bytes(words: __m256i) -> __m256i {
    let of_half = _mm256_setr_epi8(
        0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, 0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3,
        3, 4,
    );
    let low = _mm256_set1_epi8(0x0f);
    let high_bits = _mm256_and_si256(_mm256_srli_epi16::<4>(words), low);
    let low_bits = _mm256_and_si256(words, low);
    let of_high = _mm256_shuffle_epi8(of_half, high_bits);
    _mm256_add_epi8(of_high, _mm256_shuffle_epi8(of_half, low_bits))
}

/// How many bits each 64-bit lane has set.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
pub(crate) fn of_words(words: __m512i) -> __m512i {
    let of_half = _mm512_set4_epi32(0x0403_0302, 0x0302_0201, 0x0302_0201, 0x0201_0100);
    let low = _mm512_set1_epi8(0x0f);
    let high_bits = _mm512_and_si512(_mm512_srli_epi16::<4>(words), low);
    let low_bits = _mm512_and_si512(words, low);
    let of_high = _mm512_shuffle_epi8(of_half, high_bits);
    let bytes = _mm512_add_epi8(of_high, _mm512_shuffle_epi8(of_half, low_bits));
    _mm512_sad_epu8(bytes, _mm512_setzero_si512())
}
