//! Transactions of the bench: files in the FIMI format, or the generator of the paper.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;

use arrow_array::RecordBatch;

use crate::runner::numbers::Numbers;
use crate::runner::pipelines::batch_of_sets;

/// Transactions of a batch.
const BATCH: usize = 2048;

/// Items whose pairs and triples are counted by hand.
const SAMPLE: usize = 40;

/// Transactions and a least support.
pub(crate) struct Case {
    pub(super) name: String,
    pub(crate) least: u32,
    /// End of each transaction among the items.
    ends: Vec<usize>,
    items: Vec<u32>,
}

/// Supports of pairs or triples of ascending items.
pub(super) type Supports<const N: usize> = BTreeMap<[u32; N], u32>;

impl Case {
    /// A file in the FIMI format: a transaction a line, items as numbers.
    fn read(path: &str, least: u32) -> io::Result<Self> {
        let text = fs::read_to_string(path)?;
        let mut case = Self { name: path.to_owned(), least, ends: Vec::new(), items: Vec::new() };
        for line in text.lines() {
            let items: Result<BTreeSet<u32>, _> = line.split_whitespace().map(str::parse).collect();
            let items = items.map_err(|error| io::Error::other(format!("{path}: {error}")))?;
            case.items.extend(items);
            case.ends.push(case.items.len());
        }
        Ok(case)
    }

    /// A file with a least support, such as `retail.dat:10`.
    pub(crate) fn named(file: &str) -> io::Result<Self> {
        let (path, least) = file.rsplit_once(':').unwrap_or((file, ""));
        let least = least.parse().ok().filter(|&least| least > 0);
        let expected = || format!("invalid file {file:?}: expected PATH:SUPPORT");
        Self::read(path, least.ok_or_else(|| io::Error::other(expected()))?)
    }

    /// The generator of the paper (§IV-A): each of `items` items is in a transaction with the
    /// probability `density`; transactions are added until they have `elements` items in all.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a whole number below the items"
    )]
    pub(super) fn generate(items: u32, density: f64, elements: u32, least: u32) -> Self {
        let name = format!("{items} items, {} %, {elements} elements", 100.0 * density);
        let mut case = Self { name, least, ends: Vec::new(), items: Vec::new() };
        let mut numbers = Numbers::default();
        let scale = f64::from(u32::MAX) + 1.0;
        let absent = (1.0 - density).ln();
        while case.items.len() < elements as usize {
            // The distance between two items of a transaction is geometric.
            let mut item = -1.0;
            loop {
                let uniform = (numbers.below(1 << 32) as f64 + 0.5) / scale;
                item += 1.0 + (uniform.ln() / absent).floor();
                if item >= f64::from(items) {
                    break;
                }
                case.items.push(item as u32);
            }
            case.ends.push(case.items.len());
        }
        case
    }

    /// The items of each transaction, distinct.
    pub(crate) fn each(&self) -> impl Iterator<Item = &[u32]> {
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        begins.zip(&self.ends).map(|(begin, &end)| &self.items[begin..end])
    }

    /// The transactions as text in the FIMI format.
    pub(super) fn lines(&self) -> String {
        let line = |items: &[u32]| {
            let items: Vec<String> = items.iter().map(u32::to_string).collect();
            items.join(" ") + "\n"
        };
        self.each().map(line).collect()
    }

    /// The transactions as batches with the column `set`.
    pub(super) fn batches(&self) -> Vec<RecordBatch> {
        let all: Vec<&[u32]> = self.each().collect();
        all.chunks(BATCH).map(|part| batch_of_sets(part.iter().copied())).collect()
    }

    /// Support of each item.
    fn supports(&self) -> BTreeMap<u32, u32> {
        let mut supports = BTreeMap::new();
        self.items.iter().for_each(|&item| *supports.entry(item).or_default() += 1);
        supports
    }

    /// Some of the frequent items, of all supports.
    pub(super) fn sample(&self) -> BTreeSet<u32> {
        let mut frequent: Vec<(u32, u32)> = self
            .supports()
            .into_iter()
            .filter(|&(_, support)| support >= self.least)
            .map(|(item, support)| (support, item))
            .collect();
        frequent.sort_unstable();
        let step = frequent.len().div_ceil(SAMPLE).max(1);
        frequent.into_iter().step_by(step).map(|(_, item)| item).collect()
    }

    /// The frequent pairs or triples of the items of `sample`, counted by nested loops.
    pub(super) fn by_hand<const N: usize>(&self, sample: &BTreeSet<u32>) -> Supports<N> {
        let mut supports = Supports::new();
        let of_items = self.supports();
        let mut frequent = Vec::new();
        for items in self.each() {
            frequent.clear();
            frequent.extend(items.iter().copied().filter(|item| of_items[item] >= self.least));
            for one in frequent.iter().filter(|item| sample.contains(item)) {
                // A row of several sampled items is counted for the smallest one.
                let others: Vec<u32> = frequent
                    .iter()
                    .copied()
                    .filter(|other| other != one && !(other < one && sample.contains(other)))
                    .collect();
                let mut count = |mut row: [u32; N]| {
                    row.sort_unstable();
                    *supports.entry(row).or_default() += 1;
                };
                for (at, &second) in others.iter().enumerate() {
                    if N == 2 {
                        count(std::array::from_fn(|place| [*one, second][place]));
                        continue;
                    }
                    for &third in &others[at + 1..] {
                        count(std::array::from_fn(|place| [*one, second, third][place]));
                    }
                }
            }
        }
        supports.retain(|_, support| *support >= self.least);
        supports
    }
}
