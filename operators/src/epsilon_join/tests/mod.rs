//! The operator against a loop over all pairs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt32Type, UInt64Type};
use arrow_array::{
    ArrayRef, FixedSizeListArray, Float32Array, RecordBatch, StringArray, UInt32Array,
};
use arrow_schema::{DataType, Field};
use proptest::prelude::*;
use trommel_engine::graph::{Graph, StageId};
use trommel_engine::metrics::Metrics;
use trommel_engine::placement::available_cores;
use trommel_engine::runtime::RunOptions;

mod division;
mod merges;
mod states;

use super::parameters::tuning::Tuning;
use super::*;
use crate::shared::rejected::OnError;
use crate::testing::bind;
use crate::wave::{Device, DevicePrice};
use crate::{Collect, Memory};

/// A time that is longer than any run of these tests.
const WATCHDOG: Duration = Duration::from_secs(120);

/// Coordinates of a vector; `None` for a null.
pub(super) type Row = Option<Vec<f32>>;

/// A pair of rows, and the bits of their distance.
pub(super) type NearRows = (u32, u32, u64);

/// Pairs by definition.
pub(super) fn oracle(left: &[Row], right: Option<&[Row]>, epsilon: f64) -> Vec<NearRows> {
    let mut pairs = Vec::new();
    for (l, x) in (0_u32..).zip(left) {
        for (r, y) in (0_u32..).zip(right.unwrap_or(left)) {
            let (Some(x), Some(y)) = (x, y) else { continue };
            if right.is_none() && l >= r {
                continue;
            }
            let mut square = 0.0_f64;
            for (x, y) in x.iter().zip(y) {
                let difference = f64::from(*x) - f64::from(*y);
                square += difference * difference;
            }
            if square.sqrt() <= epsilon {
                pairs.push((l, r, square.sqrt().to_bits()));
            }
        }
    }
    pairs
}

/// A batch of rows with ids from `begin` on; the id times ten is carried as text.
fn batch(rows: &[Row], begin: u32, dims: i32) -> RecordBatch {
    let ids = UInt32Array::from_iter_values((begin..).take(rows.len()));
    let names = ids.values().iter().map(|id| (id * 10).to_string());
    let names = StringArray::from_iter_values(names);
    let item = Arc::new(Field::new_list_field(DataType::Float32, true));
    let empty = vec![None; usize::try_from(dims).unwrap()];
    let coordinates: Float32Array = rows
        .iter()
        .flat_map(|row| match row {
            Some(row) => row.iter().copied().map(Some).collect(),
            None => empty.clone(),
        })
        .collect();
    let nulls = rows.iter().map(Option::is_some).collect();
    let vectors = FixedSizeListArray::new(item, dims, Arc::new(coordinates), Some(nulls));
    let columns: [(&str, ArrayRef, bool); 3] = [
        ("id", Arc::new(ids), false),
        ("vector", Arc::new(vectors), true),
        ("name", Arc::new(names), false),
    ];
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

fn memory(rows: &[Row], dims: i32, size: usize) -> Memory {
    let cut = rows.chunks(size).zip((0..).step_by(size));
    let batches: Vec<_> = cut.map(|(part, begin)| batch(part, begin, dims)).collect();
    Memory::new(batch(&[], 0, dims).schema(), batches)
}

/// Settings of the run of a case.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    pub(super) batch: usize,
    pub(super) kernels: usize,
    pub(super) tuning: Tuning,
}

impl Run {
    pub(super) const SMALL: Tuning = Tuning {
        chunk_pairs: 7,
        chunk_parts: 1,
        block_rows: 9,
        block_shift_max: 27,
        device_units: 3,
        device_pairs: 50,
        device_found: 200,
        device_price: DevicePrice::FREE,
        copies_sampled: 1_000,
        copies_min: 1,
        crowd: 1 << 40,
        micro_batch: 8,
        merge_numbers: 40,
        merge_pace: 8,
        carried_batch_bytes: 100,
        batch_rows: 5,
    };

