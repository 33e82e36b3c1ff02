//! Time of `auto` divided by that of the fastest algorithm, over a grid of generated sets or files.
//!
//! A cell is a size, an alphabet and a skew. Its sets are families of six as in
//! [`generated`](super::data::generated), of tokens with a Zipf distribution; their number follows
//! from the number of tokens. Joins of less than a millisecond are not judged.

use std::time::Duration;

use trommel::set_similarity_join::{JoinAlgorithm, Similarity};
use trommel::{Isa, Zipf};

use super::data::{Input, families};
use super::{Patience, Row, numbered};

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

/// Quotients of the time of `auto` and that of the fastest algorithm.
#[derive(Debug, Default)]
pub(super) struct Factors {
    judged: Vec<(f64, String)>,
}

impl Factors {
    /// Measures an input at each threshold: all algorithms in turn, which must agree.
    pub(super) fn measure(
        &mut self,
        input: &Input,
        thresholds: &[u32],
        algorithms: &[JoinAlgorithm],
        isa: Isa,
        patience: Patience,
    ) {
        let collection = numbered(input, false);
        let names = algorithms.iter().map(|algorithm| algorithm.name());
        println!(
            "\n| threshold | results | auto / fastest | {} |",
            names.collect::<Vec<_>>().join(" | ")
        );
        println!("|---|---:|---:|{}", "---:|".repeat(algorithms.len()));
        for &threshold in thresholds {
            let similarity = Similarity::Jaccard;
            let row = Row { collection: &collection, similarity, threshold, answer: None };
            let (results, least) = least(&row, algorithms, isa, patience);
            let seconds = least.iter().map(|time| format!("{:.4}", time.as_secs_f64()));
            let seconds: Vec<String> = seconds.collect();
            let of_auto = algorithms.iter().position(|name| *name == JoinAlgorithm::Auto);
            let of_auto = of_auto.map_or(Duration::ZERO, |auto| least[auto]);
            let best = least.iter().min().copied().unwrap_or_default();
            let factor = of_auto.as_secs_f64() / best.as_secs_f64();
            if of_auto >= JUDGED_MIN {
                self.judged.push((factor, format!("{} at .{threshold}", input.name)));
            }
            println!("| .{threshold} | {results} | {factor:.2} | {} |", seconds.join(" | "));
        }
        println!();
    }

    /// Prints the cells in which `auto` takes more than 1.1 times as long as the fastest algorithm,
    /// the worst ones first.
    pub(super) fn print(mut self) {
        self.judged.sort_by(|left, right| right.0.total_cmp(&left.0));
        let behind = self.judged.iter().take_while(|(factor, _)| *factor > 1.1);
        for (factor, cell) in behind.clone() {
            println!("{factor:.2}: {cell}");
        }
        println!("{} of {} above 1.10", behind.count(), self.judged.len());
    }
}

/// Number of results, and the least time of each algorithm. The least one, because noise only
/// adds.
fn least(
    row: &Row<'_>,
    algorithms: &[JoinAlgorithm],
    isa: Isa,
    patience: Patience,
) -> (u64, Vec<Duration>) {
    let mut least = vec![Duration::MAX; algorithms.len()];
    let mut spent = vec![Duration::ZERO; algorithms.len()];
    let mut answer = None;
    for _ in 0..patience.rounds() {
        for (at, &algorithm) in algorithms.iter().enumerate() {
            if patience.is_over(spent[at].as_secs_f64()) {
                continue;
            }
            let (counters, time) = row.run(algorithm, isa);
            let results = *answer.get_or_insert(counters.results);
            assert_eq!(counters.results, results, "{}: a wrong count", algorithm.name());
            least[at] = least[at].min(time.total);
            spent[at] += time.total;
        }
    }
    (answer.unwrap_or_default(), least)
}
