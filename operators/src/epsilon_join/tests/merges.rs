//! Streams whose merges are late: their tasks return after any number of steps, in any order, or
//! never.

use std::time::Instant;

use tempfile::tempdir;
use trommel_engine::batch::{Batch, Origin, Payload};
use trommel_engine::operator::OperatorError;
use trommel_kernels::Isa;
use trommel_kernels::vectors::Epsilon;

use super::*;
use crate::epsilon_join::answer::chunk::{EpsilonChunk, Task};
use crate::epsilon_join::answer::found::Answer;
use crate::epsilon_join::data::built::directory_bytes;
use crate::epsilon_join::data::side::{Side, VectorSource};
use crate::epsilon_join::data::vectors::VectorInput;
use crate::epsilon_join::parameters::rules::Rules;
use crate::epsilon_join::stream::producer::StreamProducer;
use crate::shared::budget::Allowance;
use crate::shared::columns::carry::CarriedColumns;
use crate::shared::columns::ids::IdInput;
use crate::shared::rejected::BadRows;
use crate::shared::state::SnapshotFile;
use crate::shared::window::Extent;
use crate::wave::{Filled, Producer, WaveChunk};

const EPSILON: f64 = 1.5;

fn rules(algorithm: EpsilonAlgorithm, memory_max: usize) -> Rules {
    Rules {
        device_memory_max: usize::MAX,
        epsilon: Epsilon::new(EPSILON).unwrap(),
        output: EpsilonOutput::Pairs,
        algorithm,
        isa: Isa::selected().unwrap(),
        kernels: 3,
        memory: Allowance::new(memory_max),
        tuning: Run::SMALL,
    }
}

fn producer(
    rules: Rules,
    dims: i32,
    window: Extent,
    carry: &[usize],
    file: Option<SnapshotFile>,
) -> StreamProducer {
    let input = [batch(&[], 0, dims).schema()];
    let ids = IdInput::bind(&input, None).unwrap().remove(0);
    let vectors = VectorInput::bind(&input, &"vector".into(), None).unwrap().remove(0);
    let carried = CarriedColumns::new(&input[0], &ids, carry.to_vec());
    let source = VectorSource { ids, vectors, carried };
    let side = (Side::new(source, 0), BadRows::new(Some(OnError::Skip), 1));
    StreamProducer::new(rules, window, side, file)
}

/// Chunks with tasks of merges that kernels have.
#[derive(Default)]
struct Late {
    chunks: Vec<EpsilonChunk>,
    /// Number of steps after which a task returns; the numbers are used again and again. If there
    /// is no number, no task returns.
    steps: Vec<usize>,
    step: usize,
}

impl Late {
    fn land(&mut self, producer: &mut StreamProducer) {
        self.step += 1;
        let Some(&wait) = self.steps.get(self.step % self.steps.len().max(1)) else { return };
        if self.step.is_multiple_of(wait + 1) && !self.chunks.is_empty() {
            let mut chunk = self.chunks.swap_remove(wait % self.chunks.len());
            chunk.run(Isa::selected().unwrap(), 0);
            producer.landed(&mut chunk);
        }
    }
}

/// The ids of the pairs of `rows` of `dims`, whose ids begin with `first`, in batches of `len`.
fn drive(
    producer: &mut StreamProducer,
    (rows, dims): (&[Row], i32),
    first: usize,
    len: usize,
    late: &mut Late,
) -> Result<Vec<(u32, u32)>, OperatorError> {
    let mut pairs = Vec::new();
    for (part, number) in rows.chunks(len).zip((first..).step_by(len)) {
        let records = batch(part, u32::try_from(number).unwrap(), dims);
        let origin = Origin { sequence: 0, entered: Instant::now() };
        producer.take(0, Payload::Batch(Batch { records, origin }))?;
        loop {
            late.land(producer);
            let mut chunk = EpsilonChunk::new(EpsilonOutput::Pairs, &Run::SMALL);
            match producer.fill(&mut chunk)? {
                Filled::Chunk if matches!(chunk.task, Task::Join { .. }) => {
                    join(chunk, &mut pairs);
                }
                Filled::Chunk => late.chunks.push(chunk),
                Filled::Nothing => break,
                Filled::Spare => {
                    assert!(producer.fill_spare(&mut chunk)?);
                    late.chunks.push(chunk);
                    break;
                }
                Filled::Waiting => unreachable!("a stream does not wait"),
            }
        }
    }
    Ok(pairs)
}

fn join(mut chunk: EpsilonChunk, pairs: &mut Vec<(u32, u32)>) {
    loop {
        chunk.run(Isa::selected().unwrap(), 0);
        let (Task::Join { sides, .. }, Answer::Pairs(found)) = (&chunk.task, &chunk.answer) else {
            unreachable!("pairs are wanted")
        };
        pairs.extend(found.pairs().iter().map(|pair| {
            (sides.left.ids[pair.left as usize], sides.right().ids[pair.right as usize])
        }));
        if !chunk.retain_unfinished() {
            return;
        }
    }
}

