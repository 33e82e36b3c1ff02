//! Forms of the coordinates that filters compare, and the bounds that make filters safe.
//!
//! A filter compares a sum of squares of stored coordinates with a limit. A filter may pass too
//! many pairs, but must not lose a pair that joins. Let `D` be the dimensions, `R` =
//! [`Epsilon::reach`], at least the real distance of every pair that joins, and `|x - y|` the real
//! distance.
//!
//! **Short.** `q(x) = round((x - low) * scale)`, a whole number for each dimension, from float64.
//! The difference and the product are rounded, each by a part of 2^-53 of a number below 2^15, so
//! `q(x)`, with its rounding to a whole number, is off by less than `1/2 + 2^-36`. By the triangle
//! inequality
//!
//! ```text
//! |q(x) - q(y)| <= scale * |x - y| + sqrt(D) * (1 + 2^-35)
//! ```
//!
//! The sum of squares is a whole number and computed exactly: `scale` is such that the diagonal of
//! the box of all points is below 46,000 units, so with the rounding, at most one unit for each of
//! at most 64 dimensions, no sum exceeds 46,008^2 < 2^31.
//!
//! **Float.** `t(x) = x * 2^k` in float32, with `k` such that `|t(x)| <= 2^55`: differences, squares
//! and sums are finite. The product is exact unless it is subnormal, else off by at most 2^-150.
//! With `u = 2^-24` each difference, square and sum is off by a part of `u`, and a square that
//! underflows by 2^-150 in addition. Sums in any order, and fused operations, have no more
//! roundings. So the computed sum `S` of squares fulfils
//!
//! ```text
//! S <= (2^k |x - y| + sqrt(D) 2^-149)^2 * (1 + u)^(D + 3) + D * 2^-149
//! ```
//!
//! and `(1 + u)^(D + 3) <= 1 + (D + 4) * 2^-23` for `D` <= 4,096. The other direction holds too,
//! with the inverse factor and both small terms subtracted.
//!
//! **Bent floats.** Where one coordinate is 2^115 times epsilon or more, as a mark of missing data
//! may be, a `k` that fits this coordinate makes all squares of near points underflow, and the
//! filter passes every pair. So `k` follows epsilon: with `R < 2^e`, `2^(k + e) = 2^-60`. Numbers
//! beyond `b = 2^(25 + e)` are *bent*: their bits beyond the bits of `b` are shifted right until
//! the greatest number fits. This map is monotone and keeps numbers distinct but for up to four
//! neighbours. No pair is lost: two distinct float32 of which at least one is `b` or more are at
//! least `2^-24 b = 2^(e + 1)` apart. So points that differ in such a coordinate do not join, and a
//! bent coordinate of a pair that joins is equal in both points. For the same reason, no point with
//! a bent coordinate seems to be within epsilon of a box without one; pairs of boxes with bent
//! coordinates are never known to join.
//!
//! **Boxes.** A box has the least and greatest stored coordinates of its points. In each dimension,
//! the distance of a stored point to a box is at most its distance to any stored point in the box:
//! the same limits hold, and rounding is monotone. **Clamping.** A point from another block may be
//! outside of the box of all points of this block. Such a point is moved to the border first, and
//! its distance to no point inside grows. The point is then not *exact*: a filter cannot tell
//! whether all its pairs join.
//!
//! The limits themselves are computed in float64 with a relative error below 2^-48 and widened by
//! 2^-40. `tests/counterexamples.rs` searches for pairs that break them.

use crate::Isa;
use crate::simd::{Base, RunOn, dispatch};
use crate::vectors::levels::{LANES, Line};
use crate::vectors::rows::{Vectors, by_dims};

/// Maximum dimensions of [`Form::Short`].
const SHORT_DIMS_MAX: usize = 32;
/// Largest diagonal of [`Form::Short`] in units, and largest side.
const DIAGONAL_MAX: f64 = 46_000.0;
const SIDE_MAX: f64 = 32_767.0;
const _: () = {
    let rounded = DIAGONAL_MAX + 8.0;
    assert!(SHORT_DIMS_MAX <= 64 && rounded * rounded < 2_147_483_647.0, "sums overflow");
};
/// Units of rounding that epsilon must exceed for [`Form::Short`], times the root of the
/// dimensions. Below that, many points that are farther apart pass the filter.
const SHORT_EPSILON_MIN: f64 = 3.0;
/// Exponent of the largest coordinate of [`Form::Float`].
const FLOAT_EXPONENT: i32 = 55;
/// Least exponent of the reach of epsilon in [`Form::Float`]: its square is far above numbers that
/// underflow.
const REACH_EXPONENT_MIN: i32 = -60;
/// Exponent of the first bent number, relative to the exponent of the reach of epsilon.
const BENT_FROM: i32 = 25;
/// Less than half of the least distance of two float32. By a smaller epsilon only equal points
/// join.
const LEAST_REACH: f64 = 1.0 / (1_u128 << 127) as f64 / (1_u64 << 23) as f64;
/// Least difference of [`Form::Float`] whose square is not zero.
const FLOAT_DIFFERENCE_MIN: f64 = 1.0 / (1_u128 << 74) as f64;
/// Units by which the rounding of two points changes their distance, times the root of the
/// dimensions.
const SHORT_MOVED: f64 = 1.0 + 1.0 / (1_u64 << 30) as f64;
/// Relative widening of limits.
const WIDER: f64 = 1.0 + 1.0 / (1_u64 << 40) as f64;

