//! Few coordinates for many dimensions: principal components, and the norm of the residual.
//!
//! A point `x` is mapped to `k + 1` numbers that a directory orders and filters by:
//!
//! ```text
//! z = (y - centre) * 2^e       p = V z, k numbers         t = |z - V^T p|, one number
//! ```
//!
//! `y` is `x` with each coordinate clamped to a range about the median of its dimension; clamping
//! stretches no distance. Rounding, below, is relative to the greatest `|z|`: without the range one
//! mark of missing data, such as 3.4e38, would round all other points to zero. The range is 2^7
//! times the spread of the values of the widest dimension. Outliers do not change this spread until
//! three of four values are outliers, so few other points are clamped.
//!
//! The rows of `V` are the components of a sample, by subspace iteration from a fixed start. The
//! components need not be exact, only measured: let `h` be at least the norm of `V V^T - I`, in
//! float64. Rows that are zero, because there is no more variance, are left out of `V` and `I`.
//!
//! **The map stretches no distance by more than `sqrt(1 + h + h^2)`**, in real numbers. The map is
//! linear in `z` but for the norm, which stretches no distance, so the square of the stretch is at
//! most the greatest eigenvalue of `P + (I - P)^2` with `P = V^T V`. The eigenvalues of `P` are 0
//! and numbers `l` with `|l - 1| <= h`. An eigenvalue `l` of `P` gives `l + (1 - l)^2 <= 1 + h +
//! h^2`, and the eigenvalue 0 gives 1.
//!
//! **Rounding moves the map of a point by at most `3 u |z| (m + k + 4) (sqrt(k) + 1)`**, with
//! `u = 2^-24` and `m` = dimensions / 16 + 5, if `h` <= 1/100. The products, the sums in sixteen
//! lanes and the sum of the lanes are off by at most `m` roundings of the sum of absolute products,
//! so with the rounding of `z`, `p` is off by at most `e = u |z| (1.03 m sqrt(k) + 1.1)`. The
//! residual begins with `z` and loses `k` products: it is off by at most `1.01 (k + 2) u` parts of
//! `|z| + |V| |p|`, by the rounding of `z`, and by `1.1 e`; its norm and the rounding of the norm
//! are off by `2 u |z|` more. The sum of the errors of `p` and of the norm is below the bound.
//! Numbers that underflow add at most 2^-140.
//!
//! So with the greatest `|z|`, points at a real distance of at most `R` have maps at a distance of
//! at most `sqrt(1 + h + h^2) 2^e R` plus twice the bound, and a directory with that reach loses no
//! pair.

use crate::Isa;
use crate::simd::{Base, RunOn, dispatch};
use crate::vectors::levels::LANES;
use crate::vectors::rows::Vectors;

/// Rows of the sample.
const SAMPLE_MAX: usize = 2048;
/// Rows of the sample that tell the ranges of the dimensions.
const RANGE_ROWS: usize = 256;
/// Half of the width of a range, as a multiple of the spread of values.
const RANGE_WIDTH: f64 = 128.0;
/// Numbers of components: with the norm of the residual, all words of a directory are used.
const COMPONENTS: [usize; 3] = [7, 15, 31];
/// Candidates of a point, counted at both points of a pair: up to the first number the fewest
/// components are cheapest, from the second number on the most components. Measured with 384
/// dimensions: eight more components take 2 us for a point, sixteen more 5 us, and a candidate
/// takes 0.1 us.
const CANDIDATES_FEW: f64 = 40.0;
const CANDIDATES_MANY: f64 = 100.0;
/// Step through the rows of a sample that estimate the share of pairs that pass the most
/// components.
const SHARE_STEP: usize = 4;
/// Points with which each point of a sample is compared.
const COMPARED: usize = 64;
/// Iterations: each multiplies the share of a component by its variance.
const ITERATIONS: usize = 3;
/// Largest deviation of the components from an orthonormal basis.
const DEVIATION_MAX: f64 = 0.01;