    pub(super) fn small() -> Self {
        Self { batch: 10, kernels: 2, tuning: Self::SMALL }
    }
}

pub(super) type Ended = (Vec<RecordBatch>, Result<Metrics, String>);

pub(super) fn run(spec: EpsilonJoin, inputs: &[&[Row]], dims: i32, run: Run) -> Ended {
    let mut graph = Graph::new();
    let join = graph.add("join", spec.tuning(run.tuning));
    for (rows, name) in inputs.iter().zip(["left", "right"]) {
        let source = graph.add(name, memory(rows, dims, run.batch));
        graph.connect(source, join);
    }
    graph.cores(join, vec![available_cores()[0]; run.kernels]);
    collect(graph, join)
}

/// Runs `graph` to its end, and collects the rows of `join`.
fn collect(mut graph: Graph, join: StageId) -> Ended {
    let (sink, rows) = Collect::new();
    graph.add_after(join, "rows", sink);
    let mut running = match graph.build() {
        Ok(pipeline) => pipeline.start(RunOptions::new()).unwrap(),
        Err(error) => return (Vec::new(), Err(error.to_string())),
    };
    assert!(running.wait(WATCHDOG), "the run hangs");
    let ended = running.join().map_err(|error| error.to_string());
    (rows.batches(), ended)
}

pub(super) fn numbers<'a>(rows: &'a RecordBatch, name: &str) -> &'a [u32] {
    rows.column_by_name(name).unwrap().as_primitive::<UInt32Type>().values()
}

/// The pairs of rows, sorted; checks their carried columns.
pub(super) fn pairs_of(batches: &[RecordBatch]) -> Vec<NearRows> {
    let mut pairs = Vec::new();
    for rows in batches {
        let distances = rows.column_by_name("distance").unwrap().as_primitive::<Float64Type>();
        let (lefts, rights) = (numbers(rows, "left"), numbers(rows, "right"));
        for (row, distance) in distances.values().iter().enumerate() {
            pairs.push((lefts[row], rights[row], distance.to_bits()));
            for (name, id) in [("left_name", lefts[row]), ("right_name", rights[row])] {
                if let Some(names) = rows.column_by_name(name) {
                    assert_eq!(names.as_string::<i32>().value(row), (id * 10).to_string());
                }
            }
        }
    }
    pairs.sort_unstable();
    pairs
}

/// Checks all outputs of a join.
fn check(inputs: &[&[Row]], dims: i32, epsilon: f64, how: Run) {
    let expected = oracle(inputs[0], inputs.get(1).copied(), epsilon);
    for algorithm in [EpsilonAlgorithm::Directory, EpsilonAlgorithm::NestedLoop] {
        let join = || EpsilonJoin::new(epsilon).algorithm(algorithm).on_error(OnError::Skip);
        check_outputs(join, inputs, dims, &expected, how);
    }
}

fn check_outputs(
    join: impl Fn() -> EpsilonJoin,
    inputs: &[&[Row]],
    dims: i32,
    expected: &[NearRows],
    how: Run,
) {
    check_pairs(join(), inputs, dims, expected, how);
    check_count(join(), inputs, dims, expected, how);
    check_partners(join(), inputs, dims, expected, how);
    if inputs.len() == 1 {
        check_first(join(), inputs, dims, expected, how);
        let crowded = Run { tuning: Tuning { crowd: 0, ..how.tuning }, ..how };
        check_first(join(), inputs, dims, expected, crowded);
    }
}

pub(super) fn check_pairs(
    join: EpsilonJoin,
    inputs: &[&[Row]],
    dims: i32,
    expected: &[NearRows],
    how: Run,
) {
    let (rows, ended) = run(join.carry(["name"]), inputs, dims, how);
    ended.unwrap();
    assert_eq!(pairs_of(&rows), expected);
}

