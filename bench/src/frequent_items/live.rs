//! Queries during ingestion: their cost and their latency.

use trommel::{Algorithm, FrequentItems, Zipf};

use super::Arguments;
use super::pipelines::two_cores;
use crate::engine::{Asked, Asking, Ingestion, batches, ingestion, paired};

const ASKING: [Asking; 4] =
    [Asking::Never, Asking::PerSecond(2000), Asking::PerSecond(100_000), Asking::Unlimited];
const NAMES: [&str; 4] = ["none", "2,000 a second", "100,000 a second", "unlimited"];

/// Measures and prints, for the default algorithm on one core and divided among two (§2.3.1 of the
/// paper: answers have to be merged), and the filter of the paper.
pub(super) fn run(arguments: &Arguments) {
    let Arguments { query_items: items, query_batch: batch, query_rounds: rounds, .. } = arguments;
    println!(
        "Fresh queries for the top 10 from another core, or from one of the two that count, while \
         {items} items are counted in batches of {batch}; {rounds} paired rounds, quartiles of the cost\n"
    );
    for &skew in &arguments.query_skews {
        let mut zipf = Zipf::new(arguments.alphabet, skew, 1).expect("clap checked the numbers");
        let batches = batches(&mut zipf, *batch, *items);
        let counting = FrequentItems::new().counters(arguments.counters);
        let filter = counting.clone().algorithm(Algorithm::Filter);
        let ways = [
            ("sieve, 1 core", counting.clone(), Vec::new()),
            ("sieve, partition, 2 cores", counting, two_cores().to_vec()),
            ("filter, 1 core", filter, Vec::new()),
        ];
        for (name, counting, cores) in ways {
            let ingestion = Ingestion { cores, ..ingestion(counting, &batches, *items) };
            let asked = paired(&ingestion, ASKING, *rounds);
            print(&format!("{name}, z = {skew}"), &asked);
        }
    }
}

fn print(title: &str, asked: &[Asked]) {
    println!(
        "| {title}: queries | M items/s | cost | quartiles | answers | p50 µs | p90 | p99 | p99.9 |"
    );
    println!("|---|{}", "---:|".repeat(8));
    for (name, one) in NAMES.iter().zip(asked) {
        let [low, cost, high] = one.cost(&asked[0]);
        print!("| {name} | {:.0} |", one.rate());
        if one.latency.is_empty() {
            println!("{}", " |".repeat(7));
            continue;
        }
        print!(" {cost:.1} % | {low:.1} to {high:.1} % | {} |", one.latency.len());
        for quantile in [0.5, 0.9, 0.99, 0.999] {
            print!(" {:.1} |", one.latency_us(quantile));
        }
        println!();
    }
    println!();
}
