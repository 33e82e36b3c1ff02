//! The streaming join in a pipeline: a full window, then vectors as fast as they are taken, or at a
//! rate. Latency counts from the time at which a batch was to be sent to the last of its pairs.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_schema::SchemaRef;

use trommel::error::BindError;
use trommel::operator::{
    BindContext, Fragment, Load, OperatorError, OperatorSpec, Output, Source, SourceFlow,
};
use trommel::placement::available_cores;
use trommel::{EpsilonJoin, ForEach, Graph, Isa, RunOptions, VectorWindow};
use trommel_kernels::vectors::{Directory, Epsilon, FoundPairs, Join, Search, Vectors};

use super::data::Workload;
use super::processor::batches;

/// Vectors of a batch.
const BATCH: usize = 1_024;
/// Room for pairs, which are drained when it is used up.
const ROOM: usize = 1 << 16;
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
    println!("| cores | load | µs a vector | ms of a batch: p50 | p99 | max | pairs |");
    println!("|---:|---:|---:|---:|---:|---:|---:|");
    for cores in 1..=available_cores().len().min(2) {
        let peak = stream.run(cores, None);
        peak.print(cores, "peak");
        for share in SHARES {
            let rate = share / peak.time.as_secs_f64() * peak.batches as f64;
            stream.run(cores, Some(rate)).print(cores, &format!("{:.0} %", 100.0 * share));
        }
    }
    println!();
}

/// The pairs whose vectors are less than `window` apart.
fn pairs(values: &[f32], workload: Workload, window: usize) -> u64 {
    let isa = Isa::selected().expect("the variable names a level of this machine");
    let epsilon = Epsilon::new(workload.epsilon).expect("a distance");
    let directory = Directory::new(isa, Vectors::new(values, workload.dims), epsilon);
    let join = Join::within(&directory);
    let (mut search, mut found, mut count) = (Search::default(), FoundPairs::new(ROOM), 0);
    let mut drain = |found: &mut FoundPairs| {
        let near = found.pairs().iter().filter(|pair| ((pair.right - pair.left) as usize) < window);
        count += near.count() as u64;
        found.clear();
    };
    for part in 0..join.parts() {
        join.begin(isa, part, &mut search);
        while !join.advance(isa, &mut search, &mut found) {
            drain(&mut found);
        }
    }
    drain(&mut found);
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
    fn print(&self, cores: usize, load: &str) {
        let micros = 1e6 * self.time.as_secs_f64() / (self.batches * BATCH) as f64;
        let at = |share: f64| {
            let last = self.latencies.len().checked_sub(1)?;
            let place = (share * last as f64).round();
            #[expect(clippy::cast_possible_truncation, reason = "below the number of batches")]
            #[expect(clippy::cast_sign_loss, reason = "not negative")]
            Some(format!("{:.2}", 1e3 * self.latencies[place as usize].as_secs_f64()))
        };
        let [median, high, max] = [0.5, 0.99, 1.0].map(|share| at(share).unwrap_or_default());
        println!("| {cores} | {load} | {micros:.2} | {median} | {high} | {max} | {} |", self.pairs);
    }
}

impl Stream {
    /// Runs the pipeline on `cores` cores, with `rate` batches a second.
    fn run(&self, cores: usize, rate: Option<f64>) -> Outcome {
        let filling = self.window / BATCH;
        let clock = Clock { start: Arc::default(), rate, filling };
        let sending = Sending { clock: clock.clone(), batches: Arc::clone(&self.batches), sent: 0 };
        let arrived = Arc::new(Mutex::new(Arrived::default()));
        let place = Arc::clone(&arrived);
        let seen = clock.clone();
        let mut graph = Graph::new();
        let source = graph.add("vectors", sending);
        let join = EpsilonJoin::new(self.epsilon).window(VectorWindow::vectors(self.window as u64));
        let join = graph.add_after(source, "join", join);
        let take = move |rows: RecordBatch| {
            place.lock().unwrap_or_else(PoisonError::into_inner).take(&rows, &seen);
            Ok(())
        };
        let sink = graph.add_after(join, "pairs", ForEach::new(take));
        let cores = &available_cores()[..cores];
        graph.cores(source, [cores[0]]).cores(join, cores).cores(sink, [cores[0]]);
        let topology = graph.build().expect("the stages fit");
        topology.run(RunOptions::new()).expect("the join ends");
        let arrived = arrived.lock().unwrap_or_else(PoisonError::into_inner);
        assert_eq!(arrived.pairs, self.pairs, "another number of pairs");
        arrived.outcome(&clock, self.batches.len())
    }
}

