//! Table of the signatures of all pairs: every level of the processor on one core, every width on
//! a GPU, every count checked against a join by postings.

use std::sync::Arc;
use std::time::{Duration, Instant};

use trommel::Isa;
use trommel::set_similarity_join::{
    JoinAlgorithm, SetCollection, SetCollector, SetJoin, Side, Similarity, Threshold,
};
use trommel_kernels::cuda::signatures::{Answer, GRID, Job, SignedSets, TileLimits};
use trommel_kernels::cuda::{Device, DeviceError, DeviceSets, Kernels, Lane, Memory, Slot};
use trommel_kernels::signatures::{
    self, Counted, PROBES_MAX, Runs, Signatures, Tile, Tiles, WORDS, words_for_mean_size,
};

/// Options of `signatures`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Arguments {
    /// Number of sets, all of one size; all pairs are tested.
    #[arg(long, default_value_t = 20_000)]
    sets: u32,
    /// Sizes of the sets.
    #[arg(long, value_delimiter = ',', default_value = "14,50,120,500")]
    sizes: Vec<u32>,
    /// Words of 64 bits per signature: 1, 2, 4 or 8; by default about four bits per token.
    #[arg(long, value_delimiter = ',')]
    words: Vec<usize>,
    /// Threads of a block, to tune the kernels.
    #[arg(long, value_delimiter = ',', default_value = "128")]
    threads: Vec<u32>,
    /// Levels of the processor to leave out, such as `scalar`.
    #[arg(long, value_delimiter = ',')]
    without: Vec<String>,
    /// Rounds; the median is shown.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
}

/// Sets of a family.
const FAMILY: u32 = 8;

/// Candidates of a tile.
const CANDIDATES: u32 = 1024;

/// Sets of one size, with the correct answer for a Jaccard similarity of 1/2.
struct Workload {
    collection: Arc<SetCollection>,
    runs: Runs,
    tiles: Vec<Tile>,
    required: [u32; 1],
    size: u32,
    matches: u64,
}

impl Workload {
    fn new(sets: u32, size: u32) -> Self {
        let mut state = 1_u64;
        let mut below = move |end: u32| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            u32::try_from((state >> 33) % u64::from(end)).expect("below `end`")
        };
        let mut collector = SetCollector::new(1 << 36);
        let mut base = Vec::new();
        for id in 0..sets {
            if id % FAMILY == 0 {
                base = distinct(Vec::new(), size, &mut below);
            }
            let kept = size - below(size / 2 + 1);
            let set = distinct(base[..kept as usize].to_vec(), size, &mut below);
            collector.push(Side::Left, id, &set).expect("sorted below");
        }
        let collection = Arc::new(collector.finish().expect("it fits the memory"));
        let runs = Runs::new(collection.sets(), [sets]);
        let threshold = Threshold::new(1, 2).expect("a fraction");
        let isa = Isa::selected().expect("the variable names a level of this machine");
        let by_postings =
            SetJoin::new(&collection, Similarity::Jaccard, threshold, JoinAlgorithm::PpJoin, isa);
        let matches = by_postings.expect("it fits the memory").count().results;
        let required = [(2 * size).div_ceil(3)];
        Self { collection, runs, tiles: tiles(sets), required, size, matches }
    }

    fn tiles(&self) -> Tiles<'_> {
        let (tiles, required) = (&self.tiles[..], &self.required[..]);
        Tiles { sets: self.collection.sets(), runs: &self.runs, tiles, required }
    }

    fn pairs(&self) -> u64 {
        let sets = self.collection.len() as u64;
        sets * sets.saturating_sub(1) / 2
    }

    fn check(&self, counted: Counted) {
        assert_eq!(counted.matches, self.matches, "a wrong count");
        assert!(counted.survivors >= counted.matches);
    }

    /// Billions of pairs per second.
    #[expect(clippy::cast_precision_loss, reason = "rates are not exact")]
    fn rate(&self, time: Duration) -> f64 {
        self.pairs() as f64 / time.as_secs_f64() / 1e9
    }
}

/// A sorted set of `size` tokens that contains `set`; added tokens are drawn by `below` out of
/// 200 * `size`, so that few are common to other sets.
fn distinct(mut set: Vec<u32>, size: u32, below: &mut impl FnMut(u32) -> u32) -> Vec<u32> {
    set.sort_unstable();
    while set.len() < size as usize {
        let token = below(200 * size);
        if let Err(place) = set.binary_search(&token) {
            set.insert(place, token);
        }
    }
    set
}

/// Tiles of all pairs of `sets` sets.
fn tiles(sets: u32) -> Vec<Tile> {
    let mut tiles = Vec::new();
    for probe_begin in (0..sets).step_by(PROBES_MAX as usize) {
        let probe_end = sets.min(probe_begin + PROBES_MAX);
        for candidate_begin in (0..probe_end).step_by(CANDIDATES as usize) {
            let candidate_end = probe_end.min(candidate_begin + CANDIDATES);
            let resume = candidate_begin;
            tiles.push(Tile {
                probe_begin,
                probe_end,
                candidate_begin,
                candidate_end,
                resume,
                row: 0,
            });
        }
    }
    tiles
}

