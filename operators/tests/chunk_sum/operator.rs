//! The sum of every `len` numbers of a stream, on the cores of a CPU or on a GPU: the smallest
//! operator that can use both, and that answers a query. `docs/adding-an-operator.md` explains it.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, UInt64Array, cast::AsArray, types::UInt32Type};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use schemars::JsonSchema;
use serde::Deserialize;
use trommel_engine::batch::Payload;
use trommel_engine::error::BindError;
use trommel_engine::operator::{BindContext, Fragment, OperatorError, OperatorSpec, Output};
use trommel_engine::query::{QueryError, Request, Response};
use trommel_operators::cuda::chunk_sum::{ChunkSum, Job};
use trommel_operators::cuda::{DeviceError, Flights, NoDevice};
use trommel_operators::wave::{
    self, Consumer, Device, DeviceSession, Estimate, Filled, Kernel, Landed, OnDevice, Producer,
    Taken, Wave, WaveChunk,
};

/// Adds up every `len` numbers of the first column (UInt32). Out: `sum` (UInt64).
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChunkSums {
    /// Numbers of a sum.
    #[schemars(range(min = 1, max = 65536))]
    pub(crate) len: u32,
    /// Where sums are computed.
    #[serde(default)]
    pub(crate) device: Device,
}

/// Maximum chunks in flight on a device.
const IN_FLIGHT: usize = 3;

/// Numbers, and their sums.
#[derive(Default)]
pub(crate) struct SumChunk {
    len: usize,
    values: Vec<u32>,
    values_max: usize,
    sums: Vec<u64>,
}

impl WaveChunk for SumChunk {
    fn items(&self) -> usize {
        self.values.len()
    }
    fn bytes(&self) -> usize {
        size_of_val(&self.values[..])
    }
    fn clear(&mut self, bytes_max: usize) {
        self.values.clear();
        self.values_max = bytes_max / size_of::<u32>() / self.len * self.len;
    }
    fn estimate(&self) -> Estimate {
        Estimate::on_cpu(self.values.len() as f64 / 4.0)
    }
}

/// PREPARE: fills chunks with whole groups of numbers; the last group may be shorter.
#[derive(Default)]
struct Numbers {
    rest: Vec<u32>,
    is_finished: bool,
    /// The sum of all numbers whose chunks have returned.
    total: u64,
}

/// The query of a running stage: `sum`, the sum of all numbers so far.
const QUERIES: &[&str] = &["sum"];

impl Producer for Numbers {
    type Chunk = SumChunk;
    fn take(&mut self, _port: usize, batch: Payload) -> Result<(), OperatorError> {
        let records = batch.into_records();
        self.rest.extend_from_slice(records.column(0).as_primitive::<UInt32Type>().values());
        Ok(())
    }
    fn finish(&mut self) -> Result<(), OperatorError> {
        self.is_finished = true;
        Ok(())
    }
    fn fill(&mut self, chunk: &mut SumChunk) -> Result<Filled, OperatorError> {
        let count = self.rest.len().min(chunk.values_max);
        let count = if self.is_finished { count } else { count - count % chunk.len };
        chunk.values.extend(self.rest.drain(..count));
        Ok(if count > 0 { Filled::Chunk } else { Filled::Nothing })
    }
    fn landed(&mut self, chunk: &mut SumChunk) {
        self.total += chunk.sums.drain(..).sum::<u64>();
    }
    fn queries(&self) -> &'static [&'static str] {
        QUERIES
    }
    fn can_answer(&self) -> bool {
        true
    }
    fn query(&self, request: &Request) -> Result<Response, QueryError> {
        match request.name() {
            "sum" => Ok(Response::Answer(rows(vec![self.total]).expect("one column"))),
            _ => Err(QueryError::unsupported(request, QUERIES)),
        }
    }
}

fn rows(sums: Vec<u64>) -> Result<RecordBatch, ArrowError> {
    let sums: ArrayRef = Arc::new(UInt64Array::from(sums));
    RecordBatch::try_from_iter([("sum", sums)])
}

/// KERNEL: adds up. Each core has one; the first ones also have a device each.
#[derive(Clone)]
struct Adding {
    wave: Wave,
}

impl Kernel for Adding {
    const NAME: &'static str = "add";
    type Chunk = SumChunk;
    type OnDevice = OnGpu;
    fn run(&mut self, chunk: &mut SumChunk) {
        chunk.sums.clear();
        let groups = chunk.values.chunks(chunk.len);
        chunk.sums.extend(groups.map(|group| group.iter().map(|&n| u64::from(n)).sum::<u64>()));
    }
    fn open(&mut self, device: &DeviceSession, _: Option<&SumChunk>) -> Result<OnGpu, NoDevice> {
        let values = self.wave.chunk_bytes.on_device / size_of::<u32>();
        Ok(OnGpu(Flights::open(&device.open()?, IN_FLIGHT, values, 0)?))
    }
}

struct OnGpu(Flights<ChunkSum>);

impl OnDevice for OnGpu {
    type Chunk = SumChunk;
    fn has_room(&self, _: &SumChunk) -> bool {
        self.0.has_room()
    }
    fn submit(&mut self, chunk: &SumChunk) -> Result<(), DeviceError> {
        let len = u32::try_from(chunk.len).expect("a parameter of 32 bits");
        self.0.submit(&Job { values: &chunk.values, len }, 0)
    }
    fn is_done(&mut self) -> Result<bool, DeviceError> {
        self.0.is_done()
    }
    fn collect(&mut self, chunk: &mut SumChunk) -> Result<Landed, DeviceError> {
        self.0.collect(|slot| slot.sums().clone_into(&mut chunk.sums))
    }
}

/// COLLECT: sends the sums on.
struct Sums;

impl Consumer for Sums {
    type Chunk = SumChunk;
    fn take(&mut self, chunk: &SumChunk, out: &mut Output) -> Result<Taken, OperatorError> {
        out.send(rows(chunk.sums.clone())?);
        Ok(Taken::All)
    }
}

impl OperatorSpec for ChunkSums {
    fn operator(&self) -> &'static str {
        "chunk_sum"
    }

    fn bind(self: Box<Self>, _: &[SchemaRef], context: BindContext) -> Result<Fragment, BindError> {
        let Self { len, device } = *self;
        let kernels = Wave::kernels(device, context.cores);
        let wave = Wave::new(device, Wave::chunks_of(kernels, IN_FLIGHT), 1 << 20);
        let schema = Arc::new(Schema::new(vec![Field::new("sum", DataType::UInt64, false)]));
        let kernels = vec![Adding { wave: wave.clone() }; kernels];
        let make = move || SumChunk { len: len as usize, ..SumChunk::default() };
        Ok(wave::parallel(Numbers::default(), kernels, Sums, make, wave, vec![schema]))
    }
}
