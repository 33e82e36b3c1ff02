//! Queries during ingestion: their cost and their latency.

use trommel::{Algorithm, FrequentItems, Zipf};

use super::summaries::pipelines::two_cores;
use super::{Arguments, Scale};
use crate::engine::{Asked, Asking, Ingestion, batches, ingestion, paired};
use crate::runner::report::Table;

const ASKING: [Asking; 4] =
    [Asking::Never, Asking::PerSecond(2000), Asking::PerSecond(100_000), Asking::Unlimited];
/// Zipf exponent of the stream.
const SKEW: f64 = 1.5;
/// Items per batch; queries are answered between batches.
const BATCH: usize = 2048;
const NAMES: [&str; 4] = ["none", "2,000 a second", "100,000 a second", "unlimited"];

/// Measures and prints, for the default algorithm on one core and divided among two (§2.3.1 of the
/// paper: answers have to be merged), and the filter of the paper.
pub(super) fn run(arguments: &Arguments) {
    let Scale { query_items: items, query_rounds: rounds, .. } = arguments.scale();
    println!(
        "Fresh queries for the top 10 from another core, or from one of the two that count, while \
         {items} items are counted in batches of {BATCH}; {rounds} paired rounds, quartiles of the cost\n"
    );
    let mut zipf = Zipf::new(arguments.alphabet, SKEW, 1).expect("clap checked the numbers");
    let batches = batches(&mut zipf, BATCH, items);
    let counting = FrequentItems::new().counters(arguments.counters);
    let filter = counting.clone().algorithm(Algorithm::Filter);
    let ways = [
        ("sieve, 1 core", counting.clone(), Vec::new()),
        ("sieve, partition, 2 cores", counting, two_cores().to_vec()),
        ("filter, 1 core", filter, Vec::new()),
    ];
    for (name, counting, cores) in ways {
        let ingestion = Ingestion { cores, ..ingestion(counting, &batches, items) };
        print(&format!("{name}, z = {SKEW}"), &paired(&ingestion, ASKING, rounds));
    }
}

fn print(title: &str, asked: &[Asked]) {
    let mut table = Table::new(&format!(
        "{title}: queries | M items/s: | cost: | quartiles: | answers: | p50 µs: | p90: | p99: | \
         p99.9:"
    ));
    for (name, one) in NAMES.iter().zip(asked) {
        let [low, cost, high] = one.cost(&asked[0]);
        let mut row = format!("{name} | {:.0}", one.rate());
        if !one.latency.is_empty() {
            let answers = one.latency.len();
            row += &format!(" | {cost:.1} % | {low:.1} to {high:.1} % | {answers}");
            for quantile in [0.5, 0.9, 0.99, 0.999] {
                row += &format!(" | {:.1}", one.latency_us(quantile));
            }
        }
        table.row(row);
    }
}