pub(super) fn check_count(
    join: EpsilonJoin,
    inputs: &[&[Row]],
    dims: i32,
    expected: &[NearRows],
    how: Run,
) {
    let (rows, ended) = run(join.output(EpsilonOutput::Count), inputs, dims, how);
    ended.unwrap();
    assert_eq!(rows[0].column(0).as_primitive::<UInt64Type>().values(), &[expected.len() as u64]);
}

pub(super) fn check_partners(
    join: EpsilonJoin,
    inputs: &[&[Row]],
    dims: i32,
    expected: &[NearRows],
    how: Run,
) {
    let spec = join.output(EpsilonOutput::Partners).carry(["name"]);
    let (rows, ended) = run(spec, inputs, dims, how);
    ended.unwrap();
    let mut partners: BTreeMap<u32, u32> = ids(inputs[0]).map(|id| (id, 0)).collect();
    for (left, right, _) in expected {
        *partners.get_mut(left).unwrap() += 1;
        if inputs.len() == 1 {
            *partners.get_mut(right).unwrap() += 1;
        }
    }
    let mut found = Vec::new();
    for rows in rows {
        let counts = numbers(&rows, "partners").iter().copied();
        found.extend(numbers(&rows, "id").iter().copied().zip(counts));
        check_names(&rows);
    }
    assert_eq!(found, partners.into_iter().collect::<Vec<_>>());
}

pub(super) fn check_first(
    join: EpsilonJoin,
    inputs: &[&[Row]],
    dims: i32,
    expected: &[NearRows],
    how: Run,
) {
    let spec = join.output(EpsilonOutput::First).carry(["name"]);
    let (rows, ended) = run(spec, inputs, dims, how);
    ended.unwrap();
    rows.iter().for_each(check_names);
    let later: BTreeSet<u32> = expected.iter().map(|pair| pair.1).collect();
    let found: Vec<u32> = rows.iter().flat_map(|rows| numbers(rows, "id").to_vec()).collect();
    let first: Vec<u32> = ids(inputs[0]).filter(|id| !later.contains(id)).collect();
    assert_eq!(found, first);
}

/// The numbers of the rows that are not null.
fn ids(rows: &[Row]) -> impl Iterator<Item = u32> {
    (0_u32..).zip(rows).filter(|(_, row)| row.is_some()).map(|(id, _)| id)
}

fn check_names(rows: &RecordBatch) {
    let names = rows.column_by_name("name").unwrap().as_string::<i32>();
    let ids = numbers(rows, "id").iter();
    assert!(names.iter().flatten().zip(ids).all(|(name, id)| name == (id * 10).to_string()));
}

/// Rows on a grid, so that many distances are equal to epsilon.
fn rows(dims: usize, len: usize) -> impl Strategy<Value = Vec<Row>> {
    let row = prop::collection::vec(0_i8..6, dims..=dims);
    let row = row.prop_map(|row| row.into_iter().map(f32::from).collect::<Vec<f32>>());
    prop::collection::vec(prop::option::weighted(0.95, row), 0..len)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn pairs_are_those_of_all_pairs(
        (dims, left, right) in (1_usize..5).prop_flat_map(|d| (Just(d), rows(d, 60), rows(d, 40))),
        epsilon in prop::sample::select(vec![0.0, 1.0, std::f64::consts::SQRT_2, 2.0, 3.0, 100.0]),
        batch in 1_usize..30,
        kernels in 1_usize..4,
    ) {
        let dims = i32::try_from(dims).unwrap();
        let how = Run { batch, kernels, ..Run::small() };
        check(&[&left], dims, epsilon, how);
        check(&[&left, &right], dims, epsilon, how);
    }
}

