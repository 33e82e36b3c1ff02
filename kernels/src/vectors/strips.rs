//! Strips: an order of points of at most three dimensions that are only joined with themselves.
//!
//! A grid cuts the widest dimensions (one of one or two, two of three) into strips that are at
//! least epsilon high. The points of a strip are ordered along the dimension that is left, sixteen
//! a leaf, and the partners of a leaf are in few leaves of its own strip and of those beside it:
//!
//! ```text
//! strip 2  [ leaf ][leaf][   leaf   ][ leaf ]     windows of LEAF: itself and later leaves of
//!               └───────┬──────┘                  its strip, and leaves of the strips after it;
//! strip 1  [ leaf ][ LEAF ][leaf][  leaf  ]       those within epsilon along the strip
//! ```
//!
//! Strips before have this one in their windows, so each pair of leaves is compared once. Unlike a
//! [`Tree`](super::tree::Tree) with boxes this needs one pass to find the strips, one to move the
//! points, and one to order each strip in the cache; no test but those of points with points.
//!
//! **No pair is lost.** Let a pair join: its coordinates differ by at most `r` = the reach of
//! epsilon in each dimension. *Strips:* `p(x) = (x - low) * scale` is computed in float64; it is
//! below 2^17, and two roundings change it by less than 2^-35. A strip is at least `r * (1 +
//! 2^-20)` high, so the real values differ by less than `1 - 2^-21`, the computed ones by less than
//! one, and the strips, which are the nearest whole numbers, by at most one. The last strip also
//! takes what is rounded over its end, which brings strips no farther apart. *Windows:* a leaf has
//! the least coordinate `low` of its points and of all later ones of its strip, and the greatest
//! one `high` of its points and of all earlier ones. If a point of leaf `L` joins one of leaf `M`,
//! `low(M) - high(L) <= r` and `low(L) - high(M) <= r`. Differences are rounded by a part of 2^-53,
//! for which the reach has room. Both numbers ascend in a strip, whatever its order is, so windows
//! are ranges of leaves, whose begins and ends only move forward. A bad order makes windows longer,
//! no more.
//!
//! **No time is lost.** Before the search, the leaves of all windows are counted. If they are more
//! than [`WINDOW_MAX`] for each leaf, as where points that are far away make strips high or many
//! points are equal, the points are put into kd order after all.

use std::ops::Range;

use super::grid::{Grid, NEIGHBOURS};
use super::lanes::{LANES, as_u32};

/// Maximum dimensions of points in strips.
pub(super) const STRIP_DIMS_MAX: usize = 3;
/// Leaves of the windows of a leaf, on average, up to which strips are the faster order.
const WINDOW_MAX: usize = 24;

/// A strip and those beside it, with the leaves that the next leaf of the strip may need.
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
        let strips = Self { grid: grid.clone(), reach, firsts, counts: counts.to_vec(), ranges };
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
        let product = |strip| {
            let beside: usize = self.beside(strip).leaves.iter().map(Range::len).sum();
            self.leaves_of(strip).len() * beside
        };
        if strips.clone().map(product).sum::<usize>() <= limit {
            return true;
        }
        let mut sum = 0;
        for strip in strips {
            let mut beside = self.beside(strip);
            for leaf in self.leaves_of(strip) {
                sum += self.windows(&mut beside, leaf).iter().map(Range::len).sum::<usize>();
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

    /// Whether a leaf is after those of a strip.
    pub(super) fn is_after(&self, leaf: u32, strip: u32) -> bool {
        leaf >= self.firsts[strip as usize + 1]
    }

    /// Number of points of a leaf of a strip.
    pub(super) fn points(&self, strip: u32, leaf: u32) -> u32 {
        let before = (leaf - self.firsts[strip as usize]) * as_u32(LANES);
        (self.counts[strip as usize] - before).min(as_u32(LANES))
    }

    /// The leaves of a strip and of those beside it.
    pub(super) fn beside(&self, strip: u32) -> Beside {
        let strips = self.grid.neighbours(strip);
        let leaves = strips.map(|strip| strip.map_or(0..0, |strip| self.leaves_of(strip)));
        Beside { strips: strips.map(|strip| strip.unwrap_or(0)), leaves }
    }

    /// The leaves that may have partners of the points of a leaf: of its own strip itself and later
    /// ones, and of each strip beside it. Leaves of a strip come in their order.
    #[inline(always)]
    pub(super) fn windows(&self, beside: &mut Beside, leaf: u32) -> [Range<u32>; NEIGHBOURS] {
        let [low, high] = self.ranges[leaf as usize].map(f64::from);
        beside.leaves[0].start = leaf;
        let mut windows = beside.leaves.clone();
        for (leaves, window) in beside.leaves.iter_mut().zip(&mut windows) {
            let ranges = &self.ranges[leaves.start as usize..leaves.end as usize];
            // What is before this leaf is before later ones.
            let is_before = |range: &&[f32; 2]| low - f64::from(range[1]) > self.reach;
            let before = ranges.iter().take_while(is_before).count();
            let is_within = |range: &&[f32; 2]| f64::from(range[0]) - high <= self.reach;
            let within = ranges[before..].iter().take_while(is_within).count();
            leaves.start += as_u32(before);
            *window = leaves.start..leaves.start + as_u32(within);
        }
        windows
    }

    /// Memory in bytes.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&self.firsts[..])
            + size_of_val(&self.counts[..])
            + size_of_val(&self.ranges[..])
    }
}
