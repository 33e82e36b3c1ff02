//! Tables whose blocks of rows are decoded by several workers.
//!
//! ```text
//!        parts             ┌► DECODE   ─┐  columns of some rows
//!  CUT ────────► PREPARE ──┼► DECODE 2 ─┼───────────────────────► COLLECT ──► rows
//! ```
//!
//! A part is a block of rows, or some columns of a block if a file has fewer blocks than there are
//! workers. CUT asks for the memory of a part before it sends the part; while other parts hold that
//! memory, CUT waits. A worker decodes the first batches of a part. COLLECT puts columns side by
//! side, and decodes the rest of the part, a batch at a time.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{Schema, SchemaRef};
use trommel_engine::batch::Chunk;
use trommel_engine::memory::Reservation;
use trommel_engine::operator::{Counters, Fragment, Load, NamedInputs, OperatorError, Output};
use trommel_kernels::cuda::NoDevice;

use super::super::error::{ReadError, TableError};
use super::PAUSE;
use super::fed::{FedChunk, Prepare};
use crate::source::read::files::input::Inputs;
use crate::source::read::tables::guard::guarded;
use crate::source::read::tables::source::{
    Cutter, Cutting, Decoder, Opening, Table, TablePart, TableSource,
};
use crate::wave::{
    self, Consumer, Device, DeviceSession, Estimate, Kernel, NoFlights, Taken, Target, Wave,
    WaveChunk,
};

/// Minimum bytes of files at which workers pay.
const BYTES_MIN: u64 = 1 << 20;
/// Maximum workers. Further workers would wait for the disk and for COLLECT.
const WORKERS_MAX: usize = 8;
/// Maximum bytes of texts that a worker decodes of a part; COLLECT decodes the rest.
const TEXT_BYTES: usize = 32 << 20;
/// Chunks in addition to the chunks of the workers: one that PREPARE fills, and one that COLLECT
/// reads.
const CHUNKS_BESIDE: usize = 2;

/// The number of workers for files of this size, with about this number of `blocks`, on this number
/// of threads; `None` if one thread reads and decodes.
pub(in super::super) fn table_workers(
    bytes: Option<u64>,
    blocks: usize,
    threads: usize,
) -> Option<usize> {
    // A worker decodes many rows of a block before the rows are used, which takes longer than
    // batches that stay in the cache. Workers therefore pay only if another worker decodes the next
    // block meanwhile.
    let pays = bytes.is_some_and(|bytes| bytes >= BYTES_MIN) && blocks > 1;
    (threads > 1 && pays).then(|| threads.min(WORKERS_MAX))
}

/// A source of tables with this number of workers; `inputs` reports the files that are left out.
pub(in super::super) fn divide_tables(
    source: TableSource,
    (read, opening): (&SchemaRef, &Opening),
    inputs: Inputs,
    workers: usize,
) -> Fragment {
    let cutter = PartCutter {
        read: Arc::clone(read),
        opening: opening.clone(),
        workers,
        file: 0,
        is_within: false,
        under_way: Arc::new(()),
    };
    let collect = Collect::new(inputs, Arc::clone(read));
    let wave = Wave::new(Device::Cpu, workers + CHUNKS_BESIDE, TEXT_BYTES);
    let workers = (0..workers).map(|_| Decode).collect();
    let outputs = vec![Arc::clone(read)];
    wave::parallel(Prepare::new(), workers, collect, PartChunk::default, wave, outputs).fed_by(
        "cut",
        Load::Light,
        source.divided(cutter),
    )
}

/// Cuts tables into parts.
struct PartCutter {
    /// The columns that are read.
    read: SchemaRef,
    opening: Opening,
    workers: usize,
    /// Number of the table, and whether parts of the table have been sent.
    file: u64,
    is_within: bool,
    /// Counts the parts that are under way: each such part holds a reference.
    under_way: Arc<()>,
}

impl PartCutter {
    fn part(&self, part: TablePart, path: &Arc<str>) -> Result<Part, TableError> {
        let TablePart { table, columns } = part;
        let fields = &self.read.fields()[columns];
        let schema = Arc::new(Schema::new(fields.to_vec()));
        let mut decoder = Decoder::new(table, schema, &self.opening);
        decoder.reserve()?;
        Ok(Part {
            path: Arc::clone(path),
            file: self.file,
            decoder,
            is_last: false,
            rows: VecDeque::new(),
            room: self.opening.memory.reservation(),
            failed: None,
            _under_way: Arc::clone(&self.under_way),
        })
    }
}

impl Cutter for PartCutter {
    fn cut(
        &mut self,
        table: &mut dyn Table,
        path: &Arc<str>,
        out: &mut Output,
    ) -> Result<Cutting, TableError> {
        if !mem::replace(&mut self.is_within, true) {
            self.file += 1;
        }
        let parts = guarded(|| table.block(self.workers)).and_then(|parts| {
            let parts = parts.into_iter().flatten();
            parts.map(|part| self.part(part, path)).collect::<Result<Vec<_>, _>>()
        });
        let mut parts = match parts {
            // A part in the wave gives its memory back after its rows have been sent.
            Err(TableError::Memory(_)) if Arc::strong_count(&self.under_way) > 1 => {
                return Ok(Cutting::Wait(PAUSE));
            }
            parts => parts.inspect_err(|_| self.is_within = false)?,
        };
        let Some(last) = parts.last_mut() else {
            self.is_within = false;
            return Ok(Cutting::End);
        };
        last.is_last = true;
        table.pass_block();
        parts.into_iter().for_each(|part| out.send_chunk(Chunk::new(part, 1, 0)));
        Ok(Cutting::Sent)
    }
}

