//! Joins by the operator in a pipeline: the filter on one core, verification on another one or by
//! each kernel of a GPU.
//!
//! The sets are in memory as batches. The clock covers all work of the operator, from the first
//! batch to the count or the last pair, including the numbering of tokens, the sorting of sets,
//! which the table without waves leaves out, and the opening of the device; these are shown. The
//! program keeps the context of the GPU open, so that it is created once and in no measured time.

use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use trommel::Device;
use trommel::metrics::Metrics;
use trommel::set_similarity_join::{JoinAlgorithm, VerifyMode};
use trommel::{Collect, Graph, JoinOutput, Memory, RunOptions, SetSimilarityJoin};

use super::{Patience, Row};

/// Join, with its way of verification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Waves {
    pub(super) algorithm: JoinAlgorithm,
    pub(super) verify: VerifyMode,
    /// Output of the join.
    pub(super) output: JoinOutput,
    /// Bytes of a chunk.
    pub(super) chunk_bytes: usize,
}

/// Counts of a run; times are in seconds.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counted {
    pub(super) results: u64,
    /// Whole join.
    pub(super) total: f64,
    /// Opening the device.
    pub(super) opening: f64,
    /// First part: index, filter, and writing candidates into chunks.
    pub(super) filter: f64,
    /// Work of the second part for a device: checks of chunks, and copies to pinned memory.
    pub(super) feeding: f64,
    /// Kernels, or their work on the CPU.
    pub(super) verifier: f64,
    /// Share of the device time during which the CPU had other work.
    pub(super) overlap: f64,
    pub(super) waves: u64,
    /// Verified pairs.
    pub(super) verified: u64,
    pub(super) bytes_to_device: u64,
}

/// Measured join at a threshold.
#[derive(Debug, Clone, Copy)]
pub(super) struct Measured {
    pub(super) threshold: u32,
    pub(super) waves: Waves,
    /// Counts of the run of median time.
    pub(super) counted: Counted,
}

impl Counted {
    fn new(metrics: &Metrics, total: Duration, results: u64) -> Self {
        let stage = metrics.stage("join").expect("it has run");
        let counter = |name: &str| {
            let mut counters = stage.parts.iter().flat_map(|part| &part.counters);
            counters.find(|(other, _)| *other == name).map_or(0, |(_, count)| *count)
        };
        let seconds = |name| Duration::from_nanos(counter(name)).as_secs_f64();
        let [filter, verifier] = [0, 1].map(|part| stage.parts[part].busy.as_secs_f64());
        let (opening, kernels) = (seconds("opening_ns"), seconds("kernel_ns"));
        let is_on_device = counter("waves_on_device") > 0;
        #[expect(clippy::cast_precision_loss, reason = "a share in millionths")]
        let overlap = counter("overlap_ppm") as f64 / 1e6;
        Self {
            results,
            total: total.as_secs_f64(),
            opening,
            filter,
            feeding: if is_on_device { verifier - opening } else { 0.0 },
            verifier: kernels,
            overlap,
            waves: counter("waves"),
            verified: counter("verified"),
            bytes_to_device: counter("bytes_to_device"),
        }
    }

    /// Millions of bytes sent to the device.
    #[expect(clippy::cast_precision_loss, reason = "far below 2^53 bytes")]
    pub(super) fn megabytes(&self) -> f64 {
        self.bytes_to_device as f64 / 1e6
    }
}

impl Measured {
    /// Runs all joins in turn, checks that all counts are equal, and correct if the answer is
    /// known, and prints a line for each.
    pub(super) fn measure(
        row: &Row<'_>,
        runs: &[Waves],
        inputs: &[Vec<RecordBatch>],
        patience: Patience,
    ) -> Vec<Self> {
        let mut answer = row.answer;
        let mut counted: Vec<Vec<Counted>> = runs.iter().map(|_| Vec::new()).collect();
        for _ in 0..patience.rounds() {
            for (waves, counted) in runs.iter().zip(&mut counted) {
                if patience.is_over(counted.iter().map(|run| run.total).sum()) {
                    continue;
                }
                let run = waves.run(row, inputs);
                let results = run.results;
                let expected = *answer.get_or_insert(results);
                assert_eq!(results, expected, "{waves:?} {}: a wrong count", row.threshold);
                counted.push(run);
            }
        }
        let middle = |(&waves, mut counted): (&Waves, Vec<Counted>)| {
            counted.sort_by(|left, right| left.total.total_cmp(&right.total));
            let counted = counted[counted.len() / 2];
            Self { threshold: row.threshold, waves, counted }
        };
        let measured: Vec<Self> = runs.iter().zip(counted).map(middle).collect();
        measured.iter().for_each(Self::line);
        measured
    }

    fn line(&self) {
        let Self { threshold, waves, counted } = self;
        println!(
            "| {threshold:>3} {:<22} | {:<6} | {:>7} | {:>9} | {:>7.4} | {:>7.4} | {:>7.4} | {:>7.4} | {:>8.4} | {:>6.1}% | {:>7} | {:>11} | {:>9.1} |",
            waves.name(),
            waves.output_name(),
            waves.chunk_bytes,
            counted.results,
            counted.total,
            counted.opening,
            counted.filter,
            counted.feeding,
            counted.verifier,
            100.0 * counted.overlap,
            counted.waves,
            counted.verified,
            counted.megabytes(),
        );
    }

    pub(super) fn head() {
        println!(
            "| {:<26} | output |   chunk | {:>9} | seconds | opening |  filter | feeding | verifier | overlap | {:>7} | {:>11} | MB to GPU |",
            "threshold, algorithm, mode", "results", "waves", "verified"
        );
        println!(
            "|:{:-<26}-|:-------|--------:|----------:|--------:|--------:|--------:|--------:|---------:|--------:|--------:|------------:|----------:|",
            ""
        );
    }
}

impl Waves {
    /// True if the operator supports it: `gpu_signatures` verifies on its own.
    pub(super) fn is_possible(self) -> bool {
        self.algorithm != JoinAlgorithm::GpuSignatures
            || matches!(self.verify, VerifyMode::Auto | VerifyMode::Cpu)
    }

    pub(super) fn is_on_gpu(self) -> bool {
        self.verify != VerifyMode::Cpu
    }

    /// Name of algorithm and mode.
    pub(super) fn name(self) -> String {
        format!("{}, {}", self.algorithm.name(), self.verify.name())
    }

    /// Name of the output in configurations.
    pub(super) fn output_name(self) -> &'static str {
        match self.output {
            JoinOutput::Count => "count",
            _ => "pairs",
        }
    }

    /// Runs the join once.
    fn run(self, row: &Row<'_>, inputs: &[Vec<RecordBatch>]) -> Counted {
        let join = SetSimilarityJoin::new(row.threshold())
            .similarity(row.similarity)
            .algorithm(self.algorithm)
            .output(self.output)
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
        let results = match self.output {
            JoinOutput::Count => rows.take()[0].column(0).as_primitive::<UInt64Type>().value(0),
            _ => rows.rows() as u64,
        };
        Counted::new(&metrics, total, results)
    }

    fn device(self) -> Device {
        if self.is_on_gpu() { Device::Cuda(0) } else { Device::Cpu }
    }
}
