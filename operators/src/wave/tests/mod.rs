//! An operator of three parts over any kernel: prepare packs numbers into chunks, the kernel
//! answers the chunks, and collect sends the answers on in their order.

mod flights;
mod kernels;
mod several;

use std::sync::Arc;
use std::time::Duration;
use std::{mem, vec};

use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_array::{ArrayRef, RecordBatch, UInt32Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use trommel_engine::batch::Payload;
use trommel_engine::channel::QueueLimits;
use trommel_engine::error::{BindError, RunError};
use trommel_engine::graph::{Graph, StageId};
use trommel_engine::metrics::Metrics;
use trommel_engine::operator::{
    BindContext, Counters, Fragment, OperatorError, OperatorSpec, Output,
};
use trommel_engine::placement::{Placement, available_cores};
use trommel_engine::query::{QueryError, Request, Response};
use trommel_engine::runtime::{RunOptions, Running};

use super::{
    Consumer, Device, DeviceSession, Estimate, Filled, Kernel, Producer, Taken, Wave, WaveChunk,
};
use crate::{Collect, Collected, Memory};

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("n", DataType::UInt32, false)]))
}

pub(crate) fn batch(numbers: impl IntoIterator<Item = u32>) -> RecordBatch {
    let column: ArrayRef = Arc::new(UInt32Array::from_iter_values(numbers));
    RecordBatch::try_new(schema(), vec![column]).unwrap()
}

pub(crate) fn numbers(records: &RecordBatch) -> Vec<u32> {
    records.column(0).as_primitive::<UInt32Type>().values().to_vec()
}

/// Moves the next numbers into a chunk.
type Fill<C> = dyn FnMut(&mut C, &mut vec::IntoIter<u32>) + Send;

/// Fills chunks with the numbers of a batch.
pub(crate) struct NumberProducer<C> {
    /// Keeps all numbers until the stream ends.
    keeps: bool,
    kept: Vec<u32>,
    rest: vec::IntoIter<u32>,
    seen: u64,
    fill: Box<Fill<C>>,
    expected: Option<Estimate>,
}

impl<C> NumberProducer<C> {
    pub(crate) fn new(fill: impl FnMut(&mut C, &mut vec::IntoIter<u32>) + Send + 'static) -> Self {
        let fill = Box::new(fill);
        let (kept, rest) = (Vec::new(), Vec::new().into_iter());
        Self { keeps: false, kept, rest, seen: 0, fill, expected: None }
    }
}

impl<C: WaveChunk> Producer for NumberProducer<C> {
    type Chunk = C;

    fn take(&mut self, _: usize, batch: Payload) -> Result<(), OperatorError> {
        let numbers = numbers(&batch.into_records());
        if self.keeps {
            self.kept.extend(numbers);
        } else {
            assert_eq!(self.rest.len(), 0, "nothing is left out");
            self.rest = numbers.into_iter();
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), OperatorError> {
        self.rest = mem::take(&mut self.kept).into_iter();
        Ok(())
    }

    fn expected(&self) -> Option<Estimate> {
        self.expected
    }

    fn fill(&mut self, chunk: &mut C) -> Result<Filled, OperatorError> {
        assert_eq!(chunk.items(), 0, "chunks come empty");
        let before = self.rest.len();
        (self.fill)(chunk, &mut self.rest);
        self.seen += (before - self.rest.len()) as u64;
        Ok(if self.rest.len() < before { Filled::Chunk } else { Filled::Nothing })
    }

    fn query(&self, _: &Request) -> Result<Response, QueryError> {
        let seen = u32::try_from(self.seen).unwrap();
        Ok(Response::Answer(batch([seen])))
    }
}

/// Sends answers on.
pub(crate) struct AnswerConsumer<C> {
    answers: fn(&C) -> Vec<u32>,
}

impl<C> AnswerConsumer<C> {
    pub(crate) fn new(answers: fn(&C) -> Vec<u32>) -> Self {
        Self { answers }
    }
}

impl<C: WaveChunk> Consumer for AnswerConsumer<C> {
    type Chunk = C;

    fn take(&mut self, chunk: &C, out: &mut Output) -> Result<Taken, OperatorError> {
        out.send(batch((self.answers)(chunk)));
        Ok(Taken::All)
    }
}

/// The operator of these parts, with rows of numbers.
pub(crate) struct Waves<P, K, C, M> {
    pub(crate) producer: P,
    pub(crate) kernels: Vec<K>,
    pub(crate) consumer: C,
    pub(crate) make: M,
    pub(crate) wave: Wave,
}

impl<P, K, C, M> OperatorSpec for Waves<P, K, C, M>
where
    P: Producer,
    K: Kernel<Chunk = P::Chunk>,
    C: Consumer<Chunk = P::Chunk>,
    M: FnMut() -> P::Chunk + Send + 'static,
{
    fn operator(&self) -> &'static str {
        "waves"
    }

    fn bind(self: Box<Self>, _: &[SchemaRef], _: BindContext) -> Result<Fragment, BindError> {
        let Self { producer, kernels, consumer, make, wave } = *self;
        Ok(super::parallel(producer, kernels, consumer, make, wave, vec![schema()]))
    }
}