/// A map of points to a few coordinates.
#[derive(Clone, Debug)]
pub(in crate::vectors) struct Principal {
    dims: usize,
    /// The power of two that makes all coordinates less than one.
    scale: f32,
    /// The range of each dimension, and the mean of the values in the range.
    low: Vec<f32>,
    high: Vec<f32>,
    centre: Vec<f32>,
    /// The components, one after the other, padded with zeros to whole lines.
    axes: Vec<f32>,
    /// Coordinates of a line for each component.
    stride: usize,
    /// The greatest stretch of a distance.
    stretch: f64,
}

impl Principal {
    /// A map for a join by this distance, and the share of pairs that pass its filter. With fewer
    /// components the map is cheaper and more pairs pass; a sample estimates how many.
    pub(in crate::vectors) fn choose(isa: Isa, vectors: Vectors<'_>, reach: f64) -> (Self, f64) {
        let [few, some, many] = COMPONENTS;
        let mut principal = Self::of(isa, vectors, reach, some);
        let len = vectors.len() as f64;
        let mapped = principal.mapped_sample(isa, vectors, 1);
        let share = |components| principal.share_within(&mapped, components, reach);
        let (of_few, of_some) = (share(few), share(some));
        if of_few * len < CANDIDATES_FEW {
            principal.axes.truncate(few * principal.stride);
            return (principal, of_few);
        }
        if of_some * len <= CANDIDATES_MANY {
            return (principal, of_some);
        }
        let principal = Self::of(isa, vectors, reach, many);
        let mapped = principal.mapped_sample(isa, vectors, SHARE_STEP);
        let of_many = principal.share_within(&mapped, many, reach);
        (principal, of_many)
    }

    /// The maps of every `step`-th row of a sample.
    fn mapped_sample(&self, isa: Isa, vectors: Vectors<'_>, step: usize) -> Vec<f32> {
        let rows: Vec<f32> = sample(vectors).step_by(step).flatten().copied().collect();
        let mut mapped = vec![0.0; rows.len() / vectors.dims() * self.coordinates()];
        self.map(isa, &rows, &mut mapped);
        mapped
    }

    /// The share of pairs of mapped points whose first coordinates are within a distance.
    fn share_within(&self, mapped: &[f32], components: usize, reach: f64) -> f64 {
        share_within(mapped, self.coordinates(), components, self.reach(reach))
    }

    /// The `components` directions of greatest variance of a sample; fewer if there is no variance
    /// in more.
    pub(in crate::vectors) fn of(
        isa: Isa,
        vectors: Vectors<'_>,
        reach: f64,
        components: usize,
    ) -> Self {
        let dims = vectors.dims();
        let stride = dims.next_multiple_of(LANES);
        let sample: Vec<&[f32]> = sample(vectors).collect();
        let Range { low, high, scale } = Range::of(&sample, dims, reach);
        let centre = centre(&sample, &low, &high);
        let axes = Vec::new();
        let mut principal = Self { dims, scale, low, high, centre, axes, stride, stretch: 1.0 };
        let mut points = vec![0.0; sample.len() * stride];
        for (&row, point) in sample.iter().zip(points.chunks_exact_mut(stride)) {
            principal.place(row, point);
        }
        let mut axes = start(components.min(dims - 1), dims, stride);
        for _ in 0..ITERATIONS {
            let mut next = vec![0.0; axes.len()];
            let call = Iterate { points: &points, axes: &axes, next: &mut next, stride };
            dispatch::<Base, _>(isa, call);
            orthonormalize(&mut next, stride);
            axes = next;
        }
        let deviation = deviation(&axes, stride);
        if deviation <= DEVIATION_MAX {
            principal.axes = axes;
            principal.stretch = (1.0 + deviation + deviation * deviation).sqrt() * (1.0 + 1e-12);
        }
        principal
    }

