//! Counting and tokenizing of items chosen to collide, next to random items: no input may make a
//! hash slow. Every answer is checked against exact counts.

mod streams;

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::{UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;
use trommel::{Algorithm, Collect, FrequentItems, Graph, Tokenize};

use self::streams::{Attack, attacks, tokens};
use super::Arguments;
use super::summaries::pipelines::two_cores;
use crate::runner::pipelines::{memory, run as run_graph};
use crate::runner::report::{Table, cells, right};
use crate::runner::turns::{Run, Turns};

const ALGORITHMS: [(&str, Algorithm); 4] = [
    ("sieve", Algorithm::Sieve),
    ("space_saving", Algorithm::SpaceSaving),
    ("filter", Algorithm::Filter),
    ("parallel_filter", Algorithm::ParallelFilter),
];

/// Items of the streams of integers; streams of texts and tokens have a fifth of that.
const ITEMS: usize = 5_000_000;

/// Measures and prints.
pub(super) fn run(arguments: &Arguments) {
    let items = ITEMS.min(arguments.items);
    println!(
        "Streams of {items} items that collide under known hash functions, over streams of random \
         items of the same shape: M items/s in a pipeline\n"
    );
    let names = right(ALGORITHMS.map(|(name, _)| name));
    let mut table = Table::new(&format!("crafted / random | {names}"));
    let mut least = f64::MAX;
    for attack in attacks(items) {
        let exact = [count_exactly(&attack.crafted), count_exactly(&attack.random)];
        let rates = ALGORITHMS.map(|(_, algorithm)| {
            measure(&attack, arguments, &mut least, |index, batches| {
                count(algorithm, &attack, batches, &exact[index])
            })
        });
        let Attack { name, counters, .. } = &attack;
        table.row(format!("{name}, {counters} counters | {}", cells(rates)));
    }
    drop(table);
    let mut table = Table::new("crafted / random | tokenize:");
    let attack = tokens(items);
    let cell = measure(&attack, arguments, &mut least, |_, batches| tokenize(batches));
    table.row(format!("{} | {cell}", attack.name));
    drop(table);
    println!("The least ratio: {least:.2}\n");
}

/// Rates of the crafted and the random stream, in interleaved rounds, and their ratio. `run` gets
/// 0 for the crafted stream and 1 for the random one, and returns its time.
fn measure(
    attack: &Attack,
    arguments: &Arguments,
    least: &mut f64,
    run: impl Fn(usize, Vec<RecordBatch>) -> Duration,
) -> String {
    let mut turns = Turns::<()>::new(arguments.runs).cold();
    for (index, stream) in [&attack.crafted, &attack.random].into_iter().enumerate() {
        let run = &run;
        turns.add(index.to_string(), move || {
            let time = run(index, batches(stream, arguments.batch));
            Run { time, answer: (), rest: () }
        });
    }
    let items = attack.crafted.len() as f64;
    let rates: Vec<f64> = turns.run().iter().map(|stream| items / stream.seconds() / 1e6).collect();
    let ratio = rates[0] / rates[1];
    *least = least.min(ratio);
    format!("{:.1} / {:.1} = {ratio:.2}", rates[0], rates[1])
}

fn batches(column: &ArrayRef, batch: usize) -> Vec<RecordBatch> {
    let records = |start: usize| {
        let items = column.slice(start, batch.min(column.len() - start));
        RecordBatch::try_from_iter([("item", items)]).expect("one column")
    };
    (0..column.len()).step_by(batch.max(1)).map(records).collect()
}

/// Exact counts of items, as text.
type Counts = HashMap<String, u64>;

fn count_exactly(column: &ArrayRef) -> Counts {
    let mut counts = Counts::new();
    for row in 0..column.len() {
        *counts.entry(shown(column, row)).or_default() += 1;
    }
    counts
}

fn shown(column: &ArrayRef, row: usize) -> String {
    match column.data_type() {
        DataType::UInt64 => column.as_primitive::<UInt64Type>().value(row).to_string(),
        _ => column.as_string::<i32>().value(row).to_owned(),
    }
}

/// Runs a pipeline that counts; returns its time.
fn count(
    algorithm: Algorithm,
    attack: &Attack,
    batches: Vec<RecordBatch>,
    exact: &Counts,
) -> Duration {
    let observed: usize = batches.iter().map(RecordBatch::num_rows).sum();
    let mut graph = Graph::new();
    let items = graph.add("items", memory(batches));
    let counting = FrequentItems::new().counters(attack.counters).algorithm(algorithm);
    let top = graph.add_after(items, "top", counting);
    let (sink, rows) = Collect::new();
    let end = graph.add_after(top, "rows", sink);
    let [one, two] = two_cores();
    if algorithm == Algorithm::ParallelFilter {
        graph.cores(items, [one]).cores(top, [one, two]).cores(end, [two]);
    } else {
        graph.cores(items, [one]).cores(top, [one]).cores(end, [one]);
    }
    let (time, _) = run_graph(graph);
    check(&rows.take(), exact, (observed / attack.counters) as u64);
    time
}

/// Checks all bounds, and that no item with more than `error_max` occurrences is missing.
fn check(rows: &[RecordBatch], exact: &Counts, error_max: u64) {
    let mut frequent = exact.values().filter(|&&count| count > error_max).count();
    for batch in rows {
        let counts = batch.column(2).as_primitive::<UInt64Type>().values();
        let errors = batch.column(3).as_primitive::<UInt64Type>().values();
        for row in 0..batch.num_rows() {
            let truth = exact[&shown(batch.column(1), row)];
            let (count, error) = (counts[row], errors[row]);
            let holds = count - error <= truth && truth <= count && error <= error_max;
            assert!(holds, "{count} - {error} for {truth}, at most {error_max} off");
            frequent -= usize::from(truth > error_max);
        }
    }
    assert_eq!(frequent, 0, "frequent items are missing");
}

/// Runs a pipeline that makes sets of lines; returns its time.
fn tokenize(batches: Vec<RecordBatch>) -> Duration {
    let tokens = batches.iter().flat_map(|batch| batch.column(0).as_string::<i32>()).flatten();
    let distinct: HashSet<&str> = tokens.flat_map(str::split_whitespace).collect();
    let last = u32::try_from(distinct.len() - 1).expect("few tokens");
    let mut graph = Graph::new();
    let lines = graph.add("lines", memory(batches));
    let sets = graph.add_after(lines, "sets", Tokenize::whitespace().column("item").into_sets());
    let (sink, rows) = Collect::new();
    let end = graph.add_after(sets, "rows", sink);
    let [core, _] = two_cores();
    graph.cores(lines, [core]).cores(sets, [core]).cores(end, [core]);
    let (time, _) = run_graph(graph);
    let largest = |batch: &RecordBatch| {
        let sets = batch.column_by_name("set").expect("a column of sets").as_list::<i32>();
        sets.values().as_primitive::<UInt32Type>().values().iter().copied().max()
    };
    let numbered = rows.take().iter().filter_map(largest).max();
    assert_eq!(numbered, Some(last), "each token has a number, from 0 on");
    time
}
