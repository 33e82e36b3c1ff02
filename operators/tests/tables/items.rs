//! `frequent_items`, `heavy_filter` and `tokenize` over columns and expressions of tables.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, Int16Array, LargeStringArray, RecordBatch, StringArray, TimestampMillisecondArray,
};
use trommel_engine::graph::Graph;
use trommel_engine::runtime::RunOptions;
use trommel_operators::{Algorithm, Collect, FrequentItems, HeavyFilter, Tokenize, Window};

use crate::{Random, run, shown, source, table};

/// Requests of few hosts, paths and times; some values are null.
fn requests(rows: usize) -> RecordBatch {
    let mut random = Random(8);
    let hosts = ["a.org", "b.org\0", "", "a.org\0\u{1}"];
    let mut draw = |end: u32| (random.below(12) > 0).then(|| random.below(end));
    let host: LargeStringArray =
        (0..rows).map(|_| draw(4).map(|host| hosts[host as usize])).collect();
    let status: Int16Array =
        (0..rows).map(|_| draw(3).map(|status| [-1, 200, 404][status as usize])).collect();
    let time: TimestampMillisecondArray =
        (0..rows).map(|_| draw(2).map(|time| 1_700_000_000_000 + i64::from(time))).collect();
    table([
        ("host", Arc::new(host) as ArrayRef),
        ("status", Arc::new(status)),
        ("time", Arc::new(time)),
    ])
}

/// Counts by hand of the rows `range` in which no value is null.
fn by_hand(table: &RecordBatch, columns: &[&str]) -> BTreeMap<Vec<String>, u64> {
    let values: Vec<Vec<String>> =
        columns.iter().map(|name| shown(std::slice::from_ref(table), name)).collect();
    let mut counts = BTreeMap::new();
    for row in 0..table.num_rows() {
        let has_null = |name: &&str| table.column_by_name(name).unwrap().is_null(row);
        if !columns.iter().any(has_null) {
            let item = values.iter().map(|column| column[row].clone()).collect();
            *counts.entry(item).or_insert(0) += 1;
        }
    }
    counts
}

/// Counts that came out, of items in these columns.
fn found(rows: &[RecordBatch], columns: &[&str]) -> BTreeMap<Vec<String>, u64> {
    let values: Vec<Vec<String>> = columns.iter().map(|name| shown(rows, name)).collect();
    let counts = shown(rows, "count");
    let item = |row: usize| values.iter().map(|column| column[row].clone()).collect();
    (0..counts.len()).map(|row| (item(row), counts[row].parse().unwrap())).collect()
}

#[test]
fn several_columns_are_one_item() {
    let (input, columns) = (requests(3_000), ["host", "status", "time"]);
    let expected = by_hand(&input, &columns);
    for algorithm in [
        Algorithm::Auto,
        Algorithm::SpaceSaving,
        Algorithm::Filter,
        Algorithm::ParallelFilter,
        Algorithm::Sieve,
    ] {
        let count = FrequentItems::new().item(columns).algorithm(algorithm);
        let rows = run(&[&input], 170, count, &[]).unwrap();
        assert_eq!(found(&rows, &columns), expected, "{algorithm:?}");
        let schema = rows[0].schema();
        let names: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        assert_eq!(names, ["rank", "host", "status", "time", "count", "error"]);
        for (name, column) in [("host", 0), ("status", 1), ("time", 2)] {
            let kind = schema.field_with_name(name).unwrap().data_type();
            assert_eq!(kind, input.schema().field(column).data_type());
        }
        let ranks: Vec<u64> =
            shown(&rows, "count").iter().map(|count| count.parse().unwrap()).collect();
        assert!(ranks.is_sorted_by(|one, other| one >= other));
    }
    // Whole windows of a thousand items, of the rows that have one.
    let short = input.slice(0, 800);
    let count = FrequentItems::new().item(columns).window(Window::items(10_000));
    let rows = run(&[&short], 170, count, &[]).unwrap();
    assert_eq!(found(&rows, &columns), by_hand(&short, &columns));
    assert!(shown(&rows, "complete").iter().all(|complete| complete == "false"));
}