    /// The scaled and centred coordinates of a row in its range.
    #[inline(always)]
    fn place(&self, row: &[f32], point: &mut [f32]) {
        let range = self.low.iter().zip(&self.high).zip(&self.centre);
        for ((place, &value), ((&low, &high), &centre)) in point.iter_mut().zip(row).zip(range) {
            // These comparisons are vector instructions.
            let value = if value > low { value } else { low };
            let value = if value < high { value } else { high };
            *place = (value - centre) * self.scale;
        }
    }

    /// Number of coordinates of a mapped point.
    pub(in crate::vectors) fn coordinates(&self) -> usize {
        self.axes.len() / self.stride + 1
    }

    /// Maps rows; returns a bound on the distance by which rounding moved each row.
    pub(in crate::vectors) fn map(&self, isa: Isa, rows: &[f32], mapped: &mut [f32]) -> f64 {
        let norm = dispatch::<Base, _>(isa, Map { principal: self, rows, mapped });
        let components = (self.coordinates() - 1) as f64;
        let roundings = (self.dims.div_ceil(LANES) + 5) as f64 + components + 4.0;
        let unit = 2.0_f64.powi(-24);
        // The norm is that of the rounded point.
        3.0 * unit * norm * 1.001 * roundings * (components.sqrt() + 1.0) + 2.0_f64.powi(-140)
    }

    /// A bound of the distance of the maps of points at this distance, before rounding.
    pub(in crate::vectors) fn reach(&self, reach: f64) -> f64 {
        reach * f64::from(self.scale) * self.stretch
    }
}

/// Rows at equal steps.
fn sample(vectors: Vectors<'_>) -> impl Iterator<Item = &[f32]> {
    let rows = vectors.len().min(SAMPLE_MAX);
    (0..rows).map(move |at| vectors.row(at * (vectors.len() / rows)))
}

/// The share of pairs of mapped points whose first coordinates are within a distance.
fn share_within(mapped: &[f32], coordinates: usize, components: usize, reach: f64) -> f64 {
    let points: Vec<&[f32]> = mapped
        .chunks_exact(coordinates)
        .map(|point| &point[..components.min(coordinates)])
        .collect();
    let (mut pairs, mut within) = (0_u32, 0_u32);
    for (at, left) in points.iter().enumerate() {
        for step in 1..=COMPARED {
            // Steps have an odd length and lead far from neighbours, since neighbours may be alike.
            let right = points[(at + step * 31) % points.len()];
            let squares =
                left.iter().zip(right).map(|(left, right)| f64::from(left - right).powi(2));
            pairs += 1;
            within += u32::from(squares.sum::<f64>() <= reach * reach);
        }
    }
    f64::from(within) / f64::from(pairs.max(1))
}

/// The range of each dimension to which coordinates are clamped.
struct Range {
    low: Vec<f32>,
    high: Vec<f32>,
    /// A power of two that makes all differences in a range less than one.
    scale: f32,
}

impl Range {
    /// The range of a sample, for pairs at a distance of at most `reach`.
    #[expect(clippy::cast_possible_truncation, reason = "rounded on purpose")]
    fn of(sample: &[&[f32]], dims: usize, reach: f64) -> Self {
        let rows: Vec<&[f32]> =
            sample.iter().step_by(sample.len().div_ceil(RANGE_ROWS)).copied().collect();
        let mut medians = Vec::with_capacity(dims);
        let (mut spread, mut apart) = (0.0_f64, Vec::new());
        for dim in 0..dims {
            let mut values: Vec<f32> = rows.iter().map(|row| row[dim]).collect();
            let half = values.len() / 2;
            let median = *values.select_nth_unstable_by(half, f32::total_cmp).1;
            let distance = |value: f32| (f64::from(value) - f64::from(median)).abs();
            let mut distances: Vec<f64> = values.into_iter().map(distance).collect();
            spread = spread.max(quarter(&mut distances));
            // Each dimension adds one distance that is not zero, for points whose coordinates are
            // mostly alike.
            apart.extend(distances.into_iter().filter(|&distance| distance > 0.0).take(1));
            medians.push(median);
        }
        if spread == 0.0 && !apart.is_empty() {
            spread = quarter(&mut apart);
        }
        // Differences of float32 do not overflow.
        let most = f64::from(f32::MAX) / 4.0;
        let width = ((spread.max(reach) * RANGE_WIDTH).min(most) as f32).max(f32::MIN_POSITIVE);
        let bound = |median: f32, width: f32| (median + width).clamp(-f32::MAX, f32::MAX);
        let low = medians.iter().map(|&median| bound(median, -width)).collect();
        let high = medians.iter().map(|&median| bound(median, width)).collect();
        let exponent = (width.to_bits() >> 23).cast_signed() - 127 + 2;
        Self { low, high, scale: 2.0_f32.powi((-exponent).clamp(-126, 126)) }
    }
}

