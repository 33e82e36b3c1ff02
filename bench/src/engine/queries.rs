//! Cost of queries: ingestion with and without them, and the latency of answers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::{ArrayRef, RecordBatch, UInt32Array};
use arrow_schema::{DataType, Field, Schema};
use hdrhistogram::Histogram;
use trommel::placement::{Placement, available_cores};
use trommel::{
    Algorithm, Collect, Discard, FrequentItems, Generate, Graph, Memory, Request, RunOptions,
    Running, Zipf,
};

const ITEMS: u64 = 200_000_000;
const BATCH: usize = 512;
/// Distinct items that are fed repeatedly, so that generating them is not measured.
const DISTINCT_ITEMS: usize = 1 << 22;
const ALPHABET: u32 = 5_000_000;
const SKEW: f64 = 1.5;
const COUNTERS: usize = 1000;
const QUERIES_PER_SECOND: u32 = 2000;
/// Items of a query.
const TOP: usize = 10;

/// Rate of queries to a running pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asking {
    Never,
    /// At fixed times, even if the last answer was late.
    PerSecond(u32),
    /// As soon as the last answer has arrived.
    Unlimited,
}

/// Pipeline that counts and answers queries meanwhile.
pub(crate) struct Ingestion {
    pub(crate) counting: FrequentItems,
    pub(crate) batches: Arc<Vec<RecordBatch>>,
    /// Times that all batches are fed.
    pub(crate) repeats: usize,
    /// Cores of the parts of the operator, with the source on the first one; empty to run all on
    /// one thread.
    pub(crate) cores: Vec<usize>,
}

impl Ingestion {
    /// Feeds all items while this thread queries the pipeline, or waits for the same time without
    /// queries; M items/s.
    pub(crate) fn run(&self, asking: Asking, latency: &mut Histogram<u64>) -> f64 {
        let batches = Arc::clone(&self.batches);
        let one_round = move |_| {
            (0..batches.len()).map({
                let batches = Arc::clone(&batches);
                move |i| batches[i].clone()
            })
        };
        let stream = (0..self.repeats).flat_map(one_round);
        let mut graph = Graph::new();
        graph.placement(Placement::Fused);
        let items = graph.add("items", Memory::new(self.batches[0].schema(), stream));
        let top = graph.add_after(items, "top", self.counting.clone().n(TOP));
        let (sink, rows) = Collect::new();
        let end = graph.add_after(top, "rows", sink);
        if let (Some(&first), Some(&last)) = (self.cores.first(), self.cores.last()) {
            graph.cores(items, [first]).cores(top, &self.cores[..]).cores(end, [last]);
        }
        let topology = graph.build().expect("the graph is right");
        let has_core_to_ask = available_cores().len() > topology.plan().groups.len();
        let mut running = topology.start(RunOptions::new()).expect("it starts");
        ask(&mut running, asking, has_core_to_ask, latency);
        let metrics = running.join().expect("it runs");
        // A short stream of high skew has fewer distinct items.
        assert!((1..=TOP).contains(&rows.rows()), "{} rows", rows.rows());
        let counted = metrics.stage("top").expect("it is there").items_in();
        let sent: usize = self.batches.iter().map(RecordBatch::num_rows).sum();
        assert_eq!(counted, (sent * self.repeats) as u64, "every item is counted");
        counted as f64 / metrics.wall.as_secs_f64() / 1e6
    }
}

/// Queries the pipeline until it ends. Without queries it waits in the same way, since a second
/// busy core alone slows the first. Latency is measured from the intended time of the query.
fn ask(running: &mut Running, asking: Asking, has_core: bool, latency: &mut Histogram<u64>) {
    let request = Request::new("top").with("n", TOP);
    let pause = match asking {
        Asking::Never => Duration::from_secs(1) / QUERIES_PER_SECOND,
        Asking::PerSecond(queries) => Duration::from_secs(1) / queries,
        Asking::Unlimited => Duration::ZERO,
    };
    let mut due = Instant::now();
    loop {
        due = if pause.is_zero() { Instant::now() } else { due + pause };
        let patience =
            if has_core { Duration::ZERO } else { due.saturating_duration_since(Instant::now()) };
        if running.wait(patience) {
            return;
        }
        while Instant::now() < due {
            std::hint::spin_loop();
        }
        if asking == Asking::Never {
            continue;
        }
        let answer = running.query("top", &request);
        // The clock stops before the answer is read and freed.
        let elapsed = due.elapsed();
        match answer {
            Ok(rows) => assert!(rows.num_rows() <= TOP),
            Err(trommel::QueryError::Finished { .. }) => return,
            Err(error) => panic!("{error}"),
        }
        latency.saturating_record(u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX));
    }
}

