//! Rows of any division and any batches are those of the oracle.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use super::{Aggregate, Cell, Row, assert_near, batches, cells, random_rows, run};
use crate::shared::parameters::Names;

/// The order of floats in results: NaN is above all numbers, and both zeros are equal.
fn float_order(left: f64, right: f64) -> Ordering {
    left.partial_cmp(&right).unwrap_or_else(|| left.is_nan().cmp(&right.is_nan()))
}

/// The values of the rows of a group, for each call of [`CALLS`].
fn computed(rows: &[&Row]) -> Vec<Cell> {
    let codes: Vec<i64> = rows.iter().filter_map(|row| row.code).collect();
    let mut times: Vec<f64> = rows.iter().filter_map(|row| row.ms).collect();
    let distinct: BTreeSet<i64> = codes.iter().copied().collect();
    let hosts: Vec<&String> = rows.iter().filter_map(|row| row.host.as_ref()).collect();
    let count = |count: usize| Cell::Whole(count as i128);
    let code = |code: &i64| Cell::Whole((*code).into());
    let sum: i128 = codes.iter().map(|code| i128::from(*code)).sum();
    let mean = (!codes.is_empty()).then(|| sum as f64 / codes.len() as f64);
    let total = (!times.is_empty()).then(|| exact_sum(&times));
    times.sort_by(|left, right| float_order(*left, *right));
    let quantile = if times.len() <= 128 { Cell::Float } else { Cell::About };
    let median = times.get((times.len().max(1) - 1) / 2).copied();
    let largest = times.get((99 * times.len()).div_ceil(100).max(1) - 1).copied();
    vec![
        count(rows.len()),
        count(codes.len()),
        if codes.is_empty() { Cell::Null } else { Cell::Whole(sum) },
        Cell::of(mean, Cell::Float),
        Cell::of(codes.iter().min(), code),
        Cell::of(codes.iter().max(), code),
        Cell::of(total, Cell::Float),
        Cell::of(times.first().copied(), Cell::Float),
        Cell::of(times.last().copied(), Cell::Float),
        Cell::of(hosts.iter().min(), |host| Cell::Text(host.to_string())),
        Cell::of(hosts.iter().max(), |host| Cell::Text(host.to_string())),
        count(distinct.len()),
        // Few values are kept as they are.
        match distinct.len() {
            few @ ..=256 => count(few),
            many => Cell::Estimate(many as i128),
        },
        Cell::of(median, quantile),
        Cell::of(largest, quantile),
    ]
}

/// A sum of floats that loses nothing: of multiples of 2^-60, as integers.
#[expect(clippy::cast_possible_truncation, reason = "the floats are below 2^20")]
fn exact_sum(floats: &[f64]) -> f64 {
    if floats.iter().any(|float| float.is_nan()) {
        return f64::NAN;
    }
    let scale = 60_f64.exp2();
    floats.iter().map(|float| (float * scale) as i128).sum::<i128>() as f64 / scale
}

const CALLS: [&str; 15] = [
    "count(*) as n",
    "count(code)",
    "sum(code) as total",
    "avg(code)",
    "min(code)",
    "max(code)",
    "sum(ms)",
    "min(ms)",
    "max(ms)",
    "min(host)",
    "max(host)",
    "count(distinct code)",
    "approx_count_distinct(code)",
    "quantile(ms, 0.5)",
    "quantile(ms, 0.99)",
];

/// Calls whose values depend on the order of rows.
const ORDERED: [&str; 4] = ["first(code)", "last(host)", "list(code)", "list(host)"];

fn computed_in_order(rows: &[&Row]) -> Vec<Cell> {
    let codes = || rows.iter().filter_map(|row| row.code).map(|code| Cell::Whole(code.into()));
    let hosts = || rows.iter().filter_map(|row| row.host.clone()).map(Cell::Text);
    let list = |cells: Vec<Cell>| if cells.is_empty() { Cell::Null } else { Cell::List(cells) };
    vec![
        codes().next().unwrap_or(Cell::Null),
        hosts().next_back().unwrap_or(Cell::Null),
        list(codes().collect()),
        list(hosts().collect()),
    ]
}

/// The rows of groups in their order, with the values that `values` computes.
fn grouped<K: Ord>(
    rows: &[Row],
    key: impl Fn(&Row) -> K,
    cells: impl Fn(&K) -> Vec<Cell>,
    values: impl Fn(&[&Row]) -> Vec<Cell>,
) -> Vec<Vec<Cell>> {
    let mut groups = BTreeMap::<K, Vec<&Row>>::new();
    rows.iter().for_each(|row| groups.entry(key(row)).or_default().push(row));
    groups.iter().map(|(key, rows)| [cells(key), values(rows)].concat()).collect()
}

