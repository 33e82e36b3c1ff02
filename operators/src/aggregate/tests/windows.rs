//! Windows of items, one after the other and overlapping.

use super::{Aggregate, Cell, Row, assert_near, batches, cells, random_rows, run};
use crate::shared::window::Window;

/// The rows of windows of `len` rows, with a new window every `slide` rows.
fn expected(rows: &[Row], len: usize, slide: usize) -> Vec<Vec<Cell>> {
    let mut found = Vec::new();
    let mut end = slide;
    while end < rows.len() + slide && !rows.is_empty() {
        let last = end.min(rows.len());
        let begin = end.saturating_sub(len);
        let mut hosts: Vec<Option<&String>> =
            rows[begin..last].iter().map(|row| row.host.as_ref()).collect();
        hosts.sort();
        hosts.dedup();
        for host in hosts {
            let of_host: Vec<&Row> =
                rows[begin..last].iter().filter(|row| row.host.as_ref() == host).collect();
            let codes: Vec<i128> =
                of_host.iter().filter_map(|row| row.code.map(i128::from)).collect();
            let count = |count: usize| Cell::Whole(count as i128);
            let is_complete = last == end && end - begin == len;
            found.push(vec![
                count(begin),
                count(last),
                Cell::Whole(i128::from(is_complete)),
                Cell::of(host.cloned(), Cell::Text),
                count(of_host.len()),
                if codes.is_empty() { Cell::Null } else { Cell::Whole(codes.iter().sum()) },
                Cell::of(codes.first().copied(), Cell::Whole),
                match codes.is_empty() {
                    true => Cell::Null,
                    false => Cell::List(codes.into_iter().map(Cell::Whole).collect()),
                },
            ]);
        }
        end += slide;
    }
    found
}

#[test]
fn windows_of_items_are_those_of_the_oracle() {
    let calls = ["count(*) as n", "sum(code)", "first(code)", "list(code)"];
    for (count, len, slide) in [
        (0, 5, 5),
        (1, 5, 5),
        (100, 10, 10),
        (103, 10, 10),
        (300, 30, 10),
        (47, 40, 10),
        (29, 3, 1),
    ] {
        let rows = random_rows(count as u64, count, 5);
        let expected = expected(&rows, len, slide);
        for cut in [1, 7, 1_000] {
            let window = Window::items(len as u64).slide(slide as f64);
            let spec = Aggregate::new(calls).by("host").window(window);
            let found = run(spec, batches(&rows, cut), None).unwrap();
            assert_near(&cells(&found), &expected, format!("{count}, {len}, {slide}, {cut}"));
        }
    }
}

#[test]
fn a_window_of_seconds_names_its_borders() {
    let rows = random_rows(3, 50, 4);
    let spec = Aggregate::new("count(*) as n").window(Window::seconds(3_600.0));
    let found = run(spec, batches(&rows, 7), None).unwrap();
    let names: Vec<String> =
        found[0].schema().fields().iter().map(|field| field.name().clone()).collect();
    assert_eq!(names, ["window_start", "window_end", "complete", "n"]);
    // The hour may end during the test.
    let total: i128 = cells(&found)
        .iter()
        .map(|row| {
            let [Cell::Whole(start), Cell::Whole(end), complete, Cell::Whole(count)] = &row[..]
            else {
                panic!("{row:?}")
            };
            assert_eq!((end - start, start % 3_600_000), (3_600_000, 0));
            assert_eq!(*complete, Cell::Whole(0));
            *count
        })
        .sum();
    assert_eq!(total, 50);
}

#[test]
fn the_panes_of_a_window_share_the_memory() {
    let rows: Vec<Row> = (0..50_000)
        .map(|number| Row { host: Some(format!("host {number}")), code: None, ms: None })
        .collect();
    let spec = |len| {
        let window = Window::items(len).slide(1_000.0);
        Aggregate::new("count(*)").by("host").window(window).memory_max(2_000_000)
    };
    assert!(run(spec(2_000), batches(&rows, 500), None).is_ok(), "panes give their memory back");
    let error = run(spec(50_000), batches(&rows, 500), None).unwrap_err();
    assert!(error.contains("allowed (`memory_max`)"), "{error}");
}
