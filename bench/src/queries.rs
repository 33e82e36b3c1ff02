//! What queries cost: ingestion with and without them, and how long an answer takes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::{ArrayRef, RecordBatch, UInt32Array};
use arrow_schema::{DataType, Field, Schema};
use hdrhistogram::Histogram;
use trommel::placement::Placement;
use trommel::{
    Algorithm, Collect, Discard, FrequentItems, Generate, Graph, Memory, Request, RunOptions,
    Running, Zipf,
};

const ITEMS: u64 = 200_000_000;
const BATCH: usize = 512;
/// Different items that are fed again and again, so that generating them is not measured.
const DISTINCT_BATCHES: usize = 8192;
const ALPHABET: u32 = 5_000_000;
const SKEW: f64 = 1.5;
const COUNTERS: usize = 1000;
const QUERIES_PER_SECOND: u32 = 2000;

/// Measures and prints both.
pub(crate) fn run(rounds: usize) {
    let batches = Arc::new(batches());
    println!(
        "frequent_items (filter, {COUNTERS} counters) over {ITEMS} u32, Zipf {SKEW}, on one core,"
    );
    println!("in batches of {BATCH}, asked for the top 10 from another core;");
    println!("median of {rounds} interleaved rounds\n");
    let mut rates = [Vec::new(), Vec::new()];
    let mut running = histogram();
    for _ in 0..rounds {
        for (is_asking, times) in [false, true].into_iter().zip(&mut rates) {
            times.push(ingest(&batches, is_asking, &mut running));
        }
    }
    let [without, with] = rates;
    let costs = without.iter().zip(&with).map(|(without, with)| (without / with - 1.0) * 100.0);
    let [low, cost, high] = quartiles(costs.collect());
    let [_, without, _] = quartiles(without);
    let [_, with, _] = quartiles(with);
    println!("  without queries          {without:>8.1} M items/s");
    println!("  {QUERIES_PER_SECOND} fresh queries/s     {with:>8.1} M items/s");
    println!("  cost, round by round     {cost:+.2}% (quartiles {low:+.2}% to {high:+.2}%)");
    print("answer of a running stage", &running);
    print("answer of a parked stage", &parked());
}

fn quartiles(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| values[(values.len() - 1) * quarter / 4])
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_max(10_000_000_000, 3).expect("three digits are within 0..=5")
}

fn print(name: &str, latency: &Histogram<u64>) {
    let us = |q: f64| Duration::from_nanos(latency.value_at_quantile(q)).as_secs_f64() * 1e6;
    let (p50, p99) = (us(0.5), us(0.99));
    println!("  {name:<26} p50 {p50:.1} us, p99 {p99:.1} us over {} queries", latency.len());
}

fn batches() -> Vec<RecordBatch> {
    let schema = Arc::new(Schema::new(vec![Field::new("item", DataType::UInt32, false)]));
    let mut zipf = Zipf::new(ALPHABET, SKEW, 1).expect("the parameters are in range");
    let mut batch = || {
        let mut items = vec![0; BATCH];
        zipf.fill(&mut items);
        let column: ArrayRef = Arc::new(UInt32Array::from(items));
        RecordBatch::try_new(Arc::clone(&schema), vec![column]).expect("one column of this type")
    };
    (0..DISTINCT_BATCHES).map(|_| batch()).collect()
}

/// Feeds all items while another core asks, or only keeps the time in which it would; M items/s.
#[expect(clippy::cast_precision_loss, reason = "the number of items is far below 2^53")]
fn ingest(batches: &Arc<Vec<RecordBatch>>, is_asking: bool, latency: &mut Histogram<u64>) -> f64 {
    let stream = {
        let batches = Arc::clone(batches);
        (0..ITEMS / BATCH as u64)
            .zip((0..DISTINCT_BATCHES).cycle())
            .map(move |(_, i)| batches[i].clone())
    };
    let mut graph = Graph::new();
    graph.placement(Placement::Fused);
    let items = graph.add("items", Memory::new(batches[0].schema(), stream));
    let counting = FrequentItems::new().counters(COUNTERS).algorithm(Algorithm::Filter).n(10);
    let top = graph.add_after(items, "top", counting);
    let (sink, rows) = Collect::new();
    graph.add_after(top, "rows", sink);
    let topology = graph.build().expect("the graph is right");
    let mut running = topology.start(RunOptions::new()).expect("it starts");
    ask(&mut running, is_asking, latency);
    let metrics = running.join().expect("it runs");
    assert_eq!(rows.rows(), 10, "the ten most frequent");
    let counted = metrics.stage("top").expect("it is there").items_in();
    assert_eq!(counted, ITEMS / BATCH as u64 * BATCH as u64);
    counted as f64 / metrics.wall.as_secs_f64() / 1e6
}

/// Asks at fixed times, whether or not the last answer was late, and measures from the intended
/// time. Without asking it waits in the same way: a second busy core alone slows the first.
fn ask(running: &mut Running, is_asking: bool, latency: &mut Histogram<u64>) {
    let request = Request::new("top").with("n", 10);
    let (start, pause) = (Instant::now(), Duration::from_secs(1) / QUERIES_PER_SECOND);
    let mut due = start;
    while !running.wait(Duration::ZERO) {
        due += pause;
        while Instant::now() < due {
            std::hint::spin_loop();
        }
        if !is_asking {
            continue;
        }
        let answer = running.query("top", &request);
        // Before the answer is looked at and freed.
        let elapsed = due.elapsed();
        match answer {
            Ok(rows) => assert!(rows.num_rows() <= 10),
            Err(trommel::QueryError::Finished { .. }) => return,
            Err(error) => panic!("{error}"),
        }
        latency.saturating_record(u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX));
    }
}

/// A pipeline whose source sleeps, asked every few milliseconds.
fn parked() -> Histogram<u64> {
    let mut graph = Graph::new();
    let items = graph.add("items", Generate::zipf(1000, 1.0).rate(1.0));
    let top = graph.add_after(items, "top", FrequentItems::new());
    graph.add_after(top, "end", Discard::new());
    let topology = graph.build().expect("the graph is right");
    let mut running = topology.start(RunOptions::new()).expect("it starts");
    let mut latency = histogram();
    for _ in 0..500 {
        assert!(!running.wait(Duration::from_millis(2)), "an endless stream");
        let start = Instant::now();
        let answer = running.query("top", &Request::new("top"));
        let elapsed = start.elapsed();
        answer.expect("it answers");
        latency.saturating_record(u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX));
    }
    running.stop();
    running.join().expect("it stops");
    latency
}
