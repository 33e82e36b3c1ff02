//! Joins by the operator in a pipeline: the filter on one core, verification on another one or by
//! each kernel of a GPU.
//!
//! The sets are in memory as batches. The clock covers all work of the operator, from the first
//! batch to the count or the last pair, including the numbering of tokens, the sorting of sets,
//! which the table without waves leaves out, and the opening of the device; these are shown. The
//! program keeps the context of the GPU open, so that it is created once and in no measured time.

mod figures;
mod joins;

use std::io;
use std::time::Duration;

use arrow_array::RecordBatch;
use trommel::metrics::Metrics;
use trommel::set_similarity_join::{JoinAlgorithm, VerifyMode};
use trommel::{Collect, Device, Graph, JoinOutput, SetSimilarityJoin};

pub(super) use self::joins::{Joins, distinct, is_published, print_winners};
use super::data::{Input, MEMORY_MAX};
use super::library::Row;
use super::{Arguments, name_of};
use crate::runner::pipelines::{count, counter, memory, run};
use crate::runner::report::Table;
use crate::runner::turns::{Run, Turns};

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
    results: u64,
    /// Whole join.
    pub(super) total: f64,
    /// Opening the device.
    opening: f64,
    /// First part: index, filter, and writing candidates into chunks.
    filter: f64,
    /// Work of the second part for a device: checks of chunks, and copies to pinned memory.
    feeding: f64,
    /// Kernels, or their work on the CPU.
    verifier: f64,
    /// Share of the device time during which the CPU had other work.
    overlap: f64,
    waves: u64,
    /// Verified pairs.
    verified: u64,
    bytes_to_device: u64,
}

/// Measured join at a threshold.
#[derive(Debug, Clone, Copy)]
pub(super) struct Measured {
    threshold: u32,
    waves: Waves,
    /// Counts of the run of median time.
    pub(super) counted: Counted,
}

impl Counted {
    fn new(metrics: &Metrics, total: Duration, results: u64) -> Self {
        let counter = |name: &str| counter(metrics, "join", name);
        let seconds = |name| Duration::from_nanos(counter(name)).as_secs_f64();
        let parts = &metrics.stage("join").expect("it has run").parts;
        let [filter, verifier] = [0, 1].map(|part| parts[part].busy.as_secs_f64());
        let opening = seconds("opening_ns");
        let is_on_device = counter("waves_on_device") > 0;
        Self {
            results,
            total: total.as_secs_f64(),
            opening,
            filter,
            feeding: if is_on_device { verifier - opening } else { 0.0 },
            verifier: seconds("kernel_ns"),
            overlap: counter("overlap_ppm") as f64 / 1e6,
            waves: counter("waves"),
            verified: counter("verified"),
            bytes_to_device: counter("bytes_to_device"),
        }
    }

    /// Millions of bytes sent to the device.
    fn megabytes(&self) -> f64 {
        self.bytes_to_device as f64 / 1e6
    }
}

/// Measures all rows of an input in waves, prints tables and draws figures.
///
/// # Errors
/// If a figure cannot be written.
pub(super) fn measure(
    input: &Input,
    rows: &[Row],
    ways: &[Waves],
    batches: &[Vec<RecordBatch>],
    arguments: &Arguments,
) -> io::Result<Joins> {
    let mut measured = Vec::new();
    let mut table = Table::new(
        "threshold, algorithm, mode | output |   chunk: |   results: | seconds: | opening: | \
         filter: | feeding: | verifier: | overlap: |   waves: |    verified: | MB to GPU:",
    );
    for row in rows {
        let mut turns = Turns::new(arguments.runs).cold().expect(row.answer);
        for waves in ways {
            turns.add(waves.name(), || waves.run(row, batches));
        }
        for (waves, engine) in ways.iter().zip(turns.run()) {
            let (threshold, counted): (u32, Counted) = (row.threshold, *engine.rest());
            table.row(format!(
                "{threshold} {} | {} | {} | {} | {:.4} | {:.4} | {:.4} | {:.4} | {:.4} | {:.1}% | \
                 {} | {} | {:.1}",
                waves.name(),
                if waves.output == JoinOutput::Count { "count" } else { "pairs" },
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
            ));
            measured.push(Measured { threshold, waves: *waves, counted });
        }
    }
    drop(table);
    let (title, x) = rows[0].named();
    let file = format!("{}-{}", input.name, name_of(rows[0].similarity));
    let joins = Joins { file, title, x, measured };
    joins.print();
    figures::draw(&joins, &arguments.figures)?;
    Ok(joins)
}

impl Waves {
    /// True if the operator supports it: `gpu_signatures` verifies on its own.
    pub(super) fn is_possible(self) -> bool {
        self.algorithm != JoinAlgorithm::GpuSignatures
            || matches!(self.verify, VerifyMode::Auto | VerifyMode::Cpu)
    }

    fn is_on_gpu(self) -> bool {
        self.verify != VerifyMode::Cpu
    }

    /// Name of algorithm and mode.
    fn name(self) -> String {
        format!("{}, {}", self.algorithm.name(), self.verify.name())
    }

    /// Runs the join once.
    fn run(self, row: &Row, inputs: &[Vec<RecordBatch>]) -> Run<u64, Counted> {
        let join = SetSimilarityJoin::new(row.threshold())
            .similarity(row.similarity)
            .algorithm(self.algorithm)
            .output(self.output)
            .chunk_bytes(self.chunk_bytes)
            .device(if self.is_on_gpu() { Device::Cuda(0) } else { Device::Cpu })
            .verify(self.verify)
            .memory_max(MEMORY_MAX);
        let mut graph = Graph::new();
        let join = graph.add("join", join);
        for (name, batches) in ["left", "right"].into_iter().zip(inputs) {
            let sets = graph.add(name, memory(batches.clone()));
            graph.connect(sets, join);
        }
        let (sink, rows) = Collect::new();
        graph.add_after(join, "rows", sink);
        let (time, metrics) = run(graph);
        let answer = match self.output {
            JoinOutput::Count => count(&rows),
            _ => rows.rows() as u64,
        };
        Run { time, answer, rest: Counted::new(&metrics, time, answer) }
    }
}
