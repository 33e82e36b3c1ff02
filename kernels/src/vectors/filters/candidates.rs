//! Candidate pairs, and their decision in float64.

use std::ops::Range;

use super::form::Form;
use crate::Isa;
use crate::simd::{Base, RunOn, dispatch, prefetch};
use crate::vectors::directory::NO_ROW;
use crate::vectors::epsilon::{Epsilon, square};
use crate::vectors::levels::{Filter, LANES};
use crate::vectors::sink::{Pair, Side, Sink};

/// Number of candidates whose points are fetched ahead: candidates are not in the order of memory.
const AHEAD: usize = 8;

/// The points of one side, in the order in which filters compare them.
#[derive(Clone, Copy, Debug)]
pub(in crate::vectors) struct Points<'a> {
    /// The coordinates of the points.
    pub(in crate::vectors) rows: &'a [f32],
    /// The row of each point in the input; empty if the points are in the order of the input.
    pub(in crate::vectors) order: &'a [u32],
}

impl<'a> Points<'a> {
    /// The coordinates of a point.
    #[inline(always)]
    fn row(self, dims: usize, position: u32) -> &'a [f32] {
        &self.rows[position as usize * dims..][..dims]
    }

    /// The row of a point in the input.
    #[inline(always)]
    fn place(self, position: u32) -> u32 {
        if self.order.is_empty() { position } else { self.order[position as usize] }
    }
}

/// The two sides of a join, and how its pairs are decided and written.
#[derive(Clone, Copy, Debug)]
pub(in crate::vectors) struct Sides<'a> {
    pub(in crate::vectors) dims: usize,
    pub(in crate::vectors) epsilon: Epsilon,
    /// The side whose points are looked up.
    pub(in crate::vectors) probe: Points<'a>,
    /// The side in which these points are looked up.
    pub(in crate::vectors) build: Points<'a>,
    /// Whether both sides are the same points, or else which side `probe` is.
    pub(in crate::vectors) kind: Kind,
}

/// Kinds of joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::vectors) enum Kind {
    /// Points with themselves, each pair from one of its points.
    Within,
    /// Points with themselves, each pair from both of its points.
    Each,
    /// Two sides; left points are looked up.
    Between,
    /// Two sides; right points are looked up.
    Swapped,
}

impl Kind {
    /// Whether the lookup of a point finds all its pairs, so that a sink may have enough pairs of
    /// the point.
    pub(in crate::vectors) fn may_stop(self) -> bool {
        matches!(self, Self::Each | Self::Swapped)
    }
}

impl Sides<'_> {
    /// Whether a sink needs no more pairs of a point that is looked up.
    #[inline(always)]
    pub(in crate::vectors) fn are_enough<S: Sink>(self, sink: &S, probe: u32) -> bool {
        S::STOPS && self.kind.may_stop() && sink.has_enough(self.probe.place(probe))
    }
}

/// Pairs that passed the filters, as positions. Both lists have room for [`LANES`] more positions
/// than are written.
#[derive(Clone, Debug, Default)]
pub(in crate::vectors) struct Candidates {
    probes: Vec<u32>,
    builds: Vec<u32>,
    len: usize,
    /// The first pair that is not decided yet.
    next: usize,
    /// Points that join with all points of a range of leaves, with the range and its number of
    /// points.
    all: Vec<(u32, Range<u32>, u32)>,
}

impl Candidates {
    /// Forgets all.
    pub(in crate::vectors) fn clear(&mut self) {
        (self.len, self.next) = (0, 0);
        self.all.clear();
    }

    /// Makes room for `more` pairs after the current pairs.
    pub(in crate::vectors) fn reserve(&mut self, more: usize) {
        let room = self.len + more + LANES;
        if self.probes.len() < room {
            self.probes.resize(room, 0);
            self.builds.resize(room, 0);
        }
    }

    /// Number of pairs.
    pub(in crate::vectors) fn pairs(&self) -> usize {
        self.len
    }

    /// Drops the pairs from `from` on that float32 proves not to join.
    pub(in crate::vectors) fn sift(&mut self, isa: Isa, sides: Sides<'_>, from: usize) {
        let limits = Form::Float { scale: 1.0, bend: None }.limits(
            sides.dims,
            sides.epsilon.reach(),
            sides.epsilon.core(),
        );
        let limit = f32::from_bits(limits.within);
        self.len = dispatch::<Base, _>(isa, Sift { candidates: self, sides, from, limit });
    }

    /// Number of pairs, and of points that all join.
    #[inline(always)]
    pub(in crate::vectors) fn len(&self) -> usize {
        self.len + self.all.len()
    }

