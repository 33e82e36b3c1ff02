//! The filter on the 256-bit registers of AVX2: 8 `u32` or 4 `u64` bins each.
//!
//! In the assembly of `absorb`, counts of `u32` bins are in registers throughout; with 33 bins and
//! more the keys become memory operands of the compares. Of 64 `u64` bins, 7 of 16 registers of
//! counts live on the stack, and of 17 to 64 weighted bins 3 of 8 or all: there the 8 or 16
//! compares of an item take longer than the store and the load.

#![expect(unsafe_code, reason = "intrinsics of an instruction set that is detected at run time")]

use std::arch::x86_64::{
    __m256i, _MM_HINT_T0, _mm_loadl_epi64, _mm_prefetch, _mm256_add_epi64, _mm256_and_si256,
    _mm256_castsi256_pd, _mm256_castsi256_ps, _mm256_cmpeq_epi32, _mm256_cmpeq_epi64,
    _mm256_cvtepu8_epi32, _mm256_loadu_si256, _mm256_movemask_pd, _mm256_movemask_ps,
    _mm256_or_si256, _mm256_permutevar8x32_epi32, _mm256_set1_epi32, _mm256_set1_epi64x,
    _mm256_storeu_si256, _mm256_sub_epi32, _mm256_sub_epi64,
};

use super::lanes::{Kernel, Lanes, Simd, WideLanes};

/// Runs a kernel on 256-bit registers. The features are those of `Isa::Avx2`.
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
pub(super) fn run<T: Kernel>(kernel: T) -> T::Output {
    kernel.vector(Avx2(()))
}

/// The proof that the processor has AVX2: made by [`run`] alone.
#[derive(Clone, Copy)]
pub(super) struct Avx2(());

impl Simd for Avx2 {
    type U32 = U32x8;
    type U64 = U64x4;
}

/// Eight 32-bit lanes.
#[derive(Clone, Copy)]
pub(super) struct U32x8(__m256i);

/// Four 64-bit lanes.
#[derive(Clone, Copy)]
pub(super) struct U64x4(__m256i);

/// For each set of dropped 32-bit lanes: the positions of the others, in their order.
static KEPT_U32: [[u8; 8]; 256] = kept();

/// For each set of dropped 64-bit lanes: the positions of the 32-bit halves of the others.
static KEPT_U64: [[u8; 8]; 16] = kept();

/// The table for as many lanes as its length has bits, `8 / lanes` positions for each.
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

/// Calls an intrinsic in a place that holds an [`Avx2`] or a register made from one.
macro_rules! avx2 {
    ($call:expr) => {
        // SAFETY: an `Avx2`, and a register with it, exists only where `run` was entered, whose
        // features these are.
        unsafe { $call }
    };
}

macro_rules! lanes {
    ($register:ident, $key:ident, $count:literal,
     $splat:ident, $matches:ident, $subtract:ident, $cast:ident, $bits:ident,
     $kept:ident) => {
        impl Lanes for $register {
            type Simd = Avx2;
            type Key = $key;
            /// All bits of a lane, or none.
            type Mask = __m256i;
            const COUNT: usize = $count;

            #[inline(always)]
            fn splat(_: Avx2, key: $key) -> Self {
                Self(avx2!($splat(key.cast_signed())))
            }

            #[inline(always)]
            fn load(_: Avx2, keys: &[$key]) -> Self {
                let keys: &[$key; $count] = keys.try_into().expect("a register has COUNT lanes");
                // SAFETY: the array is 32 readable bytes, and the load needs no alignment; features
                // as in `avx2!`.
                Self(unsafe { _mm256_loadu_si256(std::ptr::from_ref(keys).cast()) })
            }

            #[inline(always)]
            fn prefetch(_: Avx2, keys: &[$key], ahead: usize) {
                let line = keys.as_ptr().wrapping_add(ahead).cast();
                // SAFETY: a hint: it reads nothing, whatever the address.
                unsafe { _mm_prefetch::<_MM_HINT_T0>(line) };
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
            fn matches(self, other: Self) -> __m256i {
                avx2!($matches(self.0, other.0))
            }

            #[inline(always)]
            fn one(_: Avx2) -> Self {
                Self(avx2!($splat(1)))
            }

            #[inline(always)]
            fn count(self, mask: __m256i, _: Self) -> Self {
                Self(avx2!($subtract(self.0, mask)))
            }

            #[inline(always)]
            fn either(left: __m256i, right: __m256i) -> __m256i {
                avx2!(_mm256_or_si256(left, right))
            }

            #[inline(always)]
            fn bits(mask: __m256i) -> u64 {
                let lanes = avx2!($cast(mask));
                avx2!($bits(lanes)).cast_unsigned().into()
            }

            #[inline(always)]
            fn compress(self, dropped: __m256i, keys: &mut [$key]) -> usize {
                let dropped = avx2!($cast(dropped));
                let dropped = avx2!($bits(dropped)).cast_unsigned() as usize;
                let kept: &[u8; 8] = &$kept[dropped];
                // SAFETY: the array is 8 readable bytes, and the load needs no alignment; features
                // as in `avx2!`.
                let kept = unsafe { _mm_loadl_epi64(std::ptr::from_ref(kept).cast()) };
                let kept = avx2!(_mm256_cvtepu8_epi32(kept));
                Self(avx2!(_mm256_permutevar8x32_epi32(self.0, kept))).store(&mut keys[..$count]);
                $count - dropped.count_ones() as usize
            }
        }
    };
}

lanes!(
    U32x8,
    u32,
    8,
    _mm256_set1_epi32,
    _mm256_cmpeq_epi32,
    _mm256_sub_epi32,
    _mm256_castsi256_ps,
    _mm256_movemask_ps,
    KEPT_U32
);
lanes!(
    U64x4,
    u64,
    4,
    _mm256_set1_epi64x,
    _mm256_cmpeq_epi64,
    _mm256_sub_epi64,
    _mm256_castsi256_pd,
    _mm256_movemask_pd,
    KEPT_U64
);

impl WideLanes for U64x4 {
    #[inline(always)]
    fn add(self, mask: __m256i, weights: Self) -> Self {
        let weights = avx2!(_mm256_and_si256(mask, weights.0));
        Self(avx2!(_mm256_add_epi64(self.0, weights)))
    }
}
