//! Memory, and many groups.

use super::{Aggregate, Cell, Row, batch, batches, cells, run};

fn rows(count: i64) -> Vec<Row> {
    // Keys that a weak hash maps to few places: multiples of a power of two.
    let row = |number: i64| Row {
        host: Some(format!("{number:020}")),
        code: Some(number << 40),
        ms: Some(0.5),
    };
    (0..count).map(row).collect()
}

#[test]
fn groups_that_look_alike_are_groups_of_their_own() {
    let count = 100_000;
    let rows = rows(count);
    for (by, workers) in [("code", 1), ("code", 3), ("host", 2), ("ms", 2)] {
        let spec = Aggregate::new(["count(*)", "sum(ms)"]).by(by);
        let found = run(spec, batches(&rows, 10_000), Some(workers)).unwrap();
        let groups: usize = found.iter().map(|rows| rows.num_rows()).sum();
        let expected = if by == "ms" { 1 } else { usize::try_from(count).unwrap() };
        assert_eq!(groups, expected, "{by}");
        assert!(found.iter().all(|rows| rows.num_rows() <= 8_192));
        if by == "code" {
            let found = cells(&found);
            for (number, row) in (0..count).zip(found) {
                let expected =
                    [Cell::Whole(i128::from(number) << 40), Cell::Whole(1), Cell::Float(0.5)];
                assert_eq!(row, expected);
            }
        }
    }
}

#[test]
fn texts_with_common_and_short_beginnings_are_in_their_order() {
    let texts =
        ["", "a", "a\0", "a\0\0b", "ab", "a-very-long-beginning-1", "a-very-long-beginning-2"];
    let all = texts
        .map(|text| Some(text.to_owned()))
        .into_iter()
        .chain([None, Some("\u{10ffff}".into())]);
    let all: Vec<Option<String>> = all.collect();
    // Texts that all begin alike, and texts that do not.
    for chosen in [0..9, 1..8, 5..7, 8..9] {
        let context = format!("{chosen:?}");
        let rows: Vec<Row> = all[chosen]
            .iter()
            .rev()
            .map(|host| Row { host: host.clone(), code: None, ms: None })
            .collect();
        let found = run(Aggregate::new("count(*)").by("host"), batches(&rows, 2), Some(2)).unwrap();
        let mut expected: Vec<Option<String>> = rows.into_iter().map(|row| row.host).collect();
        expected.sort();
        let hosts: Vec<Cell> = cells(&found).into_iter().map(|row| row[0].clone()).collect();
        let expected = expected.into_iter().map(|host| Cell::of(host, Cell::Text));
        assert_eq!(hosts, expected.collect::<Vec<_>>(), "{context}");
    }
}

#[test]
fn too_many_groups_are_an_error_with_their_number() {
    let rows = rows(50_000);
    let calls = [
        "count(*)",
        "sum(ms)",
        "min(host)",
        "first(code)",
        "list(ms)",
        "count_distinct(host)",
        "approx_count_distinct(host)",
        "quantile(ms, 0.5)",
    ];
    for call in calls {
        for by in ["code", "host"] {
            let spec = Aggregate::new(call).by(by).memory_max(1_000_000);
            let error = run(spec, batches(&rows, 1_000), None).unwrap_err();
            assert!(error.contains("allowed (`memory_max`)"), "{call}: {error}");
            assert!(error.contains("after ") && error.contains(" groups: "), "{call}: {error}");
        }
    }
}

#[test]
fn the_values_of_one_group_have_a_limit() {
    let rows: Vec<Row> = rows(50_000);
    for call in ["list(host)", "count_distinct(host)"] {
        let spec = Aggregate::new(call).memory_max(1_000_000);
        let error = run(spec, batches(&rows, 1_000), None).unwrap_err();
        assert!(error.contains("after 1 groups: "), "{call}: {error}");
    }
    // A sketch and a histogram of one group are small.
    let calls = ["approx_count_distinct(host)", "quantile(ms, 0.5)", "sum(ms)", "max(host)"];
    let spec = Aggregate::new(calls).memory_max(100_000);
    assert_eq!(run(spec, batches(&rows, 1_000), Some(1)).unwrap()[0].num_rows(), 1);
}

#[test]
fn an_input_without_rows_has_one_group_or_none() {
    let empty = || vec![batch(&[])];
    let spec = Aggregate::new(["count(*)", "sum(ms)", "list(code)"]);
    let found = cells(&run(spec, empty(), None).unwrap());
    assert_eq!(found, [[Cell::Whole(0), Cell::Null, Cell::Null]]);
    let found = run(Aggregate::new("count(*)").by("host"), empty(), Some(2)).unwrap();
    assert!(cells(&found).is_empty());
}
