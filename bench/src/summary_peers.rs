//! Summaries of other crates over the same stream, each with about as many counters.

use std::cmp::Reverse;

use datasketches::frequencies::{ErrorType, FrequentItemsSketch};
use heavykeeper::TopK;
use topk::FilteredSpaceSaving;

use crate::frequent_items::{Answer, Candidate, Estimate, Stream, feed};

/// All peers.
pub(crate) fn candidates() -> [Candidate; 3] {
    [
        Candidate::new("crate datasketches", sketch),
        Candidate::new("crate topk", filtered),
        Candidate::new("crate heavykeeper", heavy_keeper),
    ]
}

fn filtered(stream: &Stream) -> Answer {
    let make = || FilteredSpaceSaving::new(stream.counters);
    let observe = |summary: &mut FilteredSpaceSaving<u32>, batch: &[u32]| {
        batch.iter().for_each(|&item| summary.insert(item, 1));
    };
    feed(stream, make, observe, |summary| {
        let rows = summary.into_sorted_vec().into_iter();
        let counts = rows.map(|(item, counter)| unbounded(item, counter.estimated_count()));
        counts.collect()
    })
}

/// Parameters of its documentation, with a table four times as wide as the list.
fn heavy_keeper(stream: &Stream) -> Answer {
    let make = || TopK::<u32>::new(stream.counters, 4 * stream.counters, 4, 0.9);
    let observe = |summary: &mut TopK<u32>, batch: &[u32]| {
        for item in batch {
            summary.add(item, 1);
        }
    };
    feed(stream, make, observe, |summary| {
        summary.list().into_iter().map(|n| unbounded(n.item, n.count)).collect()
    })
}

/// The usable counters are three quarters of the map, whose size is a power of two.
fn sketch(stream: &Stream) -> Answer {
    let map = (stream.counters * 4 / 3).next_power_of_two();
    let make = || FrequentItemsSketch::<u32>::new(map).expect("a power of two");
    let observe = |summary: &mut FrequentItemsSketch<u32>, batch: &[u32]| {
        batch.iter().for_each(|&item| summary.update(item));
    };
    feed(stream, make, observe, |summary| {
        let rows = summary.frequent_items(ErrorType::NoFalseNegatives);
        let mut estimates: Vec<Estimate> =
            rows.iter().map(|row| unbounded(*row.item(), row.estimate())).collect();
        estimates.sort_by_key(|estimate| Reverse(estimate.count));
        estimates
    })
}

fn unbounded(item: u32, count: u64) -> Estimate {
    Estimate { item, count: Some(count), error: None }
}
