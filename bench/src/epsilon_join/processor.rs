//! Joins on the CPU: the directory and the nested loop of the kernels on one thread, the operator
//! on one core and on all of them, kiddo, and Python packages.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::{ArrayRef, FixedSizeListArray, Float32Array, RecordBatch, UInt32Array};
use arrow_schema::{DataType, Field};
use trommel::placement::available_cores;
use trommel::{Collect, Device, Discard, EpsilonJoin, EpsilonOutput, Graph, Isa};
use trommel_kernels::vectors::{
    Directory, Epsilon, FoundPairs, Join, NestedLoop, Pair, PairCount, Scan, Search, Vectors,
};

use super::data::Workload;
use super::peers::{Peer, Peers, pairs};
use super::sample;
use crate::runner::memory::{peak, reset_peak};
use crate::runner::pipelines::{self, count, memory as batches_in_memory};
use crate::runner::report::Table;
use crate::runner::turns::{Run, Turns};
use crate::runner::{Runs, isa};

/// Comparisons of coordinates up to which the nested loop is measured.
const NESTED_MAX: usize = 1 << 38;
/// Room for pairs, which are drained when it is used up.
const ROOM: usize = 1 << 16;
/// Vectors of a batch of the operator.
pub(super) const BATCH: usize = 16_384;

/// A run of a way to join: the number of pairs, and the part of the time for an index, if that is a
/// part of its own.
pub(super) type Joined = Run<u64, Option<Duration>>;

/// Measures and prints.
///
/// # Errors
/// If a program of a peer fails.
pub(super) fn run(workload: Workload, runs: Runs, samples: usize, peers: &Peers) -> io::Result<()> {
    let isa = isa();
    let values = workload.values();
    let vectors = Vectors::new(&values, workload.dims);
    let epsilon = Epsilon::new(workload.epsilon).expect("a distance");
    println!("{workload}, one core unless said, {isa}\n");
    let mut all = Vec::new();
    let count = by_directory(isa, vectors, epsilon, &mut all).answer;
    let found = all.iter().map(|pair| (pair.left, pair.right, pair.square));
    sample::check(&values, workload, found, samples, |square| square);
    let batches = batches(&values, workload.dims, BATCH);
    let mut again = Vec::new();
    let mut turns = Turns::new(runs).expect(count);
    turns.add("directory", || by_directory(isa, vectors, epsilon, &mut again));
    if workload.len * workload.len / 2 * workload.dims <= NESTED_MAX {
        turns.add("nested loop", || by_loop(isa, vectors, epsilon));
    }
    for cores in 1..=available_cores().len().min(2) {
        let batches = &batches;
        turns.add(format!("operator, {cores} cores"), move || {
            by_operator(batches, workload.epsilon, cores)
        });
    }
    let measured = turns.run();
    let mut table = Table::new("way | build, s: | whole, s: | pairs:");
    for engine in &measured {
        let build = engine.all().next().copied().flatten();
        let build = build.map_or_else(String::new, |time| format!("{:.3}", time.as_secs_f64()));
        let fastest = engine.fastest().as_secs_f64();
        table.row(format!("{} | {build} | {fastest:.3} | {count}", engine.name));
    }
    let operator = measured.iter().filter(|engine| engine.name.starts_with("operator"));
    let operator: Vec<f64> = operator.map(|engine| engine.fastest().as_secs_f64()).collect();
    if let [one, two] = operator[..] {
        table.row(format!("operator, one core / two |  | {:.2}", one / two));
    }
    let mut right: Vec<_> = all.iter().map(|pair| (pair.left, pair.right)).collect();
    right.sort_unstable();
    for measured in peers.measure(workload, &values, runs.rounds(1))? {
        table.row(match measured {
            Peer::Joined { name, build, join, pairs: path } => {
                let pairs = compared(pairs(&path)?, &right);
                format!("{name} | not counted: {build:.3} | {join:.3} | {pairs}")
            }
            Peer::Missing { name, missing } => format!("{name} |  | {missing}"),
        });
    }
    Ok(())
}

/// The number of pairs of a peer, with the numbers of wrong and of lost ones.
fn compared(mut pairs: Vec<(u32, u32)>, right: &[(u32, u32)]) -> String {
    pairs.sort_unstable();
    let beyond = |these: &[(u32, u32)], those: &[(u32, u32)]| {
        these.iter().filter(|pair| those.binary_search(pair).is_err()).count()
    };
    let (wrong, lost) = (beyond(&pairs, right), beyond(right, &pairs));
    format!("{} (+{wrong} -{lost})", pairs.len())
}

