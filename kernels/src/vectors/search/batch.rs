//! Tests of points with boxes and with the points of leaves: the loops of a search.

use crate::simd::{RunOn, prefetch};
use crate::vectors::directory::Level;
use crate::vectors::filters::{Candidates, Form};
use crate::vectors::levels::{Filter, Float, LANES, Line, Short, Sixteen};

/// Number of tests between the current test and the test whose lines are fetched.
const AHEAD: usize = 16;

/// Bits of the number of a point in its part.
pub(super) const POINT_BITS: u32 = 8;
pub(super) const POINT_MASK: u32 = (1 << POINT_BITS) - 1;

/// Tests that are done at once.
pub(super) const BATCH: usize = 256;
/// A power of two that is at least an incomplete batch of tests plus all children of a batch.
const KEPT_MAX: usize = 1 << 13;
const _: () = assert!(BATCH + BATCH * LANES <= KEPT_MAX);

/// Room for tests, and for one more line.
#[derive(Clone, Debug)]
pub(super) struct Kept(pub(super) Box<[u32; KEPT_MAX + LANES]>);

impl Kept {
    pub(in crate::vectors) fn new() -> Self {
        Self(Box::new([0; KEPT_MAX + LANES]))
    }
}

/// The points of a part, which are looked up.
#[derive(Clone, Copy)]
pub(super) struct Probes<'a> {
    /// The stored coordinates of the points, in sixteen leaves.
    pub(super) tiles: &'a [Line],
    pub(super) words: usize,
    /// The position of the first point.
    pub(super) first: u32,
    /// Whether the points are points of the directory, and only pairs with later positions are
    /// wanted.
    pub(super) is_within: bool,
}

/// Tests points with the boxes of nodes and writes the tests of the children that a point may
/// have partners in; returns their number.
pub(super) struct TestBoxes<'a> {
    pub(super) form: &'a Form,
    pub(super) limit: u32,
    pub(super) level: &'a Level,
    /// For points of the directory, the child that holds a point: this child and later children are
    /// kept. The pair is a first child and the binary logarithm of the points of a child, for
    /// `first + (point >> bits)`.
    pub(super) own: Option<(u32, u32)>,
    pub(super) probes: Probes<'a>,
    pub(super) tests: &'a [u32],
    /// New tests are written from `begin` on.
    pub(super) kept: &'a mut Kept,
    pub(super) begin: usize,
    /// Whether there are many boxes in no order, so that they are fetched ahead.
    pub(super) is_far: bool,
    /// The limit of sums below which pairs join, and the points and children whose pairs all join,
    /// for which no tests are kept.
    pub(super) inside: Option<(u32, &'a mut Vec<(u32, u32)>)>,
}

/// Tests points with the points of leaves and writes the pairs that may join.
pub(super) struct TestPoints<'a> {
    pub(super) form: &'a Form,
    pub(super) limit: u32,
    pub(super) tiles: &'a [Line],
    pub(super) probes: Probes<'a>,
    pub(super) tests: &'a [u32],
    pub(super) candidates: &'a mut Candidates,
}

/// Prefetches the lines of the node of a later test: the order of the points of another directory
/// says nothing about the order of nodes here.
#[inline(always)]
fn prefetch_node(lines: &[Line], of_node: usize, tests: &[u32], at: usize) {
    if let Some(ahead) = tests.get(at + AHEAD) {
        let first = (ahead >> POINT_BITS) as usize * of_node;
        for line in first..first + of_node {
            prefetch(lines, line);
        }
    }
}

/// Calls the loop for the form and the number of words.
macro_rules! by_form {
    ($call:ident, $level:ident) => {
        match ($call.form, $call.probes.words) {
            (Form::Short { .. }, 1) => $call.run::<L, Short, 1>($level),
            (Form::Short { .. }, 2) => $call.run::<L, Short, 2>($level),
            (Form::Short { .. }, 4) => $call.run::<L, Short, 4>($level),
            (Form::Short { .. }, 8) => $call.run::<L, Short, 8>($level),
            (Form::Short { .. }, 16) => $call.run::<L, Short, 16>($level),
            (Form::Float { .. }, 1) => $call.run::<L, Float, 1>($level),
            (Form::Float { .. }, 2) => $call.run::<L, Float, 2>($level),
            (Form::Float { .. }, 4) => $call.run::<L, Float, 4>($level),
            (Form::Float { .. }, 8) => $call.run::<L, Float, 8>($level),
            (Form::Float { .. }, 16) => $call.run::<L, Float, 16>($level),
            (Form::Float { .. }, 32) => $call.run::<L, Float, 32>($level),
            (form, words) => unreachable!("{words} words of {form:?}"),
        }
    };
}

impl<L: Filter> RunOn<L, usize> for TestBoxes<'_> {
    #[inline(always)]
    fn run_on(self, level: L) -> usize {
        by_form!(self, level)
    }
}

impl<L: Filter> RunOn<L> for TestPoints<'_> {
    #[inline(always)]
    fn run_on(self, level: L) {
        by_form!(self, level);
    }
}

