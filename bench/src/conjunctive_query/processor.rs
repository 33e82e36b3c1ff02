//! Counts on the processor: one core, all cores, and crates.

use std::fs;
use std::io;
use std::num::NonZero;
use std::path::Path;
use std::thread;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use trommel_kernels::Isa;
use trommel_kernels::inverted::{BatchScratch, QueryScratch};

use super::workload::Workload;
use crate::runner::Runs;
use crate::runner::crates::Crates;
use crate::runner::numbers::bytes;
use crate::runner::report::Table;
use crate::runner::turns::{Measured, Run, Turns};

/// Queries of a batch, as the operator sends them.
const BATCH: usize = 1024;

/// Bytes of an id in plain lists.
const RAW: f64 = 4.0;

/// Crates with indexes.
const PEERS: [&str; 3] = ["roaring", "croaring", "tantivy"];

/// What a row has beside times: the bytes of the index, and whether it is ours on one core.
type Rest = (usize, bool);

/// Prints the speed of counting the queries, beside crates; returns the queries a second of ours on
/// one core.
///
/// # Errors
/// If a file for the crates cannot be written, or they fail.
pub(super) fn table(workload: &Workload, runs: Runs, crates: Option<&Crates>) -> io::Result<f64> {
    // Counts of each query are compared once, and their sum in each round.
    let mut turns = Turns::new(runs).expect(workload.documents(0, workload.queries()) as u64);
    ours(workload, &mut turns);
    let folder = tempfile::tempdir()?;
    if let Some(crates) = crates {
        write(workload, folder.path())?;
        for name in PEERS {
            peer(workload, crates, name, folder.path(), &mut turns)?;
        }
    }
    Ok(print(workload, &turns.run()))
}

/// Prints the rows; returns the rate of the fastest of ours on one core.
fn print(workload: &Workload, measured: &[Measured<Rest>]) -> f64 {
    let queries = workload.queries();
    let rate = |time: Duration| queries as f64 / time.as_secs_f64();
    let best = |time: fn(&Measured<Rest>) -> Duration| {
        let ours = measured.iter().filter(|row| row.rest().1);
        ours.map(|row| rate(time(row))).fold(0.0, f64::max)
    };
    let (of_medians, of_fastest) = (best(Measured::median), best(Measured::fastest));
    let mut table = Table::new(&format!(
        "counts of {queries} queries                 | median/s: | best / median: | fastest/s: | \
         best / fastest: | noise: | B a posting: | of raw:"
    ));
    for row in measured {
        let (median, fastest) = (rate(row.median()), rate(row.fastest()));
        let bytes = row.rest().0 as f64 / workload.postings().max(1) as f64;
        table.row(format!(
            "{} | {median:.0} | {:.2} | {fastest:.0} | {:.2} | {:.1}% | {bytes:.2} | {:.2}",
            row.name,
            of_medians / median,
            of_fastest / fastest,
            100.0 * row.noise(),
            bytes / RAW,
        ));
    }
    of_medians
}

/// Our counts: one by one, in batches, and on all cores.
fn ours<'a>(workload: &'a Workload, turns: &mut Turns<'a, u64, Rest>) {
    let isa = Isa::available().last().expect("every processor is scalar");
    let (queries, bytes) = (workload.queries(), workload.segment.as_bytes().len());
    check(workload, isa);
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let mut add = |name: String, is_ours, count: Box<dyn Fn() -> u64 + 'a>| {
        turns.add(name, move || {
            let Run { time, answer, .. } = Run::of(&count);
            Run { time, answer, rest: (bytes, is_ours) }
        });
    };
    let batches = move |size| move || in_batches(workload, isa, (0, queries), size);
    add(
        format!("one core, one by one, {isa}"),
        true,
        Box::new(move || one_by_one(workload, isa, queries)),
    );
    add(format!("one core, batches of {BATCH}"), true, Box::new(batches(BATCH)));
    add("one core, one batch".to_owned(), true, Box::new(batches(queries)));
    let on_all = move || {
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
    };
    add(format!("{cores} cores"), false, Box::new(on_all));
}

/// Compares our count of each query, alone and in a batch, with the right one.
fn check(workload: &Workload, isa: Isa) {
    let queries = workload.queries();
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

/// Writes the documents of each term, and the queries, as the crates read them.
fn write(workload: &Workload, folder: &Path) -> io::Result<()> {
    let end = |end: &mut u32, list: &Vec<u32>| {
        *end += u32::try_from(list.len()).expect("postings have 32-bit numbers");
        Some(*end)
    };
    let ends = [0].into_iter().chain(workload.lists.iter().scan(0, end));
    fs::write(folder.join("offsets"), bytes(ends))?;
    fs::write(folder.join("ids"), bytes(workload.lists.iter().flatten().copied()))?;
    fs::write(folder.join("query_offsets"), bytes(workload.offsets.iter().copied()))?;
    fs::write(folder.join("query_terms"), bytes(workload.terms.iter().copied()))
}

/// What a crate says of its index.
#[derive(Deserialize)]
struct Built {
    bytes: usize,
    counts: Vec<u32>,
}

/// Lets a crate build its index and compares the count of each query; adds it with the queries as
/// they come, and in the order of their lists, which is made before.
fn peer<'a>(
    workload: &Workload,
    crates: &'a Crates,
    name: &'static str,
    folder: &Path,
    turns: &mut Turns<'a, u64, Rest>,
) -> io::Result<()> {
    let job = |task: &str| {
        json!({
            "table": "conjunctive-query", "index": name, "folder": folder, "task": task,
            "documents": workload.documents.len()
        })
    };
    let Built { bytes, counts } = crates.ask(&job("counts"))?;
    assert!(counts == workload.right.counts, "{name} gives wrong counts");
    for (task, order) in [("sum", ""), ("sum-by-list", ", sorted by list")] {
        let job = job(task);
        turns.add(format!("one core, {name}{order}"), move || {
            let Run { time, answer, .. } = crates.run(&job);
            Run { time, answer, rest: (bytes, false) }
        });
    }
    Ok(())
}
