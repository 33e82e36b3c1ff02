//! Sixteen points in four 128-bit vectors of `wide`.

use wide::{f32x4, i16x8, i32x4};

use super::{Filter, Float, Line, Short, Sixteen};
use crate::simd::Portable;

/// Vectors of sixteen words.
const VECTORS: usize = 4;

/// The four words of a line in each vector.
#[inline(always)]
fn quarters(line: &Line) -> [[u32; 4]; VECTORS] {
    let (quarters, _) = line.0.as_chunks();
    std::array::from_fn(|index| quarters[index])
}

/// Two 16-bit numbers of each of four words.
#[inline(always)]
fn shorts(words: [u32; 4]) -> i16x8 {
    let half = |index: usize| super::halves(words[index / 2])[index % 2];
    #[expect(clippy::cast_possible_truncation, reason = "numbers of 16 bits")]
    i16x8::new(std::array::from_fn(|index| half(index) as i16))
}

/// The bits of all vectors, lane 0 lowest.
#[inline(always)]
fn bits(bits: [u32; VECTORS]) -> u32 {
    bits[0] | bits[1] << 4 | bits[2] << 8 | bits[3] << 12
}

impl Filter for Portable {}

impl Sixteen<Short> for Portable {
    type Words = [i16x8; VECTORS];
    type Sums = [i32x4; VECTORS];

    #[inline(always)]
    fn zero(self) -> Self::Sums {
        [i32x4::ZERO; VECTORS]
    }

    #[inline(always)]
    fn splat_sum(self, bits: u32) -> Self::Sums {
        [i32x4::splat(bits.cast_signed()); VECTORS]
    }

    #[inline(always)]
    fn splat(self, word: u32) -> Self::Words {
        [shorts([word; 4]); VECTORS]
    }

    #[inline(always)]
    fn load(self, line: &Line) -> Self::Words {
        quarters(line).map(shorts)
    }

    #[inline(always)]
    fn add_differences(self, sums: Self::Sums, a: Self::Words, b: Self::Words) -> Self::Sums {
        std::array::from_fn(
            #[inline(always)]
            |index| {
                let difference = a[index] - b[index];
                sums[index] + difference.dot(difference)
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
        let nearest = std::array::from_fn(
            #[inline(always)]
            |index| point[index].max(low[index]).min(high[index]),
        );
        Sixteen::<Short>::add_differences(self, sums, point, nearest)
    }

    #[inline(always)]
    fn add_farthest(
        self,
        sums: Self::Sums,
        point: Self::Words,
        low: Self::Words,
        high: Self::Words,
    ) -> Self::Sums {
        std::array::from_fn(
            #[inline(always)]
            |index| {
                let farthest = (point[index] - low[index]).max(high[index] - point[index]);
                sums[index] + farthest.dot(farthest)
            },
        )
    }

    #[inline(always)]
    fn at_most(self, sums: Self::Sums, limit: Self::Sums) -> u32 {
        let above = std::array::from_fn(
            #[inline(always)]
            |index| sums[index].simd_gt(limit[index]).to_bitmask(),
        );
        bits(above) ^ 0xffff
    }
}

impl Sixteen<Float> for Portable {
    type Words = [f32x4; VECTORS];
    type Sums = [f32x4; VECTORS];

    #[inline(always)]
    fn zero(self) -> Self::Sums {
        [f32x4::ZERO; VECTORS]
    }

    #[inline(always)]
    fn splat_sum(self, bits: u32) -> Self::Sums {
        Sixteen::<Float>::splat(self, bits)
    }

    #[inline(always)]
    fn splat(self, word: u32) -> Self::Words {
        [f32x4::splat(f32::from_bits(word)); VECTORS]
    }

    #[inline(always)]
    fn load(self, line: &Line) -> Self::Words {
        quarters(line).map(|words| f32x4::new(words.map(f32::from_bits)))
    }

    #[inline(always)]
    fn add_differences(self, sums: Self::Sums, a: Self::Words, b: Self::Words) -> Self::Sums {
        std::array::from_fn(
            #[inline(always)]
            |index| {
                let difference = a[index] - b[index];
                sums[index] + difference * difference
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
        let nearest = std::array::from_fn(
            #[inline(always)]
            |index| point[index].fast_max(low[index]).fast_min(high[index]),
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
        std::array::from_fn(
            #[inline(always)]
            |index| {
                let farthest = (point[index] - low[index]).fast_max(high[index] - point[index]);
                sums[index] + farthest * farthest
            },
        )
    }

    #[inline(always)]
    fn at_most(self, sums: Self::Sums, limit: Self::Sums) -> u32 {
        bits(std::array::from_fn(
            #[inline(always)]
            |index| sums[index].simd_le(limit[index]).to_bitmask(),
        ))
    }
}
