//! Waves of candidate pairs over the CUDA kernels, in child processes that find the stand-in
//! driver: that driver runs the kernels on a CPU and fails when a test says so.

use std::sync::Arc;
use std::vec;

use trommel_engine::error::RunError;
use trommel_engine::operator::Counters;
use trommel_kernels::Isa;
use trommel_kernels::overlap::{self, Pairs, Start};
use trommel_kernels::sets::SetStore;
use trommel_shim::{Form, StandIn};

use super::chunk::JoinChunk;
use super::kernel::JoinKernel;
use crate::set_similarity_join::candidates::chunk::CandidateChunk;
use crate::set_similarity_join::candidates::joined_sets::JoinedSets;
use crate::set_similarity_join::parameters::options::JoinOutput;
use crate::set_similarity_join::plan::verify_plan::PairKernel;
use crate::shared::sets::SetBlock;
use crate::testing::children::{self, Child, has};
use crate::wave::tests::{
    AnswerConsumer, Cores, NumberProducer, Waves, answers, batch, end, pipeline, start,
};
use crate::wave::{Device, DevicePrice, Wave};

const CHILD: Child = Child { module: module_path!() };

const SETS: u32 = 40;
const PAIRS: u32 = SETS * SETS;
/// Bytes of the sets: an offset for each set and a last offset, and 0 to 39 tokens for each set.
const PANE_BYTES: usize = 4 * (41 + 39 * 40 / 2);

/// Sets of ascending tokens, of sizes 0 to 39.
fn pane() -> SetBlock {
    let (mut offsets, mut tokens) = (vec![0], Vec::new());
    for set in 0..SETS {
        let step = 1 + set % 3;
        tokens.extend((0..set).map(|token| token * step));
        offsets.push(u32::try_from(tokens.len()).unwrap());
    }
    SetBlock::new(SetStore::new(offsets, tokens), (0..SETS).collect(), None)
}

/// Sets, and the number of pairs of a chunk.
struct Panes {
    panes: Vec<Arc<SetBlock>>,
    size: usize,
}

impl Panes {
    /// Fills the pairs of the next numbers in: number n is probe n / 40 with candidate n % 40.
    /// Probes are from the first pane. The candidates of each chunk are from the next pane; all
    /// panes have equal sets.
    fn fill(&self, chunk: &mut JoinChunk, numbers: &mut vec::IntoIter<u32>) {
        let first = numbers.as_slice().first().map_or(0, |&number| number as usize);
        let candidates = &self.panes[first / self.size % self.panes.len()];
        for number in numbers.take(self.size) {
            push(chunk.pairs_mut(), number);
        }
        if !chunk.pairs_mut().is_empty() {
            let (probes, candidates) = (Arc::clone(&self.panes[0]), Arc::clone(candidates));
            chunk.hold_pairs(JoinedSets::Stream { probes, candidates });
        }
    }
}

fn push(pairs: &mut CandidateChunk, number: u32) {
    let (probe, candidate) = (number / SETS, number % SETS);
    pairs.push(probe, candidate, probe.min(candidate) / 2, Start::default());
}

/// The overlaps of all pairs, from the reference.
fn expected() -> Vec<u32> {
    let mut all = CandidateChunk::with_bytes(usize::MAX);
    (0..PAIRS).for_each(|number| push(&mut all, number));
    let mut overlaps = vec![0; PAIRS as usize];
    let sets = pane();
    let (probes, candidates) = (sets.sets(), sets.sets());
    overlap::verify(Isa::Scalar, Pairs { probes, candidates, chunk: all.chunk() }, &mut overlaps);
    overlaps
}

