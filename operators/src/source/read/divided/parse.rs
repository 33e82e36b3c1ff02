//! PARSE and COLLECT: a block becomes rows.

use std::mem;
use std::sync::Arc;

use arrow_array::RecordBatch;
use trommel_engine::operator::{Counters, Load, NamedInputs, OperatorError, Output};
use trommel_kernels::Isa;
use trommel_kernels::cuda::NoDevice;

use super::super::error::ReadError;
use super::Divided;
use super::block::{Block, Lines, Then};
use crate::shared::parameters::BATCH_BYTES;
use crate::shared::rejected::{OnError, PORT};
use crate::source::read::files::input::{Inputs, Refused};
use crate::wave::{Consumer, DeviceSession, Estimate, Kernel, NoFlights, Taken, Target, WaveChunk};

/// Approximate time to parse a byte, in nanoseconds.
const NS_PER_BYTE: f64 = 2.0;

/// A block before PARSE, and its rows after PARSE.
#[derive(Default)]
pub(super) struct ParseChunk {
    block: Option<Block>,
    rows: Vec<RecordBatch>,
    refused: Refused,
    rejected: Option<RecordBatch>,
    failed: Option<Arc<ReadError>>,
}

impl ParseChunk {
    pub(super) fn hold(&mut self, block: Block) {
        self.block = Some(block);
    }
}

impl WaveChunk for ParseChunk {
    fn items(&self) -> usize {
        self.block.as_ref().map_or(0, |block| block.lines.len())
    }

    fn bytes(&self) -> usize {
        self.block.as_ref().map_or(0, Block::bytes)
    }

    fn clear(&mut self, _bytes_max: usize) {
        *self = Self { rows: mem::take(&mut self.rows), ..Self::default() };
        self.rows.clear();
    }

    fn estimate(&self) -> Estimate {
        Estimate::on_cpu(NS_PER_BYTE * self.bytes() as f64)
    }

    fn target(&self) -> Target {
        Target::Cpu
    }

    fn release(&mut self) {
        self.clear(0);
    }
}

/// PARSE: makes rows of a block.
pub(super) struct Parse<F> {
    format: F,
    inputs: Inputs,
    /// Takes the refusals in the first record of a file, which the first block of the file reports.
    unheard: Inputs,
    /// The first record of the file that the format knows.
    head: Option<Arc<Lines>>,
    ends: Vec<u32>,
    batch: usize,
    /// The instruction set, and the longest line in bytes.
    limits: (Isa, usize),
}

impl<F: Divided> Parse<F> {
    pub(super) fn new(
        format: F,
        refusals: impl Fn(Option<OnError>) -> Inputs,
        batch: usize,
        limits: (Isa, usize),
    ) -> Self {
        let inputs = refusals(None).silent();
        let unheard = refusals(Some(OnError::Skip)).silent();
        Self { format, inputs, unheard, head: None, ends: Vec::new(), batch, limits }
    }

    /// Lets the format read the first record of the file, unless the format knows the record.
    fn begin(&mut self, block: &Block) {
        let is_known = match (&self.head, &block.head) {
            (Some(known), Some(head)) => Arc::ptr_eq(known, head),
            _ => false,
        };
        if is_known {
            return;
        }
        self.format.abandon();
        self.head.clone_from(&block.head);
        let Some(head) = &block.head else { return };
        self.unheard.set_file(Arc::clone(&block.path), block.encoding);
        let known = head.with_run(0..head.len(), self.limits, &mut self.ends, |run| {
            self.format.append(run, &mut self.unheard)
        });
        // The block that begins with the first record reports a fault of that record.
        drop(known);
        if self.format.rows() > 0 {
            self.format.take();
        }
        self.unheard.take_refused();
    }

