//! Table of the supports of all pairs of items on a GPU: tid lists in pinned memory become frequent
//! pairs in pinned memory. Every answer is checked against sliced columns on the processor.

use std::fmt;
use std::num::NonZero;
use std::str::FromStr;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use trommel::Isa;
use trommel_kernels::batmap::{BatMaps, Permutations};
use trommel_kernels::cuda::supports::{
    BLOCKS_MAX, BitRows, DeviceMaps, Job, MAP_TILE, MapJob, MapPairs, PAIRS_MIN, PairLimits,
    Policy, RowLimits, TILE, TidBlocks, Tile, TilePairs, Units, tiles,
};
use trommel_kernels::cuda::{
    CopyTimes, Device, DeviceError, Kernels, Lane, Memory, PinnedBuffer, Slot,
};
use trommel_kernels::sets::Sets;
use trommel_kernels::supports::{COLUMNS, FoundPairs, Pair, SlicedColumns};

/// Options of `supports`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Arguments {
    /// Random matrices: items, transactions, density and least support.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "4000:50000:0.05:150,4000:1000000:0.05:2600,64000:15625:0.01:10"
    )]
    matrices: Vec<Matrix>,
    /// Leaves out batmaps, which the processor makes.
    #[arg(long)]
    without_batmaps: bool,
    /// Rounds; the median is shown.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
}

/// A random matrix and the question about it.
#[derive(Debug, Clone, Copy)]
struct Matrix {
    items: u32,
    transactions: u32,
    density: f64,
    least: u32,
}

impl FromStr for Matrix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split(':').collect();
        let [items, transactions, density, least] = parts[..] else {
            return Err("needed are ITEMS:TRANSACTIONS:DENSITY:LEAST".to_owned());
        };
        let number = |text: &str| text.parse::<u32>().map_err(|error| error.to_string());
        let density: f64 = density.parse().map_err(|_| format!("invalid density {density}"))?;
        if !(density > 0.0 && density < 1.0) {
            return Err(format!("invalid density {density}: between 0 and 1"));
        }
        let [items, transactions, least] = [number(items)?, number(transactions)?, number(least)?];
        Ok(Self { items, transactions, density, least: least.max(1) })
    }
}

/// Number of pairs and sum of their supports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Answer {
    pairs: u64,
    supports: u64,
}

impl Answer {
    fn add(&mut self, pairs: &[Pair]) {
        self.pairs += pairs.len() as u64;
        self.supports += pairs.iter().map(|pair| u64::from(pair.support)).sum::<u64>();
    }
}

/// A matrix as tid lists, with the correct answer.
struct Workload {
    matrix: Matrix,
    offsets: Vec<u32>,
    tids: Vec<u32>,
    answer: Answer,
    /// Time of the processor.
    time: Duration,
}

impl Workload {
    fn new(matrix: Matrix) -> Self {
        let (offsets, tids) = matrix.lists();
        let start = Instant::now();
        let answer = by_processor(Sets::new(&offsets, &tids), matrix);
        Self { matrix, offsets, tids, answer, time: start.elapsed() }
    }

    fn lists(&self) -> Sets<'_> {
        Sets::new(&self.offsets, &self.tids)
    }
}