impl TestBoxes<'_> {
    #[inline(always)]
    fn run<L: Filter + Sixteen<F>, F, const W: usize>(self, level: L) -> usize {
        // Each case has a loop of its own without the instructions of other cases: a test costs
        // only its instructions.
        match (self.own.is_some(), self.inside.is_some()) {
            (false, false) => self.run_as::<L, F, W, false, false>(level),
            (true, false) => self.run_as::<L, F, W, true, false>(level),
            (_, true) => self.run_as::<L, F, W, true, true>(level),
        }
    }

    #[inline(always)]
    fn run_as<L, F, const W: usize, const OWN: bool, const INSIDE: bool>(self, level: L) -> usize
    where
        L: Filter + Sixteen<F>,
    {
        let Self { level: nodes, tests, kept, .. } = self;
        let (own_first, own_bits) = self.own.unwrap_or((0, POINT_BITS));
        let limit = Sixteen::<F>::splat_sum(level, self.limit);
        let probes = self.probes.leaves::<W>();
        let boxes = nodes.lines.as_chunks::<W>().0.as_chunks::<2>().0;
        let (firsts, lanes) = (&nodes.firsts[..boxes.len()], &nodes.lanes[..boxes.len()]);
        let mut inside = self.inside;
        let mut len = 0;
        for (at, &test) in tests.iter().enumerate() {
            if self.is_far {
                prefetch_node(&nodes.lines, 2 * W, tests, at);
            }
            let (point, node) = (test & POINT_MASK, (test >> POINT_BITS) as usize);
            let [low, high] = &boxes[node];
            let (probe, lane) = (&probes[point as usize / LANES], point as usize % LANES);
            let mut sums = Sixteen::<F>::zero(level);
            for word in 0..W {
                let point = Sixteen::<F>::splat(level, probe[word].0[lane]);
                let low = Sixteen::<F>::load(level, &low[word]);
                let high = Sixteen::<F>::load(level, &high[word]);
                sums = Sixteen::<F>::add_gaps(level, sums, point, low, high);
            }
            // Children of other nodes are cut off. Children before the own child are skipped, since
            // their own points find these pairs.
            let first = firsts[node];
            let mut hits = Sixteen::<F>::at_most(level, sums, limit) & u32::from(lanes[node]);
            if OWN {
                let own = own_first + (point >> own_bits);
                hits &= 0xffff << own.saturating_sub(first).min(16);
            }
            if INSIDE && let Some((inside, all)) = &mut inside {
                let small = u32::from(nodes.small[node]) & hits;
                // A point is no partner of itself, so its own child does not join as a whole. An
                // own child before the first child wraps to a number above all lanes.
                let own = own_first + (point >> own_bits);
                let own = u32::from(self.own.is_some()) << own.wrapping_sub(first).min(16);
                let small = small & !own;
                if small != 0 {
                    let limit = Sixteen::<F>::splat_sum(level, *inside);
                    let mut sums = Sixteen::<F>::zero(level);
                    for word in 0..W {
                        let point = Sixteen::<F>::splat(level, probe[word].0[lane]);
                        let low = Sixteen::<F>::load(level, &low[word]);
                        let high = Sixteen::<F>::load(level, &high[word]);
                        sums = Sixteen::<F>::add_farthest(level, sums, point, low, high);
                    }
                    let mut found = Sixteen::<F>::at_most(level, sums, limit) & small;
                    hits &= !found;
                    while found != 0 {
                        all.push((point, first + found.trailing_zeros()));
                        found &= found - 1;
                    }
                }
            }
            // The index is less than a batch plus the additions of a batch: the remainder changes
            // nothing, and tells the compiler that there is room.
            let kept = kept.0[(self.begin + len) % KEPT_MAX..].first_chunk_mut();
            let kept = kept.expect("there is room for a line");
            level.keep::<POINT_BITS>(first << POINT_BITS | point, hits, kept);
            len += hits.count_ones() as usize;
        }
        len
    }
}

impl TestPoints<'_> {
    #[inline(always)]
    fn run<L: Filter + Sixteen<F>, F, const W: usize>(self, level: L) {
        let limit = Sixteen::<F>::splat_sum(level, self.limit);
        let probes = self.probes.leaves::<W>();
        let leaves = self.tiles.as_chunks::<W>().0;
        let is_within = self.probes.is_within;
        for (at, &test) in self.tests.iter().enumerate() {
            if !is_within {
                prefetch_node(self.tiles, W, self.tests, at);
            }
            let (point, leaf) = (test & POINT_MASK, test >> POINT_BITS);
            let lines = &leaves[leaf as usize];
            let probe = &probes[point as usize / LANES];
            let mut sums = Sixteen::<F>::zero(level);
            for word in 0..W {
                let point = Sixteen::<F>::splat(level, probe[word].0[point as usize % LANES]);
                let line = Sixteen::<F>::load(level, &lines[word]);
                sums = Sixteen::<F>::add_differences(level, sums, point, line);
            }
            let mut hits = Sixteen::<F>::at_most(level, sums, limit);
            if hits != 0 {
                let position = self.probes.first + point;
                if self.probes.is_within && position / 16 == leaf {
                    hits &= 0xfffe << (position % 16);
                }
                self.candidates.add(level, position, leaf * 16, hits);
            }
        }
    }
}

impl<'a> Probes<'a> {
    /// The leaves.
    #[inline(always)]
    fn leaves<const W: usize>(self) -> &'a [[Line; W]; 1 << POINT_BITS >> 4] {
        let leaves = self.tiles.as_chunks().0;
        leaves.first_chunk().expect("a part has sixteen leaves")
    }
}
