//! Candidate pairs through a pipeline, by waves: prepare copies them into chunks, a GPU or one core
//! verifies them, collect checks the answers.

use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use arrow_schema::SchemaRef;
use trommel::batch::{Chunk, Payload};
use trommel::cuda::overlap::{Answer, ChunkLimits};
use trommel::error::{BindError, RunError};
use trommel::metrics::PartMetrics;
use trommel::operator::{
    BindContext, Body, Flow, Fragment, Load, Operator, OperatorError, OperatorSpec, Output, Part,
};
use trommel::wave::{
    Buffers, Device, OverlapAnswer, OverlapChunk, OverlapKernel, Wave, WaveChunk, WavePart,
};
use trommel::{Graph, Isa, Memory, RunOptions};
use trommel_bench::pipeline::{numbers, schema};
use trommel_kernels::overlap::{Chunk as PairChunk, Entry};
use trommel_kernels::sets::SetStore;

use crate::overlap::workload::{Part as Range, Workload, parts};

/// What is measured.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Arguments {
    /// Candidate pairs of the workload.
    #[arg(long, default_value_t = 4_000_000)]
    pairs: usize,
    /// Mean sizes of the sets.
    #[arg(long, value_delimiter = ',', default_value = "14,50,120,500")]
    sizes: Vec<usize>,
    /// Candidates of a probe.
    #[arg(long, default_value_t = 20)]
    candidates: usize,
    /// Devices: `cpu`, `auto`, `cuda`.
    #[arg(long, value_delimiter = ',', default_value = "cpu,auto")]
    devices: Vec<Device>,
    /// Pairs a chunk.
    #[arg(long, value_delimiter = ',', default_value = "16384,65536,262144")]
    chunk_pairs: Vec<usize>,
    /// Chunks in flight on a device; two more are filled and read meanwhile.
    #[arg(long, default_value_t = 3)]
    slots: usize,
    /// Times that the workload passes through on the CPU.
    #[arg(long, default_value_t = 2)]
    passes: u64,
    /// Times that it passes through when a device may be used.
    #[arg(long, default_value_t = 100)]
    device_passes: u64,
}

/// Measures and prints.
pub(crate) fn run(arguments: &Arguments) -> Result<(), RunError> {
    for size in &arguments.sizes {
        // It lives as long as the program: chunks on any thread borrow their sets from it.
        let workload: &'static Workload =
            Box::leak(Box::new(Workload::new(*size, arguments.pairs, arguments.candidates)));
        println!("{workload}; rates from the first answered chunk on\n");
        println!(
            "| {:<6} | pairs a chunk | M pairs/s | kernel, of the time | overlap | B to device a pair | prepare busy | device busy | collect busy |",
            "device"
        );
        println!(
            "|:{:-<6}-|--------------:|----------:|--------------------:|--------:|-------------------:|-------------:|------------:|-------------:|",
            ""
        );
        for device in &arguments.devices {
            for pairs in &arguments.chunk_pairs {
                measure(workload, *device, *pairs, arguments)?;
            }
        }
        println!();
    }
    Ok(())
}

/// When answers came, and for how many pairs.
#[derive(Debug, Clone, Copy, Default)]
struct Arrivals {
    first: Option<Instant>,
    last: Option<Instant>,
    pairs_after_first: usize,
}

fn measure(
    workload: &'static Workload,
    device: Device,
    chunk_pairs: usize,
    arguments: &Arguments,
) -> Result<(), RunError> {
    let passes = if device == Device::Cpu { arguments.passes } else { arguments.device_passes };
    let parts: Arc<[Range]> = parts(workload, chunk_pairs.max(1)).into();
    let arrivals = Arc::new(Mutex::new(Arrivals::default()));
    let verify = Verify {
        workload,
        parts: Arc::clone(&parts),
        wave: Wave { device, chunks: arguments.slots + 2 },
        slots: arguments.slots,
        arrivals: Arc::clone(&arrivals),
    };
    let mut graph = Graph::new();
    let source = Memory::new(schema(), numbers(passes * parts.len() as u64, 1));
    let source = graph.add("chunks", source);
    graph.add_after(source, "verify", verify);
    let topology = graph.build().expect("the graph is whole");
    let metrics = topology.run(RunOptions::new())?;
    let arrivals = *arrivals.lock().unwrap_or_else(PoisonError::into_inner);
    let time = arrivals.first.zip(arrivals.last).map(|(first, last)| last - first);
    let stage = metrics.stage("verify").expect("it has run");
    line(&stage.parts, chunk_pairs, arrivals.pairs_after_first, time.unwrap_or_default());
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "rates and shares are not exact")]
fn line(parts: &[PartMetrics], chunk_pairs: usize, pairs: usize, time: Duration) {
    let counter = |name: &str| {
        let found = parts[1].counters.iter().find(|(other, _)| *other == name);
        found.map_or(0.0, |(_, count)| *count as f64)
    };
    let device = if counter("waves_on_device") > 0.0 { "cuda" } else { "cpu" };
    let seconds = time.as_secs_f64();
    let [prepare, verify, collect] =
        [0, 1, 2].map(|part: usize| format!("{:.2} s", parts[part].busy.as_secs_f64()));
    println!(
        "| {device:<6} | {chunk_pairs:>13} | {:>9.1} | {:>18.0}% | {:>6.0}% | {:>18.1} | {prepare:>12} | {verify:>11} | {collect:>12} |",
        pairs as f64 / seconds / 1e6,
        counter("kernel_ns") / 1e7 / seconds,
        counter("overlap_ppm") / 1e4,
        counter("bytes_to_device") / (pairs as f64 + chunk_pairs as f64),
    );
}

