//! The grid of strips: cuts of the widest dimensions, and the strip of each point.
//!
//! A number of strips is such that they have some tens of points on average, and such that none is
//! lower than epsilon reaches; that of two dimensions are about as high as wide. The proof that
//! pairs are in strips beside each other is in [`strips`](super::strips).

use super::form::Extent;
use super::rows::{Vectors, by_dims};
use crate::Isa;
use crate::simd::{Base, Call, RunOn, dispatch};

/// Points of a strip, on average, at least.
const STRIP_POINTS: usize = 64;
/// Maximum points of a strip: more are not ordered in the cache, and are a part of the points that
/// strips do not tell apart.
const STRIP_POINTS_MAX: u32 = 1 << 15;
/// Maximum number of strips.
const STRIPS_MAX: usize = 1 << 16;
/// Height of a strip, at least, in the reach of epsilon.
const HEIGHT_MIN: f64 = 1.0 + 1.0 / (1_u64 << 20) as f64;
/// A strip and those after it that are beside it.
pub(super) const NEIGHBOURS: usize = 5;

/// A dimension that is cut.
#[derive(Clone, Copy, Debug)]
struct Axis {
    dim: usize,
    low: f64,
    /// Strips of a distance of one.
    scale: f64,
    strips: u32,
}

/// The cuts of space into strips.
#[derive(Clone, Debug)]
pub(super) struct Grid {
    axes: [Axis; 2],
    /// The dimension along which points of a strip are ordered.
    along: usize,
}

/// The nearest whole number of a number from 0 to 2^31. Unlike a conversion, an addition needs no
/// test of numbers that do not fit: the lower bits of a float64 from 2^52 on are a whole number.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the lower bits")]
pub(super) fn nearest(number: f64) -> u32 {
    const WHOLE: f64 = (1_u64 << 52) as f64;
    (number + WHOLE).to_bits() as u32
}

impl Axis {
    fn new(extent: &Extent, dim: usize, strips: f64) -> Self {
        let low = f64::from(extent.low[dim]);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 2^16")]
        let strips = strips.max(1.0) as u32;
        let side = f64::from(extent.high[dim]) - low;
        let scale = if strips > 1 { f64::from(strips) / side } else { 0.0 };
        Self { dim, low, scale, strips }
    }

    /// The strip of a coordinate.
    #[inline(always)]
    fn find(&self, value: f32) -> u32 {
        nearest((f64::from(value) - self.low) * self.scale).min(self.strips - 1)
    }
}

impl Grid {
    /// A grid for `len` points of an extent, at least one, of at most three
    /// dimensions.
    pub(super) fn new(extent: &Extent, reach: f64, len: usize) -> Self {
        let height = reach * HEIGHT_MIN;
        let most = (len / STRIP_POINTS).clamp(1, STRIPS_MAX) as f64;
        let side = |dim: usize| f64::from(extent.high[dim]) - f64::from(extent.low[dim]);
        // Strips of a side. A quotient of two zeros is no number, which the minimum leaves out.
        let strips = |dim, height: f64, most: f64| (side(dim) / height).floor().min(most).max(1.0);
        let mut dims: Vec<usize> = (0..extent.low.len()).collect();
        dims.sort_by(|&one, &other| side(other).total_cmp(&side(one)));
        let (first, second) = match dims[..] {
            [first, second, _] => {
                // About as high as wide.
                let square = (side(first) * side(second) / most).sqrt();
                let strips = strips(second, height.max(square), most);
                (first, Axis::new(extent, second, if side(second) > 0.0 { strips } else { 1.0 }))
            }
            _ => (dims[0], Axis::new(extent, dims[0], 1.0)),
        };
        let most = (most / f64::from(second.strips)).floor();
        let strips = if side(first) > 0.0 { strips(first, height, most) } else { 1.0 };
        let along = dims[dims.len() - 1];
        Self { axes: [Axis::new(extent, first, strips), second], along }
    }

    /// The dimension along which points of a strip are ordered.
    pub(super) fn along(&self) -> usize {
        self.along
    }

    /// Number of strips.
    fn strips(&self) -> usize {
        self.axes.iter().map(|axis| axis.strips as usize).product()
    }

    /// Finds the strip of each row, and returns the number of rows of each strip.
    pub(super) fn find(&self, isa: Isa, vectors: Vectors<'_>, strips: &mut [u16]) -> Vec<u32> {
        let mut counts = vec![0; self.strips()];
        dispatch::<Base, _>(isa, FindStrips { vectors, grid: self, strips, counts: &mut counts });
        counts
    }

    /// The strip of a point.
    #[inline(always)]
    pub(super) fn strip_of(&self, row: &[f32]) -> u32 {
        let [first, second] = &self.axes;
        first.find(row[first.dim]) * second.strips + second.find(row[second.dim])
    }

    /// Whether each strip has few enough points to be ordered.
    pub(super) fn is_fine(counts: &[u32]) -> bool {
        counts.iter().all(|&count| count <= STRIP_POINTS_MAX)
    }

    /// The strip and the ones after it that are beside it.
    pub(super) fn neighbours(&self, strip: u32) -> [Option<u32>; NEIGHBOURS] {
        let [rows, columns] = self.axes.map(|axis| axis.strips);
        let (row, column) = (strip / columns, strip % columns);
        let (has_above, has_right) = (row + 1 < rows, column + 1 < columns);
        [
            Some(strip),
            has_right.then(|| strip + 1),
            (has_above && column > 0).then(|| strip + columns - 1),
            has_above.then(|| strip + columns),
            (has_above && has_right).then(|| strip + columns + 1),
        ]
    }
}

/// Finds the strips of rows, and counts the rows of each.
struct FindStrips<'a> {
    vectors: Vectors<'a>,
    grid: &'a Grid,
    strips: &'a mut [u16],
    counts: &'a mut [u32],
}

impl Call for FindStrips<'_> {
    type Output = ();
}

impl<L> RunOn<L> for FindStrips<'_> {
    #[inline(always)]
    fn run_on(self, _: L) {
        by_dims!(self.vectors.dims(), find_strips(self));
    }
}

#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "at most 2^16 strips")]
fn find_strips<const D: usize>(call: FindStrips<'_>) {
    let FindStrips { vectors, grid, strips, counts } = call;
    let dims = if D == 0 { vectors.dims() } else { D };
    for (row, strip) in vectors.values().chunks_exact(dims).zip(&mut *strips) {
        *strip = grid.strip_of(row) as u16;
    }
    for &strip in &*strips {
        counts[usize::from(strip)] += 1;
    }
}
