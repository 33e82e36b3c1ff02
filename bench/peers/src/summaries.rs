//! Summaries of other crates over the same stream, each with about as many counters.

use std::cmp::Reverse;
use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

use datasketches::frequencies::{ErrorType, FrequentItemsSketch};
use heavykeeper::TopK;
use serde::Deserialize;
use serde_json::{Value, json};
use topk::FilteredSpaceSaving;

use crate::ALLOCATOR;
use crate::numbers::read_u32;

/// A run of a summary over the items of a file.
#[derive(Debug, Deserialize)]
pub(crate) struct Job {
    /// Name of the summary, as in the table.
    summary: String,
    items: PathBuf,
    counters: usize,
    /// Items of a batch.
    batch: usize,
    /// Times that the items are counted.
    repeats: usize,
}

/// The items of the latest job.
#[derive(Default)]
pub(crate) struct Summaries {
    path: PathBuf,
    items: Vec<u32>,
}

/// Items with their counts, the most frequent ones first.
type Rows = Vec<(u32, u64)>;

impl Summaries {
    pub(crate) fn run(&mut self, job: &Job) -> Result<Value, Box<dyn Error>> {
        if self.path != job.items {
            self.items = read_u32(&job.items)?;
            self.path.clone_from(&job.items);
        }
        match job.summary.as_str() {
            "crate datasketches" => Ok(self.sketch(job)),
            "crate topk" => Ok(self.filtered(job)),
            "crate heavykeeper" => Ok(self.heavy_keeper(job)),
            other => Err(format!("no summary has the name {other:?}").into()),
        }
    }

    /// Creates a summary and feeds it all batches within the clock, then asks for its rows outside
    /// of it. The bytes of the state are those that it holds before it is asked.
    fn feed<S>(
        &self,
        job: &Job,
        make: impl FnOnce() -> S,
        mut observe: impl FnMut(&mut S, &[u32]),
        ask: impl FnOnce(S) -> Rows,
    ) -> Value {
        let before = ALLOCATOR.allocated();
        let begin = Instant::now();
        let mut state = make();
        for _ in 0..job.repeats {
            self.items.chunks(job.batch).for_each(|batch| observe(&mut state, batch));
        }
        let seconds = begin.elapsed().as_secs_f64();
        let state_bytes = size_of::<S>() + ALLOCATOR.allocated().saturating_sub(before);
        json!({ "seconds": seconds, "rows": ask(state), "state_bytes": state_bytes })
    }

    fn filtered(&self, job: &Job) -> Value {
        let make = || FilteredSpaceSaving::new(job.counters);
        let observe = |summary: &mut FilteredSpaceSaving<u32>, batch: &[u32]| {
            batch.iter().for_each(|&item| summary.insert(item, 1));
        };
        self.feed(job, make, observe, |summary| {
            let rows = summary.into_sorted_vec().into_iter();
            rows.map(|(item, counter)| (item, counter.estimated_count())).collect()
        })
    }

    /// Parameters of its documentation, with a table four times as wide as the list.
    fn heavy_keeper(&self, job: &Job) -> Value {
        let make = || TopK::<u32>::new(job.counters, 4 * job.counters, 4, 0.9);
        let observe = |summary: &mut TopK<u32>, batch: &[u32]| {
            for item in batch {
                summary.add(item, 1);
            }
        };
        self.feed(job, make, observe, |summary| {
            summary.list().into_iter().map(|node| (node.item, node.count)).collect()
        })
    }

    /// The usable counters are three quarters of the map, whose size is a power of two.
    fn sketch(&self, job: &Job) -> Value {
        let map = (job.counters * 4 / 3).next_power_of_two();
        let make = || FrequentItemsSketch::<u32>::new(map).expect("a power of two");
        let observe = |summary: &mut FrequentItemsSketch<u32>, batch: &[u32]| {
            batch.iter().for_each(|&item| summary.update(item));
        };
        self.feed(job, make, observe, |summary| {
            let rows = summary.frequent_items(ErrorType::NoFalseNegatives);
            let mut rows: Rows = rows.iter().map(|row| (*row.item(), row.estimate())).collect();
            rows.sort_by_key(|&(_, count)| Reverse(count));
            rows
        })
    }
}
