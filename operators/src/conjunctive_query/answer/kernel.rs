//! KERNEL: builds and merges segments, opens the device, and answers queries.

use std::sync::Arc;
use std::time::Instant;

use trommel_kernels::Isa;
use trommel_kernels::cuda::NoDevice;

use super::chunk::{QueryChunk, QueryWork};
use crate::conjunctive_query::data::index::Answerer;
use crate::conjunctive_query::data::merging;
use crate::conjunctive_query::data::segments::SegmentFactory;
use crate::conjunctive_query::device::flights::{OpenFlights, QueryFlights};
use crate::conjunctive_query::parameters::options::QueryOutput;
use crate::wave::{DeviceSession, Kernel};

/// Does the work of chunks on the CPU, and opens the device.
pub(crate) struct QueryKernel {
    output: QueryOutput,
    factory: SegmentFactory,
    answerer: Answerer,
    /// The device, if there may be one.
    device: Option<OpenFlights>,
}

impl QueryKernel {
    pub(crate) fn new(isa: Isa, output: QueryOutput, device: Option<OpenFlights>) -> Self {
        let (factory, answerer) = (SegmentFactory::default(), Answerer::new(isa));
        Self { output, factory, answerer, device }
    }
}

impl Kernel for QueryKernel {
    const NAME: &'static str = "answer";
    type Chunk = QueryChunk;
    type OnDevice = QueryFlights;

    fn run(&mut self, chunk: &mut QueryChunk) {
        let QueryChunk { work, queries, found, counts, .. } = chunk;
        match work {
            QueryWork::Nothing | QueryWork::Built(..) => {}
            QueryWork::LookUp(block, names) => block.terms.look_up(names),
            QueryWork::Build(block) => {
                let segment = self.factory.build(block);
                *work = QueryWork::Built(Arc::new(segment), std::mem::take(block));
            }
            QueryWork::Open(index) => {
                self.device.iter().for_each(|device| device.open_ahead(index))
            }
            QueryWork::Merge(task) => task.run(merging::run),
            QueryWork::Answer(index) => {
                match self.output {
                    QueryOutput::Documents => self.answerer.find(index, queries.terms(), found),
                    QueryOutput::Count => self.answerer.count(index, queries.terms(), counts),
                }
                chunk.finished = queries.len();
                // One reading of the clock for all queries.
                chunk.answered = Some(Instant::now());
            }
        }
    }

    fn open(
        &mut self,
        device: &DeviceSession,
        _: Option<&QueryChunk>,
    ) -> Result<QueryFlights, NoDevice> {
        self.device.as_ref().map_or(Err(NoDevice::NoDriver), |open| open.open(device))
    }
}
