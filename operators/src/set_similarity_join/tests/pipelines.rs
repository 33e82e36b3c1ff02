//! The operator in pipelines: every way to verify, on the CPU and on the stand-in driver, which
//! runs the CUDA kernels on a CPU and fails when a test says so. Chunks stay few when nobody reads
//! rows.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::{UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch, StringArray};
use trommel_engine::channel::QueueLimits;
use trommel_engine::graph::Graph;
use trommel_engine::metrics::{Metrics, StageMetrics};
use trommel_engine::operator::{Counters, OperatorSpec};
use trommel_engine::placement::available_cores;
use trommel_engine::runtime::{RunOptions, Running};
use trommel_shim::{Form, Order, StandIn};

use super::*;
use crate::set_similarity_join::answer::chunk::JoinChunk;
use crate::set_similarity_join::answer::kernel::{JoinFlights, JoinKernel};
use crate::set_similarity_join::join::JoinQuestion;
use crate::set_similarity_join::plan::tiling::Tiling;
use crate::set_similarity_join::plan::verify_plan::PairKernel;
use crate::set_similarity_join::prepare::CollectionProducer;
use crate::set_similarity_join::similarity::Bounds;
use crate::testing::children::{self, Child};
use crate::testing::sets;
use crate::wave::{
    Device, DeviceChoice, DevicePrice, DeviceSession, Filled, Kernel, OnDevice, Producer, Wave,
    WaveChunk,
};
use crate::{Collect, ForEach, Memory};

/// A time that is longer than any run of these tests.
const WATCHDOG: Duration = Duration::from_secs(120);

/// Number of chunk buffers of an operator with one kernel, for any number of chunks sent.
const CHUNKS: u64 = 5;

/// Number of chunk buffers of an operator with a kernel for each core.
fn chunks_max(device: Device) -> u64 {
    Wave::chunks_of(Wave::kernels(device, 0), 3) as u64
}

/// Number of chunks of candidates: chunks that are not tasks.
fn chunks_of_candidates(counters: &Counters) -> u64 {
    counter(counters, "chunks") - counter(counters, "tasks")
}

fn batches(sets: &[BTreeSet<u32>]) -> Vec<RecordBatch> {
    let batch = |(first, sets): (u32, &[BTreeSet<u32>])| {
        let rows = sets::batch((first..).zip(sets.iter().map(Some)));
        let texts: ArrayRef =
            Arc::new((first..).take(sets.len()).map(text).collect::<StringArray>());
        let [id, set] = [0, 1].map(|column| Arc::clone(rows.column(column)));
        let columns = [("id", id, false), ("set", set, true), ("text", texts, true)];
        RecordBatch::try_from_iter_with_nullable(columns).unwrap()
    };
    if sets.is_empty() {
        return vec![batch((0, sets))];
    }
    (0..).step_by(9).zip(sets.chunks(9)).map(batch).collect()
}

/// The carried text of a set: no text, a short text, or more text than a batch should have.
fn text(id: u32) -> Option<String> {
    let repeats = [0, 3, 19, 1, Tuning::SMALL.carried_batch_bytes][id as usize % 5];
    (!id.is_multiple_of(7)).then(|| format!("{id} ").repeat(repeats))
}

/// The operator over these inputs, in front of a sink.
fn start(
    inputs: &[&[BTreeSet<u32>]],
    spec: SetSimilarityJoin,
    sink: impl OperatorSpec + 'static,
    cores: &[usize],
) -> Running {
    let mut graph = Graph::new();
    let join = graph.add("join", spec.tuning(Tuning::SMALL));
    for (number, sets) in inputs.iter().enumerate() {
        let batches = batches(sets);
        let source = Memory::new(batches[0].schema(), batches);
        let source = graph.add(format!("sets{number}"), source);
        graph.connect(source, join);
    }
    graph.cores(join, cores);
    graph.add_after(join, "rows", sink);
    let queue = QueueLimits { batches: 2, bytes: 1 << 20 };
    graph.build().unwrap().start(RunOptions::new().queue(queue)).unwrap()
}

