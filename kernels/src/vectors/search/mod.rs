//! The search of the points of a part in a directory, in batches of tests.

mod batch;

use self::batch::{BATCH, Kept, POINT_BITS, POINT_MASK, Probes, TestBoxes, TestPoints};
use super::directory::{Directory, NO_ROW, PART_LEAVES};
use super::filters::{Candidates, Kind, Limits, Sides};
use super::levels::{LANES, Line, as_u32};
use super::sink::{Partners, Side, Sink};
use super::strips::Strips;
use super::strips::sweep::{self, Sweep, TestLeaves};
use crate::Isa;
use crate::simd::{Base, dispatch};

/// Number of collected candidates from which on they are decided.
const CANDIDATES_MIN: usize = 2048;

/// Tests to be done: `node << POINT_BITS | point`, with the number of the point in its part.
#[derive(Clone, Debug)]
struct Tests {
    tests: Kept,
    len: usize,
}

impl Tests {
    fn new() -> Self {
        // A batch of tests is added only while the list has less than a batch.
        Self { tests: Kept::new(), len: 0 }
    }

    /// Keeps the tests of the next batch whose point is needed.
    fn retain(&mut self, is_needed: impl Fn(u32) -> bool) {
        let begin = self.len.saturating_sub(BATCH);
        let mut kept = begin;
        for at in begin..self.len {
            let test = self.tests.0[at];
            self.tests.0[kept] = test;
            kept += usize::from(is_needed(test & POINT_MASK));
        }
        self.len = kept;
    }

    /// Removes a batch from the end of the list and returns it.
    fn take(&mut self) -> &[u32] {
        let begin = self.len.saturating_sub(BATCH);
        let batch = &self.tests.0[begin..self.len];
        self.len = begin;
        batch
    }
}

/// A join of a directory with itself, or of two directories.
///
/// # Examples
///
/// ```
/// use trommel_kernels::Isa;
/// use trommel_kernels::vectors::{Directory, Epsilon, FoundPairs, Join, Search, Vectors};
///
/// let vectors = Vectors::new(&[0.0, 0.0, 3.0, 4.0, 9.0, 9.0], 2);
/// let directory = Directory::new(Isa::Scalar, vectors, Epsilon::new(5.0).unwrap());
/// let join = Join::within(&directory);
/// let (mut search, mut found) = (Search::default(), FoundPairs::new(1000));
/// for part in 0..join.parts() {
///     join.begin(Isa::Scalar, part, &mut search);
///     while !join.advance(Isa::Scalar, &mut search, &mut found) {
///         // Full: the pairs go elsewhere.
///         found.clear();
///     }
/// }
/// let pair = found.pairs()[0];
/// assert_eq!((found.pairs().len(), pair.left, pair.right, pair.square), (1, 0, 1, 25.0));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Join<'a> {
    probe: &'a Directory,
    build: &'a Directory,
    kind: Kind,
}

/// The place of a join in a part, and its memory.
#[derive(Clone, Debug, Default)]
pub struct Search {
    part: usize,
    /// The points of the part in the form of the directory that is searched.
    tiles: Vec<Line>,
    /// Whether filters know the points of the part exactly.
    is_exact: bool,
    /// Limits for the points of the part.
    limits: Limits,
    /// The mapped coordinates of the points, if the directory maps points.
    mapped: Vec<f32>,
    /// Tests to be done: with the points of leaves, then with the boxes of each level.
    stages: Vec<Tests>,
    /// The node of the part at each level, if the part is of the searched directory.
    nodes: Vec<u32>,
    /// The place in strips.
    sweep: Sweep,
    candidates: Candidates,
    /// Points and children of the last batch whose pairs all join.
    all: Vec<(u32, u32)>,
}

impl<'a> Join<'a> {
    /// The pairs of points of one directory.
    #[must_use]
    pub fn within(directory: &'a Directory) -> Self {
        Self { probe: directory, build: directory, kind: Kind::Within }
    }

    /// The pairs of points of one directory, each from both of its points, for a sink that needs
    /// only [some](Sink::STOPS) pairs of each point.
    ///
    /// # Panics
    ///
    /// If the directory was made to be joined with itself only: strips cannot look up single
    /// points.
    #[must_use]
    pub fn each(directory: &'a Directory) -> Self {
        assert!(directory.strips.is_none(), "a directory for pairs of its own points");
        Self { probe: directory, build: directory, kind: Kind::Each }
    }

