//! Rows that operators cannot use: the results are those of the other rows, and each bad row comes
//! out once at `rejected`.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_array::builder::{Float64Builder, Int64Builder, ListBuilder};
use arrow_array::{ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray};
use arrow_select::filter::filter_record_batch;
use trommel_engine::graph::Graph;
use trommel_engine::metrics::Metrics;
use trommel_engine::operator::OperatorSpec;
use trommel_engine::runtime::RunOptions;
use trommel_operators::frequent_pairs::PairWindow;
use trommel_operators::{
    Algorithm, Collect, ConjunctiveQuery, Decay, EpsilonJoin, EpsilonOutput, Filter, FrequentItems,
    FrequentPairs, HeavyFilter, JoinOutput, JoinWindow, OnError, Parallel, SetSimilarityJoin,
    Tokenize, VectorWindow, Window,
};

use crate::{Random, device, on_stand_in, run, shown, source, table};

/// A table and which of its rows are bad. The column `key` numbers the rows.
struct Rows {
    table: RecordBatch,
    bad: Vec<bool>,
}

impl Rows {
    fn new(columns: &[(&str, ArrayRef)], bad: Vec<bool>) -> Self {
        let keys: ArrayRef = Arc::new(Int64Array::from_iter_values((0..).take(bad.len())));
        Self { table: table([("key", keys)].into_iter().chain(columns.iter().cloned())), bad }
    }

    fn good(&self) -> RecordBatch {
        let is_good: BooleanArray = self.bad.iter().map(|&bad| Some(!bad)).collect();
        filter_record_batch(&self.table, &is_good).unwrap()
    }
}

/// Number of a row of rejected rows.
fn key_of(json: &str) -> usize {
    let digits = json.split("\"key\":").nth(1).unwrap();
    digits.split([',', '}']).next().unwrap().parse().unwrap()
}

/// Rows of ports of a stage, of which the last one is `rejected`, and what was counted.
fn run_rejecting(
    inputs: &[Rows],
    spec: impl OperatorSpec + 'static,
    (ports, cores): (usize, &[usize]),
) -> (Vec<Vec<RecordBatch>>, Metrics) {
    let mut graph = Graph::new();
    let sources: Vec<_> = (0..)
        .zip(inputs)
        .map(|(number, rows)| source(&mut graph, &format!("table{number}"), &rows.table, 17))
        .collect();
    let stage = graph.add("stage", spec);
    for source in sources {
        graph.connect(source, stage);
    }
    graph.cores(stage, cores);
    let mut collected = Vec::new();
    for port in 0..ports {
        let (sink, rows) = Collect::new();
        graph.add_after(stage.port(port), format!("rows{port}"), sink);
        collected.push(rows);
    }
    let metrics = graph.build().unwrap().run(RunOptions::new()).unwrap();
    (collected.iter().map(|rows| rows.take()).collect(), metrics)
}

/// A value without the order of its items, if it is a list.
fn unordered(value: &str) -> String {
    let Some(items) = value.strip_prefix('[').and_then(|items| items.strip_suffix(']')) else {
        return value.to_owned();
    };
    let items: BTreeSet<&str> = items.split(", ").collect();
    format!("{items:?}")
}

/// The rows of `columns`, sorted.
fn sorted(rows: &[RecordBatch], columns: &[&str]) -> Vec<Vec<String>> {
    let columns: Vec<Vec<String>> = columns.iter().map(|name| shown(rows, name)).collect();
    let mut rows: Vec<Vec<String>> = (0..columns[0].len())
        .map(|row| columns.iter().map(|column| unordered(&column[row])).collect())
        .collect();
    rows.sort_unstable();
    rows
}

/// Sum of a counter over the parts of the stage.
fn counted(metrics: &Metrics, counter: &str) -> u64 {
    let parts = metrics.stage("stage").unwrap().parts.iter().flat_map(|part| &part.counters);
    parts.filter(|(name, _)| *name == counter).map(|(_, count)| count).sum()
}

/// Checks each action of an operator with one output of rows, whose columns are given.
fn check<S: OperatorSpec + 'static>(
    inputs: &[Rows],
    columns: &[&str],
    spec: impl Fn(Option<OnError>) -> S,
) {
    check_on(&[&[0], &[0, 1, 0]], inputs, columns, spec);
}

