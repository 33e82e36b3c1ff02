//! The streaming join in a pipeline: a full window, then vectors as fast as they are taken, or at a
//! rate. Latency counts from the time at which a batch was to be sent to the last of its pairs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use trommel::operator::{OperatorSpec, SourceFlow};
use trommel::placement::available_cores;
use trommel::{EpsilonJoin, ForEach, Graph, VectorWindow};
use trommel_kernels::vectors::{Directory, Epsilon, Vectors};

use super::data::Workload;
use super::processor::{batches, each_pair};
use crate::runner::isa;
use crate::runner::paced::{Clock, Feed};
use crate::runner::pipelines;
use crate::runner::report::Table;

/// Vectors of a batch.
const BATCH: usize = 1_024;
/// Loads, as shares of the peak.
const SHARES: [f64; 2] = [0.5, 0.9];
/// Batches of the beginning whose latency does not count, as a share of all.
const WARM: f64 = 0.1;

/// A window and the batches of a stream, and their pairs in all.
struct Stream {
    window: usize,
    batches: Arc<Vec<RecordBatch>>,
    pairs: u64,
    epsilon: f64,
}

/// Measures and prints: the peak, and latencies, over a window of the vectors of `workload` and a
/// stream of `streamed` vectors after it.
pub(super) fn run(workload: Workload, streamed: usize) {
    let window = workload.len.next_multiple_of(BATCH);
    let len = window + streamed.next_multiple_of(BATCH);
    let whole = Workload { len, ..workload };
    let mut values = vec![0.0; len * workload.dims];
    whole.fill(&mut values);
    let batches = Arc::new(batches(&values, workload.dims, BATCH));
    let pairs = pairs(&values, whole, window);
    let stream = Stream { window, batches, pairs, epsilon: workload.epsilon };
    println!("Stream of {whole}, window of {window} vectors, batches of {BATCH}\n");
    let mut table =
        Table::new("cores: | load: | µs a vector: | ms of a batch, p50: | p99: | max: | pairs:");
    for cores in 1..=available_cores().len().min(2) {
        let peak = stream.run(cores, None);
        table.row(peak.row(cores, "peak"));
        for share in SHARES {
            let rate = share / peak.time.as_secs_f64() * peak.batches as f64;
            let load = format!("{:.0} %", 100.0 * share);
            table.row(stream.run(cores, Some(rate)).row(cores, &load));
        }
    }
}

/// The pairs whose vectors are less than `window` apart.
fn pairs(values: &[f32], workload: Workload, window: usize) -> u64 {
    let epsilon = Epsilon::new(workload.epsilon).expect("a distance");
    let directory = Directory::new(isa(), Vectors::new(values, workload.dims), epsilon);
    let mut count = 0;
    each_pair(isa(), &directory, |pairs| {
        let near = pairs.iter().filter(|pair| ((pair.right - pair.left) as usize) < window);
        count += near.count() as u64;
    });
    count
}

/// The outcome of a run.
struct Outcome {
    batches: usize,
    /// From the first to the last pair after the window has been filled.
    time: Duration,
    /// Of each batch, sorted; empty for the peak.
    latencies: Vec<Duration>,
    pairs: u64,
}

impl Outcome {
    fn row(&self, cores: usize, load: &str) -> String {
        let micros = 1e6 * self.time.as_secs_f64() / (self.batches * BATCH) as f64;
        let at = |share: f64| {
            let last = self.latencies.len().checked_sub(1)?;
            let place = (share * last as f64).round();
            #[expect(clippy::cast_possible_truncation, reason = "below the number of batches")]
            #[expect(clippy::cast_sign_loss, reason = "not negative")]
            Some(format!("{:.2}", 1e3 * self.latencies[place as usize].as_secs_f64()))
        };
        let [median, high, max] = [0.5, 0.99, 1.0].map(|share| at(share).unwrap_or_default());
        format!("{cores} | {load} | {micros:.2} | {median} | {high} | {max} | {}", self.pairs)
    }
}

