//! Sixteen points in two 256-bit registers of AVX2.

#![expect(unsafe_code, reason = "intrinsics of an instruction set that is detected at run time")]

use std::arch::x86_64::{
    __m256, __m256i, _CMP_LE_OQ, _mm256_add_epi32, _mm256_add_ps, _mm256_castsi256_ps,
    _mm256_cmp_ps, _mm256_cmpgt_epi32, _mm256_load_si256, _mm256_madd_epi16, _mm256_max_epi16,
    _mm256_max_ps, _mm256_min_ps, _mm256_movemask_ps, _mm256_mul_ps, _mm256_or_si256,
    _mm256_set1_epi32, _mm256_setzero_ps, _mm256_setzero_si256, _mm256_sub_epi16, _mm256_sub_ps,
    _mm256_subs_epu16,
};

use super::{Filter, Float, LANES, Line, Short, Sixteen};
use crate::simd::{Avx2, avx2};

/// The number of each lane.
const NUMBERS: [u32; LANES] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

/// Both registers.
type Two<T> = [T; 2];

/// The result of a function for each register.
#[inline(always)]
fn each<T>(mut function: impl FnMut(usize) -> T) -> Two<T> {
    [function(0), function(1)]
}

/// Loads a line.
#[inline(always)]
fn load(level: Avx2, line: &Line) -> Two<__m256i> {
    let _ = level;
    let (registers, _) = line.0.as_chunks::<8>();
    each(
        #[inline(always)]
        |index| {
            // SAFETY: the array is 32 readable bytes, aligned as the line is; features as in
            // `avx2!`.
            unsafe { _mm256_load_si256(std::ptr::from_ref(&registers[index]).cast()) }
        },
    )
}

/// The sign bits of both registers.
#[inline(always)]
fn signs(level: Avx2, [low, high]: Two<__m256>) -> u32 {
    let bits = each(
        #[inline(always)]
        |index| avx2!(level, _mm256_movemask_ps([low, high][index])).cast_unsigned(),
    );
    bits[0] | bits[1] << 8
}

/// Adds to each 32-bit lane the squares of its two 16-bit numbers.
#[inline(always)]
fn add_squares(level: Avx2, sums: __m256i, numbers: __m256i) -> __m256i {
    avx2!(level, _mm256_add_epi32(sums, _mm256_madd_epi16(numbers, numbers)))
}

impl Filter for Avx2 {
    #[inline(always)]
    fn keep<const SHIFT: u32>(self, first: u32, hits: u32, kept: &mut [u32; LANES]) {
        let numbers: [u32; LANES] = std::array::from_fn(
            #[inline(always)]
            |lane| first + (NUMBERS[lane] << SHIFT),
        );
        self.compress(&numbers, hits, kept);
    }

    #[inline(always)]
    fn below(self, numbers: &[u32; LANES], pivot: u32) -> u32 {
        let pivot = avx2!(self, _mm256_set1_epi32(pivot.cast_signed()));
        let (registers, _) = numbers.as_chunks();
        let below = each(
            #[inline(always)]
            |index| {
                let numbers = self.load_u32(&registers[index]);
                let below = avx2!(self, _mm256_cmpgt_epi32(pivot, numbers));
                avx2!(self, _mm256_castsi256_ps(below))
            },
        );
        signs(self, below)
    }

    #[inline(always)]
    fn compress(self, numbers: &[u32; LANES], hits: u32, kept: &mut [u32; LANES]) {
        let (registers, _) = numbers.as_chunks();
        let (low, high) = (hits & 0xff, hits >> 8);
        let front = kept.first_chunk_mut().expect("half of a line");
        self.compress_u32(self.load_u32(&registers[0]), low, front);
        let rest = &mut kept[low.count_ones() as usize..];
        let rest = rest.first_chunk_mut().expect("at most half of a line is taken");
        self.compress_u32(self.load_u32(&registers[1]), high, rest);
    }
}

impl Sixteen<Short> for Avx2 {
    type Words = Two<__m256i>;
    type Sums = Two<__m256i>;

    #[inline(always)]
    fn zero(self) -> Self::Sums {
        [avx2!(self, _mm256_setzero_si256()); 2]
    }

    #[inline(always)]
    fn splat_sum(self, bits: u32) -> Self::Sums {
        [avx2!(self, _mm256_set1_epi32(bits.cast_signed())); 2]
    }

    #[inline(always)]
    fn splat(self, word: u32) -> Self::Words {
        [avx2!(self, _mm256_set1_epi32(word.cast_signed())); 2]
    }

    #[inline(always)]
    fn load(self, line: &Line) -> Self::Words {
        load(self, line)
    }

