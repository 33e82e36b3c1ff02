//! Boxes of points, up to sixteen in a node.

use crate::Isa;
use crate::simd::{Base, RunOn, dispatch};
use crate::vectors::filters::{Form, Limits};
use crate::vectors::levels::{LANES, Line, halves};
use crate::vectors::rows::by_dims;

/// The least and greatest coordinates of several sets of points, as rows.
#[derive(Debug)]
pub(in crate::vectors) struct Corners {
    dims: usize,
    low: Vec<f32>,
    high: Vec<f32>,
}

/// The nodes of one level of a directory: the boxes of up to sixteen consecutive children each.
#[derive(Clone, Debug)]
pub(in crate::vectors) struct Level {
    /// The first child of each node, and the number of all children.
    pub(in crate::vectors) firsts: Vec<u32>,
    /// For each node the least stored coordinates of its children, then the greatest.
    pub(in crate::vectors) lines: Vec<Line>,
    /// For each node the lanes that have a child.
    pub(in crate::vectors) lanes: Vec<u16>,
    /// For each node the children whose points may all be within epsilon of one point.
    pub(in crate::vectors) small: Vec<u16>,
}

impl Corners {
    /// The corners of leaves of sixteen rows.
    pub(in crate::vectors) fn of_leaves(isa: Isa, dims: usize, rows: &[f32]) -> Self {
        let leaves = rows.len() / (LANES * dims);
        let mut corners = Self::new(dims, leaves);
        dispatch::<Base, _>(isa, FindCorners { rows, corners: &mut corners });
        corners
    }

    /// The corners of nodes; the children of a node begin at its first child and end before the
    /// first child of the next node.
    pub(in crate::vectors) fn over(&self, firsts: &[u32]) -> Self {
        let mut corners = Self::new(self.dims, firsts.len() - 1);
        let dims = self.dims;
        for (node, children) in firsts.windows(2).enumerate() {
            for child in children[0] as usize..children[1] as usize {
                for dim in 0..dims {
                    let (low, high) =
                        (&mut corners.low[node * dims + dim], &mut corners.high[node * dims + dim]);
                    *low = low.min(self.low[child * dims + dim]);
                    *high = high.max(self.high[child * dims + dim]);
                }
            }
        }
        corners
    }

    /// Adds the corners of the sets of `other` after these.
    pub(in crate::vectors) fn append(&mut self, other: &Self) {
        self.low.extend_from_slice(&other.low);
        self.high.extend_from_slice(&other.high);
    }

    fn new(dims: usize, len: usize) -> Self {
        Self { dims, low: vec![f32::MAX; dims * len], high: vec![f32::MIN; dims * len] }
    }
}

/// Finds the corners of leaves.
struct FindCorners<'a> {
    rows: &'a [f32],
    corners: &'a mut Corners,
}

impl<L> RunOn<L> for FindCorners<'_> {
    #[inline(always)]
    fn run_on(self, _: L) {
        by_dims!(self.corners.dims, find_corners(self));
    }
}

#[inline(always)]
fn find_corners<const D: usize>(call: FindCorners<'_>) {
    let Corners { dims, low, high } = call.corners;
    let dims = if D == 0 { *dims } else { D };
    let corners = low.chunks_exact_mut(dims).zip(high.chunks_exact_mut(dims));
    for (rows, (low, high)) in call.rows.chunks_exact(LANES * dims).zip(corners) {
        for row in rows.chunks_exact(dims) {
            // These comparisons are vector instructions; no coordinate is a NaN.
            for dim in 0..dims {
                low[dim] = if row[dim] < low[dim] { row[dim] } else { low[dim] };
                high[dim] = if row[dim] > high[dim] { row[dim] } else { high[dim] };
            }
        }
    }
}

impl Level {
    /// The level over children with these corners. Coordinates are stored by monotone functions,
    /// so stored corners are the corners of stored points.
    pub(in crate::vectors) fn over(
        isa: Isa,
        form: &Form,
        limits: Limits,
        corners: &Corners,
        firsts: Vec<u32>,
    ) -> Self {
        let dims = corners.dims;
        let words = form.words(dims);
        let nodes = firsts.len() - 1;
        let mut lines = vec![Line([0; LANES]); nodes * 2 * words];
        let diagonal_max = form.diagonal_max(limits);
        let children = firsts.windows(2).map(|firsts| firsts[0] as usize..firsts[1] as usize);
        let small = lines.chunks_exact_mut(2 * words).zip(children).map(|(lines, children)| {
            let (low, high) = lines.split_at_mut(words);
            let rows = children.start * dims..children.end * dims;
            form.store(isa, &corners.low[rows.clone()], dims, words, low);
            form.store(isa, &corners.high[rows], dims, words, high);
            let is_small = |&lane: &usize| {
                form.diagonal(low, high, lane) <= diagonal_max && form.is_straight(low, high, lane)
            };
            (0..children.len()).filter(is_small).fold(0, |small, lane| small | 1 << lane)
        });
        let small = small.collect();
        let lanes = firsts.windows(2).map(|firsts| u16::MAX >> (16 + firsts[0] - firsts[1]));
        Self { lanes: lanes.collect(), firsts, lines, small }
    }

    /// Adds the nodes of `other` after these, over the children after these.
    pub(in crate::vectors) fn append(&mut self, other: &Self) {
        let children = self.firsts.pop().expect("a level has the number of its children");
        self.firsts.extend(other.firsts.iter().map(|first| first + children));
        self.lines.extend_from_slice(&other.lines);
        self.lanes.extend_from_slice(&other.lanes);
        self.small.extend_from_slice(&other.small);
    }

    /// Number of nodes.
    pub(super) fn nodes(&self) -> usize {
        self.small.len()
    }

    /// The node of a child.
    pub(in crate::vectors) fn node_of(&self, child: u32) -> u32 {
        let after = self.firsts.partition_point(|&first| first <= child);
        u32::try_from(after - 1).expect("fewer nodes than children")
    }

    /// Memory in bytes.
    pub(in crate::vectors) fn bytes(&self) -> usize {
        size_of::<Line>() * self.lines.len() + 4 * self.firsts.len() + 4 * self.small.len()
    }
}

impl Form {
    /// The square of the diagonal of a box, in stored units.
    fn diagonal(&self, low: &[Line], high: &[Line], lane: usize) -> f64 {
        let words = low.iter().zip(high).map(|(low, high)| (low.0[lane], high.0[lane]));
        let sides = words.map(|(low, high)| match self {
            Self::Short { .. } => {
                let (low, high) = (halves(low), halves(high));
                [0, 1].map(|half| f64::from(high[half] - low[half]).powi(2)).iter().sum()
            }
            Self::Float { .. } => {
                (f64::from(f32::from_bits(high)) - f64::from(f32::from_bits(low))).powi(2)
            }
        });
        sides.sum()
    }

    /// The square of twice the distance within which points are known to join, in stored units,
    /// with a small margin.
    fn diagonal_max(&self, limits: Limits) -> f64 {
        4.001
            * match self {
                Self::Short { .. } => f64::from(limits.inside.cast_signed()),
                Self::Float { .. } => f64::from(f32::from_bits(limits.inside)),
            }
    }
}
