//! Strips: an order of points of at most three dimensions that are only joined with themselves.
//!
//! A grid cuts the widest dimensions (one of one or two, two of three) into strips that are at
//! least epsilon high. The points of a strip are ordered along the remaining dimension, sixteen in
//! a leaf, and the partners of a leaf are in few leaves of its own strip and of the adjacent
//! strips:
//!
//! ```text
//! strip 2  [ leaf ][leaf][   leaf   ][ leaf ]     windows of LEAF: itself and later leaves of
//!               └───────┬──────┘                  its strip, and leaves of the strips after it;
//! strip 1  [ leaf ][ LEAF ][leaf][  leaf  ]       those within epsilon along the strip
//! ```
//!
//! Earlier strips have this strip in their windows, so each pair of leaves is compared once. Leaves
//! are about as long as strips are high, so that most pairs of leaves of two strips are farther
//! apart than epsilon across the strips; the bounds of leaves show this. Unlike a
//! [`Tree`](super::directory::Tree) with boxes, strips need one pass to find the strips, one to
//! move the points, and one to order each strip in the cache; and no tests of points with boxes.
//!
//! **No pair is lost.** Let a pair join: its coordinates differ by at most `r` = the reach of
//! epsilon in each dimension. *Strips:* `p(x) = (x - low) * scale` is computed in float64; `p(x)`
//! is below 2^13, and two roundings, and the roundings of `scale`, change it by less than 2^-35. A
//! strip is at least `r * (1 + 2^-20)` high, so the real values differ by less than `1 - 2^-21`,
//! the computed values by less than one, and the strips, which are the nearest whole numbers, by at
//! most one. The last strip also takes points that are rounded past its end; that brings strips no
//! farther apart.
//!
//! *Windows:* along its strip a leaf has the least coordinate `low` of its own points and the
//! points of all later leaves, and the greatest coordinate `high` of its own points and the points
//! of all earlier leaves. If a point of leaf `L` joins a point of leaf `M`, the real values fulfil
//! `low(M) - high(L) <= r` and `low(L) - high(M) <= r`. These differences are computed in float32
//! and compared with a float32 `s >= r`. Rounding is monotone and does not change `s`: a difference
//! of at most `s` is at most `s` when rounded, even where it overflows. Bounds across the strip are
//! compared in the same way. `low` and `high` both ascend in a strip, whatever its order is, so
//! windows are ranges of leaves whose begins and ends only move forward. A bad order only makes
//! windows longer.
//!
//! **No time is lost.** Before the search, the leaves of all windows are counted. If a window has
//! more than [`WINDOW_MAX`] leaves on average, as where distant points make strips high or many
//! points are equal, the points are put into kd order after all.

mod filing;
mod grid;
pub(super) mod sweep;

pub(super) use self::filing::{Filed, file};
pub(super) use self::grid::Grid;
#[cfg(test)]
pub(super) use self::grid::STRIP_POINTS_MAX;

use std::ops::Range;

use self::grid::NEIGHBOURS;
use super::levels::{LANES, as_u32};

/// Maximum dimensions of points in strips.
pub(super) const STRIP_DIMS_MAX: usize = 3;
/// Average number of leaves in the windows of a leaf up to which strips are faster than boxes.
const WINDOW_MAX: usize = 24;

/// A strip and its adjacent strips, with the leaves that the next leaf of the strip may need.
#[derive(Clone, Debug, Default)]
pub(super) struct Beside {
    strips: [u32; NEIGHBOURS],
    leaves: [Range<u32>; NEIGHBOURS],
}

impl Beside {
    /// The strip.
    pub(super) fn strip(&self) -> u32 {
        self.strips[0]
    }

    /// The strip of a window.
    pub(super) fn strip_of(&self, window: usize) -> u32 {
        self.strips[window]
    }
}

/// The places of the points of a leaf.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Along the strip: the least coordinate of the leaf's points and the points of later leaves,
    /// and the greatest coordinate of the leaf's points and the points of earlier leaves.
    pub(super) along: [f32; 2],
    /// The least and greatest coordinate of the leaf's points in each dimension that is cut.
    pub(super) across: [(f32, f32); 2],
}

/// The strips of the points of a directory.
#[derive(Clone, Debug)]
pub(super) struct Strips {
    grid: Grid,
    /// The greatest distance of the points of a pair in a dimension.
    reach: f32,
    /// The first leaf of each strip, and the number of leaves.
    firsts: Vec<u32>,
    /// The points of each strip.
    counts: Vec<u32>,
    /// The bounds of each leaf.
    bounds: Vec<Bounds>,
}