/// The times at which batches are to be sent.
#[derive(Clone)]
struct Clock {
    /// The time at which the window was full.
    start: Arc<OnceLock<Instant>>,
    /// Batches a second; `None`: as fast as they are taken.
    rate: Option<f64>,
    /// Batches that fill the window.
    filling: usize,
}

impl Clock {
    fn due(&self, batch: usize) -> Duration {
        let after = batch.saturating_sub(self.filling) as f64;
        self.rate.map_or(Duration::ZERO, |rate| Duration::from_secs_f64(after / rate))
    }

    fn elapsed(&self) -> Duration {
        self.start.get_or_init(Instant::now).elapsed()
    }
}

/// The source of vectors.
struct Sending {
    clock: Clock,
    batches: Arc<Vec<RecordBatch>>,
    sent: usize,
}

impl Source for Sending {
    fn next(&mut self, out: &mut Output) -> Result<SourceFlow, OperatorError> {
        let Some(batch) = self.batches.get(self.sent) else { return Ok(SourceFlow::Finished) };
        // The window is filled as fast as vectors are taken, and the clock starts after it.
        if self.sent >= self.clock.filling {
            let pause = self.clock.due(self.sent).saturating_sub(self.clock.elapsed());
            if !pause.is_zero() {
                return Ok(SourceFlow::Idle(pause));
            }
        }
        out.send(batch.clone());
        self.sent += 1;
        Ok(SourceFlow::HaveOutput)
    }
}

impl OperatorSpec for Sending {
    fn operator(&self) -> &'static str {
        "sending"
    }

    fn input_ports(&self) -> RangeInclusive<usize> {
        0..=0
    }

    fn bind(self: Box<Self>, _: &[SchemaRef], _: BindContext) -> Result<Fragment, BindError> {
        let schema = self.batches[0].schema();
        Ok(Fragment::source(Load::Light, *self, schema))
    }
}

/// The pairs so far.
#[derive(Default)]
struct Arrived {
    pairs: u64,
    /// The time of the last pair of each batch after the window has been filled.
    last: BTreeMap<usize, Duration>,
}

impl Arrived {
    fn take(&mut self, rows: &RecordBatch, clock: &Clock) {
        self.pairs += rows.num_rows() as u64;
        let newer = rows.column(1).as_primitive::<UInt32Type>().values();
        // Pairs come in the order of batches, so the last one of each is enough.
        let batches = newer.iter().map(|id| *id as usize / BATCH);
        let Some(last) = batches.max().filter(|batch| *batch >= clock.filling) else { return };
        let now = clock.elapsed();
        let first = newer.iter().map(|id| *id as usize / BATCH).min().unwrap_or(last);
        for batch in first.max(clock.filling)..=last {
            self.last.insert(batch, now);
        }
    }

    fn outcome(&self, clock: &Clock, batches: usize) -> Outcome {
        let times: Vec<Duration> = self.last.values().copied().collect();
        let streamed = batches - clock.filling;
        assert_eq!(times.len(), streamed, "each batch has pairs");
        let time = times[streamed - 1].saturating_sub(times[0]);
        #[expect(clippy::cast_possible_truncation, reason = "below the number of batches")]
        #[expect(clippy::cast_sign_loss, reason = "not negative")]
        let warm = (WARM * streamed as f64) as usize;
        let mut latencies = Vec::new();
        if clock.rate.is_some() {
            let counted = self.last.iter().skip(warm);
            latencies.extend(counted.map(|(batch, time)| time.saturating_sub(clock.due(*batch))));
        }
        latencies.sort_unstable();
        Outcome { batches: streamed - 1, time, latencies, pairs: self.pairs }
    }
}