/// The pairs by a directory, in `all`.
pub(super) fn by_directory(
    isa: Isa,
    vectors: Vectors<'_>,
    epsilon: Epsilon,
    all: &mut Vec<Pair>,
) -> Joined {
    all.clear();
    let begin = Instant::now();
    let directory = Directory::within(isa, vectors, epsilon);
    let build = begin.elapsed();
    each_pair(isa, &directory, |pairs| all.extend_from_slice(pairs));
    Run { time: begin.elapsed(), answer: all.len() as u64, rest: Some(build) }
}

/// Gives all pairs of a directory to `take`, some at a time.
pub(super) fn each_pair(isa: Isa, directory: &Directory, mut take: impl FnMut(&[Pair])) {
    let join = Join::within(directory);
    let (mut search, mut found) = (Search::default(), FoundPairs::new(ROOM));
    for part in 0..join.parts() {
        join.begin(isa, part, &mut search);
        while !join.advance(isa, &mut search, &mut found) {
            take(found.pairs());
            found.clear();
        }
    }
    take(found.pairs());
}

/// The number of pairs by a nested loop.
pub(super) fn by_loop(isa: Isa, vectors: Vectors<'_>, epsilon: Epsilon) -> Joined {
    let begin = Instant::now();
    let join = NestedLoop::within(isa, vectors, epsilon);
    let (mut scan, mut count) = (Scan::default(), PairCount::default());
    for part in 0..join.parts() {
        join.begin(isa, part, &mut scan);
        assert!(join.advance(isa, &mut scan, &mut count), "a count is never full");
    }
    Run { time: begin.elapsed(), answer: count.0, rest: None }
}

/// The vectors as batches of `rows` for the operator.
pub(super) fn batches(values: &[f32], dims: usize, rows: usize) -> Vec<RecordBatch> {
    let item = Arc::new(Field::new_list_field(DataType::Float32, false));
    let width = i32::try_from(dims).expect("at most 4,096");
    let mut first = 0_u32;
    let batch = |rows: &[f32]| {
        let coordinates = Arc::new(Float32Array::from(rows.to_vec()));
        let vectors = FixedSizeListArray::new(Arc::clone(&item), width, coordinates, None);
        let len = u32::try_from(rows.len() / dims).expect("rows of a batch");
        let ids = UInt32Array::from_iter_values(first..first + len);
        first += len;
        let columns: [(&str, ArrayRef); 2] = [("id", Arc::new(ids)), ("vector", Arc::new(vectors))];
        RecordBatch::try_from_iter(columns).expect("columns of one length")
    };
    values.chunks(rows * dims).map(batch).collect()
}

/// A whole run of the operator, from batches to the number of pairs.
fn by_operator(batches: &[RecordBatch], epsilon: f64, cores: usize) -> Joined {
    let mut graph = Graph::new();
    let source = graph.add("source", batches_in_memory(batches.to_vec()));
    let join = EpsilonJoin::new(epsilon).device(Device::Cpu);
    let join = graph.add_after(source, "join", join.output(EpsilonOutput::Count));
    let (sink, rows) = Collect::new();
    let end = graph.add_after(join, "end", sink);
    let cores = &available_cores()[..cores];
    graph.cores(source, vec![cores[0]]).cores(join, cores.to_vec()).cores(end, vec![cores[0]]);
    let (time, _) = pipelines::run(graph);
    Run { time, answer: count(&rows), rest: None }
}

/// Measures and prints the memory of a whole run of the operator, whose pairs are thrown away.
pub(super) fn memory(workload: Workload) {
    let values = workload.values();
    let input = size_of_val(&values[..]) as f64;
    let batches = batches(&values, workload.dims, BATCH);
    // The batches are the input; the operator must not need the vectors twice.
    drop(values);
    let mut graph = Graph::new();
    let source = graph.add("source", batches_in_memory(batches));
    let join = EpsilonJoin::new(workload.epsilon).device(Device::Cpu);
    let join = graph.add_after(source, "join", join);
    graph.add_after(join, "end", Discard::new());
    reset_peak();
    let (time, metrics) = pipelines::run(graph);
    let pairs = pipelines::rows_of(&metrics, "join");
    let (input_mb, peak_mb, seconds) = (input / 1e6, peak() as f64 / 1e6, time.as_secs_f64());
    println!(
        "{workload}: {pairs} pairs in {seconds:.2} s, vectors {input_mb:.0} MB, process at the peak {peak_mb:.0} MB, {:.2} times",
        peak_mb / input_mb
    );
}
