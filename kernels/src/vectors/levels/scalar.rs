//! Sums of sixteen points in plain Rust, point after point: the reference of the levels.

use super::{Filter, Float, LANES, Line, Short, Sixteen, halves};
use crate::simd::Scalar;

impl Filter for Scalar {}

/// The sums with the squares of `distance` of each half of three words.
#[inline(always)]
fn add_short(
    sums: [i32; LANES],
    words: [[u32; LANES]; 3],
    distance: impl Fn(i32, i32, i32) -> i32,
) -> [i32; LANES] {
    std::array::from_fn(|lane| {
        let [first, second, third] = words.map(|words| halves(words[lane]));
        let squares = [0, 1].map(|half| distance(first[half], second[half], third[half]).pow(2));
        sums[lane] + squares[0] + squares[1]
    })
}

/// The sums with the squares of `distance` of three words.
#[inline(always)]
fn add_float(
    sums: [f32; LANES],
    words: [[u32; LANES]; 3],
    distance: impl Fn(f32, f32, f32) -> f32,
) -> [f32; LANES] {
    std::array::from_fn(|lane| {
        let [first, second, third] = words.map(|words| f32::from_bits(words[lane]));
        let distance = distance(first, second, third);
        sums[lane] + distance * distance
    })
}

/// A bit for each sum that is at most the limit.
#[inline(always)]
fn at_most<T: PartialOrd + Copy>(sums: [T; LANES], limit: [T; LANES]) -> u32 {
    (0..LANES).fold(0, |hits, lane| hits | u32::from(sums[lane] <= limit[lane]) << lane)
}

impl Sixteen<Short> for Scalar {
    type Words = [u32; LANES];
    type Sums = [i32; LANES];

    #[inline(always)]
    fn zero(self) -> Self::Sums {
        [0; LANES]
    }

    #[inline(always)]
    fn splat_sum(self, bits: u32) -> Self::Sums {
        [bits.cast_signed(); LANES]
    }

    #[inline(always)]
    fn splat(self, word: u32) -> Self::Words {
        [word; LANES]
    }

    #[inline(always)]
    fn load(self, line: &Line) -> Self::Words {
        line.0
    }

    #[inline(always)]
    fn add_differences(self, sums: Self::Sums, a: Self::Words, b: Self::Words) -> Self::Sums {
        add_short(sums, [a, b, b], |a, b, _| a - b)
    }

    #[inline(always)]
    fn add_gaps(
        self,
        sums: Self::Sums,
        point: Self::Words,
        low: Self::Words,
        high: Self::Words,
    ) -> Self::Sums {
        add_short(sums, [point, low, high], |point, low, high| {
            (low - point).max(point - high).max(0)
        })
    }

    #[inline(always)]
    fn add_farthest(
        self,
        sums: Self::Sums,
        point: Self::Words,
        low: Self::Words,
        high: Self::Words,
    ) -> Self::Sums {
        add_short(sums, [point, low, high], |point, low, high| (point - low).max(high - point))
    }

    #[inline(always)]
    fn at_most(self, sums: Self::Sums, limit: Self::Sums) -> u32 {
        at_most(sums, limit)
    }
}

impl Sixteen<Float> for Scalar {
    type Words = [u32; LANES];
    type Sums = [f32; LANES];

    #[inline(always)]
    fn zero(self) -> Self::Sums {
        [0.0; LANES]
    }

    #[inline(always)]
    fn splat_sum(self, bits: u32) -> Self::Sums {
        [f32::from_bits(bits); LANES]
    }

    #[inline(always)]
    fn splat(self, word: u32) -> Self::Words {
        [word; LANES]
    }

    #[inline(always)]
    fn load(self, line: &Line) -> Self::Words {
        line.0
    }

    #[inline(always)]
    fn add_differences(self, sums: Self::Sums, a: Self::Words, b: Self::Words) -> Self::Sums {
        add_float(sums, [a, b, b], |a, b, _| a - b)
    }

    #[inline(always)]
    fn add_gaps(
        self,
        sums: Self::Sums,
        point: Self::Words,
        low: Self::Words,
        high: Self::Words,
    ) -> Self::Sums {
        add_float(sums, [point, low, high], |point, low, high| point - point.max(low).min(high))
    }

    #[inline(always)]
    fn add_farthest(
        self,
        sums: Self::Sums,
        point: Self::Words,
        low: Self::Words,
        high: Self::Words,
    ) -> Self::Sums {
        add_float(sums, [point, low, high], |point, low, high| (point - low).max(high - point))
    }

    #[inline(always)]
    fn at_most(self, sums: Self::Sums, limit: Self::Sums) -> u32 {
        at_most(sums, limit)
    }
}
