//! Sieve without a pipeline: on every level of the processor, over a stream that stays in the
//! cache, and over items of all kinds.

use std::cmp::Reverse;

use arrow_array::StringArray;
use trommel::Isa;
use trommel::frequent_items::{Item, Sieve, Text};

use super::Arguments;
use super::stream::{Answer, Estimate, Shape, Stream};
use super::summaries::{read_limit, sieve, sieve_of};
use super::table::{Candidate, Counting, Rows, print, ratios};
use crate::runner::isa;
use crate::runner::turns::timed;

/// Items that stay in the second-level cache: half a MB.
const WINDOW: usize = 1 << 17;

/// Speed on every level; all answers must be the same.
pub(super) fn levels(arguments: &Arguments) {
    let names: Vec<(Isa, String)> =
        Isa::available().map(|isa| (isa, format!("sieve, {isa}"))).collect();
    println!("The sieve on every level of this machine; all count the same, which is checked\n");
    let mut rows = Rows::default();
    for (column, &skew) in arguments.skews.iter().enumerate() {
        let stream = &Stream::zipf(arguments.shape(), skew);
        let make = |isa| Sieve::new(isa, stream.counters).expect("a possible number").with_seed(1);
        let candidates = names.iter().map(|&(isa, ref name)| {
            let run: Counting = Box::new(move || sieve_of(stream, || make(isa)));
            (name.as_str(), run)
        });
        let counts = |answer: &Answer| -> Vec<_> {
            answer.estimates.iter().map(|e| (e.item, e.count, e.error)).collect()
        };
        rows.measure_alike(candidates, stream, column, arguments.runs, counts);
    }
    rows.print_rates("M items/s", &arguments.skews);
    let best = rows.rates(&names[names.len() - 1].1);
    let shares = rows.iter().take(names.len() - 1);
    let shares = shares.map(|row| (row.name.clone(), ratios(&row.rates(), &best)));
    print("share of the best", &arguments.skews, shares, |share| format!("{:.0} %", share * 100.0));
}

/// Speed over the stream and over its first items repeatedly: the difference is the cost of
/// memory.
pub(super) fn cached(arguments: &Arguments) {
    let shape = Shape { batch: arguments.batch.min(WINDOW), ..arguments.shape() };
    println!(
        "The first {WINDOW} items again and again, which stay in the second-level cache, as far \
         as the state leaves room\n"
    );
    let candidates = [
        Candidate::new("read limit (sum)", read_limit),
        Candidate::new("sieve", |stream| sieve(stream, isa())),
    ];
    let mut rows = Rows::default();
    for (column, &skew) in arguments.skews.iter().enumerate() {
        let stream = Stream::zipf(shape, skew).repeated(WINDOW);
        rows.measure(&candidates, &stream, column, arguments.runs);
    }
    rows.print_rates("M items/s, in the cache", &arguments.skews);
}

/// Speed over the items of a stream as numbers of 32 and 64 bits, with weights, and as texts.
pub(super) fn kinds(arguments: &Arguments) {
    println!("Items of all kinds: the same stream, without a pipeline; all weights are 1\n");
    let mut rows = Rows::default();
    for (column, &skew) in arguments.skews.iter().enumerate() {
        let stream = &Stream::zipf(arguments.shape(), skew);
        let weights = vec![1; stream.batch];
        let wide: Vec<u64> = stream.items().iter().map(|&item| to_wide(item)).collect();
        let text = |items: &[u32]| -> StringArray {
            items.iter().map(|item| Some(format!("{item:08x}"))).collect()
        };
        let texts: Vec<StringArray> = stream.items().chunks(stream.batch).map(text).collect();
        let weighted = |sieve: &mut Sieve<u32>| {
            let batches = stream.batches();
            batches.for_each(|batch| sieve.observe_weighted(batch, &weights[..batch.len()]));
        };
        let as_u64 = |sieve: &mut Sieve<u64>| {
            wide.chunks(stream.batch).for_each(|batch| sieve.observe(batch));
        };
        let as_texts = |sieve: &mut Sieve<Text>| {
            texts.iter().for_each(|batch| sieve.observe(batch));
        };
        let candidates: [(&str, Counting); 4] = [
            ("u32", Box::new(|| sieve(stream, isa()))),
            ("u32 with weights", Box::new(|| counted(stream, |item: &u32| *item, weighted))),
            ("u64", Box::new(|| counted(stream, |item| of_wide(*item), as_u64))),
            ("text of 8 bytes", Box::new(|| counted(stream, of_text, as_texts))),
        ];
        rows.measure_alike(candidates, stream, column, arguments.runs, |_| ());
    }
    rows.print_rates("M items/s, by kind", &arguments.skews);
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
    let (time, sieve) = timed(|| {
        let mut sieve = Sieve::new(isa(), stream.counters).expect("a possible number");
        observe(&mut sieve);
        sieve
    });
    let mut estimates: Vec<Estimate> = sieve
        .iter()
        .map(|counted| Estimate {
            item: number(counted.item),
            count: Some(counted.count),
            error: Some(counted.error),
        })
        .collect();
    estimates.sort_unstable_by_key(|estimate| Reverse(estimate.count));
    Answer { time, estimates, state_bytes: None }
}
