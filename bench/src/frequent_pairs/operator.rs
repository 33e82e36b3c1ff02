//! The operator between batches in memory and a sink, and the check of its rows.

use std::collections::{BTreeMap, BTreeSet};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use trommel::frequent_pairs::{Layout, Support};
use trommel::placement::available_cores;
use trommel::{Collect, Device, FrequentPairs, Graph};

use super::data::Case;
use crate::runner::pipelines::{memory, run};
use crate::runner::turns::Run;

/// Number of rows, and the sum of their supports.
pub(super) type Totals = (u64, u64);

/// Cores and device of a run.
#[derive(Clone, Copy)]
pub(super) enum Place {
    /// The first ones, that many.
    Cores(usize),
    AllCores,
    /// All cores, each with a run of its own over the same transactions: what more cores can give
    /// on this machine.
    EachCore,
    /// All cores and the device.
    Device(Device),
}

/// Parameters of a run.
#[derive(Clone, Copy)]
pub(super) struct Engine {
    /// Items of a row.
    pub(super) itemset: usize,
    pub(super) layout: Layout,
    pub(super) place: Place,
    pub(super) least: u32,
}

impl Engine {
    /// Runs the operator once.
    pub(super) fn run(&self, batches: &[RecordBatch]) -> Run<Totals> {
        let Run { time, rest, .. } = self.rows(batches);
        Run { time, answer: totals(&rest), rest: () }
    }

    /// Runs the operator once, with its rows.
    fn rows(&self, batches: &[RecordBatch]) -> Run<(), Vec<RecordBatch>> {
        let Self { itemset, layout, place, least } = *self;
        let mut graph = Graph::new();
        let available = available_cores();
        // Named cores are the only ones; one core has one thread and one kernel.
        let cores: Vec<&[usize]> = match place {
            Place::Cores(count) => vec![&available[..count]],
            Place::EachCore => available.chunks(1).collect(),
            Place::AllCores | Place::Device(_) => vec![&[]],
        };
        let device = if let Place::Device(device) = place { device } else { Device::Cpu };
        let mut sinks = Vec::new();
        for (number, cores) in cores.into_iter().enumerate() {
            let name = |stage: &str| format!("{stage}{number}");
            let source = graph.add(name("baskets"), memory(batches.to_vec()));
            let spec = FrequentPairs::new(Support::Count(least)).layout(layout);
            let spec = spec.memory_max(1 << 36).itemset(itemset).device(device);
            let pairs = graph.add_after(source, name("pairs"), spec);
            let (sink, rows) = Collect::new();
            let sink = graph.add_after(pairs, name("rows"), sink);
            if let Some(&first) = cores.first() {
                graph.cores(source, [first]).cores(pairs, cores).cores(sink, [first]);
            }
            sinks.push(rows);
        }
        let (time, _) = run(graph);
        let mut rows = sinks.into_iter().map(|rows| rows.batches());
        let first = rows.next().expect("there is a run");
        assert!(rows.all(|rows| totals(&rows) == totals(&first)), "two runs differ");
        Run { time, answer: (), rest: first }
    }
}

/// A column of numbers.
fn numbers<'a>(rows: &'a RecordBatch, name: &str) -> &'a [u32] {
    rows.column_by_name(name).expect("a column of results").as_primitive::<UInt32Type>().values()
}

fn totals(rows: &[RecordBatch]) -> Totals {
    rows.iter().fold((0, 0), |(count, sum), rows| {
        let supports = numbers(rows, "support").iter().map(|&support| u64::from(support));
        (count + rows.num_rows() as u64, sum + supports.sum::<u64>())
    })
}

/// Compares the pairs or triples of some items with nested loops; returns the totals.
///
/// # Panics
/// If they differ.
pub(super) fn check<const N: usize>(case: &Case) -> Totals {
    let sample: BTreeSet<u32> = case.sample();
    let (layout, place, least) = (Layout::Auto, Place::AllCores, case.least);
    let rows = Engine { itemset: N, layout, place, least }.rows(&case.batches()).rest;
    let mut found = BTreeMap::new();
    for rows in &rows {
        let columns: [&[u32]; N] =
            std::array::from_fn(|at| numbers(rows, ["left", "right", "third"][at]));
        let supports = numbers(rows, "support");
        for row in 0..rows.num_rows() {
            let items = columns.map(|column| column[row]);
            if items.iter().any(|item| sample.contains(item)) {
                let known = found.insert(items, supports[row]);
                assert!(known.is_none(), "{items:?} comes twice");
            }
        }
    }
    assert!(found == case.by_hand(&sample), "{}: wrong supports", case.name);
    totals(&rows)
}