    /// Adds the pairs of a point with the points `first + i` of the bits `i` of `hits`; there is
    /// room for them.
    #[inline(always)]
    pub(in crate::vectors) fn add<L: Filter>(
        &mut self,
        level: L,
        probe: u32,
        first: u32,
        hits: u32,
    ) {
        self.probes[self.len..][..LANES].fill(probe);
        let builds = &mut self.builds[self.len..][..LANES];
        level.keep::<0>(first, hits, builds.try_into().expect("as long as a line"));
        self.len += hits.count_ones() as usize;
    }

    /// Adds a point that joins with all points of a range of leaves, and the number of these
    /// points.
    pub(in crate::vectors) fn add_all(&mut self, probe: u32, leaves: Range<u32>, points: u32) {
        self.all.push((probe, leaves, points));
    }

    /// Decides pairs until the sink is full; returns whether none are left.
    pub(in crate::vectors) fn decide<S: Sink>(&mut self, sides: Sides<'_>, sink: &mut S) -> bool {
        for (probe, leaves, points) in self.all.drain(..) {
            let side = if sides.kind == Kind::Swapped { Side::Right } else { Side::Left };
            sink.take_all(sides.probe.place(probe), side, leaves, points);
        }
        let pairs = self.probes[..self.len].iter().zip(&self.builds[..self.len]);
        for (index, (&probe, &build)) in pairs.enumerate().skip(self.next) {
            if sink.is_full() {
                self.next = index;
                return false;
            }
            if sides.are_enough(sink, probe) || sides.kind == Kind::Each && probe == build {
                continue;
            }
            let ahead = self.builds[(index + AHEAD).min(self.len - 1)] as usize;
            prefetch(sides.build.rows, ahead * sides.dims);
            prefetch(sides.build.order, ahead);
            let left = sides.probe.row(sides.dims, probe);
            let square = square(left, sides.build.row(sides.dims, build));
            if square > sides.epsilon.square() {
                continue;
            }
            let (probe, build) = (sides.probe.place(probe), sides.build.place(build));
            if build != NO_ROW {
                let is_turned = match sides.kind {
                    Kind::Within | Kind::Each => probe > build,
                    Kind::Between => false,
                    Kind::Swapped => true,
                };
                let (left, right) = if is_turned { (build, probe) } else { (probe, build) };
                sink.take(Pair { left, right, square });
            }
        }
        (self.len, self.next) = (0, 0);
        true
    }
}

/// Keeps the pairs whose square is at most a limit in float32, and returns their number.
struct Sift<'a> {
    candidates: &'a mut Candidates,
    sides: Sides<'a>,
    from: usize,
    limit: f32,
}

impl<L> RunOn<L, usize> for Sift<'_> {
    #[inline(always)]
    fn run_on(self, _: L) -> usize {
        let Self { candidates: Candidates { probes, builds, len, .. }, sides, from, limit } = self;
        let mut kept = from;
        for index in from..*len {
            let (probe, build) = (probes[index], builds[index]);
            let ahead = builds[(index + AHEAD).min(*len - 1)] as usize;
            prefetch(sides.build.rows, ahead * sides.dims);
            let left = sides.probe.row(sides.dims, probe);
            let right = sides.build.row(sides.dims, build);
            (probes[kept], builds[kept]) = (probe, build);
            kept += usize::from(is_within(left, right, limit));
        }
        kept
    }
}

/// Whether the square of a distance may be at most the limit. Sums only grow, so the loop ends
/// early.
#[inline(always)]
fn is_within(left: &[f32], right: &[f32], limit: f32) -> bool {
    const STRETCH: usize = 8;
    let ((left, left_rest), (right, right_rest)) = (left.as_chunks(), right.as_chunks());
    let mut sums = [0.0_f32; LANES];
    for (left, right) in left.chunks(STRETCH).zip(right.chunks(STRETCH)) {
        for (left, right) in left.iter().zip(right) {
            let (left, right): (&[f32; LANES], &[f32; LANES]) = (left, right);
            for lane in 0..LANES {
                let difference = left[lane] - right[lane];
                sums[lane] += difference * difference;
            }
        }
        let mut sum = sums;
        for half in [8, 4, 2, 1] {
            for lane in 0..half {
                sum[lane] += sum[lane + half];
            }
        }
        if sum[0] > limit {
            return false;
        }
    }
    let rest = left_rest.iter().zip(right_rest).map(|(left, right)| (left - right).powi(2));
    sums.iter().copied().chain(rest).sum::<f32>() <= limit
}
