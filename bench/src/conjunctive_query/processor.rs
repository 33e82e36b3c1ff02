//! Counts on the processor: one core, all cores, and peers.

use std::num::NonZero;
use std::thread;
use std::time::Duration;

use trommel_bench::measure::{Candidate, measure};
use trommel_kernels::Isa;
use trommel_kernels::inverted::{BatchScratch, QueryScratch};

use super::index::Workload;
use super::peer::{Peer, PeerName};

/// Queries of a batch, as the operator sends them.
const BATCH: usize = 1024;

/// Bytes of an id in plain lists.
const RAW: f64 = 4.0;

/// A row of the table.
struct Row<'a> {
    candidate: Candidate<'a>,
    /// Bytes of the index.
    bytes: usize,
    /// Whether it is ours on one core.
    is_ours: bool,
}

/// Prints the speed of counting `queries` queries, beside peers; returns the queries a second of
/// ours on one core.
pub(super) fn table(workload: &Workload, queries: usize, rounds: usize, names: &[PeerName]) -> f64 {
    let queries = queries.min(workload.queries());
    let built = peers(workload, queries, names);
    let order = by_list(workload, queries);
    let mut rows = ours(workload, queries);
    for peer in &built {
        rows.extend(of_peer(peer, queries, &order));
    }
    // Counts of each query have been compared; the sum is, in each round.
    let right = workload.documents(0, queries) as u64;
    let (mut candidates, rest): (Vec<_>, Vec<_>) =
        rows.into_iter().map(|row| (row.candidate, (row.bytes, row.is_ours))).unzip();
    measure(&mut candidates, right, rounds);
    let bytes_of = |(bytes, is_ours): &(usize, bool)| {
        (*bytes as f64 / workload.postings().max(1) as f64, *is_ours)
    };
    let rest: Vec<(f64, bool)> = rest.iter().map(bytes_of).collect();
    print(&candidates, &rest, queries)
}

/// Prints the table of candidates, with the bytes of a posting and whether it is ours on one core;
/// returns the rate of the fastest of ours.
fn print(candidates: &[Candidate], rest: &[(f64, bool)], queries: usize) -> f64 {
    let rate = |time: Duration| queries as f64 / time.as_secs_f64();
    let best = |time: &dyn Fn(&Candidate) -> Duration| {
        let ours = candidates.iter().zip(rest).filter(|(_, (_, is_ours))| *is_ours);
        ours.map(|(candidate, _)| rate(time(candidate))).fold(0.0, f64::max)
    };
    let (of_medians, of_fastest) = (best(&|ours| ours.median()), best(&|ours| ours.fastest()));
    println!(
        "| {:<41} | median/s | best / it | fastest/s | best / it | noise | B a posting | of raw |",
        format!("counts of {queries} queries")
    );
    println!(
        "|:{:-<41}-|---------:|----------:|----------:|----------:|------:|------------:|-------:|",
        ""
    );
    for (candidate, (bytes, _)) in candidates.iter().zip(rest) {
        let (median, fastest) = (rate(candidate.median()), rate(candidate.fastest()));
        println!(
            "| {:<41} | {median:>8.0} | {:>9.2} | {fastest:>9.0} | {:>9.2} | {:>4.1}% | {bytes:>11.2} | {:>6.2} |",
            candidate.name(),
            of_medians / median,
            of_fastest / fastest,
            100.0 * candidate.noise(),
            bytes / RAW,
        );
    }
    println!();
    of_medians
}

/// Our counts: one by one, in batches, and on all cores.
fn ours(workload: &Workload, queries: usize) -> Vec<Row<'_>> {
    let isa = Isa::available().last().expect("every processor is scalar");
    let bytes = workload.segment.as_bytes().len();
    let row = |candidate, is_ours| Row { candidate, bytes, is_ours };
    check(workload, isa, queries);
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let mut rows = vec![
        row(
            Candidate::new(format!("one core, one by one, {isa}"), move || {
                one_by_one(workload, isa, queries)
            }),
            true,
        ),
        row(
            Candidate::new(format!("one core, batches of {BATCH}"), move || {
                in_batches(workload, isa, (0, queries), BATCH)
            }),
            true,
        ),
        row(
            Candidate::new("one core, one batch", move || {
                in_batches(workload, isa, (0, queries), queries)
            }),
            true,
        ),
    ];
    rows.push(row(
        Candidate::new(format!("{cores} cores"), move || {
            // One batch a core.
            let share = queries.div_ceil(cores).max(1);
            thread::scope(|scope| {
                let part = |begin: usize| {
                    let end = queries.min(begin + share);
                    scope.spawn(move || in_batches(workload, isa, (begin, end), share))
                };
                let parts: Vec<_> = (0..queries).step_by(share).map(part).collect();
                parts.into_iter().map(|part| part.join().expect("it does not panic")).sum()
            })
        }),
        false,
    ));
    rows
}