impl Matrix {
    /// Tid lists, of which each transaction is a member by chance: gaps are drawn.
    #[expect(clippy::cast_precision_loss, reason = "a random number of 53 bits")]
    #[expect(clippy::cast_possible_truncation, reason = "gaps past the end saturate")]
    #[expect(clippy::cast_sign_loss, reason = "a quotient of negative numbers")]
    fn lists(&self) -> (Vec<u32>, Vec<u32>) {
        let mut state = 0x5EED_u64;
        let mut gap = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
            let mixed = (state ^ (state >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            let uniform = ((mixed >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
            (uniform.ln() / (1.0 - self.density).ln()) as u64
        };
        let (mut offsets, mut tids) = (vec![0], Vec::new());
        for _ in 0..self.items {
            let mut tid = gap();
            while tid < u64::from(self.transactions) {
                tids.push(tid as u32);
                tid += 1 + gap();
            }
            offsets.push(u32::try_from(tids.len()).expect("offsets have 32 bits"));
        }
        (offsets, tids)
    }

    fn tiles(&self) -> Vec<Tile> {
        tiles(self.items, TILE).collect()
    }
}

impl fmt::Display for Matrix {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { items, transactions, density, least } = self;
        write!(
            formatter,
            "{items} items, {transactions} transactions, density {density}, support {least}"
        )
    }
}

/// The answer by sliced columns, on all cores.
fn by_processor(lists: Sets<'_>, matrix: Matrix) -> Answer {
    let isa = Isa::selected().expect("the variable names a level of this machine");
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let width = u32::try_from(COLUMNS).expect("512");
    let part = |core: usize| {
        let (mut answer, mut found) = (Answer::default(), FoundPairs::new(matrix.least, 1 << 20));
        for begin in (0..matrix.items).step_by(COLUMNS).skip(core).step_by(cores) {
            let columns = begin..matrix.items.min(begin + width);
            let columns = SlicedColumns::new(lists, matrix.transactions, columns);
            let mut row = begin;
            while row < matrix.items {
                row = columns.count(isa, lists, row..matrix.items, &mut found);
                answer.add(found.pairs());
                found.clear(matrix.least);
            }
        }
        answer
    };
    thread::scope(|scope| {
        let parts: Vec<_> = (0..cores).map(|core| scope.spawn(move || part(core))).collect();
        let parts = parts.into_iter().map(|part| part.join().expect("no part panics"));
        parts.fold(Answer::default(), |all, part| Answer {
            pairs: all.pairs + part.pairs,
            supports: all.supports + part.supports,
        })
    })
}

/// Measures and prints.
pub(crate) fn run(arguments: &Arguments) {
    let device = Device::probe(0);
    if let Err(reason) = &device {
        println!("no GPU: {reason}\n");
    }
    for &matrix in &arguments.matrices {
        let workload = Workload::new(matrix);
        println!(
            "{matrix}: {} tids, {} frequent pairs; all cores take {:.3} s; median of {} rounds\n",
            workload.tids.len(),
            workload.answer.pairs,
            workload.time.as_secs_f64(),
            arguments.rounds.max(1)
        );
        if let Ok(device) = &device {
            on_device(device, &workload, arguments).expect("the device works");
        }
    }
}

/// Times of one round.
#[derive(Clone, Copy, Default)]
struct Round {
    rows: Duration,
    kernel: Duration,
    whole: Duration,
}

/// A workload in pinned memory and its buffers on a device.
struct Gpu<'a> {
    workload: &'a Workload,
    kernels: Arc<Kernels<TilePairs>>,
    lane: Arc<Lane>,
    offsets: PinnedBuffer<u32>,
    tids: PinnedBuffer<u16>,
    rows: Arc<BitRows>,
    tiles: Vec<Tile>,
}

impl<'a> Gpu<'a> {
    fn new(memory: &Arc<Memory>, workload: &'a Workload) -> Result<Self, DeviceError> {
        let Matrix { items, transactions, .. } = workload.matrix;
        let offsets_len = TidBlocks::offsets_len(items, transactions);
        let mut offsets = memory.pinned_buffer(offsets_len)?;
        let mut tids = memory.pinned_buffer(workload.tids.len())?;
        TidBlocks::cut(workload.lists(), transactions, &mut offsets, &mut tids);
        let limits = RowLimits { items, transactions, tids: tids.len() };
        Ok(Self {
            workload,
            kernels: Kernels::load(memory.device())?,
            lane: Arc::new(Lane::new(memory.device())?),
            offsets,
            tids,
            rows: Arc::new(BitRows::with_room(memory, limits)?),
            tiles: workload.matrix.tiles(),
        })
    }