    /// As [`Self::between`], for a sink that needs only [some](Sink::STOPS) pairs of each point of
    /// `right`.
    ///
    /// # Panics
    ///
    /// As `between`.
    #[must_use]
    pub fn of_right(left: &'a Directory, right: &'a Directory) -> Self {
        check_two(left, right);
        Self { probe: right, build: left, kind: Kind::Swapped }
    }

    /// The pairs of a point of `left` and one of `right`.
    ///
    /// # Panics
    ///
    /// If the directories differ in their dimensions or in epsilon, or one was made to be joined
    /// with itself only.
    #[must_use]
    pub fn between(left: &'a Directory, right: &'a Directory) -> Self {
        check_two(left, right);
        if left.len() <= right.len() {
            Self { probe: left, build: right, kind: Kind::Between }
        } else {
            Self { probe: right, build: left, kind: Kind::Swapped }
        }
    }

    /// Number of parts, each of which can be searched by itself.
    #[must_use]
    pub fn parts(self) -> usize {
        if self.build.is_empty() { 0 } else { self.probe.parts() }
    }

    /// Begins a part.
    ///
    /// # Panics
    ///
    /// If there is no such part, or `isa` is not available.
    pub fn begin(self, isa: Isa, part: usize, search: &mut Search) {
        assert!(part < self.parts(), "part {part} of {}", self.parts());
        search.part = part;
        search.candidates.clear();
        let Self { probe, build, kind } = self;
        if let Some(strips) = &build.strips {
            let first = as_u32(part * PART_LEAVES);
            let end = (first + as_u32(PART_LEAVES)).min(strips.leaves());
            search.limits = build.limits(0.0);
            search.sweep.begin(strips, first..end);
            return;
        }
        let (dims, words) = (build.dims, build.words);
        let positions = probe.positions(part);
        let points = probe.order[positions.clone()].partition_point(|&row| row != NO_ROW);
        search.tiles.resize(PART_LEAVES * words, Line([0; LANES]));
        let tiles = &mut search.tiles[..points.div_ceil(LANES) * words];
        search.is_exact = build.is_exact;
        let mut moved = build.map.as_ref().map_or(0.0, |&(_, moved)| moved);
        if matches!(kind, Kind::Within | Kind::Each) {
            tiles.copy_from_slice(&build.tiles[positions.start / LANES * words..][..tiles.len()]);
            search.nodes.clear();
            let mut node = as_u32(part);
            search.nodes.push(node);
            for level in &build.levels[1..] {
                node = level.node_of(node);
                search.nodes.push(node);
            }
        } else {
            let mut rows = &probe.rows[positions.start * dims..][..points * dims];
            let mut dims = dims;
            if let Some((principal, _)) = &build.map {
                dims = principal.coordinates();
                search.mapped.resize(points * dims, 0.0);
                moved = principal.map(isa, rows, &mut search.mapped);
                rows = &search.mapped;
            }
            search.is_exact &= build.form.store(isa, rows, dims, words, tiles);
        }
        search.limits = build.limits(moved);
        search.stages.resize_with(self.build.levels.len() + 1, Tests::new);
        for stage in &mut search.stages {
            stage.len = 0;
        }
        let root = search.stages.last_mut().expect("points have boxes");
        for (test, point) in root.tests.0[..points].iter_mut().zip(0..) {
            *test = point;
        }
        root.len = points;
        if kind == Kind::Each {
            // The own leaf comes first: a point with many partners has most likely a partner there.
            let leaf = |point: u32| (as_u32(positions.start) + point) / as_u32(LANES);
            let own = &mut search.stages[0];
            for (test, point) in own.tests.0[..points].iter_mut().zip(0..) {
                *test = leaf(point) << POINT_BITS | point;
            }
            own.len = points;
        }
    }

    /// Continues the part that was begun in `search` until it is finished or the sink is full;
    /// returns whether the part is finished.
    ///
    /// # Panics
    ///
    /// If `isa` is not available. The call may also panic if another join began the part.
    pub fn advance<S: Sink>(self, isa: Isa, search: &mut Search, sink: &mut S) -> bool {
        let sides = Sides {
            dims: self.build.dims,
            epsilon: self.build.epsilon,
            probe: self.probe.points(),
            build: self.build.points(),
            kind: self.kind,
        };
        let takes_all = S::TAKES_ALL && search.is_exact;
        while search.candidates.decide(sides, sink) {
            while search.candidates.len() < CANDIDATES_MIN {
                let has_tests = match &self.build.strips {
                    Some(strips) => self.test_leaves(isa, search, strips),
                    None => self.test(isa, search, sides, takes_all, sink),
                };
                match has_tests {
                    false if search.candidates.len() == 0 => return true,
                    false => break,
                    true => {}
                }
            }
        }
        false
    }

