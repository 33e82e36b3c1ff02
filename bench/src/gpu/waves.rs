//! Verification of candidate pairs in a pipeline, in waves: prepare copies them into chunks, a
//! GPU or one core verifies them, collect checks the answers.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use arrow_schema::SchemaRef;
use trommel::batch::Payload;
use trommel::error::{BindError, RunError};
use trommel::metrics::PartMetrics;
use trommel::operator::{BindContext, Fragment, OperatorError, OperatorSpec, Output};
use trommel::unstable::cuda::overlap::{Answer, ChunkLimits, Job, PairOverlap, Policy, Variant};
use trommel::unstable::cuda::{DeviceError, DeviceSets, Flights, NoDevice};
use trommel::unstable::wave::{
    self, Consumer, Device, DevicePrice, DeviceSession, Filled, Kernel, Landed, OnDevice, Producer,
    Taken, Wave, WaveChunk,
};
use trommel::{Graph, Isa, Memory, RunOptions};
use trommel_bench::pipeline::{numbers, schema};
use trommel_kernels::overlap::{self, Chunk as PairChunk, Entry, Pairs};
use trommel_kernels::sets::SetStore;

use super::overlap::workload::{Part as Range, Workload, parts};
use crate::runner::isa;
use crate::runner::report::Table;

/// Options of `waves`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Arguments {
    /// Candidate pairs of the workload.
    #[arg(long, default_value_t = 4_000_000)]
    pairs: usize,
    /// Mean sizes of the sets.
    #[arg(long, value_delimiter = ',', default_value = "14,50,120,500")]
    sizes: Vec<usize>,
    /// Candidates per probe.
    #[arg(long, default_value_t = 20)]
    candidates: usize,
    /// Devices: `cpu`, `auto`, `cuda`.
    #[arg(long, value_delimiter = ',', default_value = "cpu,auto")]
    devices: Vec<Device>,
}

/// Pairs per chunk.
const CHUNK_PAIRS: [usize; 3] = [16_384, 65_536, 262_144];
/// Chunks in flight on a device; two more are filled and read meanwhile.
const SLOTS: usize = 3;
/// Repetitions of the workload on the CPU, and when a device may be used.
const PASSES: [u64; 2] = [2, 100];

/// Measures and prints.
pub(crate) fn run(arguments: &Arguments) -> Result<(), RunError> {
    for size in &arguments.sizes {
        // Leaked on purpose: chunks on any thread borrow their sets from it.
        let workload: &'static Workload =
            Box::leak(Box::new(Workload::new(*size, arguments.pairs, arguments.candidates)));
        println!("{workload}; rates from the first answered chunk on\n");
        let mut table = Table::new(
            "device | pairs a chunk: | M pairs/s: | kernel, of the time: | overlap: | \
             B to device a pair: | prepare busy: | device busy: | collect busy:",
        );
        for &device in &arguments.devices {
            for pairs in CHUNK_PAIRS {
                table.row(measure(workload, device, pairs)?);
            }
        }
    }
    Ok(())
}

/// Times of the answers, and their number of pairs.
#[derive(Debug, Clone, Copy, Default)]
struct Arrivals {
    first: Option<Instant>,
    last: Option<Instant>,
    pairs_after_first: usize,
}

/// Measures a device and returns its row.
fn measure(
    workload: &'static Workload,
    device: Device,
    chunk_pairs: usize,
) -> Result<String, RunError> {
    let passes = PASSES[usize::from(device != Device::Cpu)];
    let parts: Arc<[Range]> = parts(workload, chunk_pairs.max(1)).into();
    let arrivals = Arc::new(Mutex::new(Arrivals::default()));
    let verify = Verify {
        workload,
        parts: Arc::clone(&parts),
        wave: Wave { device_price: DevicePrice::FREE, ..Wave::new(device, SLOTS + 2, 1) },
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
    Ok(row(&stage.parts, chunk_pairs, arrivals.pairs_after_first, time.unwrap_or_default()))
}

fn row(parts: &[PartMetrics], chunk_pairs: usize, pairs: usize, time: Duration) -> String {
    let counter = |name: &str| {
        let found = parts[1].counters.iter().find(|(other, _)| *other == name);
        found.map_or(0.0, |(_, count)| *count as f64)
    };
    let device = if counter("waves_on_device") > 0.0 { "cuda" } else { "cpu" };
    let seconds = time.as_secs_f64();
    let [prepare, verify, collect] =
        [0, 1, 2].map(|part: usize| format!("{:.2} s", parts[part].busy.as_secs_f64()));
    format!(
        "{device} | {chunk_pairs} | {:.1} | {:.0}% | {:.0}% | {:.1} | {prepare} | {verify} | {collect}",
        pairs as f64 / seconds / 1e6,
        counter("kernel_ns") / 1e7 / seconds,
        counter("overlap_ppm") / 1e4,
        counter("bytes_to_device") / (pairs as f64 + chunk_pairs as f64),
    )
}

/// Operator under test; its input is numbers of parts of the workload.
struct Verify {
    workload: &'static Workload,
    parts: Arc<[Range]>,
    wave: Wave,
    arrivals: Arc<Mutex<Arrivals>>,
}

impl OperatorSpec for Verify {
    fn operator(&self) -> &'static str {
        "verify"
    }

    fn bind(self: Box<Self>, _: &[SchemaRef], _: BindContext) -> Result<Fragment, BindError> {
        let Self { workload, parts, wave, arrivals } = *self;
        let pairs = parts.iter().map(|part| part.end - part.begin).max().unwrap_or(1);
        let entries = parts.iter().map(|part| part.entries.len()).max().unwrap_or(1);
        let sets = workload.sets();
        let kernel =
            Overlap { isa: isa(), limits: ChunkLimits { entries, pairs, starts: false }, sets };
        let producer = Copying { workload, parts, next: None };
        let consumer = Check { workload, arrivals };
        let make = move || Candidates::new(sets);
        Ok(wave::operator(producer, kernel, consumer, make, wave, Vec::new()))
    }
}

