//! Waves of candidate pairs over the CUDA kernels, in child processes that find the stand-in
//! driver: it runs the kernels on a CPU and fails when it is told to.

use std::env;
use std::process::Command;

use trommel_kernels::Isa;
use trommel_kernels::cuda::overlap::{Answer, ChunkLimits};
use trommel_kernels::cuda::{Device as Gpu, NoDevice};
use trommel_kernels::overlap::{self, Chunk as PairChunk, Entry, Pairs};
use trommel_kernels::sets::SetStore;
use trommel_shim::{Form, StandIn};

use super::super::{OverlapAnswer, OverlapChunk, OverlapKernel};
use super::*;

/// The device of a child.
const DEVICE: &str = "WAVE_DEVICE";
/// Chunks, pairs a chunk, panes and panes that the device has room for, separated by blanks; one
/// pane unless said.
const SHAPE: &str = "WAVE_SHAPE";

const SETS: u32 = 40;
const PAIRS: u32 = SETS * SETS;
/// Of the sets: an offset each and one more, and 0 to 39 tokens.
const PANE_BYTES: usize = 4 * (41 + 39 * 40 / 2);

/// Sets of ascending tokens, of sizes 0 to 39.
fn pane() -> SetStore {
    let (mut offsets, mut tokens) = (vec![0], Vec::new());
    for set in 0..SETS {
        let step = 1 + set % 3;
        tokens.extend((0..set).map(|token| token * step));
        offsets.push(u32::try_from(tokens.len()).unwrap());
    }
    SetStore::new(offsets, tokens)
}

/// Pairs of sets: number n is probe n / 40 with candidate n % 40. Probes are of the first pane,
/// candidates of one pane after the other, a chunk each; all of them have equal sets.
struct PairNumbers {
    panes: Arc<[SetStore]>,
    size: usize,
    pane: usize,
    entries: Vec<Entry>,
    candidates: Vec<u32>,
    required: Vec<u32>,
    answer: OverlapAnswer,
}

impl PairNumbers {
    fn push(&mut self, number: u32) {
        let (probe, candidate) = (number / SETS, number % SETS);
        self.candidates.push(candidate);
        self.required.push(probe.min(candidate) / 2);
        let end = u32::try_from(self.candidates.len()).unwrap();
        match self.entries.last_mut() {
            Some(entry) if entry.probe == probe => entry.end = end,
            _ => self.entries.push(Entry { probe, begin: end - 1, end }),
        }
    }
}

impl WaveChunk for PairNumbers {
    fn items(&self) -> usize {
        self.candidates.len()
    }

    fn bytes(&self) -> usize {
        12 * self.candidates.len() + 12 * self.entries.len()
    }
}

impl NumberChunk for PairNumbers {
    fn fill(&mut self, from: &mut std::vec::IntoIter<u32>) {
        let first = from.as_slice().first().map_or(0, |&number| number as usize);
        self.pane = first / self.size % self.panes.len();
        from.take(self.size).for_each(|number| self.push(number));
    }

    fn is_full(&self) -> bool {
        self.candidates.len() == self.size
    }

    fn numbers(&self) -> u64 {
        self.candidates.len() as u64
    }

    fn answers(&self) -> Vec<u32> {
        self.answer.overlaps.clone()
    }

    fn clear(&mut self) {
        self.entries.clear();
        self.candidates.clear();
        self.required.clear();
    }
}

impl OverlapChunk for PairNumbers {
    fn pairs(&self) -> PairChunk<'_> {
        let Self { entries, candidates, required, .. } = self;
        PairChunk { entries, candidates, required, starts: &[] }
    }

    fn sets(&self) -> [&SetStore; 2] {
        [&self.panes[0], &self.panes[self.pane]]
    }

    fn question(&self) -> Answer {
        Answer::Overlaps
    }

    fn answer(&mut self) -> &mut OverlapAnswer {
        &mut self.answer
    }
}

