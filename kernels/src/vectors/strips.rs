//! Strips: an order of points of at most three dimensions that are only joined with themselves.
//!
//! A grid cuts the widest dimensions (one of one or two, two of three) into strips that are at
//! least epsilon high. The points of a strip are ordered along the dimension that is left, sixteen
//! a leaf, and the partners of a leaf are in few leaves of its own strip and of those beside it:
//!
//! ```text
//!                        points of a strip come one after the other
//! strip 2    [ leaf ][leaf][   leaf   ][ leaf ]
//! strip 1  [ leaf ][ LEAF ][leaf][  leaf  ]         windows of LEAF: in its own strip itself
//!            ·····┌────────────┐·····               and later leaves, above it the leaves
//! strip 2    [ leaf ][leaf][   leaf   ][ leaf ]     that are within epsilon along the strip
//! ```
//!
//! Strips before have this one in their windows, so each pair of leaves is compared once. Unlike a
//! [`Tree`](super::tree::Tree) with boxes this needs one pass to find the strips, one to move the
//! points, and one to order each strip in the cache; no test but those of points with points.
//!
//! **No pair is lost.** Let a pair join: its coordinates differ by at most `r` = the reach of
//! epsilon in each dimension. *Strips:* `p(x) = (x - low) * scale` is computed in float64; it is
//! below 2^17, and two roundings change it by less than 2^-35. A strip is at least
//! `r * (1 + 2^-20)` high, so the real values differ by less than `1 - 2^-21`, the computed ones by
//! less than one, and the strips, which are their whole parts, by at most one. The last strip also
//! takes what is rounded over its end, which brings strips no farther apart. *Windows:* a leaf has
//! the least coordinate `low` of its points and of all later ones of its strip, and the greatest
//! one `high` of its points and of all earlier ones. If a point of leaf `L` joins one of leaf `M`,
//! `low(M) - high(L) <= r` and `low(L) - high(M) <= r`. Differences are rounded by a part of 2^-53,
//! for which the reach has room. Both numbers ascend in a strip, whatever its order is, so windows
//! are ranges of leaves, which binary searches find. A bad order makes windows longer, no more.
//!
//! **No time is lost.** Before the search, the leaves of all windows are counted. If they are more
//! than [`WINDOW_MAX`] for each leaf, as where points that are far away make strips high or many
//! points are equal, the points are put into kd order after all.

use std::ops::Range;

use super::form::Extent;
use super::lanes::{LANES, as_u32};
use super::rows::{Vectors, by_dims};
use crate::Isa;
use crate::simd::{Base, Call, RunOn, dispatch};

/// Maximum dimensions of points in strips.
pub(super) const STRIP_DIMS_MAX: usize = 3;
/// Points of a strip, on average, at least.
const STRIP_POINTS: usize = 64;
/// Maximum points of a strip: more are not ordered in the cache, and are a part of the points that
/// strips do not tell apart.
const STRIP_POINTS_MAX: u32 = 1 << 15;
/// Maximum number of strips.
const STRIPS_MAX: usize = 1 << 16;
/// Leaves of the windows of a leaf, on average, up to which strips are the faster order.
const WINDOW_MAX: usize = 24;
/// Strips with windows of a leaf: its own one and those beside it.
pub(super) const WINDOWS: usize = 5;
/// Height of a strip, at least, in the reach of epsilon.
const HEIGHT_MIN: f64 = 1.0 + 1.0 / (1_u64 << 20) as f64;

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
    #[expect(clippy::cast_possible_truncation, reason = "below 2^17")]
    fn find(&self, value: f32) -> u32 {
        let place = (f64::from(value) - self.low) * self.scale;
        (place as i32).cast_unsigned().min(self.strips - 1)
    }
}

impl Grid {
    /// A grid for `len` points of an extent, at least one, of at most [`STRIP_DIMS_MAX`]
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

    /// Whether each strip has few enough points to be ordered.
    pub(super) fn is_fine(counts: &[u32]) -> bool {
        counts.iter().all(|&count| count <= STRIP_POINTS_MAX)
    }

