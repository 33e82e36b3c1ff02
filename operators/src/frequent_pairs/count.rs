//! KERNEL: transposes blocks and counts the pairs of tasks.

use std::ops::Range;

use trommel_kernels::Isa;
use trommel_kernels::batmap::pair_supports;
use trommel_kernels::cuda::NoDevice;
use trommel_kernels::supports::{
    BitmapColumns, FoundPairs, ListColumns, Pair, SlicedColumns, SparseRows, TriangleRows,
};

use super::chunk::{PairChunk, Work};
use super::flights::{OpenFlights, PairFlights};
use super::plan::{Form, Task};
use super::transposed::Transposition;
use super::vertical::VerticalData;
use crate::wave::Kernel;

/// Rows whose batmaps are compared at once.
const MAP_ROWS: u32 = 16;

/// The data of a task in its layout.
enum Columns {
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

    /// Counts rows until `found` is full; returns the row after the last one counted.
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
}

/// Columns as batmaps, which all columns of the data share.
struct MapColumns {
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
    /// The device, if there may be one.
    device: Option<OpenFlights>,
    transposition: Transposition,
    present: Option<Present>,
}

impl PairKernel {
    pub(super) fn new(isa: Isa, device: Option<OpenFlights>) -> Self {
        Self { isa, device, transposition: Transposition::default(), present: None }
    }

    /// Counts the rows of a task, and removes the rows that are done.
    fn count(&mut self, data: &VerticalData, task: &mut Task, found: &mut FoundPairs) {
        let Task { form, columns: range, rows, .. } = task;
        let version = data.version();
        let is_present = |present: &Present| {
            (present.version, present.form, &present.range) == (version, *form, range)
        };
        let mut present = match self.present.take() {
            Some(present) if is_present(&present) => present,
            other => {
                let columns = match other {
                    Some(other) => other.columns.reset(data, *form, range.clone()),
                    None => Columns::new(data, *form, range.clone()),
                };
                Present { columns, form: *form, range: range.clone(), version }
            }
        };
        rows.start = present.columns.count(self.isa, data, rows.clone(), found);
        self.present = Some(present);
    }
}

impl Kernel for PairKernel {
    const NAME: &'static str = "count";
    type Chunk = PairChunk;
    type OnDevice = PairFlights;

    fn run(&mut self, chunk: &mut PairChunk) {
        match &mut chunk.work {
            Work::Nothing | Work::Transposed(..) => {}
            Work::Transpose(block) => {
                let transposed = self.transposition.transpose(block);
                chunk.work = Work::Transposed(transposed, std::mem::take(block));
            }
            Work::Count(data, task) => {
                chunk.found.clear(data.least());
                chunk.fell_back |= task.is_for_device();
                while !chunk.found.is_full() && task.has_rows(data.len()) {
                    self.count(data, task, &mut chunk.found);
                }
            }
        }
    }

    fn open(&mut self, _: Option<&PairChunk>) -> Result<PairFlights, NoDevice> {
        self.device.as_ref().map_or(Err(NoDevice::NoDriver), OpenFlights::open)
    }
}