/// As [`check`], on each of these lists of cores.
fn check_on<S: OperatorSpec + 'static>(
    cores: &[&[usize]],
    inputs: &[Rows],
    columns: &[&str],
    spec: impl Fn(Option<OnError>) -> S,
) {
    let good: Vec<RecordBatch> = inputs.iter().map(Rows::good).collect();
    let good: Vec<&RecordBatch> = good.iter().collect();
    let bad: Vec<(usize, usize)> = (0..)
        .zip(inputs)
        .flat_map(|(input, rows)| {
            let bad = rows.bad.iter().enumerate().filter(|(_, bad)| **bad);
            bad.map(move |(row, _)| (input, row))
        })
        .collect();
    assert!(bad.len() > 20, "{} bad rows", bad.len());
    for &cores in cores {
        let expected = sorted(&run(&good, 17, spec(None), cores).unwrap(), columns);
        assert!(!expected.is_empty());
        let (mut rows, metrics) = run_rejecting(inputs, spec(Some(OnError::Reject)), (2, cores));
        let rejected = rows.pop().unwrap();
        assert_eq!(sorted(&rows[0], columns), expected, "{cores:?}");
        let mut keys: Vec<usize> =
            shown(&rejected, "bytes").iter().map(|json| key_of(json)).collect();
        keys.sort_unstable();
        let mut expected_keys: Vec<usize> = bad.iter().map(|&(_, row)| row).collect();
        expected_keys.sort_unstable();
        assert_eq!(keys, expected_keys);
        assert!(shown(&rejected, "reason").iter().all(|reason| !reason.is_empty()));
        assert!(shown(&rejected, "column").iter().all(|column| !column.is_empty()));
        assert_eq!(counted(&metrics, "rejected"), bad.len() as u64);
        let parts = &metrics.stage("stage").unwrap().parts;
        let named: Vec<&str> =
            parts.iter().flat_map(|part| &part.inputs.left_out).map(AsRef::as_ref).collect();
        // Each copy of an operator names its first rows, by their content.
        let by_content = named.iter().any(|name| name.starts_with("the row "));
        let is_named = |&(input, row): &(usize, usize)| {
            let many = format!("row {} of input {}: ", row + 1, input + 1);
            let one = format!("row {} of the input: ", row + 1);
            named.iter().any(|name| match name.strip_prefix("the row ") {
                Some(content) => key_of(content.split(" of the input: ").next().unwrap()) == row,
                None => name.starts_with(&many) || name.starts_with(&one),
            })
        };
        let found = bad.iter().filter(|at| is_named(at)).count();
        if by_content {
            assert!((20..=60).contains(&found) && found == named.len(), "{named:?}");
        } else {
            assert_eq!((found, named.len()), (20, 20), "{named:?}");
        }

        let (rows, metrics) = run_rejecting(inputs, spec(Some(OnError::Skip)), (1, cores));
        assert_eq!(sorted(&rows[0], columns), expected);
        assert_eq!(counted(&metrics, "skipped"), bad.len() as u64);
        let tables: Vec<&RecordBatch> = inputs.iter().map(|rows| &rows.table).collect();
        let error = run(&tables, 17, spec(Some(OnError::Fail)), cores).unwrap_err();
        let first = |input: usize| inputs[input].bad.iter().position(|bad| *bad).unwrap() + 1;
        let is_first = |input: usize| match inputs.len() {
            1 => error.contains(&format!("row {} of the input: ", first(0))),
            _ => error.contains(&format!("row {} of input {}: ", first(input), input + 1)),
        };
        // A copy of an operator ends the run with its own first row.
        let is_bad = |content: &str| bad.contains(&(0, key_of(content)));
        let of_copy = error.split("the row ").nth(1).is_some_and(is_bad);
        assert!(of_copy || (0..inputs.len()).any(is_first), "{error}");
    }
}