fn empty_chunk(panes: &Arc<[SetStore]>, size: usize) -> PairNumbers {
    PairNumbers {
        panes: Arc::clone(panes),
        size,
        pane: 0,
        entries: Vec::new(),
        candidates: Vec::new(),
        required: Vec::new(),
        answer: OverlapAnswer::default(),
    }
}

/// The overlaps of all pairs, from the reference.
fn expected(panes: &Arc<[SetStore]>) -> Vec<u32> {
    let mut all = empty_chunk(panes, PAIRS as usize);
    (0..PAIRS).for_each(|number| all.push(number));
    let mut overlaps = vec![0; PAIRS as usize];
    let [probes, candidates] = all.sets().map(SetStore::as_sets);
    overlap::verify(Isa::Scalar, Pairs { probes, candidates, chunk: all.pairs() }, &mut overlaps);
    overlaps
}

/// Runs all pairs through, checks every answer, and says what was counted.
fn run(device: Device, [chunks, size, panes, room]: [usize; 4]) -> Result<Counters, Box<RunError>> {
    let panes: Arc<[SetStore]> = (0..panes).map(|_| pane()).collect();
    let expected = expected(&panes);
    let slots = chunks.saturating_sub(2).clamp(1, 3);
    let limits = ChunkLimits { entries: size, pairs: size, starts: false };
    let kernel = OverlapKernel::new(Isa::Scalar, limits, slots, room * PANE_BYTES);
    let make = move || empty_chunk(&panes, size);
    let wave = Wave { device, chunks };
    let batches = (0..PAIRS).step_by(400).map(|begin| batch(begin..begin + 400));
    let (graph, collected) =
        pipeline(batches, Waves { kernel, make, wave, keeps: false }, Cores::ByLoad);
    let metrics = end(start(graph))?;
    assert!(answers(&collected) == expected, "{device}, {chunks} chunks of {size} pairs");
    Ok(counters(&metrics))
}

#[test]
fn child() {
    let Ok(device) = env::var(DEVICE) else { return };
    let shape = env::var(SHAPE).unwrap();
    let mut numbers = shape.split(' ').map(|number| number.parse().unwrap());
    let shape = [(); 4].map(|()| numbers.next().unwrap_or(1));
    match run(device.parse().unwrap(), shape) {
        Ok(counters) => println!("OUTCOME {counters:?}"),
        Err(error) => println!("OUTCOME {error}"),
    }
}

/// How a child ended: its counters, or its error.
fn outcome(command: &mut Command, device: &str, shape: &str) -> String {
    command.arg(env::current_exe().unwrap());
    command.args(["wave::tests::stand_in::child", "--exact", "--nocapture"]);
    let output = command.env(DEVICE, device).env(SHAPE, shape).output().unwrap();
    let said =
        [output.stdout, output.stderr].map(|said| String::from_utf8_lossy(&said).into_owned());
    let said = said.concat();
    assert!(output.status.success(), "{said}");
    let outcome = said.lines().find_map(|line| line.split_once("OUTCOME "));
    outcome.unwrap_or_else(|| panic!("{said}")).1.to_owned()
}

/// Seconds after which a child is ended: it hangs.
const LIMIT_SECONDS: &str = "120";

fn on(stand_in: &StandIn, device: &str, shape: &str) -> String {
    outcome(stand_in.command("timeout").arg(LIMIT_SECONDS), device, shape)
}

fn has(outcome: &str, name: &str, count: u64) -> bool {
    outcome.contains(&format!("({name:?}, {count})"))
}

