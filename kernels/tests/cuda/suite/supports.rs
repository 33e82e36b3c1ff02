//! Supports of all pairs of items.

use std::sync::Arc;

use trommel_kernels::cuda::supports::{
    BitRows, Job, PAIRS_MIN, PairLimits, Policy, RowLimits, TILE, TidBlocks, Tile, TilePairs,
    Units, tiles, tiles_of_part,
};
use trommel_kernels::cuda::{
    Device, DeviceError, FailureKind, Flight, Flights, Kernels, Lane, Memory, Slot,
};
use trommel_kernels::supports::Pair;

use super::super::device;
use super::super::transactions::{self, TransactionCase};
use super::BUDGET;

/// The memory, streams and kernels that run cases on a device.
struct Bench {
    memory: Arc<Memory>,
    lane: Arc<Lane>,
    kernels: Arc<Kernels<TilePairs>>,
}

/// Lists of a case by blocks.
struct Cut {
    items: u32,
    transactions: u32,
    offsets: Vec<u32>,
    tids: Vec<u16>,
}

impl Cut {
    fn new(case: &TransactionCase) -> Self {
        let (lists, transactions) = (case.lists(), case.transactions());
        let mut offsets = vec![0; TidBlocks::offsets_len(case.items, transactions)];
        let mut tids = vec![0; lists.tokens().len()];
        TidBlocks::cut(lists, transactions, &mut offsets, &mut tids);
        Self { items: case.items, transactions, offsets, tids }
    }

    fn blocks(&self) -> TidBlocks<'_> {
        TidBlocks::new(self.items, self.transactions, &self.offsets, &self.tids)
    }
}

impl Bench {
    fn new(device: &Device) -> Result<Self, DeviceError> {
        Ok(Self {
            memory: Memory::new(device, BUDGET, BUDGET),
            lane: Arc::new(Lane::new(device)?),
            kernels: Kernels::load(device)?,
        })
    }

    fn upload(&self, case: &TransactionCase) -> Result<Arc<BitRows>, DeviceError> {
        BitRows::upload(&self.memory, &self.kernels, &self.lane, &Cut::new(case).blocks())
    }

    /// A slot of exactly these tiles.
    fn slot(&self, tiles: &[Tile], pairs: usize) -> Slot<TilePairs> {
        Slot::new(&self.memory, PairLimits { tiles: tiles.len(), pairs }).unwrap()
    }

    fn submit(&self, slot: Slot<TilePairs>, job: &Job<'_>) -> Flight<TilePairs> {
        slot.submit(&self.lane, &self.kernels, job).unwrap()
    }

    /// Asks until no tile is unfinished; returns all pairs in order.
    fn pairs(&self, mut slot: Slot<TilePairs>, job: &Job<'_>) -> Vec<Pair> {
        let (mut pairs, mut left) = (Vec::new(), job.tiles.to_vec());
        while !left.is_empty() {
            slot = self.submit(slot, &Job { tiles: &left, ..job.clone() }).collect().unwrap();
            assert!(slot.unfinished().len() < left.len(), "it goes on");
            pairs.extend_from_slice(slot.pairs());
            left = slot.unfinished().to_vec();
        }
        pairs.sort_unstable();
        pairs
    }
}

/// The usual policy, and a policy of one block for each multiprocessor.
fn policies(units: Units) -> [Policy; 2] {
    [Policy::of(units), Policy::of(units).with_blocks_max(1)]
}

fn check(units: Units, cases: &[TransactionCase]) {
    let Some(device) = device() else { return };
    if !units.are_available(device.properties()) {
        return;
    }
    let bench = Bench::new(&device).unwrap();
    for case in cases {
        let all = case.by_hand();
        let tiles: Vec<Tile> = tiles(case.items, TILE).collect();
        let rows = bench.upload(case).unwrap();
        let most = all.iter().map(|pair| pair.support).max().unwrap_or(0);
        for (policy, least) in policies(units).into_iter().zip([1, most / 2 + 1]) {
            let expected: Vec<Pair> =
                all.iter().copied().filter(|pair| pair.support >= least).collect();
            let job = Job { tiles: &tiles, rows: &rows, least, policy };
            let pairs = bench.pairs(bench.slot(&tiles, PAIRS_MIN), &job);
            assert!(pairs == expected, "{}, least {least}, {policy:?}", case.name);
        }
    }
}

#[test]
fn warp_groups_find_the_pairs_of_two_loops() {
    check(Units::WarpGroup, &transactions::all());
    check(Units::WarpGroup, &transactions::around_rings());
}

