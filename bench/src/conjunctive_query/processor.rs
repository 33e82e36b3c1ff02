//! Counts on the processor: one core, all cores, and peers.

use std::num::NonZero;
use std::thread;

use trommel_bench::measure::{Candidate, measure};
use trommel_kernels::Isa;
use trommel_kernels::inverted::BatchScratch;

use super::index::Workload;

/// Prints the speed of counting `queries` queries.
#[expect(clippy::cast_precision_loss, reason = "queries are far below 2^53")]
pub(super) fn table(workload: &Workload, queries: usize, rounds: usize) {
    let queries = queries.min(workload.queries());
    let isa = Isa::available().last().expect("every processor is scalar");
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let mut candidates = vec![
        Candidate::new(format!("one core, {isa}"), || count(workload, isa, 0, queries)),
        Candidate::new(format!("{cores} cores, {isa}"), || {
            let share = queries.div_ceil(cores).max(1);
            thread::scope(|scope| {
                let part = |begin: usize| {
                    let end = queries.min(begin + share);
                    scope.spawn(move || count(workload, isa, begin, end))
                };
                let parts: Vec<_> = (0..queries).step_by(share).map(part).collect();
                parts.into_iter().map(|part| part.join().expect("it does not panic")).sum()
            })
        }),
    ];
    candidates.extend(peers(workload, queries));
    let right = workload.documents(0, queries) as u64;
    measure(&mut candidates, right, rounds);
    println!("| counts of {queries:>7} queries  | M queries/s | noise |");
    println!("|:--------------------------|------------:|------:|");
    for candidate in &candidates {
        let rate = queries as f64 / candidate.median().as_secs_f64() / 1e6;
        let noise = 100.0 * candidate.noise();
        println!("| {:<25} | {rate:>11.3} | {noise:>4.1}% |", candidate.name());
    }
    println!();
}

/// The sum of the counts of the queries `begin..end`.
fn count(workload: &Workload, isa: Isa, begin: usize, end: usize) -> u64 {
    let mut counts = Vec::new();
    let batch = workload.batch(begin, end);
    workload.segment.count_batch(isa, batch, &mut BatchScratch::new(), &mut counts);
    counts.into_iter().map(u64::from).sum()
}

#[cfg(not(feature = "peers"))]
fn peers(_: &Workload, _: usize) -> [Candidate<'_>; 0] {
    []
}

/// The crate roaring, by its shortest list first.
#[cfg(feature = "peers")]
fn peers(workload: &Workload, queries: usize) -> [Candidate<'_>; 1] {
    use roaring::RoaringBitmap;

    let lists = workload.lists.iter().map(|list| {
        RoaringBitmap::from_sorted_iter(list.iter().copied()).expect("documents ascend")
    });
    let lists: Vec<RoaringBitmap> = lists.collect();
    let run = move || {
        let batch = workload.batch(0, queries);
        let count = |query| {
            let mut of_query: Vec<&RoaringBitmap> =
                batch.terms(query).iter().map(|&term| &lists[term as usize]).collect();
            of_query.sort_unstable_by_key(|list| list.len());
            let [first, middle @ .., last] = &of_query[..] else {
                return of_query.first().map_or(0, |list| list.len());
            };
            let Some((second, others)) = middle.split_first() else {
                return first.intersection_len(last);
            };
            let mut left = *first & *second;
            others.iter().for_each(|list| left &= *list);
            left.intersection_len(last)
        };
        (0..queries).map(count).sum()
    };
    [Candidate::new("one core, roaring", run)]
}
