//! A block of points in kd order, with boxes over them.

use std::ops::Range;

use super::boxes::{Corners, Level};
use super::candidates::Points;
use super::epsilon::Epsilon;
use super::form::{Extent, Form, Limits};
use super::lanes::{LANES, Line, as_u32};
use super::order::{NO_ROW, Ordered, kd_order};
use super::principal::Principal;
use super::rows::Vectors;
use crate::Isa;

/// Maximum dimensions of points that are filtered as they are.
pub(super) const PLAIN_DIMS_MAX: usize = 16;
/// Maximum leaves of a part.
pub(super) const PART_LEAVES: usize = 16;

/// An immutable block of points that is joined with itself and with other blocks, by one epsilon.
///
/// It owns its points, in an order of its own; a [`Join`](super::Join) names them by their rows.
///
/// # Cost
///
/// About 120 ns a point of 8 dimensions to build, and 4 us of 384. Memory for each point: 4 B a
/// dimension for coordinates, 2 B a dimension (4 B if epsilon is small against the extent, and at
/// most 32 dimensions) in the form that filters compare, an eighth of that for boxes, and 4 B for
/// its row; 10 B more while it is built.
#[derive(Clone, Debug)]
pub struct Directory {
    pub(super) dims: usize,
    pub(super) epsilon: Epsilon,
    /// The map to the coordinates that filters compare, if they are not those of the points, and a
    /// bound of the distance that it moved a point by.
    pub(super) map: Option<(Principal, f64)>,
    /// Coordinates that filters compare, their form, and its words.
    filter_dims: usize,
    pub(super) form: Form,
    pub(super) words: usize,
    /// Whether filters know the points exactly.
    pub(super) is_exact: bool,
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
    /// Maximum number of dimensions: that of all vectors.
    pub const DIMS_MAX: usize = Vectors::DIMS_MAX;
    /// Orders points and computes their boxes.
    ///
    /// # Panics
    ///
    /// If `isa` is not available, or there are more than [`Self::POINTS_MAX`] points.
    #[must_use]
    pub fn new(isa: Isa, vectors: Vectors<'_>, epsilon: Epsilon) -> Self {
        let has_map = vectors.dims() > PLAIN_DIMS_MAX && !vectors.is_empty();
        let map = has_map.then(|| Principal::choose(isa, vectors, epsilon.reach()));
        Self::with_form(isa, vectors, epsilon, map, Form::choose)
    }

    /// As [`Self::new`], for points like those of another directory: in many dimensions its
    /// components are taken over, which costs less than to find them again.
    ///
    /// # Examples
    ///
    /// ```
    /// use trommel_kernels::Isa;
    /// use trommel_kernels::vectors::{Directory, Epsilon, Join, PairCount, Search, Vectors};
    ///
    /// let vectors = Vectors::new(&[0.0, 1.0, 5.0], 1);
    /// let large = Directory::new(Isa::Scalar, vectors, Epsilon::new(1.0).unwrap());
    /// let small = Directory::like(Isa::Scalar, Vectors::new(&[2.0], 1), &large);
    /// let join = Join::between(&small, &large);
    /// let (mut search, mut count) = (Search::default(), PairCount::default());
    /// join.begin(Isa::Scalar, 0, &mut search);
    /// assert!(join.advance(Isa::Scalar, &mut search, &mut count));
    /// assert_eq!(count, PairCount(1));
    /// ```
    ///
    /// # Panics
    ///
    /// As [`Self::new`], or if the dimensions differ.
    #[must_use]
    pub fn like(isa: Isa, vectors: Vectors<'_>, other: &Self) -> Self {
        let (dims, others) = (vectors.dims(), other.dims);
        assert!(dims == others, "vectors of {dims} and {others} dimensions");
        let map = other.map.as_ref().map(|(principal, _)| principal.clone());
        Self::with_form(isa, vectors, other.epsilon, map, Form::choose)
    }

    /// As [`Self::new`], with a map, if any, and a form for an extent and a reach.
    pub(super) fn with_form(
        isa: Isa,
        vectors: Vectors<'_>,
        epsilon: Epsilon,
        map: Option<Principal>,
        form: impl FnOnce(&Extent, f64) -> Form,
    ) -> Self {
        let len = vectors.len();
        assert!(len <= Self::POINTS_MAX, "{len} points of at most {}", Self::POINTS_MAX);
        let mut mapped = Vec::new();
        let map = map.map(|principal| {
            mapped.resize(len * principal.coordinates(), 0.0);
            let moved = principal.map(isa, vectors.values(), &mut mapped);
            (principal, moved)
        });
        let filtered = match &map {
            Some((principal, _)) => Vectors::new(&mapped, principal.coordinates()),
            None => vectors,
        };
        let filter_dims = filtered.dims();
        let form = form(&Extent::of(isa, filtered), reach(map.as_ref(), epsilon));
        let words = form.words(filter_dims);
        let Ordered { order, rows, firsts: buckets } = kd_order(isa, filtered);
        let mut tiles = vec![Line([0; LANES]); order.len() / LANES * words];
        let is_exact = form.store(isa, &rows, filter_dims, words, &mut tiles) && map.is_none();
        let mut directory = Self {
            dims: vectors.dims(),
            epsilon,
            map,
            filter_dims,
            form,
            words,
            is_exact,
            len,
            before: points_before(&buckets, &order),
            buckets,
            order,
            rows: Vec::new(),
            tiles,
            levels: Vec::new(),
        };
        if len > 0 {
            directory.add_levels(isa, Corners::of_leaves(isa, filter_dims, &rows));
        }
        directory.rows = if directory.map.is_some() {
            drop(rows);
            let row = |&row: &u32| vectors.row(if row == NO_ROW { 0 } else { row as usize });
            directory.order.iter().flat_map(row).copied().collect()
        } else {
            rows
        };
        directory
    }

    /// Adds boxes, level by level, until there is one node.
    fn add_levels(&mut self, isa: Isa, mut corners: Corners) {
        let limits = self.limits(0.0);
        let mut firsts = firsts_of_groups(&self.buckets);
        loop {
            let above = corners.over(&firsts);
            self.levels.push(Level::over(isa, &self.form, limits, &corners, firsts));
            corners = above;
            let level = &self.levels[self.levels.len() - 1];
            if level.nodes() == 1 {
                return;
            }
            // A bucket is one node of the second level; above, sixteen nodes are one.
            firsts = if self.levels.len() == 1 {
                let group = |&leaf: &u32| level.firsts.partition_point(|&first| first < leaf);
                self.buckets.iter().map(|leaf| as_u32(group(leaf))).collect()
            } else {
                let nodes = as_u32(level.nodes());
                (0..nodes).step_by(LANES).chain([nodes]).collect()
            };
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

/// A bound of the distance of a mapped point of a directory and the exact map of a point that it
/// joins with.
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

/// The first leaf of each group of sixteen leaves, or of the rest of a bucket, and their number.
fn firsts_of_groups(buckets: &[u32]) -> Vec<u32> {
    let groups = buckets.windows(2).flat_map(|leaves| (leaves[0]..leaves[1]).step_by(LANES));
    groups.chain(buckets.last().copied()).collect()
}
