//! Rows of the operator: from batches in memory to rows of pairs, on all cores and on a GPU, which
//! has been opened before.

use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt32Type};
use trommel::{Collect, Device, EpsilonJoin, EpsilonOutput, Graph};
use trommel_kernels::cuda::Device as Gpu;

use super::data::Workload;
use super::processor::{BATCH, batches};
use super::sample;
use crate::runner::Runs;
use crate::runner::pipelines::{self, count, counter, memory};
use crate::runner::report::Table;
use crate::runner::turns::{Run, Turns};

/// Measures and prints.
pub(super) fn run(workload: Workload, device: Option<Device>, runs: Runs, samples: usize) {
    let values = workload.values();
    let input = batches(&values, workload.dims, BATCH);
    // Kept open, so that no run pays for it.
    let _opened = Gpu::probe(0);
    println!("{workload}, operator, medians of {}\n", runs.rounds(1));
    let mut turns = Turns::new(runs);
    for device in [Some(Device::Cpu), device].into_iter().flatten() {
        for output in [EpsilonOutput::Pairs, EpsilonOutput::Count] {
            let (input, values) = (&input, &values);
            turns.add(format!("{device} | {output:?}"), move || {
                let (time, rows, pairs, on_device) = once(input, workload.epsilon, device, output);
                let is_count = output == EpsilonOutput::Count;
                let answer =
                    if is_count { pairs } else { checked(values, workload, &rows, samples) };
                Run { time, answer, rest: (answer, on_device) }
            });
        }
    }
    let mut table = Table::new("device | output | whole, ms: | pairs: | blocks on the device:");
    for engine in turns.run() {
        let (pairs, on_device) = engine.rest();
        let milliseconds = 1e3 * engine.seconds();
        table.row(format!("{} | {milliseconds:.1} | {pairs} | {on_device}", engine.name));
    }
}

/// Checks the pairs of some vectors; returns the number of all pairs.
fn checked(values: &[f32], workload: Workload, rows: &[RecordBatch], samples: usize) -> u64 {
    let mut pairs = Vec::new();
    for rows in rows {
        let [lefts, rights] =
            [0, 1].map(|column| rows.column(column).as_primitive::<UInt32Type>().values());
        let distances = rows.column(2).as_primitive::<Float64Type>().values();
        let ids = lefts.iter().zip(rights);
        pairs
            .extend(ids.zip(distances).map(|((left, right), distance)| (*left, *right, *distance)));
    }
    sample::check(values, workload, pairs.iter().copied(), samples, f64::sqrt);
    pairs.len() as u64
}

/// A run, from batches to rows: its time, the rows, the number in their first one if the output is
/// a count, and the blocks that a device has joined.
fn once(
    input: &[RecordBatch],
    epsilon: f64,
    device: Device,
    output: EpsilonOutput,
) -> (Duration, Vec<RecordBatch>, u64, u64) {
    let mut graph = Graph::new();
    let source = graph.add("source", memory(input.to_vec()));
    let join = EpsilonJoin::new(epsilon).device(device).output(output);
    let join = graph.add_after(source, "join", join);
    let (sink, rows) = Collect::new();
    graph.add_after(join, "end", sink);
    let (time, metrics) = pipelines::run(graph);
    let on_device = counter(&metrics, "join", "waves_on_device");
    match output {
        EpsilonOutput::Count => (time, Vec::new(), count(&rows), on_device),
        _ => (time, rows.take(), 0, on_device),
    }
}