/// Measures and prints.
pub(crate) fn run(arguments: &Arguments) {
    let device = Device::probe(0);
    if let Err(reason) = &device {
        println!("no GPU: {reason}\n");
    }
    for &size in &arguments.sizes {
        let workload = Workload::new(arguments.sets, size.max(2));
        println!(
            "{} pairs of {} sets of {} tokens, {} similar (Jaccard 1/2); median of {} rounds\n",
            workload.pairs(),
            workload.collection.len(),
            workload.size,
            workload.matches,
            arguments.rounds.max(1)
        );
        let widths = if arguments.words.is_empty() {
            vec![words_for_mean_size(workload.size as usize)]
        } else {
            arguments.words.iter().copied().filter(|words| WORDS.contains(words)).collect()
        };
        println!("| {:<24} | words | G pairs/s | of peak | survivors a match |", "to count");
        println!("|:{:-<24}-|------:|----------:|--------:|------------------:|", "");
        for &words in &widths {
            levels(&workload, words, arguments);
            if let Ok(device) = &device {
                on_device(device, &workload, words, arguments).expect("the device works");
            }
        }
        println!();
    }
}

#[expect(clippy::cast_precision_loss, reason = "ratios are not exact")]
fn line(name: &str, workload: &Workload, words: usize, measured: (Duration, Option<f64>, Counted)) {
    let (time, share, counted) = measured;
    let share = share.map_or_else(String::new, |share| format!("{:.0}%", 100.0 * share));
    println!(
        "| {name:<24} | {words:>5} | {:>9.2} | {share:>7} | {:>17.2} |",
        workload.rate(time),
        counted.survivors as f64 / (counted.matches as f64).max(1.0)
    );
}

fn levels(workload: &Workload, words: usize, arguments: &Arguments) {
    let signatures = Signatures::new(Isa::Scalar, workload.collection.sets(), words);
    for isa in Isa::available() {
        if arguments.without.iter().any(|name| name == isa.name()) {
            continue;
        }
        let mut counted = Counted::default();
        let time = median(arguments.rounds, || {
            let start = Instant::now();
            counted = signatures::count(isa, &signatures, workload.tiles());
            start.elapsed()
        });
        workload.check(counted);
        line(&format!("{isa}, one core"), workload, words, (time, None, counted));
    }
}

/// Time of all tiles in one chunk on the device.
fn on_device(
    device: &Device,
    workload: &Workload,
    words: usize,
    arguments: &Arguments,
) -> Result<(), DeviceError> {
    let budget = device.memory_bytes()?.0 / 2;
    let memory = Memory::new(device, budget, budget);
    let (lane, kernels) = (Arc::new(Lane::new(device)?), Kernels::load(device)?);
    let Tiles { tiles, required, .. } = workload.tiles();
    let sets = DeviceSets::upload(&memory, workload.collection.block().store())?;
    let begin = Instant::now();
    let sets = SignedSets::new(&memory, &kernels, &sets, &workload.runs, words)?;
    let signed = begin.elapsed();
    let strips = tiles.iter().map(|tile| tile.strips() as usize).sum();
    let limits = TileLimits {
        tiles: tiles.len(),
        strips,
        required: required.len(),
        matches: usize::try_from(workload.matches).expect("far below 2^31").max(1),
    };
    let mut slot = Slot::new(&memory, limits)?;
    let peak = device.properties().peak_population_counts_per_second();
    for &threads in &arguments.threads {
        for (answer, name) in [(Answer::Count, "count"), (Answer::Matches, "matches")] {
            let mut times = Vec::new();
            for _ in 0..=arguments.rounds.max(1) {
                let grid = GRID.with_threads(threads);
                let job = Job { tiles, required, sets: &sets, grid, answer };
                slot = slot.submit(&lane, &kernels, &job)?.collect()?;
                workload.check(slot.counted());
                times.push(slot.times().kernel);
            }
            // The first round warms up.
            times.remove(0);
            times.sort_unstable();
            let time = times[times.len() / 2];
            let name = format!("GPU, {name}, {threads} threads");
            let share = share_of_peak(workload, words, time, peak);
            line(&name, workload, words, (time, share, slot.counted()));
        }
    }
    println!("signatures and their copy took {signed:?}");
    Ok(())
}

/// Share of peak: two population counts per word and pair, over the possible ones.
#[expect(clippy::cast_precision_loss, reason = "shares are not exact")]
fn share_of_peak(workload: &Workload, words: usize, time: Duration, peak: u64) -> Option<f64> {
    let done = workload.rate(time) * 1e9 * 2.0 * words as f64;
    (peak > 0).then(|| done / peak as f64)
}

fn median(rounds: usize, mut run: impl FnMut() -> Duration) -> Duration {
    let mut times: Vec<Duration> = (0..rounds.max(1)).map(|_| run()).collect();
    times.sort_unstable();
    times[times.len() / 2]
}