    /// The strip and the ones after it that are beside it.
    fn neighbours(&self, strip: u32) -> [Option<u32>; WINDOWS] {
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
    let [first, second] = grid.axes;
    let rows = vectors.values().chunks_exact(dims);
    if second.strips == 1 {
        for (row, strip) in rows.zip(&mut *strips) {
            *strip = first.find(row[first.dim]) as u16;
        }
    } else {
        for (row, strip) in rows.zip(&mut *strips) {
            let column = second.find(row[second.dim]);
            *strip = (first.find(row[first.dim]) * second.strips + column) as u16;
        }
    }
    for &strip in &*strips {
        counts[usize::from(strip)] += 1;
    }
}

/// Memory for the order of a strip.
#[derive(Default)]
pub(super) struct StripScratch {
    cells: Vec<u16>,
    ends: Vec<u32>,
    order: Vec<u32>,
    rows: Vec<f32>,
}

/// Orders the points of a strip along it.
struct OrderStrip<'a> {
    dims: usize,
    along: usize,
    order: &'a mut [u32],
    rows: &'a mut [f32],
    scratch: &'a mut StripScratch,
}

impl Call for OrderStrip<'_> {
    type Output = ();
}

impl<L> RunOn<L> for OrderStrip<'_> {
    #[inline(always)]
    fn run_on(self, _: L) {
        by_dims!(self.dims, order_strip(self));
    }
}

/// Orders points by cells of their strip, about two a point: points of one cell have any order.
#[inline(always)]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a number below that of the cells, at most 2^16"
)]
fn order_strip<const D: usize>(call: OrderStrip<'_>) {
    let OrderStrip { dims, along, order, rows, scratch } = call;
    let dims = if D == 0 { dims } else { D };
    let (mut low, mut high) = (f32::MAX, f32::MIN);
    for row in rows.chunks_exact(dims) {
        let value = row[along];
        low = if value < low { value } else { low };
        high = if value > high { value } else { high };
    }
    let cells = 2 * order.len().next_power_of_two();
    let low = f64::from(low);
    let side = f64::from(high) - low;
    let scale = if side > 0.0 { (cells - 1) as f64 / side } else { 0.0 };
    let StripScratch { cells: found, ends, order: from, rows: from_rows } = scratch;
    ends.clear();
    ends.resize(cells, 0);
    found.clear();
    found.extend(rows.chunks_exact(dims).map(
        #[inline(always)]
        |row| ((f64::from(row[along]) - low) * scale) as i32 as u16,
    ));
    for &cell in &*found {
        ends[usize::from(cell)] += 1;
    }
    let mut sum = 0;
    for end in &mut *ends {
        sum += std::mem::replace(end, sum);
    }
    from.clear();
    from.extend_from_slice(order);
    from_rows.clear();
    from_rows.extend_from_slice(rows);
    let points = from.iter().zip(from_rows.chunks_exact(dims));
    for ((&row, values), &cell) in points.zip(&*found) {
        let end = &mut ends[usize::from(cell)];
        order[*end as usize] = row;
        rows[*end as usize * dims..][..dims].copy_from_slice(values);
        *end += 1;
    }
}

/// Orders the points of a strip; `rows` has whole leaves, of which the last one is filled up.
/// Appends the ranges of its leaves.
pub(super) fn order_points(
    isa: Isa,
    grid: &Grid,
    order: &mut [u32],
    rows: &mut [f32],
    ranges: &mut Vec<[f32; 2]>,
    scratch: &mut StripScratch,
) {
    let count = order.len();
    let dims = rows.len() / count.next_multiple_of(LANES);
    let along = grid.along;
    let points = &mut rows[..count * dims];
    dispatch::<Base, _>(isa, OrderStrip { dims, along, order, rows: points, scratch });
    for position in count..rows.len() / dims {
        rows.copy_within((count - 1) * dims..count * dims, position * dims);
    }
    let first = ranges.len();
    let mut greatest = f32::MIN;
    for leaf in rows.chunks_exact(LANES * dims) {
        let mut least = f32::MAX;
        for row in leaf.chunks_exact(dims) {
            least = if row[along] < least { row[along] } else { least };
            greatest = if row[along] > greatest { row[along] } else { greatest };
        }
        ranges.push([least, greatest]);
    }
    let mut least = f32::MAX;
    for [low, _] in ranges[first..].iter_mut().rev() {
        least = least.min(*low);
        *low = least;
    }
}