#[test]
fn tensor_cores_find_the_pairs_of_two_loops() {
    check(Units::Tensor, &transactions::all());
}

#[test]
fn integer_units_find_the_pairs_of_two_loops() {
    check(Units::Integer, &transactions::all());
}

/// Few tiles and stages, for tests that change a kernel.
fn small() -> Vec<TransactionCase> {
    let sizes = [(129, 2049, 30), (130, 3, 100)];
    sizes.iter().map(|size| TransactionCase::of_density(size.0, size.1, size.2)).collect()
}

#[test]
fn small_matrices_on_warp_groups() {
    check(Units::WarpGroup, &small());
}

#[test]
fn small_matrices_on_tensor_cores() {
    check(Units::Tensor, &small());
}

#[test]
fn small_matrices_on_integer_units() {
    check(Units::Integer, &small());
}

#[test]
fn leasts_pass_all_some_and_no_pairs_with_any_room() {
    let Some(device) = device() else { return };
    let bench = Bench::new(&device).unwrap();
    let case = TransactionCase::of_density(257, 20, 80);
    let (rows, all) = (bench.upload(&case).unwrap(), case.by_hand());
    let tiles: Vec<Tile> = tiles(case.items, TILE).collect();
    let policy = Policy::of(Units::best(device.properties()));
    for least in [1, 16, 21] {
        let expected: Vec<Pair> =
            all.iter().copied().filter(|pair| pair.support >= least).collect();
        for room in [PAIRS_MIN, PAIRS_MIN + 1, all.len() - 1, all.len()] {
            let job = Job { tiles: &tiles, rows: &rows, least, policy };
            let slot = bench.submit(bench.slot(&tiles, room), &job).collect().unwrap();
            assert_eq!(slot.unfinished().is_empty(), expected.len() <= room, "{least} {room}");
            assert!(slot.pairs().len() <= room);
            assert!(bench.pairs(slot, &job) == expected, "least {least}, room for {room}");
        }
    }
}

#[test]
fn several_chunks_are_in_flight_over_one_upload() {
    let Some(device) = device() else { return };
    let case = TransactionCase::of_density(300, 600, 30);
    let tiles: Vec<Tile> = tiles(case.items, TILE).collect();
    let limits = PairLimits { tiles: 2, pairs: 2 * PAIRS_MIN };
    let shared = RowLimits::of(&Cut::new(&case).blocks()).bytes();
    let mut flights = Flights::<TilePairs>::open(&device, 2, limits, shared).unwrap();
    let (memory, kernels) = (Arc::clone(flights.memory()), Arc::clone(flights.kernels()));
    let rows =
        BitRows::upload(&memory, &kernels, flights.lane(), &Cut::new(&case).blocks()).unwrap();
    assert_eq!((rows.items(), rows.transactions()), (300, 600));
    let used = memory.used_bytes();
    assert_eq!(used.0, 2 * limits.bytes() + shared, "rows are as large as announced");
    let policy = Policy::of(Units::best(device.properties()));
    let mut pairs = Vec::new();
    for chunk in tiles.chunks(2) {
        if !flights.has_room() {
            flights.collect(|slot| pairs.extend_from_slice(slot.pairs())).unwrap();
        }
        flights.submit(&Job { tiles: chunk, rows: &rows, least: 1, policy }, 0).unwrap();
    }
    while !flights.is_idle() {
        flights.collect(|slot| pairs.extend_from_slice(slot.pairs())).unwrap();
    }
    pairs.sort_unstable();
    assert!(pairs == case.by_hand());
    assert_eq!(memory.used_bytes(), used);
}

/// Loads a case in parts, and counts the tiles of each part while the next parts are under way.
fn pairs_in_parts(
    bench: &Bench,
    rows: &mut BitRows,
    case: &TransactionCase,
    (ends, units): (&[u32], Units),
) -> Vec<Pair> {
    let (mut flights, mut begin) = (Vec::new(), 0);
    let cut = Cut::new(case);
    let load = rows.load_in_parts(&bench.kernels, &bench.lane, &cut.blocks(), ends, |rows| {
        let tiles: Vec<Tile> = tiles_of_part(begin..rows.items(), TILE).collect();
        begin = rows.items();
        let job = Job { tiles: &tiles, rows, least: 1, policy: Policy::of(units) };
        flights.push(bench.submit(bench.slot(&tiles, tiles.len().max(1) * PAIRS_MIN), &job));
        Ok(())
    });
    load.unwrap();
    drop(cut);
    assert_eq!((rows.items(), rows.transactions()), (case.items, case.transactions()));
    let slots = flights.into_iter().map(|flight| flight.collect().unwrap());
    let mut pairs: Vec<Pair> = slots.flat_map(|slot| slot.pairs().to_vec()).collect();
    pairs.sort_unstable();
    pairs
}

