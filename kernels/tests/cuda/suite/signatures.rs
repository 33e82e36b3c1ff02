//! Tiles of all pairs.

use std::sync::Arc;

use trommel_kernels::Isa;
use trommel_kernels::cuda::signatures::{Answer, GRID, Job, SignedSets, TileJoin, TileLimits};
use trommel_kernels::cuda::{
    Device, DeviceError, DeviceSets, FailureKind, Flight, Grid, Kernels, Lane, Memory, Slot, Times,
};
use trommel_kernels::signatures::{self, Counted, Joined, Match, Runs, Signatures, Tile, WORDS};

use super::super::device;
use super::super::tiles::{self, TileCase};
use super::BUDGET;

/// The memory, streams and kernels that run cases on a device.
pub(crate) struct Bench {
    memory: Arc<Memory>,
    lane: Arc<Lane>,
    kernels: Arc<Kernels<TileJoin>>,
}

impl Bench {
    pub(crate) fn new(device: &Device) -> Result<Self, DeviceError> {
        Ok(Self {
            memory: Memory::new(device, BUDGET, BUDGET),
            lane: Arc::new(Lane::new(device)?),
            kernels: Kernels::load(device)?,
        })
    }

    pub(crate) fn sign(
        &self,
        case: &TileCase,
        words: usize,
    ) -> Result<Arc<SignedSets>, DeviceError> {
        let sets = DeviceSets::upload(&self.memory, &case.sets)?;
        SignedSets::new(&self.memory, &self.kernels, &sets, &case.runs(), words)
    }

    /// A slot of exactly the size of a case, so that an access past its end is outside of memory.
    pub(crate) fn slot(&self, case: &TileCase, room: usize) -> Result<Slot<TileJoin>, DeviceError> {
        Slot::new(&self.memory, limits(case, room))
    }

    fn submit(
        &self,
        slot: Slot<TileJoin>,
        case: &TileCase,
        list: &[Tile],
        sets: &Arc<SignedSets>,
        (grid, answer): (Grid, Answer),
    ) -> Result<Flight<TileJoin>, DeviceError> {
        let job = Job { tiles: list, required: &case.required, sets, grid, answer };
        slot.submit(&self.lane, &self.kernels, &job)
    }

    /// Asks until no tile is unfinished; returns all matches in order, and the survivors.
    pub(crate) fn join(
        &self,
        case: &TileCase,
        sets: &Arc<SignedSets>,
        mut slot: Slot<TileJoin>,
        grid: Grid,
    ) -> Result<(Vec<Match>, Slot<TileJoin>, u64), DeviceError> {
        let (mut matches, mut survivors) = (Vec::new(), 0);
        let mut list = case.tiles.clone();
        while !list.is_empty() {
            let job = (grid, Answer::Matches);
            slot = self.submit(slot, case, &list, sets, job)?.collect()?;
            assert!(slot.counted().matches == slot.matches().len() as u64);
            assert!(slot.unfinished().is_empty() || !slot.matches().is_empty(), "it goes on");
            matches.extend_from_slice(slot.matches());
            survivors += slot.counted().survivors;
            list = slot.unfinished().to_vec();
        }
        matches.sort_unstable();
        Ok((matches, slot, survivors))
    }
}

fn limits(case: &TileCase, room: usize) -> TileLimits {
    let strips: usize = case.tiles.iter().map(|tile| tile.strips() as usize).sum();
    let (tiles, required) = (case.tiles.len().max(strips), case.required.len());
    TileLimits { tiles, strips, required, matches: room }
}

/// The reference's matches in order, and the count.
pub(crate) fn expected(case: &TileCase, words: usize) -> (Vec<Match>, Counted) {
    let signatures = Signatures::new(Isa::Scalar, case.sets(), words);
    let runs = case.runs();
    let tiles = case.tiles(&runs, &case.tiles);
    let mut answer = Joined::default();
    signatures::join(Isa::Scalar, &signatures, tiles, usize::MAX, &mut answer);
    answer.matches.sort_unstable();
    (answer.matches, signatures::count(Isa::Scalar, &signatures, tiles))
}

/// The usual grid; a grid of a single block of two warps; a grid of many threads.
fn grids() -> [Grid; 3] {
    [GRID, GRID.with_threads(64).with_blocks_max(1), GRID.with_threads(256)]
}

