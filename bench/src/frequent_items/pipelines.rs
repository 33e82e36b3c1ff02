//! The same summaries in pipelines: a source of batches in memory, `frequent_items`, and a sink
//! of its rows.

use std::ops::RangeInclusive;
use std::sync::Mutex;
use std::time::Instant;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{UInt32Type, UInt64Type};
use arrow_schema::SchemaRef;
use schemars::JsonSchema;
use serde::Deserialize;
use trommel::error::BindError;
use trommel::frequent_items::Parallel;
use trommel::operator::{BindContext, Fragment, OperatorSpec};
use trommel::placement::{Placement, available_cores};
use trommel::registry::Configured;
use trommel::{Algorithm, Collect, FrequentItems, Graph, Memory, RunOptions, Topology};

use super::direct::BINS;
use super::stream::{Answer, Estimate, Stream};

fn counting(stream: &Stream) -> FrequentItems {
    FrequentItems::new().counters(stream.counters).filter_bins(BINS)
}

pub(crate) fn source(stream: &Stream) -> Memory {
    let mut records = stream.records().peekable();
    let schema = records.peek().expect("a stream is not empty").schema();
    Memory::new(schema, records)
}

/// Two different cores, or the same twice where there is only one.
pub(crate) fn two_cores() -> [usize; 2] {
    let cores = available_cores();
    [cores[0], cores[cores.len() - 1]]
}

/// Runs the sieve with all stages on one thread.
pub(super) fn sieve(stream: &Stream) -> Answer {
    let mut graph = Graph::new();
    graph.placement(Placement::Fused);
    let items = graph.add("items", source(stream));
    let top = graph.add_after(items, "top", counting(stream).algorithm(Algorithm::Sieve));
    let (sink, rows) = Collect::new();
    graph.add_after(top, "rows", sink);
    run(graph.build().expect("the graph is right"), || rows.take())
}

/// Runs `partition`: two cores count alternating batches; the source shares the first one.
pub(super) fn partition(stream: &Stream) -> Answer {
    let counting = counting(stream).algorithm(Algorithm::Sieve).parallel(Parallel::Partition);
    on_two_cores(stream, counting)
}

/// Runs `parallel_filter`: one core filters, the other counts items missed by the filter; the
/// source shares the first one.
pub(super) fn parallel_filter(stream: &Stream, bins: usize) -> Answer {
    let counting = counting(stream).algorithm(Algorithm::ParallelFilter).filter_bins(bins);
    on_two_cores(stream, counting)
}

fn on_two_cores(stream: &Stream, counting: FrequentItems) -> Answer {
    let [one, two] = two_cores();
    let mut graph = Graph::new();
    let items = graph.add("items", source(stream));
    let top = graph.add_after(items, "top", counting);
    let (sink, rows) = Collect::new();
    let end = graph.add_after(top, "rows", sink);
    graph.cores(items, [one]).cores(top, [one, two]).cores(end, [two]);
    run(graph.build().expect("the graph is right"), || rows.take())
}

fn run(topology: Topology, rows: impl FnOnce() -> Vec<RecordBatch>) -> Answer {
    let start = Instant::now();
    topology.run(RunOptions::new()).expect("it runs");
    let time = start.elapsed();
    let estimates = rows().iter().flat_map(estimates).collect();
    Answer { time, estimates, state_bytes: None }
}

/// Estimates in rows of `frequent_items`.
fn estimates(rows: &RecordBatch) -> Vec<Estimate> {
    let items = rows.column(1).as_primitive::<UInt32Type>().values();
    let counts = rows.column(2).as_primitive::<UInt64Type>().values();
    let errors = rows.column(3).as_primitive::<UInt64Type>().values();
    let numbers = items.iter().zip(counts).zip(errors);
    let estimate = |((&item, &count), &error)| {
        let (count, error) = (Some(count), Some(error));
        Estimate { item, count, error }
    };
    numbers.map(estimate).collect()
}

/// Source and sink for the operators `bench_stream` and `bench_rows` of the next pipeline from
/// JSON.
static ENDS: Mutex<(Option<Memory>, Option<Collect>)> = Mutex::new((None, None));

/// Source of a pipeline from JSON: batches of this program.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BenchStream {}

impl Configured for BenchStream {
    const NAME: &'static str = "bench_stream";
    const SUMMARY: &'static str = "the stream that is measured";
}

impl OperatorSpec for BenchStream {
    fn operator(&self) -> &'static str {
        Self::NAME
    }

    fn input_ports(&self) -> RangeInclusive<usize> {
        0..=0
    }

    fn bind(
        self: Box<Self>,
        inputs: &[SchemaRef],
        context: BindContext,
    ) -> Result<Fragment, BindError> {
        let memory = ENDS.lock().expect("no other thread panics").0.take();
        Box::new(memory.expect("a stream was put there")).bind(inputs, context)
    }
}

/// Sink of a pipeline from JSON: rows for this program.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BenchRows {}

impl Configured for BenchRows {
    const NAME: &'static str = "bench_rows";
    const SUMMARY: &'static str = "keeps the rows for a check";
}

impl OperatorSpec for BenchRows {
    fn operator(&self) -> &'static str {
        Self::NAME
    }

    fn bind(
        self: Box<Self>,
        inputs: &[SchemaRef],
        context: BindContext,
    ) -> Result<Fragment, BindError> {
        let sink = ENDS.lock().expect("no other thread panics").1.take();
        Box::new(sink.expect("a sink was put there")).bind(inputs, context)
    }
}

/// Runs the pipeline of [`sieve`], read from JSON.
pub(super) fn json(stream: &Stream) -> Answer {
    let text = format!(
        r#"{{ "placement": "fused", "stages": [
            {{ "id": "items", "operator": "bench_stream" }},
            {{ "id": "top", "operator": "frequent_items", "inputs": ["items"],
               "with": {{ "counters": {} }} }},
            {{ "id": "rows", "operator": "bench_rows", "inputs": ["top"] }}
        ] }}"#,
        stream.counters
    );
    let mut registry = trommel::registry();
    registry.register::<BenchStream>().register::<BenchRows>();
    let (sink, rows) = Collect::new();
    *ENDS.lock().expect("no other thread panics") = (Some(source(stream)), Some(sink));
    let pipeline = trommel::load(&text, "frequent-items.json", &registry, &[]);
    run(pipeline.expect("the configuration is right").topology, || rows.take())
}