/// Sets of numbers below 256 of which some are null, have a null, or have a larger number; and
/// names that are numbers, but for some.
fn sets(seed: u64, rows: usize, has_names: bool) -> Rows {
    let mut random = Random(seed);
    let mut sets = ListBuilder::new(Int64Builder::new());
    let (mut names, mut bad) = (Vec::new(), Vec::new());
    for row in 0..rows {
        let fault = random.below(24);
        let mut set: Vec<Option<i64>> =
            (0..2 + random.below(3)).map(|_| Some(i64::from(random.below(9)))).collect();
        match fault {
            0 => set.push(None),
            1 => set.push(Some(300)),
            _ => {}
        }
        names.push((fault != 3).then(|| if fault == 4 { "x".into() } else { row.to_string() }));
        sets.append_option((fault != 2).then_some(set));
        bad.push(fault <= if has_names { 4 } else { 2 });
    }
    let columns: [(&str, ArrayRef); 2] =
        [("name", Arc::new(StringArray::from(names))), ("items", Arc::new(sets.finish()))];
    Rows::new(&columns, bad)
}

/// The sets as a list of small numbers, and the names as numbers, which some are not.
const SET: &str = "items::utinyint[]";
const ID: &str = "name::bigint";

fn join(on_error: Option<OnError>) -> SetSimilarityJoin {
    let join = SetSimilarityJoin::new("1/2".parse().unwrap()).set(SET).id(ID).device(device());
    match on_error {
        None => join,
        Some(on_error) => join.on_error(on_error),
    }
}

#[test]
fn a_join_of_sets_rejects_rows() {
    let one = || [sets(1, 200, true)];
    let two = || [sets(2, 120, true), sets(3, 90, true)];
    let pairs = ["left", "right", "overlap"];
    check(&one(), &pairs, join);
    check(&two(), &pairs, join);
    check(&two(), &["count"], |on_error| join(on_error).output(JoinOutput::Count));
    let carrying = |on_error| join(on_error).carry(["key"]);
    check(&two(), &["left", "right", "left_key", "right_key"], carrying);
    check(&one(), &pairs, |on_error| join(on_error).window(JoinWindow::sets(30)));
    check(&one(), &pairs, |on_error| join(on_error).window(JoinWindow::seconds(1e6)));
}

#[test]
fn a_device_joins_sets_beside_rejected_rows() {
    on_stand_in("rejecting::a_join_of_sets_rejects_rows");
}

#[test]
fn deduplication_rejects_rows() {
    let spec = |on_error: Option<OnError>| {
        let join = SetSimilarityJoin::new("4/5".parse().unwrap()).set(SET).id(ID).deduplicate();
        on_error.into_iter().fold(join, SetSimilarityJoin::on_error)
    };
    check_on(&[&[0]], &[sets(4, 200, true)], &["key", "name"], spec);
    check_on(&[&[0]], &[sets(4, 200, true)], &["key"], |on_error| {
        spec(on_error).window(JoinWindow::sets(9))
    });
}

#[test]
fn rows_keep_their_positions_beside_rejected_rows() {
    let rows = sets(5, 200, false);
    let join = |set: &str| SetSimilarityJoin::new("1/2".parse().unwrap()).set(set);
    let positions: Vec<usize> = (0..200).filter(|&row| !rows.bad[row]).collect();
    let in_all = |row: &Vec<String>| -> Vec<String> {
        row.iter().map(|row| positions[row.parse::<usize>().unwrap()].to_string()).collect()
    };
    let found = run(&[&rows.good()], 17, join(SET), &[]).unwrap();
    let expected: BTreeSet<Vec<String>> =
        sorted(&found, &["left", "right"]).iter().map(in_all).collect();
    let spec = join(SET).on_error(OnError::Reject);
    let (found, _) = run_rejecting(&[rows], spec, (2, &[]));
    assert_eq!(
        sorted(&found[0], &["left", "right"]).into_iter().collect::<BTreeSet<_>>(),
        expected
    );
}

#[test]
fn frequent_pairs_reject_rows() {
    for window in [None, Some(PairWindow::transactions(40))] {
        let spec = |on_error: Option<OnError>| {
            let pairs = FrequentPairs::new("3".parse().unwrap()).set(SET).device(device());
            let pairs = window.into_iter().fold(pairs, FrequentPairs::window);
            on_error.into_iter().fold(pairs, FrequentPairs::on_error)
        };
        check(&[sets(6, 250, false)], &["left", "right", "support"], spec);
    }
}

#[test]
fn a_device_counts_pairs_beside_rejected_rows() {
    on_stand_in("rejecting::frequent_pairs_reject_rows");
}

