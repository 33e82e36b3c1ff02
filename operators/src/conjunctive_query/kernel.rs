//! KERNEL: builds and merges segments, and answers queries.

use std::sync::Arc;
use std::time::Instant;

use trommel_kernels::Isa;
use trommel_kernels::cuda::{DeviceError, NoDevice};

use super::chunk::{QueryChunk, Work};
use super::index::Answerer;
use super::options::QueryOutput;
use super::segments::{SegmentFactory, merge_segments};
use crate::wave::{Kernel, Landed, OnDevice};

/// Does the work of chunks.
pub(super) struct QueryKernel {
    output: QueryOutput,
    factory: SegmentFactory,
    answerer: Answerer,
}

impl QueryKernel {
    pub(super) fn new(isa: Isa, output: QueryOutput) -> Self {
        Self { output, factory: SegmentFactory::default(), answerer: Answerer::new(isa) }
    }
}

impl Kernel for QueryKernel {
    const NAME: &'static str = "answer";
    type Chunk = QueryChunk;
    type OnDevice = NoFlights;

    fn run(&mut self, chunk: &mut QueryChunk) {
        let QueryChunk { work, queries, found, counts, answered } = chunk;
        match work {
            Work::Nothing | Work::Built(..) | Work::Merged(_) => {}
            Work::Build(block) => {
                let segment = self.factory.build(block);
                *work = Work::Built(Arc::new(segment), std::mem::take(block));
            }
            Work::Merge(parts) => *work = Work::Merged(Arc::new(merge_segments(parts))),
            Work::Answer(index) => {
                match self.output {
                    QueryOutput::Documents => self.answerer.find(index, queries.terms(), found),
                    QueryOutput::Count => self.answerer.count(index, queries.terms(), counts),
                }
                // One look at the clock for all queries.
                *answered = Some(Instant::now());
            }
        }
    }

    fn open(&mut self, _: Option<&QueryChunk>) -> Result<NoFlights, NoDevice> {
        Err(NoDevice::NoDriver)
    }
}

/// No chunk of this operator flies.
pub(super) enum NoFlights {}

impl OnDevice for NoFlights {
    type Chunk = QueryChunk;

    fn has_room(&self, _: &QueryChunk) -> bool {
        match *self {}
    }

    fn submit(&mut self, _: &QueryChunk) -> Result<(), DeviceError> {
        match *self {}
    }

    fn is_done(&mut self) -> Result<bool, DeviceError> {
        match *self {}
    }

    fn collect(&mut self, _: &mut QueryChunk) -> Result<Landed, DeviceError> {
        match *self {}
    }
}