/// Runs all pairs through, checks every answer, and returns the counters.
fn run(device: Device, [chunks, size, panes, room]: [usize; 4]) -> Result<Counters, Box<RunError>> {
    let panes = Panes { panes: (0..panes).map(|_| Arc::new(pane())).collect(), size };
    let slots = chunks.saturating_sub(2).clamp(1, 3);
    let kernel = JoinKernel::new(
        Isa::Scalar,
        PairKernel::BySize,
        CandidateChunk::bytes_of(size),
        slots,
        room * PANE_BYTES,
    );
    let spec = Waves {
        producer: NumberProducer::new(move |chunk, numbers| panes.fill(chunk, numbers)),
        kernels: vec![kernel; Wave::kernels(device, 1)],
        consumer: AnswerConsumer::new(|chunk: &JoinChunk| chunk.pairs_answer.overlaps.clone()),
        make: || JoinChunk::new(JoinOutput::Pairs),
        wave: Wave { device_price: DevicePrice::FREE, ..Wave::new(device, chunks, usize::MAX) },
    };
    let batches = (0..PAIRS).step_by(400).map(|begin| batch(begin..begin + 400));
    let (graph, collected) = pipeline(batches, spec, Cores::ByLoad);
    let metrics = end(start(graph))?;
    assert!(answers(&collected) == expected(), "{device}, {chunks} chunks of {size} pairs");
    let names = [
        "waves",
        "waves_on_device",
        "bytes_to_device",
        "bytes_from_device",
        "overlap_ppm",
        "devices",
        "devices_failed",
        "device_full",
        "device_lost",
        "device_refused",
    ];
    Ok(names.map(|name| (name, children::counted(&metrics, "waves", name))).into())
}

/// The case is the shape: chunks, pairs a chunk, panes and panes that the device has room for,
/// separated by blanks; one pane unless said.
#[test]
fn child() {
    let Some((device, shape)) = children::case() else { return };
    let mut numbers = shape.split(' ').map(|number| number.parse().unwrap());
    children::tell_end(run(device, [(); 4].map(|()| numbers.next().unwrap_or(1))));
}

#[test]
fn pairs_are_verified_by_the_kernels_in_chunks_of_any_size() {
    let stand_in = StandIn::new(Form::Plain);
    for (shape, waves) in [("1 400", 4), ("3 37", 4 * 11), ("4 1", 1600)] {
        for device in ["auto", "cuda"] {
            let outcome = CHILD.on(&stand_in, device, shape);
            assert!(has(&outcome, "waves_on_device", waves), "{device} {shape}: {outcome}");
            assert!(has(&outcome, "bytes_from_device", 4 * u64::from(PAIRS)), "{outcome}");
            assert!(outcome.contains("overlap_ppm"), "{outcome}");
        }
        let outcome = CHILD.on(&stand_in, "cpu", shape);
        assert!(has(&outcome, "waves", waves) && has(&outcome, "waves_on_device", 0), "{outcome}");
    }
}

#[test]
fn sets_are_sent_once_while_there_is_room_and_again_when_there_was_none() {
    let stand_in = StandIn::new(Form::Plain);
    // Probes are from the first pane, so the first pane is always needed.
    let plain = CHILD.on(&stand_in, "cuda", "4 100");
    let chunks = bytes_to_device(&plain) - PANE_BYTES;
    for (panes, room, sent) in [(3, 3, 3), (4, 9, 4), (2, 2, 2), (3, 2, 11), (16, 2, 16)] {
        let outcome = CHILD.on(&stand_in, "cuda", &format!("5 100 {panes} {room}"));
        assert!(has(&outcome, "waves_on_device", 16), "{panes} {room}: {outcome}");
        let bytes = bytes_to_device(&outcome) - chunks;
        assert_eq!(bytes, sent * PANE_BYTES, "{panes} panes, room for {room}: {outcome}");
    }
    let outcome = CHILD.on(&stand_in, "cuda", "5 100 2 1");
    assert!(outcome.contains("exceed the budget"), "two panes at once: {outcome}");
    let outcome = CHILD.on(&stand_in, "auto", "5 100 2 1");
    assert!(has(&outcome, "device_full", 1) && has(&outcome, "waves_on_device", 1), "{outcome}");
}