#[test]
fn queries_and_documents_are_rejected() {
    let spec = |on_error: Option<OnError>| {
        let query = ConjunctiveQuery::new().set(SET).name("name").carry(["key"]).device(device());
        on_error.into_iter().fold(query, ConjunctiveQuery::on_error)
    };
    let mut documents = sets(7, 150, false);
    // A document without a name is not taken.
    let names = documents.table.column_by_name("name").unwrap();
    for (row, bad) in documents.bad.iter_mut().enumerate() {
        *bad |= names.is_null(row);
    }
    check(&[documents, sets(8, 80, false)], &["key", "documents"], spec);
}

#[test]
fn a_device_answers_queries_beside_rejected_rows() {
    on_stand_in("rejecting::queries_and_documents_are_rejected");
}

/// Vectors of three coordinates, of which some are null, too short, or have a coordinate that is
/// null or not finite.
fn vectors(seed: u64, rows: usize) -> Rows {
    let mut random = Random(seed);
    let mut vectors = ListBuilder::new(Float64Builder::new());
    let (mut names, mut bad) = (Vec::new(), Vec::new());
    for row in 0..rows {
        // The first rows have each fault once: none of them says how long a vector is.
        let fault = u32::try_from(row).unwrap().min(7);
        let fault = if fault < 7 { fault } else { random.below(32) };
        let mut vector: Vec<Option<f64>> =
            (0..3).map(|_| Some(f64::from(random.below(5)))).collect();
        match fault {
            0 => vector = vec![Some(f64::NAN); 7],
            1 => vector[1] = None,
            2 => vector[2] = Some(1e300),
            3 => vector.clear(),
            6 if row > 10 => vector.truncate(2),
            _ => {}
        }
        let is_nameless = fault == 4;
        names.push(if is_nameless { "x".to_owned() } else { row.to_string() });
        vectors.append_option((fault != 5).then_some(vector));
        bad.push(fault <= 5 || (fault == 6 && row > 10));
    }
    let columns: [(&str, ArrayRef); 2] =
        [("name", Arc::new(StringArray::from(names))), ("vector", Arc::new(vectors.finish()))];
    Rows::new(&columns, bad)
}

#[test]
fn a_join_of_vectors_rejects_rows() {
    let near = |on_error: Option<OnError>| {
        let join = EpsilonJoin::new(1.0).id(ID).device(device());
        on_error.into_iter().fold(join, EpsilonJoin::on_error)
    };
    let one = || [vectors(1, 150)];
    let pairs = ["left", "right", "distance"];
    check(&one(), &pairs, near);
    check(&[vectors(2, 120), vectors(3, 90)], &pairs, near);
    let partners = |on_error| near(on_error).output(EpsilonOutput::Partners).carry(["key"]);
    check(&one(), &["id", "key", "partners"], partners);
}

#[test]
fn a_device_joins_vectors_beside_rejected_rows() {
    on_stand_in("rejecting::a_join_of_vectors_rejects_rows");
}

#[test]
fn a_stream_of_vectors_rejects_rows() {
    for window in [VectorWindow::vectors(25), VectorWindow::seconds(1e6)] {
        let spec = |on_error: Option<OnError>| {
            let join = EpsilonJoin::new(1.0).id(ID).window(window);
            on_error.into_iter().fold(join, EpsilonJoin::on_error)
        };
        check(&[vectors(4, 150)], &["left", "right"], spec);
    }
}

/// Items with weights, of which some are null, below 0, or no number.
fn items(rows: usize) -> Rows {
    let mut random = Random(9);
    let (mut names, mut weights, mut bad) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rows {
        let fault = random.below(20);
        names.push(match fault {
            0 => None,
            1 => Some("x".to_owned()),
            _ => Some(random.below(12).to_string()),
        });
        weights.push((fault != 2).then(|| if fault == 3 { -4 } else { random.below(5).into() }));
        bad.push(fault <= 3);
    }
    let weights: ArrayRef = Arc::new(Int64Array::from(weights));
    Rows::new(&[("name", Arc::new(StringArray::from(names))), ("weight", weights)], bad)
}