    fn slot(&self, memory: &Arc<Memory>) -> Result<Slot<TilePairs>, DeviceError> {
        let pairs = usize::try_from(self.workload.answer.pairs).expect("they fit the memory");
        Slot::new(memory, PairLimits { tiles: self.tiles.len(), pairs: pairs.max(PAIRS_MIN) })
    }

    /// From lists in pinned memory to pairs in pinned memory; the answer is checked.
    fn round(
        &mut self,
        slot: Slot<TilePairs>,
        policy: Policy,
    ) -> Result<(Slot<TilePairs>, Round), DeviceError> {
        let Matrix { items, transactions, least, .. } = self.workload.matrix;
        let lists = TidBlocks::new(items, transactions, &self.offsets, &self.tids);
        let rows = Arc::get_mut(&mut self.rows).expect("no chunk is in flight");
        let start = Instant::now();
        rows.load(&self.kernels, &lists)?;
        let loaded = start.elapsed();
        let job = Job { tiles: &self.tiles, rows: &self.rows, least, policy };
        let slot = slot.submit(&self.lane, &self.kernels, &job)?.collect()?;
        let whole = start.elapsed();
        let mut answer = Answer::default();
        answer.add(slot.pairs());
        assert!(slot.unfinished().is_empty(), "there is room for all pairs");
        assert_eq!(answer, self.workload.answer, "wrong pairs");
        let round = Round { rows: loaded, kernel: slot.times().kernel, whole };
        Ok((slot, round))
    }