fn end(mut running: Running) -> Result<Metrics, String> {
    assert!(running.wait(WATCHDOG), "the run hangs");
    running.join().map_err(|error| error.to_string())
}

fn counters(stage: &StageMetrics) -> Counters {
    stage.parts.iter().flat_map(|part| part.counters.clone()).collect()
}

fn counter(counters: &Counters, name: &str) -> u64 {
    counters.iter().filter(|(other, _)| *other == name).map(|(_, count)| *count).sum()
}

/// The pairs of the rows, or the number of pairs.
#[derive(Debug, PartialEq, Eq)]
enum Rows {
    Pairs(Vec<(u32, u32, u32)>),
    Count(u64),
}

fn rows(batches: &[RecordBatch], output: JoinOutput) -> Rows {
    if output == JoinOutput::Count {
        return Rows::Count(batches[0].column(0).as_primitive::<UInt64Type>().value(0));
    }
    let mut pairs = Vec::new();
    for batch in batches {
        let column = |index: usize| batch.column(index).as_primitive::<UInt32Type>().values();
        let rows = 0..batch.num_rows();
        pairs.extend(rows.map(|row| (column(0)[row], column(1)[row], column(2)[row])));
    }
    pairs.sort_unstable();
    Rows::Pairs(pairs)
}

/// The inputs and the parameters of a join.
#[derive(Clone, Copy)]
struct Case<'a> {
    question: Question,
    algorithm: JoinAlgorithm,
    inputs: &'a [&'a [BTreeSet<u32>]],
    output: JoinOutput,
    device: Device,
    verify: VerifyMode,
    chunk_bytes: usize,
    /// Cores of the three parts, if the parts are to be pinned.
    cores: &'a [usize],
}

impl std::fmt::Debug for Case<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Case { algorithm, inputs, output, device, verify, chunk_bytes, cores, .. } = self;
        let sets: Vec<usize> = inputs.iter().map(|sets| sets.len()).collect();
        write!(f, "{algorithm:?} {output:?} on {device} {cores:?}, verify {verify:?}, ")?;
        write!(f, "{chunk_bytes} B, {sets:?} sets")
    }
}

impl Case<'_> {
    fn spec(&self) -> SetSimilarityJoin {
        let Question { similarity, numerator, denominator } = self.question;
        SetSimilarityJoin::new(Threshold::new(numerator, denominator).unwrap())
            .similarity(similarity)
            .algorithm(self.algorithm)
            .output(self.output)
            .device(self.device)
            .verify(self.verify)
            .chunk_bytes(self.chunk_bytes)
    }

    /// Runs the join; the rows must be the pairs that counting by hand finds.
    #[track_caller]
    fn run(&self) -> Result<Counters, String> {
        let (sink, collected) = Collect::new();
        let metrics = end(start(self.inputs, self.spec(), sink, self.cores))?;
        let expected = self.question.pairs(self.inputs[0], self.inputs.get(1).copied());
        let expected = match self.output {
            JoinOutput::Count => Rows::Count(expected.len() as u64),
            JoinOutput::Pairs => Rows::Pairs(expected.into_iter().collect()),
        };
        assert_eq!(rows(&collected.batches(), self.output), expected, "{self:?}");
        let counters = counters(metrics.stage("join").unwrap());
        assert_eq!(counter(&counters, "waves"), counter(&counters, "chunks"));
        assert!(counter(&counters, "chunk_buffers") <= chunks_max(self.device), "{counters:?}");
        Ok(counters)
    }
}

const JACCARD_HALF: Question = Question::jaccard(50);

const OUTPUTS: [JoinOutput; 2] = [JoinOutput::Pairs, JoinOutput::Count];

/// Algorithms whose chunks are candidate pairs.
const PAIRWISE: [JoinAlgorithm; 5] = [
    JoinAlgorithm::Auto,
    JoinAlgorithm::AllPairs,
    JoinAlgorithm::PpJoin,
    JoinAlgorithm::PpJoinBitmap,
    JoinAlgorithm::GroupJoin,
];