#[test]
fn frequent_items_reject_rows() {
    let counters = |item: &[&str], on_error: Option<OnError>| {
        let item: trommel_operators::Names = item.iter().copied().collect();
        let count = FrequentItems::new().item(item).weight("weight");
        on_error.into_iter().fold(count, FrequentItems::on_error)
    };
    let one = |on_error| counters(&[ID], on_error);
    let columns = ["item", "count"];
    let algorithms =
        [Algorithm::Sieve, Algorithm::SpaceSaving, Algorithm::Filter, Algorithm::ParallelFilter];
    for algorithm in algorithms {
        check_on(&[&[0], &[]], &[items(500)], &columns, |on_error| {
            one(on_error).algorithm(algorithm)
        });
    }
    check_on(&[&[0], &[]], &[items(500)], &columns, |on_error| {
        one(on_error).parallel(Parallel::Partition)
    });
    check_on(&[&[0], &[]], &[items(500)], &columns, |on_error| {
        one(on_error).window(Window::items(1 << 20))
    });
    check_on(&[&[0], &[]], &[items(500)], &["item"], |on_error| {
        one(on_error).decay(Decay::items(1 << 38))
    });
    check_on(&[&[0], &[]], &[items(500)], &["h", "weight", "count"], |on_error| {
        counters(&["name::bigint as h", "weight"], on_error)
    });
}

#[test]
fn texts_are_cut_beside_rejected_rows() {
    let mut random = Random(10);
    let (mut texts, mut starts, mut bad) = (Vec::new(), Vec::new(), Vec::new());
    for row in 0..300 {
        let fault = random.below(9);
        texts.push((fault != 5).then(|| format!("word{} and row{row}", random.below(4))));
        starts.push(if fault == 0 { "x" } else { "1" });
        bad.push(fault == 0);
    }
    let columns: [(&str, ArrayRef); 2] = [
        ("text", Arc::new(StringArray::from(texts))),
        ("start", Arc::new(StringArray::from(starts))),
    ];
    let rows = || [Rows::new(&columns, bad.clone())];
    let cut = |on_error: Option<OnError>| {
        let cut = Tokenize::words().column("substr(text, start::bigint)");
        on_error.into_iter().fold(cut, Tokenize::on_error)
    };
    check(&rows(), &["item"], cut);
    check(&rows(), &["key", "set"], |on_error| cut(on_error).into_sets().carry(["key"]));
    check(&rows(), &["key", "set"], |on_error| cut(on_error).into_text_sets().carry(["key"]));
    // The id of a text is its position among all rows.
    let numbered = cut(Some(OnError::Reject)).into_sets().carry(["key"]);
    let (found, _) = run_rejecting(&rows(), numbered, (2, &[0, 1, 0]));
    assert_eq!(shown(&found[0], "id"), shown(&found[0], "key"));
    let conditions = |on_error: Option<OnError>| {
        let filter = Filter::new("start::bigint = 1 and key % 2 = 0");
        on_error.into_iter().fold(filter, Filter::on_error)
    };
    check_on(&[&[0]], &rows(), &["key"], conditions);
}

#[test]
fn a_heavy_filter_rejects_rows() {
    let rows = [items(4_000)];
    let sums = |found: &[Vec<RecordBatch>]| {
        let rest = shown(&found[HeavyFilter::REST], "name").into_iter().map(|name| (name, 1));
        let counts = &found[HeavyFilter::COUNTS];
        let counts = shown(counts, ID).into_iter().zip(shown(counts, "count"));
        let mut sums = std::collections::BTreeMap::<String, u64>::new();
        for (name, count) in rest.chain(counts.map(|(name, count)| (name, count.parse().unwrap())))
        {
            *sums.entry(name).or_default() += count;
        }
        sums
    };
    // A null is an item that is never hot, and no fault.
    let names = shown(std::slice::from_ref(&rows[0].table), "name");
    let bad = names.iter().map(|name| name == "x").collect();
    let rows = [Rows { table: rows[0].table.clone(), bad }];
    let good = [Rows { table: rows[0].good(), bad: Vec::new() }];
    let (expected, _) = run_rejecting(&good, HeavyFilter::new().item(ID), (2, &[]));
    let spec = HeavyFilter::new().item(ID).on_error(OnError::Reject);
    let (found, metrics) = run_rejecting(&rows, spec, (3, &[]));
    assert_eq!(sums(&found), sums(&expected));
    let count = rows[0].bad.iter().filter(|bad| **bad).count();
    let keys: BTreeSet<usize> =
        shown(&found[HeavyFilter::REJECTED], "bytes").iter().map(|json| key_of(json)).collect();
    assert!(keys.iter().all(|&row| rows[0].bad[row]) && keys.len() == count && count > 20);
    assert_eq!(counted(&metrics, "rejected"), count as u64);
}
