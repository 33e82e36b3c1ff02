//! The table of frequent items: throughput and accuracy over the skew of the stream, every answer
//! checked against exact counts.

use std::collections::HashMap;
use std::hint::black_box;
use std::time::{Duration, Instant};

use arrow_array::cast::AsArray;
use arrow_array::types::{UInt32Type, UInt64Type};
use arrow_array::{ArrayRef, RecordBatch, UInt32Array};
use trommel::frequent_items::{Counted, Filter, Sieve, SpaceSaving};
use trommel::placement::available_cores;
use trommel::{Algorithm, Collect, FrequentItems, Graph, Isa, Memory, RunOptions, Zipf};

/// Items a batch, as pipelines hand them over.
const BATCH: usize = 8192;
const BINS: usize = 16;
/// Accuracy is that of the most frequent so many.
const TOP: usize = 100;
const SEED: u64 = 1;

/// What is measured.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Arguments {
    /// Items of the stream.
    #[arg(long, default_value_t = 50_000_000)]
    items: usize,
    /// Different items that there are.
    #[arg(long, default_value_t = 5_000_000)]
    alphabet: u32,
    /// Counters of each summary.
    #[arg(long, default_value_t = 1000)]
    counters: usize,
    /// Zipf exponents.
    #[arg(long, value_delimiter = ',', default_value = "0,0.5,0.8,1,1.2,1.5,2,2.5,3,5")]
    skews: Vec<f64>,
    /// Rounds; the median is shown.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
}

/// What a candidate says of an item.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Estimate {
    pub(crate) item: u32,
    pub(crate) count: u64,
    /// The count may be this much too high; `None` if the candidate gives no such bound.
    pub(crate) error: Option<u64>,
}