const CHILD: Child = Child { module: module_path!() };

/// Bytes of a chunk: for one pair, for a few pairs, and for all pairs.
const SIZES: [usize; 3] = [1, 100, 1 << 16];

/// All modes, sizes of chunks, outputs, and one input or two.
fn run_all(device: Device) {
    let (sets, others) = (families(30, 9, 1), families(25, 40, 2));
    let mixed: Vec<_> = sets.iter().step_by(2).chain(&others).cloned().collect();
    let inputs: [&[&[BTreeSet<u32>]]; 3] = [&[&sets], &[&others], &[&sets, &mixed]];
    let modes = VerifyMode::ALL.into_iter().filter(|mode| mode.plan(device).is_ok());
    for (number, verify) in modes.enumerate() {
        for (which, inputs) in inputs.into_iter().enumerate() {
            for (size, chunk_bytes) in SIZES.into_iter().enumerate() {
                for output in OUTPUTS {
                    let algorithm = PAIRWISE[(number + which + size) % PAIRWISE.len()];
                    let (question, cores) = (JACCARD_HALF, &[][..]);
                    let case = Case {
                        question,
                        algorithm,
                        inputs,
                        output,
                        device,
                        verify,
                        chunk_bytes,
                        cores,
                    };
                    let counters = case.run().unwrap();
                    let chunks = chunks_of_candidates(&counters);
                    assert!(counter(&counters, "chunks") > 0, "{case:?}");
                    let is_on_device = verify.plan(device).unwrap().is_device_asked_for();
                    let on_device = counter(&counters, "waves_on_device");
                    if is_on_device && algorithm == JoinAlgorithm::Auto {
                        // With several cores, tasks find the candidates that a device verifies.
                        let has_candidates = counter(&counters, "candidates") > 0;
                        assert_eq!(on_device > 0, has_candidates, "{case:?} {counters:?}");
                    } else {
                        assert_eq!(on_device, if is_on_device { chunks } else { 0 }, "{case:?}");
                    }
                }
            }
        }
    }
}

/// Tiles in chunks of all sizes, so that there is room for one match, for a few matches, and for
/// all matches.
fn run_tiles(device: Device) {
    let sets = families(300, 9, 1);
    let (equal, others) = (vec![BTreeSet::from([2, 3, 5]); 70], families(90, 40, 2));
    let mixed: Vec<_> = sets.iter().step_by(2).chain(&others).cloned().collect();
    let inputs: [&[&[BTreeSet<u32>]]; 4] = [&[&sets], &[&equal], &[&others], &[&sets, &mixed]];
    for (which, inputs) in inputs.into_iter().enumerate() {
        for (chunk_bytes, output) in
            [1, 400, 1 << 16].into_iter().zip(OUTPUTS.iter().cycle().skip(which))
        {
            for output in [JoinOutput::Pairs, *output] {
                let case = Case {
                    question: JACCARD_HALF,
                    algorithm: JoinAlgorithm::GpuSignatures,
                    inputs,
                    output,
                    device,
                    verify: VerifyMode::Auto,
                    chunk_bytes,
                    cores: &[],
                };
                let counters = case.run().unwrap();
                let chunks = chunks_of_candidates(&counters);
                let results = counter(&counters, "results");
                if output == JoinOutput::Pairs && chunk_bytes == 1 {
                    assert!(chunks >= results, "room for one match a chunk: {counters:?}");
                }
                let verified = counter(&counters, "verified");
                assert!(verified >= results && verified == counter(&counters, "candidates"));
                let on_device = if device.is_required() { chunks } else { 0 };
                assert_eq!(counter(&counters, "waves_on_device"), on_device, "{case:?}");
            }
        }
    }
}