/// Where the parts run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cores {
    /// All on one thread.
    Fused,
    /// The engine chooses the cores by the loads of the parts.
    ByLoad,
    /// One core for all parts of the operator.
    One,
}

const CORES: [Cores; 3] = [Cores::Fused, Cores::ByLoad, Cores::One];

/// A pipeline: batches of numbers, the operator, and a place where answers are kept.
pub(crate) fn pipeline(
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

pub(crate) fn start(graph: Graph) -> Running {
    let queue = QueueLimits { batches: 2, bytes: 1 << 20 };
    graph.build().unwrap().start(RunOptions::new().queue(queue)).unwrap()
}

/// A time that is longer than any run of these tests.
const WATCHDOG: Duration = Duration::from_secs(60);

pub(crate) fn end(mut running: Running) -> Result<Metrics, Box<RunError>> {
    assert!(running.wait(WATCHDOG), "the run hangs");
    running.join().map_err(Box::new)
}

/// All answers, in the order in which they came.
pub(crate) fn answers(collected: &Collected) -> Vec<u32> {
    collected.batches().iter().flat_map(numbers).collect()
}

/// The counters of the part in the middle.
pub(crate) fn counters(metrics: &Metrics) -> Counters {
    metrics.stage("waves").unwrap().parts[1].counters.clone()
}

pub(crate) fn counter(counters: &Counters, name: &str) -> u64 {
    counters.iter().find(|(other, _)| *other == name).map_or(0, |(_, count)| *count)
}

#[test]
fn devices_are_named_as_they_are_read() {
    for (name, device) in [
        ("auto", Device::Auto),
        ("cpu", Device::Cpu),
        ("cuda", Device::Cuda(0)),
        ("cuda:3", Device::Cuda(3)),
        ("cuda:all", Device::CudaAll),
    ] {
        assert_eq!(name.parse(), Ok(device));
        let json = serde_json::to_string(&device).unwrap();
        assert_eq!(json, format!("{name:?}"));
        assert_eq!(serde_json::from_str::<Device>(&json).unwrap(), device);
    }
    assert_eq!("cuda:0".parse(), Ok(Device::Cuda(0)));
    for name in ["", "gpu", "cuda:", "cuda:16", "cuda:-1", "cuda:+1", "cuda:01", "CPU"] {
        let error = name.parse::<Device>().unwrap_err().to_string();
        let allowed =
            "expected \"auto\", \"cpu\", \"cuda\", \"cuda:all\", \"cuda:0\" to \"cuda:15\"";
        assert_eq!(error, format!("invalid device {name:?}: {allowed}"));
    }
    let schema = schemars::schema_for!(Device);
    let [one, list] = &schema.get("oneOf").unwrap().as_array().unwrap()[..] else { panic!() };
    for (names, others) in [(&one["enum"], 4), (&list["items"]["enum"], 1)] {
        let names = names.as_array().unwrap();
        assert!(names.iter().all(|name| name.as_str().unwrap().parse::<Device>().is_ok()));
        assert_eq!(names.len(), others + super::DEVICES_MAX);
    }
}

#[test]
fn lists_of_devices_name_each_device_once() {
    let list = Device::list(&[1, 0, 15]).unwrap();
    for (name, json) in [
        ("cuda:0,cuda:1,cuda:15", r#"["cuda:0","cuda:1","cuda:15"]"#),
        ("cuda:15,cuda,cuda:1", r#"["cuda:15","cuda","cuda:1"]"#),
    ] {
        assert_eq!(name.parse(), Ok(list));
        assert_eq!(serde_json::from_str::<Device>(json).unwrap(), list);
    }
    assert_eq!(list.to_string(), "cuda:0,cuda:1,cuda:15");
    assert_eq!(serde_json::to_string(&list).unwrap(), r#"["cuda:0","cuda:1","cuda:15"]"#);
    assert_eq!(serde_json::from_str::<Device>(r#"["cuda:3"]"#).unwrap(), Device::Cuda(3));
    for (json, said) in [
        ("[]", "invalid list of devices: it is empty; name a device, such as \"cuda:0\""),
        (
            r#"["cuda:1", "cuda:1"]"#,
            "invalid list of devices: \"cuda:1\" is named twice; name each device once",
        ),
        (
            r#"["cuda", "cuda:0"]"#,
            "invalid list of devices: \"cuda:0\" is named twice; name each device once",
        ),
        (
            r#"["cuda:0", "cpu"]"#,
            "invalid device \"cpu\" in a list: expected \"cuda:0\" to \"cuda:15\"",
        ),
        (
            r#"["cuda:all"]"#,
            "invalid device \"cuda:all\" in a list: expected \"cuda:0\" to \"cuda:15\"",
        ),
        (
            r#"["cuda:0", "cuda:16"]"#,
            "invalid device \"cuda:16\" in a list: expected \"cuda:0\" to \"cuda:15\"",
        ),
    ] {
        assert_eq!(serde_json::from_str::<Device>(json).unwrap_err().to_string(), said);
    }
    assert!(Device::list(&[16]).is_err());
}
