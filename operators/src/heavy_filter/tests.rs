//! Conservation: the rest and the counts make up the input, for every type of item and shape of
//! batch, against counting in a map.

use std::collections::BTreeMap;

use arrow_array::cast::AsArray;
use arrow_array::types::{UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch, StringArray, UInt32Array, UInt64Array};
use proptest::prelude::*;
use trommel_engine::batch::{Batch, Origin, Payload};
use trommel_engine::operator::{Body, Output};

use super::*;
use crate::testing::bind;

/// Number of occurrences of each item in a stream. Items are texts, so that all types compare.
type Counts = BTreeMap<String, u64>;

fn text_of(items: &dyn Array, row: usize) -> String {
    match items.data_type() {
        DataType::UInt32 => items.as_primitive::<UInt32Type>().value(row).to_string(),
        DataType::UInt64 => items.as_primitive::<UInt64Type>().value(row).to_string(),
        _ => items.as_string::<i32>().value(row).to_owned(),
    }
}

fn count_rows(records: &RecordBatch, counts: &mut Counts) {
    let items = records.column(0);
    for row in 0..records.num_rows() {
        let item = if items.is_null(row) { "null".to_owned() } else { text_of(items, row) };
        *counts.entry(item).or_default() += 1;
    }
}

/// The output of both ports: rows of `rest`, in order, and the summed `counts`.
fn run(batches: &[RecordBatch]) -> (Vec<RecordBatch>, Counts) {
    let schema = batches[0].schema();
    let fragment = bind(HeavyFilter::new(), &[schema]).expect("it binds");
    let Some(Body::Operator(mut operator)) = fragment.parts.into_iter().map(|p| p.body).next()
    else {
        panic!("one operator")
    };
    let mut out = Output::new();
    let origin = Origin { sequence: 0, entered: std::time::Instant::now() };
    for records in batches {
        let batch = Batch { records: records.clone(), origin };
        operator.process(0, Payload::Batch(batch), &mut out).expect("it processes");
    }
    operator.finish(&mut out).expect("it finishes");
    let (mut rest, mut counts) = (Vec::new(), Counts::new());
    for (port, payload) in out.drain_sent() {
        let records = payload.into_records();
        if port == HeavyFilter::REST {
            rest.push(records);
            continue;
        }
        let hits = records.column(1).as_primitive::<UInt64Type>();
        for row in 0..records.num_rows() {
            assert!(hits.value(row) > 0, "nothing is reported for nothing");
            *counts.entry(text_of(records.column(0), row)).or_default() += hits.value(row);
        }
    }
    (rest, counts)
}

/// Checks conservation, and that the rest keeps the rows and their order; returns the number of
/// rows that were taken out.
fn check(batches: &[RecordBatch]) -> u64 {
    let mut expected = Counts::new();
    batches.iter().for_each(|records| count_rows(records, &mut expected));
    let (rest, counts) = run(batches);
    let taken_out = counts.values().sum();
    let mut found = counts;
    rest.iter().for_each(|records| count_rows(records, &mut found));
    assert_eq!(found, expected);
    if batches[0].num_columns() > 1 {
        let positions: Vec<u32> = rest
            .iter()
            .flat_map(|records| records.column(1).as_primitive::<UInt32Type>().values().to_vec())
            .collect();
        assert!(positions.is_sorted(), "the rest keeps its order");
    }
    taken_out
}

fn column(items: &[Option<u32>], item_type: &DataType) -> ArrayRef {
    match item_type {
        DataType::UInt32 => Arc::new(UInt32Array::from(items.to_vec())),
        DataType::UInt64 => {
            let wide = items.iter().map(|item| item.map(|item| u64::from(item) << 31));
            Arc::new(wide.collect::<UInt64Array>())
        }
        _ => {
            let text = items.iter().map(|item| item.map(|item| format!("item {item}")));
            Arc::new(text.collect::<StringArray>())
        }
    }
}

/// Batches of the items; if `is_wide`, with a column of their positions in the stream.
fn batches(
    items: &[Option<u32>],
    batch: usize,
    item_type: &DataType,
    is_wide: bool,
) -> Vec<RecordBatch> {
    let mut fields = vec![Field::new("item", item_type.clone(), true)];
    if is_wide {
        fields.push(Field::new("position", DataType::UInt32, false));
    }
    let schema = Arc::new(Schema::new(fields));
    (0_u32..)
        .step_by(batch)
        .zip(items.chunks(batch))
        .map(|(start, items)| {
            let mut columns = vec![column(items, item_type)];
            if is_wide {
                let end = start + u32::try_from(items.len()).unwrap();
                columns.push(Arc::new(UInt32Array::from_iter_values(start..end)));
            }
            RecordBatch::try_new(Arc::clone(&schema), columns).unwrap()
        })
        .collect()
}

const TYPES: [DataType; 3] = [DataType::UInt32, DataType::UInt64, DataType::Utf8];

/// 31 of 32 rows have one item, and each 32nd row has an item that occurs once.
#[test]
fn a_period_of_the_stream_hides_nothing_from_the_sample() {
    for first in [0, 1, 31] {
        let item = |row: u32| if row % 32 == first { 1000 + row } else { 7 };
        let items: Vec<Option<u32>> = (0..320_000).map(|row| Some(item(row))).collect();
        let taken_out = check(&batches(&items, 4096, &DataType::UInt32, false));
        assert!(taken_out > 290_000, "only {taken_out} rows were taken out");
    }
}

/// Two of three rows have an item out of `hot` items; these items change in the middle of the
/// stream.
fn skewed(rows: u32, hot: u32) -> Vec<Option<u32>> {
    let phase = |row| if row < rows / 2 { 0 } else { 1000 };
    let row =
        |row: u32| if row.is_multiple_of(3) { 5000 + row } else { phase(row) + row / 3 % hot };
    (0..rows).map(|r| Some(row(r))).collect()
}

#[test]
fn hot_items_are_taken_out_and_the_sums_are_kept() {
    for item_type in &TYPES {
        for is_wide in [false, true] {
            let items = skewed(200_000, 5);
            let taken_out = check(&batches(&items, 1000, item_type, is_wide));
            assert!(taken_out > 80_000, "only {taken_out} rows of {item_type} were taken out");
        }
    }
}

#[test]
fn a_stream_with_nothing_hot_passes_untouched() {
    let items: Vec<Option<u32>> = (0..50_000).map(Some).collect();
    let batches = batches(&items, 5000, &DataType::UInt32, false);
    let (rest, counts) = run(&batches);
    assert_eq!((rest, counts), (batches, Counts::new()));
}

#[test]
fn another_column_than_an_item_is_refused() {
    let schema = Arc::new(Schema::new(vec![Field::new("item", DataType::Binary, false)]));
    let error = bind(HeavyFilter::new(), &[schema]).unwrap_err().to_string();
    assert!(error.contains("a number, a text, a date"), "{error}");
}

proptest! {
    #[test]
    fn the_rest_and_the_counts_make_up_the_input(
        hot in 1..10_u32,
        rows in 1..20_000_u32,
        batch in 1..3000_usize,
        null in 2..50_usize,
        item_type in 0..3_usize,
        is_wide: bool,
    ) {
        let mut items = skewed(rows, hot);
        items.iter_mut().step_by(null).for_each(|item| *item = None);
        check(&batches(&items, batch, &TYPES[item_type], is_wide));
    }
}
