//! The suite that passes on every device, real or not.

mod batmaps;
mod chunk_sum;
mod queries;
pub(crate) mod signatures;
mod sparse;
mod supports;
pub(crate) mod vectors;

use std::sync::Arc;

use trommel_kernels::Isa;
use trommel_kernels::cuda::overlap::{Answer, ChunkLimits, Job, PairOverlap, Policy, Variant};
use trommel_kernels::cuda::{
    CopyTimes, Device, DeviceError, DeviceSets, FailureKind, Flight, Kernels, Lane, Memory,
    MemoryKind, Slot, Times,
};

use super::cases::{self, Case};
use super::device;

/// Bytes of each kind of memory.
const BUDGET: usize = 64 << 20;

/// The memory, streams and kernels that run cases on a device.
pub(crate) struct Bench {
    memory: Arc<Memory>,
    lane: Arc<Lane>,
    kernels: Arc<Kernels<PairOverlap>>,
}

impl Bench {
    pub(crate) fn new(device: &Device) -> Result<Self, DeviceError> {
        Ok(Self {
            memory: Memory::new(device, BUDGET, BUDGET),
            lane: Arc::new(Lane::new(device)?),
            kernels: Kernels::load(device)?,
        })
    }

    pub(crate) fn upload(&self, case: &Case) -> Result<Arc<DeviceSets>, DeviceError> {
        DeviceSets::upload(&self.memory, &case.sets)
    }

    /// Uploads the sets of a case with signatures of `words` words, or without signatures if
    /// `words` is 0.
    fn upload_signed(&self, case: &Case, words: usize) -> Result<Arc<DeviceSets>, DeviceError> {
        let isa = Isa::selected().unwrap();
        DeviceSets::upload_signed(&self.memory, &case.sets, isa, words)
    }

    /// A slot of exactly the size of a case, so that an access past its end is outside of memory.
    pub(crate) fn slot(&self, case: &Case) -> Result<Slot<PairOverlap>, DeviceError> {
        let limits = ChunkLimits {
            entries: case.entries.len(),
            pairs: case.candidates.len(),
            starts: !case.starts.is_empty(),
        };
        let slot = Slot::new(&self.memory, limits)?;
        Ok(slot)
    }

    pub(crate) fn submit(
        &self,
        slot: Slot<PairOverlap>,
        case: &Case,
        sets: &Arc<DeviceSets>,
        (policy, answer): (Policy, Answer),
    ) -> Result<Flight<PairOverlap>, DeviceError> {
        let (chunk, on_device) = (case.chunk(), [sets; 2]);
        let job = Job { chunk, sets: [&case.sets; 2], on_device, policy, answer };
        slot.submit(&self.lane, &self.kernels, &job)
    }
}

/// The usual policy of a kernel; a policy of few threads, blocks and room; a policy of many
/// threads.
fn policies(variant: Variant) -> [Policy; 3] {
    let usual = Policy::of(variant);
    let small = usual.with_grid(usual.grid().with_threads(32).with_blocks_max(1));
    let large = usual.with_grid(usual.grid().with_threads(256));
    [usual, small.with_tokens_max(32), large.with_tokens_max(100)]
}

fn check(variant: Variant) {
    check_signed(variant, 0);
}

/// Checks a kernel with signatures of `words` words.
fn check_signed(variant: Variant, words: usize) {
    let Some(device) = device() else { return };
    let bench = Bench::new(&device).unwrap();
    for case in cases::all() {
        let (overlaps, count) = case.expected();
        let survivors = (words > 0).then(|| case.survivors(words));
        let sets = bench.upload_signed(&case, words).unwrap();
        let mut slot = bench.slot(&case).unwrap();
        for policy in policies(variant) {
            let job = (policy, Answer::Overlaps);
            slot = bench.submit(slot, &case, &sets, job).unwrap().collect().unwrap();
            let shown = format!("{variant} on {}, {policy:?}", case.name);
            assert!(slot.overlaps() == overlaps, "{shown}: other overlaps");
            assert_eq!((slot.count(), slot.survivors()), (None, survivors), "{shown}");
            let job = (policy, Answer::Count);
            slot = bench.submit(slot, &case, &sets, job).unwrap().collect().unwrap();
            assert_eq!((slot.count(), slot.survivors()), (Some(count), survivors), "{shown}");
            assert!(slot.overlaps().is_empty());
        }
    }
}

