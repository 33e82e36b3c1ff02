//! Time of `auto` divided by that of the fastest algorithm, over a grid of generated sets or files.
//!
//! A cell is a size, an alphabet and a skew. Its sets are families of six as in
//! [`generated`](super::data::generated), of tokens with a Zipf distribution; their number follows
//! from the number of tokens. Joins of less than a millisecond are not judged. The least time of
//! each algorithm counts, because noise only adds.

use std::sync::Arc;
use std::time::Duration;

use trommel::Zipf;
use trommel::set_similarity_join::{JoinAlgorithm, Similarity};

use super::data::{Input, families};
use super::library::Row;
use super::numbered;
use crate::runner::report::{Table, cells as joined, right};
use crate::runner::turns::Measured;
use crate::runner::{Runs, isa};

/// Mean sizes of sets.
const SIZES: [usize; 4] = [8, 32, 128, 512];
/// Different tokens per token of a set of the mean size.
const ALPHABETS: [usize; 3] = [4, 60, 1000];
/// Zipf exponents.
const SKEWS: [f64; 2] = [0.5, 1.0];

/// Shorter joins are not judged.
const JUDGED_MIN: Duration = Duration::from_millis(1);

/// The generated inputs, each of about `tokens` tokens.
pub(super) fn cells(tokens: usize) -> impl Iterator<Item = Input> {
    let cells = SIZES.into_iter().flat_map(|size| {
        ALPHABETS.into_iter().flat_map(move |part| SKEWS.map(move |skew| (size, size * part, skew)))
    });
    cells.map(move |(size, alphabet, skew)| {
        let name = format!("size {size}, alphabet {alphabet}, skew {skew}");
        let alphabet = u32::try_from(alphabet).expect("alphabets are below 2^28");
        let mut zipf = Zipf::new(alphabet, skew, 1).expect("the parameters are in range");
        families(&name, tokens / size, size, move |_| {
            let mut token = [0];
            zipf.fill(&mut token);
            token[0]
        })
    })
}

/// Measures all inputs at each threshold, all algorithms by turns; then prints the cells in which
/// `auto` takes more than 1.1 times as long as the fastest algorithm, the worst ones first.
pub(super) fn measure(
    inputs: impl Iterator<Item = Input>,
    thresholds: &[u32],
    algorithms: &[JoinAlgorithm],
    runs: Runs,
) {
    let engines: Vec<_> = algorithms.iter().map(|algorithm| (*algorithm, isa())).collect();
    let auto = algorithms.iter().position(|algorithm| *algorithm == JoinAlgorithm::Auto);
    let mut judged = Vec::new();
    for input in inputs {
        let collection = numbered(&input, false);
        let names = right(algorithms.iter().map(|algorithm| algorithm.name()));
        let mut table = Table::new(&format!("threshold | results: | auto / fastest: | {names}"));
        for &threshold in thresholds {
            let (collection, similarity) = (Arc::clone(&collection), Similarity::Jaccard);
            let row = Row { collection, similarity, threshold, answer: None };
            let measured = row.measure(&engines, runs);
            let least: Vec<Duration> = measured.iter().map(Measured::fastest).collect();
            let of_auto = auto.map_or(Duration::ZERO, |auto| least[auto]);
            let best = least.iter().min().copied().unwrap_or_default();
            let factor = of_auto.as_secs_f64() / best.as_secs_f64();
            if of_auto >= JUDGED_MIN {
                judged.push((factor, format!("{} at .{threshold}", input.name)));
            }
            let results = measured.first().map_or(0, |engine| engine.rest().0.results);
            let seconds = joined(least.iter().map(|time| format!("{:.4}", time.as_secs_f64())));
            table.row(format!(".{threshold} | {results} | {factor:.2} | {seconds}"));
        }
    }
    judged.sort_by(|left, right| right.0.total_cmp(&left.0));
    let behind = judged.iter().take_while(|(factor, _)| *factor > 1.1);
    for (factor, cell) in behind.clone() {
        println!("{factor:.2}: {cell}");
    }
    println!("{} of {} above 1.10", behind.count(), judged.len());
}
