//! An operator of three parts over any kernel: numbers go in, are packed into chunks, answered, and
//! sent on in their order.

mod flights;
mod stand_in;

use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_array::{ArrayRef, RecordBatch, UInt32Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use std::ops::RangeInclusive;
use std::sync::Arc;

use trommel_engine::batch::{Chunk, Payload};
use trommel_engine::channel::QueueLimits;
use trommel_engine::error::{BindError, RunError};
use trommel_engine::graph::{Graph, StageId};
use trommel_engine::metrics::Metrics;
use trommel_engine::operator::{
    BindContext, Body, Counters, Flow, Fragment, Load, Operator, OperatorError, OperatorSpec,
    Output, Part,
};
use trommel_engine::placement::{Placement, available_cores};
use trommel_engine::query::{Carried, QueryError, Request, Response};
use trommel_engine::runtime::{RunOptions, Running};

use super::{Buffers, Device, Kernel, Wave, WaveChunk, WavePart};
use crate::{Collect, Collected, Memory};

/// A chunk that can be filled with numbers and read for answers.
trait NumberChunk: WaveChunk {
    /// Takes numbers from `from` until it is full or there are no more.
    fn fill(&mut self, from: &mut std::vec::IntoIter<u32>);
    fn is_full(&self) -> bool;
    fn numbers(&self) -> u64;
    fn answers(&self) -> Vec<u32>;
    fn clear(&mut self);
}

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("n", DataType::UInt32, false)]))
}

fn batch(numbers: impl IntoIterator<Item = u32>) -> RecordBatch {
    let column: ArrayRef = Arc::new(UInt32Array::from_iter_values(numbers));
    RecordBatch::try_new(schema(), vec![column]).unwrap()
}

fn numbers(records: &RecordBatch) -> Vec<u32> {
    records.column(0).as_primitive::<UInt32Type>().values().to_vec()
}

fn send<C: WaveChunk>(chunk: Box<C>, out: &mut Output) {
    let (items, bytes) = (chunk.items(), chunk.bytes());
    out.send_chunk(Chunk::from_box(chunk, items, bytes));
}

/// Fills chunks, and sends the last one of a batch although it is not full.
struct Prepare<C, M> {
    buffers: Buffers<C>,
    make: M,
    /// Keeps all numbers until the stream ends.
    keeps: bool,
    kept: Vec<u32>,
    rest: std::vec::IntoIter<u32>,
    seen: u64,
}

impl<C: NumberChunk, M: FnMut() -> C + Send> Prepare<C, M> {
    fn advance(&mut self, out: &mut Output) -> Flow {
        while self.rest.len() > 0 {
            let Some(mut chunk) = self.buffers.take(&mut self.make) else {
                return Flow::AwaitReply;
            };
            chunk.clear();
            chunk.fill(&mut self.rest);
            assert!(chunk.is_full() || self.rest.len() == 0, "nothing is left out");
            self.seen += chunk.numbers();
            send(chunk, out);
        }
        Flow::NeedInput
    }
}

impl<C: NumberChunk, M: FnMut() -> C + Send> Operator for Prepare<C, M> {
    fn process(
        &mut self,
        _: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        let numbers = numbers(&input.into_records());
        if self.keeps {
            self.kept.extend(numbers);
        } else {
            self.rest = numbers.into_iter();
        }
        Ok(self.advance(out))
    }

    fn finish(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        self.rest = std::mem::take(&mut self.kept).into_iter();
        Ok(self.advance(out))
    }

    fn reply(&mut self, reply: Chunk, out: &mut Output) -> Result<Flow, OperatorError> {
        self.buffers.give_back(reply.into_box());
        Ok(self.advance(out))
    }

    fn query(&self, _: &Request, _: Option<Carried>) -> Result<Response, QueryError> {
        Ok(Response::Forward(Box::new(self.seen)))
    }
}

/// Sends answers on and gives chunks back.
struct Answers<C> {
    seen: u64,
    chunk: std::marker::PhantomData<fn(C)>,
}

impl<C: NumberChunk> Operator for Answers<C> {
    fn process(
        &mut self,
        _: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        let chunk: Box<C> = input.into_chunk().into_box();
        out.send(batch(chunk.answers()));
        self.seen += chunk.numbers();
        let (items, bytes) = (chunk.items(), chunk.bytes());
        out.send_reply(Chunk::from_box(chunk, items, bytes));
        Ok(Flow::NeedInput)
    }

    fn query(&self, _: &Request, carried: Option<Carried>) -> Result<Response, QueryError> {
        let sent: Box<u64> = carried.expect("prepare sends it").downcast().expect("a count");
        let counts = [*sent, self.seen].map(|count| u32::try_from(count).unwrap());
        Ok(Response::Answer(batch(counts)))
    }
}

/// The operator.
struct Waves<K, M> {
    kernel: K,
    make: M,
    wave: Wave,
    keeps: bool,
}

