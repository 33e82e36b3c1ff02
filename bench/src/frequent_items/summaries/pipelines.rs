//! The same summaries in pipelines: a source of batches in memory, `frequent_items`, and a sink
//! of its rows.

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{UInt32Type, UInt64Type};
use trommel::frequent_items::Parallel;
use trommel::placement::{Placement, available_cores};
use trommel::{
    Algorithm, Collect, Collected, FrequentItems, Graph, Memory, RunOptions, Supplied, Topology,
    load_supplied, registry,
};

use super::super::stream::{Answer, Estimate, Stream};
use super::BINS;
use crate::runner::turns::timed;

fn counting(stream: &Stream) -> FrequentItems {
    FrequentItems::new().counters(stream.counters).filter_bins(BINS)
}

fn source(stream: &Stream) -> Memory {
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
pub(crate) fn sieve(stream: &Stream) -> Answer {
    let mut graph = Graph::new();
    graph.placement(Placement::Fused);
    let items = graph.add("items", source(stream));
    let top = graph.add_after(items, "top", counting(stream).algorithm(Algorithm::Sieve));
    let (sink, rows) = Collect::new();
    graph.add_after(top, "rows", sink);
    run(graph.build().expect("the graph is right"), &rows)
}

/// Runs `partition`: two cores count alternating batches; the source shares the first one.
pub(crate) fn partition(stream: &Stream) -> Answer {
    let counting = counting(stream).algorithm(Algorithm::Sieve).parallel(Parallel::Partition);
    on_two_cores(stream, counting)
}

/// Runs `parallel_filter`: one core filters, the other counts items missed by the filter; the
/// source shares the first one.
pub(crate) fn parallel_filter(stream: &Stream, bins: usize) -> Answer {
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
    run(graph.build().expect("the graph is right"), &rows)
}

fn run(topology: Topology, rows: &Collected) -> Answer {
    let (time, ended) = timed(|| topology.run(RunOptions::new()));
    ended.expect("it runs");
    let estimates = rows.take().iter().flat_map(estimates).collect();
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

/// Runs the pipeline of [`sieve`], read from JSON.
pub(crate) fn json(stream: &Stream) -> Answer {
    let text = format!(
        r#"{{ "placement": "fused", "stages": [
            {{ "id": "items", "operator": "memory" }},
            {{ "id": "top", "operator": "frequent_items", "inputs": ["items"],
               "with": {{ "counters": {} }} }},
            {{ "id": "rows", "operator": "collect", "inputs": ["top"] }}
        ] }}"#,
        stream.counters
    );
    let (sink, rows) = Collect::new();
    let supplied = Supplied::new().stage("items", source(stream)).stage("rows", sink);
    let pipeline = load_supplied(&text, "frequent-items.json", &registry(), &[], supplied);
    run(pipeline.expect("the configuration is right").topology, &rows)
}
