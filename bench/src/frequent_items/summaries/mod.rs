//! Summaries without a pipeline: batches in, counts out, on the thread of the caller.

pub(super) mod pipelines;
pub(super) mod processes;
mod stream_summary;

use std::cmp::Reverse;
use std::hint::black_box;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use trommel::Isa;
use trommel::frequent_items::{Counted, Filter, Sieve, SpaceSaving};

use self::stream_summary::StreamSummary;
use super::stream::{Answer, Estimate, Stream};
use crate::runner::memory;
use crate::runner::turns::timed;
use crate::runner::{crates::Crates, isa};

/// Bins of the filter, the default of pipelines.
pub(super) const BINS: usize = 16;

/// Creates a state and feeds all batches to the state within the measured time, then asks for the
/// result outside of the measured time. The bytes of the state are measured before the result is
/// asked for.
fn feed<S>(
    stream: &Stream,
    make: impl FnOnce() -> S,
    mut observe: impl FnMut(&mut S, &[u32]),
    ask: impl FnOnce(S) -> Vec<Estimate>,
) -> Answer {
    let before = memory::allocated();
    let (time, state) = timed(|| {
        let mut state = make();
        stream.batches().for_each(|batch| observe(&mut state, batch));
        state
    });
    let state_bytes = size_of::<S>() + memory::allocated().saturating_sub(before);
    Answer { time, estimates: ask(state), state_bytes: Some(state_bytes) }
}

fn bounded(counted: Vec<Counted<u32>>) -> Vec<Estimate> {
    let estimate = |c: Counted<u32>| {
        let (count, error) = (Some(c.count), Some(c.error));
        Estimate { item: c.item, count, error }
    };
    counted.into_iter().map(estimate).collect()
}

/// Sum of the items without a summary: the speed of reading items. The loop does not prefetch, so
/// this speed is no strict limit.
pub(super) fn read_limit(stream: &Stream) -> Answer {
    let add = |sum: &mut u32, batch: &[u32]| {
        *sum = batch.iter().fold(*sum, |sum, &item| sum.wrapping_add(item));
    };
    let ask = |sum| {
        black_box(sum);
        Vec::new()
    };
    feed(stream, || 0_u32, add, ask)
}

pub(super) fn exact(stream: &Stream) -> Answer {
    type Counts = rapidhash::RapidHashMap<u32, u64>;
    let count = |counts: &mut Counts, batch: &[u32]| {
        batch.iter().for_each(|&item| *counts.entry(item).or_default() += 1);
    };
    // The table has room for the alphabet, so the table does not grow.
    let make = || Counts::with_capacity_and_hasher(stream.alphabet(), Default::default());
    feed(stream, make, count, exactly)
}

/// Exact counts in an array by item, which needs items below a known number.
pub(super) fn exact_array(stream: &Stream) -> Answer {
    let make = || vec![0_u64; stream.alphabet()];
    let count = |counts: &mut Vec<u64>, batch: &[u32]| {
        batch.iter().for_each(|&item| counts[item as usize] += 1);
    };
    feed(stream, make, count, |counts| {
        exactly((0_u32..).zip(counts).filter(|(_, count)| *count > 0))
    })
}

fn exactly(counts: impl IntoIterator<Item = (u32, u64)>) -> Vec<Estimate> {
    let estimate = |(item, count)| Estimate { item, count: Some(count), error: Some(0) };
    let mut estimates: Vec<Estimate> = counts.into_iter().map(estimate).collect();
    estimates.sort_unstable_by_key(|e| Reverse(e.count));
    estimates
}

/// SpaceSaving with a Stream-Summary, as in the paper of its authors.
pub(super) fn stream_summary(stream: &Stream) -> Answer {
    let observe = |summary: &mut StreamSummary, batch: &[u32]| {
        batch.iter().for_each(|&item| summary.observe(item));
    };
    feed(
        stream,
        || StreamSummary::new(stream.counters),
        observe,
        |summary| {
            let estimate = |(item, count, error)| {
                let (count, error) = (Some(count), Some(error));
                Estimate { item, count, error }
            };
            let mut estimates: Vec<Estimate> = summary.counted().map(estimate).collect();
            estimates.sort_unstable_by_key(|e| Reverse(e.count));
            estimates
        },
    )
}

pub(super) fn space_saving(stream: &Stream) -> Answer {
    let make = || SpaceSaving::<u32>::new(stream.counters).expect("a possible number");
    let ask = |summary: SpaceSaving<u32>| bounded(summary.top(usize::MAX));
    feed(stream, make, |summary, batch| summary.observe(batch), ask)
}

/// Algorithm Filter with `bins` bins on the level `isa`.
pub(super) fn filter(stream: &Stream, isa: Isa, bins: usize) -> Answer {
    let make = || Filter::<u32>::new(isa, stream.counters, bins).expect("a possible number");
    let ask = |summary: Filter<u32>| bounded(summary.top(usize::MAX));
    feed(stream, make, |summary, batch| summary.observe(batch), ask)
}

pub(super) fn sieve(stream: &Stream, isa: Isa) -> Answer {
    sieve_of(stream, || Sieve::new(isa, stream.counters).expect("a possible number"))
}

/// Sieve made by `make`.
pub(super) fn sieve_of(stream: &Stream, make: impl FnOnce() -> Sieve<u32>) -> Answer {
    let ask = |summary: Sieve<u32>| bounded(summary.top(usize::MAX));
    feed(stream, make, |summary, batch| summary.observe(batch), ask)
}

/// The answer of a crate for a stream.
#[derive(Deserialize)]
struct Done {
    seconds: f64,
    rows: Vec<(u32, u64)>,
    state_bytes: usize,
}

/// A summary of a crate.
pub(super) fn by_crate(crates: &Crates, name: &str, stream: &Stream) -> Answer {
    let job = json!({
        "table": "frequent-items", "summary": name, "items": stream.file(), "batch": stream.batch,
        "counters": stream.counters, "repeats": stream.repeats()
    });
    let Done { seconds, rows, state_bytes } = crates.ask(&job).expect("the peers work");
    let estimate = |(item, count)| Estimate { item, count: Some(count), error: None };
    let (time, estimates) = (Duration::from_secs_f64(seconds), rows.into_iter().map(estimate));
    Answer { time, estimates: estimates.collect(), state_bytes: Some(state_bytes) }
}

/// Two numbers for each item of the stream: the share of items that pass the front half of the
/// filter (σ of the paper), and the exchanges of counters between the two halves (σ', §3.1).
pub(super) fn selectivity(stream: &Stream, bins: usize) -> [f64; 2] {
    let filter = Filter::<u32>::new(isa(), stream.counters, bins).expect("a possible number");
    let (mut front, mut back) = filter.into_halves();
    let mut positions = vec![0; 2048];
    let (mut missed, mut exchanges) = (0, 0_usize);
    for batch in stream.batches() {
        let mut start = 0;
        while start < batch.len() {
            while front.exchange_due() {
                let x_min = front.take_min();
                front.put_max(back.exchange(x_min));
                exchanges += 1;
            }
            let done = front.absorb(batch, start, &mut positions);
            back.observe_at(batch, &positions[..done.missed]);
            start += done.consumed;
            missed += done.missed;
        }
    }
    [missed, exchanges].map(|items| items as f64 / stream.len() as f64)
}