impl<K, M> OperatorSpec for Waves<K, M>
where
    K: Kernel<Chunk: NumberChunk>,
    M: FnMut() -> K::Chunk + Send + 'static,
{
    fn operator(&self) -> &'static str {
        "waves"
    }

    fn input_ports(&self) -> RangeInclusive<usize> {
        1..=1
    }

    fn bind(self: Box<Self>, _: &[SchemaRef], _: BindContext) -> Result<Fragment, BindError> {
        let Self { kernel, make, wave, keeps } = *self;
        let (buffers, kept) = (Buffers::new(wave.chunks), Vec::new());
        let prepare = Prepare { buffers, make, keeps, kept, rest: Vec::new().into_iter(), seen: 0 };
        let collect = Answers::<K::Chunk> { seen: 0, chunk: std::marker::PhantomData };
        let part = |name: &'static str, load, operator: Box<dyn Operator>| Part {
            name: name.into(),
            load,
            body: Body::Operator(operator),
        };
        let parts = vec![
            part("prepare", Load::Heavy, Box::new(prepare)),
            part("device", Load::Heavy, Box::new(WavePart::new(kernel, wave))),
            part("collect", Load::Light, Box::new(collect)),
        ];
        Ok(Fragment::new(parts, vec![schema()]))
    }
}

/// Where the parts run.
#[derive(Clone, Copy, Debug)]
enum Cores {
    /// All on one thread.
    Fused,
    /// As the engine finds best.
    ByLoad,
    /// One core for all parts of the operator.
    One,
}

const CORES: [Cores; 3] = [Cores::Fused, Cores::ByLoad, Cores::One];

/// A pipeline: batches of numbers, the operator, and a place where answers are kept.
fn pipeline(
    batches: impl Iterator<Item = RecordBatch> + Send + 'static,
    waves: impl OperatorSpec + 'static,
    cores: Cores,
) -> (Graph, Collected) {
    let mut graph = Graph::new();
    let (sink, collected) = Collect::new();
    let source = graph.add("numbers", Memory::new(schema(), batches));
    let stage: StageId = graph.add_after(source, "waves", waves);
    graph.add_after(stage, "end", sink);
    match cores {
        Cores::Fused => {
            graph.placement(Placement::Fused);
        }
        Cores::ByLoad => {}
        Cores::One => {
            graph.cores(stage, [available_cores()[0]]);
        }
    }
    (graph, collected)
}

fn start(graph: Graph) -> Running {
    let queue = QueueLimits { batches: 2, bytes: 1 << 20 };
    graph.build().unwrap().start(RunOptions::new().queue(queue)).unwrap()
}

/// Longer than any of these runs takes.
const WATCHDOG: Duration = Duration::from_secs(60);

fn end(mut running: Running) -> Result<Metrics, Box<RunError>> {
    assert!(running.wait(WATCHDOG), "the run hangs");
    running.join().map_err(Box::new)
}

/// All answers, in the order in which they came.
fn answers(collected: &Collected) -> Vec<u32> {
    collected.batches().iter().flat_map(numbers).collect()
}

/// The counters of the part in the middle.
fn counters(metrics: &Metrics) -> Counters {
    metrics.stage("waves").unwrap().parts[1].counters.clone()
}

fn counter(counters: &Counters, name: &str) -> u64 {
    counters.iter().find(|(other, _)| *other == name).map_or(0, |(_, count)| *count)
}

#[test]
fn devices_are_named_as_they_are_read() {
    for (name, device) in [
        ("auto", Device::Auto),
        ("cpu", Device::Cpu),
        ("cuda", Device::Cuda(0)),
        ("cuda:3", Device::Cuda(3)),
    ] {
        assert_eq!(name.parse(), Ok(device));
        let json = serde_json::to_string(&device).unwrap();
        assert_eq!(json, format!("{name:?}"));
        assert_eq!(serde_json::from_str::<Device>(&json).unwrap(), device);
    }
    assert_eq!("cuda:0".parse(), Ok(Device::Cuda(0)));
    for name in ["", "gpu", "cuda:", "cuda:16", "cuda:-1", "cuda:+1", "cuda:01", "CPU"] {
        let error = name.parse::<Device>().unwrap_err().to_string();
        let allowed = "allowed: \"auto\", \"cpu\", \"cuda\", \"cuda:0\" to \"cuda:15\"";
        assert_eq!(error, format!("{name:?} is no device; {allowed}"));
    }
    let schema = schemars::schema_for!(Device);
    let names = schema.get("enum").unwrap().as_array().unwrap();
    assert!(names.iter().all(|name| name.as_str().unwrap().parse::<Device>().is_ok()));
    assert_eq!(names.len(), 3 + super::DEVICES_MAX);
}

#[test]
fn there_are_as_many_buffers_as_announced_and_no_more() {
    let mut buffers = Buffers::new(2);
    let first = buffers.take(|| 1).unwrap();
    assert_eq!(buffers.take(|| 2), Some(Box::new(2)));
    assert_eq!(buffers.take(|| 3), None);
    buffers.give_back(first);
    assert_eq!(buffers.take(|| 4), Some(Box::new(1)), "the one that came back");
}