#[test]
fn tiles_of_a_part_are_counted_while_the_next_one_is_sent() {
    let Some(device) = device() else { return };
    let bench = Bench::new(&device).unwrap();
    let limits = RowLimits { items: 400, transactions: 70_000, tids: 120_000 };
    let mut rows = BitRows::with_room(&bench.memory, limits).unwrap();
    let units = Units::best(device.properties());
    let cases: [(u32, usize, &[u32]); 5] = [
        (3, 66_000, &[3]),
        (400, 600, &[128, 256, 384, 400]),
        (385, 300, &[256, 256, 384, 385]),
        (256, 1025, &[0, 128, 256]),
        (0, 9, &[0]),
    ];
    for (items, transactions, ends) in cases {
        let case = TransactionCase::of_density(items, transactions, 30);
        let pairs = pairs_in_parts(&bench, &mut rows, &case, (ends, units));
        assert!(pairs == case.by_hand(), "{}, parts {ends:?}", case.name);
    }
}

#[test]
#[should_panic(expected = "ends Some([100, 130]) of parts: whole tiles, ascending")]
fn parts_of_half_tiles_are_refused() {
    let device =
        device().expect("ends Some([100, 130]) of parts: whole tiles, ascending, and none");
    let bench = Bench::new(&device).unwrap();
    let cut = Cut::new(&TransactionCase::of_density(130, 5, 50));
    let mut rows = BitRows::with_room(&bench.memory, RowLimits::of(&cut.blocks())).unwrap();
    let _ = rows.load_in_parts(&bench.kernels, &bench.lane, &cut.blocks(), &[100, 130], |_| Ok(()));
}

#[test]
#[should_panic(expected = "no chunk of these rows is in flight")]
fn rows_are_not_replaced_under_a_chunk() {
    let device = device().expect("no chunk of these rows is in flight, and no device");
    let bench = Bench::new(&device).unwrap();
    let cut = Cut::new(&TransactionCase::of_density(130, 5, 50));
    let mut rows = BitRows::with_room(&bench.memory, RowLimits::of(&cut.blocks())).unwrap();
    let mut kept = Vec::new();
    let load = rows.load_in_parts(&bench.kernels, &bench.lane, &cut.blocks(), &[130], |rows| {
        kept.push(Arc::clone(rows));
        Ok(())
    });
    load.unwrap();
    let _ = rows.load(&bench.kernels, &bench.lane, &cut.blocks());
}

#[test]
fn rows_are_loaded_again_in_the_same_room() {
    let Some(device) = device() else { return };
    let bench = Bench::new(&device).unwrap();
    let limits = RowLimits { items: 200, transactions: 70_000, tids: 120_000 };
    let mut rows = BitRows::with_room(&bench.memory, limits).unwrap();
    assert_eq!((rows.items(), rows.transactions()), (0, 0));
    let used = bench.memory.used_bytes();
    let sizes = [(2, 66_000, 90), (140, 1000, 50), (139, 1000, 50), (0, 10, 1), (3, 513, 70)];
    for (items, transactions, percent) in sizes {
        let case = TransactionCase::of_density(items, transactions, percent);
        rows.load(&bench.kernels, &bench.lane, &Cut::new(&case).blocks()).unwrap();
        assert_eq!(bench.memory.used_bytes(), used, "buffers were made on the way");
        let shared = Arc::new(rows);
        let tiles: Vec<Tile> = tiles(case.items, TILE).collect();
        let policy = Policy::of(Units::Integer);
        let job = Job { tiles: &tiles, rows: &shared, least: 1, policy };
        let slot = bench.slot(&tiles, PAIRS_MIN);
        assert!(bench.pairs(slot, &job) == case.by_hand(), "{}", case.name);
        rows = Arc::into_inner(shared).unwrap();
    }
}

#[test]
fn tids_past_their_block_are_left_out() {
    let Some(device) = device() else { return };
    let bench = Bench::new(&device).unwrap();
    let tids = [3, 9, 10, 511, 65_535, 3, 9, 10, 511, 65_535];
    let lists = TidBlocks::new(2, 10, &[0, 5, 10], &tids);
    let rows = BitRows::upload(&bench.memory, &bench.kernels, &bench.lane, &lists).unwrap();
    let tiles: Vec<Tile> = tiles(2, TILE).collect();
    let job = Job { tiles: &tiles, rows: &rows, least: 1, policy: Policy::of(Units::Integer) };
    let pairs = bench.pairs(bench.slot(&tiles, PAIRS_MIN), &job);
    assert_eq!(pairs, [Pair { left: 0, right: 1, support: 2 }]);
}