    /// Tests a batch; returns whether there was a batch.
    fn test<S: Sink>(
        self,
        isa: Isa,
        search: &mut Search,
        sides: Sides<'_>,
        takes_all: bool,
        sink: &S,
    ) -> bool {
        let Some(stage) = search.stage() else { return false };
        if S::STOPS && self.kind.may_stop() {
            let first = as_u32(self.probe.positions(search.part).start);
            search.stages[stage].retain(|point| !sides.are_enough(sink, first + point));
        }
        match stage {
            0 => self.test_points(isa, search, sides),
            _ => self.test_boxes(isa, search, stage, takes_all),
        }
        true
    }

    /// Tests a batch of leaves with leaves of strips; returns whether there was a batch.
    fn test_leaves(self, isa: Isa, search: &mut Search, strips: &Strips) -> bool {
        let has_tests = search.sweep.fill(strips);
        search.candidates.reserve(sweep::CANDIDATES);
        let call = TestLeaves {
            form: &self.build.form,
            words: self.build.words,
            limits: search.limits,
            tiles: &self.build.tiles,
            sweep: &search.sweep,
            candidates: &mut search.candidates,
        };
        dispatch::<Base, _>(isa, call);
        has_tests
    }

    /// Completes the counts of partners, once, after all parts.
    pub fn settle(self, partners: &mut Partners) {
        let side = if self.kind == Kind::Between { Side::Right } else { Side::Left };
        partners.settle(side, self.build.order.chunks_exact(LANES));
    }

    /// Tests a batch with the boxes of a level.
    fn test_boxes(self, isa: Isa, search: &mut Search, stage: usize, takes_all: bool) {
        let probes = self.probes(search.part, &search.tiles);
        let (below, from) = search.stages.split_at_mut(stage);
        let below = &mut below[stage - 1];
        let tests = from[0].take();
        let call = TestBoxes {
            form: &self.build.form,
            limit: search.limits.within,
            level: &self.build.levels[stage - 1],
            own: match stage {
                _ if self.kind != Kind::Within => None,
                1 => Some((probes.first / as_u32(LANES), 4)),
                _ => Some((search.nodes[stage - 2], POINT_BITS)),
            },
            probes,
            tests,
            kept: &mut below.tests,
            begin: below.len,
            is_far: stage == 1 && self.kind != Kind::Within,
            inside: takes_all.then_some((search.limits.inside, &mut search.all)),
        };
        below.len += dispatch::<Base, _>(isa, call);
        for (point, child) in search.all.drain(..) {
            let (leaves, points) = self.build.leaves_of(stage - 1, child);
            search.candidates.add_all(probes.first + point, leaves, points);
        }
    }

    /// Tests a batch with the points of leaves.
    fn test_points(self, isa: Isa, search: &mut Search, sides: Sides<'_>) {
        let before = search.candidates.pairs();
        search.candidates.reserve(BATCH * LANES);
        let call = TestPoints {
            form: &self.build.form,
            limit: search.limits.within,
            tiles: &self.build.tiles,
            probes: self.probes(search.part, &search.tiles),
            tests: search.stages[0].take(),
            candidates: &mut search.candidates,
        };
        dispatch::<Base, _>(isa, call);
        if self.build.map.is_some() {
            search.candidates.sift(isa, sides, before);
        }
    }

    fn probes(self, part: usize, tiles: &[Line]) -> Probes<'_> {
        Probes {
            tiles,
            words: self.build.words,
            first: as_u32(self.probe.positions(part).start),
            is_within: self.kind == Kind::Within,
        }
    }
}

/// Checks that two directories can be joined with each other.
fn check_two(left: &Directory, right: &Directory) {
    assert!(left.dims == right.dims, "{} and {} dimensions", left.dims, right.dims);
    assert!(left.epsilon == right.epsilon, "{:?} and {:?}", left.epsilon, right.epsilon);
    let is_other = |directory: &Directory| directory.strips.is_none();
    assert!(is_other(left) && is_other(right), "a directory for pairs of its own points");
}

impl Search {
    /// The next stage: the lowest stage that has a full batch, or else the highest stage that has
    /// tests.
    fn stage(&self) -> Option<usize> {
        let full = self.stages.iter().position(|stage| stage.len >= BATCH);
        full.or_else(|| self.stages.iter().rposition(|stage| stage.len > 0))
    }
}
