//! The operator in a pipeline: the filter on one core, and the verification on another one or on a
//! GPU, by each of its kernels.
//!
//! The sets lie in memory as batches. In the clock is all that the operator does, from the first
//! batch to the count: numbering tokens and sorting sets, which the other table leaves out, and the
//! opening of the device, both of which are shown. The process keeps its context, so that it is
//! opened once.

use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use trommel::metrics::Metrics;
use trommel::set_similarity_join::{JoinAlgorithm, VerifyMode};
use trommel::wave::Device;
use trommel::{Collect, Graph, JoinOutput, Memory, RunOptions, SetSimilarityJoin};

use super::Row;

/// A join, and how its candidates are verified.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waves {
    pub(super) algorithm: JoinAlgorithm,
    pub(super) verify: VerifyMode,
    /// Bytes of a chunk.
    pub(super) chunk_bytes: usize,
}

/// What a run counted.
pub(super) struct Counted {
    total: Duration,
    pub(super) results: u64,
    metrics: Metrics,
}

impl Counted {
    pub(super) fn total(&self) -> Duration {
        self.total
    }

    fn counter(&self, name: &str) -> u64 {
        let stage = self.metrics.stage("join").expect("it has run");
        let mut counters = stage.parts.iter().flat_map(|part| &part.counters);
        counters.find(|(other, _)| *other == name).map_or(0, |(_, count)| *count)
    }

    #[expect(clippy::cast_precision_loss, reason = "times and shares are not exact")]
    fn fraction(&self, name: &str, unit: f64) -> f64 {
        self.counter(name) as f64 / unit
    }

    /// A line of the table: results, whole time, opening, filter, kernels, overlap, bytes.
    pub(super) fn line(&self, threshold: u32, waves: Waves) {
        let name = format!("{}, {}", waves.algorithm.name(), waves.verify.name());
        let filter = self.metrics.stage("join").expect("it has run").parts[0].busy;
        println!(
            "| {threshold:>3} {name:<22} | {:>9} | {:>7.4} | {:>7.4} | {:>7.4} | {:>8.4} | {:>6.1}% | {:>7} | {:>11} | {:>9.1} |",
            self.results,
            self.total.as_secs_f64(),
            self.fraction("opening_ns", 1e9),
            filter.as_secs_f64(),
            self.fraction("kernel_ns", 1e9),
            self.fraction("overlap_ppm", 1e4),
            self.counter("waves"),
            self.counter("verified"),
            self.fraction("bytes_to_device", 1e6),
        );
    }

    pub(super) fn head() {
        println!(
            "| {:<26} | {:>9} | seconds | opening |  filter | verifier | overlap | {:>7} | {:>11} | MB to GPU |",
            "threshold, algorithm, mode", "results", "waves", "verified"
        );
        println!(
            "|:{:-<26}-|----------:|--------:|--------:|--------:|---------:|--------:|--------:|------------:|----------:|",
            ""
        );
    }
}

impl Waves {
    /// Whether the operator takes it: `gpu_signatures` verifies by itself.
    pub(super) fn is_possible(self) -> bool {
        self.algorithm != JoinAlgorithm::GpuSignatures
            || matches!(self.verify, VerifyMode::Auto | VerifyMode::Cpu)
    }

    /// Runs it once.
    pub(super) fn run(self, row: &Row<'_>, inputs: &[Vec<RecordBatch>]) -> Counted {
        let join = SetSimilarityJoin::new(row.threshold())
            .similarity(row.similarity)
            .algorithm(self.algorithm)
            .output(JoinOutput::Count)
            .chunk_bytes(self.chunk_bytes)
            .device(self.device())
            .verify(self.verify)
            .memory_max(super::data::MEMORY_MAX);
        let mut graph = Graph::new();
        let join = graph.add("join", join);
        for (name, batches) in ["left", "right"].into_iter().zip(inputs) {
            let sets = graph.add(name, Memory::new(batches[0].schema(), batches.clone()));
            graph.connect(sets, join);
        }
        let (sink, rows) = Collect::new();
        graph.add_after(join, "rows", sink);
        let topology = graph.build().expect("the graph is whole");
        let begin = Instant::now();
        let metrics = topology.run(RunOptions::new()).expect("the device does not fail");
        let total = begin.elapsed();
        let rows = rows.take();
        let results = rows[0].column(0).as_primitive::<UInt64Type>().value(0);
        Counted { total, results, metrics }
    }

    fn device(self) -> Device {
        if self.verify == VerifyMode::Cpu { Device::Cpu } else { Device::Cuda(0) }
    }
}
