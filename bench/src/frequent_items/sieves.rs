//! Sieve without a pipeline: on every level of the processor, over a stream that stays in the
//! cache, and over items of all kinds.

use std::time::Instant;

use arrow_array::StringArray;
use trommel::Isa;
use trommel::frequent_items::{Item, Sieve, Text};

use super::Arguments;
use super::direct::{isa, read_limit, sieve, sieve_of};
use super::stream::{Answer, Estimate, Shape, Stream};
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
    for round in 0..=rounds {
        answers = (0..names.len()).map(&run).collect();
        // The first one warms up.
        if round > 0 {
            answers.iter().zip(&mut times).for_each(|(answer, times)| times.push(answer.time));
        }
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

/// Speed over the items of a stream as numbers of 32 and 64 bits, with weights, and as texts.
pub(super) fn kinds(arguments: &Arguments) {
    println!("Items of all kinds: the same stream, without a pipeline; all weights are 1\n");
    let names = ["u32", "u32 with weights", "u64", "text of 8 bytes"].map(str::to_owned);
    let mut rows = Rows::default();
    for (column, &skew) in arguments.skews.iter().enumerate() {
        let stream = Stream::zipf(arguments.shape(), skew);
        let weights = vec![1; stream.batch];
        let wide: Vec<u64> = stream.items().iter().map(|&item| to_wide(item)).collect();
        let text = |items: &[u32]| -> StringArray {
            items.iter().map(|item| Some(format!("{item:08x}"))).collect()
        };
        let texts: Vec<StringArray> = stream.items().chunks(stream.batch).map(text).collect();
        let run = |index: usize| match index {
            0 => sieve(&stream, isa()),
            1 => counted(
                &stream,
                |item: &u32| *item,
                |sieve| {
                    for batch in stream.batches() {
                        sieve.observe_weighted(batch, &weights[..batch.len()]);
                    }
                },
            ),
            2 => counted(
                &stream,
                |item| of_wide(*item),
                |sieve| {
                    wide.chunks(stream.batch).for_each(|batch| sieve.observe(batch));
                },
            ),
            _ => counted(&stream, of_text, |sieve| {
                texts.iter().for_each(|batch| sieve.observe(batch));
            }),
        };
        let measured = measure(&stream, arguments.rounds, &names, run);
        for (name, (cell, _)) in names.iter().zip(&measured) {
            rows.set(name, column, *cell);
        }
    }
    let shown = |rate: f64| format!("{rate:.0}");
    rows.print("M items/s, by kind", &arguments.skews, |cell| Some(cell.rate), shown);
}

/// A number that uses all of its bits.
fn to_wide(item: u32) -> u64 {
    u64::from(item) << u32::BITS | u64::from(!item)
}

fn of_wide(item: u64) -> u32 {
    u32::try_from(item >> u32::BITS).expect("the upper half")
}

fn of_text(item: &Text) -> u32 {
    u32::from_str_radix(item, 16).expect("the text of a number")
}

/// Counts items of another kind; `number` returns the item of the stream that one stands for.
/// State bytes are not measured.
fn counted<K: Item>(
    stream: &Stream,
    number: impl Fn(&K) -> u32,
    observe: impl FnOnce(&mut Sieve<K>),
) -> Answer {
    let start = Instant::now();
    let mut sieve = Sieve::new(isa(), stream.counters).expect("a possible number");
    observe(&mut sieve);
    let time = start.elapsed();
    let mut estimates: Vec<Estimate> = sieve
        .iter()
        .map(|counted| Estimate {
            item: number(counted.item),
            count: Some(counted.count),
            error: Some(counted.error),
        })
        .collect();
    estimates.sort_unstable_by_key(|estimate| std::cmp::Reverse(estimate.count));
    Answer { time, estimates, state_bytes: None }
}