fn text(text: &Option<String>) -> Cell {
    Cell::of(text.clone(), Cell::Text)
}

fn whole(whole: &Option<i64>) -> Cell {
    Cell::of(*whole, |whole| Cell::Whole(whole.into()))
}

#[test]
fn rows_do_not_depend_on_batches_and_workers() {
    for (seed, count, groups) in [(1, 0, 3), (2, 1, 3), (3, 300, 4), (4, 2_500, 30), (5, 900, 400)]
    {
        let rows = random_rows(seed, count, groups);
        let of_hosts = grouped(&rows, |row| row.host.clone(), |host| vec![text(host)], computed);
        let of_both = grouped(
            &rows,
            |row| (row.code, row.host.clone()),
            |(code, host)| vec![whole(code), text(host)],
            computed,
        );
        let of_codes = grouped(&rows, |row| row.code, |code| vec![whole(code)], computed);
        let of_all = vec![computed(&rows.iter().collect::<Vec<_>>())];
        for len in [1, 7, 1_000] {
            for workers in [1, 2, 3, 8] {
                if len == 1 && workers == 8 && count > 1_000 {
                    continue;
                }
                let context = format!("{seed}, {count} rows of {len}, {workers} workers");
                let check = |by: &[&str], expected: &[Vec<Cell>]| {
                    let spec = Aggregate::new(CALLS).by(by.iter().copied().collect::<Names>());
                    let found = run(spec, batches(&rows, len), Some(workers)).unwrap();
                    assert_near(&cells(&found), expected, format!("{context}, {by:?}"));
                };
                check(&["host"], &of_hosts);
                check(&["code as c", "host"], &of_both);
                check(&["code"], &of_codes);
                check(&[], &of_all);
            }
        }
    }
}

#[test]
fn values_in_the_order_of_rows_come_from_one_place() {
    for (seed, count, groups) in [(1, 0, 3), (2, 1, 3), (3, 300, 4), (4, 2_500, 30), (5, 900, 400)]
    {
        let rows = random_rows(seed, count, groups);
        let key = |row: &Row| (row.code.map(|code| code.rem_euclid(5)), row.host.clone());
        let cells_of = |(code, host): &(Option<i64>, Option<String>)| vec![whole(code), text(host)];
        let expected = grouped(&rows, key, cells_of, computed_in_order);
        for len in [1, 7, 1_000] {
            let spec = Aggregate::new(ORDERED).by(["(code % 5 + 5) % 5 as c", "host"]);
            let found = run(spec, batches(&rows, len), None).unwrap();
            assert_near(&cells(&found), &expected, format!("{seed}, {len}"));
        }
    }
}

#[test]
fn quantiles_of_many_values_are_off_by_less_than_a_thousandth() {
    let rows = random_rows(6, 30_000, 3);
    let thousandths = [0, 1, 100, 500, 900, 999];
    let calls = thousandths.map(|share| format!("quantile(ms, {share} / 1000)"));
    let mut times: Vec<f64> = rows.iter().filter_map(|row| row.ms).collect();
    times.sort_by(|left, right| float_order(*left, *right));
    for workers in [1, 3] {
        let spec = Aggregate::new(calls.clone());
        let found = run(spec, batches(&rows, 700), Some(workers)).unwrap();
        for (share, cell) in thousandths.iter().zip(&cells(&found)[0]) {
            let place = (share * times.len()).div_ceil(1_000).max(1) - 1;
            let Cell::Float(found) = cell else { panic!("{cell:?}") };
            let exact = times[place];
            let is_near = (found - exact).abs() <= 0.001 * exact.abs();
            assert!(is_near || (found.is_nan() && exact.is_nan()), "{share}: {found} {exact}");
        }
    }
}

#[test]
fn estimates_are_near_the_number_of_distinct_values() {
    let rows: Vec<Row> =
        (0..40_000).map(|code| Row { host: None, code: Some(code % 17_000), ms: None }).collect();
    let mut found = Vec::new();
    for workers in [1, 3] {
        let spec = Aggregate::new(["approx_count_distinct(code) as n", "count_distinct(code)"]);
        let rows = cells(&run(spec, batches(&rows, 999), Some(workers)).unwrap());
        assert_eq!(rows[0][1], Cell::Whole(17_000));
        let Cell::Whole(estimate) = rows[0][0] else { panic!("{rows:?}") };
        assert!((16_000..18_000).contains(&estimate), "{estimate}");
        found.push(estimate);
    }
    assert_eq!(found[0], found[1], "an estimate does not depend on workers");
}
