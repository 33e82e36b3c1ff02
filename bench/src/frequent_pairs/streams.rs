//! Streams of generated transactions in windows: the time, and the memory, which must not grow with
//! the stream.
//!
//! ```text
//! generate ──► frequent_pairs, in windows ──► discard
//! ```

use std::time::Duration;

use trommel::frequent_pairs::{PairWindow, Support};
use trommel::placement::Placement;
use trommel::{Discard, FrequentPairs, Generate, Graph, Share};

use crate::runner::memory::{peak, reset_peak};
use crate::runner::pipelines::{rows_of, run as run_graph};
use crate::runner::report::Table;

/// Number of different items.
const ALPHABET: u32 = 100_000;
/// Zipf exponent of the items.
const SKEW: f64 = 1.0;
/// Items of a transaction.
const ITEMS: u32 = 10;
/// Minimum support of a pair: one of `ONE_IN` transactions of a window.
const ONE_IN: u64 = 1000;

/// Prints two lines for each number of transactions, for one core and for all cores, in windows of
/// `window` transactions.
pub(super) fn run(transactions: &[u64], window: u64) {
    println!("Transactions of {ITEMS} items, windows of {window}, support of 1/{ONE_IN}\n");
    let mut table = Table::new(
        "transactions: | run | generating, s: | whole run, s: | pairs of all windows: | peak, MB:",
    );
    for &transactions in transactions {
        let (generating, _) = once(transactions, None, Placement::Fused);
        let mut expected = None;
        for (placement, name) in [(Placement::Fused, "one core"), (Placement::Auto, "all cores")] {
            reset_peak();
            let (time, pairs) = once(transactions, Some(window), placement);
            let megabytes = peak() as f64 / 1e6;
            assert_eq!(pairs, *expected.get_or_insert(pairs), "{name}: pairs");
            let [generating, seconds] = [generating, time].map(|time| time.as_secs_f64());
            table.row(format!(
                "{transactions} | {name} | {generating:.2} | {seconds:.2} | {pairs} | {megabytes:.0}"
            ));
        }
    }
}

/// Time and pairs of a run. Without a window, the run only generates transactions.
fn once(transactions: u64, window: Option<u64>, placement: Placement) -> (Duration, u64) {
    let mut graph = Graph::new();
    let source = Generate::sets(ALPHABET, SKEW).sizes(ITEMS..=ITEMS).items(transactions);
    let mut last = graph.add("generate", source);
    if let Some(window) = window {
        let share = Share::new(1, ONE_IN).expect("a share");
        let pairs = FrequentPairs::new(Support::Share(share));
        last = graph.add_after(last, "pairs", pairs.window(PairWindow::transactions(window)));
    }
    graph.add_after(last, "end", Discard::new());
    graph.placement(placement);
    let (time, metrics) = run_graph(graph);
    (time, rows_of(&metrics, "pairs"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_of_equal_windows_add_up() {
        let pairs = |transactions| once(transactions, Some(1000), Placement::Fused).1;
        let (one, all) = (pairs(1000), once(3500, Some(1000), Placement::Auto).1);
        assert!(one > 0 && pairs(2000) > one);
        assert_eq!(pairs(3500), all);
    }
}