    /// Bytes of the lists and of the pairs.
    fn bytes(&self) -> [usize; 2] {
        let lists = size_of_val(&self.offsets[..]) + size_of_val(&self.tids[..]);
        let pairs = usize::try_from(self.workload.answer.pairs).expect("they fit the memory");
        [lists, pairs * size_of::<Pair>()]
    }
}

fn on_device(
    device: &Device,
    workload: &Workload,
    arguments: &Arguments,
) -> Result<(), DeviceError> {
    let budget = device.memory_bytes()?.0 / 2;
    let memory = Memory::new(device, budget, budget);
    let copies = CopyTimes::measure(device, budget.min(1 << 28), 5)?;
    let mut gpu = Gpu::new(&memory, workload)?;
    let mut slot = gpu.slot(&memory)?;
    let rates = [copies.host_to_device, copies.device_to_host];
    let bus: f64 = gpu
        .bytes()
        .into_iter()
        .zip(rates)
        .map(|(bytes, time)| seconds(bytes, copies.bytes, time))
        .sum();
    println!(
        "| {:<13} | rows ms | kernel ms | T bit products/s | whole way ms | bus ms | bus share |",
        "GPU"
    );
    println!(
        "|:{:-<13}-|--------:|----------:|-----------------:|-------------:|-------:|----------:|",
        ""
    );
    for &units in Units::ALL {
        if !units.are_available(device.properties()) {
            continue;
        }
        let mut rounds = Vec::new();
        for _ in 0..=arguments.rounds.max(1) {
            let round;
            (slot, round) = gpu.round(slot, Policy::of(units))?;
            rounds.push(round);
        }
        // The first round warms up.
        let middle = |time: fn(&Round) -> Duration| {
            let mut times: Vec<Duration> = rounds[1..].iter().map(time).collect();
            times.sort_unstable();
            times[times.len() / 2].as_secs_f64()
        };
        let kernel = middle(|round| round.kernel);
        let whole = middle(|round| round.whole);
        println!(
            "| {:<13} | {:>7.3} | {:>9.3} | {:>16.0} | {:>12.3} | {:>6.3} | {:>8.0}% |",
            units.to_string(),
            1e3 * middle(|round| round.rows),
            1e3 * kernel,
            products(&gpu) / kernel / 1e12,
            1e3 * whole,
            1e3 * bus,
            100.0 * bus / whole
        );
    }
    println!();
    if arguments.without_batmaps { Ok(()) } else { by_batmaps(&memory, workload, arguments) }
}

/// Measures batmaps, which the processor makes and which lie on the device.
fn by_batmaps(
    memory: &Arc<Memory>,
    workload: &Workload,
    arguments: &Arguments,
) -> Result<(), DeviceError> {
    let Matrix { items, transactions, least, .. } = workload.matrix;
    let isa = Isa::selected().expect("the variable names a level of this machine");
    let begin = Instant::now();
    let permutations = Permutations::new(transactions, 0x5EED);
    let maps = Arc::new(BatMaps::new(isa, permutations, workload.lists()));
    let made = begin.elapsed();
    let begin = Instant::now();
    let on_device = DeviceMaps::upload(memory, &maps)?;
    let sent = begin.elapsed();
    let tiles: Vec<Tile> = tiles(items, MAP_TILE).collect();
    let kernels = Kernels::load(memory.device())?;
    let lane = Arc::new(Lane::new(memory.device())?);
    let pairs = usize::try_from(workload.answer.pairs).expect("they fit the memory");
    // Pairs that failed insertions could complete need room, too.
    let limits = PairLimits { tiles: tiles.len(), pairs: 2 * pairs + (1 << 20) };
    let mut slot = Slot::<MapPairs>::new(memory, limits)?;
    let mut times = Vec::new();
    for _ in 0..=arguments.rounds.max(1) {
        let maps = &on_device;
        let job = MapJob { tiles: &tiles, maps, least, blocks_max: BLOCKS_MAX };
        slot = slot.submit(&lane, &kernels, &job)?.collect()?;
        times.push(slot.times().kernel);
    }
    let found: Vec<Pair> = slot.pairs().collect();
    let mut answer = Answer::default();
    answer.add(&found);
    assert!(slot.unfinished().is_empty(), "there is room for all pairs");
    assert_eq!(answer, workload.answer, "wrong pairs by batmaps");
    times.remove(0);
    times.sort_unstable();
    let kernel = times[times.len() / 2].as_secs_f64();
    println!(
        "batmaps: kernel {:.3} ms, {:.1} TB/s of maps; {:.0} MB, made in {made:.2?} on one core, \
         sent in {sent:.2?}\n",
        1e3 * kernel,
        compared_bytes(&maps, &tiles) / kernel / 1e12,
        megabytes(maps.bytes())
    );
    Ok(())
}

/// Bytes of maps that the pairs of all tiles compare: both maps in the widest range of the tile.
fn compared_bytes(maps: &BatMaps<2>, tiles: &[Tile]) -> f64 {
    let items = u32::try_from(maps.len()).expect("items are numbered by 32 bits");
    let widest: Vec<usize> = (0..items)
        .step_by(MAP_TILE as usize)
        .map(|begin| {
            let end = items.min(begin + MAP_TILE);
            (begin..end).map(|map| maps.range(map)).max().unwrap_or(0)
        })
        .collect();
    let of = |tile: &Tile| widest[tile.left as usize].max(widest[tile.right as usize]);
    let ranges: usize = tiles.iter().map(of).sum();
    6e6 * f64::from(MAP_TILE * MAP_TILE) * megabytes(ranges)
}

#[expect(clippy::cast_precision_loss, reason = "bytes are far below 2^53")]
fn megabytes(bytes: usize) -> f64 {
    bytes as f64 / 1e6
}

/// Products of bits of all tiles.
fn products(gpu: &Gpu<'_>) -> f64 {
    let tile = f64::from(TILE * TILE) * f64::from(gpu.workload.matrix.transactions);
    f64::from(u32::try_from(gpu.tiles.len()).expect("tiles are numbered by 32 bits")) * tile
}

/// Seconds of `bytes` at the rate of a copy.
#[expect(clippy::cast_precision_loss, reason = "bytes are far below 2^53")]
fn seconds(bytes: usize, copied: usize, time: Duration) -> f64 {
    bytes as f64 / copied.max(1) as f64 * time.as_secs_f64()
}
