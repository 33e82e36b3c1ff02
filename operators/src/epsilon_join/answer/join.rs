//! A join as numbered parts, by a directory or by a nested loop.

use std::ops::Range;

use trommel_kernels::Isa;
use trommel_kernels::vectors::Side;
use trommel_kernels::vectors::{Join, NestedLoop, Pair, Partners, Scan, Search, Sink, Vectors};

use crate::epsilon_join::data::built::{Built, Index, Sides, as_row};

/// A join of the vectors of all inputs.
///
/// ```text
/// directory     a part is up to 256 vectors, which are looked up in all others
/// nested loop   a part is a pair of blocks:   0  1  3     of one input, above the diagonal;
///                                                2  4     of two inputs, all of them
///                                                   5
/// ```
pub(crate) enum PartedJoin<'a> {
    Directory(Join<'a>),
    Loop { sides: &'a Sides, rows: usize },
}

impl<'a> PartedJoin<'a> {
    /// A join whose nested loops have blocks of `block_rows` rows.
    pub(crate) fn new(sides: &'a Sides, block_rows: usize) -> Self {
        let directories = (sides.left.directory(), sides.right.as_deref().map(Built::directory));
        match directories {
            (Some(one), None) if sides.are_looked_up => Self::Directory(Join::each(one)),
            (Some(one), None) => Self::Directory(Join::within(one)),
            (Some(left), Some(Some(right))) if sides.are_looked_up => {
                Self::Directory(Join::of_right(left, right))
            }
            (Some(left), Some(Some(right))) => Self::Directory(Join::between(left, right)),
            _ => Self::Loop { sides, rows: block_rows },
        }
    }

    /// Number of parts.
    pub(crate) fn parts(&self) -> usize {
        match self {
            Self::Directory(join) => join.parts(),
            Self::Loop { sides, rows } => {
                let left = sides.left.len().div_ceil(*rows);
                match &sides.right {
                    None => left * (left + 1) / 2,
                    Some(right) => left * right.len().div_ceil(*rows),
                }
            }
        }
    }

    /// Completes the counts of partners, after all parts.
    pub(crate) fn settle(&self, partners: &mut Partners) {
        if let Self::Directory(join) = self {
            join.settle(partners);
        }
    }

    /// The blocks of rows of a part.
    fn blocks(sides: &Sides, rows: usize, part: usize) -> [Range<usize>; 2] {
        let [left, right] = match &sides.right {
            None => block_of_triangle(part),
            Some(right) => {
                let columns = right.len().div_ceil(rows);
                [part / columns, part % columns]
            }
        };
        let range = |block: usize, len: usize| block * rows..len.min((block + 1) * rows);
        [range(left, sides.left.len()), range(right, sides.right().len())]
    }
}

/// Row and column of a block. The columns follow one after the other, each down to the diagonal.
fn block_of_triangle(part: usize) -> [usize; 2] {
    // The root of a whole number is exact enough to be off by one at most.
    let mut column = (8 * part + 1).isqrt().saturating_sub(1) / 2;
    while column * (column + 1) / 2 > part {
        column -= 1;
    }
    [part - column * (column + 1) / 2, column]
}

/// The vectors of `rows`; the vectors are not in a directory.
pub(crate) fn rows_of(built: &Built, rows: Range<usize>) -> Vectors<'_> {
    let Index::Rows(coordinates) = &built.index else { unreachable!("a loop has rows") };
    let dims = built.dims;
    Vectors::new(&coordinates[rows.start * dims..rows.end * dims], dims)
}

/// The place in a part of a join, and the memory for the search.
#[derive(Debug, Default)]
pub(crate) struct Cursor {
    search: Search,
    scan: Scan,
    /// The part of a nested loop within the part of the join.
    block_part: usize,
    /// Whether a part is under way.
    has_begun: bool,
}

impl Cursor {
    /// Forgets the part.
    pub(crate) fn clear(&mut self) {
        self.has_begun = false;
    }

    /// Continues `part` until the sink is full; returns whether the part is finished.
    pub(crate) fn advance<S: Sink>(
        &mut self,
        join: &PartedJoin<'_>,
        isa: Isa,
        part: usize,
        sink: &mut S,
    ) -> bool {
        let is_done = match join {
            PartedJoin::Directory(join) => {
                if !self.has_begun {
                    join.begin(isa, part, &mut self.search);
                }
                join.advance(isa, &mut self.search, sink)
            }
            PartedJoin::Loop { sides, rows } => {
                let [left, right] = PartedJoin::blocks(sides, *rows, part);
                self.advance_loop(isa, sides, [left, right], sink)
            }
        };
        self.has_begun = !is_done;
        is_done
    }

    fn advance_loop<S: Sink>(
        &mut self,
        isa: Isa,
        sides: &Sides,
        [left, right]: [Range<usize>; 2],
        sink: &mut S,
    ) -> bool {
        let is_within = sides.right.is_none() && left == right;
        let mut sink = Shifted { sink, begin: [as_row(left.start), as_row(right.start)] };
        let epsilon = sides.left.epsilon;
        let lefts = rows_of(&sides.left, left);
        let nested = if is_within {
            NestedLoop::within(isa, lefts, epsilon)
        } else {
            NestedLoop::between(isa, lefts, rows_of(sides.right(), right), epsilon)
        };
        if !self.has_begun {
            self.block_part = 0;
        }
        while self.block_part < nested.parts() {
            if !self.has_begun {
                nested.begin(isa, self.block_part, &mut self.scan);
                self.has_begun = true;
            }
            if !nested.advance(isa, &mut self.scan, &mut sink) {
                return false;
            }
            self.has_begun = false;
            self.block_part += 1;
        }
        true
    }
}

/// Gives the pairs of two blocks to a sink, with rows numbered over the whole inputs.
struct Shifted<'a, S> {
    sink: &'a mut S,
    begin: [u32; 2],
}

impl<S: Sink> Sink for Shifted<'_, S> {
    const TAKES_ALL: bool = false;

    #[inline(always)]
    fn is_full(&self) -> bool {
        self.sink.is_full()
    }

    #[inline(always)]
    fn take(&mut self, pair: Pair) {
        let [left, right] = self.begin;
        self.sink.take(Pair { left: pair.left + left, right: pair.right + right, ..pair });
    }

    fn take_all(&mut self, _: u32, _: Side, _: Range<u32>, _: u32) {
        unreachable!("a nested loop finds pairs one by one");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_a_triangle_come_once() {
        let mut expected = (0..60).flat_map(|column| (0..=column).map(move |row| [row, column]));
        assert!((0..60 * 61 / 2).all(|part| Some(block_of_triangle(part)) == expected.next()));
    }
}
