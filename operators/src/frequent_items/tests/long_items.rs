//! Long text items: counted by their names.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{RecordBatch, StringArray};
use trommel_engine::batch::{Batch, Origin, Payload};
use trommel_engine::error::BindError;
use trommel_engine::memory::MemoryBudget;
use trommel_engine::operator::{BindContext, Body, Fragment, OperatorSpec, Output};
use trommel_engine::query::Request;

use super::*;
use crate::testing::{bind, bind_operator};

fn with_memory(spec: FrequentItems, bytes: usize) -> Result<Fragment, BindError> {
    let context = BindContext::new(0).memory(MemoryBudget::new(bytes));
    Box::new(spec).bind(&[column(&[]).schema()], context)
}

fn column(items: &[String]) -> RecordBatch {
    let items: arrow_array::ArrayRef = Arc::new(StringArray::from(items.to_vec()));
    RecordBatch::try_from_iter_with_nullable([("item", items, false)]).unwrap()
}

/// Rows: item and count.
fn rows(records: &RecordBatch) -> Vec<(String, u64)> {
    let items = records["item"].as_string::<i32>().iter().flatten().map(str::to_owned);
    items.zip(records["count"].as_primitive::<UInt64Type>().values().iter().copied()).collect()
}

#[test]
fn long_items_are_counted_apart_and_asked_for_whole() {
    // All items have the same beginning and the same length; item i occurs i + 1 times.
    let long: Vec<String> = (0..50).map(|i| format!("{}{i:04}", "x".repeat(10_000))).collect();
    for algorithm in [Algorithm::SpaceSaving, Algorithm::Filter, Algorithm::Sieve] {
        let spec = FrequentItems::new().algorithm(algorithm).counters(100).item_bytes_max(100);
        let mut operator = bind_operator(spec, &column(&long).schema());
        let mut out = Output::new();
        for i in 0..50 {
            let origin = Origin { sequence: 0, entered: std::time::Instant::now() };
            let batch = Batch { records: column(&long[i..]), origin };
            operator.process(0, Payload::Batch(batch), &mut out).unwrap();
        }
        let ask = |item: &str| {
            let request = Request::new("estimate").with("item", item);
            operator.query(&request, None).unwrap().compute().unwrap()
        };
        for (i, item) in long.iter().enumerate() {
            let (name, count) = rows(&ask(item)).remove(0);
            assert_eq!((count, name.len()), (i as u64 + 1, 100), "{algorithm:?}");
            assert_eq!(rows(&ask(&name)), [(name, count)]);
        }
        assert_eq!(rows(&ask(&"x".repeat(10_004)))[0].1, 0);
        let counters = operator.counters();
        assert!(counters.contains(&("items_shortened", 50 * 51 / 2)), "{counters:?}");
        operator.finish(&mut out).unwrap();
        let (_, sent) = out.drain_sent().next().unwrap();
        let counts: Vec<u64> = rows(&sent.into_records()).into_iter().map(|row| row.1).collect();
        assert!(counts.iter().copied().eq((1..=50).rev()), "{counts:?}");
    }
}

#[test]
fn the_limit_has_bounds() {
    for bytes in [0, 63, (1 << 30) + 1] {
        let spec = FrequentItems::new().item_bytes_max(bytes);
        let error = bind(spec, &[column(&[]).schema()]).unwrap_err();
        assert_eq!(error.parameter, Some("item_bytes_max"));
    }
}

#[test]
fn a_summary_that_outgrows_the_memory_of_the_pipeline_says_what_helps() {
    // Each item has 1 MiB of text, and the pipeline has 4 MiB.
    let spec = || FrequentItems::new().item_bytes_max(1 << 30).counters(100);
    for algorithm in [Algorithm::SpaceSaving, Algorithm::Filter, Algorithm::Sieve] {
        let mut fragment = with_memory(spec().algorithm(algorithm), 4 << 20).unwrap();
        let part = fragment.parts.pop().unwrap();
        let Body::Operator(mut operator) = part.body else { panic!("it counts") };
        let mut out = Output::new();
        let failed = (0..100).find_map(|i| {
            let items = [format!("{i}{}", "x".repeat(1 << 20))];
            let origin = Origin { sequence: 0, entered: std::time::Instant::now() };
            let batch = Batch { records: column(&items), origin };
            operator.process(0, Payload::Batch(batch), &mut out).err().map(|error| (i, error))
        });
        let (items, error) = failed.expect("4 MiB are not 100");
        assert!((2..8).contains(&items), "{items}");
        let error = error.to_string();
        assert!(error.contains("lower `counters` or `item_bytes_max`"), "{error}");
        assert!(error.ends_with("or raise `memory_max`"), "{error}");
    }
    let refused = with_memory(FrequentItems::new().counters(1_000_000), 4 << 20).unwrap_err();
    assert_eq!(refused.parameter, Some("counters"));
}