/// Chunk of pairs, and its begin in the workload.
struct Candidates {
    sets: &'static SetStore,
    begin: usize,
    entries: Vec<Entry>,
    candidates: Vec<u32>,
    required: Vec<u32>,
    overlaps: Vec<u32>,
}

impl Candidates {
    fn new(sets: &'static SetStore) -> Self {
        let (entries, candidates) = (Vec::new(), Vec::new());
        let (required, overlaps) = (Vec::new(), Vec::new());
        Self { sets, begin: 0, entries, candidates, required, overlaps }
    }

    fn chunk(&self) -> PairChunk<'_> {
        let Self { entries, candidates, required, .. } = self;
        PairChunk { entries, candidates, required, starts: &[] }
    }
}

impl WaveChunk for Candidates {
    fn items(&self) -> usize {
        self.candidates.len()
    }

    fn bytes(&self) -> usize {
        12 * self.entries.len() + 12 * self.candidates.len()
    }

    fn clear(&mut self, _: usize) {
        self.entries.clear();
        self.candidates.clear();
        self.required.clear();
    }
}

/// Kernel that verifies pairs of one store of sets.
struct Overlap {
    isa: Isa,
    limits: ChunkLimits,
    sets: &'static SetStore,
}

impl Kernel for Overlap {
    const NAME: &'static str = "verify";
    type Chunk = Candidates;
    type OnDevice = PairFlights;

    fn run(&mut self, chunk: &mut Candidates) {
        let sets = chunk.sets.as_sets();
        let mut overlaps = std::mem::take(&mut chunk.overlaps);
        overlaps.clear();
        overlaps.resize(chunk.candidates.len(), 0);
        let pairs = Pairs { probes: sets, candidates: sets, chunk: chunk.chunk() };
        overlap::verify(self.isa, pairs, &mut overlaps);
        chunk.overlaps = overlaps;
    }

    fn open(
        &mut self,
        device: &DeviceSession,
        _: Option<&Candidates>,
    ) -> Result<PairFlights, NoDevice> {
        let sets_bytes = DeviceSets::bytes_of(self.sets.as_sets(), 0);
        let flights = Flights::open(&device.open()?, SLOTS, self.limits, sets_bytes)?;
        let sets = DeviceSets::upload(flights.memory(), self.sets)?;
        Ok(PairFlights { flights, sets })
    }
}

/// Chunks in flight.
struct PairFlights {
    flights: Flights<PairOverlap>,
    sets: Arc<DeviceSets>,
}

impl OnDevice for PairFlights {
    type Chunk = Candidates;

    fn has_room(&self, _: &Candidates) -> bool {
        self.flights.has_room()
    }

    fn submit(&mut self, chunk: &Candidates) -> Result<(), DeviceError> {
        let sets = chunk.sets.as_sets();
        let variant = Variant::for_mean_size(sets.tokens().len() / sets.len().max(1));
        let job = Job {
            chunk: chunk.chunk(),
            sets: [chunk.sets; 2],
            on_device: [&self.sets; 2],
            policy: Policy::of(variant),
            answer: Answer::Overlaps,
        };
        self.flights.submit(&job, 0)
    }

    fn is_done(&mut self) -> Result<bool, DeviceError> {
        self.flights.is_done()
    }

    fn collect(&mut self, chunk: &mut Candidates) -> Result<Landed, DeviceError> {
        self.flights.collect(|slot| {
            chunk.overlaps.clear();
            chunk.overlaps.extend_from_slice(slot.overlaps());
        })
    }
}

/// Producer that copies a part of the pairs into a chunk, the least work of any producer.
struct Copying {
    workload: &'static Workload,
    parts: Arc<[Range]>,
    /// Number of the part in progress.
    next: Option<usize>,
}

impl Producer for Copying {
    type Chunk = Candidates;

    fn take(&mut self, _: usize, batch: Payload) -> Result<(), OperatorError> {
        let number = trommel_bench::pipeline::values(&batch.into_records())[0];
        self.next = Some(usize::try_from(number % self.parts.len() as u64)?);
        Ok(())
    }

    fn fill(&mut self, chunk: &mut Candidates) -> Result<Filled, OperatorError> {
        let Some(next) = self.next.take() else { return Ok(Filled::Nothing) };
        let Range { begin, end, entries } = &self.parts[next];
        let all = self.workload.chunk();
        chunk.begin = *begin;
        chunk.entries.extend_from_slice(entries);
        chunk.candidates.extend_from_slice(&all.candidates[*begin..*end]);
        chunk.required.extend_from_slice(&all.required[*begin..*end]);
        Ok(Filled::Chunk)
    }
}

/// Consumer that compares answers with the correct ones.
struct Check {
    workload: &'static Workload,
    arrivals: Arc<Mutex<Arrivals>>,
}

impl Consumer for Check {
    type Chunk = Candidates;

    fn take(&mut self, chunk: &Candidates, _: &mut Output) -> Result<Taken, OperatorError> {
        self.workload.check_part(chunk.begin, &chunk.overlaps);
        let mut arrivals = self.arrivals.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if arrivals.first.is_none() {
            arrivals.first = Some(now);
        } else {
            arrivals.pairs_after_first += chunk.candidates.len();
        }
        arrivals.last = Some(now);
        Ok(Taken::All)
    }
}
