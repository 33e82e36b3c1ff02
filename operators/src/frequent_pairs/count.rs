//! KERNEL: transposes blocks and counts the pairs of tasks.

use std::ops::Range;

use trommel_kernels::Isa;
use trommel_kernels::batmap::pair_supports;
use trommel_kernels::cuda::{DeviceError, NoDevice};
use trommel_kernels::supports::{
    BitmapColumns, FoundPairs, ListColumns, Pair, Rows, SlicedColumns, SparseRows, TriangleRows,
};

use super::chunk::{PairChunk, Work};
use super::pair_rows::PairRows;
use super::plan::{Form, Task};
use super::transposed::Transposition;
use super::triples::TripleCounter;
use super::vertical::VerticalData;
use crate::wave::{Kernel, Landed, OnDevice};

/// Rows whose batmaps are compared at once.
const MAP_ROWS: u32 = 16;

/// The data of a task in its layout.
#[derive(Debug)]
pub(super) enum Columns {
    Batmap(MapColumns),
    Bitmap(BitmapColumns),
    Lists(ListColumns),
    Sliced(SlicedColumns),
    Sparse(SparseRows),
    Triangle(TriangleRows),
}

impl Columns {
    fn new(data: &VerticalData, form: Form, columns: Range<u32>) -> Self {
        let (lists, transactions, least) = (data.lists(), data.transactions(), data.least());
        match form {
            Form::Batmap => Self::Batmap(MapColumns { columns, supports: Vec::new() }),
            Form::Bitmap => Self::Bitmap(BitmapColumns::new(lists, transactions, columns)),
            Form::Lists => Self::Lists(ListColumns::new(columns)),
            Form::Sliced => Self::Sliced(SlicedColumns::new(lists, transactions, columns)),
            Form::Sparse => Self::Sparse(SparseRows::new(lists, transactions, columns, least)),
            Form::Triangle => {
                Self::Triangle(TriangleRows::new(lists, transactions, columns, least))
            }
        }
    }

    /// Columns in the memory of `self`, if the layout is the same.
    fn reset(self, data: &VerticalData, form: Form, columns: Range<u32>) -> Self {
        let (lists, transactions) = (data.lists(), data.transactions());
        match (form, self) {
            (Form::Bitmap, Self::Bitmap(mut own)) => {
                own.reset(lists, transactions, columns);
                Self::Bitmap(own)
            }
            (Form::Sliced, Self::Sliced(mut own)) => {
                own.reset(lists, transactions, columns);
                Self::Sliced(own)
            }
            _ => Self::new(data, form, columns),
        }
    }

    /// Counts items as rows until `found` is full; returns the row after the last one counted.
    fn count(
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
    pub(super) fn count_rows(
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

/// Columns as batmaps, which all columns of the data share.
#[derive(Debug)]
pub(super) struct MapColumns {
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
            // Above the diagonal, the rectangle has pairs that belong to other rows.
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

/// The columns that were counted last, which the next task may have, too.
struct Present {
    columns: Columns,
    form: Form,
    range: Range<u32>,
    version: u64,
}

/// Transposes and counts.
pub(super) struct PairKernel {
    isa: Isa,
    transposition: Transposition,
    present: Option<Present>,
    triples: TripleCounter,
}

impl PairKernel {
    pub(super) fn new(isa: Isa) -> Self {
        Self {
            isa,
            transposition: Transposition::default(),
            present: None,
            triples: TripleCounter::new(isa),
        }
    }

    /// The columns of a task.
    fn prepare(&mut self, data: &VerticalData, task: &Task) {
        let Task { form, columns: range, .. } = task;
        let version = data.version();
        let is_present = |present: &Present| {
            (present.version, present.form, &present.range) == (version, *form, range)
        };
        if !self.present.as_ref().is_some_and(is_present) {
            let columns = match self.present.take() {
                Some(other) => other.columns.reset(data, *form, range.clone()),
                None => Columns::new(data, *form, range.clone()),
            };
            self.present = Some(Present { columns, form: *form, range: range.clone(), version });
        }
    }

    /// Counts the pairs of a task, and removes the rows that are done.
    fn count(&mut self, data: &VerticalData, task: &mut Task, found: &mut FoundPairs) {
        self.prepare(data, task);
        let rows = task.rows.clone();
        if let Some(Present { columns, .. }) = &mut self.present {
            task.rows.start = columns.count(self.isa, data, rows, found);
        }
    }

    /// Counts the triples of a task, and removes the rows that are done.
    fn count_triples(&mut self, pairs: &PairRows, task: &mut Task, found: &mut FoundPairs) {
        self.prepare(pairs.data(), task);
        let (range, rows) = (&task.columns, task.rows.clone());
        if let Some(Present { columns, .. }) = &mut self.present {
            task.rows.start = self.triples.count(pairs, columns, range, rows, found);
        }
    }
}

impl Kernel for PairKernel {
    const NAME: &'static str = "count";
    type Chunk = PairChunk;
    type OnDevice = NoFlights;

    fn run(&mut self, chunk: &mut PairChunk) {
        match &mut chunk.work {
            Work::Nothing | Work::Transposed(..) => {}
            Work::Transpose(block) => {
                let transposed = self.transposition.transpose(block);
                chunk.work = Work::Transposed(transposed, std::mem::take(block));
            }
            Work::Count(data, task) => {
                chunk.found.clear(data.least());
                self.count(data, task, &mut chunk.found);
            }
            Work::CountTriples(pairs, task) => {
                chunk.found.clear(pairs.data().least());
                self.count_triples(pairs, task, &mut chunk.found);
            }
        }
    }

    fn open(&mut self, _: Option<&PairChunk>) -> Result<NoFlights, NoDevice> {
        Err(NoDevice::NoDriver)
    }
}

/// Chunks in flight, of which there are none: this type has no value.
pub(super) enum NoFlights {}

impl OnDevice for NoFlights {
    type Chunk = PairChunk;

    fn has_room(&self, _: &PairChunk) -> bool {
        match *self {}
    }

    fn submit(&mut self, _: &PairChunk) -> Result<(), DeviceError> {
        match *self {}
    }

    fn is_done(&mut self) -> Result<bool, DeviceError> {
        match *self {}
    }

    fn collect(&mut self, _: &mut PairChunk) -> Result<Landed, DeviceError> {
        match *self {}
    }
}
