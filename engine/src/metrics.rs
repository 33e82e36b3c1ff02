//! Metrics: the numbers that every stage counts while it runs.
//!
//! Each number has one writer, the thread that runs the part, and any thread may read the number at
//! any time. A lock guards the latency histogram. The writer takes the lock once in a few batches
//! and before its thread waits; readers take the lock only to copy the histogram.

use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hdrhistogram::Histogram;

use crate::channel::EdgeState;
use crate::operator::{Counters, NamedInputs, Progress};
use crate::sync::counter::{add, nanoseconds};
use crate::sync::{AtomicBool, AtomicU64, Ordering, lock};

/// Significant digits of a latency. With two, a latency is exact within 1 %, and a histogram takes
/// some 20 KB.
const LATENCY_DIGITS: u8 = 2;
/// Maximum latency, an hour: a longer latency is recorded as this one.
const LATENCY_NS_MAX: u64 = 3_600_000_000_000;

/// The numbers of one part of one stage, in cache lines that no other part writes.
#[repr(align(128))]
pub(crate) struct PartCounters {
    pub(crate) items_in: AtomicU64,
    pub(crate) batches_in: AtomicU64,
    pub(crate) items_out: AtomicU64,
    pub(crate) batches_out: AtomicU64,
    pub(crate) busy_ns: AtomicU64,
    pub(crate) blocked_ns: AtomicU64,
    pub(crate) idle_ns: AtomicU64,
    bytes_read: AtomicU64,
    bytes_total: AtomicU64,
    is_finished: AtomicBool,
    latency_ns: Mutex<Histogram<u32>>,
    operator: Mutex<Counters>,
    inputs: Mutex<NamedInputs>,
}

/// The number that stands for an unknown `bytes_total`.
const UNKNOWN: u64 = u64::MAX;

impl PartCounters {
    pub(crate) fn new() -> Self {
        let latency = Histogram::new_with_max(LATENCY_NS_MAX, LATENCY_DIGITS);
        let latency = latency.expect("two digits are within 0..=5, and the maximum is above 2");
        Self {
            items_in: AtomicU64::new(0),
            batches_in: AtomicU64::new(0),
            items_out: AtomicU64::new(0),
            batches_out: AtomicU64::new(0),
            busy_ns: AtomicU64::new(0),
            blocked_ns: AtomicU64::new(0),
            idle_ns: AtomicU64::new(0),
            bytes_read: AtomicU64::new(0),
            bytes_total: AtomicU64::new(UNKNOWN),
            is_finished: AtomicBool::new(false),
            latency_ns: Mutex::new(latency),
            operator: Mutex::default(),
            inputs: Mutex::default(),
        }
    }

    pub(crate) fn count_in(&self, items: usize) {
        add(&self.items_in, items as u64);
        add(&self.batches_in, 1);
    }

    pub(crate) fn count_out(&self, items: usize) {
        add(&self.items_out, items as u64);
        add(&self.batches_out, 1);
    }

    fn record_latencies(&self, latencies_ns: &[u64]) {
        let mut histogram = lock(&self.latency_ns);
        for &latency_ns in latencies_ns {
            histogram.saturating_record(latency_ns);
        }
    }

    pub(crate) fn record_progress(&self, progress: Progress) {
        self.bytes_read.store(progress.bytes, Ordering::Relaxed);
        self.bytes_total.store(progress.bytes_total.unwrap_or(UNKNOWN), Ordering::Relaxed);
    }

    /// Shows readers the operator's own numbers.
    pub(crate) fn publish(&self, counters: Counters) {
        *lock(&self.operator) = counters;
    }

    /// Shows readers the inputs that a source or an operator names.
    pub(crate) fn publish_inputs(&self, inputs: NamedInputs) {
        *lock(&self.inputs) = inputs;
    }

    pub(crate) fn finish(&self) {
        self.is_finished.store(true, Ordering::Release);
    }

