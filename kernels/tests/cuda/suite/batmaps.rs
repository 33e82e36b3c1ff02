//! Supports of all pairs of items by batmaps.

use std::sync::Arc;

use trommel_kernels::Isa;
use trommel_kernels::batmap::{BatMaps, Permutations};
use trommel_kernels::cuda::supports::{
    BLOCKS_MAX, DeviceMaps, MAP_PAIRS_MIN, MAP_TILE, MapJob, MapPairs, PairLimits, Tile, tiles,
};
use trommel_kernels::cuda::{Device, DeviceError, Flights, Memory, Slot};
use trommel_kernels::supports::Pair;

use super::super::device;
use super::super::transactions::{self, TransactionCase};

fn maps(case: &TransactionCase) -> Arc<BatMaps<2>> {
    let permutations = Permutations::new(case.transactions(), 0x5EED);
    Arc::new(BatMaps::new(Isa::Scalar, permutations, case.lists()))
}

/// Two slots, each for two thirds of the tiles, with the maps of a case.
fn open(
    device: &Device,
    case: &TransactionCase,
    pairs: usize,
) -> Result<(Flights<MapPairs>, Arc<DeviceMaps>), DeviceError> {
    let tiles = tiles(case.items, MAP_TILE).count() * 2 / 3 + 1;
    let maps = maps(case);
    let shared = DeviceMaps::bytes_of(&maps);
    let flights = Flights::open(device, 2, PairLimits { tiles, pairs }, shared)?;
    let maps = DeviceMaps::upload(flights.memory(), &maps)?;
    Ok((flights, maps))
}

/// Asks until no tile is unfinished, two chunks at a time; returns all pairs in order.
fn pairs(
    flights: &mut Flights<MapPairs>,
    maps: &Arc<DeviceMaps>,
    (least, blocks_max): (u32, u32),
) -> Vec<Pair> {
    let items = u32::try_from(maps.len()).unwrap();
    let mut left: Vec<Tile> = tiles(items, MAP_TILE).collect();
    let mut pairs = Vec::new();
    while !left.is_empty() {
        let asked = left.len();
        for tiles in left.chunks(asked.div_ceil(2)) {
            flights.submit(&MapJob { tiles, maps, least, blocks_max }, 0).unwrap();
        }
        left.clear();
        while !flights.is_idle() {
            let read = |slot: &Slot<MapPairs>| {
                pairs.extend(slot.pairs());
                left.extend_from_slice(slot.unfinished());
            };
            flights.collect(read).unwrap();
        }
        assert!(left.len() < asked, "it goes on");
    }
    pairs.sort_unstable();
    pairs
}

fn check(cases: &[TransactionCase]) {
    let Some(device) = device() else { return };
    for case in cases {
        let all = case.by_hand();
        let most = all.iter().map(|pair| pair.support).max().unwrap_or(0);
        for (least, blocks_max) in [(1, BLOCKS_MAX), (most / 2 + 1, 1), (most + 1, BLOCKS_MAX)] {
            let (mut flights, maps) = open(&device, case, MAP_PAIRS_MIN).unwrap();
            let found = pairs(&mut flights, &maps, (least, blocks_max));
            let expected: Vec<Pair> =
                all.iter().copied().filter(|pair| pair.support >= least).collect();
            assert!(found == expected, "{}, least {least}", case.name);
        }
    }
}

#[test]
fn maps_find_the_pairs_of_two_loops() {
    check(&transactions::all_of_sizes());
}

#[test]
fn small_maps_find_the_pairs_of_two_loops() {
    check(&[TransactionCase::of_sizes(66, 900, &[31, 63, 130])]);
}

#[test]
fn failed_insertions_are_added_on_the_host() {
    let Some(device) = device() else { return };
    let case = TransactionCase::of_sizes(130, 400, &[31]);
    let (mut flights, maps) = open(&device, &case, 1 << 14).unwrap();
    assert!(maps.host().failed_count() > 0, "no insertion failed");
    assert_eq!(pairs(&mut flights, &maps, (1, BLOCKS_MAX)), case.by_hand());
}

#[test]
fn the_bytes_of_maps_are_as_announced() {
    let Some(device) = device() else { return };
    let maps = maps(&TransactionCase::of_sizes(65, 300, &[3, 100]));
    let enough = DeviceMaps::bytes_of(&maps);
    let memory = Memory::new(&device, enough, 0);
    let uploaded = DeviceMaps::upload(&memory, &maps).unwrap();
    assert_eq!((uploaded.len(), uploaded.is_empty()), (65, false));
    assert_eq!(memory.used_bytes(), (enough, 0));
    assert!(DeviceMaps::upload(&Memory::new(&device, enough - 1, 0), &maps).is_err());
}

#[test]
#[should_panic(expected = "room for 4095 pairs; at least 4096 are needed")]
fn room_below_a_tile_of_maps_is_refused() {
    let said = "room for 4095 pairs; at least 4096 are needed";
    let device = device().unwrap_or_else(|| panic!("{said}, and no device"));
    let _ = open(&device, &TransactionCase::of_sizes(2, 5, &[5]), MAP_PAIRS_MIN - 1);
}

#[test]
#[should_panic(expected = "tile (0, 1) of 1 tiles of items: left <= right is needed")]
fn a_tile_past_the_maps_is_refused() {
    let said = "tile (0, 1) of 1 tiles of items: left <= right is needed";
    let device = device().unwrap_or_else(|| panic!("{said}, and no device"));
    let case = TransactionCase::of_sizes(2, 5, &[5]);
    let (mut flights, maps) = open(&device, &case, MAP_PAIRS_MIN).unwrap();
    let tiles = [Tile { left: 0, right: 1 }];
    let job = MapJob { tiles: &tiles, maps: &maps, least: 1, blocks_max: BLOCKS_MAX };
    let _ = flights.submit(&job, 0);
}
