//! Table of the signatures of all pairs: every level of the processor on one core, every width on
//! a GPU, every count checked against a join by postings.

use std::sync::Arc;
use std::time::Duration;

use trommel::Isa;
use trommel::set_similarity_join::{
    JoinAlgorithm, SetCollection, SetCollector, SetJoin, Side, Similarity, Threshold,
};
use trommel_kernels::cuda::signatures::{Answer, GRID, Job, SignedSets, TileLimits};
use trommel_kernels::cuda::{Device, DeviceError, DeviceSets, Kernels, Lane, Memory, Slot};
use trommel_kernels::signatures::{
    self, Counted, PROBES_MAX, Signatures, Tile, Tiles, words_for_mean_size,
};

use crate::runner::report::{Table, or_empty};
use crate::runner::turns::{Measured, Run, Turns, timed};
use crate::runner::{Runs, isa};

/// Options of `signatures`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Arguments {
    /// Number of sets, all of one size; all pairs are tested.
    #[arg(long, default_value_t = 20_000)]
    sets: u32,
    /// Sizes of the sets.
    #[arg(long, value_delimiter = ',', default_value = "14,50,120,500")]
    sizes: Vec<u32>,
    /// Threads of a block, to tune the kernels.
    #[arg(long, value_delimiter = ',', default_value = "128")]
    threads: Vec<u32>,
    /// Levels of the processor to leave out, such as `scalar`.
    #[arg(long, value_delimiter = ',')]
    without: Vec<String>,
    #[command(flatten)]
    runs: Runs,
}

/// Sets of a family.
const FAMILY: u32 = 8;

/// Candidates of a tile.
const CANDIDATES: u32 = 1024;

/// Sets of one size, with the correct answer for a Jaccard similarity of 1/2.
struct Workload {
    collection: Arc<SetCollection>,
    runs: signatures::Runs,
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
        let runs = signatures::Runs::new(collection.sets(), [sets]);
        let threshold = Threshold::new(1, 2).expect("a fraction");
        let (jaccard, pp_join) = (Similarity::Jaccard, JoinAlgorithm::PpJoin);
        let by_postings = SetJoin::new(&collection, jaccard, threshold, pp_join, isa());
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
    let (device, runs) = (super::device(), arguments.runs.or(3));
    for &size in &arguments.sizes {
        let workload = Workload::new(arguments.sets, size.max(2));
        println!(
            "{} pairs of {} sets of {} tokens, {} similar (Jaccard 1/2); median of {} rounds\n",
            workload.pairs(),
            workload.collection.len(),
            workload.size,
            workload.matches,
            runs.rounds(3)
        );
        // About four bits per token.
        let words = words_for_mean_size(workload.size as usize);
        let mut table = Table::new(
            "to count                 | words: | G pairs/s: | of peak: | survivors a match:",
        );
        levels(&workload, words, arguments, runs, &mut table);
        if let Some(device) = &device {
            let done = on_device(device, &workload, words, arguments, runs, &mut table);
            let signed = done.expect("the device works");
            drop(table);
            println!("signatures and their copy took {signed:?}\n");
        }
    }
}

impl Workload {
    fn row(&self, words: usize, engine: &Measured<(Counted, Option<u64>)>) -> String {
        let (counted, peak) = *engine.rest();
        let rate = self.pairs() as f64 / engine.seconds() / 1e9;
        // Two population counts per word and pair, over the possible ones.
        let share =
            peak.filter(|peak| *peak > 0).map(|peak| rate * 2e9 * words as f64 / peak as f64);
        let share = or_empty(share, |share| format!("{:.0}%", 100.0 * share));
        let survivors = counted.survivors as f64 / (counted.matches as f64).max(1.0);
        format!("{} | {words} | {rate:.2} | {share} | {survivors:.2}", engine.name)
    }
}

fn levels(workload: &Workload, words: usize, arguments: &Arguments, runs: Runs, table: &mut Table) {
    let signatures = Signatures::new(Isa::Scalar, workload.collection.sets(), words);
    let mut turns = Turns::<(), _>::new(runs).cold();
    for isa in Isa::available() {
        if arguments.without.iter().any(|name| name == isa.name()) {
            continue;
        }
        let signatures = &signatures;
        turns.add(format!("{isa}, one core"), move || {
            let (time, counted) = timed(|| signatures::count(isa, signatures, workload.tiles()));
            workload.check(counted);
            Run { time, answer: (), rest: (counted, None) }
        });
    }
    turns.run().iter().for_each(|engine| table.row(workload.row(words, engine)));
}

/// Prints the time of all tiles in one chunk on the device; returns the time of signatures and
/// copy.
fn on_device(
    device: &Device,
    workload: &Workload,
    words: usize,
    arguments: &Arguments,
    runs: Runs,
    table: &mut Table,
) -> Result<Duration, DeviceError> {
    let budget = device.memory_bytes()?.0 / 2;
    let memory = Memory::new(device, budget, budget);
    let (lane, kernels) = (Arc::new(Lane::new(device)?), Kernels::load(device)?);
    let Tiles { tiles, required, .. } = workload.tiles();
    let sets = DeviceSets::upload(&memory, workload.collection.block().store())?;
    let (signed, sets) = timed(|| SignedSets::new(&memory, &kernels, &sets, &workload.runs, words));
    let sets = sets?;
    let strips = tiles.iter().map(|tile| tile.strips() as usize).sum();
    let limits = TileLimits {
        tiles: tiles.len(),
        strips,
        required: required.len(),
        matches: usize::try_from(workload.matches).expect("far below 2^31").max(1),
    };
    let mut held = Some(Slot::new(&memory, limits)?);
    let peak = device.properties().peak_population_counts_per_second();
    for &threads in &arguments.threads {
        for (answer, name) in [(Answer::Count, "count"), (Answer::Matches, "matches")] {
            let mut turns = Turns::<(), _>::new(runs);
            turns.add(format!("GPU, {name}, {threads} threads"), || {
                let grid = GRID.with_threads(threads);
                let job = Job { tiles, required, sets: &sets, grid, answer };
                let slot = held.take().expect("the round before has given it back");
                let flight = slot.submit(&lane, &kernels, &job);
                let slot = flight.and_then(|flight| flight.collect()).expect("the device works");
                workload.check(slot.counted());
                let (time, rest) = (slot.times().kernel, (slot.counted(), Some(peak)));
                held = Some(slot);
                Run { time, answer: (), rest }
            });
            table.row(workload.row(words, &turns.run()[0]));
        }
    }
    Ok(signed)
}