/// Coordinates as they are stored.
#[derive(Clone, Debug)]
pub(in crate::vectors) enum Form {
    /// Whole numbers of 16 bits, two dimensions in a word.
    Short {
        /// The least coordinate of each dimension.
        low: Vec<f64>,
        /// The greatest stored coordinate of each dimension.
        top: Vec<f64>,
        /// Units of a distance of one.
        scale: f64,
    },
    /// Numbers of 32 bits, a dimension in a word.
    Float {
        /// The power of two that coordinates are multiplied by.
        scale: f64,
        /// The map of great numbers to smaller ones, if the extent needs it.
        bend: Option<Bend>,
    },
}

/// A monotone map of the numbers beyond a border.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::vectors) struct Bend {
    /// The border, in stored units.
    border: f64,
    /// Number of places by which the bits beyond the bits of the border are shifted.
    shift: u32,
}

impl Bend {
    /// The image of a number.
    #[inline(always)]
    fn map(self, number: f64) -> f64 {
        let (bits, border) = (number.abs().to_bits(), self.border.to_bits());
        let bent = border + ((bits.max(border) - border) >> self.shift);
        f64::from_bits(bits.min(bent)).copysign(number)
    }
}

/// Limits of sums of squares, as bits of an `i32` of [`Form::Short`] or an `f32` of
/// [`Form::Float`].
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::vectors) struct Limits {
    /// No sum of a pair that joins is above this limit.
    pub(in crate::vectors) within: u32,
    /// All pairs of exact points whose sum is not above this limit join. Negative if no sum proves
    /// that.
    pub(in crate::vectors) inside: u32,
}

/// The least and greatest coordinate of each dimension.
#[derive(Clone, Debug)]
pub(in crate::vectors) struct Extent {
    pub(in crate::vectors) low: Vec<f32>,
    pub(in crate::vectors) high: Vec<f32>,
}

impl Extent {
    /// The extent of rows; empty intervals if there are none.
    pub(in crate::vectors) fn of(isa: Isa, vectors: Vectors<'_>) -> Self {
        dispatch::<Base, _>(isa, FindExtent(vectors))
    }

    /// The extent of the rows of both extents.
    pub(in crate::vectors) fn wider(mut self, other: &Self) -> Self {
        self.low.iter_mut().zip(&other.low).for_each(|(low, &other)| *low = low.min(other));
        self.high.iter_mut().zip(&other.high).for_each(|(high, &other)| *high = high.max(other));
        self
    }

    /// The sides, in float64.
    fn sides(&self) -> impl Iterator<Item = f64> {
        let pairs = self.low.iter().zip(&self.high);
        pairs.map(|(&low, &high)| (f64::from(high) - f64::from(low)).max(0.0))
    }
}

struct FindExtent<'a>(Vectors<'a>);

impl<L> RunOn<L, Extent> for FindExtent<'_> {
    #[inline(always)]
    fn run_on(self, _: L) -> Extent {
        by_dims!(self.0.dims(), find_extent(self.0))
    }
}

#[inline(always)]
fn find_extent<const D: usize>(vectors: Vectors<'_>) -> Extent {
    let dims = if D == 0 { vectors.dims() } else { D };
    let mut extent = Extent { low: vec![f32::MAX; dims], high: vec![f32::MIN; dims] };
    // Several rows are taken at a time, so that registers are full even where dimensions are few.
    let group = if D == 0 { dims } else { D * LANES };
    let groups = vectors.values().chunks_exact(group);
    let rest = groups.remainder();
    let (mut low, mut high) = (vec![f32::MAX; group], vec![f32::MIN; group]);
    for values in groups {
        let (low, high) = (&mut low[..group], &mut high[..group]);
        for at in 0..group {
            low[at] = if values[at] < low[at] { values[at] } else { low[at] };
            high[at] = if values[at] > high[at] { values[at] } else { high[at] };
        }
    }
    for (lows, highs) in
        low.chunks(dims).zip(high.chunks(dims)).chain(rest.chunks(dims).map(|row| (row, row)))
    {
        for dim in 0..dims {
            extent.low[dim] = extent.low[dim].min(lows[dim]);
            extent.high[dim] = extent.high[dim].max(highs[dim]);
        }
    }
    extent
}