/// The pairs by definition, with positions at most `length` - 1 apart.
fn expected(rows: &[Row], length: u64) -> Vec<(u32, u32)> {
    let positions: BTreeMap<u32, u64> = ids(rows).zip(0..).collect();
    let pairs = oracle(rows, None, EPSILON).into_iter().map(|(left, right, _)| (left, right));
    pairs.filter(|(left, right)| positions[right] - positions[left] < length).collect()
}

fn merges(producer: &StreamProducer) -> u64 {
    producer.counters().iter().find(|(name, _)| *name == "merges").unwrap().1
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn pairs_do_not_depend_on_the_progress_of_merges(
        (dims, rows) in (1_usize..4).prop_flat_map(|dims| (Just(dims), rows(dims, 200))),
        length in prop_oneof![1_u64..150, Just(1 << 40)],
        batch in 1_usize..30,
        steps in prop::collection::vec(0_usize..12, 0..5),
        cut in 0_usize..=100,
    ) {
        let folder = tempdir().unwrap();
        let path = folder.path().join("state");
        let dims = i32::try_from(dims).unwrap();
        let window = Extent::Items(length);
        let cut = cut * rows.len() / 100;
        for algorithm in [EpsilonAlgorithm::Directory, EpsilonAlgorithm::NestedLoop] {
            let rules = rules(algorithm, usize::MAX);
            let mut late = Late { steps: steps.clone(), ..Late::default() };
            let mut whole = producer(rules.clone(), dims, window, &[2], None);
            let mut pairs = drive(&mut whole, (&rows, dims), 0, batch, &mut late).unwrap();
            pairs.sort_unstable();
            prop_assert_eq!(&pairs, &expected(&rows, length));
            // The same stream in two runs; the first run ends in the middle of a merge.
            let file = SnapshotFile::new(&path).unwrap();
            let mut late = Late { steps: steps.clone(), ..Late::default() };
            let mut one = producer(rules.clone(), dims, window, &[], Some(file));
            let mut of_runs = drive(&mut one, (&rows[..cut], dims), 0, batch, &mut late).unwrap();
            one.end().unwrap();
            let mut late = Late { steps: steps.clone(), ..Late::default() };
            let mut two = producer(rules.clone(), dims, window, &[], None);
            two.restore(&std::fs::read(&path).unwrap()).unwrap();
            of_runs.extend(drive(&mut two, (&rows[cut..], dims), cut, batch, &mut late).unwrap());
            of_runs.sort_unstable();
            prop_assert_eq!(of_runs, pairs);
        }
    }
}

#[test]
fn merged_panes_are_few_and_parts_may_expire_before() {
    let rows = clusters(3_000, 2);
    for (length, panes_max) in [(400, 60), (1 << 40, 20)] {
        let rules = rules(EpsilonAlgorithm::Directory, usize::MAX);
        let mut stream = producer(rules, 2, Extent::Items(length), &[], None);
        let mut late = Late { steps: vec![0, 1], ..Late::default() };
        let mut pairs = drive(&mut stream, (&rows, 2), 0, 8, &mut late).unwrap();
        pairs.sort_unstable();
        assert_eq!(pairs, expected(&rows, length));
        let panes = stream.counters().iter().find(|(name, _)| *name == "panes").unwrap().1;
        assert!(merges(&stream) > 20 && panes < panes_max, "{} {panes}", merges(&stream));
    }
    // All parts of the first merge have expired when the merge ends.
    let mut stream =
        producer(rules(EpsilonAlgorithm::Directory, usize::MAX), 2, Extent::Items(40), &[], None);
    let mut never = Late::default();
    drive(&mut stream, (&rows[..100], 2), 0, 8, &mut never).unwrap();
    assert_eq!(merges(&stream), 0);
    never.steps = vec![0];
    drive(&mut stream, (&rows[100..200], 2), 100, 8, &mut never).unwrap();
    assert!(merges(&stream) > 0);
}

#[test]
fn a_merge_gives_way_to_vectors() {
    let rows = clusters(300, 2);
    let window = Extent::Items(1 << 40);
    let bytes = 300 * (8 + 4 + 8) + directory_bytes(300, 2);
    let run = |bytes, steps: &[usize]| {
        let rules = rules(EpsilonAlgorithm::Directory, bytes);
        let mut late = Late { steps: steps.to_vec(), ..Late::default() };
        drive(&mut producer(rules, 2, window, &[], None), (&rows, 2), 0, 8, &mut late)
    };
    for steps in [&[][..], &[2], &[7, 3]] {
        let mut pairs = run(bytes, steps).unwrap();
        pairs.sort_unstable();
        assert_eq!(pairs, expected(&rows, 1 << 40));
        assert!(run(bytes - 1, steps).unwrap_err().to_string().contains("allowed (`memory_max`)"));
    }
}