impl Stream {
    /// Runs the pipeline on `cores` cores, with `rate` batches a second.
    fn run(&self, cores: usize, rate: Option<f64>) -> Outcome {
        let clock = Clock::new(rate);
        let arrived = Arc::new(Mutex::new(Arrived::new(self.window / BATCH)));
        let (place, seen) = (Arc::clone(&arrived), clock.clone());
        let mut graph = Graph::new();
        let source = graph.add("vectors", self.source(clock.clone()));
        let join = EpsilonJoin::new(self.epsilon).window(VectorWindow::vectors(self.window as u64));
        let join = graph.add_after(source, "join", join);
        let take = move |rows: RecordBatch| {
            place.lock().unwrap_or_else(PoisonError::into_inner).take(&rows, &seen);
            Ok(())
        };
        let sink = graph.add_after(join, "pairs", ForEach::new(take));
        let cores = &available_cores()[..cores];
        graph.cores(source, [cores[0]]).cores(join, cores).cores(sink, [cores[0]]);
        pipelines::run(graph);
        let arrived = arrived.lock().unwrap_or_else(PoisonError::into_inner);
        assert_eq!(arrived.pairs, self.pairs, "another number of pairs");
        arrived.outcome(&clock, self.batches.len())
    }

    /// The source of vectors: the window is filled as fast as they are taken, and the clock starts
    /// after it.
    fn source(&self, clock: Clock) -> impl OperatorSpec + use<> {
        let (batches, filling) = (Arc::clone(&self.batches), self.window / BATCH);
        let mut sent = 0;
        Feed::new(batches[0].schema(), move |out| {
            let Some(batch) = batches.get(sent) else { return SourceFlow::Finished };
            if sent >= filling
                && let pause @ SourceFlow::Idle(_) = clock.pause((sent - filling) as u64)
            {
                return pause;
            }
            out.send(batch.clone());
            sent += 1;
            SourceFlow::HaveOutput
        })
    }
}

/// The pairs so far.
struct Arrived {
    pairs: u64,
    /// Batches that fill the window.
    filling: usize,
    /// The time of the last pair of each batch after the window has been filled.
    last: BTreeMap<usize, Duration>,
}

impl Arrived {
    fn new(filling: usize) -> Self {
        Self { pairs: 0, filling, last: BTreeMap::new() }
    }

    fn take(&mut self, rows: &RecordBatch, clock: &Clock) {
        self.pairs += rows.num_rows() as u64;
        let newer = rows.column(1).as_primitive::<UInt32Type>().values();
        // Pairs come in the order of batches, so the last one of each is enough.
        let batches = newer.iter().map(|id| *id as usize / BATCH);
        let Some(last) = batches.max().filter(|batch| *batch >= self.filling) else { return };
        let now = clock.elapsed();
        let first = newer.iter().map(|id| *id as usize / BATCH).min().unwrap_or(last);
        for batch in first.max(self.filling)..=last {
            self.last.insert(batch, now);
        }
    }

    fn outcome(&self, clock: &Clock, batches: usize) -> Outcome {
        let times: Vec<Duration> = self.last.values().copied().collect();
        let streamed = batches - self.filling;
        assert_eq!(times.len(), streamed, "each batch has pairs");
        let time = times[streamed - 1].saturating_sub(times[0]);
        #[expect(clippy::cast_possible_truncation, reason = "below the number of batches")]
        #[expect(clippy::cast_sign_loss, reason = "not negative")]
        let warm = (WARM * streamed as f64) as usize;
        let mut latencies = Vec::new();
        if clock.rate.is_some() {
            let counted = self.last.iter().skip(warm);
            latencies.extend(counted.map(|(batch, time)| {
                time.saturating_sub(clock.due((batch - self.filling) as u64))
            }));
        }
        latencies.sort_unstable();
        Outcome { batches: streamed - 1, time, latencies, pairs: self.pairs }
    }
}