impl Form {
    /// The smaller form if epsilon is large against the extent, else the exact form.
    pub(in crate::vectors) fn choose(extent: &Extent, reach: f64) -> Self {
        let dims = extent.low.len();
        if dims <= SHORT_DIMS_MAX {
            let form = Self::short(extent);
            let Self::Short { scale, .. } = form else { unreachable!("made as short") };
            if reach * scale >= SHORT_EPSILON_MIN * root(dims) {
                return form;
            }
        }
        Self::float(extent, reach)
    }

    /// Whole numbers for the points of an extent of at most [`SHORT_DIMS_MAX`] dimensions.
    pub(in crate::vectors) fn short(extent: &Extent) -> Self {
        let diagonal = extent.sides().map(|side| side * side).sum::<f64>().sqrt();
        let side = extent.sides().fold(0.0, f64::max);
        // Any scale is safe where all points are equal.
        let scale = if side > 0.0 { (DIAGONAL_MAX / diagonal).min(SIDE_MAX / side) } else { 1.0 };
        let low: Vec<f64> = extent.low.iter().copied().map(f64::from).collect();
        let top = extent.sides().map(|side| (side * scale).round().min(SIDE_MAX)).collect();
        Self::Short { low, top, scale }
    }

    /// Floats for the points of an extent, where points at a distance of more than `reach` do not
    /// join.
    pub(in crate::vectors) fn float(extent: &Extent, reach: f64) -> Self {
        let values = extent.low.iter().chain(&extent.high);
        let largest = values.fold(0.0_f32, |largest, value| value.abs().max(largest)).into();
        let by_largest = if largest > 0.0 { exponent_above(largest) } else { 0 };
        let by_largest = 2.0_f64.powi(FLOAT_EXPONENT - by_largest);
        let by_reach = exponent_above(reach.max(LEAST_REACH));
        let by_reach = 2.0_f64.powi(REACH_EXPONENT_MIN.saturating_sub(by_reach));
        if by_reach <= by_largest {
            return Self::Float { scale: by_largest, bend: None };
        }
        let border = 2.0_f64.powi(REACH_EXPONENT_MIN + BENT_FROM);
        let beyond = |number: f64| number.to_bits().saturating_sub(border.to_bits());
        let (most, needed) = (beyond(2.0_f64.powi(FLOAT_EXPONENT)), beyond(largest * by_reach));
        let shift = needed.div_ceil(most).next_power_of_two().ilog2();
        Self::Float { scale: by_reach, bend: Some(Bend { border, shift }) }
    }

    /// Words of a point of `dims` dimensions: a power of two, so that there is a loop for each
    /// number of words. Words past the dimensions are zero.
    pub(in crate::vectors) fn words(&self, dims: usize) -> usize {
        match self {
            Self::Short { .. } => dims.div_ceil(2).next_power_of_two(),
            Self::Float { .. } => dims.next_power_of_two(),
        }
    }

    /// Limits for pairs with a real distance of at most `reach`. Pairs with a distance of at most
    /// `core` are known to join. The upper limit holds for all points, the lower limit for exact
    /// points.
    #[expect(clippy::cast_possible_truncation, reason = "rounded on purpose")]
    pub(in crate::vectors) fn limits(&self, dims: usize, reach: f64, core: f64) -> Limits {
        let dims_root = root(dims);
        let dims = dims as f64;
        match *self {
            Self::Short { scale, .. } => {
                let moved = dims_root * SHORT_MOVED;
                let within = (reach * scale + moved).powi(2) * WIDER;
                let core = core * scale - moved;
                let inside = if core >= 0.0 { core * core / WIDER } else { -1.0 };
                // The conversions saturate, and round towards zero.
                let bits = |sum: f64| (sum as i32).cast_unsigned();
                Limits { within: bits(within), inside: bits(inside.max(-1.0)) }
            }
            Self::Float { scale, bend } => {
                let tiny = 2.0_f64.powi(-149);
                let rounded = (1.0 + (dims + 4.0) * 2.0_f64.powi(-23)) * WIDER;
                let moved = dims_root * tiny * WIDER;
                let within = (reach * scale + moved).powi(2) * rounded + dims * tiny;
                let inside = (core * scale - moved).max(0.0).powi(2) / rounded - dims * tiny;
                // Rounded to nearest, so the neighbour is on the safe side.
                let within = (within as f32).next_up();
                let inside = if inside > 0.0 {
                    (inside as f32).next_down()
                } else if tiny * scale >= FLOAT_DIFFERENCE_MIN {
                    // A sum is zero only for equal points.
                    0.0
                } else {
                    -1.0
                };
                let is_far = |bend: Bend| reach * scale * 2.0_f64.powi(BENT_FROM) > bend.border;
                // Bends are for a smaller reach.
                let within = if bend.is_some_and(is_far) { f32::MAX } else { within };
                Limits { within: within.to_bits(), inside: inside.to_bits() }
            }
        }
    }