fn check(words: usize) {
    let Some(device) = device() else { return };
    let bench = Bench::new(&device).unwrap();
    for case in tiles::all() {
        let (matches, counted) = expected(&case, words);
        assert_eq!(counted.matches, matches.len() as u64);
        let sets = bench.sign(&case, words).unwrap();
        for (grid, room) in grids().into_iter().zip(case.rooms(matches.len())) {
            let shown = format!("{words} words, {}, room for {room}, {grid:?}", case.name);
            let slot = bench.slot(&case, room).unwrap();
            let (found, slot, survivors) = bench.join(&case, &sets, slot, grid).unwrap();
            assert!(found == matches, "{shown}: other matches");
            assert_eq!(survivors, counted.survivors, "{shown}");
            let job = (grid, Answer::Count);
            let flight = bench.submit(slot, &case, &case.tiles, &sets, job).unwrap();
            let slot = flight.collect().unwrap();
            assert_eq!(slot.counted(), counted, "{shown}");
            assert!(slot.matches().is_empty() && slot.unfinished().is_empty());
        }
    }
}

#[test]
fn signatures_of_1_word_matches_the_reference() {
    check(WORDS[0]);
}

#[test]
fn signatures_of_2_words_matches_the_reference() {
    check(WORDS[1]);
}

#[test]
fn signatures_of_4_words_matches_the_reference() {
    check(WORDS[2]);
}

#[test]
fn signatures_of_8_words_matches_the_reference() {
    check(WORDS[3]);
}

#[test]
#[should_panic(expected = "a required overlap at 3 of 1, for tile 0")]
fn tiles_are_checked_by_the_runs_of_the_device() {
    let device = device().expect("a required overlap at 3 of 1, for tile 0, and no device");
    let bench = Bench::new(&device).unwrap();
    let case = TileCase::of_sizes("one run", &[6; 4], 1, [128, 128]);
    let sets = DeviceSets::upload(&bench.memory, &case.sets).unwrap();
    let runs = Runs::new(case.sets(), 1..=4);
    let sets = SignedSets::new(&bench.memory, &bench.kernels, &sets, &runs, 1).unwrap();
    let last = Tile { probe_begin: 3, ..case.tiles[0] };
    let job = (GRID, Answer::Count);
    let _ = bench.submit(bench.slot(&case, 1).unwrap(), &case, &[last], &sets, job);
}

#[test]
fn several_chunks_of_tiles_are_in_flight() {
    let Some(device) = device() else { return };
    let bench = Bench::new(&device).unwrap();
    let case = TileCase::of_sizes("in flight", &[9; 100], 3, [16, 40]);
    let sets = bench.sign(&case, 1).unwrap();
    let used = bench.memory.used_bytes();
    let half = case.tiles.len() / 2;
    let job = (GRID, Answer::Matches);
    let flights: Vec<Flight<TileJoin>> = [&case.tiles[..half], &case.tiles[half..]]
        .into_iter()
        .map(|list| bench.submit(bench.slot(&case, 5000).unwrap(), &case, list, &sets, job))
        .collect::<Result<_, _>>()
        .unwrap();
    let mut matches = Vec::new();
    for flight in flights {
        while !flight.is_done().unwrap() {}
        let slot = flight.collect().unwrap();
        let zero = std::time::Duration::ZERO;
        assert!(slot.times().kernel > zero && slot.times().copy_in > zero, "{:?}", slot.times());
        matches.extend_from_slice(slot.matches());
    }
    matches.sort_unstable();
    assert!(matches == expected(&case, 1).0);
    // No caller collects this flight.
    drop(bench.submit(bench.slot(&case, 10).unwrap(), &case, &case.tiles, &sets, job).unwrap());
    assert_eq!(bench.memory.used_bytes(), used);
}

#[test]
fn a_budget_of_tiles_is_kept() {
    let Some(device) = device() else { return };
    let limits = TileLimits { tiles: 7, strips: 90, required: 11, matches: 13 };
    let memory = Memory::new(&device, limits.bytes(), limits.bytes());
    let slot = Slot::<TileJoin>::new(&memory, limits).unwrap();
    assert_eq!(memory.used_bytes(), (limits.bytes(), limits.bytes()), "as large as announced");
    assert_eq!((slot.times(), slot.counted()), (Times::default(), Counted::default()));
    drop(slot);
    let memory = Memory::new(&device, limits.bytes() - 1, limits.bytes());
    assert_eq!(
        Slot::<TileJoin>::new(&memory, limits).unwrap_err().kind(),
        FailureKind::OutOfMemory
    );
    let case = TileCase::of_sizes("signed", &[4; 33], 1, [128, 128]);
    let enough = 4 * (34 + 4 * 33) + SignedSets::bytes(33, 2);
    for (bytes, fits) in [(enough, true), (enough - 1, false)] {
        let memory = Memory::new(&device, bytes, 0);
        let bench = Bench { memory, ..Bench::new(&device).unwrap() };
        assert_eq!(bench.sign(&case, 2).is_ok(), fits);
    }
}
