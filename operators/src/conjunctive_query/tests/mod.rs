//! The operator in pipelines against intersections of ordered sets.

mod division;
mod files;
mod growing;
mod running;
mod stand_in;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::builder::{ListBuilder, StringBuilder, UInt32Builder};
use arrow_array::cast::AsArray;
use arrow_array::types::{UInt32Type, UInt64Type};
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_schema::{DataType, Field};
use proptest::prelude::*;
use trommel_engine::graph::Graph;
use trommel_engine::metrics::Metrics;
use trommel_engine::placement::available_cores;
use trommel_engine::runtime::RunOptions;

use super::parameters::tuning::Tuning;
use super::{AnswerOver, ConjunctiveQuery, QueryOutput};
use crate::testing::bind;
use crate::{Collect, Memory};

/// A time that is longer than any run of these tests.
const WATCHDOG: Duration = Duration::from_secs(120);

/// Terms of a document or a query; `None` for a null.
type Terms = Option<Vec<u32>>;

/// The documents of each query.
type Answers = Vec<Vec<u32>>;

/// A batch of sets of numbers or texts, with a column `label` that names the rows.
fn batch(sets: &[Terms], first: usize, are_texts: bool) -> RecordBatch {
    let labels = (first..first + sets.len()).map(|row| format!("row {row}"));
    let labels: ArrayRef = Arc::new(StringArray::from_iter_values(labels));
    let list: ArrayRef = if are_texts {
        let item = Arc::new(Field::new_list_field(DataType::Utf8, false));
        let mut list = ListBuilder::new(StringBuilder::new()).with_field(item);
        for set in sets {
            for term in set.iter().flatten() {
                list.values().append_value(format!("t{term}"));
            }
            list.append(set.is_some());
        }
        Arc::new(list.finish())
    } else {
        let item = Arc::new(Field::new_list_field(DataType::UInt32, false));
        let mut list = ListBuilder::new(UInt32Builder::new()).with_field(item);
        for set in sets {
            list.values().append_slice(set.as_deref().unwrap_or_default());
            list.append(set.is_some());
        }
        Arc::new(list.finish())
    };
    RecordBatch::try_from_iter_with_nullable([("label", labels, false), ("set", list, true)])
        .unwrap()
}

fn batches(sets: &[Terms], len: usize, are_texts: bool) -> Memory {
    let cut = (0..).step_by(len).zip(sets.chunks(len));
    let cut: Vec<RecordBatch> = cut.map(|(first, part)| batch(part, first, are_texts)).collect();
    Memory::new(batch(&[], 0, are_texts).schema(), cut)
}

/// Settings of the run of a case.
#[derive(Debug, Clone, Copy)]
struct Run {
    batch: usize,
    kernels: usize,
    are_texts: bool,
}

const RUN: Run = Run { batch: 7, kernels: 1, are_texts: false };

type Ended = (Vec<RecordBatch>, Result<Metrics, String>);

fn run(documents: Option<&[Terms]>, queries: &[Terms], spec: ConjunctiveQuery, run: Run) -> Ended {
    let mut graph = Graph::new();
    let search = graph.add("search", spec);
    if let Some(documents) = documents {
        let documents = graph.add("documents", batches(documents, run.batch, run.are_texts));
        graph.connect(documents, search);
    }
    let queries = graph.add("queries", batches(queries, run.batch, run.are_texts));
    graph.connect(queries, search);
    graph.cores(search, vec![available_cores()[0]; run.kernels]);
    let (sink, rows) = Collect::new();
    graph.add_after(search, "rows", sink);
    let mut running = match graph.build() {
        Ok(pipeline) => pipeline.start(RunOptions::new()).unwrap(),
        Err(error) => return (Vec::new(), Err(error.to_string())),
    };
    assert!(running.wait(WATCHDOG), "the run hangs");
    let ended = running.join().map_err(|error| error.to_string());
    (rows.batches(), ended)
}

/// Puts the answers of rows in the order of queries; each query has one answer.
fn in_order<T>(
    rows: &[RecordBatch],
    queries: usize,
    answer: impl Fn(&RecordBatch, usize) -> T,
) -> Vec<T> {
    let mut answers: Vec<Option<T>> = (0..queries).map(|_| None).collect();
    for rows in rows {
        let numbers = rows.column_by_name("query").unwrap().as_primitive::<UInt64Type>();
        for (row, number) in numbers.values().iter().enumerate() {
            let place = &mut answers[usize::try_from(*number).unwrap()];
            assert!(place.replace(answer(rows, row)).is_none(), "{number} comes twice");
        }
    }
    answers.into_iter().map(|answer| answer.expect("each query is answered")).collect()
}

fn documents_of(rows: &[RecordBatch], queries: usize) -> Answers {
    in_order(rows, queries, |rows, row| {
        let list = rows.column_by_name("documents").unwrap().as_list::<i32>().value(row);
        list.as_primitive::<UInt32Type>().values().to_vec()
    })
}