    pub(crate) fn read(&self, name: &str) -> PartMetrics {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let histogram = lock(&self.latency_ns).clone();
        PartMetrics {
            name: name.to_owned(),
            items_in: load(&self.items_in),
            batches_in: load(&self.batches_in),
            items_out: load(&self.items_out),
            batches_out: load(&self.batches_out),
            busy: Duration::from_nanos(load(&self.busy_ns)),
            blocked: Duration::from_nanos(load(&self.blocked_ns)),
            idle: Duration::from_nanos(load(&self.idle_ns)),
            latency: Latency(histogram),
            progress: Progress {
                bytes: load(&self.bytes_read),
                bytes_total: Some(load(&self.bytes_total)).filter(|&total| total != UNKNOWN),
            },
            is_finished: self.is_finished.load(Ordering::Acquire),
            counters: lock(&self.operator).clone(),
            inputs: lock(&self.inputs).clone(),
        }
    }
}

/// Latencies that a part keeps before it takes the lock of its histogram. The lock costs some 10
/// ns; readers miss at most this many batches of a busy part.
const LATENCIES_KEPT: usize = 64;

/// The writing end of a part's latency histogram. The drop of the recorder records the kept
/// latencies at the latest.
pub(crate) struct LatencyRecorder {
    counters: Arc<PartCounters>,
    kept_ns: [u64; LATENCIES_KEPT],
    kept: usize,
}

impl LatencyRecorder {
    pub(crate) fn new(counters: Arc<PartCounters>) -> Self {
        Self { counters, kept_ns: [0; LATENCIES_KEPT], kept: 0 }
    }

    pub(crate) fn record(&mut self, latency: Duration) {
        self.kept_ns[self.kept] = nanoseconds(latency);
        self.kept += 1;
        if self.kept == LATENCIES_KEPT {
            self.flush();
        }
    }

    /// Shows readers the kept latencies.
    pub(crate) fn flush(&mut self) {
        if self.kept > 0 {
            self.counters.record_latencies(&self.kept_ns[..self.kept]);
            self.kept = 0;
        }
    }
}

impl Drop for LatencyRecorder {
    fn drop(&mut self) {
        self.flush();
    }
}

/// Time from the moment at which a batch entered at its source until a part had processed the
/// batch.
#[derive(Debug, Clone)]
pub struct Latency(Histogram<u32>);

impl Latency {
    /// The latency that this `share` of the batches did not exceed; zero before the first batch.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Duration {
        Duration::from_nanos(self.0.value_at_quantile(share))
    }

    /// The largest latency; zero before the first batch.
    #[must_use]
    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.0.max())
    }
}

/// The numbers of one part of a stage so far.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PartMetrics {
    /// Name within the operator; empty for the only part.
    pub name: String,
    /// Items taken.
    pub items_in: u64,
    /// Batches or chunks taken.
    pub batches_in: u64,
    /// Items sent, counted once for all consumers.
    pub items_out: u64,
    /// Batches or chunks sent.
    pub batches_out: u64,
    /// Time inside the operator's code.
    pub busy: Duration,
    /// Time during which an output had no space for a sent batch.
    pub blocked: Duration,
    /// Time for which the thread waited while the part had no work, and space in its outputs.
    pub idle: Duration,
    /// Time from source to here, a batch.
    pub latency: Latency,
    /// The progress of a source.
    pub progress: Progress,
    /// Whether the part has ended.
    pub is_finished: bool,
    /// The operator's own numbers. While the operator works, the numbers are at most some tenths of
    /// a second old.
    pub counters: Counters,
    /// The inputs that a source names, as old as `counters`.
    pub inputs: NamedInputs,
}

/// The numbers of a stage so far.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct StageMetrics {
    /// Id of the stage.
    pub id: String,
    /// The operator of the stage.
    pub operator: &'static str,
    /// The parts of the stage, in the order of the chain; at least one. The copies of a part that
    /// is divided follow each other.
    pub parts: Vec<PartMetrics>,
    /// The parts that do work side by side, or one part.
    pub(crate) beside: Range<usize>,
    /// The latency of the last part, over all its copies.
    pub(crate) latency: Latency,
}

impl StageMetrics {
    pub(crate) fn new(
        id: String,
        operator: &'static str,
        parts: Vec<PartMetrics>,
        beside: Range<usize>,
    ) -> Self {
        let last = parts.len() - 1;
        let latency = parts[last].latency.clone();
        let mut stage = Self { id, operator, parts, beside, latency };
        let copies = stage.copies_of(last);
        for part in &stage.parts[copies.start..last] {
            let added = stage.latency.0.add(&part.latency.0);
            added.expect("all latencies have the same limits");
        }
        stage
    }