/// Small and large sets. `auto` compares the small sets in tiles on a device, and looks up the
/// large sets by postings. Only two large sets have common tokens.
fn of_both_kinds() -> Vec<BTreeSet<u32>> {
    let mut sets = families(60, 9, 1);
    let large = (0..400).map(|set: u32| (0..40).map(|token| 1000 + set * 40 + token).collect());
    sets.extend(large);
    let twin = sets.last().unwrap().iter().map(|&token| if token % 40 == 0 { 1 } else { token });
    let twin = twin.collect();
    sets.push(twin);
    sets
}

/// A join by `auto` on a device, of small sets, of large sets or of both. Returns the number of
/// chunks that the device has answered.
fn run_auto(which: &str) -> Result<u64, String> {
    let mut sets = of_both_kinds();
    sets.retain(|set| match which {
        "small" => set.len() < 20,
        "large" => set.len() > 20,
        _ => true,
    });
    let counters = Case {
        question: JACCARD_HALF,
        algorithm: JoinAlgorithm::Auto,
        inputs: &[&sets],
        output: JoinOutput::Pairs,
        device: Device::Cuda(0),
        verify: VerifyMode::Auto,
        chunk_bytes: 1 << 16,
        cores: &[],
    }
    .run()?;
    Ok(counter(&counters, "waves_on_device"))
}

/// A join by alternative B in chunks of a few pairs, or a join in tiles.
fn run_one(device: Device, algorithm: JoinAlgorithm) -> Result<Counters, String> {
    let sets = families(30, 9, 1);
    let has_tiles = algorithm == JoinAlgorithm::GpuSignatures;
    Case {
        question: JACCARD_HALF,
        algorithm,
        inputs: &[&sets],
        output: JoinOutput::Pairs,
        device,
        verify: if has_tiles { VerifyMode::Auto } else { VerifyMode::B },
        chunk_bytes: if has_tiles { 1 } else { 200 },
        cores: &[],
    }
    .run()
}

#[test]
fn child() {
    let Some((device, case)) = children::case() else { return };
    match case.as_str() {
        "all" => {
            run_all(device);
            run_tiles(device);
            children::tell("fine");
        }
        "until it fails" => run_tiles_until_it_fails(),
        "has tiles" => children::tell(has_tiles()),
        which @ ("small" | "large" | "both") => children::tell_end(run_auto(which)),
        "tiles" => children::tell_end(run_one(device, JoinAlgorithm::GpuSignatures)),
        _ => children::tell_end(run_one(device, JoinAlgorithm::AllPairs)),
    }
}

#[test]
fn every_mode_gives_the_pairs_of_counting_by_hand_on_the_cpu() {
    run_all(Device::Cpu);
}

#[test]
fn tiles_give_the_pairs_of_counting_by_hand_on_the_cpu() {
    run_tiles(Device::Cpu);
}

#[test]
fn every_mode_gives_the_pairs_of_counting_by_hand_on_a_device() {
    for (order, device) in
        [(Order::Forward, "cuda"), (Order::Reverse, "cuda"), (Order::Random(3), "auto")]
    {
        let stand_in = StandIn::new(Form::Plain).order(order);
        assert_eq!(CHILD.on(&stand_in, device, "all"), "fine");
    }
}

#[test]
fn several_devices_give_the_pairs_of_counting_by_hand() {
    for (devices, device) in [(1, "cuda:all"), (2, "cuda:0,cuda:1"), (3, "cuda:all")] {
        let stand_in = StandIn::new(Form::Plain).devices(devices);
        assert_eq!(CHILD.on(&stand_in, device, "all"), "fine");
    }
}

#[test]
fn a_lost_device_leaves_its_tiles_and_pairs_to_the_others() {
    for (nth, lost, which) in [1, 2, 5].into_iter().flat_map(|nth| {
        [(nth, 0, "tiles"), (nth, 1, "tiles"), (nth, 0, "pairs"), (nth, 1, "pairs")]
    }) {
        let losing = StandIn::new(Form::Plain).devices(2).failure_on(lost, "kernel", nth, 719);
        let outcome = CHILD.on(&losing, "cuda:all", which);
        assert!(outcome.starts_with('['), "{nth} {lost} {which}: {outcome}");
        let losing = losing.failure_on(1 - lost, "kernel", 2, 719);
        let outcome = CHILD.on(&losing, "cuda:all", which);
        let is_named = outcome.contains("`device` is \"cuda:all\", ");
        assert!(is_named && outcome.ends_with("(719)"), "{nth} {lost} {which}: {outcome}");
    }
}

