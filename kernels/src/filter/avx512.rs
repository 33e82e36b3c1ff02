//! The filter on the 512-bit registers of AVX-512: 16 `u32` or 8 `u64` bins each.
//!
//! In the assembly of `absorb` and `absorb_weighted`, keys and counts are in registers for all
//! numbers of bins: an item costs a broadcast (a memory operand with one register of bins), a
//! compare and a masked add for each register, one `kortest`, and one store.

#![expect(unsafe_code, reason = "intrinsics of an instruction set that is detected at run time")]

use std::arch::x86_64::{
    __m512i, __mmask8, __mmask16, _MM_HINT_T0, _mm_prefetch, _mm512_cmpeq_epi32_mask,
    _mm512_cmpeq_epi64_mask, _mm512_loadu_si512, _mm512_mask_add_epi32, _mm512_mask_add_epi64,
    _mm512_maskz_compress_epi32, _mm512_maskz_compress_epi64, _mm512_set1_epi32, _mm512_set1_epi64,
    _mm512_storeu_si512,
};

use super::lanes::{Kernel, Lanes, Simd, WideLanes};

/// Runs a kernel on 512-bit registers. The features are those of `Isa::Avx512`.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn run<T: Kernel>(kernel: T) -> T::Output {
    kernel.vector(Avx512(()))
}

/// The proof that the processor has AVX-512: made by [`run`] alone.
#[derive(Clone, Copy)]
pub(super) struct Avx512(());

impl Simd for Avx512 {
    type U32 = U32x16;
    type U64 = U64x8;
}

/// Sixteen 32-bit lanes.
#[derive(Clone, Copy)]
pub(super) struct U32x16(__m512i);

/// Eight 64-bit lanes.
#[derive(Clone, Copy)]
pub(super) struct U64x8(__m512i);

/// Calls an intrinsic in a place that holds an [`Avx512`] or a register made from one.
macro_rules! avx512 {
    ($call:expr) => {
        // SAFETY: an `Avx512`, and a register with it, exists only where `run` was entered, whose
        // features these are.
        unsafe { $call }
    };
}

macro_rules! lanes {
    ($register:ident, $key:ident, $mask:ident, $count:literal,
     $splat:ident, $matches:ident, $add:ident, $compress:ident) => {
        impl Lanes for $register {
            type Simd = Avx512;
            type Key = $key;
            type Mask = $mask;
            const COUNT: usize = $count;

            #[inline(always)]
            fn splat(_: Avx512, key: $key) -> Self {
                Self(avx512!($splat(key.cast_signed())))
            }

            #[inline(always)]
            fn load(_: Avx512, keys: &[$key]) -> Self {
                let keys: &[$key; $count] = keys.try_into().expect("a register has COUNT lanes");
                // SAFETY: the array is 64 readable bytes, and the load needs no alignment; features
                // as in `avx512!`.
                Self(unsafe { _mm512_loadu_si512(std::ptr::from_ref(keys).cast()) })
            }

            #[inline(always)]
            fn prefetch(_: Avx512, keys: &[$key], ahead: usize) {
                let line = keys.as_ptr().wrapping_add(ahead).cast();
                // SAFETY: a hint: it reads nothing, whatever the address.
                unsafe { _mm_prefetch::<_MM_HINT_T0>(line) };
            }

            #[inline(always)]
            fn store(self, keys: &mut [$key]) {
                let keys: &mut [$key; $count] =
                    keys.try_into().expect("a register has COUNT lanes");
                // SAFETY: the array is 64 writable bytes, and the store needs no alignment;
                // features as in `avx512!`.
                unsafe { _mm512_storeu_si512(std::ptr::from_mut(keys).cast(), self.0) };
            }

            #[inline(always)]
            fn matches(self, other: Self) -> $mask {
                avx512!($matches(self.0, other.0))
            }

            /// Opaque to the optimizer, which would turn the masked add of a known one into two
            /// instructions, the mask as a vector and a subtraction (measured: 1.07 instead of 1.45
            /// G items/s with one register).
            #[inline(always)]
            fn one(simd: Avx512) -> Self {
                Self::splat(simd, std::hint::black_box(1))
            }

            #[inline(always)]
            fn count(self, mask: $mask, one: Self) -> Self {
                Self(avx512!($add(self.0, mask, self.0, one.0)))
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
                let kept = avx512!($compress(!dropped, self.0));
                Self(kept).store(&mut keys[..$count]);
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
    _mm512_set1_epi64,
    _mm512_cmpeq_epi64_mask,
    _mm512_mask_add_epi64,
    _mm512_maskz_compress_epi64
);

impl WideLanes for U64x8 {
    #[inline(always)]
    fn add(self, mask: __mmask8, weights: Self) -> Self {
        Self(avx512!(_mm512_mask_add_epi64(self.0, mask, self.0, weights.0)))
    }
}
