//! KERNEL: transposes blocks, joins lists, and counts the pairs and triples of tasks.

use std::ops::Range;

use trommel_kernels::Isa;
use trommel_kernels::cuda::NoDevice;
use trommel_kernels::supports::FoundPairs;

use super::chunk::{PairChunk, PairWork};
use super::columns::Columns;
use super::triples::TripleCounter;
use crate::frequent_pairs::data::joining::JoinedRanks;
use crate::frequent_pairs::data::pair_rows::PairRows;
use crate::frequent_pairs::data::transposed::Transposition;
use crate::frequent_pairs::data::vertical::VerticalData;
use crate::frequent_pairs::device::flights::{OpenFlights, PairFlights};
use crate::frequent_pairs::plan::form::ColumnForm;
use crate::frequent_pairs::plan::tasks::Task;
use crate::wave::{DeviceSession, Kernel};

/// The columns that were counted last; the next task may have the same columns.
struct Present {
    columns: Columns,
    form: ColumnForm,
    range: Range<u32>,
    version: u64,
}

/// Transposes blocks, joins lists and counts tasks.
pub(crate) struct PairKernel {
    isa: Isa,
    /// The device, if there may be one.
    device: Option<OpenFlights>,
    transposition: Transposition,
    present: Option<Present>,
    triples: TripleCounter,
}

impl PairKernel {
    pub(crate) fn new(isa: Isa, device: Option<OpenFlights>) -> Self {
        Self {
            isa,
            device,
            transposition: Transposition::default(),
            present: None,
            triples: TripleCounter::new(isa),
        }
    }

    /// Makes the columns of a task the present columns, unless the task has the same columns as the
    /// task before.
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

    /// Counts the pairs of a task, and removes the counted rows from the task.
    fn count(&mut self, data: &VerticalData, task: &mut Task, found: &mut FoundPairs) {
        self.prepare(data, task);
        let rows = task.rows.clone();
        if let Some(Present { columns, .. }) = &mut self.present {
            task.rows.start = columns.count(self.isa, data, rows, found);
        }
    }

    /// Counts the triples of a task, and removes the counted rows from the task.
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
    type OnDevice = PairFlights;

    fn run(&mut self, chunk: &mut PairChunk) {
        match &mut chunk.work {
            PairWork::Nothing | PairWork::Transposed(..) => {}
            PairWork::LookUp(block, names) => block.items.look_up(names),
            PairWork::Transpose(block) => {
                let transposed = self.transposition.transpose(block);
                chunk.work = PairWork::Transposed(transposed, std::mem::take(block));
            }
            PairWork::Join(task) => task.run(JoinedRanks::join),
            PairWork::Count(data, task) => {
                chunk.found.clear(data.least());
                while !chunk.found.is_full() && task.has_rows(data.len()) {
                    self.count(data, task, &mut chunk.found);
                }
            }
            PairWork::CountTriples(pairs, task) => {
                chunk.found.clear(pairs.data().least());
                self.count_triples(pairs, task, &mut chunk.found);
            }
        }
    }

    fn open(
        &mut self,
        device: &DeviceSession,
        _: Option<&PairChunk>,
    ) -> Result<PairFlights, NoDevice> {
        self.device.as_ref().map_or(Err(NoDevice::NoDriver), |open| open.open(device))
    }
}