#[test]
fn several_devices_verify_as_one() {
    for devices in 1..=3 {
        let stand_in = StandIn::new(Form::Plain).devices(devices);
        for (shape, waves) in [("1 400", 4), ("8 37", 4 * 11), ("9 10 3 3", 160)] {
            let outcome = CHILD.on(&stand_in, "cuda:all", shape);
            let shown = format!("{devices} {shape}: {outcome}");
            let is_right = has(&outcome, "waves", waves) && has(&outcome, "waves_on_device", waves);
            assert!(is_right, "{shown}");
        }
    }
    // Each device that is used has the sets.
    let one = bytes_to_device(&CHILD.on(&StandIn::new(Form::Plain), "cuda", "9 10"));
    let [two, _] = CHILD.check_devices("9 10");
    let others = usize::try_from(children::count_of(&two, "devices")).unwrap() - 1;
    assert_eq!(bytes_to_device(&two), one + others * PANE_BYTES);
}

#[test]
fn a_lost_device_leaves_its_chunks_to_the_others() {
    CHILD.check_losses("8 40", &[1, 2, 11]);
    let two = StandIn::new(Form::Plain).devices(2);
    for (nth, lost) in [1, 2, 11, 20].into_iter().flat_map(|nth| [(nth, 0), (nth, 1)]) {
        let losing = two.clone().failure_on(lost, "kernel", nth, 719);
        let outcome = CHILD.on(&losing, "cuda:0,cuda:1", "8 40");
        let is_right = has(&outcome, "waves", 40) && has(&outcome, "waves_on_device", 40);
        assert!(is_right, "{nth} {lost}: {outcome}");
        let losing = losing.failure_on(1 - lost, "kernel", 3, 719);
        let outcome = CHILD.on(&losing, "cuda:0,cuda:1", "8 40");
        let named = "`device` is \"cuda:0,cuda:1\", and the last device failed: cu";
        assert!(outcome.contains(named) && outcome.ends_with("(719)"), "{nth} {lost}: {outcome}");
    }
}

fn bytes_to_device(outcome: &str) -> usize {
    usize::try_from(children::count_of(outcome, "bytes_to_device")).expect("few bytes")
}

#[test]
fn failures_in_mid_stream_fall_back_if_they_may_and_are_told_if_not() {
    let plain = StandIn::new(Form::Plain);
    let failures = [
        ("kernel", 7, 719, "device_lost"),
        ("cuLaunchKernel", 5, 2, "device_full"),
        ("cuMemcpyHtoDAsync_v2", 20, 2, "device_full"),
        ("cuMemcpyDtoHAsync_v2", 9, 700, "device_lost"),
        ("cuEventQuery", 3, 999, "device_lost"),
        ("cuMemAlloc_v2", 2, 2, "device_full"),
        ("cuModuleLoadData", 1, 1, "device_refused"),
        ("cuStreamCreate", 1, 100, "device_refused"),
    ];
    for (call, nth, code, counter) in failures {
        let failing = plain.clone().failure(call, nth, code);
        let outcome = CHILD.on(&failing, "auto", "4 40");
        let shown = format!("{call} {nth} {code}: {outcome}");
        assert!(has(&outcome, counter, 1) && has(&outcome, "waves", 40), "{shown}");
        let outcome = CHILD.on(&failing, "cuda", "4 40");
        let shown = format!("{call} {nth} {code}: {outcome}");
        assert!(
            outcome.starts_with("stage `waves/verify` (waves): `device` is \"cuda\""),
            "{shown}"
        );
        assert!(outcome.ends_with(&format!("({code})")), "{shown}");
    }
}

#[test]
fn a_device_without_enough_memory_is_not_used() {
    let small = StandIn::new(Form::Plain).memory_bytes(2_000);
    let outcome = CHILD.on(&small, "auto", "4 400");
    assert!(has(&outcome, "device_full", 1) && has(&outcome, "waves_on_device", 0), "{outcome}");
    let outcome = CHILD.on(&small, "cuda", "4 400");
    assert!(outcome.contains("but cuMemAlloc of "), "{outcome}");
}

#[test]
fn without_a_device_auto_is_the_cpu_and_cuda_is_an_error() {
    CHILD.check_without_device("3 100");
}
