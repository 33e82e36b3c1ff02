//! The sums of sixteen keys at a time, in the registers of AVX-512.

#![expect(unsafe_code, reason = "instructions that are detected at run time")]

use std::arch::x86_64::{
    __m128i, __m256i, __m512i, _mm_loadu_si128, _mm_testz_si128, _mm_xor_si128, _mm512_add_epi32,
    _mm512_add_epi64, _mm512_and_si512, _mm512_castsi256_si512, _mm512_cmpeq_epi32_mask,
    _mm512_cvtepi64_epi32, _mm512_i32gather_epi32, _mm512_inserti64x4, _mm512_mask_blend_epi32,
    _mm512_mul_epu32, _mm512_mullo_epi32, _mm512_mullo_epi64, _mm512_permutex2var_epi64,
    _mm512_set1_epi32, _mm512_set1_epi64, _mm512_srli_epi32, _mm512_srli_epi64, _mm512_srlv_epi32,
    _mm512_xor_si512,
};

use super::cell::{Cell, LANES_LOG};
use super::hash::{CellKey, GROUP, KeyGroup, SHIFT};
use super::places::{Find, Places, Sums, find_each};
use crate::simd::{Avx512, avx512};

impl<K: CellKey> Find<K> for Avx512 {
    #[inline(always)]
    fn find(self, places: Places<'_, K>, keys: &[K; GROUP]) -> Sums<GROUP> {
        match K::group(keys) {
            KeyGroup::U32(keys) => find_u32(self, &places, keys),
            // A gather of 64-bit numbers takes longer than single loads.
            KeyGroup::U64(_) => find_each(places, keys),
            KeyGroup::Words(keys) => find_words(self, &places, keys),
        }
    }
}

#[inline(always)]
fn find_u32<K>(level: Avx512, places: &Places<'_, K>, keys: &[u32; GROUP]) -> Sums<GROUP> {
    let [first, _] = places.hash.wide();
    // Products of 64 bits read the lower half of each factor.
    let low = all_u64(level, first);
    let high = all_u32(level, (first >> 32) as u32);
    let mut sums = Sums([0; GROUP]);
    for (keys, sums) in keys.as_chunks().0.iter().zip(sums.0.as_chunks_mut().0) {
        let keys = level.load_u32(keys);
        // The upper halves of 64-bit products: even lanes are shifted to their place, odd lanes are
        // in place.
        let even = avx512!(level, _mm512_srli_epi64::<32>(_mm512_mul_epu32(keys, low)));
        let odd = avx512!(level, _mm512_mul_epu32(_mm512_srli_epi64::<32>(keys), low));
        let carry = avx512!(level, _mm512_mask_blend_epi32(0xaaaa, even, odd));
        let upper = avx512!(level, _mm512_add_epi32(carry, _mm512_mullo_epi32(keys, high)));
        let [own, other] = own_and_other(level, places, upper);
        let words = places.cells.as_ptr().cast();
        // SAFETY: as in `find_each`, these are the first words of cells, and the key of a cell
        // is its first one; below 2^31 for 2^27 cells; features as in `avx512!`.
        let found = unsafe { _mm512_i32gather_epi32::<4>(own, words) };
        let is_own = avx512!(level, _mm512_cmpeq_epi32_mask(found, keys));
        level.store_u32(avx512!(level, _mm512_mask_blend_epi32(is_own, other, own)), sums);
    }
    sums
}

