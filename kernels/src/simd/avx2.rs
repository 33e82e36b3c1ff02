//! The 256-bit registers of AVX2: 8 lanes of `u32` or 4 of `u64`.

#![expect(unsafe_code, reason = "intrinsics of an instruction set that is detected at run time")]

use std::arch::x86_64::{
    __m256i, _mm_loadl_epi64, _mm256_add_epi8, _mm256_add_epi32, _mm256_add_epi64,
    _mm256_and_si256, _mm256_blend_epi32, _mm256_blendv_epi8, _mm256_castsi256_pd,
    _mm256_castsi256_ps, _mm256_castsi256_si128, _mm256_cmpeq_epi32, _mm256_cmpeq_epi64,
    _mm256_cvtepi32_epi64, _mm256_cvtepu8_epi32, _mm256_extracti128_si256, _mm256_loadu_si256,
    _mm256_maskload_epi32, _mm256_maskstore_epi32, _mm256_movemask_pd, _mm256_movemask_ps,
    _mm256_or_si256, _mm256_permutevar8x32_epi32, _mm256_sad_epu8, _mm256_set1_epi8,
    _mm256_set1_epi32, _mm256_set1_epi64x, _mm256_setr_epi8, _mm256_setr_epi32,
    _mm256_setzero_si256, _mm256_shuffle_epi8, _mm256_srli_epi16, _mm256_storeu_si256,
    _mm256_sub_epi32, _mm256_sub_epi64,
};

use super::lanes::{Lanes, Simd};
use super::x86::{Avx2, avx2};

impl Avx2 {
    /// Eight numbers, at any address.
    #[inline(always)]
    pub(crate) fn load_u32(self, numbers: &[u32; 8]) -> __m256i {
        // SAFETY: the array is 32 readable bytes, and the load needs no alignment; features as in
        // `avx2!`.
        unsafe { _mm256_loadu_si256(std::ptr::from_ref(numbers).cast()) }
    }

    /// Writes eight numbers.
    #[inline(always)]
    pub(crate) fn store_u32(self, register: __m256i, numbers: &mut [u32; 8]) {
        // SAFETY: the array is 32 writable bytes, and the store needs no alignment; features as
        // in `avx2!`.
        unsafe { _mm256_storeu_si256(std::ptr::from_mut(numbers).cast(), register) };
    }

    /// Up to eight numbers, and then the lanes of `rest`.
    #[inline(always)]
    pub(crate) fn load_part_u32(self, numbers: &[u32], rest: __m256i) -> __m256i {
        let mask = self.first_u32(numbers.len());
        // SAFETY: the mask has at most as many lanes as there are readable numbers, and the load
        // does not touch the others; features as in `avx2!`.
        let part = unsafe { _mm256_maskload_epi32(numbers.as_ptr().cast(), mask) };
        avx2!(self, _mm256_blendv_epi8(rest, part, mask))
    }

    /// Writes the first lanes, up to eight.
    #[inline(always)]
    pub(crate) fn store_part_u32(self, register: __m256i, numbers: &mut [u32]) {
        let mask = self.first_u32(numbers.len());
        // SAFETY: the mask has at most as many lanes as there are writable numbers, and the store
        // does not touch the others; features as in `avx2!`.
        unsafe { _mm256_maskstore_epi32(numbers.as_mut_ptr().cast(), mask, register) };
    }

    /// All bits of the first `len` lanes; of all lanes if `len` is 8 or more.
    #[inline(always)]
    fn first_u32(self, len: usize) -> __m256i {
        static LANES: [[u32; 8]; 2] = [[u32::MAX; 8], [0; 8]];
        let begin = 8 - len.min(8);
        self.load_u32(LANES.as_flattened()[begin..].first_chunk().expect("eight lanes or more"))
    }

    /// Writes the lanes whose bits are set in `kept` to the front of `numbers`, in their order; all
    /// later numbers may be overwritten.
    #[inline(always)]
    pub(crate) fn compress_u32(self, register: __m256i, kept: u32, numbers: &mut [u32; 8]) {
        // There is no compressing store: a table says which lanes come to the front.
        let lanes: &[u8; 8] = &KEPT_U32[(kept & 0xff ^ 0xff) as usize];
        // SAFETY: the array is 8 readable bytes, and the load needs no alignment; features as in
        // `avx2!`.
        let lanes = unsafe { _mm_loadl_epi64(std::ptr::from_ref(lanes).cast()) };
        let lanes = avx2!(self, _mm256_cvtepu8_epi32(lanes));
        U32x8(avx2!(self, _mm256_permutevar8x32_epi32(register, lanes)), self).store(numbers);
    }

