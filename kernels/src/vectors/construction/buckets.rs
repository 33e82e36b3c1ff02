//! The step that finds the bucket, or the strip, of each row.

use std::ops::Range;
use std::sync::Arc;

use crate::Isa;
use crate::memory::Part;
use crate::vectors::directory::{Directory, Tree};
use crate::vectors::filters::Extent;
use crate::vectors::rows::Vectors;
use crate::vectors::strips::Grid;

/// The way to find the buckets of rows.
#[derive(Debug)]
pub(super) enum Sorter {
    Tree(Tree),
    /// Strips of points of this extent.
    Grid(Grid, Extent),
}

/// Finds the buckets of a range of rows.
#[derive(Debug)]
pub(super) struct Sorting {
    sorter: Arc<Sorter>,
    rows: Range<usize>,
    buckets: Part<u16>,
}

/// The buckets of a range of rows.
#[derive(Debug)]
pub(super) struct SortedRows {
    buckets: Part<u16>,
    /// The rows of the range in each bucket.
    counts: Vec<u32>,
    /// The extent of the rows, unless a survey has found it before.
    extent: Option<Extent>,
}

/// The buckets of all rows.
#[derive(Debug)]
pub(super) struct Sorted {
    pub(super) buckets: Vec<u16>,
    pub(super) counts: Vec<u32>,
    pub(super) extent: Extent,
    pub(super) grid: Option<Grid>,
}

/// The places of all points.
#[derive(Debug)]
pub(super) struct Places {
    /// A directory without its points.
    pub(super) frame: Arc<Directory>,
    /// The bucket of each row, and the number of rows of each bucket.
    pub(super) buckets: Vec<u16>,
    pub(super) counts: Vec<u32>,
    /// The grid, if the buckets are its strips.
    pub(super) grid: Option<Grid>,
}

impl Sorter {
    /// Puts the buckets of all ranges of rows together.
    pub(super) fn gathered(&self, sorted: Vec<SortedRows>) -> Sorted {
        let (mut parts, mut counts) = (Vec::with_capacity(sorted.len()), Vec::new());
        let (grid, mut whole) = match self {
            Self::Grid(grid, extent) => (Some(grid.clone()), Some(extent.clone())),
            Self::Tree(_) => (None, None),
        };
        for rows in sorted {
            parts.push(rows.buckets);
            counts.resize(rows.counts.len(), 0);
            for (sum, count) in counts.iter_mut().zip(rows.counts) {
                *sum += count;
            }
            whole = match (whole, rows.extent) {
                (Some(whole), Some(extent)) => Some(whole.wider(&extent)),
                (whole, extent) => whole.or(extent),
            };
        }
        let extent = whole.expect("a round has tasks");
        Sorted { buckets: Part::join(parts), counts, extent, grid }
    }
}

impl Sorting {
    /// The work for each of these ranges.
    pub(super) fn all(
        sorter: &Arc<Sorter>,
        rows: impl Iterator<Item = Range<usize>> + Clone,
    ) -> impl Iterator<Item = Self> {
        let parts = Part::zeros(rows.clone().map(|rows| rows.len()));
        rows.zip(parts).map(|(rows, buckets)| Self { sorter: Arc::clone(sorter), rows, buckets })
    }

    pub(super) fn run(self, isa: Isa, vectors: Vectors<'_>) -> SortedRows {
        let Self { sorter, rows, mut buckets } = self;
        let rows = vectors.part(rows);
        let (counts, extent) = match &*sorter {
            Sorter::Grid(grid, _) => (grid.find(isa, rows, &mut buckets), None),
            Sorter::Tree(tree) => {
                let extent = Extent::of(isa, rows);
                (tree.find(isa, rows, &mut buckets), Some(extent))
            }
        };
        SortedRows { buckets, counts, extent }
    }
}
