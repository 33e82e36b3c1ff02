//! A block of points in kd order, with boxes over them.

mod boxes;
mod order;
mod select;
mod tree;

pub(super) use self::boxes::{Corners, Level};
pub(super) use self::order::{NO_ROW, Run, positions_of};
pub(super) use self::tree::Tree;

use std::ops::Range;

use super::epsilon::Epsilon;
use super::filters::{Form, Limits, Points, Principal};
use super::levels::{LANES, Line, as_u32};
use super::rows::Vectors;
use super::strips::Strips;
use crate::Isa;

/// Maximum dimensions of points that are filtered as they are.
pub(super) const PLAIN_DIMS_MAX: usize = 16;
/// Maximum leaves of a part.
pub(super) const PART_LEAVES: usize = 16;

/// An immutable block of points that is joined with itself and with other blocks, by one epsilon.
///
/// A directory owns its points, in an order of its own; a [`Join`](super::Join) names points by
/// their rows.
///
/// # Cost
///
/// The construction takes about 120 ns for a point of 8 dimensions, and 4 us for a point of 384.
/// Memory for each point: 4 B a dimension for coordinates, 2 B a dimension (4 B if epsilon is small
/// against the extent, and at most 32 dimensions) in the form that filters compare, an eighth of
/// that for boxes, and 4 B for its row; 10 B more during the construction.
#[derive(Clone, Debug)]
pub struct Directory {
    pub(super) dims: usize,
    pub(super) epsilon: Epsilon,
    /// The map from points to the coordinates that filters compare, if the two differ, and a bound
    /// on the distance by which rounding moved a point.
    pub(super) map: Option<(Principal, f64)>,
    /// Coordinates that filters compare, their form, and its words.
    pub(super) filter_dims: usize,
    pub(super) form: Form,
    pub(super) words: usize,
    /// Whether filters know the points exactly.
    pub(super) is_exact: bool,
    /// Number of points.
    len: usize,
    /// The row in the input of each position, or [`NO_ROW`](self::order::NO_ROW).
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
    /// Strips, if the directory has strips in place of boxes.
    pub(super) strips: Option<Strips>,
}

impl Directory {
    /// Maximum number of points.
    pub const POINTS_MAX: usize = 1 << 27;
    /// Maximum number of dimensions: the maximum of all vectors.
    pub const DIMS_MAX: usize = Vectors::DIMS_MAX;

    /// A directory without points, whose form is chosen for a reach.
    pub(super) fn empty(
        dims: usize,
        epsilon: Epsilon,
        map: Option<(Principal, f64)>,
        filter_dims: usize,
        form: impl FnOnce(f64) -> Form,
    ) -> Self {
        let form = form(reach(map.as_ref(), epsilon));
        Self {
            dims,
            epsilon,
            filter_dims,
            words: form.words(filter_dims),
            form,
            is_exact: map.is_none(),
            map,
            len: 0,
            order: Vec::new(),
            rows: Vec::new(),
            buckets: Vec::new(),
            before: Vec::new(),
            tiles: Vec::new(),
            levels: Vec::new(),
            strips: None,
        }
    }

    /// Sets the points, by the first leaf of each bucket and the number of leaves.
    pub(super) fn set_points(
        &mut self,
        len: usize,
        order: Vec<u32>,
        rows: Vec<f32>,
        buckets: Vec<u32>,
    ) {
        self.before = points_before(&buckets, &order);
        (self.len, self.order, self.rows, self.buckets) = (len, order, rows, buckets);
    }

    /// Sets the boxes of leaves, and adds the boxes over them, level by level, until there is one
    /// node.
    pub(super) fn add_levels(&mut self, isa: Isa, leaves: Level, mut corners: Corners) {
        let limits = self.limits(0.0);
        // A bucket is one node of the second level; above, sixteen nodes are one.
        let group = |&leaf: &u32| leaves.firsts.partition_point(|&first| first < leaf);
        let mut firsts: Vec<u32> = self.buckets.iter().map(|leaf| as_u32(group(leaf))).collect();
        let mut nodes = leaves.nodes();
        self.levels.push(leaves);
        while nodes > 1 {
            let above = corners.over(&firsts);
            let level = Level::over(isa, &self.form, limits, &corners, firsts);
            nodes = level.nodes();
            self.levels.push(level);
            corners = above;
            firsts = (0..as_u32(nodes)).step_by(LANES).chain([as_u32(nodes)]).collect();
        }
    }

    /// The limits of filters for points that the map moved by at most `moved`.
    pub(super) fn limits(&self, moved: f64) -> Limits {
        let (reach, core) = (reach(self.map.as_ref(), self.epsilon) + moved, self.epsilon.core());
        self.form.limits(self.filter_dims, reach, core)
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
        match &self.strips {
            Some(strips) => strips.leaves().div_ceil(as_u32(PART_LEAVES)) as usize,
            None => self.levels.first().map_or(0, Level::nodes),
        }
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
            + self.strips.as_ref().map_or(0, Strips::bytes)
    }
}

/// A bound on the distance of a mapped point of a directory to the exact map of a partner of the
/// point.
fn reach(map: Option<&(Principal, f64)>, epsilon: Epsilon) -> f64 {
    match map {
        Some((principal, moved)) => principal.reach(epsilon.reach()) + moved,
        None => epsilon.reach(),
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

/// The first leaf of each group of sixteen leaves (fewer at the end of a bucket), and the number of
/// leaves.
pub(super) fn firsts_of_groups(buckets: &[u32], leaves: u32) -> Vec<u32> {
    let ends = buckets.iter().copied().skip(1).chain([leaves]);
    let groups = buckets.iter().zip(ends).flat_map(|(&first, end)| (first..end).step_by(LANES));
    groups.chain([leaves]).collect()
}