/// The number that a quarter of some numbers do not exceed.
fn quarter(numbers: &mut [f64]) -> f64 {
    let place = numbers.len() / 4;
    *numbers.select_nth_unstable_by(place, f64::total_cmp).1
}

/// The mean of rows in their range.
#[expect(clippy::cast_possible_truncation, reason = "rounded on purpose")]
fn centre(rows: &[&[f32]], low: &[f32], high: &[f32]) -> Vec<f32> {
    let mut sums = vec![0.0_f64; low.len()];
    for row in rows {
        for (((sum, &value), &low), &high) in sums.iter_mut().zip(*row).zip(low).zip(high) {
            *sum += f64::from(value.max(low).min(high));
        }
    }
    sums.iter().map(|sum| (sum / rows.len() as f64) as f32).collect()
}

/// Directions to start with: numbers that are random, but the same each time.
fn start(components: usize, dims: usize, stride: usize) -> Vec<f32> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut axes = vec![0.0; components * stride];
    for axis in axes.chunks_exact_mut(stride) {
        for value in &mut axis[..dims] {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            *value = (state >> 40) as f32 / 8_388_608.0 - 1.0;
        }
    }
    axes
}

/// The products of a vector with `N` others: each product has its own sums, so no product waits for
/// another.
#[inline(always)]
fn dots<const N: usize>(axes: &[f32], stride: usize, point: &[f32]) -> [f32; N] {
    let mut sums = [[0.0_f32; LANES]; N];
    let (point, _) = point.as_chunks::<LANES>();
    let axes: [&[[f32; LANES]]; N] =
        std::array::from_fn(|axis| axes[axis * stride..][..stride].as_chunks().0);
    for (at, point) in point.iter().enumerate() {
        for axis in 0..N {
            for lane in 0..LANES {
                sums[axis][lane] += axes[axis][at][lane] * point[lane];
            }
        }
    }
    sums.map(
        #[inline(always)]
        |mut sums| {
            for half in [8, 4, 2, 1] {
                for lane in 0..half {
                    sums[lane] += sums[lane + half];
                }
            }
            sums[0]
        },
    )
}

/// The products of a vector with all others.
#[inline(always)]
fn project(axes: &[f32], stride: usize, point: &[f32], products: &mut [f32]) {
    const AXES: usize = 4;
    let groups = axes.chunks(AXES * stride).zip(products.chunks_mut(AXES));
    for (axes, products) in groups {
        if products.len() == AXES {
            products.copy_from_slice(&dots::<AXES>(axes, stride, point));
        } else {
            for (axis, product) in axes.chunks_exact(stride).zip(products) {
                [*product] = dots::<1>(axis, stride, point);
            }
        }
    }
}

/// Adds a multiple of a vector.
#[inline(always)]
fn add(to: &mut [f32], factor: f32, from: &[f32]) {
    let ((to, _), (from, _)) = (to.as_chunks_mut::<LANES>(), from.as_chunks::<LANES>());
    for (to, from) in to.iter_mut().zip(from) {
        for lane in 0..LANES {
            to[lane] += factor * from[lane];
        }
    }
}

/// Multiplies the directions by the covariance of the sample.
struct Iterate<'a> {
    points: &'a [f32],
    axes: &'a [f32],
    next: &'a mut [f32],
    stride: usize,
}

