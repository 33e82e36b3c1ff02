//! Rows of the operator: from batches in memory to rows of pairs, on all cores and on a GPU, which
//! has been opened before.

use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt32Type, UInt64Type};
use trommel::Device;
use trommel::{Collect, EpsilonJoin, EpsilonOutput, Graph, Memory, RunOptions};
use trommel_kernels::cuda::Device as Gpu;

use super::data::Workload;
use super::processor::{BATCH, batches};
use super::sample;

/// A whole run, and the blocks that a device has joined.
struct Run {
    time: Duration,
    rows: Vec<RecordBatch>,
    on_device: u64,
}

/// Measures and prints.
pub(super) fn run(workload: Workload, device: Option<Device>, rounds: usize, samples: usize) {
    let mut values = vec![0.0; workload.len * workload.dims];
    workload.fill(&mut values);
    let input = batches(&values, workload.dims, BATCH);
    // Kept open, so that no run pays for it.
    let opened = Gpu::probe(0);
    println!("{workload}, operator, medians of {rounds}\n");
    println!("| device | output | whole, ms | pairs | blocks on the device |");
    println!("|---|---|---:|---:|---:|");
    let mut known = None;
    for device in [Some(Device::Cpu), device].into_iter().flatten() {
        for output in [EpsilonOutput::Pairs, EpsilonOutput::Count] {
            let mut all: Vec<Run> =
                (0..=rounds).map(|_| once(&input, workload.epsilon, device, output)).collect();
            all.remove(0);
            all.sort_unstable_by_key(|run| run.time);
            let Run { time, rows, on_device } = all.swap_remove(all.len() / 2);
            let count = match output {
                EpsilonOutput::Count => rows[0].column(0).as_primitive::<UInt64Type>().value(0),
                _ => checked(&values, workload, &rows, samples),
            };
            assert_eq!(*known.get_or_insert(count), count, "another number of pairs");
            let milliseconds = 1e3 * time.as_secs_f64();
            println!("| {device} | {output:?} | {milliseconds:.1} | {count} | {on_device} |");
        }
    }
    drop(opened);
    println!();
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
    sample::check_distances(values, workload, pairs.iter().copied(), samples);
    pairs.len() as u64
}

/// A run, from batches to rows.
fn once(input: &[RecordBatch], epsilon: f64, device: Device, output: EpsilonOutput) -> Run {
    let mut graph = Graph::new();
    let source = graph.add("source", Memory::new(input[0].schema(), input.to_vec()));
    let join = EpsilonJoin::new(epsilon).device(device).output(output);
    let join = graph.add_after(source, "join", join);
    let (sink, rows) = Collect::new();
    graph.add_after(join, "end", sink);
    let topology = graph.build().expect("the graph is complete");
    let begin = Instant::now();
    let metrics = topology.run(RunOptions::new()).expect("the join ends");
    let time = begin.elapsed();
    let parts = &metrics.stage("join").expect("the stage").parts;
    let counters = parts.iter().flat_map(|part| &part.counters);
    let waves = counters.filter(|(name, _)| *name == "waves_on_device");
    Run { time, rows: rows.batches(), on_device: waves.map(|(_, count)| count).sum() }
}