    /// The copies of a part, or the part itself.
    fn copies_of(&self, part: usize) -> Range<usize> {
        if self.beside.contains(&part) { self.beside.clone() } else { part..part + 1 }
    }

    /// Items that entered the first part, or its copies.
    #[must_use]
    pub fn items_in(&self) -> u64 {
        self.parts[self.copies_of(0)].iter().map(|part| part.items_in).sum()
    }

    /// Items that left the last part, or its copies.
    #[must_use]
    pub fn items_out(&self) -> u64 {
        self.parts[self.copies_of(self.parts.len() - 1)].iter().map(|part| part.items_out).sum()
    }

    /// Number of workers that do the work of the stage side by side.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.beside.len()
    }

    /// The progress of a source, over all its copies.
    #[must_use]
    pub fn progress(&self) -> Progress {
        let copies = self.parts[self.copies_of(0)].iter().map(|part| part.progress);
        copies.fold(Progress::default(), |all, copy| Progress {
            bytes: all.bytes + copy.bytes,
            // Each copy knows the bytes of all files.
            bytes_total: all.bytes_total.max(copy.bytes_total),
        })
    }

    /// The sum of the operator's own numbers of this name over all parts; 0 if there is no such
    /// number.
    #[must_use]
    pub fn counter(&self, name: &str) -> u64 {
        let counters = self.parts.iter().flat_map(|part| &part.counters);
        counters.filter(|counter| counter.0 == name).map(|counter| counter.1).sum()
    }

    /// Time inside the operator's code, over all parts.
    #[must_use]
    pub fn busy(&self) -> Duration {
        self.parts.iter().map(|p| p.busy).sum()
    }

    /// Time inside the operator's code that no other worker could share: of the parts in one place.
    #[must_use]
    pub fn serial(&self) -> Duration {
        if self.workers() < 2 {
            return self.busy();
        }
        let others = self.parts.iter().enumerate().filter(|(part, _)| !self.beside.contains(part));
        others.map(|(_, part)| part.busy).sum()
    }

    /// Latency up to the end of the last part.
    #[must_use]
    pub fn latency(&self) -> &Latency {
        &self.latency
    }
}

/// The state of a queue between two threads.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct EdgeMetrics {
    /// Producing stage, followed by a slash and the part if the stage has several.
    pub from: String,
    /// Consuming stage.
    pub to: String,
    /// Batches in the queue.
    pub depth: u64,
    /// Maximum number of batches in the queue so far.
    pub depth_max: u64,
    /// Bytes in the queue.
    pub bytes: u64,
    /// Time during which the producer had a batch that did not fit.
    pub blocked: Duration,
}

/// The numbers of a pipeline so far.
///
/// # Examples
/// ```
/// # mod pipeline { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/numbers.rs")); }
/// # use pipeline::*;
/// # use trommel_engine::graph::Graph;
/// # use trommel_engine::runtime::RunOptions;
/// # let mut graph = Graph::new();
/// # let numbers = graph.add("numbers", Numbers(0, 1_000));
/// # graph.add_after(numbers, "sum", Sum(0));
/// let metrics = graph.build()?.run(RunOptions::new())?;
/// let sum = metrics.stage("sum").unwrap();
/// assert_eq!((sum.items_in(), sum.parts[0].batches_in), (1_000, 10));
/// assert!(sum.busy() <= metrics.wall);
/// assert!(sum.latency().quantile(0.5) <= sum.latency().max());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Metrics {
    /// Time from the start until now, or until the end.
    pub wall: Duration,
    /// The stages, in topological order.
    pub stages: Vec<StageMetrics>,
    /// The queues between threads.
    pub edges: Vec<EdgeMetrics>,
}

impl Metrics {
    /// The stage of this id.
    #[must_use]
    pub fn stage(&self, id: &str) -> Option<&StageMetrics> {
        self.stages.iter().find(|s| s.id == id)
    }
}

/// The queue between two parts on different threads, for [`Metrics`].
pub(crate) struct WatchedEdge {
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) state: Arc<EdgeState>,
}

impl WatchedEdge {
    pub(crate) fn read(&self) -> EdgeMetrics {
        let (depth, bytes) = self.state.waiting();
        EdgeMetrics {
            from: self.from.clone(),
            to: self.to.clone(),
            depth,
            depth_max: self.state.depth_max(),
            bytes,
            blocked: Duration::from_nanos(self.state.blocked_ns()),
        }
    }
}
