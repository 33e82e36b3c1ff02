//! A block of points in kd order, with boxes over them.

use std::ops::Range;

use super::boxes::{Corners, Level};
use super::candidates::Points;
use super::epsilon::Epsilon;
use super::form::{Extent, Form, Limits};
use super::lanes::{LANES, Line, as_u32};
use super::order::{NO_ROW, Ordered, kd_order};
use super::rows::Vectors;
use crate::Isa;

/// Maximum leaves of a part.
pub(super) const PART_LEAVES: usize = 16;

/// An immutable block of points that is joined with itself and with other blocks, by one epsilon.
///
/// It owns its points, in an order of its own; a [`Join`](super::Join) names them by their rows.
///
/// # Cost
///
/// About 60 ns a point of 8 dimensions to build. Memory for each point: 4 B a dimension for
/// coordinates, 2 B a dimension (4 B with a small epsilon) in the form that filters compare, an
/// eighth of that for boxes, and 4 B for its row.
#[derive(Clone, Debug)]
pub struct Directory {
    pub(super) dims: usize,
    pub(super) epsilon: Epsilon,
    pub(super) form: Form,
    pub(super) limits: Limits,
    /// Whether all points are exact in their form.
    pub(super) is_exact: bool,
    /// Words of a point.
    pub(super) words: usize,
    /// Number of points.
    len: usize,
    /// The row in the input of each position, or [`NO_ROW`](super::order::NO_ROW).
    pub(super) order: Vec<u32>,
    /// The coordinates of each position.
    pub(super) rows: Vec<f32>,
    /// The first leaf of each bucket, and the number of leaves.
    buckets: Vec<u32>,
    /// The points before each bucket, and the number of points.
    before: Vec<u32>,
    /// The stored coordinates: for each leaf of sixteen points, a line a word.
    pub(super) tiles: Vec<Line>,
    /// Boxes: over leaves first, one node last.
    pub(super) levels: Vec<Level>,
}

impl Directory {
    /// Maximum number of points.
    pub const POINTS_MAX: usize = 1 << 27;
    /// Maximum number of dimensions.
    pub const DIMS_MAX: usize = 32;

    /// Orders points and computes their boxes.
    ///
    /// # Panics
    ///
    /// If `isa` is not available, or there are more than [`Self::POINTS_MAX`] points or
    /// [`Self::DIMS_MAX`] dimensions.
    #[must_use]
    pub fn new(isa: Isa, vectors: Vectors<'_>, epsilon: Epsilon) -> Self {
        let form = Form::choose(&Extent::of(vectors.values(), vectors.dims()), epsilon.reach());
        Self::with_form(isa, vectors, epsilon, form)
    }

    /// As [`Self::new`], with this form.
    pub(super) fn with_form(isa: Isa, vectors: Vectors<'_>, epsilon: Epsilon, form: Form) -> Self {
        let (dims, len) = (vectors.dims(), vectors.len());
        assert!(dims <= Self::DIMS_MAX, "{dims} dimensions of at most {}", Self::DIMS_MAX);
        assert!(len <= Self::POINTS_MAX, "{len} points of at most {}", Self::POINTS_MAX);
        let Ordered { order, rows, firsts: buckets } = kd_order(isa, vectors);
        let before = points_before(&buckets, &order);
        let words = form.words(dims);
        let mut tiles = vec![Line([0; LANES]); order.len() / LANES * words];
        let is_exact = form.store(isa, &rows, dims, words, &mut tiles);
        let limits = form.limits(dims, epsilon.reach(), epsilon.core());
        let mut levels: Vec<Level> = Vec::new();
        let mut corners = Corners::of_leaves(isa, dims, &rows);
        let mut firsts = firsts_of_groups(&buckets);
        while !vectors.is_empty() {
            let next = corners.over(&firsts);
            levels.push(Level::over(isa, &form, limits, &corners, firsts));
            if levels[levels.len() - 1].nodes() == 1 {
                break;
            }
            corners = next;
            // A bucket is one node of the second level; above, sixteen nodes are one.
            firsts = if levels.len() == 1 {
                let of_bucket =
                    |&leaf: &u32| as_u32(levels[0].firsts.partition_point(|&first| first < leaf));
                buckets.iter().map(of_bucket).collect()
            } else {
                let nodes = as_u32(levels[levels.len() - 1].nodes());
                (0..nodes).step_by(LANES).chain([nodes]).collect()
            };
        }
        Self {
            dims,
            epsilon,
            form,
            limits,
            is_exact,
            words,
            len,
            order,
            rows,
            buckets,
            before,
            tiles,
            levels,
        }
    }

    /// Number of points.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no points.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of parts into which a join that looks up these points is divided.
    #[must_use]
    pub fn parts(&self) -> usize {
        self.levels.first().map_or(0, Level::nodes)
    }

    /// The positions of a part.
    pub(super) fn positions(&self, part: usize) -> Range<usize> {
        let firsts = &self.levels[0].firsts;
        firsts[part] as usize * LANES..firsts[part + 1] as usize * LANES
    }

    /// The number of points among the first `leaves` leaves.
    fn points_of(&self, leaves: u32) -> u32 {
        let bucket = self.buckets.partition_point(|&first| first < leaves).max(1) - 1;
        let points = self.before[bucket] + (leaves - self.buckets[bucket]) * as_u32(LANES);
        points.min(self.before[bucket + 1])
    }

    /// The leaves of a child of a level, and the number of their points.
    pub(super) fn leaves_of(&self, level: usize, child: u32) -> (Range<u32>, u32) {
        let lower = self.levels[..level].iter().rev();
        let first =
            |child: u32| lower.clone().fold(child, |node, level| level.firsts[node as usize]);
        let leaves = first(child)..first(child + 1);
        let points = self.points_of(leaves.end) - self.points_of(leaves.start);
        (leaves, points)
    }

    /// The points in the order of positions.
    pub(super) fn points(&self) -> Points<'_> {
        Points { rows: &self.rows, order: &self.order }
    }

    /// Memory in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let levels: usize = self.levels.iter().map(Level::bytes).sum();
        4 * (self.order.capacity() + self.rows.capacity() + self.buckets.len() + self.before.len())
            + size_of::<Line>() * self.tiles.len()
            + levels
    }
}

/// The points before each bucket, and the number of points.
fn points_before(buckets: &[u32], order: &[u32]) -> Vec<u32> {
    let mut before = vec![0];
    let mut points = 0;
    for leaves in buckets.windows(2) {
        let order = &order[leaves[0] as usize * LANES..leaves[1] as usize * LANES];
        points += as_u32(order.partition_point(|&row| row != NO_ROW));
        before.push(points);
    }
    before
}

/// The first leaf of each group of sixteen leaves, or of the rest of a bucket, and their number.
fn firsts_of_groups(buckets: &[u32]) -> Vec<u32> {
    let groups = buckets.windows(2).flat_map(|leaves| (leaves[0]..leaves[1]).step_by(LANES));
    groups.chain(buckets.last().copied()).collect()
}