/// Checks the outputs of a stream with a window of `length` vectors.
fn check_stream(rows: &[Row], dims: i32, epsilon: f64, length: u64, how: Run) {
    let positions: BTreeMap<u32, u64> = ids(rows).zip(0..).collect();
    let expected: Vec<_> = oracle(rows, None, epsilon)
        .into_iter()
        .filter(|(left, right, _)| positions[right] - positions[left] < length)
        .collect();
    for algorithm in [EpsilonAlgorithm::Directory, EpsilonAlgorithm::NestedLoop] {
        let window = VectorWindow::vectors(length);
        let join = || {
            let join = EpsilonJoin::new(epsilon).algorithm(algorithm).window(window);
            join.on_error(OnError::Skip)
        };
        let (found, ended) = run(join().carry(["name"]), &[rows], dims, how);
        ended.unwrap();
        assert_eq!(pairs_of(&found), expected);
        let (found, ended) = run(join().output(EpsilonOutput::Count), &[rows], dims, how);
        ended.unwrap();
        let count = found[0].column(0).as_primitive::<UInt64Type>().values();
        assert_eq!(count, &[expected.len() as u64]);
        let spec = join().output(EpsilonOutput::First).carry(["name"]);
        let (found, ended) = run(spec, &[rows], dims, how);
        ended.unwrap();
        found.iter().for_each(check_names);
        let later: BTreeSet<u32> = expected.iter().map(|pair| pair.1).collect();
        let found: Vec<u32> = found.iter().flat_map(|rows| numbers(rows, "id").to_vec()).collect();
        let first = positions.keys().copied().filter(|id| !later.contains(id));
        assert_eq!(found, first.collect::<Vec<_>>());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn pairs_of_a_stream_are_those_of_its_windows(
        (dims, rows) in (1_usize..5).prop_flat_map(|dims| (Just(dims), rows(dims, 120))),
        epsilon in prop::sample::select(vec![0.0, 1.0, std::f64::consts::SQRT_2, 100.0]),
        length in 1_u64..100,
        batch in 1_usize..50,
        kernels in 1_usize..4,
    ) {
        let dims = i32::try_from(dims).unwrap();
        check_stream(&rows, dims, epsilon, length, Run { batch, kernels, ..Run::small() });
    }
}

#[test]
fn long_streams_and_their_defaults() {
    let rows = clusters(4_500, 3);
    let how = Run { batch: 500, kernels: 2, tuning: Tuning::default() };
    check_stream(&rows, 3, 0.1, 2_500, how);
    check_stream(&rows[..2_000], 3, 0.1, 1 << 40, how);
    check_stream(&clusters(900, 40), 40, 2.3, 500, Run { batch: 100, ..how });
}

#[test]
fn a_window_of_seconds_that_is_long_enough_holds_all() {
    let rows = clusters(300, 2);
    let spec = EpsilonJoin::new(0.2).window(VectorWindow::seconds(1e6)).carry(["name"]);
    let (found, ended) = run(spec, &[&rows], 2, Run::small());
    ended.unwrap();
    assert_eq!(pairs_of(&found), oracle(&rows, None, 0.2));
}

#[test]
fn the_memory_of_a_window_is_limited() {
    let rows = clusters(2_000, 4);
    let spec = |bytes| EpsilonJoin::new(0.1).window(VectorWindow::vectors(100)).memory_max(bytes);
    let (_, ended) = run(spec(100_000), &[&rows], 4, Run::small());
    ended.unwrap();
    let (_, ended) = run(spec(3_000), &[&rows], 4, Run::small());
    assert!(ended.unwrap_err().contains("3000 allowed (`memory_max`)"));
}

/// Pseudo-random rows around a few centres.
pub(super) fn clusters(len: usize, dims: usize) -> Vec<Row> {
    let mut state = 7_u64;
    let mut unit = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        f32::from(u16::try_from(state >> 48).unwrap()) / 65_536.0
    };
    let centres: Vec<f32> = (0..4 * dims).map(|_| unit() * 10.0).collect();
    let row = |at: usize, unit: &mut dyn FnMut() -> f32| {
        let centre = &centres[at % 4 * dims..][..dims];
        Some(centre.iter().map(|x| x + unit()).collect())
    };
    (0..len).map(|at| row(at, &mut unit)).collect()
}

