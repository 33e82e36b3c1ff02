//! The memory of a pipeline holds for every stage that keeps its input.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_array::builder::{ListBuilder, UInt32Builder};
use arrow_array::types::Float32Type;
use arrow_array::{ArrayRef, FixedSizeListArray, RecordBatch, UInt32Array};
use arrow_schema::{DataType, Field};
use trommel::epsilon_join::VectorWindow;
use trommel::frequent_pairs::Support;
use trommel::graph::StageId;
use trommel::{
    Collect, ConjunctiveQuery, EpsilonJoin, FrequentPairs, Graph, JoinWindow, Memory, OperatorSpec,
    RunOptions, SetSimilarityJoin, Threshold,
};

use crate::support::watched;

/// Rows of a batch.
const ROWS: u32 = 2_000;
/// Bytes of the pipeline.
const BYTES: usize = 2_000_000;

/// Batches of ids, sets of ten numbers and vectors of two coordinates, all different.
fn batches(count: u32) -> Vec<RecordBatch> {
    let item = Arc::new(Field::new_list_field(DataType::UInt32, false));
    let batch = |number: u32| {
        let ids = number * ROWS..(number + 1) * ROWS;
        let mut sets = ListBuilder::new(UInt32Builder::new()).with_field(Arc::clone(&item));
        for id in ids.clone() {
            let tokens = (0..10).map(|token| id.wrapping_mul(2_654_435_761).rotate_left(token));
            let tokens: BTreeSet<u32> = tokens.collect();
            sets.values().append_slice(&tokens.into_iter().collect::<Vec<_>>());
            sets.append(true);
        }
        let vectors = ids.clone().map(|id| Some([Some(id as f32), Some(0.0)]));
        let vectors = FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(vectors, 2);
        let columns: [(&str, ArrayRef); 3] = [
            ("id", Arc::new(UInt32Array::from_iter_values(ids))),
            ("set", Arc::new(sets.finish())),
            ("vector", Arc::new(vectors)),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    };
    (0..count).map(batch).collect()
}

/// The end of a pipeline of this stage, over this many batches, with so much memory.
fn ended(spec: impl OperatorSpec + 'static, count: u32, bytes: usize) -> Result<(), String> {
    let mut graph = Graph::new();
    graph.memory_max(bytes);
    let batches = batches(count);
    let is_query = spec.operator() == "conjunctive_query";
    let stage = graph.add("stage", spec);
    let rows = graph.add("rows", Memory::new(batches[0].schema(), batches.clone()));
    graph.connect(rows, stage);
    if is_query {
        let queries = graph.add("queries", Memory::new(batches[0].schema(), Vec::new()));
        graph.connect(queries, stage);
    }
    let (sink, _rows) = Collect::new();
    graph.add_after(stage, "sink", sink);
    let topology = graph.build().map_err(|errors| errors.to_string())?;
    let memory = topology.memory().clone();
    let ended = watched(move || topology.run(RunOptions::new()));
    assert_eq!(memory.reserved(), 0, "what the stages had is given back");
    ended.map(|_| ()).map_err(|error| error.to_string())
}

#[test]
fn stages_that_keep_their_input_stay_within_the_memory_of_the_pipeline() {
    let join = || SetSimilarityJoin::new(Threshold::new(4, 5).unwrap());
    let check = |run: &dyn Fn(u32) -> Result<(), String>| {
        run(1).unwrap();
        let error = run(60).unwrap_err();
        let (_, said) = error.split_once("bytes needed in all, ").expect("a stage is full");
        let (allowed, _) = said.split_once(" allowed (`memory_max`)").expect("the parameter");
        // At most a quarter is for the queues, and what the stage has besides is its own.
        let allowed: usize = allowed.parse().unwrap();
        assert!((BYTES * 3 / 5..=BYTES).contains(&allowed), "{error}");
    };
    check(&|count| ended(join(), count, BYTES));
    check(&|count| ended(join().window(JoinWindow::sets(1_000_000)), count, BYTES));
    check(&|count| ended(FrequentPairs::new(Support::Count(100)), count, BYTES));
    check(&|count| ended(ConjunctiveQuery::new(), count, BYTES));
    check(&|count| ended(EpsilonJoin::new(0.5), 4 * count, BYTES));
    let window = VectorWindow::vectors(10_000_000);
    check(&|count| ended(EpsilonJoin::new(0.5).window(window), 2 * count, BYTES));
}

/// Adds a stage to a graph, after the stage that makes its rows.
type Add = fn(&mut Graph, StageId, &str) -> StageId;

/// The end of a pipeline of stages, each over this many batches of its own, with so much memory.
fn ended_all(stages: &[(Add, u32)], bytes: usize) -> Result<(), String> {
    let mut graph = Graph::new();
    graph.memory_max(bytes);
    for (number, &(add, count)) in stages.iter().enumerate() {
        let batches = batches(count);
        let rows = Memory::new(batches[0].schema(), batches);
        let rows = graph.add(format!("rows {number}"), rows);
        let stage = add(&mut graph, rows, &format!("stage {number}"));
        let (sink, _rows) = Collect::new();
        graph.add_after(stage, format!("sink {number}"), sink);
    }
    let topology = graph.build().map_err(|errors| errors.to_string())?;
    let memory = topology.memory().clone();
    let ended = watched(move || topology.run(RunOptions::new()));
    assert_eq!(memory.reserved(), 0, "what the stages had is given back");
    ended.map(|_| ()).map_err(|error| error.to_string())
}

/// Neither the first stage nor the last one keeps memory that another one needs.
#[test]
fn stages_without_a_number_share_the_memory_as_they_need_it() {
    let join: Add = |graph, rows, name| {
        graph.add_after(rows, name, SetSimilarityJoin::new(Threshold::new(4, 5).unwrap()))
    };
    let pairs: Add =
        |graph, rows, name| graph.add_after(rows, name, FrequentPairs::new(Support::Count(100)));
    // The least power of two that is enough for a stage alone.
    let enough = |add| {
        let fits = |bytes: &usize| ended_all(&[(add, 20)], *bytes).is_ok();
        (18..26).map(|bits| 1 << bits).find(fits).expect("32 MB are enough")
    };
    for [one, other] in [[join, join], [join, pairs]] {
        let bytes = enough(one).max(enough(other));
        for counts in [[20, 1], [1, 20]] {
            ended_all(&[(one, counts[0]), (other, counts[1])], bytes + bytes / 2).unwrap();
        }
        let error = ended_all(&[(one, 60), (other, 60)], bytes).unwrap_err();
        assert!(error.contains("allowed (`memory_max`)"), "{error}");
    }
}

#[test]
fn a_stage_that_is_given_more_than_the_pipeline_has_is_refused() {
    let error = ended(EpsilonJoin::new(0.5).memory_max(3_000_000), 1, BYTES).unwrap_err();
    assert!(error.contains("3000000") && error.contains("2000000 of the 2000000"), "{error}");
    ended(EpsilonJoin::new(0.5).memory_max(BYTES), 1, BYTES).unwrap();
}
