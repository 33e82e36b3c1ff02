//! `union` in pipelines: filters for hot items on several cores before one counter give the
//! counts of the counter alone.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{UInt32Type, UInt64Type};
use arrow_array::{ArrayRef, RecordBatch, UInt32Array, UInt64Array};
use proptest::prelude::*;
use trommel::placement::{Placement, available_cores};
use trommel::{
    Collect, FrequentItems, Graph, HeavyFilter, Memory, Request, RunOptions, Union, error,
};

use crate::support::oracle::ExactCounts;
use crate::support::streams::{Kind, kinds, stream};
use crate::support::watched;

fn source(items: &[u64]) -> Memory {
    let column = |items: &[u64]| -> ArrayRef { Arc::new(UInt64Array::from(items.to_vec())) };
    let batch = |items| RecordBatch::try_from_iter([("item", column(items))]).unwrap();
    let batches: Vec<_> = items.chunks(500).map(batch).collect();
    Memory::new(batch(&[]).schema(), batches)
}

/// Rows of an exact counter after a union of both outputs of a filter for each stream, and the
/// number of items taken out by the filters.
fn counted(streams: &[Vec<u64>], placement: Placement) -> (Vec<RecordBatch>, u64) {
    let mut graph = Graph::new();
    graph.placement(placement);
    let mut outputs = Vec::new();
    for (index, items) in streams.iter().enumerate() {
        let items = graph.add(format!("items {index}"), source(items));
        let filter = graph.add_after(items, format!("filter {index}"), HeavyFilter::new());
        outputs.extend([filter.port(HeavyFilter::REST), filter.port(HeavyFilter::COUNTS)]);
    }
    let all = graph.add("all", Union::new().fill("count", 1));
    for output in outputs {
        graph.connect(output, all);
    }
    let counter = FrequentItems::new().weight("count").counters(20_000);
    let counts = graph.add_after(all, "counts", counter);
    let (sink, rows) = Collect::new();
    graph.add_after(counts, "rows", sink);
    let metrics = watched(move || graph.build().unwrap().run(RunOptions::new())).unwrap();
    let counters = metrics.stages.iter().flat_map(|stage| &stage.parts[0].counters);
    let taken_out = counters.filter(|(name, _)| *name == "taken_out").map(|(_, count)| count);
    (rows.take(), taken_out.sum())
}

/// Checks the counts of all items; returns the number of items taken out by the filters.
fn check(streams: &[Vec<u64>], placement: Placement) -> u64 {
    let mut truth = ExactCounts::new();
    streams.iter().flatten().for_each(|item| truth.add(item, 1));
    let mut found = ExactCounts::new();
    let (rows, taken_out) = counted(streams, placement);
    for rows in rows {
        let column = |name: &str| {
            rows.column_by_name(name).unwrap().as_primitive::<UInt64Type>().values().to_vec()
        };
        assert!(column("error").iter().all(|&error| error == 0));
        for (item, count) in column("item").iter().zip(column("count")) {
            assert_eq!(found.count(item), 0, "each item once");
            found.add(item, count);
        }
    }
    assert_eq!(found.total(), truth.total());
    for (item, count) in truth.iter() {
        assert_eq!(found.count(item), count, "item {item}");
    }
    taken_out
}

#[test]
fn filters_in_front_of_a_counter_change_no_count() {
    let skewed = |seed| stream(Kind::Skewed(3.0), 60_000, seed);
    let streams = [skewed(1), skewed(2), stream(Kind::Distinct, 5_000, 3), Vec::new()];
    for placement in [Placement::Auto, Placement::Fused] {
        let taken_out = check(&streams, placement);
        assert!(taken_out > 40_000, "only {taken_out} items were taken out");
        check(&streams[..1], placement);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn any_streams_are_counted_exactly(
        streams in proptest::collection::vec((kinds(50), 0..20_000_u64, any::<u64>()), 1..4),
    ) {
        let streams: Vec<_> =
            streams.into_iter().map(|(kind, len, seed)| stream(kind, len, seed)).collect();
        check(&streams, Placement::Auto);
    }
}

/// Endless stream of batches of `item`, preceded by a second column if `is_swapped`.
fn endless(item: u32, is_swapped: bool) -> Memory {
    let items: ArrayRef = Arc::new(UInt32Array::from(vec![item; 100]));
    let others: ArrayRef = Arc::new(UInt32Array::from(vec![0; 100]));
    let mut columns = vec![("item", items), ("other", others)];
    if is_swapped {
        columns.reverse();
    }
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    Memory::new(batch.schema(), std::iter::repeat_with(move || batch.clone()))
}

#[test]
fn queries_and_a_stop_pass_through_a_union() {
    watched(|| {
        let cores = available_cores();
        let mut graph = Graph::new();
        let all = graph.add("all", Union::new());
        for (item, is_swapped) in [(1, false), (2, true), (3, true)] {
            let items = graph.add(format!("items {item}"), endless(item, is_swapped));
            graph.connect(items, all);
        }
        graph.cores(all, [cores[cores.len() - 1]]);
        let top = graph.add_after(all, "top", FrequentItems::new().counters(10));
        let (sink, rows) = Collect::new();
        graph.add_after(top, "rows", sink);
        let running = graph.build().unwrap().start(RunOptions::new()).unwrap();
        let unknown = running.query("all", &Request::new("top")).unwrap_err().to_string();
        assert_eq!(unknown, "the operator has no query `top`; it answers none");
        loop {
            let answer = running.query("top", &Request::new("top")).unwrap();
            if answer.num_rows() == 3 {
                break;
            }
        }
        running.stop();
        let metrics = running.join().unwrap();
        let sent: u64 =
            (1..=3).map(|item| metrics.stage(&format!("items {item}")).unwrap().items_out()).sum();
        let all = metrics.stage("all").unwrap();
        assert_eq!((all.items_in(), all.items_out()), (sent, sent));
        let counted = rows.take();
        let counts = counted[0].column_by_name("count").unwrap().as_primitive::<UInt64Type>();
        assert_eq!(counts.values().iter().sum::<u64>(), sent);
        let items = counted[0].column_by_name("item").unwrap().as_primitive::<UInt32Type>();
        assert_eq!(items.len(), 3);
    });
}

#[test]
fn a_union_of_nothing_is_refused() {
    let mut graph = Graph::new();
    let all = graph.add("all", Union::new());
    let (sink, _rows) = Collect::new();
    graph.add_after(all, "rows", sink);
    let error::GraphErrors(errors) = graph.build().unwrap_err();
    assert_eq!(errors[0].to_string(), "stage `all`: `union` takes at least one input, found 0");
}