/// The strips of the points of a directory.
#[derive(Clone, Debug)]
pub(super) struct Strips {
    grid: Grid,
    /// The distance of points of a pair along a strip, at most.
    reach: f64,
    /// The first leaf of each strip, and the number of leaves.
    firsts: Vec<u32>,
    /// The points of each strip.
    counts: Vec<u32>,
    /// For each leaf the least coordinate along its strip of its points and of later ones, and the
    /// greatest one of its points and of earlier ones.
    ranges: Vec<[f32; 2]>,
}

impl Strips {
    /// Strips with points; none if their windows are too long.
    pub(super) fn new(
        grid: &Grid,
        reach: f64,
        firsts: Vec<u32>,
        counts: &[u32],
        ranges: Vec<[f32; 2]>,
    ) -> Option<Self> {
        let strips =
            Self { grid: grid.clone(), reach, firsts, counts: counts.to_vec(), ranges };
        let limit = strips.leaves() as usize * WINDOW_MAX;
        (strips.has_windows(limit)).then_some(strips)
    }

    /// Number of leaves.
    pub(super) fn leaves(&self) -> u32 {
        as_u32(self.ranges.len())
    }

    /// The leaves of a strip.
    fn leaves_of(&self, strip: u32) -> Range<u32> {
        self.firsts[strip as usize]..self.firsts[strip as usize + 1]
    }

    /// Whether all windows together have at most `limit` leaves.
    fn has_windows(&self, limit: usize) -> bool {
        let strips = 0..as_u32(self.counts.len());
        // An upper limit, all leaves of the strips with windows, often tells.
        let beside = |strip| -> usize {
            let strips = self.grid.neighbours(strip).into_iter().flatten();
            strips.map(|strip| self.leaves_of(strip).len()).sum()
        };
        let product = |strip| self.leaves_of(strip).len() * beside(strip);
        if strips.clone().map(product).sum::<usize>() <= limit {
            return true;
        }
        let mut sum = 0;
        for strip in strips {
            for leaf in self.leaves_of(strip) {
                sum += self.windows(strip, leaf).iter().map(|(leaves, _)| leaves.len()).sum::<usize>();
            }
            if sum > limit {
                return false;
            }
        }
        true
    }

    /// The strip of a leaf.
    pub(super) fn strip_of(&self, leaf: u32) -> u32 {
        as_u32(self.firsts.partition_point(|&first| first <= leaf) - 1)
    }

    /// Whether a leaf is the first one of the strip after `strip`, or of a later one.
    pub(super) fn is_after(&self, strip: u32, leaf: u32) -> bool {
        leaf >= self.firsts[strip as usize + 1]
    }

    /// Number of points of a leaf of a strip.
    pub(super) fn points(&self, strip: u32, leaf: u32) -> u32 {
        let before = (leaf - self.firsts[strip as usize]) * as_u32(LANES);
        (self.counts[strip as usize] - before).min(as_u32(LANES))
    }

    /// The leaves that may have partners of the points of a leaf, with their strips; of its own
    /// strip, itself and later ones.
    pub(super) fn windows(&self, strip: u32, leaf: u32) -> [(Range<u32>, u32); WINDOWS] {
        let [low, high] = self.ranges[leaf as usize].map(f64::from);
        self.grid.neighbours(strip).map(|neighbour| {
            let Some(neighbour) = neighbour else { return (0..0, 0) };
            let leaves = self.leaves_of(neighbour);
            let mut begin = leaf;
            if neighbour != strip {
                let ranges = &self.ranges[leaves.start as usize..leaves.end as usize];
                let is_before = |range: &[f32; 2]| low - f64::from(range[1]) > self.reach;
                begin = leaves.start + as_u32(ranges.partition_point(is_before));
            }
            let ranges = &self.ranges[begin as usize..leaves.end as usize];
            let is_within = |range: &[f32; 2]| f64::from(range[0]) - high <= self.reach;
            (begin..begin + as_u32(ranges.partition_point(is_within)), neighbour)
        })
    }

    /// Memory in bytes.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&self.firsts[..]) + size_of_val(&self.counts[..]) + size_of_val(&self.ranges[..])
    }
}
