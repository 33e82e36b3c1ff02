//! Sixteen points in registers, as a trait that each level implements for each form.
//!
//! Points are filtered in one of two forms of 32-bit words: [`Short`] has two dimensions in a word,
//! as whole numbers, and [`Float`] has one dimension in a word. Sixteen points have a [`Line`] for
//! each word.

#![expect(unsafe_code, reason = "a line is plain")]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod portable;
pub(super) mod scalar;

use crate::memory::Plain;

/// Points of a line, and children of a node of a directory.
pub(super) const LANES: usize = 16;

/// A word of each of sixteen points.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(super) struct Line(pub(super) [u32; LANES]);

// SAFETY: sixteen numbers of 32 bits, without padding.
unsafe impl Plain for Line {}

/// A word has two coordinates, each from 0 to 32,767. Sums of squares are whole numbers below 2^31.
#[derive(Clone, Copy, Debug)]
pub(super) struct Short;

/// A word is a float32 below 2^56. Sums of squares are finite.
#[derive(Clone, Copy, Debug)]
pub(super) struct Float;

/// A number of points, leaves or nodes as a `u32`: all are fewer than 2^32.
#[inline(always)]
pub(super) fn as_u32(number: usize) -> u32 {
    u32::try_from(number).expect("fewer than 2^32 points")
}

/// The coordinates of a word of [`Short`].
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the two halves")]
pub(super) fn halves(word: u32) -> [i32; 2] {
    [i32::from(word as u16), i32::from((word >> 16) as u16)]
}

/// Sums of squares of sixteen points at once.
pub(super) trait Sixteen<F>: Copy {
    /// A word of each point.
    type Words: Copy;
    /// A sum for each point.
    type Sums: Copy;

    /// Sums of nothing.
    fn zero(self) -> Self::Sums;

    /// The sum with these bits for each point: an `i32` of [`Short`], an `f32` of [`Float`].
    fn splat_sum(self, bits: u32) -> Self::Sums;

    /// The same word for each point.
    fn splat(self, word: u32) -> Self::Words;

    /// Loads a line.
    fn load(self, line: &Line) -> Self::Words;

    /// Adds the squares of the differences of the coordinates.
    fn add_differences(self, sums: Self::Sums, left: Self::Words, right: Self::Words)
    -> Self::Sums;

    /// Adds the squares of the distances of the coordinates of a point to intervals; zero inside.
    fn add_gaps(
        self,
        sums: Self::Sums,
        point: Self::Words,
        low: Self::Words,
        high: Self::Words,
    ) -> Self::Sums;

    /// Adds the squares of the distances to the farthest points of intervals.
    fn add_farthest(
        self,
        sums: Self::Sums,
        point: Self::Words,
        low: Self::Words,
        high: Self::Words,
    ) -> Self::Sums;

    /// Bit `i`: whether sum `i` is at most that of the limit.
    fn at_most(self, sums: Self::Sums, limit: Self::Sums) -> u32;
}

/// A level that filters points in both forms.
pub(super) trait Filter: Sixteen<Short> + Sixteen<Float> {
    /// Writes the numbers `first + (i << SHIFT)` of the bits `i` of `hits` to the front of `kept`,
    /// in their order; all later numbers of `kept` may be overwritten.
    #[inline(always)]
    fn keep<const SHIFT: u32>(self, first: u32, hits: u32, kept: &mut [u32; LANES]) {
        let (mut hits, mut end) = (hits, 0);
        while hits != 0 {
            // The remainder changes nothing, and tells the compiler that the index is in range.
            kept[end % LANES] = first + (hits.trailing_zeros() << SHIFT);
            end += 1;
            hits &= hits - 1;
        }
    }

    /// Bit `i`: whether number `i` is below `pivot`. All are below 2^31.
    #[inline(always)]
    fn below(self, numbers: &[u32; LANES], pivot: u32) -> u32 {
        (0..LANES).fold(0, |hits, lane| hits | u32::from(numbers[lane] < pivot) << lane)
    }

    /// Writes the numbers of the bits of `hits` to the front of `kept`, in their order; all later
    /// numbers of `kept` may be overwritten.
    #[inline(always)]
    fn compress(self, numbers: &[u32; LANES], hits: u32, kept: &mut [u32; LANES]) {
        let mut end = 0;
        for (lane, &number) in numbers.iter().enumerate() {
            // Each number is stored, and the next one overwrites it if it is no hit.
            kept[end % LANES] = number;
            end += (hits >> lane & 1) as usize;
        }
    }
}