#[test]
fn a_budget_of_supports_is_kept() {
    let Some(device) = device() else { return };
    let limits = PairLimits { tiles: 7, pairs: PAIRS_MIN };
    for (bytes, fits) in [(limits.bytes(), true), (limits.bytes() - 1, false)] {
        let memory = Memory::new(&device, bytes, limits.bytes());
        let slot = Slot::<TilePairs>::new(&memory, limits);
        assert_eq!(slot.is_ok(), fits);
    }
    let case = Cut::new(&TransactionCase::of_density(129, 65_537, 1));
    let enough = RowLimits::of(&case.blocks());
    assert_eq!(enough.bytes(), 4 * (2 * 129 + 1) + 2 * case.tids.len() + 256 * (65_536 / 8 + 128));
    for (bytes, fits) in [(enough.bytes(), true), (enough.bytes() - 1, false)] {
        let rows = BitRows::with_room(&Memory::new(&device, bytes, 0), enough);
        assert!(rows.is_ok() == fits);
        assert!(rows.is_ok_and(|rows| rows.items() == 0) == fits);
    }
    let none = Memory::new(&device, 0, 0);
    let error = BitRows::with_room(&none, enough).unwrap_err();
    assert_eq!(error.kind(), FailureKind::OutOfMemory);
}

/// Submits a job about 130 items; `said` is the panic without a device.
fn refused(said: &str, tile: Tile, least: u32, room: usize) {
    let device = device().unwrap_or_else(|| panic!("{said}, and no device"));
    let bench = Bench::new(&device).unwrap();
    let rows = bench.upload(&TransactionCase::of_density(130, 5, 50)).unwrap();
    let job = Job { tiles: &[tile], rows: &rows, least, policy: Policy::of(Units::Integer) };
    drop(bench.submit(bench.slot(&[tile], room), &job));
}

#[test]
#[should_panic(expected = "tile (1, 2) of 2 tiles of items")]
fn a_tile_past_the_items_is_refused() {
    refused("tile (1, 2) of 2 tiles of items", Tile { left: 1, right: 2 }, 1, PAIRS_MIN);
}

#[test]
#[should_panic(expected = "tile (1, 0) of 2 tiles of items: left <= right is needed")]
fn a_tile_below_the_diagonal_is_refused() {
    let said = "tile (1, 0) of 2 tiles of items: left <= right is needed";
    refused(said, Tile { left: 1, right: 0 }, 1, PAIRS_MIN);
}

#[test]
#[should_panic(expected = "the least support is 1")]
fn a_least_support_of_0_is_refused() {
    refused("the least support is 1", Tile::default(), 0, PAIRS_MIN);
}

#[test]
#[should_panic(expected = "room for 16383 pairs; at least 16384 are needed")]
fn room_below_a_tile_is_refused() {
    let said = "room for 16383 pairs; at least 16384 are needed";
    refused(said, Tile::default(), 1, PAIRS_MIN - 1);
}

#[test]
#[should_panic(expected = "a chunk of 2 tiles exceeds 1")]
fn a_chunk_beyond_its_slot_is_refused() {
    let device = device().expect("a chunk of 2 tiles exceeds 1, and no device");
    let bench = Bench::new(&device).unwrap();
    let rows = bench.upload(&TransactionCase::of_density(130, 5, 50)).unwrap();
    let tiles = [Tile::default(); 2];
    let job = Job { tiles: &tiles, rows: &rows, least: 1, policy: Policy::of(Units::Integer) };
    drop(bench.submit(bench.slot(&tiles[..1], PAIRS_MIN), &job));
}

#[test]
#[should_panic(expected = "exceed RowLimits")]
fn lists_beyond_the_room_are_refused() {
    let device = device().expect("exceed RowLimits, and no device");
    let bench = Bench::new(&device).unwrap();
    let limits = RowLimits { items: 1, transactions: 9, tids: 2 };
    let mut rows = BitRows::with_room(&bench.memory, limits).unwrap();
    let _ = rows.load(&bench.kernels, &bench.lane, &TidBlocks::new(1, 9, &[0, 3], &[0, 1, 2]));
}