#[test]
fn larger_joins_and_their_defaults() {
    let (left, right) = (clusters(3_000, 3), clusters(700, 3));
    let how = Run { batch: 1_000, kernels: 2, tuning: Tuning::default() };
    check(&[&left], 3, 0.2, how);
    check(&[&left, &right], 3, 0.2, how);
    check(&[&right, &left], 3, 0.2, Run { kernels: 1, ..how });
    check(&[&clusters(300, 100), &clusters(90, 100)], 100, 3.8, how);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    /// Vectors of few dimensions are in strips; most cases have several strips.
    #[test]
    fn pairs_of_strips_are_those_of_all_pairs(
        dims in 1_usize..=3,
        len in 500_usize..900,
        epsilon in prop::sample::select(vec![0.0, 0.001, 0.01, 0.05]),
        kernels in 1_usize..4,
    ) {
        let how = Run { batch: 200, kernels, ..Run::small() };
        check(&[&clusters(len, dims)], i32::try_from(dims).unwrap(), epsilon, how);
    }
}

/// `auto` begins with a directory, and drops the directory when a sample shows that most pairs
/// pass.
#[test]
fn pairs_of_a_directory_that_does_not_pay_are_the_same() {
    let rows = clusters(8_300, 17);
    let how = Run { batch: 3_000, kernels: 2, tuning: Tuning::default() };
    for inputs in [&[&rows[..]][..], &[&rows[..4_200], &rows]] {
        let count = |algorithm| {
            let spec = EpsilonJoin::new(2.0).algorithm(algorithm).output(EpsilonOutput::Count);
            let (found, ended) = run(spec, inputs, 17, how);
            ended.unwrap();
            found[0].column(0).as_primitive::<UInt64Type>().value(0)
        };
        let expected = count(EpsilonAlgorithm::NestedLoop);
        assert!(expected > 1_000_000, "{expected}");
        assert_eq!(count(EpsilonAlgorithm::Auto), expected);
    }
}

#[test]
fn equal_vectors_make_all_pairs_with_little_memory() {
    let equal: Vec<Row> = vec![Some(vec![1.0, 2.0]); 400];
    check(&[&equal], 2, 0.0, Run { batch: 100, ..Run::small() });
    let (_, ended) = run(EpsilonJoin::new(1.0), &[&equal], 2, Run::small());
    let metrics = ended.unwrap();
    let counters = &metrics.stage("join").unwrap().parts[0].counters;
    assert!(counters.contains(&("pairs_of_copies", 400 * 399 / 2)), "{counters:?}");
}

/// 2 x 10^10 pairs and more of 200,000 vectors with two distinct values: a join pair by pair would
/// take minutes.
#[test]
fn copies_are_joined_once_where_pairs_are_not_asked_for() {
    let len = 200_000_u32;
    let rows: Vec<Row> =
        (0..len).map(|id| Some(vec![if id % 4 == 3 { 9.0 } else { 1.0 }])).collect();
    let how = Run { batch: 10_000, kernels: 2, tuning: Tuning::default() };
    for (epsilon, near) in [(1.0, [149_999, 49_999]), (8.0, [len - 1; 2])] {
        let of = |output| {
            let (found, ended) = run(EpsilonJoin::new(epsilon).output(output), &[&rows], 1, how);
            ended.unwrap();
            found
        };
        let partners = of(EpsilonOutput::Partners);
        let counts = partners.iter().flat_map(|rows| numbers(rows, "partners"));
        assert!((0..len).map(|id| near[usize::from(id % 4 == 3)]).eq(counts.copied()));
        let sum: u64 = (0..len).map(|id| u64::from(near[usize::from(id % 4 == 3)])).sum();
        let count = of(EpsilonOutput::Count);
        assert_eq!(count[0].column(0).as_primitive::<UInt64Type>().value(0), sum / 2);
        let first: Vec<u32> =
            of(EpsilonOutput::First).iter().flat_map(|rows| numbers(rows, "id").to_vec()).collect();
        assert_eq!(first, if epsilon < 8.0 { vec![0, 3] } else { vec![0] });
    }
    let (found, ended) =
        run(EpsilonJoin::new(1.0).output(EpsilonOutput::Count), &[&rows, &rows], 1, how);
    ended.unwrap();
    let count = found[0].column(0).as_primitive::<UInt64Type>().value(0);
    assert_eq!(count, 150_000 * 150_000 + 50_000 * 50_000);
}