#[test]
fn thread_per_probe_matches_the_reference() {
    check(Variant::ThreadPerProbe);
}

#[test]
fn block_per_probe_matches_the_reference() {
    check(Variant::BlockPerProbe);
}

#[test]
fn block_per_pair_matches_the_reference() {
    check(Variant::BlockPerPair);
}

#[test]
fn lanes_8_per_pair_matches_the_reference() {
    check(Variant::Lanes8);
}

#[test]
fn lanes_16_per_pair_matches_the_reference() {
    check(Variant::Lanes16);
}

#[test]
fn lanes_32_per_pair_matches_the_reference() {
    check(Variant::Lanes32);
}

#[test]
fn signed_8_per_pair_matches_the_reference() {
    for words in [1, 4] {
        check_signed(Variant::Signed8, words);
    }
}

#[test]
fn signed_32_per_pair_matches_the_reference() {
    for words in [2, 8] {
        check_signed(Variant::Signed32, words);
    }
}

#[test]
#[should_panic(expected = "signatures of 0 and 0 words")]
fn signatures_that_are_missing_are_noticed() {
    let device = device().expect("signatures of 0 and 0 words, on no device");
    let bench = Bench::new(&device).unwrap();
    let case = Case::of_sizes("unsigned", &[5; 9], 18).with_pairs(&[0, 1], 1, 19);
    let sets = bench.upload(&case).unwrap();
    let slot = bench.slot(&case).unwrap();
    let job = (Policy::of(Variant::Signed8), Answer::Overlaps);
    let _ = bench.submit(slot, &case, &sets, job);
}

#[test]
#[should_panic(expected = "the device has other sets than the job")]
fn sets_that_only_look_alike_are_noticed() {
    let device = device().expect("the device has other sets than the job, and there is no device");
    let bench = Bench::new(&device).unwrap();
    let alike = Case::of_sizes("as many tokens", &[4, 6], 18);
    let case = Case::of_sizes("sets", &[5, 5], 18).with_pairs(&[0, 1], 1, 19);
    let sets = bench.upload(&alike).unwrap();
    let slot = bench.slot(&case).unwrap();
    let _ = bench.submit(slot, &case, &sets, (Policy::of(Variant::Lanes8), Answer::Overlaps));
}

/// Sends a case through `slots` slots in chunks of `size` pairs; returns the overlaps of all pairs.
pub(crate) fn waves(
    bench: &Bench,
    case: &Case,
    variant: Variant,
    (slots, size): (usize, usize),
) -> Result<Vec<u32>, DeviceError> {
    let sets = bench.upload(case)?;
    let limits = ChunkLimits { entries: case.entries.len(), pairs: size, starts: true };
    let mut free = Vec::new();
    for _ in 0..slots {
        free.push(Slot::new(&bench.memory, limits)?);
    }
    let used = bench.memory.used_bytes();
    let mut flying = std::collections::VecDeque::<Flight<PairOverlap>>::new();
    let mut overlaps = Vec::new();
    let land = |flight: Flight<PairOverlap>, overlaps: &mut Vec<u32>| {
        while !flight.is_done()? {}
        let slot = flight.collect()?;
        overlaps.extend(slot.overlaps());
        Ok::<_, DeviceError>(slot)
    };
    for begin in (0..case.candidates.len()).step_by(size) {
        let part = case.part(begin, (begin + size).min(case.candidates.len()));
        let slot = match free.pop() {
            Some(slot) => slot,
            None => land(flying.pop_front().expect("no slot is free"), &mut overlaps)?,
        };
        let job = (Policy::of(variant), Answer::Overlaps);
        flying.push_back(bench.submit(slot, &part, &sets, job)?);
    }
    for flight in flying {
        free.push(land(flight, &mut overlaps)?);
    }
    assert_eq!(bench.memory.used_bytes(), used, "buffers were made on the way");
    Ok(overlaps)
}