    /// Four numbers, at any address.
    #[inline(always)]
    pub(crate) fn load_u64(self, numbers: &[u64; 4]) -> __m256i {
        // SAFETY: as in `load_u32`.
        unsafe { _mm256_loadu_si256(std::ptr::from_ref(numbers).cast()) }
    }

    /// The number of set bits of each byte. AVX2 has no population count, so the bits of each half
    /// byte are looked up in a table that is a register (Muła, Kurz, Lemire, *Faster Population
    /// Counts Using AVX2 Instructions*, The Computer Journal 61(1), 2018, §3).
    #[inline(always)]
    pub(crate) fn count_bits_of_bytes(self, words: __m256i) -> __m256i {
        // The shuffle looks up within each half of the register, so the register has the table
        // twice.
        let of_half_byte = avx2!(
            self,
            _mm256_setr_epi8(
                0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, 0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3,
                2, 3, 3, 4,
            )
        );
        let low = avx2!(self, _mm256_set1_epi8(0x0f));
        // No instruction shifts bytes; bits that cross over from the neighbour are masked away.
        let high_bits = avx2!(self, _mm256_and_si256(_mm256_srli_epi16::<4>(words), low));
        let low_bits = avx2!(self, _mm256_and_si256(words, low));
        let of_high = avx2!(self, _mm256_shuffle_epi8(of_half_byte, high_bits));
        avx2!(self, _mm256_add_epi8(of_high, _mm256_shuffle_epi8(of_half_byte, low_bits)))
    }

    /// The sums of the eight bytes of each 64-bit lane.
    #[inline(always)]
    pub(crate) fn add_bytes(self, bytes: __m256i) -> __m256i {
        // The instruction adds absolute differences, here from zero.
        avx2!(self, _mm256_sad_epu8(bytes, _mm256_setzero_si256()))
    }
}

impl Simd for Avx2 {
    type U32 = U32x8;
    type U64 = U64x4;

    #[inline(always)]
    fn halves(Mask(mask, simd): Mask) -> [Mask; 2] {
        let first = avx2!(simd, _mm256_castsi256_si128(mask));
        let last = avx2!(simd, _mm256_extracti128_si256::<1>(mask));
        [first, last].map(|half| Mask(avx2!(simd, _mm256_cvtepi32_epi64(half)), simd))
    }

    #[inline(always)]
    fn narrow([low, high]: [U64x4; 2]) -> U32x8 {
        let [low, high] = [low, high].map(|U64x4(lanes, simd)| {
            let lower = avx2!(simd, _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6));
            (avx2!(simd, _mm256_permutevar8x32_epi32(lanes, lower)), simd)
        });
        U32x8(avx2!(low.1, _mm256_blend_epi32::<0xf0>(low.0, high.0)), low.1)
    }
}

/// Eight 32-bit lanes.
#[derive(Clone, Copy)]
pub(crate) struct U32x8(__m256i, Avx2);

/// Four 64-bit lanes.
#[derive(Clone, Copy)]
pub(crate) struct U64x4(__m256i, Avx2);

/// The lanes for which a comparison holds: all bits of a lane, or none.
#[derive(Clone, Copy)]
pub(crate) struct Mask(__m256i, Avx2);

/// For each set of dropped 32-bit lanes: the positions of the kept lanes, in their order.
static KEPT_U32: [[u8; 8]; 256] = kept();

/// For each set of dropped 64-bit lanes: the positions of the 32-bit halves of the kept lanes.
static KEPT_U64: [[u8; 8]; 16] = kept();

/// The table for registers of log2(`SETS`) lanes, with `8 / lanes` positions for each lane.
const fn kept<const SETS: usize>() -> [[u8; 8]; SETS] {
    let lanes = if SETS == 1 << 8 { 8 } else { 4 };
    assert!(SETS == 1 << lanes, "registers have 4 or 8 lanes");
    let width = 8 / lanes;
    let mut table = [[0; 8]; SETS];
    let mut set = 0;
    while set < SETS {
        let (mut lane, mut end) = (0, 0);
        while lane < lanes {
            if set >> lane & 1 == 0 {
                let mut part = 0;
                while part < width {
                    table[set][end] = lane * width + part;
                    end += 1;
                    part += 1;
                }
            }
            lane += 1;
        }
        set += 1;
    }
    table
}