#[test]
fn a_device_that_fails_is_left_if_it_may_and_named_if_not() {
    for (call, nth, code, name, which) in [
        ("kernel", 3, 719, "device_lost", "pairs"),
        ("cuMemcpyHtoDAsync_v2", 9, 2, "device_full", "pairs"),
        ("cuModuleLoadData", 1, 1, "device_refused", "pairs"),
        ("kernel", 1, 719, "device_lost", "tiles"),
        ("kernel", 4, 719, "device_lost", "tiles"),
        ("cuMemcpyDtoHAsync_v2", 9, 2, "device_full", "tiles"),
        ("cuModuleLoadData", 1, 1, "device_refused", "tiles"),
    ] {
        let failing = StandIn::new(Form::Plain).failure(call, nth, code);
        // `auto` would not open a device for so few tiles.
        if which == "pairs" {
            let auto = CHILD.on(&failing, "auto", which);
            assert!(auto.contains(&format!("({name:?}, 1)")), "{auto}");
        }
        let cuda = CHILD.on(&failing, "cuda", which);
        let named = "stage `join/verify` (set_similarity_join): `device` is \"cuda\"";
        assert!(cuda.starts_with(named) && cuda.ends_with(&format!("({code})")), "{cuda}");
    }
}

#[test]
fn auto_opens_only_the_kernels_that_it_has_chunks_for() {
    let plain = StandIn::new(Form::Plain);
    let run = |stand_in: &StandIn, which| CHILD.on(stand_in, "cuda", which);
    // The kernels for candidates are one module, and the kernels for tiles are another module.
    let second_fails = plain.clone().failure("cuModuleLoadData", 2, 1);
    let first_fails = plain.clone().failure("cuModuleLoadData", 1, 1);
    for which in ["small", "large"] {
        assert_eq!(run(&second_fails, which), "1", "{which}");
        assert!(run(&first_fails, which).ends_with("(1)"), "{which}");
    }
    assert_eq!(run(&plain, "both"), "2");
    let failed = run(&second_fails, "both");
    assert!(failed.contains("`device` is \"cuda\", and it failed: cuModuleLoad"), "{failed}");
}

/// Whether `auto` makes tiles of sets that find 225 million postings.
fn has_tiles() -> bool {
    let set = BTreeSet::from([1, 2, 3, 4]);
    let collection = collect(&vec![set; 15_000], None);
    let bounds = Bounds::new(Similarity::Jaccard, Threshold::new(1, 2).unwrap()).unwrap();
    Tiling::of(DeviceChoice::new(DeviceSession::new(Device::Auto), DevicePrice::MEASURED))
        .choose(&collection, bounds, 1, None)
        .is_some()
}

#[test]
fn auto_makes_tiles_only_for_a_device_that_can_be_opened() {
    let plain = StandIn::new(Form::Plain);
    let cases = [
        (plain.clone(), "true"),
        (plain.clone().devices(0), "false"),
        (plain.clone().capability(61), "false"),
        (plain.clone().memory_bytes(300_000), "false"),
        (plain.failure("cuDevicePrimaryCtxRetain", 1, 2), "false"),
    ];
    for (stand_in, expected) in cases {
        let said = CHILD.on(&stand_in, "auto", "has tiles");
        assert_eq!(said, expected, "{stand_in:?}");
    }
}