    fn parse(&mut self, block: &Block, rows: &mut Vec<RecordBatch>) -> Result<(), ReadError> {
        self.inputs.set_file(Arc::clone(&block.path), block.encoding);
        if block.is_left_out {
            return self.refuse_long(block);
        }
        self.begin(block);
        self.format.begin_block(block.lines_before);
        let (lines, mut from) = (&block.lines, 0);
        while from < lines.len() {
            let until = lines.len().min(from + self.batch - self.format.rows());
            lines.with_run(from..until, self.limits, &mut self.ends, |run| {
                self.format.append(run, &mut self.inputs)
            })?;
            from = until;
            if self.format.rows() >= self.batch || self.format.bytes() >= BATCH_BYTES {
                rows.push(self.format.take());
            }
        }
        self.end(block.then)?;
        if self.format.rows() > 0 {
            rows.push(self.format.take());
        }
        Ok(())
    }

    /// Drops the rows and the open record of a block that ends the run. The next block of the
    /// worker may stand before the failed block in the file, and the rows of that next block are
    /// still sent.
    fn forget(&mut self) {
        self.format.abandon();
        self.format.take();
        self.head = None;
    }

    /// Refuses the long lines of a block without records.
    fn refuse_long(&mut self, block: &Block) -> Result<(), ReadError> {
        let Self { inputs, ends, limits, .. } = self;
        block.lines.with_run(0..block.lines.len(), *limits, ends, |run| {
            run.each().try_for_each(|line| run.accepts(line, inputs).map(drop))
        })?;
        match block.then {
            Then::LongLine(line) => inputs.refuse_long(line, limits.1),
            _ => Ok(()),
        }
    }

    fn end(&mut self, then: Then) -> Result<(), ReadError> {
        let inputs = &mut self.inputs;
        match then {
            Then::Record => {}
            Then::LongLine(line) => self.format.refuse_long(inputs, line, self.limits.1)?,
            Then::LongRecord(next) => {
                // The record has been refused. For this worker the record ends here.
                self.format.pass_over(inputs, next)?;
            }
            Then::FileEnd => {
                self.format.end_file(inputs)?;
                self.head = None;
            }
        }
        Ok(())
    }
}

impl<F: Divided + 'static> Kernel for Parse<F> {
    const NAME: &'static str = "parse";
    type Chunk = ParseChunk;
    type OnDevice = NoFlights<ParseChunk>;

    fn load(&self) -> Load {
        Load::Worker
    }

    fn run(&mut self, chunk: &mut ParseChunk) {
        let ParseChunk { block, rows, refused, rejected, failed } = chunk;
        let block = block.as_ref().expect("a chunk in the wave has a block");
        *failed = self.parse(block, rows).err().map(Arc::new);
        (*refused, *rejected) = self.inputs.take_refused();
        if failed.is_some() {
            self.forget();
        }
    }

    fn open(
        &mut self,
        _device: &DeviceSession,
        _first: Option<&ParseChunk>,
    ) -> Result<Self::OnDevice, NoDevice> {
        Err(NoDevice::NoDriver)
    }
}

/// COLLECT: sends the rows of blocks in the order of the blocks, and reports refused rows.
pub(super) struct Collect {
    inputs: Inputs,
    /// Number of batches of the chunk that have been sent.
    next: usize,
}

impl Collect {
    pub(super) fn new(inputs: Inputs) -> Self {
        Self { inputs, next: 0 }
    }
}

impl Consumer for Collect {
    type Chunk = ParseChunk;

    fn take(&mut self, chunk: &ParseChunk, out: &mut Output) -> Result<Taken, OperatorError> {
        // Each call sends one batch of the chunk, and only the first call reports the refused rows.
        if self.next == 0 {
            let files = chunk.block.as_ref().and_then(|block| block.rejected.clone());
            let rejected = files.into_iter().chain(chunk.rejected.clone());
            rejected.for_each(|rows| out.send_to(PORT, rows));
            self.inputs.add_refused(&chunk.refused);
        }
        if let Some(rows) = chunk.rows.get(self.next) {
            out.send(rows.clone());
            self.next += 1;
            if self.next < chunk.rows.len() {
                return Ok(Taken::Some);
            }
        }
        self.next = 0;
        match &chunk.failed {
            Some(error) => Err(Arc::clone(error).into()),
            None => Ok(Taken::All),
        }
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
