//! Supports of all pairs of items, by counters over transactions.

use std::sync::Arc;

use trommel_kernels::cuda::supports::{
    RowJob, RowPairLimits, RowPairs, SparseRows, Strip, strip_width, strips,
};
use trommel_kernels::cuda::{Device, Flights, Kernels, Lane, Memory, Slot};
use trommel_kernels::supports::Pair;

use super::super::device;
use super::super::transactions::{self, TransactionCase};
use super::BUDGET;

/// The memory, streams and kernels that run cases on a device.
struct Bench {
    memory: Arc<Memory>,
    lane: Arc<Lane>,
    kernels: Arc<Kernels<RowPairs>>,
}

impl Bench {
    fn new(device: &Device) -> Self {
        Self {
            memory: Memory::new(device, BUDGET, BUDGET),
            lane: Arc::new(Lane::new(device).unwrap()),
            kernels: Kernels::load(device).unwrap(),
        }
    }

    fn upload(&self, case: &TransactionCase) -> Arc<SparseRows> {
        SparseRows::upload(&self.memory, case.lists(), case.transactions()).unwrap()
    }

    /// Asks until no strip is unfinished, with room for `pairs` pairs; returns all pairs in order.
    fn pairs(&self, job: &RowJob<'_>, (width, pairs): (u32, usize)) -> Vec<Pair> {
        let limits = RowPairLimits { strips: job.strips.len(), width, pairs };
        let mut slot = Slot::new(&self.memory, limits).unwrap();
        let (mut found, mut left) = (Vec::new(), job.strips.to_vec());
        while !left.is_empty() {
            let job = RowJob { strips: &left, ..job.clone() };
            slot = slot.submit(&self.lane, &self.kernels, &job).unwrap().collect().unwrap();
            assert!(slot.unfinished().len() < left.len(), "it goes on");
            assert!(slot.pairs().len() <= pairs);
            found.extend_from_slice(slot.pairs());
            left = slot.unfinished().to_vec();
        }
        found.sort_unstable();
        found
    }
}

fn check(cases: &[TransactionCase]) {
    let Some(device) = device() else { return };
    let bench = Bench::new(&device);
    for case in cases {
        let (all, rows) = (case.by_hand(), bench.upload(case));
        let most = all.iter().map(|pair| pair.support).max().unwrap_or(0);
        // Large cases take wider strips, since narrow strips are many.
        let narrow = if case.items < 50 { 1 } else { 65 };
        for (width, least) in [(4096, 1), (narrow, most / 2 + 1)] {
            // Only some of many right items are asked for: a block is slow on the stand-in driver.
            let is_asked = |right: u32| right.is_multiple_of(1 + case.items / 60);
            let strips = strips(case.items, width).filter(|strip| is_asked(strip.right));
            let strips: Vec<Strip> = strips.collect();
            let is_expected = |pair: &Pair| pair.support >= least && is_asked(pair.right);
            let expected: Vec<Pair> = all.iter().copied().filter(is_expected).collect();
            let job = RowJob { strips: &strips, rows: &rows, least };
            for room in [expected.len() / 3, expected.len()] {
                let room = room.max(width as usize);
                let pairs = bench.pairs(&job, (width, room));
                assert!(pairs == expected, "{}, least {least}, width {width}", case.name);
            }
        }
    }
}

#[test]
fn counters_find_the_pairs_of_two_loops() {
    let small = |case: &TransactionCase| case.items < 130 && case.transactions() < 2000;
    let cases: Vec<TransactionCase> = transactions::all().into_iter().filter(small).collect();
    assert!(cases.len() > 6);
    check(&cases);
}

#[test]
fn few_strips_with_long_and_short_transactions() {
    let held = vec![(0..700).collect(), vec![], vec![5], vec![1, 699], (100..357).collect()];
    check(&[
        TransactionCase::new("long transactions".to_owned(), 700, held),
        TransactionCase::of_density(40, 30, 20),
        TransactionCase::of_density(12, 9, 90),
    ]);
}

