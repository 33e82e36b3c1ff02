//! Joins on the CPU: the directory and the nested loop of the kernels on one thread, the operator
//! on one core and on all of them, kiddo, and Python packages.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{ArrayRef, FixedSizeListArray, Float32Array, RecordBatch, UInt32Array};
use arrow_schema::{DataType, Field};
use trommel::Device;
use trommel::placement::available_cores;
use trommel::{Collect, Discard, EpsilonJoin, EpsilonOutput, Graph, Isa, Memory, RunOptions};
use trommel_kernels::vectors::{
    Directory, Epsilon, FoundPairs, Join, NestedLoop, Pair, PairCount, Scan, Search, Vectors,
};

use super::data::Workload;
use super::peers::{Peer, Peers};
use super::sample;
use crate::runner::memory::{peak, reset_peak};

/// Comparisons of coordinates up to which the nested loop is measured.
const NESTED_MAX: usize = 1 << 38;
/// Room for pairs, which are drained when it is used up.
const ROOM: usize = 1 << 16;
/// Vectors of a batch of the operator.
pub(super) const BATCH: usize = 16_384;

/// Times of a way to join.
#[derive(Clone, Copy)]
pub(super) struct Row {
    /// The part of the time for an index, if that is a part of its own.
    build: Option<Duration>,
    pub(super) whole: Duration,
}

/// The fastest of some rounds.
fn fastest(rounds: usize, mut run: impl FnMut() -> Row) -> Row {
    let rows = (0..=rounds).map(|_| run()).skip(1);
    rows.min_by_key(|row| row.whole).expect("at least one round")
}

/// Measures and prints.
///
/// # Errors
/// If a script of a peer fails.
pub(super) fn run(
    workload: Workload,
    rounds: usize,
    samples: usize,
    peers: &Peers,
) -> io::Result<()> {
    let isa = Isa::selected().expect("the variable names a level of this machine");
    let mut values = vec![0.0; workload.len * workload.dims];
    workload.fill(&mut values);
    let vectors = Vectors::new(&values, workload.dims);
    let epsilon = Epsilon::new(workload.epsilon).expect("a distance");
    println!("{workload}, one core unless said, {isa}\n");
    println!("| way | build, s | whole, s | pairs |");
    println!("|---|---:|---:|---:|");
    let print = |way: &str, row: Row, pairs: u64| {
        let Row { build, whole } = row;
        let build = build.map_or_else(String::new, |time| format!("{:.3}", time.as_secs_f64()));
        println!("| {way} | {build} | {:.3} | {pairs} |", whole.as_secs_f64());
    };
    let mut all = Vec::new();
    let row = fastest(rounds, || by_directory(isa, vectors, epsilon, &mut all));
    let count = all.len() as u64;
    let pairs = all.iter().map(|pair| (pair.left, pair.right, pair.square));
    sample::check(&values, workload, pairs, samples);
    print("directory", row, count);
    let comparisons = workload.len * workload.len / 2 * workload.dims;
    if comparisons <= NESTED_MAX {
        let row = fastest(rounds, || {
            let (row, found) = by_loop(isa, vectors, epsilon);
            assert_eq!(found, count, "another number of pairs");
            row
        });
        print("nested loop", row, count);
    }
    let batches = batches(&values, workload.dims, BATCH);
    let mut of_cores = Vec::new();
    for cores in 1..=available_cores().len().min(2) {
        let row = fastest(rounds, || by_operator(&batches, workload.epsilon, cores, count));
        print(&format!("operator, {cores} cores"), row, count);
        of_cores.push(row.whole.as_secs_f64());
    }
    if let [one, two] = of_cores[..] {
        println!("| operator, one core / two | | {:.2} | |", one / two);
    }
    let mut right: Vec<_> = all.iter().map(|pair| (pair.left, pair.right)).collect();
    right.sort_unstable();
    for measured in peers.measure(workload, &values, rounds)? {
        match measured {
            Peer::Joined { name, build, join, pairs } => {
                peer(&name, build, join, super::peers::pairs(&pairs)?, &right);
            }
            Peer::Missing { name, missing } => println!("| {name} | | {missing} | |"),
        }
    }
    println!();
    Ok(())
}

