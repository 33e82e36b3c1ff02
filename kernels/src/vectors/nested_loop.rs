//! The nested loop: all points with all points, sixteen at a time.

use super::epsilon::Epsilon;
use super::filters::{Candidates, Extent, Form, Kind, Points, Sides};
use super::levels::{Filter, Float, LANES, Line, Sixteen, as_u32};
use super::rows::Vectors;
use super::sink::Sink;
use crate::Isa;
use crate::simd::{Base, RunOn, dispatch};

/// Rows of a part.
const PART_ROWS: usize = 256;
/// Rows that are compared with a tile at once: each loaded line serves all these rows.
const ROWS: usize = 4;
/// Dimensions after which a tile is left if no sum is within the limit any more.
const STRETCH: usize = 32;
/// Number of collected candidates from which on they are decided.
const CANDIDATES_MIN: usize = 2048;

/// A join of vectors with themselves, or of two blocks of vectors, by a loop over all pairs.
///
/// # Examples
///
/// ```
/// use trommel_kernels::Isa;
/// use trommel_kernels::vectors::{Epsilon, FoundPairs, NestedLoop, Scan, Vectors};
///
/// let vectors = Vectors::new(&[0.0, 0.0, 3.0, 4.0, 9.0, 9.0], 2);
/// let join = NestedLoop::within(Isa::Scalar, vectors, Epsilon::new(5.0).unwrap());
/// let (mut scan, mut found) = (Scan::default(), FoundPairs::new(1000));
/// for part in 0..join.parts() {
///     join.begin(Isa::Scalar, part, &mut scan);
///     assert!(join.advance(Isa::Scalar, &mut scan, &mut found));
/// }
/// let pair = found.pairs()[0];
/// assert_eq!((found.pairs().len(), pair.left, pair.right, pair.square), (1, 0, 1, 25.0));
/// ```
#[derive(Clone, Debug)]
pub struct NestedLoop<'a> {
    left: Vectors<'a>,
    right: Vectors<'a>,
    epsilon: Epsilon,
    is_within: bool,
    form: Form,
    limit: u32,
    /// The right vectors: sixteen vectors are a tile, with a line for each dimension.
    tiles: Vec<Line>,
}

/// The place of a nested loop in a part, and its memory.
#[derive(Clone, Debug, Default)]
pub struct Scan {
    part: usize,
    /// The next tile.
    tile: usize,
    /// The rows of the part, as tiles.
    tiles: Vec<Line>,
    candidates: Candidates,
}

impl<'a> NestedLoop<'a> {
    /// The pairs of one block.
    ///
    /// # Panics
    ///
    /// If `isa` is not available.
    #[must_use]
    pub fn within(isa: Isa, vectors: Vectors<'a>, epsilon: Epsilon) -> Self {
        Self::new(isa, [vectors, vectors], epsilon, true)
    }

    /// The pairs of a vector of `left` and one of `right`.
    ///
    /// # Panics
    ///
    /// If `isa` is not available, or the dimensions differ.
    #[must_use]
    pub fn between(isa: Isa, left: Vectors<'a>, right: Vectors<'a>, epsilon: Epsilon) -> Self {
        Self::new(isa, [left, right], epsilon, false)
    }