#[inline(always)]
fn find_words<K>(level: Avx512, places: &Places<'_, K>, keys: &[[u64; 2]; GROUP]) -> Sums<GROUP> {
    let [first, last] = places.hash.wide();
    let multipliers = [all_u64(level, first), all_u64(level, last)];
    // The sums of other keys, and the sums of the keys of the cells.
    let mut choices = [Sums([0; GROUP]), Sums([0; GROUP])];
    let [Sums(others), Sums(owns)] = &mut choices;
    let sums = others.as_chunks_mut().0.iter_mut().zip(owns.as_chunks_mut().0);
    for (keys, (others, owns)) in keys.as_chunks::<16>().0.iter().zip(sums) {
        let (halves, _) = keys.as_chunks();
        let low = uppers_of_words(level, &halves[0], multipliers);
        let high = uppers_of_words(level, &halves[1], multipliers);
        let upper = avx512!(level, _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high));
        let [own, other] = own_and_other(level, places, upper);
        level.store_u32(own, owns);
        level.store_u32(other, others);
    }
    let mut sums = Sums([0; GROUP]);
    for (position, (sum, key)) in sums.0.iter_mut().zip(keys).enumerate() {
        let own = choices[1].0[position] as usize;
        let cell = places.cells.as_ptr().cast::<u32>().wrapping_add(own);
        // SAFETY: a key, which is two words, as in `find_each`; features as in `avx512!`.
        let found: __m128i = unsafe { _mm_loadu_si128(cell.cast()) };
        // SAFETY: the key is two words; features as in `avx512!`.
        let key = unsafe { _mm_loadu_si128(key.as_ptr().cast()) };
        let differing = avx512!(level, _mm_xor_si128(found, key));
        let is_own = avx512!(level, _mm_testz_si128(differing, differing)) == 1;
        // The choice is read by index: compilers turn a choice between registers into a branch
        // here.
        *sum = choices[usize::from(is_own)].0[position];
    }
    sums
}

/// The upper halves of the products of eight keys of two words.
#[inline(always)]
fn uppers_of_words(level: Avx512, keys: &[[u64; 2]; 8], multipliers: [__m512i; 2]) -> __m256i {
    let (words, _) = keys.as_flattened().as_chunks();
    let [low, high] = [level.load_u64(&words[0]), level.load_u64(&words[1])];
    let [left, right] = [[0, 2, 4, 6, 8, 10, 12, 14], [1, 3, 5, 7, 9, 11, 13, 15]];
    let left = avx512!(level, _mm512_permutex2var_epi64(low, level.load_u64(&left), high));
    let right = avx512!(level, _mm512_permutex2var_epi64(low, level.load_u64(&right), high));
    let left = avx512!(level, _mm512_mullo_epi64(folded(level, left), multipliers[0]));
    let right = avx512!(level, _mm512_mullo_epi64(folded(level, right), multipliers[1]));
    let sum = avx512!(level, _mm512_add_epi64(left, right));
    avx512!(level, _mm512_cvtepi64_epi32(_mm512_srli_epi64::<32>(sum)))
}

/// Words combined with their upper halves.
#[inline(always)]
fn folded(level: Avx512, words: __m512i) -> __m512i {
    avx512!(level, _mm512_xor_si512(words, _mm512_srli_epi64::<32>(words)))
}

#[inline(always)]
fn all_u32(level: Avx512, number: u32) -> __m512i {
    avx512!(level, _mm512_set1_epi32(number.cast_signed()))
}

#[inline(always)]
fn all_u64(level: Avx512, number: u64) -> __m512i {
    avx512!(level, _mm512_set1_epi64(number.cast_signed()))
}

/// The sums of sixteen keys from the upper halves of their products: of the keys of their cells,
/// and of other keys.
#[inline(always)]
fn own_and_other<K>(level: Avx512, places: &Places<'_, K>, upper: __m512i) -> [__m512i; 2] {
    let mixed = avx512!(level, _mm512_xor_si512(upper, _mm512_srli_epi32::<SHIFT>(upper)));
    let hash = avx512!(level, _mm512_mullo_epi32(mixed, all_u32(level, places.hash.narrow())));
    let place = avx512!(level, _mm512_srlv_epi32(hash, all_u32(level, places.shift)));
    let cell = avx512!(level, _mm512_srli_epi32::<LANES_LOG>(place));
    let own = avx512!(level, _mm512_mullo_epi32(cell, all_u32(level, Cell::<K>::WORDS)));
    let lane = avx512!(level, _mm512_and_si512(place, all_u32(level, (1 << LANES_LOG) - 1)));
    let other = avx512!(level, _mm512_add_epi32(_mm512_add_epi32(own, lane), all_u32(level, 1)));
    [own, other]
}