/// Joins tiles on a device until the device fails; the CPU joins the chunk that failed and all
/// later chunks.
fn run_tiles_until_it_fails() {
    let sets = families(60, 9, 1);
    let collection = collect(&sets, None);
    let isa = Isa::selected().unwrap();
    let question = JoinQuestion {
        similarity: Similarity::Jaccard,
        threshold: Threshold::new(1, 2).unwrap(),
        algorithm: JoinAlgorithm::GpuSignatures,
        isa,
        cores: 1,
        search_cores: 1,
        verifies_on_device: false,
        tuning: Tuning::SMALL,
    };
    let mut join =
        SetJoin::in_waves(&collection, question, &Tiling::never(), Planned::default()).unwrap();
    let session = DeviceSession::new(Device::Auto);
    let mut kernel = JoinKernel::new(isa, PairKernel::BySize, 1, 1, 1 << 20);
    let mut pairs = Pairs::new();
    let mut failures = 0;
    let mut chunk = JoinChunk::new(JoinOutput::Pairs);
    let mut goes_on = |chunk: &mut JoinChunk| {
        if chunk.retain_unfinished() {
            return true;
        }
        chunk.clear(1);
        let tiles = join.next_tiles(chunk.tiles_mut());
        tiles.map(|sets| chunk.hold_tiles(sets)).is_some()
    };
    let mut device = None;
    while goes_on(&mut chunk) {
        let answer = |device: &mut JoinFlights, chunk: &mut _| {
            device.submit(chunk)?;
            while !device.is_done()? {}
            device.collect(chunk)
        };
        let device = device.get_or_insert_with(|| kernel.open(&session, Some(&chunk)).ok());
        let answered = device.as_mut().map(|device| answer(device, &mut chunk));
        if !matches!(answered, Some(Ok(_))) {
            failures += u64::from(device.take().is_some());
            kernel.run(&mut chunk);
        }
        for found in chunk.matches() {
            let SimilarPair { left, right, overlap, .. } = found.pair(Similarity::Jaccard);
            assert!(pairs.insert((left, right, overlap)), "{left}, {right} twice");
        }
    }
    assert_eq!(pairs, JACCARD_HALF.pairs(&sets, None));
    children::tell(failures);
}

#[test]
fn a_chunk_of_tiles_that_a_device_fails_on_is_answered_on_the_cpu() {
    for (call, nth) in [("kernel", 2), ("kernel", 7), ("cuMemcpyDtoHAsync_v2", 8)] {
        let failing = StandIn::new(Form::Plain).failure(call, nth, 719);
        let said = CHILD.on(&failing, "cuda", "until it fails");
        assert_eq!(said, "1", "{call} {nth}");
    }
}

/// A join of both kinds of sets, with chunks of tiles for a device that is lost after `answered`
/// chunks. Pairs are filled before the first chunk of tiles lands, as by a fast prepare.
fn pairs_without_a_device(answered: usize) -> Pairs {
    let sets = of_both_kinds();
    let collection = collect(&sets, None);
    let isa = Isa::selected().unwrap();
    let question = asked(JACCARD_HALF, JoinAlgorithm::Auto, isa);
    let join = SetJoin::in_waves(
        &collection,
        question,
        &Tiling::of(DeviceChoice::new(DeviceSession::new(Device::Cuda(0)), DevicePrice::MEASURED)),
        Planned::default(),
    )
    .unwrap();
    let mut producer = CollectionProducer::of_join(join, question);
    let mut kernel = JoinKernel::new(isa, PairKernel::BySize, 1 << 9, 1, 1 << 20);
    let mut pairs = Pairs::new();
    let (mut begun, mut in_wave) = (0, VecDeque::new());
    loop {
        let mut chunk = JoinChunk::new(JoinOutput::Pairs);
        chunk.clear(1 << 9);
        let is_filled = producer.fill(&mut chunk).unwrap() == Filled::Chunk;
        if is_filled {
            in_wave.push_back(chunk);
        }
        if is_filled && in_wave.len() < 9 {
            continue;
        }
        let Some(mut chunk) = in_wave.pop_front() else { return pairs };
        begun += usize::from(chunk.has_tiles());
        if !(begun > answered && kernel.give_back(&mut chunk)) {
            kernel.run(&mut chunk);
        }
        for found in chunk.matches() {
            let SimilarPair { left, right, overlap, .. } = found.pair(Similarity::Jaccard);
            assert!(pairs.insert((left, right, overlap)), "{left}, {right} twice");
        }
        chunk.release();
        producer.landed(&mut chunk);
        if chunk.retain_unfinished() {
            assert!(answered > 0, "no tiles are left of the plan for the device");
            in_wave.push_front(chunk);
        }
    }
}