#[test]
fn strips_as_wide_as_the_device_counts() {
    let Some(device) = device() else { return };
    let bench = Bench::new(&device);
    let width = strip_width(device.properties());
    let items = width + 2;
    let held = vec![vec![0, 1, width, width + 1], vec![0, width, width + 1], vec![1, 2]];
    let case = TransactionCase::new("few of many items".to_owned(), items, held);
    let rows = bench.upload(&case);
    let strips: Vec<Strip> = strips(items, width).filter(|strip| strip.right >= width).collect();
    let job = RowJob { strips: &strips, rows: &rows, least: 1 };
    let pairs = bench.pairs(&job, (width, width as usize));
    let pair = |left, right, support| Pair { left, right, support };
    let expected = [
        pair(0, width, 2),
        pair(0, width + 1, 2),
        pair(1, width, 1),
        pair(1, width + 1, 1),
        pair(width, width + 1, 2),
    ];
    assert_eq!(pairs, expected);
}

#[test]
fn several_chunks_of_strips_are_in_flight() {
    let Some(device) = device() else { return };
    let case = TransactionCase::of_density(150, 90, 30);
    let strips: Vec<Strip> = strips(case.items, 64).collect();
    let limits = RowPairLimits { strips: 10, width: 64, pairs: 640 };
    let mut flights = Flights::<RowPairs>::open(&device, 2, limits, BUDGET).unwrap();
    let rows = SparseRows::upload(flights.memory(), case.lists(), case.transactions()).unwrap();
    let mut pairs = Vec::new();
    for chunk in strips.chunks(10) {
        if !flights.has_room() {
            flights.collect(|slot| pairs.extend_from_slice(slot.pairs())).unwrap();
        }
        flights.submit(&RowJob { strips: chunk, rows: &rows, least: 1 }, 0).unwrap();
    }
    while !flights.is_idle() {
        flights.collect(|slot| pairs.extend_from_slice(slot.pairs())).unwrap();
    }
    pairs.sort_unstable();
    assert!(pairs == case.by_hand());
}

/// Submits a strip of 3 items; `said` is the panic without a device.
fn refused(said: &str, strip: Strip, least: u32, limits: RowPairLimits) {
    let device = device().unwrap_or_else(|| panic!("{said}, and no device"));
    let bench = Bench::new(&device);
    let rows = bench.upload(&TransactionCase::of_density(3, 5, 50));
    let slot = Slot::<RowPairs>::new(&bench.memory, limits).unwrap();
    let job = RowJob { strips: &[strip], rows: &rows, least };
    drop(slot.submit(&bench.lane, &bench.kernels, &job));
}

const LIMITS: RowPairLimits = RowPairLimits { strips: 1, width: 2, pairs: 2 };

#[test]
#[should_panic(expected = "of 3 items: begin <= end <= right is needed")]
fn a_strip_past_the_items_is_refused() {
    let said = "of 3 items: begin <= end <= right is needed";
    refused(said, Strip { right: 3, begin: 1, end: 3 }, 1, LIMITS);
}

#[test]
#[should_panic(expected = "is wider than 1")]
fn a_strip_beyond_the_width_is_refused() {
    let limits = RowPairLimits { width: 1, ..LIMITS };
    refused("is wider than 1", Strip { right: 2, begin: 0, end: 2 }, 1, limits);
}

#[test]
#[should_panic(expected = "room for 1 pairs; 2 are needed")]
fn room_below_a_strip_is_refused() {
    let limits = RowPairLimits { pairs: 1, ..LIMITS };
    refused("room for 1 pairs; 2 are needed", Strip::default(), 1, limits);
}

#[test]
#[should_panic(expected = "the least support is 1")]
fn a_least_support_of_0_of_strips_is_refused() {
    refused("the least support is 1", Strip { right: 2, begin: 0, end: 2 }, 0, LIMITS);
}
