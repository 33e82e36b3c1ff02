//! The grid of strips: cuts of the widest dimensions, and the strip of each point.
//!
//! The height of strips is such that a leaf (sixteen points of a strip) is about as long as the
//! strip is high, and that no strip is lower than the reach of epsilon. [`strips`](super) proves
//! that pairs are in the same strip or in adjacent strips.

use crate::Isa;
use crate::simd::{Base, RunOn, dispatch};
use crate::vectors::filters::Extent;
use crate::vectors::levels::LANES;
use crate::vectors::rows::{Vectors, by_dims};

/// Points of a strip, on average, at least.
const STRIP_POINTS_MIN: usize = 128;
/// Maximum points of a strip. More points do not fit the cache, in which a strip is ordered.
pub(in crate::vectors) const STRIP_POINTS_MAX: u32 = 1 << 17;
/// Maximum number of strips: a pass over the points writes to all strips.
const STRIPS_MAX: usize = 1 << 12;
/// Height of a strip, at least, in the reach of epsilon.
const HEIGHT_MIN: f64 = 1.0 + 1.0 / (1_u64 << 20) as f64;
/// Number of strips of a search: a strip, and the adjacent strips after it.
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
pub(in crate::vectors) struct Grid {
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
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 2^12")]
        let strips = strips.max(1.0) as u32;
        let side = f64::from(extent.high[dim]) - low;
        let scale = if strips > 1 { f64::from(strips) / side } else { 0.0 };
        Self { dim, low, scale, strips }
    }

    /// The strips of the coordinates of some rows.
    #[inline(always)]
    fn find<const N: usize>(&self, rows: &[f32], dims: usize) -> [u32; N] {
        std::array::from_fn(
            #[inline(always)]
            |row| {
                let value = f64::from(rows[row * dims + self.dim]);
                nearest((value - self.low) * self.scale).min(self.strips - 1)
            },
        )
    }
}

impl Grid {
    /// A grid for `len` points of an extent, at least one, of at most three dimensions.
    pub(in crate::vectors) fn new(extent: &Extent, reach: f64, len: usize) -> Self {
        let side = |dim: usize| f64::from(extent.high[dim]) - f64::from(extent.low[dim]);
        let mut dims: Vec<usize> = (0..extent.low.len()).collect();
        dims.sort_by(|&one, &other| side(other).total_cmp(&side(one)));
        let most = (len / STRIP_POINTS_MIN).clamp(1, STRIPS_MAX) as f64;
        // The edge of a leaf that is a cube, unless that makes too many strips.
        let leaves = len.div_ceil(LANES) as f64;
        let volume = dims.iter().map(|&dim| side(dim)).product::<f64>();
        let edge = (volume / leaves).powf(1.0 / dims.len() as f64);
        let cut = &dims[..dims.len().saturating_sub(1).max(1)];
        let area = cut.iter().map(|&dim| side(dim)).product::<f64>();
        let edge = edge.max((area / most).powf(1.0 / cut.len() as f64));
        let height = edge.max(reach * HEIGHT_MIN);
        let strips = |dim, most: f64| {
            let strips = if side(dim) > 0.0 { (side(dim) / height).floor() } else { 1.0 };
            strips.min(most).max(1.0)
        };
        let second = cut.get(1).map_or(1.0, |&dim| strips(dim, most));
        let first = strips(dims[0], (most / second).floor());
        let axis = |at: usize, strips| Axis::new(extent, *cut.get(at).unwrap_or(&dims[0]), strips);
        Self { axes: [axis(0, first), axis(1, second)], along: dims[dims.len() - 1] }
    }

    /// The dimension along which points of a strip are ordered.
    pub(super) fn along(&self) -> usize {
        self.along
    }

    /// The dimensions that are cut; the same dimension twice if only one is cut.
    pub(super) fn across(&self) -> [usize; 2] {
        self.axes.map(|axis| axis.dim)
    }

    /// Number of strips.
    fn strips(&self) -> usize {
        self.axes.iter().map(|axis| axis.strips as usize).product()
    }

    /// Finds the strip of each row, and returns the number of rows of each strip.
    pub(in crate::vectors) fn find(
        &self,
        isa: Isa,
        vectors: Vectors<'_>,
        strips: &mut [u16],
    ) -> Vec<u32> {
        let mut counts = vec![0; self.strips()];
        dispatch::<Base, _>(isa, FindStrips { vectors, grid: self, strips, counts: &mut counts });
        counts
    }

    /// The strips of some rows.
    #[inline(always)]
    fn strips_of<const N: usize>(&self, rows: &[f32], dims: usize) -> [u32; N] {
        let [first, second] = &self.axes;
        let mut strips = first.find(rows, dims);
        if second.strips > 1 {
            for (strip, column) in strips.iter_mut().zip(second.find::<N>(rows, dims)) {
                *strip = *strip * second.strips + column;
            }
        }
        strips
    }

    /// Whether each strip has few enough points to be ordered.
    pub(in crate::vectors) fn is_fine(counts: &[u32]) -> bool {
        counts.iter().all(|&count| count <= STRIP_POINTS_MAX)
    }

    /// The strip and the adjacent strips after it.
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

impl<L> RunOn<L> for FindStrips<'_> {
    #[inline(always)]
    fn run_on(self, _: L) {
        by_dims!(self.vectors.dims(), find_strips(self));
    }
}

#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "at most 2^12 strips")]
fn find_strips<const D: usize>(call: FindStrips<'_>) {
    let FindStrips { vectors, grid, strips, counts } = call;
    let dims = if D == 0 { vectors.dims() } else { D };
    let (lines, rest) = strips.as_chunks_mut();
    let blocks = vectors.values().chunks_exact(LANES * dims);
    let last = blocks.remainder().chunks_exact(dims);
    for (line, rows) in lines.iter_mut().zip(blocks) {
        let line: &mut [u16; LANES] = line;
        *line = grid.strips_of(rows, dims).map(|strip| strip as u16);
        for &strip in &*line {
            counts[usize::from(strip)] += 1;
        }
    }
    for (strip, row) in rest.iter_mut().zip(last) {
        let [found] = grid.strips_of(row, dims);
        *strip = found as u16;
        counts[found as usize] += 1;
    }
}