    #[inline(always)]
    fn add_differences(self, sums: Self::Sums, a: Self::Words, b: Self::Words) -> Self::Sums {
        each(
            #[inline(always)]
            |index| {
                let differences = avx2!(self, _mm256_sub_epi16(a[index], b[index]));
                add_squares(self, sums[index], differences)
            },
        )
    }

    #[inline(always)]
    fn add_gaps(
        self,
        sums: Self::Sums,
        point: Self::Words,
        low: Self::Words,
        high: Self::Words,
    ) -> Self::Sums {
        each(
            #[inline(always)]
            |index| {
                // At most one of the two differences is above zero; the other saturates at zero.
                let below = avx2!(self, _mm256_subs_epu16(low[index], point[index]));
                let above = avx2!(self, _mm256_subs_epu16(point[index], high[index]));
                add_squares(self, sums[index], avx2!(self, _mm256_or_si256(below, above)))
            },
        )
    }

    #[inline(always)]
    fn add_farthest(
        self,
        sums: Self::Sums,
        point: Self::Words,
        low: Self::Words,
        high: Self::Words,
    ) -> Self::Sums {
        each(
            #[inline(always)]
            |index| {
                let above = avx2!(self, _mm256_sub_epi16(point[index], low[index]));
                let below = avx2!(self, _mm256_sub_epi16(high[index], point[index]));
                add_squares(self, sums[index], avx2!(self, _mm256_max_epi16(above, below)))
            },
        )
    }

    #[inline(always)]
    fn at_most(self, sums: Self::Sums, limit: Self::Sums) -> u32 {
        let above = each(
            #[inline(always)]
            |index| {
                let above = avx2!(self, _mm256_cmpgt_epi32(sums[index], limit[index]));
                avx2!(self, _mm256_castsi256_ps(above))
            },
        );
        signs(self, above) ^ 0xffff
    }
}

impl Sixteen<Float> for Avx2 {
    type Words = Two<__m256>;
    type Sums = Two<__m256>;

    #[inline(always)]
    fn zero(self) -> Self::Sums {
        [avx2!(self, _mm256_setzero_ps()); 2]
    }

    #[inline(always)]
    fn splat_sum(self, bits: u32) -> Self::Sums {
        Sixteen::<Float>::splat(self, bits)
    }

    #[inline(always)]
    fn splat(self, word: u32) -> Self::Words {
        [avx2!(self, _mm256_castsi256_ps(_mm256_set1_epi32(word.cast_signed()))); 2]
    }

    #[inline(always)]
    fn load(self, line: &Line) -> Self::Words {
        let [low, high] = load(self, line);
        avx2!(self, [_mm256_castsi256_ps(low), _mm256_castsi256_ps(high)])
    }

    #[inline(always)]
    fn add_differences(self, sums: Self::Sums, a: Self::Words, b: Self::Words) -> Self::Sums {
        each(
            #[inline(always)]
            |index| {
                let difference = avx2!(self, _mm256_sub_ps(a[index], b[index]));
                avx2!(self, _mm256_add_ps(sums[index], _mm256_mul_ps(difference, difference)))
            },
        )
    }

    #[inline(always)]
    fn add_gaps(
        self,
        sums: Self::Sums,
        point: Self::Words,
        low: Self::Words,
        high: Self::Words,
    ) -> Self::Sums {
        let nearest = each(
            #[inline(always)]
            |index| {
                let nearest = avx2!(self, _mm256_max_ps(point[index], low[index]));
                avx2!(self, _mm256_min_ps(nearest, high[index]))
            },
        );
        Sixteen::<Float>::add_differences(self, sums, point, nearest)
    }

    #[inline(always)]
    fn add_farthest(
        self,
        sums: Self::Sums,
        point: Self::Words,
        low: Self::Words,
        high: Self::Words,
    ) -> Self::Sums {
        each(
            #[inline(always)]
            |index| {
                let above = avx2!(self, _mm256_sub_ps(point[index], low[index]));
                let below = avx2!(self, _mm256_sub_ps(high[index], point[index]));
                let farthest = avx2!(self, _mm256_max_ps(above, below));
                avx2!(self, _mm256_add_ps(sums[index], _mm256_mul_ps(farthest, farthest)))
            },
        )
    }

    #[inline(always)]
    fn at_most(self, sums: Self::Sums, limit: Self::Sums) -> u32 {
        let hits = each(
            #[inline(always)]
            |index| avx2!(self, _mm256_cmp_ps::<_CMP_LE_OQ>(sums[index], limit[index])),
        );
        signs(self, hits)
    }
}