    /// Whether a filter may find that a box is within epsilon of a point: neither a least nor a
    /// greatest coordinate of the box is bent.
    pub(in crate::vectors) fn is_straight(&self, low: &[Line], high: &[Line], lane: usize) -> bool {
        let Self::Float { bend: Some(bend), .. } = self else { return true };
        let is_bent = |line: &Line| f64::from(f32::from_bits(line.0[lane])).abs() >= bend.border;
        !low.iter().chain(high).any(is_bent)
    }

    /// Writes rows into the lanes of consecutive lines, `words` lines for sixteen rows; lanes past
    /// the last row repeat it. Returns whether all rows are exact: clamped rows are not.
    pub(in crate::vectors) fn store(
        &self,
        isa: Isa,
        rows: &[f32],
        dims: usize,
        words: usize,
        lines: &mut [Line],
    ) -> bool {
        dispatch::<Base, _>(isa, Store { form: self, rows, dims, words, lines })
    }
}

/// Stores rows in a form.
struct Store<'a> {
    form: &'a Form,
    rows: &'a [f32],
    dims: usize,
    words: usize,
    lines: &'a mut [Line],
}

impl<L> RunOn<L, bool> for Store<'_> {
    #[inline(always)]
    fn run_on(self, _: L) -> bool {
        by_dims!(self.dims, store(self))
    }
}

/// A coordinate of sixteen rows; the last row is repeated if there are fewer than sixteen.
#[inline(always)]
fn column(rows: &[f32], dims: usize, dim: usize) -> [f64; LANES] {
    let last = rows.len() - dims;
    let mut values = [0.0; LANES];
    for (lane, value) in values.iter_mut().enumerate() {
        *value = rows[(lane * dims).min(last) + dim].into();
    }
    values
}

#[inline(always)]
fn store<const D: usize>(call: Store<'_>) -> bool {
    let Store { form, rows, dims, words, lines } = call;
    let dims = if D == 0 { dims } else { D };
    let lines = lines.chunks_exact_mut(words);
    let mut is_exact = true;
    for (rows, lines) in rows.chunks(LANES * dims).zip(lines) {
        match form {
            Form::Short { low, top, scale } => {
                for dim in 0..dims {
                    let line = &mut lines[dim / 2].0;
                    let [low, top] = [low[dim], top[dim]];
                    is_exact &=
                        store_short(column(rows, dims, dim), low, top, *scale, dim % 2, line);
                }
            }
            Form::Float { scale, bend: None } => {
                for (dim, line) in lines[..dims].iter_mut().enumerate() {
                    let numbers = column(rows, dims, dim).map(|value| value * scale);
                    is_exact &= store_float(numbers, &mut line.0);
                }
            }
            Form::Float { scale, bend: Some(bend) } => {
                for (dim, line) in lines[..dims].iter_mut().enumerate() {
                    let numbers = column(rows, dims, dim).map(|value| bend.map(value * scale));
                    is_exact &= store_float(numbers, &mut line.0);
                }
            }
        }
    }
    is_exact
}

#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "a number of 15 bits")]
fn store_short(
    values: [f64; LANES],
    low: f64,
    top: f64,
    scale: f64,
    half: usize,
    line: &mut [u32; LANES],
) -> bool {
    const WHOLE: f64 = (1_u64 << 52) as f64;
    let mut is_exact = true;
    for (value, word) in values.into_iter().zip(line) {
        let exact = (value - low) * scale;
        let clamped = exact.max(0.0).min(top);
        // Half a unit is the rounding of a point inside.
        is_exact &= (exact - clamped).abs() <= 0.5;
        // The lower bits of a float64 from 2^52 on are a whole number, rounded to nearest.
        let number = (clamped + WHOLE).to_bits() as u32;
        *word = if half == 0 { number } else { *word | number << 16 };
    }
    is_exact
}

#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "rounded on purpose")]
fn store_float(numbers: [f64; LANES], line: &mut [u32; LANES]) -> bool {
    let largest = 2.0_f64.powi(FLOAT_EXPONENT);
    let mut is_exact = true;
    for (number, word) in numbers.into_iter().zip(line) {
        let clamped = number.max(-largest).min(largest);
        is_exact &= number == clamped;
        *word = (clamped as f32).to_bits();
    }
    is_exact
}

/// The least exponent of a power of two that is greater than a positive number, which is not
/// subnormal.
fn exponent_above(number: f64) -> i32 {
    (number.to_bits() >> 52) as i32 - 1022
}

/// The root of a number of dimensions.
fn root(dims: usize) -> f64 {
    (dims as f64).sqrt()
}