/// Windows of 150,000 vectors, with one different vector in 1,000, have 49 billion pairs: a join
/// pair by pair would take minutes.
#[test]
fn copies_of_a_window_are_joined_once() {
    let is_other = |id: u64| id % 1_000 == 999;
    for (len, length, epsilon, batch) in
        [(400_000, 150_000, 0.5, 10_000), (50_000, 20_000, 0.5, 100), (50_000, 20_000, 2.0, 10_000)]
    {
        let rows: Vec<Row> =
            (0..len).map(|id| Some(vec![if is_other(id) { 1.0 } else { 0.0 }])).collect();
        // Each vector is paired with the earlier vectors of its window: with all vectors, or with
        // the equal vectors.
        let before = |id: u64| {
            let first = (id + 1).saturating_sub(length);
            let others = id / 1_000 - first / 1_000;
            let equal = if is_other(id) { others } else { id - first - others };
            if epsilon < 1.0 { equal } else { id - first }
        };
        let expected: u64 = (0..len).map(before).sum();
        let how = Run { batch, kernels: 2, tuning: Tuning::default() };
        let join = || EpsilonJoin::new(epsilon).window(VectorWindow::vectors(length));
        let (found, ended) = run(join().output(EpsilonOutput::Count), &[&rows], 1, how);
        ended.unwrap();
        let count = found[0].column(0).as_primitive::<UInt64Type>().value(0);
        assert_eq!(count, expected);
        let (found, ended) = run(join().output(EpsilonOutput::First), &[&rows], 1, how);
        ended.unwrap();
        let first: Vec<u32> = found.iter().flat_map(|rows| numbers(rows, "id").to_vec()).collect();
        assert_eq!(first, if epsilon < 1.0 { vec![0, 999] } else { vec![0] });
    }
}

#[test]
fn empty_inputs_have_no_pairs() {
    let one: &[Row] = &[Some(vec![1.0])];
    for inputs in [&[&[][..]][..], &[one], &[&[], &[]], &[one, &[]], &[&[], one], &[&[None]]] {
        check(inputs, 1, 1.0, Run::small());
    }
}

#[test]
fn numbers_that_are_not_finite_are_named_or_left_out() {
    let mut rows: Vec<Row> = vec![Some(vec![1.0, 1.0]); 30];
    rows[23] = Some(vec![0.0, f32::NAN]);
    rows[25] = Some(vec![f32::INFINITY, 0.0]);
    let (_, ended) = run(EpsilonJoin::new(1.0), &[&rows], 2, Run::small());
    let error = ended.unwrap_err();
    let expected =
        "row 24 of the input: coordinate 1 of the vector is NaN; expected finite numbers";
    assert!(error.contains(expected), "{error}");
    rows[3] = None;
    let outputs = [EpsilonOutput::Pairs, EpsilonOutput::Count, EpsilonOutput::First];
    for output in outputs.into_iter().chain([EpsilonOutput::Partners]) {
        let (_, ended) = run(EpsilonJoin::new(1.0).output(output), &[&rows], 2, Run::small());
        let error = ended.unwrap_err();
        let expected = "row 4 of the input: the vector is null";
        assert!(error.contains(expected), "{error}");
    }
    let spec = EpsilonJoin::new(1.0).on_error(OnError::Skip);
    let (found, ended) = run(spec, &[&rows], 2, Run::small());
    let metrics = ended.unwrap();
    let counters = &metrics.stage("join").unwrap().parts[0].counters;
    assert!(counters.contains(&("skipped", 3)), "{counters:?}");
    (rows[23], rows[25]) = (None, None);
    assert_eq!(pairs_of(&found), oracle(&rows, None, 1.0));
}