fn names_of(rows: &[RecordBatch], queries: usize) -> Vec<Vec<String>> {
    in_order(rows, queries, |rows, row| {
        let list = rows.column_by_name("documents").unwrap().as_list::<i32>().value(row);
        list.as_string::<i32>().iter().map(|name| name.unwrap().to_owned()).collect()
    })
}

fn counts_of(rows: &[RecordBatch], queries: usize) -> Vec<usize> {
    in_order(rows, queries, |rows, row| {
        rows.column_by_name("count").unwrap().as_primitive::<UInt32Type>().value(row) as usize
    })
}

/// The definition: the documents that hold all terms of a query. A query without terms finds no
/// document.
fn by_hand(documents: &[Terms], queries: &[Terms]) -> Answers {
    let sets: Vec<BTreeSet<u32>> =
        documents.iter().map(|set| set.iter().flatten().copied().collect()).collect();
    let answer = |query: &Terms| {
        let query: BTreeSet<u32> = query.iter().flatten().copied().collect();
        let holds = |(number, set): (u32, &BTreeSet<u32>)| {
            (!query.is_empty() && query.is_subset(set)).then_some(number)
        };
        (0..).zip(&sets).filter_map(holds).collect()
    };
    queries.iter().map(answer).collect()
}

/// Documents of common and rare terms; some documents are empty or null, and some documents name a
/// term twice.
fn corpus(count: u32) -> Vec<Terms> {
    let scatter = |n: u32| n.wrapping_mul(0x9E37_79B1) >> 12;
    let document = |d: u32| {
        let held = (1..30_u32).filter(|&t| scatter(d * 31 + t).is_multiple_of(t));
        let mut terms: Vec<u32> = held.rev().collect();
        terms.extend(d.is_multiple_of(5).then(|| 1_000_000 + d / 10));
        terms.extend(d.is_multiple_of(3).then_some(1));
        terms
    };
    (0..count)
        .map(|d| match d % 23 {
            7 => None,
            11 => Some(Vec::new()),
            _ => Some(document(d)),
        })
        .collect()
}

/// Queries of 0 to 4 terms, queries with a repeated term, queries with unknown terms, and a query
/// of 100 terms.
fn questions(count: u32) -> Vec<Terms> {
    let mut queries: Vec<Terms> = (0..count)
        .map(|q| match q % 13 {
            3 => None,
            4 => Some(vec![2, 77_777]),
            5 => Some(vec![q % 7, q % 7]),
            6 => Some(vec![1_000_000 + q]),
            _ => Some((0..q % 5).map(|i| 1 + (q * 3 + i * 5) % 11).collect()),
        })
        .collect();
    queries.push(Some((1..101).collect()));
    queries
}

fn spec() -> ConjunctiveQuery {
    ConjunctiveQuery::new().tuning(Tuning::SMALL)
}

#[test]
fn answers_are_intersections() {
    for (documents, batch_queries) in [(0, 3), (1, 1), (60, 1), (60, 2), (400, 1000)] {
        let (documents, queries) = (corpus(documents), questions(40));
        let expected = by_hand(&documents, &queries);
        for (batch, kernels, are_texts) in [(1, 1, false), (7, 2, true), (1000, 3, false)] {
            for tuning in [Tuning::SMALL, Tuning::default()] {
                let how = Run { batch, kernels, are_texts };
                let spec = ConjunctiveQuery::new().tuning(tuning).batch_queries(batch_queries);
                let (rows, ended) = run(Some(&documents), &queries, spec.clone(), how);
                let metrics = ended.unwrap();
                assert_eq!(documents_of(&rows, queries.len()), expected, "{how:?} {tuning:?}");
                assert!(rows.iter().all(|rows| rows.num_rows() <= tuning.batch_rows));
                let parts = &metrics.stage("search").unwrap().parts;
                assert_eq!(parts.len(), kernels + 2);
                let spec = spec.output(QueryOutput::Count);
                let (rows, ended) = run(Some(&documents), &queries, spec, how);
                ended.unwrap();
                let counts: Vec<usize> = expected.iter().map(Vec::len).collect();
                assert_eq!(counts_of(&rows, queries.len()), counts, "{how:?} {tuning:?}");
            }
        }
    }
}

#[test]
fn documents_are_named_and_columns_of_queries_carried() {
    let (documents, queries) = (corpus(100), questions(30));
    let spec = spec().name("label").carry(["label"]).latency();
    for kernels in [1, 3] {
        let how = Run { kernels, are_texts: true, ..RUN };
        let (rows, ended) = run(Some(&documents), &queries, spec.clone(), how);
        ended.unwrap();
        let name = |document: &u32| format!("row {document}");
        let expected: Vec<Vec<String>> = by_hand(&documents, &queries)
            .iter()
            .map(|found| found.iter().map(name).collect())
            .collect();
        assert_eq!(names_of(&rows, queries.len()), expected);
        let labels = in_order(&rows, queries.len(), |rows, row| {
            rows.column_by_name("label").unwrap().as_string::<i32>().value(row).to_owned()
        });
        assert!((0..).zip(&labels).all(|(row, label)| *label == format!("row {row}")));
        assert!(rows.iter().all(|rows| rows.column_by_name("latency_us").is_some()));
    }
}

