//! Blocks of columns in their layouts.

use std::ops::Range;

use trommel_kernels::Isa;
use trommel_kernels::batmap::pair_supports;
use trommel_kernels::supports::{
    BitmapColumns, FoundPairs, ListColumns, Pair, Rows, SlicedColumns, SparseRows, TriangleRows,
};

use crate::frequent_pairs::data::vertical::VerticalData;
use crate::frequent_pairs::plan::form::ColumnForm;

/// Rows whose batmaps are compared at once.
const MAP_ROWS: u32 = 16;

/// The data of a task in its layout.
#[derive(Debug)]
pub(crate) enum Columns {
    Batmap(MapColumns),
    Bitmap(BitmapColumns),
    Lists(ListColumns),
    Sliced(SlicedColumns),
    Sparse(SparseRows),
    Triangle(TriangleRows),
}

impl Columns {
    pub(crate) fn new(data: &VerticalData, form: ColumnForm, columns: Range<u32>) -> Self {
        let (lists, transactions, least) = (data.lists(), data.transactions(), data.least());
        match form {
            ColumnForm::Batmap => Self::Batmap(MapColumns { columns, supports: Vec::new() }),
            ColumnForm::Bitmap => Self::Bitmap(BitmapColumns::new(lists, transactions, columns)),
            ColumnForm::Lists => Self::Lists(ListColumns::new(columns)),
            ColumnForm::Sliced => Self::Sliced(SlicedColumns::new(lists, transactions, columns)),
            ColumnForm::Sparse => {
                Self::Sparse(SparseRows::new(lists, transactions, columns, least))
            }
            ColumnForm::Triangle => {
                Self::Triangle(TriangleRows::new(lists, transactions, columns, least))
            }
        }
    }

    /// Columns in the memory of `self`, if the layout is the same.
    pub(crate) fn reset(self, data: &VerticalData, form: ColumnForm, columns: Range<u32>) -> Self {
        let (lists, transactions) = (data.lists(), data.transactions());
        match (form, self) {
            (ColumnForm::Bitmap, Self::Bitmap(mut own)) => {
                own.reset(lists, transactions, columns);
                Self::Bitmap(own)
            }
            (ColumnForm::Sliced, Self::Sliced(mut own)) => {
                own.reset(lists, transactions, columns);
                Self::Sliced(own)
            }
            _ => Self::new(data, form, columns),
        }
    }

    /// Counts items as rows until `found` is full; returns the row after the last counted row.
    pub(crate) fn count(
        &mut self,
        isa: Isa,
        data: &VerticalData,
        rows: Range<u32>,
        found: &mut FoundPairs,
    ) -> u32 {
        let lists = data.lists();
        match self {
            Self::Batmap(columns) => columns.count(isa, data, rows, found),
            Self::Bitmap(columns) => columns.count(isa, lists, rows, found),
            Self::Lists(columns) => columns.count(isa, lists, rows, found),
            Self::Sliced(columns) => columns.count(isa, lists, rows, found),
            Self::Sparse(items) => items.count(isa, lists, rows, found),
            Self::Triangle(items) => items.count(isa, lists, rows, found),
        }
    }

    /// Counts the first `len` of the rows `lists` until `found` is full; returns the number of
    /// rows that were counted. Not for batmaps and triangles.
    pub(crate) fn count_rows(
        &mut self,
        isa: Isa,
        lists: Rows<'_>,
        len: usize,
        found: &mut FoundPairs,
    ) -> usize {
        let rows = 0..u32::try_from(len).expect("numbered by 32 bits");
        let counted = match self {
            Self::Bitmap(columns) => columns.count(isa, lists, rows, found),
            Self::Lists(columns) => columns.count(isa, lists, rows, found),
            Self::Sliced(columns) => columns.count(isa, lists, rows, found),
            Self::Sparse(items) => items.count(isa, lists, rows, found),
            Self::Batmap(_) | Self::Triangle(_) => unreachable!("they have no such rows"),
        };
        counted as usize
    }
}

/// Columns as batmaps. All columns of the data share these batmaps.
#[derive(Debug)]
pub(crate) struct MapColumns {
    columns: Range<u32>,
    /// Supports of the rows that are compared at once.
    supports: Vec<u32>,
}

impl MapColumns {
    fn count(
        &mut self,
        isa: Isa,
        data: &VerticalData,
        rows: Range<u32>,
        found: &mut FoundPairs,
    ) -> u32 {
        let maps = data.maps(isa);
        let mut next = rows.start;
        while next < rows.end && !found.is_full() {
            let group = next..rows.end.min(next + MAP_ROWS);
            // The group's columns end at the end of the group; a pair whose column is not before
            // its row belongs to another row.
            let columns = self.columns.start..self.columns.end.min(group.end);
            self.supports.resize(group.len() * columns.len(), 0);
            pair_supports(isa, maps, group.clone(), columns.clone(), &mut self.supports);
            for (right, supports) in group.clone().zip(self.supports.chunks(columns.len())) {
                let before = columns.clone().zip(supports).take_while(|(left, _)| *left < right);
                for (left, &support) in before {
                    found.offer(Pair { left, right, support });
                }
            }
            next = group.end;
        }
        next
    }
}
