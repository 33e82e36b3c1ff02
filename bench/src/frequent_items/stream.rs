//! Stream, its exact counts, and answers of summaries.

use std::cell::OnceCell;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::io::Write as _;
use std::iter::repeat_n;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::{ArrayRef, RecordBatch, UInt32Array};
use arrow_schema::{DataType, Field, Schema};
use tempfile::{NamedTempFile, TempPath};
use trommel::Zipf;

use crate::runner::numbers::bytes;

/// Number of most frequent items whose accuracy is reported.
const TOP: usize = 100;
const SEED: u64 = 1;

/// Estimate of an item by a candidate.
#[derive(Debug, Clone, Copy)]
pub(super) struct Estimate {
    pub(super) item: u32,
    /// `None` if the candidate only names the item.
    pub(super) count: Option<u64>,
    /// Maximum overestimate of the count; `None` if the candidate gives no such bound.
    pub(super) error: Option<u64>,
}

/// Answer of a candidate for a stream.
#[derive(Debug, Default)]
pub(super) struct Answer {
    /// Time of making the summary and feeding it, without the query for its result.
    pub(super) time: Duration,
    /// Estimates, the most frequent item first; empty if the candidate counts nothing.
    pub(super) estimates: Vec<Estimate>,
    pub(super) state_bytes: Option<usize>,
}

/// Parameters of a stream.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    pub(super) items: usize,
    pub(super) alphabet: u32,
    pub(super) counters: usize,
    /// Items per batch.
    pub(super) batch: usize,
}

/// Zipf stream with its exact counts.
pub(super) struct Stream {
    pub(super) counters: usize,
    pub(super) batch: usize,
    array: UInt32Array,
    /// Number of repetitions of the items of `array`.
    repeats: usize,
    counts: Vec<u64>,
    /// The most frequent items, in descending order.
    top: Vec<u32>,
    /// File of the items for other programs, once one of them needs it.
    file: OnceCell<TempPath>,
}

impl Stream {
    pub(super) fn zipf(shape: Shape, skew: f64) -> Self {
        let mut items = vec![0; shape.items];
        let mut zipf = Zipf::new(shape.alphabet, skew, SEED).expect("clap checked the numbers");
        zipf.fill(&mut items);
        Self::new(items, 1, shape)
    }

    /// A stream of about the same length: its first `window` items, repeated.
    pub(super) fn repeated(&self, window: usize) -> Self {
        let items = self.array.values();
        let window = &items[..window.min(items.len())];
        let shape = Shape {
            items: items.len(),
            alphabet: u32::try_from(self.alphabet()).expect("items are u32"),
            counters: self.counters,
            batch: self.batch,
        };
        Self::new(window.to_vec(), items.len().div_ceil(window.len()), shape)
    }

    fn new(items: Vec<u32>, repeats: usize, shape: Shape) -> Self {
        let mut counts = vec![0_u64; shape.alphabet as usize];
        items.iter().for_each(|&item| counts[item as usize] += repeats as u64);
        let mut top: Vec<u32> = (0..shape.alphabet).collect();
        let by_count = |item: &u32| Reverse(counts[*item as usize]);
        let top_len = TOP.min(top.len());
        top.select_nth_unstable_by_key(top_len - 1, by_count);
        top.truncate(top_len);
        top.sort_by_key(by_count);
        top.retain(|&item| counts[item as usize] > 0);
        let Shape { counters, batch, .. } = shape;
        let (array, file) = (UInt32Array::from(items), OnceCell::new());
        Self { counters, batch, array, repeats, counts, top, file }
    }

    /// Items without repetitions.
    pub(super) fn items(&self) -> &[u32] {
        self.array.values()
    }

    /// Times that the items come.
    pub(super) fn repeats(&self) -> usize {
        self.repeats
    }

    /// The items without repetitions as a file of little-endian numbers.
    ///
    /// # Panics
    /// If it cannot be written.
    pub(super) fn file(&self) -> &Path {
        self.file.get_or_init(|| {
            let mut file = NamedTempFile::new().expect("a folder for temporary files");
            for items in self.items().chunks(1 << 16) {
                file.write_all(&bytes(items.iter().copied())).expect("a disk with room");
            }
            file.into_temp_path()
        })
    }