/// Compares our count of each query, alone and in a batch, with the right one.
fn check(workload: &Workload, isa: Isa, queries: usize) {
    let (mut one, mut many, mut counts) = (QueryScratch::new(), BatchScratch::new(), Vec::new());
    workload.segment.count_batch(isa, workload.batch(0, queries), &mut many, &mut counts);
    assert!(counts == workload.right.counts[..queries], "wrong counts of a batch");
    let mut count = |query| workload.segment.count(isa, workload.query(query), &mut one);
    assert!((0..queries).all(|query| count(query) == counts[query]), "a wrong count");
}

fn one_by_one(workload: &Workload, isa: Isa, queries: usize) -> u64 {
    let mut scratch = QueryScratch::new();
    let count = |query| workload.segment.count(isa, workload.query(query), &mut scratch);
    (0..queries).map(count).map(u64::from).sum()
}

/// The sum of the counts of the queries `begin..end`, in batches.
fn in_batches(workload: &Workload, isa: Isa, (begin, end): (usize, usize), size: usize) -> u64 {
    let (mut scratch, mut counts, mut sum) = (BatchScratch::new(), Vec::new(), 0);
    for begin in (begin..end).step_by(size.max(1)) {
        let batch = workload.batch(begin, end.min(begin + size));
        workload.segment.count_batch(isa, batch, &mut scratch, &mut counts);
        sum += counts.iter().map(|&count| u64::from(count)).sum::<u64>();
    }
    sum
}

/// Builds the peers of these names, if this program was built with peers, and checks the count of
/// each query.
///
/// # Panics
/// If a count is wrong.
fn peers<'a>(workload: &'a Workload, queries: usize, names: &[PeerName]) -> Vec<Peer<'a>> {
    let built: Vec<Peer> = names.iter().filter_map(|&name| peer(workload, queries, name)).collect();
    for peer in &built {
        for query in 0..queries {
            let (found, right) = ((peer.count)(query), workload.right.counts[query]);
            assert_eq!(found, right, "{}: query {query}", peer.name);
        }
    }
    built
}

#[cfg(not(feature = "peers"))]
fn peer(_: &Workload, _: usize, _: PeerName) -> Option<Peer<'_>> {
    None
}

#[cfg(feature = "peers")]
fn peer(workload: &Workload, queries: usize, name: PeerName) -> Option<Peer<'_>> {
    Some(super::peers::named(workload, queries, name))
}

/// A peer in the order of the queries, and in the order of their lists, which is made before.
fn of_peer<'a>(peer: &'a Peer<'a>, queries: usize, order: &'a [usize]) -> [Row<'a>; 2] {
    let Peer { name, bytes, count } = peer;
    let row = |candidate| Row { candidate, bytes: *bytes, is_ours: false };
    let plain = move || (0..queries).map(|query| u64::from(count(query))).sum();
    let sorted = move || order.iter().map(|&query| u64::from(count(query))).sum();
    [
        row(Candidate::new(format!("one core, {name}"), plain)),
        row(Candidate::new(format!("one core, {name}, sorted by list"), sorted)),
    ]
}

/// The queries by their second shortest list, then by their shortest: queries that search the
/// same list follow each other.
fn by_list(workload: &Workload, queries: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..queries).collect();
    order.sort_by_cached_key(|&query| {
        let len = |term: u32| workload.lists[term as usize].len();
        let mut lists: Vec<(usize, u32)> =
            workload.query(query).iter().map(|&term| (len(term), term)).collect();
        lists.sort_unstable();
        [lists.get(1).copied(), lists.first().copied()]
    });
    order
}
