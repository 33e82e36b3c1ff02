//! Items that are bought together, with the confidence of the rule and its lift.

use std::error::Error;

use trommel::frequent_pairs::{Measure, Support};
use trommel::prelude::*;

fn main() -> Result<(), Box<dyn Error>> {
    let mut graph = Graph::new();
    let baskets = graph.add("baskets", Read::new(["configs/data/baskets.sets"], ReadFormat::Sets));
    // In at least five of the baskets.
    let pairs =
        FrequentPairs::new(Support::Count(5)).measures([Measure::Confidence, Measure::Lift]);
    let pairs = graph.add_after(baskets, "pairs", pairs);
    graph.add_after(pairs, "print", Write::new("-", WriteFormat::Table));
    graph.build()?.run(RunOptions::new())?;
    Ok(())
}