#[test]
fn tiles_of_a_device_that_is_lost_are_planned_anew() {
    let expected = JACCARD_HALF.pairs(&of_both_kinds(), None);
    for answered in [0, 1, 3] {
        assert_eq!(pairs_without_a_device(answered), expected, "after {answered} chunks");
    }
}

#[test]
fn columns_go_along_in_batches_of_a_bounded_size() {
    let sets = families(60, 9, 1);
    let others: Vec<_> = sets.iter().skip(20).rev().cloned().collect();
    let spec = || SetSimilarityJoin::new(Threshold::new(1, 2).unwrap()).carry(["text", "set"]);
    let windowed = spec().window(JoinWindow::sets(100));
    let inputs: [&[&[BTreeSet<u32>]]; 2] = [&[&sets], &[&sets, &others]];
    for (inputs, spec) in [(inputs[0], spec()), (inputs[1], spec()), (inputs[0], windowed)] {
        let (sink, collected) = Collect::new();
        let metrics = end(start(inputs, spec, sink, &[])).unwrap();
        let batches = collected.batches();
        let all = rows(&batches, JoinOutput::Pairs);
        let expected = JACCARD_HALF.pairs(inputs[0], inputs.get(1).copied());
        assert_eq!(all, Rows::Pairs(expected.into_iter().collect()));
        let counters = counters(metrics.stage("join").unwrap());
        assert!(batches.len() as u64 > 2 * chunks_of_candidates(&counters), "{counters:?}");
        for batch in &batches {
            let mut bytes = 0;
            for (side, (id, input)) in
                [(0, inputs[0]), (1, inputs[inputs.len() - 1])].into_iter().enumerate()
            {
                let ids = batch.column(id).as_primitive::<UInt32Type>().values();
                let texts = batch.column(4 + 2 * side).as_string::<i32>();
                let lists = batch.column(5 + 2 * side).as_list::<i32>();
                bytes += texts.value_data().len() + size_of::<u32>() * lists.values().len();
                for (row, &id) in ids.iter().enumerate() {
                    let set = lists.value(row);
                    let set = set.as_primitive::<UInt32Type>().values().iter().copied();
                    assert_eq!(set.collect::<BTreeSet<_>>(), input[id as usize]);
                    let carried = texts.is_valid(row).then(|| texts.value(row).to_owned());
                    assert_eq!(carried, text(id));
                }
            }
            assert!(batch.num_rows() == 1 || bytes <= Tuning::SMALL.carried_batch_bytes, "{bytes}");
        }
    }
}

#[test]
fn a_small_join_opens_no_device_unless_a_kernel_is_named() {
    let sets = families(30, 9, 1);
    let case = Case {
        question: JACCARD_HALF,
        algorithm: JoinAlgorithm::Auto,
        inputs: &[&sets],
        output: JoinOutput::Pairs,
        device: Device::Auto,
        verify: VerifyMode::Auto,
        chunk_bytes: 1,
        cores: &[],
    };
    let counters = case.run().unwrap();
    assert!(counter(&counters, "chunks") > 10, "{counters:?}");
    assert_eq!(counter(&counters, "waves_on_device"), 0);
    // Without a driver, the CPU also answers this mode.
    Case { verify: VerifyMode::A, ..case }.run().unwrap();
}

#[test]
fn parts_may_be_pinned_to_cores() {
    let sets = families(60, 12, 4);
    let cores = available_cores();
    let (first, last) = (cores[0], cores[cores.len() - 1]);
    for cores in [&[first][..], &[first, last], &[first, last, first], &[last, first, last]] {
        let case = Case {
            question: JACCARD_HALF,
            algorithm: JoinAlgorithm::PpJoin,
            inputs: &[&sets],
            output: JoinOutput::Pairs,
            device: Device::Cpu,
            verify: VerifyMode::Cpu,
            chunk_bytes: 60,
            cores,
        };
        let counters = case.run().unwrap();
        assert!(counter(&counters, "chunks") > 3 * CHUNKS, "{counters:?}");
    }
}

