//! Joins in waves: the filter on one core, and the verification on another one or on a GPU, by each
//! of its kernels.
//!
//! In the clock is what is in that of the other table, and the opening of the device, which is
//! shown too. The process keeps its context, so that it is opened once.

use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use arrow_schema::SchemaRef;
use trommel::batch::{Chunk, Payload};
use trommel::cuda::overlap::{Answer, ChunkLimits};
use trommel::error::BindError;
use trommel::metrics::Metrics;
use trommel::operator::{
    BindContext, Body, Counters, Flow, Fragment, Load, Operator, OperatorError, OperatorSpec,
    Output, Part,
};
use trommel::set_similarity_join::{
    CandidateChunk, JoinAlgorithm, JoinedSets, SetJoin, VerifyMode,
};
use trommel::wave::{
    Buffers, Device, OverlapAnswer, OverlapChunk, OverlapKernel, Wave, WaveChunk, WavePart,
};
use trommel::{Graph, Isa, Memory, RunOptions};
use trommel_bench::pipeline::{numbers, schema};
use trommel_kernels::overlap::Pairs;

use super::Row;

/// Chunks on a device at a time; two more are filled and read.
const IN_FLIGHT: usize = 3;

/// A join, and how its candidates are verified.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waves {
    pub(super) algorithm: JoinAlgorithm,
    pub(super) verify: VerifyMode,
    /// Bytes of a chunk.
    pub(super) chunk_bytes: usize,
    pub(super) isa: Isa,
}

/// What a run counted.
pub(super) struct Counted {
    total: Duration,
    metrics: Metrics,
}

impl Counted {
    pub(super) fn total(&self) -> Duration {
        self.total
    }

    pub(super) fn counter(&self, name: &str) -> u64 {
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
            self.counter("results"),
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
    /// Runs it once.
    pub(super) fn run(self, row: &Row<'_>) -> Counted {
        let begin = Instant::now();
        let join = row.join(self.algorithm, self.isa);
        let mut graph = Graph::new();
        let start = graph.add("start", Memory::new(schema(), numbers(1, 1)));
        graph.add_after(start, "join", Join { waves: self, join });
        let metrics = graph.build().expect("the graph is whole").run(RunOptions::new());
        let metrics = metrics.expect("the device does not fail");
        Counted { total: begin.elapsed(), metrics }
    }

    fn device(self) -> Device {
        if self.verify == VerifyMode::Cpu { Device::Cpu } else { Device::Cuda(0) }
    }
}

/// The operator: joins sets that are there already, when it is told to start.
struct Join {
    waves: Waves,
    join: SetJoin,
}

impl OperatorSpec for Join {
    fn operator(&self) -> &'static str {
        "join"
    }

    fn input_ports(&self) -> RangeInclusive<usize> {
        1..=1
    }

    fn bind(self: Box<Self>, _: &[SchemaRef], _: BindContext) -> Result<Fragment, BindError> {
        let Self { waves, join } = *self;
        let sets = join.sets().clone();
        let pairs = CandidateChunk::pairs_in(waves.chunk_bytes);
        let limits = ChunkLimits { entries: pairs, pairs, starts: true };
        // Offsets, tokens, and signatures of 64 bytes.
        let sets_bytes = 4 * sets.candidates.tokens() + 68 * sets.candidates.len() + 4;
        let kernel = OverlapKernel::<Candidates>::new(waves.isa, limits, IN_FLIGHT, sets_bytes)
            .with_kernel(waves.verify.kernel());
        let wave = Wave { device: waves.device(), chunks: IN_FLIGHT + 2 };
        let filter = Filter { join, bytes: waves.chunk_bytes, buffers: Buffers::new(wave.chunks) };
        let part = |name: &'static str, operator: Box<dyn Operator>| Part {
            name: name.into(),
            load: Load::Heavy,
            body: Body::Operator(operator),
        };
        let parts = vec![
            part("filter", Box::new(filter)),
            part("verify", Box::new(WavePart::new(kernel, wave))),
            part("collect", Box::new(Collect { results: 0, verified: 0 })),
        ];
        Ok(Fragment { parts, outputs: Vec::new() })
    }
}

/// Candidates under way.
struct Candidates {
    sets: JoinedSets,
    chunk: CandidateChunk,
    answer: OverlapAnswer,
}

impl WaveChunk for Candidates {
    fn items(&self) -> usize {
        self.chunk.len()
    }

    fn bytes(&self) -> usize {
        self.chunk.bytes()
    }
}

impl OverlapChunk for Candidates {
    fn pairs(&self) -> Pairs<'_> {
        self.chunk.pairs(&self.sets)
    }

    fn question(&self) -> Answer {
        Answer::Count
    }

    fn set_versions(&self) -> [u64; 2] {
        [self.sets.probes.version(), self.sets.candidates.version()]
    }

    fn answer(&mut self) -> &mut OverlapAnswer {
        &mut self.answer
    }
}

fn message(chunk: Box<Candidates>) -> Chunk {
    let (items, bytes) = (chunk.items(), chunk.bytes());
    Chunk::from_box(chunk, items, bytes)
}

struct Filter {
    join: SetJoin,
    bytes: usize,
    buffers: Buffers<Candidates>,
}

impl Operator for Filter {
    fn process(&mut self, _: usize, _: Payload, out: &mut Output) -> Result<Flow, OperatorError> {
        self.resume(out)
    }

    fn resume(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        let make = || Candidates {
            sets: self.join.sets().clone(),
            chunk: CandidateChunk::with_bytes(self.bytes),
            answer: OverlapAnswer::default(),
        };
        let Some(mut chunk) = self.buffers.take(make) else { return Ok(Flow::AwaitReply) };
        if self.join.next_chunk(&mut chunk.chunk) {
            out.send_chunk(message(chunk));
            Ok(Flow::HaveOutput)
        } else {
            self.buffers.give_back(chunk);
            Ok(Flow::NeedInput)
        }
    }

    fn reply(&mut self, reply: Chunk, out: &mut Output) -> Result<Flow, OperatorError> {
        self.buffers.give_back(reply.into_box());
        self.resume(out)
    }
}

struct Collect {
    results: u64,
    verified: u64,
}

impl Operator for Collect {
    fn process(
        &mut self,
        _: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        let chunk: Box<Candidates> = input.into_chunk().into_box();
        self.results += chunk.answer.count;
        self.verified += chunk.chunk.len() as u64;
        out.send_reply(message(chunk));
        Ok(Flow::NeedInput)
    }

    fn counters(&self) -> Counters {
        vec![("results", self.results), ("verified", self.verified)]
    }
}