    /// Number of different items, at most; all are below.
    pub(super) fn alphabet(&self) -> usize {
        self.counts.len()
    }

    /// Number of items, including repetitions.
    pub(super) fn len(&self) -> usize {
        self.array.len() * self.repeats
    }

    /// All batches, including repetitions.
    pub(super) fn batches(&self) -> impl Iterator<Item = &[u32]> {
        (0..self.repeats).flat_map(|_| self.items().chunks(self.batch))
    }

    /// All batches for a pipeline, without copying items.
    pub(super) fn records(&self) -> impl Iterator<Item = RecordBatch> + Send + 'static {
        let starts = (0..self.array.len()).step_by(self.batch);
        let schema = Arc::new(Schema::new(vec![Field::new("item", DataType::UInt32, false)]));
        let batch = |start| {
            let len = self.batch.min(self.array.len() - start);
            let column: ArrayRef = Arc::new(self.array.slice(start, len));
            let batch = RecordBatch::try_new(Arc::clone(&schema), vec![column]);
            batch.expect("one column of this type")
        };
        let window: Vec<RecordBatch> = starts.map(batch).collect();
        repeat_n(window, self.repeats).flatten()
    }

    fn truth(&self, item: u32) -> u64 {
        self.counts[item as usize]
    }

    /// Checks the claims of a candidate: its bounds, if it gives any, and at least that the most
    /// frequent item is present if its count exceeds 4 N / k.
    pub(super) fn check(&self, name: &str, estimates: &[Estimate]) {
        let Some(first) = estimates.first() else { return };
        let bound = self.len() as u64 / self.counters as u64;
        if first.error.is_some() {
            self.check_bounds(name, estimates, bound);
        }
        let item = self.top[0];
        if self.truth(item) > 4 * bound {
            let found = estimates.iter().find(|estimate| estimate.item == item);
            let found = found.unwrap_or_else(|| panic!("{name} misses the most frequent item"));
            let off = found.count.map_or(0, |count| count.abs_diff(self.truth(item)));
            assert!(off <= bound, "{name}: {found:?}, in truth {}", self.truth(item));
        }
    }

    fn check_bounds(&self, name: &str, estimates: &[Estimate], bound: u64) {
        for estimate in estimates {
            let truth = self.truth(estimate.item);
            let (count, error) = estimate.count.zip(estimate.error).expect("all have both");
            let holds = count - error <= truth && truth <= count;
            assert!(holds && error <= bound, "{name}: {estimate:?}, in truth {truth}");
        }
        let reported: HashSet<u32> = estimates.iter().map(|e| e.item).collect();
        for (item, &count) in (0..).zip(&self.counts) {
            let is_frequent = count > bound;
            assert!(!is_frequent || reported.contains(&item), "{name} misses {item} ({count})");
        }
    }

    /// Share of the first [`TOP`] reported items that belong there.
    pub(super) fn precision(&self, estimates: &[Estimate]) -> f64 {
        let least = self.truth(self.top[self.top.len() - 1]);
        let right =
            estimates.iter().take(TOP).filter(|e| self.truth(e.item) >= least.max(1)).count();
        right.min(self.top.len()) as f64 / self.top.len() as f64
    }

    /// Mean relative error of the counts of the true first [`TOP`]; an item that is not reported
    /// counts as 1. `None` without counts.
    pub(super) fn relative_error(&self, estimates: &[Estimate]) -> Option<f64> {
        let counts: Option<HashMap<u32, u64>> =
            estimates.iter().map(|e| Some((e.item, e.count?))).collect();
        let counts = counts?;
        let error = |item: &u32| {
            let truth = self.truth(*item) as f64;
            counts.get(item).map_or(1.0, |&count| (count as f64 - truth).abs() / truth.max(1.0))
        };
        Some(self.top.iter().map(error).sum::<f64>() / self.top.len() as f64)
    }
}