#[test]
fn a_state_of_several_columns_goes_on_and_knows_them() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("state");
    let (input, columns) = (requests(2_000), ["host", "status"]);
    let count = || FrequentItems::new().item(columns);
    run(&[&input.slice(0, 900)], 100, count().snapshot(&file), &[]).unwrap();
    let rows = run(&[&input.slice(900, 1_100)], 100, count().restore(&file), &[]).unwrap();
    assert_eq!(found(&rows, &columns), by_hand(&input, &columns));
    let other = FrequentItems::new().item(["host", "time"]).restore(&file);
    let error = run(&[&input], 100, other, &[]).unwrap_err();
    assert!(error.contains("the state has the counts of"), "{error}");
}

#[test]
fn columns_of_items_have_names_of_their_own() {
    let input = requests(500);
    let rows = |item: &[&str]| {
        let item: trommel_operators::Names = item.iter().copied().collect();
        run(&[&input], 100, FrequentItems::new().item(item), &[])
    };
    let named = rows(&["upper(host) as h", "status"]).unwrap();
    assert_eq!(shown(&named, "h").len(), found(&named, &["h", "status"]).len());
    for (item, said) in [
        (&["host", "host"][..], "a column of the rows has this name; rename it"),
        (&["host", "status as count"], "a column of the rows has this name; rename it"),
        (&["host", "unnest([1, 2])"], "make rows of the list by `select` before"),
        (&["host", "nothing"], "nothing"),
        (&[], "name at least one"),
    ] {
        let error = rows(item).unwrap_err();
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn hot_values_of_an_expression_leave_the_stream() {
    let hosts = (0..40_000).map(|row| if row % 3 > 0 { "Hot" } else { ["x", "y"][row % 2] });
    let input = table([("host", Arc::new(LargeStringArray::from_iter_values(hosts)) as ArrayRef)]);
    for item in ["host", "lower(host)"] {
        let mut graph = Graph::new();
        let input = source(&mut graph, "input", &input, 1_000);
        let heavy = graph.add_after(input, "heavy", HeavyFilter::new().item(item));
        let (rest, rest_rows) = Collect::new();
        let (counts, counted) = Collect::new();
        graph.add_after(heavy.port(HeavyFilter::REST), "rest", rest);
        graph.add_after(heavy.port(HeavyFilter::COUNTS), "counts", counts);
        graph.build().unwrap().run(RunOptions::new()).unwrap();
        let mut sums: BTreeMap<String, u64> = BTreeMap::new();
        let counted = counted.take();
        for (host, count) in shown(&counted, item).into_iter().zip(shown(&counted, "count")) {
            *sums.entry(host.to_lowercase()).or_insert(0) += count.parse::<u64>().unwrap();
        }
        assert!(sums["hot"] > 20_000, "{sums:?}");
        for host in shown(&rest_rows.take(), "host") {
            *sums.entry(host.to_lowercase()).or_insert(0) += 1;
        }
        let expected = [("hot", 26_666), ("x", 6_667), ("y", 6_667)];
        let expected = expected.map(|(host, count)| (host.to_owned(), count));
        assert_eq!(sums, expected.into());
    }
}

#[test]
fn texts_of_an_expression_are_cut() {
    let one: ArrayRef = Arc::new(LargeStringArray::from(vec![Some("A b"), None, Some("c A")]));
    let other: ArrayRef = Arc::new(StringArray::from(vec!["D", "e", "F"]));
    let input = table([("one", one), ("other", other)]);
    let cut = |column: &str| Tokenize::words().column(column);
    let rows = run(&[&input], 2, cut("one"), &[]).unwrap();
    assert_eq!(shown(&rows, "item"), ["a", "b", "c", "a"]);
    let rows = run(&[&input], 2, cut("coalesce(one, '') || ' ' || other"), &[]).unwrap();
    assert_eq!(shown(&rows, "item"), ["a", "b", "d", "e", "c", "a", "f"]);
    let sets = cut("one || other").into_text_sets().carry(["*"]);
    let rows = run(&[&input], 2, sets, &[]).unwrap();
    assert_eq!(shown(&rows, "set"), ["[a, bd]", "[]", "[c, af]"]);
    assert_eq!(shown(&rows, "other"), ["D", "e", "F"]);
}
