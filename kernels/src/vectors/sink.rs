//! Receivers of pairs: written, counted, or counted for each point.

use std::ops::Range;

/// A pair that joins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// Row of the left vectors; in a join of vectors with themselves the smaller row.
    pub left: u32,
    /// Row of the right vectors.
    pub right: u32,
    /// Square of the distance, as [`square`](super::square) computes it.
    pub square: f64,
}

/// The side of a join to which a row belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The left vectors, or the only vectors of a join with themselves.
    Left,
    /// The right vectors.
    Right,
}

/// Takes the pairs of a join: each pair once, or twice with [`Join::each`](super::Join::each).
pub trait Sink {
    /// Whether the sink takes many pairs at once, by [`Self::take_all`].
    const TAKES_ALL: bool;
    /// Whether the sink needs only some pairs of a point that is looked up: [`Self::has_enough`]
    /// says when it has enough.
    const STOPS: bool = false;

    /// Whether the sink takes no more pairs now; the join stops, and continues later.
    fn is_full(&self) -> bool {
        false
    }

    /// Whether the sink needs no more pairs of this row; called only if [`Self::STOPS`], by a join
    /// that looks rows up with [`Join::each`](super::Join::each) or
    /// [`Join::of_right`](super::Join::of_right).
    fn has_enough(&self, _row: u32) -> bool {
        false
    }

    /// Takes a pair.
    fn take(&mut self, pair: Pair);

    /// Takes the pairs of a row of `side` with all `points` points of a range of leaves of the
    /// searched directory; called only if [`Self::TAKES_ALL`].
    fn take_all(&mut self, row: u32, side: Side, leaves: Range<u32>, points: u32);
}

/// Counts pairs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PairCount(pub u64);

impl Sink for PairCount {
    const TAKES_ALL: bool = true;

    #[inline(always)]
    fn take(&mut self, _: Pair) {
        self.0 += 1;
    }

    #[inline(always)]
    fn take_all(&mut self, _: u32, _: Side, _: Range<u32>, points: u32) {
        self.0 += u64::from(points);
    }
}

/// Writes pairs, up to a maximum number.
#[derive(Clone, Debug)]
pub struct FoundPairs {
    pairs: Vec<Pair>,
    room: usize,
}

impl FoundPairs {
    /// Room for `room` pairs.
    #[must_use]
    pub fn new(room: usize) -> Self {
        Self { pairs: Vec::with_capacity(room), room }
    }

    /// The pairs.
    #[must_use]
    pub fn pairs(&self) -> &[Pair] {
        &self.pairs
    }

    /// Forgets the pairs; the room is free again.
    pub fn clear(&mut self) {
        self.pairs.clear();
    }
}

impl Sink for FoundPairs {
    const TAKES_ALL: bool = false;

    #[inline(always)]
    fn is_full(&self) -> bool {
        self.pairs.len() >= self.room
    }

    #[inline(always)]
    fn take(&mut self, pair: Pair) {
        self.pairs.push(pair);
    }

    fn take_all(&mut self, _: u32, _: Side, _: Range<u32>, _: u32) {
        unreachable!("pairs are written one by one");
    }
}

/// Counts the partners of each point.
///
/// A point that joins with all points of a range of leaves costs one step of a sum over the leaves;
/// [`Join::settle`](super::Join::settle) adds these sums to the counts at the end.
#[derive(Clone, Debug)]
pub struct Partners {
    left: Vec<u32>,
    /// Empty in a join of vectors with themselves.
    right: Vec<u32>,
    is_within: bool,
    /// Partners of the points of a leaf, less the partners of the points of the leaf before it.
    steps: Vec<u32>,
}

impl Partners {
    /// No partners yet, of vectors that are joined with themselves.
    #[must_use]
    pub fn within(rows: usize) -> Self {
        Self { left: vec![0; rows], right: Vec::new(), is_within: true, steps: Vec::new() }
    }

    /// No partners yet, of two blocks of vectors.
    #[must_use]
    pub fn between(left: usize, right: usize) -> Self {
        Self { left: vec![0; left], right: vec![0; right], is_within: false, steps: Vec::new() }
    }

    /// The partners of each row of the left vectors, or of the only vectors.
    #[must_use]
    pub fn left(&self) -> &[u32] {
        &self.left
    }

    /// The partners of each row of the right vectors.
    #[must_use]
    pub fn right(&self) -> &[u32] {
        &self.right
    }

    /// Adds the counts of `other`, which has counted other parts of the same join.
    ///
    /// # Panics
    ///
    /// If the numbers of rows differ.
    pub fn merge(&mut self, other: &Self) {
        let lens = |counts: &Self| [counts.left.len(), counts.right.len()];
        assert!(lens(self) == lens(other), "{:?} and {:?} rows", lens(self), lens(other));
        self.steps.resize(self.steps.len().max(other.steps.len()), 0);
        let sides = [
            (&mut self.left, &other.left),
            (&mut self.right, &other.right),
            (&mut self.steps, &other.steps),
        ];
        for (counts, more) in sides {
            for (count, &more) in counts.iter_mut().zip(more) {
                *count = count.wrapping_add(more);
            }
        }
    }

    /// Adds `counts`, which were computed elsewhere: the partners of the rows of `side` from
    /// `first` on.
    ///
    /// # Panics
    ///
    /// If there are fewer rows.
    pub fn add(&mut self, side: Side, first: usize, counts: &[u32]) {
        let is_left = side == Side::Left || self.is_within;
        let all = if is_left { &mut self.left } else { &mut self.right };
        let rows = &mut all[first..first + counts.len()];
        rows.iter_mut().zip(counts).for_each(|(count, more)| *count += more);
    }

    /// Adds the steps to the counts, by the rows of each leaf of a side.
    pub(super) fn settle<'a>(&mut self, side: Side, leaves: impl Iterator<Item = &'a [u32]>) {
        let counts = if side == Side::Left { &mut self.left } else { &mut self.right };
        let mut more = 0_u32;
        for (rows, step) in leaves.zip(self.steps.drain(..)) {
            more = more.wrapping_add(step);
            for &row in rows {
                // Places without a point have no row.
                if let Some(count) = counts.get_mut(row as usize) {
                    *count += more;
                }
            }
        }
    }
}

impl Sink for Partners {
    const TAKES_ALL: bool = true;

    #[inline(always)]
    fn take(&mut self, pair: Pair) {
        self.left[pair.left as usize] += 1;
        let right = if self.is_within { &mut self.left } else { &mut self.right };
        right[pair.right as usize] += 1;
    }

    #[inline(always)]
    fn take_all(&mut self, row: u32, side: Side, leaves: Range<u32>, points: u32) {
        let counts = if side == Side::Left { &mut self.left } else { &mut self.right };
        counts[row as usize] += points;
        let (start, end) = (leaves.start as usize, leaves.end as usize);
        if self.steps.len() <= end {
            self.steps.resize(end + 1, 0);
        }
        // In wrapping arithmetic of 32 bits a negative step is a large positive step.
        self.steps[start] = self.steps[start].wrapping_add(1);
        self.steps[end] = self.steps[end].wrapping_sub(1);
    }
}