#[test]
fn memory_is_limited_before_it_is_used() {
    let rows = clusters(1_000, 4);
    for bytes in [1_000, 17_000, 40_000] {
        let spec = EpsilonJoin::new(0.1).memory_max(bytes);
        let (_, ended) = run(spec, &[&rows], 4, Run::small());
        let error = ended.unwrap_err();
        assert!(error.contains(&format!("{bytes} allowed (`memory_max`)")), "{error}");
    }
}

/// While a list grows, the old and the new list both count as memory. The numbers of partners that
/// each kernel counts are memory, too.
#[test]
fn lists_that_grow_count_as_memory() {
    let rows = clusters(1_000, 4);
    let bytes = 1_000 * (4 * size_of::<f32>() + size_of::<u32>());
    let join = || EpsilonJoin::new(0.1).algorithm(EpsilonAlgorithm::NestedLoop);
    let ended = |spec: EpsilonJoin, bytes| run(spec.memory_max(bytes), &[&rows], 4, Run::small()).1;
    let error = ended(join(), bytes * 3 / 2).unwrap_err();
    assert!(error.contains("not enough memory for the vectors"), "{error}");
    ended(join(), bytes * 9 / 4).unwrap();
    let partners = || join().output(EpsilonOutput::Partners);
    let error = ended(partners(), bytes * 9 / 4 - 1_000 * 11).unwrap_err();
    assert!(error.contains("not enough memory for the numbers of partners"), "{error}");
    ended(partners(), bytes * 9 / 4).unwrap();
}

#[test]
fn parameters_that_do_not_fit_are_named() {
    let schema = |dims| batch(&[], 0, dims).schema();
    let blamed = |spec: EpsilonJoin, dims: &[i32]| {
        let inputs: Vec<_> = dims.iter().map(|&dims| schema(dims)).collect();
        bind(spec, &inputs).unwrap_err().parameter.unwrap()
    };
    let join = || EpsilonJoin::new(1.0);
    assert_eq!(blamed(EpsilonJoin::new(-1.0), &[2]), "epsilon");
    assert_eq!(blamed(EpsilonJoin::new(f64::NAN), &[2]), "epsilon");
    assert_eq!(blamed(EpsilonJoin::new(f64::INFINITY), &[2]), "epsilon");
    assert_eq!(blamed(join(), &[2, 3]), "vector");
    assert_eq!(blamed(join(), &[4_097]), "vector");
    assert_eq!(blamed(join().vector("name"), &[2]), "vector");
    assert_eq!(blamed(join().carry(["other"]), &[2]), "carry");
    assert_eq!(blamed(join().carry(["name"]).output(EpsilonOutput::Count), &[2]), "carry");
    assert_eq!(blamed(join().carry(["id"]).output(EpsilonOutput::Partners), &[2]), "carry");
    assert_eq!(blamed(join().memory_max(0), &[2]), "memory_max");
    assert_eq!(blamed(join().output(EpsilonOutput::First), &[2, 2]), "output");
    assert_eq!(blamed(join().device_memory_max(0), &[2]), "device_memory_max");
    let directory = || join().algorithm(EpsilonAlgorithm::Directory);
    assert_eq!(blamed(directory().device(Device::Cuda(0)), &[17]), "algorithm");
    let stream = || join().window(VectorWindow::vectors(10));
    assert_eq!(blamed(stream().device(Device::Cuda(1)), &[2]), "device");
    assert_eq!(blamed(stream(), &[2, 2]), "window");
    assert_eq!(blamed(join().window(VectorWindow::vectors(0)), &[2]), "window");
    assert_eq!(blamed(stream().output(EpsilonOutput::Partners), &[2]), "output");
}