/// The operator: takes numbers of parts.
struct Verify {
    workload: &'static Workload,
    parts: Arc<[Range]>,
    wave: Wave,
    slots: usize,
    arrivals: Arc<Mutex<Arrivals>>,
}

impl OperatorSpec for Verify {
    fn operator(&self) -> &'static str {
        "verify"
    }

    fn input_ports(&self) -> RangeInclusive<usize> {
        1..=1
    }

    fn bind(self: Box<Self>, _: &[SchemaRef], _: BindContext) -> Result<Fragment, BindError> {
        let Self { workload, parts, wave, slots, arrivals } = *self;
        let pairs = parts.iter().map(|part| part.end - part.begin).max().unwrap_or(1);
        let entries = parts.iter().map(|part| part.entries.len()).max().unwrap_or(1);
        let limits = ChunkLimits { entries, pairs, starts: false };
        let sets = workload.sets();
        let all = sets.as_sets();
        let sets_bytes = size_of_val(all.offsets()) + size_of_val(all.tokens());
        let isa = Isa::selected().expect("it was shown before");
        let kernel = OverlapKernel::<Candidates>::new(isa, limits, slots, sets_bytes);
        let buffers = Buffers::new(wave.chunks);
        let prepare = Prepare { workload, sets, parts, buffers, next: 0 };
        let part = |name: &'static str, operator: Box<dyn Operator>| Part {
            name: name.into(),
            load: Load::Heavy,
            body: Body::Operator(operator),
        };
        let parts = vec![
            part("prepare", Box::new(prepare)),
            part("device", Box::new(WavePart::new(kernel, wave))),
            part("collect", Box::new(Check { workload, arrivals })),
        ];
        Ok(Fragment::new(parts, Vec::new()))
    }
}

/// Pairs, and where they begin in the workload.
struct Candidates {
    sets: &'static SetStore,
    begin: usize,
    entries: Vec<Entry>,
    candidates: Vec<u32>,
    required: Vec<u32>,
    answer: OverlapAnswer,
}

impl WaveChunk for Candidates {
    fn items(&self) -> usize {
        self.candidates.len()
    }

    fn bytes(&self) -> usize {
        12 * self.entries.len() + 12 * self.candidates.len()
    }
}

impl OverlapChunk for Candidates {
    fn pairs(&self) -> PairChunk<'_> {
        let Self { entries, candidates, required, .. } = self;
        PairChunk { entries, candidates, required, starts: &[] }
    }

    fn sets(&self) -> [&SetStore; 2] {
        [self.sets; 2]
    }

    fn question(&self) -> Answer {
        Answer::Overlaps
    }

    fn answer(&mut self) -> &mut OverlapAnswer {
        &mut self.answer
    }
}

fn message(chunk: Box<Candidates>) -> Chunk {
    let (items, bytes) = (chunk.items(), chunk.bytes());
    Chunk::from_box(chunk, items, bytes)
}

/// Copies a part of the pairs into a chunk, which is what the cheapest filter could do.
struct Prepare {
    workload: &'static Workload,
    sets: &'static SetStore,
    parts: Arc<[Range]>,
    buffers: Buffers<Candidates>,
    /// The number of the part in hand.
    next: usize,
}

impl Prepare {
    fn fill(&mut self, out: &mut Output) -> Flow {
        let sets = self.sets;
        let make = || Candidates {
            sets,
            begin: 0,
            entries: Vec::new(),
            candidates: Vec::new(),
            required: Vec::new(),
            answer: OverlapAnswer::default(),
        };
        let Some(mut chunk) = self.buffers.take(make) else { return Flow::AwaitReply };
        let Range { begin, end, entries } = &self.parts[self.next];
        let all = self.workload.chunk();
        chunk.begin = *begin;
        chunk.entries.clear();
        chunk.entries.extend_from_slice(entries);
        chunk.candidates.clear();
        chunk.candidates.extend_from_slice(&all.candidates[*begin..*end]);
        chunk.required.clear();
        chunk.required.extend_from_slice(&all.required[*begin..*end]);
        out.send_chunk(message(chunk));
        Flow::NeedInput
    }
}

impl Operator for Prepare {
    fn process(
        &mut self,
        _: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        let number = trommel_bench::pipeline::values(&input.into_records())[0];
        self.next = usize::try_from(number % self.parts.len() as u64)?;
        Ok(self.fill(out))
    }

    fn reply(&mut self, reply: Chunk, out: &mut Output) -> Result<Flow, OperatorError> {
        self.buffers.give_back(reply.into_box());
        Ok(self.fill(out))
    }
}

/// Compares answers with the right ones.
struct Check {
    workload: &'static Workload,
    arrivals: Arc<Mutex<Arrivals>>,
}

impl Operator for Check {
    fn process(
        &mut self,
        _: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        let chunk: Box<Candidates> = input.into_chunk().into_box();
        self.workload.check_part(chunk.begin, &chunk.answer.overlaps);
        let mut arrivals = self.arrivals.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if arrivals.first.is_none() {
            arrivals.first = Some(now);
        } else {
            arrivals.pairs_after_first += chunk.candidates.len();
        }
        arrivals.last = Some(now);
        out.send_reply(message(chunk));
        Ok(Flow::NeedInput)
    }
}