#[test]
fn a_sink_that_does_not_read_stops_the_filter() {
    static IS_SHUT: AtomicBool = AtomicBool::new(true);
    let sets = families(300, 12, 5);
    let sink = ForEach::new(|_| {
        while IS_SHUT.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
        Ok(())
    });
    let cores = available_cores();
    let spec = SetSimilarityJoin::new(Threshold::new(1, 2).unwrap())
        .algorithm(JoinAlgorithm::AllPairs)
        .chunk_bytes(1);
    let mut running = start(&[&sets], spec, sink, &cores[..1]);
    let sent = |running: &Running| running.metrics().stage("join").unwrap().parts[0].batches_out;
    while sent(&running) < CHUNKS {
        assert!(!running.wait(Duration::from_millis(1)), "nobody reads");
    }
    // The pause gives prepare time to send more chunks, which must not happen.
    assert!(!running.wait(Duration::from_millis(50)));
    let most = sent(&running);
    assert!(most < 60, "{most} chunks while nothing was read");
    IS_SHUT.store(false, Ordering::Relaxed);
    let metrics = end(running).unwrap();
    let counters = counters(metrics.stage("join").unwrap());
    assert!(counter(&counters, "chunks") > 300, "{counters:?}");
    assert_eq!(counter(&counters, "chunk_buffers"), CHUNKS);
}

#[test]
fn modes_that_the_device_rules_out_are_named() {
    let refused = |verify: VerifyMode, device: Device| {
        verify.plan(device).expect_err("they do not fit").to_string()
    };
    for mode in [VerifyMode::A, VerifyMode::B, VerifyMode::C, VerifyMode::Warp] {
        let expected = "`device` \"cpu\" allows only \"auto\" and \"cpu\"";
        assert_eq!(refused(mode, Device::Cpu), expected);
    }
    let expected = "`device` \"cuda:1\" allows only \"auto\", \"a\", \"b\", \"c\" and \"warp\"";
    assert_eq!(refused(VerifyMode::Cpu, Device::Cuda(1)), expected);
    let schema = schemars::schema_for!(VerifyMode);
    let text = serde_json::to_string(&schema).unwrap();
    assert!(VerifyMode::ALL.iter().all(|mode| text.contains(&format!("{:?}", mode.name()))));
}

#[test]
fn copies_are_counted_by_arithmetic() {
    let copies = |tokens: &[u32], count| vec![tokens.iter().copied().collect(); count];
    let mut sets: Vec<BTreeSet<u32>> = families(30, 9, 1);
    sets.extend(copies(&[2, 3, 5], 160));
    sets.extend(copies(&[2, 3, 5, 7], 150));
    sets.extend(copies(&[8], 140));
    let others: Vec<_> = sets.iter().step_by(2).cloned().collect();
    let overlap = Question { similarity: Similarity::Overlap, numerator: 2, denominator: 1 };
    for question in [JACCARD_HALF, Question::jaccard(100), overlap] {
        for inputs in [&[&sets[..]][..], &[&sets, &others], &[&others, &sets]] {
            for cores in [&[][..], &[available_cores()[0]]] {
                let case = Case {
                    question,
                    algorithm: JoinAlgorithm::Auto,
                    inputs,
                    output: JoinOutput::Count,
                    device: Device::Cpu,
                    verify: VerifyMode::Auto,
                    chunk_bytes: 400,
                    cores,
                };
                let counters = case.run().unwrap();
                assert!(counter(&counters, "verified") < 2_000, "{case:?}: {counters:?}");
                // If the output is pairs, each pair is verified.
                let pairs = Case { output: JoinOutput::Pairs, ..case };
                assert!(counter(&pairs.run().unwrap(), "verified") > 2_000);
            }
        }
    }
}