macro_rules! lanes {
    ($register:ident, $key:ident, $count:literal, $load:ident,
     $splat:ident, $matches:ident, $add:ident, $subtract:ident, $cast:ident, $bits:ident,
     $kept:ident) => {
        impl Lanes for $register {
            type Simd = Avx2;
            type Key = $key;
            type Mask = Mask;
            const COUNT: usize = $count;

            #[inline(always)]
            fn splat(simd: Avx2, key: $key) -> Self {
                Self(avx2!(simd, $splat(key.cast_signed())), simd)
            }

            #[inline(always)]
            fn load(simd: Avx2, keys: &[$key]) -> Self {
                Self(simd.$load(keys.try_into().expect("a register has COUNT lanes")), simd)
            }

            #[inline(always)]
            fn store(self, keys: &mut [$key]) {
                let keys: &mut [$key; $count] =
                    keys.try_into().expect("a register has COUNT lanes");
                // SAFETY: the array is 32 writable bytes, and the store needs no alignment;
                // features as in `avx2!`.
                unsafe { _mm256_storeu_si256(std::ptr::from_mut(keys).cast(), self.0) };
            }

            #[inline(always)]
            fn matches(self, other: Self) -> Mask {
                Mask(avx2!(self.1, $matches(self.0, other.0)), self.1)
            }

            #[inline(always)]
            fn one(simd: Avx2) -> Self {
                Self::splat(simd, 1)
            }

            #[inline(always)]
            fn count(self, mask: Mask, _: Self) -> Self {
                // All bits of a lane are the number -1.
                Self(avx2!(self.1, $subtract(self.0, mask.0)), self.1)
            }

            #[inline(always)]
            fn add(self, mask: Mask, numbers: Self) -> Self {
                let numbers = avx2!(self.1, _mm256_and_si256(mask.0, numbers.0));
                Self(avx2!(self.1, $add(self.0, numbers)), self.1)
            }

            #[inline(always)]
            fn either(left: Mask, right: Mask) -> Mask {
                Mask(avx2!(left.1, _mm256_or_si256(left.0, right.0)), left.1)
            }

            #[inline(always)]
            fn bits(Mask(mask, simd): Mask) -> u64 {
                // The sign bits of the lanes; only floats have an instruction for them.
                let lanes = avx2!(simd, $cast(mask));
                avx2!(simd, $bits(lanes)).cast_unsigned().into()
            }

            #[inline(always)]
            #[expect(clippy::cast_possible_truncation, reason = "a bit a lane")]
            fn compress(self, dropped: Mask, keys: &mut [$key]) -> usize {
                // There is no compressing store: a table says which lanes come to the front.
                let dropped = Self::bits(dropped) as usize;
                let kept: &[u8; 8] = &$kept[dropped];
                // SAFETY: the array is 8 readable bytes, and the load needs no alignment;
                // features as in `avx2!`.
                let kept = unsafe { _mm_loadl_epi64(std::ptr::from_ref(kept).cast()) };
                let kept = avx2!(self.1, _mm256_cvtepu8_epi32(kept));
                let front = avx2!(self.1, _mm256_permutevar8x32_epi32(self.0, kept));
                Self(front, self.1).store(&mut keys[..$count]);
                $count - dropped.count_ones() as usize
            }
        }
    };
}

lanes!(
    U32x8,
    u32,
    8,
    load_u32,
    _mm256_set1_epi32,
    _mm256_cmpeq_epi32,
    _mm256_add_epi32,
    _mm256_sub_epi32,
    _mm256_castsi256_ps,
    _mm256_movemask_ps,
    KEPT_U32
);
lanes!(
    U64x4,
    u64,
    4,
    load_u64,
    _mm256_set1_epi64x,
    _mm256_cmpeq_epi64,
    _mm256_add_epi64,
    _mm256_sub_epi64,
    _mm256_castsi256_pd,
    _mm256_movemask_pd,
    KEPT_U64
);