#[test]
fn a_query_that_repeats_terms_and_equal_queries_are_answered() {
    let documents = corpus(300);
    let long: Vec<u32> = (0..100_000).map(|i| i % 3 + 1).collect();
    let mut queries = vec![Some(long), Some((0..100_000).collect())];
    queries.extend(vec![Some(vec![1, 2]); 3_000]);
    let expected = by_hand(&documents, &queries);
    let (rows, ended) =
        run(Some(&documents), &queries, ConjunctiveQuery::new(), Run { batch: 500, ..RUN });
    ended.unwrap();
    assert_eq!(documents_of(&rows, queries.len()), expected);
}

#[test]
fn long_texts_keep_their_identity() {
    let mut list = ListBuilder::new(StringBuilder::new());
    let long = |end: &str| format!("{}{end}", "x".repeat(2_000));
    list.append_value([Some(long("a")), Some("b".to_owned())]);
    list.append_value([Some(long("b"))]);
    let sets: ArrayRef = Arc::new(list.finish());
    let sets = RecordBatch::try_from_iter([("set", sets)]).unwrap();
    let mut graph = Graph::new();
    let search = graph.add("search", spec());
    for id in ["documents", "queries"] {
        let source = graph.add(id, Memory::new(sets.schema(), vec![sets.clone()]));
        graph.connect(source, search);
    }
    let (sink, rows) = Collect::new();
    graph.add_after(search, "rows", sink);
    graph.build().unwrap().run(RunOptions::new()).unwrap();
    assert_eq!(documents_of(&rows.batches(), 2), [[0], [1]]);
}

#[test]
fn a_null_name_is_an_error() {
    let documents = batch(&[Some(vec![1]), Some(vec![1])], 0, false);
    let names: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None]));
    let sets = Arc::clone(documents.column_by_name("set").unwrap());
    let documents = RecordBatch::try_from_iter([("set", sets), ("label", names)]).unwrap();
    let mut graph = Graph::new();
    let source = graph.add("documents", Memory::new(documents.schema(), vec![documents]));
    let queries = graph.add("queries", batches(&[], 1, false));
    let search = graph.add("search", spec().name("label"));
    graph.connect(source, search);
    graph.connect(queries, search);
    let (sink, _rows) = Collect::new();
    graph.add_after(search, "rows", sink);
    let error = graph.build().unwrap().run(RunOptions::new()).unwrap_err();
    let chain = std::iter::successors(Some(&error as &dyn std::error::Error), |e| e.source());
    let shown: String = chain.map(|error| format!("{error}: ")).collect();
    assert!(shown.contains("invalid document 1: its name is null"), "{shown}");
}

#[test]
fn memory_is_limited() {
    let documents = corpus(500);
    let (_, ended) = run(Some(&documents), &questions(3), spec().memory_max(20_000), RUN);
    let error = ended.unwrap_err();
    assert!(error.contains("memory_max"), "{error}");
}

#[test]
fn invalid_parameters_are_refused() {
    let schema = batch(&[], 0, false).schema();
    let texts = batch(&[], 0, true).schema();
    let both = [Arc::clone(&schema), Arc::clone(&schema)];
    let mixed = [Arc::clone(&schema), texts];
    let alone = [schema];
    let refused: [(ConjunctiveQuery, &[_], &str); 9] = [
        (spec().batch_queries(0), &both, "batch_queries"),
        (spec().deadline_ms(-1.0), &both, "deadline_ms"),
        (spec().device_memory_max(0), &both, "device_memory_max"),
        (spec().set("label"), &both, "set"),
        (spec(), &mixed, "set"),
        (spec().name("set"), &both, "name"),
        (spec().carry(["query"]), &both, "carry"),
        (spec(), &alone, "index_path"),
        (spec().index(super::IndexSource::Reuse), &both, "index"),
    ];
    for (spec, inputs, parameter) in refused {
        assert_eq!(bind(spec, inputs).unwrap_err().parameter, Some(parameter));
    }
}

fn sets(most: usize) -> impl Strategy<Value = Vec<Terms>> {
    let set = prop::collection::vec(0_u32..12, 0..6);
    prop::collection::vec(prop::option::weighted(0.95, set), 0..most)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn any_documents_and_queries(
        documents in sets(80),
        queries in sets(30),
        batch in 1_usize..20,
        kernels in 1_usize..4,
        batch_queries in 1_usize..9,
        are_texts: bool,
    ) {
        let spec = spec().batch_queries(batch_queries);
        let how = Run { batch, kernels, are_texts };
        let (rows, ended) = run(Some(&documents), &queries, spec, how);
        ended.unwrap();
        prop_assert_eq!(documents_of(&rows, queries.len()), by_hand(&documents, &queries));
    }
}