/// One way to count: its name, and what it reports of a stream, the most frequent first.
pub(crate) type Candidate = (&'static str, fn(&Stream) -> Vec<Estimate>);

const OWN: [Candidate; 6] = [
    ("read limit (sum)", read_limit),
    ("exact, hash table", exact),
    ("space_saving", space_saving),
    ("filter, 16 bins", filter),
    ("sieve", sieve),
    ("parallel_filter, 2 cores", parallel_filter),
];
#[cfg(feature = "peers")]
use crate::summary_peers::CANDIDATES as PEERS;
#[cfg(not(feature = "peers"))]
const PEERS: [Candidate; 0] = [];

/// A stream and the truth about it.
pub(crate) struct Stream {
    pub(crate) counters: usize,
    array: UInt32Array,
    counts: Vec<u32>,
    /// The most frequent items, the first first.
    top: Vec<u32>,
}

impl Stream {
    fn new(arguments: &Arguments, skew: f64) -> Self {
        let mut items = vec![0; arguments.items];
        let mut zipf = Zipf::new(arguments.alphabet, skew, SEED).expect("clap checked the numbers");
        zipf.fill(&mut items);
        let mut counts = vec![0_u32; arguments.alphabet as usize];
        items.iter().for_each(|&item| counts[item as usize] += 1);
        let mut top: Vec<u32> = (0..arguments.alphabet).collect();
        let by_count = |item: &u32| std::cmp::Reverse(counts[*item as usize]);
        let top_len = TOP.min(top.len());
        top.select_nth_unstable_by_key(top_len - 1, by_count);
        top.truncate(top_len);
        top.sort_by_key(by_count);
        top.retain(|&item| counts[item as usize] > 0);
        Self { counters: arguments.counters, array: UInt32Array::from(items), counts, top }
    }

    pub(crate) fn items(&self) -> &[u32] {
        self.array.values()
    }

    fn truth(&self, item: u32) -> u64 {
        u64::from(self.counts[item as usize])
    }

    /// The batches of a pipeline, without a copy.
    fn batches(&self) -> Vec<RecordBatch> {
        (0..self.array.len())
            .step_by(BATCH)
            .map(|start| {
                let column: ArrayRef = std::sync::Arc::new(
                    self.array.slice(start, BATCH.min(self.array.len() - start)),
                );
                RecordBatch::try_from_iter_with_nullable([("item", column, false)])
                    .expect("one column")
            })
            .collect()
    }

    /// Checks whatever bounds the candidate gives: a bound that does not hold is a wrong answer.
    fn check(&self, name: &str, estimates: &[Estimate]) {
        let bound = self.items().len() as u64 / self.counters as u64;
        let has_bounds = estimates.first().is_some_and(|estimate| estimate.error.is_some());
        if !has_bounds {
            return;
        }
        for estimate in estimates {
            let (truth, error) = (self.truth(estimate.item), estimate.error.unwrap_or_default());
            let holds = estimate.count - error <= truth && truth <= estimate.count;
            assert!(holds && error <= bound, "{name}: {estimate:?}, in truth {truth}");
        }
        let reported: std::collections::HashSet<u32> = estimates.iter().map(|e| e.item).collect();
        for (item, &count) in (0..).zip(&self.counts) {
            let is_frequent = u64::from(count) > bound;
            assert!(!is_frequent || reported.contains(&item), "{name} misses {item} ({count})");
        }
    }

    /// How many of the reported first [`TOP`] belong there, as a share.
    #[expect(clippy::cast_precision_loss, reason = "at most 100")]
    fn precision(&self, estimates: &[Estimate]) -> f64 {
        let least = self.truth(self.top[self.top.len() - 1]);
        let right =
            estimates.iter().take(TOP).filter(|e| self.truth(e.item) >= least.max(1)).count();
        right as f64 / self.top.len() as f64
    }

    /// Mean relative error of the counts of the true first [`TOP`]; an item that is not reported
    /// counts as 1.
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
    fn relative_error(&self, estimates: &[Estimate]) -> f64 {
        let counts: HashMap<u32, u64> = estimates.iter().map(|e| (e.item, e.count)).collect();
        let error = |item: &u32| {
            let truth = self.truth(*item) as f64;
            counts.get(item).map_or(1.0, |&count| (count as f64 - truth).abs() / truth.max(1.0))
        };
        self.top.iter().map(error).sum::<f64>() / self.top.len() as f64
    }
}

/// Measures and prints throughput, then accuracy.
pub(crate) fn run(arguments: &Arguments) {
    let Arguments { items, alphabet, counters, .. } = arguments;
    println!(
        "{items} u32, alphabet {alphabet}, {counters} counters, median of {} rounds",
        arguments.rounds
    );
    println!("every bound that a summary gives is checked against exact counts\n");
    let candidates: Vec<Candidate> = OWN.iter().chain(&PEERS).copied().collect();
    let mut rows: Vec<Row> = candidates.iter().map(|&(name, _)| Row::new(name)).collect();
    for &skew in &arguments.skews {
        let stream = Stream::new(arguments, skew);
        for ((name, run), row) in candidates.iter().zip(&mut rows) {
            row.measure(name, *run, &stream, arguments.rounds);
        }
    }
    print_table(
        "M items/s",
        &arguments.skews,
        &rows,
        |row| &row.rates,
        |rate| format!("{rate:.0}"),
    );
    print_table(
        "top-100 precision",
        &arguments.skews,
        &rows,
        |row| &row.precisions,
        |share| format!("{share:.2}"),
    );
    print_table(
        "relative error of the top 100",
        &arguments.skews,
        &rows,
        |row| &row.errors,
        |e| format!("{e:.1e}"),
    );
}

/// The measurements of one candidate, by skew.
struct Row {
    name: &'static str,
    rates: Vec<f64>,
    precisions: Vec<f64>,
    errors: Vec<f64>,
}

impl Row {
    fn new(name: &'static str) -> Self {
        Self { name, rates: Vec::new(), precisions: Vec::new(), errors: Vec::new() }
    }

    #[expect(clippy::cast_precision_loss, reason = "the number of items is far below 2^53")]
    fn measure(
        &mut self,
        name: &str,
        run: fn(&Stream) -> Vec<Estimate>,
        stream: &Stream,
        rounds: usize,
    ) {
        let mut times: Vec<Duration> = Vec::new();
        let mut estimates = Vec::new();
        for _ in 0..rounds.max(1) {
            let start = Instant::now();
            estimates = run(stream);
            times.push(start.elapsed());
        }
        stream.check(name, &estimates);
        times.sort_unstable();
        let median = times[times.len() / 2].as_secs_f64();
        self.rates.push(stream.items().len() as f64 / median / 1e6);
        if !estimates.is_empty() {
            self.precisions.push(stream.precision(&estimates));
            self.errors.push(stream.relative_error(&estimates));
        }
    }
}

fn print_table(
    title: &str,
    skews: &[f64],
    rows: &[Row],
    values: impl Fn(&Row) -> &Vec<f64>,
    shown: impl Fn(f64) -> String,
) {
    println!("| {title} | {} |", skews.iter().map(f64::to_string).collect::<Vec<_>>().join(" | "));
    println!("|---|{}", "---:|".repeat(skews.len()));
    for row in rows.iter().filter(|row| !values(row).is_empty()) {
        let cells: Vec<String> = values(row).iter().map(|&value| shown(value)).collect();
        println!("| {} | {} |", row.name, cells.join(" | "));
    }
    println!();
}

fn bounded(counted: Vec<Counted<u32>>) -> Vec<Estimate> {
    let estimate =
        |c: Counted<u32>| Estimate { item: c.item, count: c.count, error: Some(c.error) };
    counted.into_iter().map(estimate).collect()
}

/// Reports nothing: how fast the items can be read at all.
fn read_limit(stream: &Stream) -> Vec<Estimate> {
    black_box(stream.items().iter().fold(0_u32, |sum, &item| sum.wrapping_add(item)));
    Vec::new()
}

fn exact(stream: &Stream) -> Vec<Estimate> {
    let mut counts: rapidhash::RapidHashMap<u32, u64> = rapidhash::RapidHashMap::default();
    for &item in stream.items() {
        *counts.entry(item).or_default() += 1;
    }
    let mut estimates: Vec<Estimate> =
        counts.into_iter().map(|(item, count)| Estimate { item, count, error: Some(0) }).collect();
    estimates.sort_unstable_by_key(|e| std::cmp::Reverse(e.count));
    estimates
}

fn space_saving(stream: &Stream) -> Vec<Estimate> {
    let mut summary = SpaceSaving::<u32>::new(stream.counters).expect("a possible number");
    stream.items().chunks(BATCH).for_each(|batch| summary.observe(batch));
    bounded(summary.top(usize::MAX))
}

fn filter(stream: &Stream) -> Vec<Estimate> {
    let isa = Isa::selected().expect("TROMMEL_ISA names a level of this machine");
    let mut summary = Filter::<u32>::new(isa, stream.counters, BINS).expect("a possible number");
    stream.items().chunks(BATCH).for_each(|batch| summary.observe(batch));
    bounded(summary.top(usize::MAX))
}

fn sieve(stream: &Stream) -> Vec<Estimate> {
    let isa = Isa::selected().expect("TROMMEL_ISA names a level of this machine");
    let mut summary = Sieve::<u32>::new(isa, stream.counters).expect("a possible number");
    stream.items().chunks(BATCH).for_each(|batch| summary.observe(batch));
    bounded(summary.top(usize::MAX))
}

fn parallel_filter(stream: &Stream) -> Vec<Estimate> {
    let batches = stream.batches();
    let mut graph = Graph::new();
    let items = graph.add("items", Memory::new(batches[0].schema(), batches));
    let counting = FrequentItems::new().counters(stream.counters).filter_bins(BINS);
    let top = graph.add_after(items, "top", counting.algorithm(Algorithm::ParallelFilter));
    let cores = available_cores();
    graph.cores(items, [cores[0]]).cores(top, [cores[0], cores[cores.len() - 1]]);
    let (sink, rows) = Collect::new();
    graph.add_after(top, "rows", sink);
    graph.build().expect("the graph is right").run(RunOptions::new()).expect("it runs");
    let rows = rows.take();
    rows.iter()
        .flat_map(|rows| {
            let items = rows.column(1).as_primitive::<UInt32Type>().values();
            let counts = rows.column(2).as_primitive::<UInt64Type>().values();
            let errors = rows.column(3).as_primitive::<UInt64Type>().values();
            items.iter().zip(counts).zip(errors).map(|((&item, &count), &error)| Estimate {
                item,
                count,
                error: Some(error),
            })
        })
        .collect()
}