#[test]
fn pairs_are_verified_by_the_kernels_in_chunks_of_any_size() {
    let stand_in = StandIn::new(Form::Plain);
    for (shape, waves) in [("1 400", 4), ("3 37", 4 * 11), ("4 1", 1600)] {
        for device in ["auto", "cuda"] {
            let outcome = on(&stand_in, device, shape);
            assert!(has(&outcome, "waves_on_device", waves), "{device} {shape}: {outcome}");
            assert!(has(&outcome, "bytes_from_device", 4 * u64::from(PAIRS)), "{outcome}");
            assert!(outcome.contains("overlap_ppm"), "{outcome}");
        }
        let outcome = on(&stand_in, "cpu", shape);
        assert!(has(&outcome, "waves", waves) && has(&outcome, "waves_on_device", 0), "{outcome}");
    }
}

#[test]
fn sets_are_sent_once_while_there_is_room_and_again_when_there_was_none() {
    let stand_in = StandIn::new(Form::Plain);
    // Probes are of the first pane, so that it is always needed.
    let plain = on(&stand_in, "cuda", "4 100");
    let chunks = bytes_to_device(&plain) - PANE_BYTES;
    for (panes, room, sent) in [(3, 3, 3), (4, 9, 4), (2, 2, 2), (3, 2, 11), (16, 2, 16)] {
        let outcome = on(&stand_in, "cuda", &format!("5 100 {panes} {room}"));
        assert!(has(&outcome, "waves_on_device", 16), "{panes} {room}: {outcome}");
        let bytes = bytes_to_device(&outcome) - chunks;
        assert_eq!(bytes, sent * PANE_BYTES, "{panes} panes, room for {room}: {outcome}");
    }
    let outcome = on(&stand_in, "cuda", "5 100 2 1");
    assert!(outcome.contains("exceed the budget"), "two panes at once: {outcome}");
    let outcome = on(&stand_in, "auto", "5 100 2 1");
    assert!(has(&outcome, "device_full", 1) && has(&outcome, "waves_on_device", 1), "{outcome}");
}

fn bytes_to_device(outcome: &str) -> usize {
    let (_, behind) = outcome.split_once("(\"bytes_to_device\", ").expect("it is counted");
    behind.split_once(')').and_then(|(bytes, _)| bytes.parse().ok()).expect("a number")
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
        let outcome = on(&failing, "auto", "4 40");
        let shown = format!("{call} {nth} {code}: {outcome}");
        assert!(has(&outcome, counter, 1) && has(&outcome, "waves", 40), "{shown}");
        let outcome = on(&failing, "cuda", "4 40");
        let shown = format!("{call} {nth} {code}: {outcome}");
        assert!(
            outcome.starts_with("stage `waves/device` (waves): `device` is \"cuda\""),
            "{shown}"
        );
        assert!(outcome.ends_with(&format!("({code})")), "{shown}");
    }
}

#[test]
fn a_device_without_enough_memory_is_not_used() {
    let small = StandIn::new(Form::Plain).memory_bytes(2_000);
    let outcome = on(&small, "auto", "4 400");
    assert!(has(&outcome, "device_full", 1) && has(&outcome, "waves_on_device", 0), "{outcome}");
    let outcome = on(&small, "cuda", "4 400");
    assert!(outcome.contains("but cuMemAlloc of "), "{outcome}");
}

#[test]
fn without_a_device_auto_is_the_cpu_and_cuda_is_an_error() {
    let mut reasons = vec![("TROMMEL_DEVICE", "cpu", "switched off by TROMMEL_DEVICE=cpu")];
    if Gpu::count() == Err(NoDevice::NoDriver) {
        let reason = "no NVIDIA driver: libcuda.so.1 cannot be loaded";
        reasons.push(("TROMMEL_DEVICE", "auto", reason));
    }
    for (variable, value, reason) in reasons {
        let command = || {
            let mut command = Command::new("timeout");
            command.arg(LIMIT_SECONDS).env(variable, value);
            command
        };
        let outcome_of = |device| outcome(&mut command(), device, "3 100");
        assert!(has(&outcome_of("auto"), "waves_on_device", 0));
        let error = outcome_of("cuda:1");
        assert!(error.ends_with(&format!("`device` is \"cuda:1\", but {reason}")), "{error}");
    }
}