#[test]
fn a_wave_may_end_anywhere_and_several_are_in_flight() {
    let Some(device) = device() else { return };
    let bench = Bench::new(&device).unwrap();
    let case =
        Case::of_sizes("waves", &[11, 40, 3, 17, 25], 12).with_pairs(&[0, 4, 4, 2, 1], 1, 13);
    let (expected, _) = case.expected();
    for size in [1, 2, 3, 7, 25] {
        for slots in 1..=3 {
            let overlaps = waves(&bench, &case, Variant::Lanes8, (slots, size)).unwrap();
            assert_eq!(overlaps, expected, "{slots} slots, {size} pairs");
        }
    }
}

#[test]
fn a_flight_that_nobody_collects_gives_its_memory_back() {
    let Some(device) = device() else { return };
    let bench = Bench::new(&device).unwrap();
    let case = Case::of_sizes("dropped", &[30; 20], 14).with_pairs(&[0, 1], 1, 15);
    let sets = bench.upload(&case).unwrap();
    let before = bench.memory.used_bytes();
    let slot = bench.slot(&case).unwrap();
    let job = (Policy::of(Variant::Lanes32), Answer::Overlaps);
    drop(bench.submit(slot, &case, &sets, job).unwrap());
    assert_eq!(bench.memory.used_bytes(), before);
}

#[test]
fn a_budget_is_kept_and_named() {
    let Some(device) = device() else { return };
    let limits = ChunkLimits { entries: 10, pairs: 100, starts: true };
    let enough = limits.bytes();
    for (device_bytes, pinned_bytes) in
        [(enough, enough), (enough - 1, enough), (enough, enough - 1)]
    {
        let memory = Memory::new(&device, device_bytes, pinned_bytes);
        let slot = Slot::<PairOverlap>::new(&memory, limits);
        if device_bytes + pinned_bytes == 2 * enough {
            assert_eq!(memory.used_bytes(), (enough, enough), "a slot is as large as announced");
            drop(slot.unwrap());
        } else {
            let error = slot.unwrap_err();
            assert_eq!(error.kind(), FailureKind::OutOfMemory);
            let kind = if device_bytes < enough { MemoryKind::Device } else { MemoryKind::Pinned };
            assert!(matches!(error, DeviceError::Budget { kind: k, .. } if k == kind), "{error}");
        }
        assert_eq!(memory.used_bytes(), (0, 0));
    }
}

#[test]
fn copies_arrive_and_take_time() {
    let Some(device) = device() else { return };
    let times = CopyTimes::measure(&device, 1 << 16, 3).unwrap();
    assert_eq!(times.bytes, 1 << 16);
    for time in [times.host_to_device, times.device_to_host, times.device_to_device] {
        assert!(time > std::time::Duration::ZERO, "{times:?}");
    }
}

#[test]
fn a_chunk_has_times() {
    let Some(device) = device() else { return };
    let bench = Bench::new(&device).unwrap();
    let case = Case::of_sizes("timed", &[100; 50], 16).with_pairs(&[0, 1, 2], 1, 17);
    let sets = bench.upload(&case).unwrap();
    let slot = bench.slot(&case).unwrap();
    assert_eq!(slot.times(), Times::default());
    let job = (Policy::of(Variant::Lanes32), Answer::Overlaps);
    let slot = bench.submit(slot, &case, &sets, job).unwrap().collect().unwrap();
    let zero = std::time::Duration::ZERO;
    assert!(slot.times().kernel > zero && slot.times().copy_in > zero, "{:?}", slot.times());
}