    fn new(isa: Isa, [left, right]: [Vectors<'a>; 2], epsilon: Epsilon, is_within: bool) -> Self {
        let dims = right.dims();
        assert!(left.dims() == dims, "vectors of {} and {dims} dimensions", left.dims());
        let form = Form::float(&Extent::of(isa, right), epsilon.reach());
        let mut tiles = vec![Line([0; LANES]); right.len().div_ceil(LANES) * dims];
        form.store(isa, right.values(), dims, dims, &mut tiles);
        let limit = form.limits(dims, epsilon.reach(), epsilon.core()).within;
        Self { left, right, epsilon, is_within, form, limit, tiles }
    }

    /// Number of parts, each of which can be searched by itself.
    #[must_use]
    pub fn parts(&self) -> usize {
        if self.right.is_empty() { 0 } else { self.left.len().div_ceil(PART_ROWS) }
    }

    /// Begins a part.
    ///
    /// # Panics
    ///
    /// If there is no such part, or `isa` is not available.
    pub fn begin(&self, isa: Isa, part: usize, scan: &mut Scan) {
        assert!(part < self.parts(), "part {part} of {}", self.parts());
        let dims = self.left.dims();
        let rows = &self.left.values()[part * PART_ROWS * dims..];
        let rows = &rows[..rows.len().min(PART_ROWS * dims)];
        scan.part = part;
        scan.tile = if self.is_within { part * PART_ROWS / LANES } else { 0 };
        scan.tiles.clear();
        scan.tiles.resize(rows.len().div_ceil(LANES * dims) * dims, Line([0; LANES]));
        self.form.store(isa, rows, dims, dims, &mut scan.tiles);
        scan.candidates.clear();
    }

    /// Continues the part until the sink is full; returns whether the part is finished.
    ///
    /// # Panics
    ///
    /// If `isa` is not available.
    pub fn advance<S: Sink>(&self, isa: Isa, scan: &mut Scan, sink: &mut S) -> bool {
        let sides = Sides {
            dims: self.left.dims(),
            epsilon: self.epsilon,
            probe: Points { rows: self.left.values(), order: &[] },
            build: Points { rows: self.right.values(), order: &[] },
            kind: if self.is_within { Kind::Within } else { Kind::Between },
        };
        while scan.candidates.decide(sides, sink) {
            let tiles = self.right.len().div_ceil(LANES);
            if scan.tile == tiles {
                return true;
            }
            while scan.tile < tiles && scan.candidates.len() < CANDIDATES_MIN {
                scan.candidates.reserve(PART_ROWS * LANES);
                dispatch::<Base, _>(isa, CompareTile { join: self, scan });
                scan.tile += 1;
            }
        }
        false
    }
}

/// Compares the rows of a part with a tile.
struct CompareTile<'a> {
    join: &'a NestedLoop<'a>,
    scan: &'a mut Scan,
}

impl<L: Filter> RunOn<L> for CompareTile<'_> {
    #[inline(always)]
    fn run_on(self, level: L) {
        let NestedLoop { left, right, limit, tiles, is_within, .. } = self.join;
        let Scan { part, tile, tiles: own, candidates } = self.scan;
        let dims = left.dims();
        let (begin, len) = (*part * PART_ROWS, (left.len() - *part * PART_ROWS).min(PART_ROWS));
        let lines = &tiles[*tile * dims..][..dims];
        let valid = 0xffff >> (LANES - (right.len() - *tile * LANES).min(LANES));
        for row in (0..len).step_by(ROWS) {
            let first = begin + row;
            // A pair with a row of an earlier tile is found from that row: each pair is compared
            // once.
            if *is_within && first / LANES > *tile {
                break;
            }
            let own = &own[row / LANES * dims..][..dims];
            let hits = compare(level, own, row % LANES, lines, *limit);
            for (row, hits) in (first..begin + len).zip(hits) {
                let mut hits = hits & valid;
                if *is_within && row / LANES == *tile {
                    hits &= 0xfffe << (row % LANES);
                }
                if hits != 0 {
                    candidates.add(level, as_u32(row), as_u32(*tile * LANES), hits);
                }
            }
        }
    }
}

/// The lanes of `lines` that may be partners of each of the rows from `lane` of a tile on.
#[inline(always)]
fn compare<L: Filter>(
    level: L,
    own: &[Line],
    lane: usize,
    lines: &[Line],
    limit: u32,
) -> [u32; ROWS] {
    let limit = Sixteen::<Float>::splat_sum(level, limit);
    let mut sums = [Sixteen::<Float>::zero(level); ROWS];
    let stretches = own.chunks(STRETCH).zip(lines.chunks(STRETCH));
    let mut hits = [0; ROWS];
    for (own, lines) in stretches {
        for (own, line) in own.iter().zip(lines) {
            let line = Sixteen::<Float>::load(level, line);
            let own: &[u32; ROWS] = own.0[lane..].first_chunk().expect("lanes in fours");
            for (sums, &own) in sums.iter_mut().zip(own) {
                let own = Sixteen::<Float>::splat(level, own);
                *sums = Sixteen::<Float>::add_differences(level, *sums, own, line);
            }
        }
        let mut any = 0;
        for (hits, &sums) in hits.iter_mut().zip(&sums) {
            *hits = Sixteen::<Float>::at_most(level, sums, limit);
            any |= *hits;
        }
        // Sums only grow, as rounding is monotone.
        if any == 0 {
            break;
        }
    }
    hits
}
