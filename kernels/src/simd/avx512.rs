//! The 512-bit registers of AVX-512: 16 lanes of `u32` or 8 of `u64`.

#![expect(unsafe_code, reason = "intrinsics of an instruction set that is detected at run time")]

use std::arch::x86_64::{
    __m512i, __mmask8, __mmask16, _mm512_add_epi8, _mm512_and_si512, _mm512_cmpeq_epi32_mask,
    _mm512_cmpeq_epi64_mask, _mm512_loadu_si512, _mm512_mask_add_epi32, _mm512_mask_add_epi64,
    _mm512_maskz_compress_epi32, _mm512_maskz_compress_epi64, _mm512_permutex2var_epi32,
    _mm512_popcnt_epi64, _mm512_sad_epu8, _mm512_set1_epi8, _mm512_set1_epi32, _mm512_set1_epi64,
    _mm512_set4_epi32, _mm512_setzero_si512, _mm512_shuffle_epi8, _mm512_srli_epi16,
    _mm512_storeu_si512,
};

use super::call::Extension;
use super::lanes::{Lanes, Simd};
use super::x86::{Avx512, avx512};

impl<E: Extension> Avx512<E> {
    /// Sixteen numbers, at any address.
    #[inline(always)]
    pub(crate) fn load_u32(self, numbers: &[u32; 16]) -> __m512i {
        // SAFETY: the array is 64 readable bytes, and the load needs no alignment; features as in
        // `avx512!`.
        unsafe { _mm512_loadu_si512(std::ptr::from_ref(numbers).cast()) }
    }

    /// Eight numbers, at any address.
    #[inline(always)]
    pub(crate) fn load_u64(self, numbers: &[u64; 8]) -> __m512i {
        // SAFETY: as in `load_u32`.
        unsafe { _mm512_loadu_si512(std::ptr::from_ref(numbers).cast()) }
    }

    /// Writes sixteen numbers.
    #[inline(always)]
    pub(crate) fn store_u32(self, register: __m512i, numbers: &mut [u32; 16]) {
        // SAFETY: the array is 64 writable bytes, and the store needs no alignment; features as
        // in `avx512!`.
        unsafe { _mm512_storeu_si512(std::ptr::from_mut(numbers).cast(), register) };
    }

    /// Writes eight numbers.
    #[inline(always)]
    pub(crate) fn store_u64(self, register: __m512i, numbers: &mut [u64; 8]) {
        // SAFETY: as in `store_u32`.
        unsafe { _mm512_storeu_si512(std::ptr::from_mut(numbers).cast(), register) };
    }

    /// The number of set bits of each 64-bit lane: one instruction with the extension `Popcount`,
    /// otherwise the method of `Avx2::count_bits_of_bytes` and `Avx2::add_bytes`.
    #[inline(always)]
    pub(crate) fn count_bits(self, words: __m512i) -> __m512i {
        if E::COUNTS_BITS {
            return avx512!(self, _mm512_popcnt_epi64(words));
        }
        // The shuffle looks up within each quarter of the register, so the register has the table
        // four times.
        let of_half_byte =
            avx512!(self, _mm512_set4_epi32(0x0403_0302, 0x0302_0201, 0x0302_0201, 0x0201_0100));
        let low = avx512!(self, _mm512_set1_epi8(0x0f));
        let high_bits = avx512!(self, _mm512_and_si512(_mm512_srli_epi16::<4>(words), low));
        let low_bits = avx512!(self, _mm512_and_si512(words, low));
        let of_high = avx512!(self, _mm512_shuffle_epi8(of_half_byte, high_bits));
        let of_low = avx512!(self, _mm512_shuffle_epi8(of_half_byte, low_bits));
        avx512!(self, _mm512_sad_epu8(_mm512_add_epi8(of_high, of_low), _mm512_setzero_si512()))
    }
}

impl Simd for Avx512 {
    type U32 = U32x16;
    type U64 = U64x8;

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "eight lanes of sixteen")]
    fn halves(mask: __mmask16) -> [__mmask8; 2] {
        [mask as __mmask8, (mask >> 8) as __mmask8]
    }

    #[inline(always)]
    fn narrow([low, high]: [U64x8; 2]) -> U32x16 {
        static LOWER: [u32; 16] = [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30];
        let lower = low.1.load_u32(&LOWER);
        U32x16(avx512!(low.1, _mm512_permutex2var_epi32(low.0, lower, high.0)), low.1)
    }
}

/// Sixteen 32-bit lanes.
#[derive(Clone, Copy)]
pub(crate) struct U32x16(__m512i, Avx512);

/// Eight 64-bit lanes.
#[derive(Clone, Copy)]
pub(crate) struct U64x8(__m512i, Avx512);

macro_rules! lanes {
    ($register:ident, $key:ident, $mask:ident, $count:literal, $load:ident, $store:ident,
     $splat:ident, $matches:ident, $add:ident, $compress:ident) => {
        impl Lanes for $register {
            type Simd = Avx512;
            type Key = $key;
            type Mask = $mask;
            const COUNT: usize = $count;

            #[inline(always)]
            fn splat(simd: Avx512, key: $key) -> Self {
                Self(avx512!(simd, $splat(key.cast_signed())), simd)
            }

            #[inline(always)]
            fn load(simd: Avx512, keys: &[$key]) -> Self {
                Self(simd.$load(keys.try_into().expect("a register has COUNT lanes")), simd)
            }

            #[inline(always)]
            fn store(self, keys: &mut [$key]) {
                self.1.$store(self.0, keys.try_into().expect("a register has COUNT lanes"));
            }

            #[inline(always)]
            fn matches(self, other: Self) -> $mask {
                avx512!(self.1, $matches(self.0, other.0))
            }

            /// The number is opaque to the optimizer, which would turn the masked add of a known 1
            /// into two instructions: the mask as a vector, and a subtraction (measured: 1.07
            /// instead of 1.45 G items/s with one register).
            #[inline(always)]
            fn one(simd: Avx512) -> Self {
                Self::splat(simd, std::hint::black_box(1))
            }

            #[inline(always)]
            fn count(self, mask: $mask, one: Self) -> Self {
                self.add(mask, one)
            }

            #[inline(always)]
            fn add(self, mask: $mask, numbers: Self) -> Self {
                Self(avx512!(self.1, $add(self.0, mask, self.0, numbers.0)), self.1)
            }

            #[inline(always)]
            fn either(left: $mask, right: $mask) -> $mask {
                left | right
            }

            #[inline(always)]
            fn bits(mask: $mask) -> u64 {
                mask.into()
            }

            #[inline(always)]
            fn compress(self, dropped: $mask, keys: &mut [$key]) -> usize {
                // The keys are compressed in a register and stored whole: the compressing store is
                // many times slower on some processors.
                let kept = avx512!(self.1, $compress(!dropped, self.0));
                Self(kept, self.1).store(&mut keys[..$count]);
                dropped.count_zeros() as usize
            }
        }
    };
}

lanes!(
    U32x16,
    u32,
    __mmask16,
    16,
    load_u32,
    store_u32,
    _mm512_set1_epi32,
    _mm512_cmpeq_epi32_mask,
    _mm512_mask_add_epi32,
    _mm512_maskz_compress_epi32
);
lanes!(
    U64x8,
    u64,
    __mmask8,
    8,
    load_u64,
    store_u64,
    _mm512_set1_epi64,
    _mm512_cmpeq_epi64_mask,
    _mm512_mask_add_epi64,
    _mm512_maskz_compress_epi64
);
