//! The search of the points of a part in strips: pairs of leaves, all points with all points.
//!
//! ```text
//! leaves of the part ─► windows ─► tests `leaf, leaf` ─► candidates
//!                       (up to 64 tests at a time)
//! ```

use std::ops::Range;

use super::grid::NEIGHBOURS;
use super::{Beside, Strips};
use crate::simd::RunOn;
use crate::vectors::filters::{Candidates, Form, Limits};
use crate::vectors::levels::{Filter, Float, LANES, Line, Short, Sixteen, as_u32};

/// Tests that are done at once.
const TESTS: usize = 64;
/// Pairs of points of these tests.
pub(in crate::vectors) const CANDIDATES: usize = TESTS * LANES * LANES;

/// A test of the points of a leaf with the points of another leaf, or with later points of the same
/// leaf.
#[derive(Clone, Copy, Debug)]
struct Test {
    probe: u32,
    build: u32,
    /// Points of the leaf `probe`, and a bit for each point of the leaf `build`.
    probes: u32,
    builds: u32,
}

/// The place of a search in the windows of the leaves of a part.
#[derive(Clone, Debug, Default)]
pub(in crate::vectors) struct Sweep {
    /// Leaves whose windows have not begun.
    leaves: Range<u32>,
    /// The strip of the current leaf, and its adjacent strips.
    beside: Beside,
    leaf: u32,
    /// The parts of the windows of the leaf that are not tested yet.
    windows: [Range<u32>; NEIGHBOURS],
    tests: Vec<Test>,
}

impl Sweep {
    /// Begins the search of a range of leaves.
    pub(in crate::vectors) fn begin(&mut self, strips: &Strips, leaves: Range<u32>) {
        self.leaf = leaves.start;
        self.beside = strips.beside(strips.strip_of(self.leaf));
        self.leaves = leaves;
        self.windows = Default::default();
    }

    /// Fills the list of tests; returns whether it has any.
    pub(in crate::vectors) fn fill(&mut self, strips: &Strips) -> bool {
        self.tests.clear();
        loop {
            let points = strips.points(self.beside.strip(), self.leaf);
            for (number, window) in self.windows.iter_mut().enumerate() {
                for build in window {
                    if !strips.are_beside(self.leaf, build) {
                        continue;
                    }
                    let builds = (1 << strips.points(self.beside.strip_of(number), build)) - 1;
                    self.tests.push(Test { probe: self.leaf, build, probes: points, builds });
                    if self.tests.len() == TESTS {
                        return true;
                    }
                }
            }
            let Some(leaf) = self.leaves.next() else { return !self.tests.is_empty() };
            if strips.is_after(leaf, self.beside.strip()) {
                self.beside = strips.beside(strips.strip_of(leaf));
            }
            self.windows = strips.windows(&mut self.beside, leaf);
            self.leaf = leaf;
        }
    }
}

/// Tests leaves with leaves and writes the pairs that may join.
pub(in crate::vectors) struct TestLeaves<'a> {
    pub(in crate::vectors) form: &'a Form,
    pub(in crate::vectors) words: usize,
    pub(in crate::vectors) limits: Limits,
    pub(in crate::vectors) tiles: &'a [Line],
    pub(in crate::vectors) sweep: &'a Sweep,
    pub(in crate::vectors) candidates: &'a mut Candidates,
}

impl<L: Filter> RunOn<L> for TestLeaves<'_> {
    #[inline(always)]
    fn run_on(self, level: L) {
        match (self.form, self.words) {
            (Form::Short { .. }, 1) => self.run::<L, Short, 1>(level),
            (Form::Short { .. }, 2) => self.run::<L, Short, 2>(level),
            (Form::Float { .. }, 1) => self.run::<L, Float, 1>(level),
            (Form::Float { .. }, 2) => self.run::<L, Float, 2>(level),
            (Form::Float { .. }, 4) => self.run::<L, Float, 4>(level),
            (form, words) => unreachable!("strips with {words} words of {form:?}"),
        }
    }
}

impl TestLeaves<'_> {
    #[inline(always)]
    fn run<L: Filter + Sixteen<F>, F, const W: usize>(self, level: L) {
        let limit = Sixteen::<F>::splat_sum(level, self.limits.within);
        let leaves = self.tiles.as_chunks::<W>().0;
        for &Test { probe, build, probes, builds } in &self.sweep.tests {
            let (own, lines) = (&leaves[probe as usize], &leaves[build as usize]);
            let mut found = [0; LANES];
            let mut any = 0;
            // Later points of the same leaf, or all points of another leaf.
            let mut kept = if probe == build { u32::MAX << 1 } else { u32::MAX };
            let step = u32::from(probe == build);
            for (lane, found) in found.iter_mut().enumerate() {
                let mut sums = Sixteen::<F>::zero(level);
                for word in 0..W {
                    let point = Sixteen::<F>::splat(level, own[word].0[lane]);
                    let line = Sixteen::<F>::load(level, &lines[word]);
                    sums = Sixteen::<F>::add_differences(level, sums, point, line);
                }
                *found = Sixteen::<F>::at_most(level, sums, limit) & kept;
                any |= *found;
                kept <<= step;
            }
            if any & builds != 0 {
                let first = probe * as_u32(LANES);
                for (position, hits) in (first..first + probes).zip(found) {
                    if hits & builds != 0 {
                        self.candidates.add(level, position, build * as_u32(LANES), hits & builds);
                    }
                }
            }
        }
    }
}