/// Measures and prints the cost of queries, and the latency of a running and of a parked stage.
pub(crate) fn run(rounds: usize) {
    println!(
        "frequent_items (filter, {COUNTERS} counters) over {ITEMS} u32, Zipf {SKEW}, on one core,"
    );
    println!("in batches of {BATCH}, asked for the top {TOP} from another core;");
    println!("median of {rounds} interleaved rounds\n");
    let counting = FrequentItems::new().counters(COUNTERS).algorithm(Algorithm::Filter);
    let mut zipf = Zipf::new(ALPHABET, SKEW, 1).expect("the parameters are in range");
    let batches = batches(&mut zipf, BATCH, ITEMS);
    let ingestion = ingestion(counting, &batches, ITEMS);
    let asking = [Asking::Never, Asking::PerSecond(QUERIES_PER_SECOND)];
    let [without, with] = paired(&ingestion, asking, rounds);
    println!("  without queries          {:>8.1} M items/s", without.rate());
    println!("  {QUERIES_PER_SECOND} fresh queries/s     {:>8.1} M items/s", with.rate());
    let [low, cost, high] = with.cost(&without);
    println!("  cost, round by round     {cost:+.2}% (quartiles {low:+.2}% to {high:+.2}%)");
    print("answer of a running stage", &with.latency);
    print("answer of a parked stage", &parked());
}

/// Rounds of one rate of queries.
pub(crate) struct Asked {
    rates: Vec<f64>,
    pub(crate) latency: Histogram<u64>,
}

impl Asked {
    /// Median, in M items/s.
    pub(crate) fn rate(&self) -> f64 {
        let [_, median, _] = quartiles(self.rates.clone());
        median
    }

    /// Quartiles of the slowdown over `without` in percent, round by round.
    pub(crate) fn cost(&self, without: &Self) -> [f64; 3] {
        let rounds = without.rates.iter().zip(&self.rates);
        quartiles(rounds.map(|(without, with)| (without / with - 1.0) * 100.0).collect())
    }

    /// Quantile of the latency in µs.
    pub(crate) fn latency_us(&self, quantile: f64) -> f64 {
        microseconds(&self.latency, quantile)
    }
}

/// Runs all rates in turn, `rounds` times.
pub(crate) fn paired<const N: usize>(
    ingestion: &Ingestion,
    asking: [Asking; N],
    rounds: usize,
) -> [Asked; N] {
    let mut asked = asking.map(|_| Asked { rates: Vec::new(), latency: histogram() });
    for _ in 0..rounds {
        for (asking, asked) in asking.into_iter().zip(&mut asked) {
            let rate = ingestion.run(asking, &mut asked.latency);
            asked.rates.push(rate);
        }
    }
    asked
}

/// A feed of about `items` items on one thread: the batches, repeated.
pub(crate) fn ingestion(
    counting: FrequentItems,
    batches: &Arc<Vec<RecordBatch>>,
    items: u64,
) -> Ingestion {
    let once: usize = batches.iter().map(RecordBatch::num_rows).sum();
    let repeats = usize::try_from(items.div_ceil(once as u64)).expect("memory holds them");
    Ingestion { counting, batches: Arc::clone(batches), repeats, cores: Vec::new() }
}

/// Batches of a Zipf stream, up to `items` items, to be fed repeatedly.
pub(crate) fn batches(zipf: &mut Zipf, batch: usize, items: u64) -> Arc<Vec<RecordBatch>> {
    let schema = Arc::new(Schema::new(vec![Field::new("item", DataType::UInt32, false)]));
    let mut next = || {
        let mut items = vec![0; batch];
        zipf.fill(&mut items);
        let column: ArrayRef = Arc::new(UInt32Array::from(items));
        RecordBatch::try_new(Arc::clone(&schema), vec![column]).expect("one column of this type")
    };
    let items = usize::try_from(items).map_or(DISTINCT_ITEMS, |items| items.min(DISTINCT_ITEMS));
    Arc::new((0..items.div_ceil(batch)).map(|_| next()).collect())
}

fn quartiles(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| values[(values.len() - 1) * quarter / 4])
}

pub(crate) fn histogram() -> Histogram<u64> {
    Histogram::new_with_max(10_000_000_000, 3).expect("three digits are within 0..=5")
}

fn microseconds(latency: &Histogram<u64>, quantile: f64) -> f64 {
    Duration::from_nanos(latency.value_at_quantile(quantile)).as_secs_f64() * 1e6
}

fn print(name: &str, latency: &Histogram<u64>) {
    let (p50, p99) = (microseconds(latency, 0.5), microseconds(latency, 0.99));
    println!("  {name:<26} p50 {p50:.1} us, p99 {p99:.1} us over {} queries", latency.len());
}

/// Latency of a pipeline whose source sleeps, queried every few milliseconds.
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
