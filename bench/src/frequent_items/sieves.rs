//! Sieve without a pipeline: on every level of the processor, and over a stream that stays in the
//! cache.

use trommel::Isa;
use trommel::frequent_items::Sieve;

use super::Arguments;
use super::direct::{isa, read_limit, sieve, sieve_of};
use super::stream::{Answer, Shape, Stream};
use super::table::{Cell, Rows, header, print_row, ratios};

/// Items that stay in the second-level cache: half a MB.
const WINDOW: usize = 1 << 17;

/// Answers of all candidates, each with the median time of interleaved rounds.
fn measure(
    stream: &Stream,
    rounds: usize,
    names: &[String],
    run: impl Fn(usize) -> Answer,
) -> Vec<(Cell, Answer)> {
    let mut times = vec![Vec::new(); names.len()];
    let mut answers = Vec::new();
    for _ in 0..rounds {
        answers = (0..names.len()).map(&run).collect();
        answers.iter().zip(&mut times).for_each(|(answer, times)| times.push(answer.time));
    }
    let cells = names.iter().zip(times).zip(&answers);
    let cells: Vec<Cell> =
        cells.map(|((name, times), answer)| Cell::of(name, stream, times, answer)).collect();
    cells.into_iter().zip(answers).collect()
}

/// Speed on every level; all answers must be the same.
pub(super) fn levels(arguments: &Arguments) {
    let levels: Vec<Isa> = Isa::available().collect();
    let names: Vec<String> = levels.iter().map(|isa| format!("sieve, {isa}")).collect();
    println!("The sieve on every level of this machine; all count the same, which is checked\n");
    let mut rows = Rows::default();
    for (column, &skew) in arguments.skews.iter().enumerate() {
        let stream = Stream::zipf(arguments.shape(), skew);
        let make = |isa| Sieve::new(isa, stream.counters).expect("a possible number").with_seed(1);
        let run = |index: usize| sieve_of(&stream, || make(levels[index]));
        let measured = measure(&stream, arguments.rounds, &names, run);
        let counts = |answer: &Answer| -> Vec<_> {
            answer.estimates.iter().map(|e| (e.item, e.count, e.error)).collect()
        };
        let reference = counts(&measured[0].1);
        for (name, (cell, answer)) in names.iter().zip(&measured) {
            assert!(counts(answer) == reference, "{name} differs at skew {skew}");
            rows.set(name, column, *cell);
        }
    }
    rows.print("M items/s", &arguments.skews, |cell| Some(cell.rate), |rate| format!("{rate:.0}"));
    header("share of the best", &arguments.skews);
    let best = rows.named(&names[names.len() - 1]).expect("it was measured").rates();
    for row in rows.iter().take(names.len() - 1) {
        let shares = ratios(&row.rates(), &best);
        print_row(&row.name, best.len(), &shares, |share| format!("{:.0} %", share * 100.0));
    }
    println!();
}

/// Speed over the stream and over its first items repeatedly: the difference is the cost of
/// memory.
pub(super) fn cached(arguments: &Arguments) {
    let shape = Shape { batch: arguments.batch.min(WINDOW), ..arguments.shape() };
    println!(
        "The first {WINDOW} items again and again, which stay in the second-level cache, as far \
         as the state leaves room\n"
    );
    let names = ["read limit (sum)".to_owned(), "sieve".to_owned()];
    let mut rows = Rows::default();
    for (column, &skew) in arguments.skews.iter().enumerate() {
        let stream = Stream::zipf(shape, skew).repeated(WINDOW);
        let run = |index: usize| {
            if index == 0 { read_limit(&stream) } else { sieve(&stream, isa()) }
        };
        let measured = measure(&stream, arguments.rounds, &names, run);
        for (name, (cell, _)) in names.iter().zip(&measured) {
            rows.set(name, column, *cell);
        }
    }
    let shown = |rate: f64| format!("{rate:.0}");
    rows.print("M items/s, in the cache", &arguments.skews, |cell| Some(cell.rate), shown);
}