/// Prints the row of a peer, with the numbers of wrong and of lost pairs.
fn peer(name: &str, build: f64, join: f64, mut pairs: Vec<(u32, u32)>, right: &[(u32, u32)]) {
    pairs.sort_unstable();
    let beyond = |these: &[(u32, u32)], those: &[(u32, u32)]| {
        these.iter().filter(|pair| those.binary_search(pair).is_err()).count()
    };
    let (wrong, lost) = (beyond(&pairs, right), beyond(right, &pairs));
    println!(
        "| {name} | not counted: {build:.3} | {join:.3} | {} (+{wrong} -{lost}) |",
        pairs.len()
    );
}

/// The pairs by a directory, in `all`.
pub(super) fn by_directory(
    isa: Isa,
    vectors: Vectors<'_>,
    epsilon: Epsilon,
    all: &mut Vec<Pair>,
) -> Row {
    all.clear();
    let begin = Instant::now();
    let directory = Directory::within(isa, vectors, epsilon);
    let build = begin.elapsed();
    let join = Join::within(&directory);
    let (mut search, mut found) = (Search::default(), FoundPairs::new(ROOM));
    for part in 0..join.parts() {
        join.begin(isa, part, &mut search);
        while !join.advance(isa, &mut search, &mut found) {
            all.extend_from_slice(found.pairs());
            found.clear();
        }
    }
    all.extend_from_slice(found.pairs());
    Row { build: Some(build), whole: begin.elapsed() }
}

/// The number of pairs by a nested loop.
pub(super) fn by_loop(isa: Isa, vectors: Vectors<'_>, epsilon: Epsilon) -> (Row, u64) {
    let begin = Instant::now();
    let join = NestedLoop::within(isa, vectors, epsilon);
    let (mut scan, mut count) = (Scan::default(), PairCount::default());
    for part in 0..join.parts() {
        join.begin(isa, part, &mut scan);
        assert!(join.advance(isa, &mut scan, &mut count), "a count is never full");
    }
    (Row { build: None, whole: begin.elapsed() }, count.0)
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
fn by_operator(batches: &[RecordBatch], epsilon: f64, cores: usize, expected: u64) -> Row {
    let mut graph = Graph::new();
    let source = graph.add("source", Memory::new(batches[0].schema(), batches.to_vec()));
    let join = EpsilonJoin::new(epsilon).device(Device::Cpu);
    let join = graph.add_after(source, "join", join.output(EpsilonOutput::Count));
    let (sink, rows) = Collect::new();
    let end = graph.add_after(join, "end", sink);
    let cores = &available_cores()[..cores];
    graph.cores(source, vec![cores[0]]).cores(join, cores.to_vec()).cores(end, vec![cores[0]]);
    let topology = graph.build().expect("the graph is complete");
    let begin = Instant::now();
    topology.run(RunOptions::new()).expect("the join ends");
    let whole = begin.elapsed();
    let count = rows.batches()[0].column(0).as_primitive::<UInt64Type>().value(0);
    assert_eq!(count, expected, "another number of pairs");
    Row { build: None, whole }
}

/// Measures and prints the memory of a whole run of the operator, whose pairs are thrown away.
pub(super) fn memory(workload: Workload) {
    let mut values = vec![0.0; workload.len * workload.dims];
    workload.fill(&mut values);
    let input = size_of_val(&values[..]) as f64;
    let batches = batches(&values, workload.dims, BATCH);
    // The batches are the input; the operator must not need the vectors twice.
    drop(values);
    let mut graph = Graph::new();
    let source = graph.add("source", Memory::new(batches[0].schema(), batches));
    let join = EpsilonJoin::new(workload.epsilon).device(Device::Cpu);
    let join = graph.add_after(source, "join", join);
    graph.add_after(join, "end", Discard::new());
    let topology = graph.build().expect("the graph is complete");
    reset_peak();
    let begin = Instant::now();
    let metrics = topology.run(RunOptions::new()).expect("the join ends");
    let seconds = begin.elapsed().as_secs_f64();
    let pairs = metrics.stage("end").expect("it is there").items_in();
    let (input_mb, peak_mb) = (input / 1e6, peak() as f64 / 1e6);
    println!(
        "{workload}: {pairs} pairs in {seconds:.2} s, vectors {input_mb:.0} MB, process at the peak {peak_mb:.0} MB, {:.2} times",
        peak_mb / input_mb
    );
}