impl<L> RunOn<L> for Iterate<'_> {
    #[inline(always)]
    fn run_on(self, _: L) {
        let mut products = vec![0.0; self.axes.len() / self.stride];
        for point in self.points.chunks_exact(self.stride) {
            project(self.axes, self.stride, point, &mut products);
            for (next, &product) in self.next.chunks_exact_mut(self.stride).zip(&products) {
                add(next, product, point);
            }
        }
    }
}

/// Makes directions orthonormal; a direction that depends on earlier directions becomes zero.
#[expect(clippy::cast_possible_truncation, reason = "rounded on purpose")]
fn orthonormalize(axes: &mut [f32], stride: usize) {
    for at in 0..axes.len() / stride {
        let (before, rest) = axes.split_at_mut(at * stride);
        let axis = &mut rest[..stride];
        let mut values: Vec<f64> = axis.iter().copied().map(f64::from).collect();
        let before_norm = values.iter().map(|value| value * value).sum::<f64>().sqrt();
        // A second pass removes the rounding errors of the first.
        for _ in 0..2 {
            for other in before.chunks_exact(stride) {
                let pairs = values.iter().zip(other);
                let along: f64 = pairs.map(|(value, &other)| value * f64::from(other)).sum();
                for (value, &other) in values.iter_mut().zip(other) {
                    *value -= along * f64::from(other);
                }
            }
        }
        let norm = values.iter().map(|value| value * value).sum::<f64>().sqrt();
        let factor = if norm > before_norm * 1e-6 { 1.0 / norm } else { 0.0 };
        for (place, value) in axis.iter_mut().zip(values) {
            *place = (value * factor) as f32;
        }
    }
}

/// A bound of the norm of the products of all pairs of directions, less the identity.
fn deviation(axes: &[f32], stride: usize) -> f64 {
    let axes = || axes.chunks_exact(stride).enumerate();
    let mut squares = 0.0;
    for (i, left) in axes() {
        for (j, right) in axes() {
            let pairs = left.iter().zip(right);
            let product: f64 = pairs.map(|(&x, &y)| f64::from(x) * f64::from(y)).sum();
            // A direction that is zero changes nothing.
            let exact = if i == j && product > 0.0 { 1.0 } else { 0.0 };
            squares += (product - exact).powi(2);
        }
    }
    // The Frobenius norm is at least the greatest eigenvalue.
    squares.sqrt() + 1e-12
}

/// Maps rows and returns the greatest norm of a centred row.
struct Map<'a> {
    principal: &'a Principal,
    rows: &'a [f32],
    mapped: &'a mut [f32],
}

impl<L> RunOn<L, f64> for Map<'_> {
    #[inline(always)]
    fn run_on(self, _: L) -> f64 {
        let Principal { dims, axes, stride, .. } = self.principal;
        let mut point = vec![0.0; *stride];
        let mut greatest = 0.0_f64;
        let mapped = self.mapped.chunks_exact_mut(self.principal.coordinates());
        for (row, mapped) in self.rows.chunks_exact(*dims).zip(mapped) {
            self.principal.place(row, &mut point);
            greatest = greatest.max(norm(&point));
            let (tail, mapped) = mapped.split_last_mut().expect("components and the rest");
            project(axes, *stride, &point, mapped);
            for (&along, axis) in mapped.iter().zip(axes.chunks_exact(*stride)) {
                add(&mut point, -along, axis);
            }
            #[expect(clippy::cast_possible_truncation, reason = "rounded on purpose")]
            let rest = norm(&point) as f32;
            *tail = rest;
        }
        greatest
    }
}

/// The norm of a vector, in float64.
#[inline(always)]
fn norm(values: &[f32]) -> f64 {
    let mut sums = [0.0_f64; LANES];
    for values in values.as_chunks::<LANES>().0 {
        for lane in 0..LANES {
            sums[lane] += f64::from(values[lane]) * f64::from(values[lane]);
        }
    }
    sums.iter().sum::<f64>().sqrt()
}