impl Strips {
    /// Strips with points; none if their windows are too long.
    pub(super) fn new(
        grid: &Grid,
        reach: f64,
        firsts: Vec<u32>,
        counts: &[u32],
        bounds: Vec<Bounds>,
    ) -> Option<Self> {
        // Rounded to nearest, so the neighbour is on the safe side.
        #[expect(clippy::cast_possible_truncation, reason = "rounded on purpose")]
        let reach = (reach as f32).next_up();
        let strips = Self { grid: grid.clone(), reach, firsts, counts: counts.to_vec(), bounds };
        strips.has_short_windows().then_some(strips)
    }

    /// Number of leaves.
    pub(super) fn leaves(&self) -> u32 {
        as_u32(self.bounds.len())
    }

    /// The leaves of a strip.
    fn leaves_of(&self, strip: u32) -> Range<u32> {
        self.firsts[strip as usize]..self.firsts[strip as usize + 1]
    }

    /// Whether all windows together have few enough leaves.
    fn has_short_windows(&self) -> bool {
        let mut left = self.bounds.len() * WINDOW_MAX;
        (0..as_u32(self.counts.len())).all(|strip| {
            let mut beside = self.beside(strip);
            self.leaves_of(strip).all(|leaf| {
                let leaves = self.windows(&mut beside, leaf).iter().map(Range::len).sum();
                let is_short = leaves <= left;
                left = left.saturating_sub(leaves);
                is_short
            })
        })
    }

    /// The strip of a leaf.
    pub(super) fn strip_of(&self, leaf: u32) -> u32 {
        as_u32(self.firsts.partition_point(|&first| first <= leaf) - 1)
    }

    /// Whether a leaf is after the leaves of a strip.
    pub(super) fn is_after(&self, leaf: u32, strip: u32) -> bool {
        leaf >= self.firsts[strip as usize + 1]
    }

    /// Number of points of a leaf of a strip.
    pub(super) fn points(&self, strip: u32, leaf: u32) -> u32 {
        let before = (leaf - self.firsts[strip as usize]) * as_u32(LANES);
        (self.counts[strip as usize] - before).min(as_u32(LANES))
    }

    /// The leaves of a strip and of its adjacent strips.
    pub(super) fn beside(&self, strip: u32) -> Beside {
        let strips = self.grid.neighbours(strip);
        let leaves = strips.map(|strip| strip.map_or(0..0, |strip| self.leaves_of(strip)));
        Beside { strips: strips.map(|strip| strip.unwrap_or(0)), leaves }
    }

    /// The leaves that may have partners of the points of a leaf: in its own strip the leaf itself
    /// and later leaves, and leaves of each adjacent strip after it. The caller asks for the leaves
    /// of a strip in their order.
    #[inline(always)]
    pub(super) fn windows(&self, beside: &mut Beside, leaf: u32) -> [Range<u32>; NEIGHBOURS] {
        let [low, high] = self.bounds[leaf as usize].along;
        beside.leaves[0].start = leaf;
        let mut windows = beside.leaves.clone();
        for (leaves, window) in beside.leaves.iter_mut().zip(&mut windows) {
            let bounds = &self.bounds[leaves.start as usize..leaves.end as usize];
            // Leaves before the window of this leaf are also before the windows of later leaves.
            let is_before = |other: &&Bounds| low - other.along[1] > self.reach;
            let before = bounds.iter().take_while(is_before).count();
            let is_within = |other: &&Bounds| other.along[0] - high <= self.reach;
            let within = bounds[before..].iter().take_while(is_within).count();
            leaves.start += as_u32(before);
            *window = leaves.start..leaves.start + as_u32(within);
        }
        windows
    }

    /// Whether points of two leaves may join, judged by the dimensions that are cut.
    #[inline(always)]
    pub(super) fn are_beside(&self, leaf: u32, other: u32) -> bool {
        let [one, other] = [leaf, other].map(|leaf| self.bounds[leaf as usize].across);
        let is_far = |(one, other): ((f32, f32), (f32, f32))| {
            (one.0 - other.1 > self.reach) | (other.0 - one.1 > self.reach)
        };
        !(is_far((one[0], other[0])) | is_far((one[1], other[1])))
    }

    /// Memory in bytes.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&self.firsts[..])
            + size_of_val(&self.counts[..])
            + size_of_val(&self.bounds[..])
    }
}