/// Some columns of a block of rows.
pub(super) struct Part {
    path: Arc<str>,
    /// Number of the table of the part.
    file: u64,
    decoder: Decoder,
    /// Whether no further columns of these rows follow.
    is_last: bool,
    /// Decoded rows that have not been sent, and memory for all batches of the rows but the last.
    rows: VecDeque<RecordBatch>,
    room: Reservation,
    failed: Option<TableError>,
    _under_way: Arc<()>,
}

impl Part {
    /// Decodes the first rows. COLLECT decodes rows for which there is no memory now.
    fn decode(&mut self) {
        let mut bytes = 0;
        while bytes < TEXT_BYTES && self.room.resize(bytes).is_ok() {
            match self.decoder.next() {
                Ok(Some((rows, texts))) => {
                    self.rows.push_back(rows);
                    bytes += texts;
                }
                Ok(None) => return,
                Err(error) => {
                    self.failed = Some(error);
                    return;
                }
            }
        }
    }

    /// The first batch that has not been sent; `None` at the end.
    fn front(&mut self) -> Result<Option<&RecordBatch>, TableError> {
        if self.rows.is_empty() {
            if let Some(error) = self.failed.take() {
                return Err(error);
            }
            // A smaller reservation cannot fail.
            let _ = self.room.resize(0);
            let next = self.decoder.next()?;
            self.rows.extend(next.map(|(rows, _)| rows));
        }
        Ok(self.rows.front())
    }

    /// Takes the first `count` rows of the first batch.
    fn take(&mut self, count: usize) -> RecordBatch {
        let rows = self.rows.pop_front().expect("there are rows in front");
        if count < rows.num_rows() {
            self.rows.push_front(rows.slice(count, rows.num_rows() - count));
        }
        rows.slice(0, count)
    }
}

/// The chunk of a part in the wave.
#[derive(Default)]
pub(super) struct PartChunk {
    part: RefCell<Option<Part>>,
}

impl FedChunk for PartChunk {
    type Work = Part;

    fn hold(&mut self, part: Part) {
        *self.part.get_mut() = Some(part);
    }
}

impl WaveChunk for PartChunk {
    fn items(&self) -> usize {
        usize::from(self.part.borrow().is_some())
    }

    fn bytes(&self) -> usize {
        0
    }

    fn clear(&mut self, _bytes_max: usize) {
        *self.part.get_mut() = None;
    }

    fn estimate(&self) -> Estimate {
        // All parts of a block take about the same time.
        Estimate::on_cpu(1e6)
    }

    fn target(&self) -> Target {
        Target::Cpu
    }

    fn release(&mut self) {
        self.clear(0);
    }
}

/// DECODE: decodes the first rows of a part.
struct Decode;

impl Kernel for Decode {
    const NAME: &'static str = "decode";
    type Chunk = PartChunk;
    type OnDevice = NoFlights<PartChunk>;

    fn load(&self) -> Load {
        Load::Worker
    }

    fn run(&mut self, chunk: &mut PartChunk) {
        if let Some(part) = chunk.part.get_mut() {
            part.decode();
        }
    }

    fn open(
        &mut self,
        _device: &DeviceSession,
        _first: Option<&PartChunk>,
    ) -> Result<Self::OnDevice, NoDevice> {
        Err(NoDevice::NoDriver)
    }
}

/// COLLECT: puts the columns of a block side by side.
struct Collect {
    inputs: Inputs,
    read: SchemaRef,
    /// The columns of the block that have arrived.
    parts: Vec<Part>,
    /// The damaged table whose remaining parts are left out.
    damaged: u64,
}

impl Collect {
    fn new(inputs: Inputs, read: SchemaRef) -> Self {
        Self { inputs, read, parts: Vec::new(), damaged: 0 }
    }

    /// The next rows of the block; `None` at its end.
    fn next(&mut self) -> Result<Option<RecordBatch>, TableError> {
        let mut count = usize::MAX;
        for part in &mut self.parts {
            match part.front()? {
                Some(rows) => count = count.min(rows.num_rows()),
                None => return Ok(None),
            }
        }
        let columns = self.parts.iter_mut().flat_map(|part| part.take(count).columns().to_vec());
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        let read = Arc::clone(&self.read);
        RecordBatch::try_new_with_options(read, columns.collect(), &options)
            .map(Some)
            .map_err(|error| TableError::Decode(error.into()))
    }
}

impl Consumer for Collect {
    type Chunk = PartChunk;

    fn take(&mut self, chunk: &PartChunk, out: &mut Output) -> Result<Taken, OperatorError> {
        if let Some(part) = chunk.part.take() {
            let is_last = part.is_last;
            self.parts.push(part);
            if !is_last {
                return Ok(Taken::All);
            }
        }
        let Some(first) = self.parts.first() else { return Ok(Taken::All) };
        let (file, path) = (first.file, Arc::clone(&first.path));
        if file == self.damaged {
            self.parts.clear();
            return Ok(Taken::All);
        }
        match self.next() {
            Ok(Some(rows)) => {
                out.send(rows);
                return Ok(Taken::Some);
            }
            Ok(None) => {}
            Err(source) => {
                self.damaged = file;
                self.inputs.leave_out(ReadError::Table { path, source })?;
            }
        }
        self.parts.clear();
        Ok(Taken::All)
    }

    fn finish(&mut self, _out: &mut Output) -> Result<(), OperatorError> {
        self.inputs.say_how_many_were_left_out();
        Ok(())
    }

    fn counters(&self) -> Counters {
        self.inputs.counters()
    }

    fn named_inputs(&self) -> NamedInputs {
        self.inputs.named()
    }
}
