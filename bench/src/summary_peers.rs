//! Summaries of other crates over the same stream, each with about as many counters.

use std::cmp::Reverse;

use datasketches::frequencies::{ErrorType, FrequentItemsSketch};
use heavykeeper::TopK;
use topk::FilteredSpaceSaving;

use crate::frequent_items::{Candidate, Estimate, Stream};

pub(crate) const CANDIDATES: [Candidate; 3] =
    [("topk crate", filtered), ("heavykeeper crate", heavy_keeper), ("datasketches crate", sketch)];

fn filtered(stream: &Stream) -> Vec<Estimate> {
    let mut summary = FilteredSpaceSaving::new(stream.counters);
    stream.items().iter().for_each(|&item| summary.insert(item, 1));
    let rows = summary.into_sorted_vec();
    rows.into_iter()
        .map(|(item, counter)| Estimate { item, count: counter.estimated_count(), error: None })
        .collect()
}

/// The parameters of its documentation, with a table four times as wide as the list.
fn heavy_keeper(stream: &Stream) -> Vec<Estimate> {
    let mut summary: TopK<u32> = TopK::new(stream.counters, 4 * stream.counters, 4, 0.9);
    stream.items().iter().for_each(|item| {
        summary.add(item, 1);
    });
    let nodes = summary.list();
    nodes.into_iter().map(|n| Estimate { item: n.item, count: n.count, error: None }).collect()
}

/// Its map holds three quarters of a power of two.
fn sketch(stream: &Stream) -> Vec<Estimate> {
    let map = (stream.counters * 4 / 3).next_power_of_two();
    let mut summary = FrequentItemsSketch::<u32>::new(map).expect("a power of two");
    stream.items().iter().for_each(|&item| summary.update(item));
    let rows = summary.frequent_items(ErrorType::NoFalseNegatives);
    let mut estimates: Vec<Estimate> = rows
        .iter()
        .map(|row| Estimate { item: *row.item(), count: row.estimate(), error: None })
        .collect();
    estimates.sort_by_key(|estimate| Reverse(estimate.count));
    estimates
}
