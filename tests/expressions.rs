//! Expressions in pipelines: rows and columns by them, and the rows for which they have no value.

use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, Float32Array, Int64Array, ListArray, RecordBatch, StringArray};
use proptest::prelude::*;
use trommel::{
    Collect, Filter, Graph, Memory, OnError, Registry, RunOptions, Select, Supplied, load_supplied,
};

use crate::support::watched;

fn batch(texts: &[Option<&str>]) -> RecordBatch {
    let texts: ArrayRef = Arc::new(StringArray::from(texts.to_vec()));
    RecordBatch::try_from_iter_with_nullable([("t", texts, true)]).unwrap()
}

/// The values of a text column of all batches.
fn texts(batches: &[RecordBatch], column: &str) -> Vec<Option<String>> {
    let column = |batch: &RecordBatch| -> Vec<Option<String>> {
        let column = batch.column_by_name(column).unwrap().as_string::<i32>();
        column.iter().map(|text| text.map(str::to_owned)).collect()
    };
    batches.iter().flat_map(column).collect()
}

fn registry() -> Registry {
    trommel::registry()
}

#[test]
fn rejected_rows_of_all_stages_come_to_one() {
    let text = r#"{
      "rejected": "bad",
      "stages": [
        { "id": "rows", "operator": "memory" },
        { "id": "numbers", "operator": "select", "inputs": ["rows"],
          "with": { "columns": ["t", "cast(t as int) as n"] } },
        { "id": "inverse", "operator": "filter", "inputs": ["numbers"],
          "with": { "where": "12 // n > 2" } },
        { "id": "good", "operator": "collect", "inputs": ["inverse"] },
        { "id": "bad", "operator": "collect" }
      ]
    }"#;
    let batches = vec![
        batch(&[Some("1"), Some("x"), None, Some("0")]),
        batch(&[Some("5"), Some(""), Some("6")]),
    ];
    let memory = Memory::new(batches[0].schema(), batches);
    let (good, good_rows) = Collect::new();
    let (bad, bad_rows) = Collect::new();
    let supplied = Supplied::new().stage("rows", memory).stage("good", good).stage("bad", bad);
    let pipeline = load_supplied(text, "test", &registry(), &[], supplied).unwrap();
    let metrics = watched(move || pipeline.start().unwrap().join()).unwrap();
    assert_eq!(texts(&good_rows.take(), "t"), [Some("1".to_owned())]);
    let bad = bad_rows.take();
    let mut reasons: Vec<_> = texts(&bad, "column")
        .into_iter()
        .flatten()
        .zip(texts(&bad, "bytes").into_iter().flatten())
        .collect();
    reasons.sort();
    let expected = [
        ("12 // n > 2", r#"{"t":"0","n":0}"#),
        ("cast(t as int)", r#"{"t":""}"#),
        ("cast(t as int)", r#"{"t":"x"}"#),
    ];
    assert_eq!(reasons, expected.map(|(column, bytes)| (column.to_owned(), bytes.to_owned())));
    let counted: u64 = metrics
        .stages
        .iter()
        .flat_map(|stage| &stage.parts[0].counters)
        .filter(|(name, _)| *name == "rejected")
        .map(|(_, count)| count)
        .sum();
    assert_eq!(counted, 3);
}

#[test]
fn rejected_rows_of_joins_come_to_one() {
    let text = r#"{
      "rejected": "bad",
      "stages": [
        { "id": "rows", "operator": "memory" },
        { "id": "near", "operator": "epsilon_join", "inputs": ["rows"],
          "with": { "vector": ["x", "y"], "epsilon": 0.5 } },
        { "id": "bought", "operator": "frequent_pairs", "inputs": ["rows"],
          "with": { "set": "tags", "support": 2 } },
        { "id": "similar", "operator": "set_similarity_join", "inputs": ["rows"],
          "with": { "set": "tags", "threshold": 0.5 } },
        { "id": "end", "operator": "discard", "inputs": ["bought"] },
        { "id": "over", "operator": "discard", "inputs": ["similar"] },
        { "id": "good", "operator": "collect", "inputs": ["near"] },
        { "id": "bad", "operator": "collect" }
      ]
    }"#;
    let floats = |values: [f32; 4]| Arc::new(Float32Array::from(values.to_vec())) as ArrayRef;
    let mut tags = ListBuilder::new(StringBuilder::new());
    for set in [Some(["a", "b"]), Some(["b", "a"]), None, Some(["a", "c"])] {
        tags.append_option(set.map(|set| set.map(Some)));
    }
    let columns = [
        ("x", floats([0.0, 0.25, f32::NAN, 9.0])),
        ("y", floats([0.0, 0.25, 0.0, 9.0])),
        ("tags", Arc::new(tags.finish()) as ArrayRef),
    ];
    let rows = RecordBatch::try_from_iter(columns).unwrap();
    let memory = Memory::new(rows.schema(), vec![rows]);
    let (good, good_rows) = Collect::new();
    let (bad, bad_rows) = Collect::new();
    let supplied = Supplied::new().stage("rows", memory).stage("good", good).stage("bad", bad);
    let pipeline = load_supplied(text, "test", &registry(), &[], supplied).unwrap();
    let metrics = watched(move || pipeline.start().unwrap().join()).unwrap();
    assert_eq!(good_rows.rows(), 1);
    let mut columns: Vec<_> = texts(&bad_rows.take(), "column").into_iter().flatten().collect();
    columns.sort();
    assert_eq!(columns, ["tags", "tags", "x"]);
    let counted = ["near", "bought", "similar"].map(|stage| {
        let stage = metrics.stage(stage).unwrap();
        let named = stage.parts.iter().map(|part| part.inputs.left_out.len()).sum::<usize>();
        (stage.counter("rejected"), named)
    });
    assert_eq!(counted, [(1, 1); 3]);
}

#[test]
fn a_stage_without_an_action_ends_the_run() {
    let mut graph = Graph::new();
    let rows = [batch(&[Some("1"), Some("2")]), batch(&[Some("3"), None, Some("x"), Some("y")])];
    let rows = graph.add("rows", Memory::new(rows[0].schema(), rows));
    let kept = graph.add_after(rows, "kept", Filter::new("cast(t as int) > 0"));
    graph.add_after(kept, "end", Collect::new().0);
    let error = watched(move || graph.build().unwrap().run(RunOptions::new())).unwrap_err();
    let expected = "row 5 of the input: `t`: \"x\" is no Int32";
    assert!(error.to_string().contains(expected), "{error}");
}

#[test]
fn a_row_with_a_long_text_is_unnested_in_small_batches() {
    let values = ListArray::from_iter_primitive::<arrow_array::types::Int64Type, _, _>([
        Some(vec![Some(7); 100]),
        Some(vec![Some(8); 3]),
    ]);
    let long: ArrayRef = Arc::new(StringArray::from(vec!["a".repeat(1 << 20), "b".to_owned()]));
    let rows = RecordBatch::try_from_iter([("t", long), ("l", Arc::new(values) as ArrayRef)]);
    let rows = rows.unwrap();
    let mut graph = Graph::new();
    let rows = graph.add("rows", Memory::new(rows.schema(), vec![rows]));
    let selected = graph.add_after(rows, "values", Select::new(["t", "unnest(l) as value"]));
    let (sink, collected) = Collect::new();
    graph.add_after(selected, "end", sink);
    watched(move || graph.build().unwrap().run(RunOptions::new())).unwrap();
    let counts: Vec<usize> = collected.take().iter().map(RecordBatch::num_rows).collect();
    assert_eq!(counts.iter().sum::<usize>(), 103);
    assert!(counts.iter().all(|&count| count <= 16), "{counts:?}");
}

#[test]
fn an_unread_output_of_rejected_rows_is_a_mistake() {
    let mut graph = Graph::new();
    let rows = batch(&[Some("1")]);
    let rows = graph.add("rows", Memory::new(rows.schema(), vec![rows]));
    let filter = Filter::new("cast(t as int) > 0").on_error(OnError::Reject);
    let kept = graph.add_after(rows, "kept", filter);
    graph.add_after(kept, "end", Collect::new().0);
    let error = graph.build().unwrap_err().to_string();
    assert!(error.contains("nothing reads its output `rejected`"), "{error}");
}

proptest! {
    #[test]
    fn unnest_makes_the_rows_of_a_loop(
        lists in proptest::collection::vec(
            proptest::option::of(proptest::collection::vec(proptest::option::of(0_i64..9), 0..5)),
            0..20,
        ),
        cut in 1_usize..7,
    ) {
        let mut expected = Vec::new();
        for (row, list) in (0_i64..).zip(&lists) {
            expected.extend(list.iter().flatten().map(|value| (row, *value)));
        }
        let list: ArrayRef = Arc::new(ListArray::from_iter_primitive::<
            arrow_array::types::Int64Type, _, _,
        >(lists.clone()));
        let row: ArrayRef = Arc::new(Int64Array::from_iter_values((0..).take(lists.len())));
        let all = RecordBatch::try_from_iter_with_nullable([("row", row, false), ("l", list, true)]).unwrap();
        let batches = (0..lists.len()).step_by(cut).map(|at| all.slice(at, cut.min(lists.len() - at)));
        let mut graph = Graph::new();
        let rows = graph.add("rows", Memory::new(all.schema(), batches.collect::<Vec<_>>()));
        let selected = graph.add_after(rows, "values", Select::new(["unnest(l) as value", "row"]));
        let (sink, collected) = Collect::new();
        graph.add_after(selected, "end", sink);
        watched(move || graph.build().unwrap().run(RunOptions::new())).unwrap();
        let found: Vec<(i64, Option<i64>)> = collected.take().iter().flat_map(|batch| {
            let [value, row] = [0, 1].map(|at| {
                batch.column(at).as_primitive::<arrow_array::types::Int64Type>().iter().collect::<Vec<_>>()
            });
            row.into_iter().map(Option::unwrap).zip(value).collect::<Vec<_>>()
        }).collect();
        prop_assert_eq!(found, expected);
    }
}
