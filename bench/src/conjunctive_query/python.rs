//! DuckDB, through a script in Python.

use std::fs;
use std::io;

use serde::Deserialize;

use super::workload::Workload;
use crate::runner::numbers::bytes;
use crate::runner::python::Python;
use crate::runner::report::Table;

/// Queries that are measured: the rate of all is extrapolated from these.
const SAMPLE: usize = 100;

/// Output of the script: a way of asking, or the reason why it is missing.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Peer {
    Asked { name: String, seconds: f64, counts: Vec<u32> },
    Missing { name: String, missing: String },
}

/// Measures a sample of the queries, and prints the rates beside `best`, the
/// queries a second of ours on one core.
///
/// # Errors
/// If the script fails, or gives a wrong count.
pub(super) fn table(python: &Python, workload: &Workload, best: f64) -> io::Result<()> {
    let queries = workload.queries();
    // Evenly spaced, so that queries of all kinds are in it.
    let step = queries.div_ceil(SAMPLE).max(1);
    let sample: Vec<usize> = (0..queries).step_by(step).collect();
    let lines: Vec<String> = sample
        .iter()
        .map(|&query| {
            let terms: Vec<String> = workload.query(query).iter().map(u32::to_string).collect();
            terms.join(" ")
        })
        .collect();
    let paths = ["queries.txt", "terms.u32", "documents.u32"].map(|name| python.file(name));
    fs::write(&paths[0], lines.join("\n"))?;
    let postings = || (0_u32..).zip(workload.lists.iter());
    let terms = postings().flat_map(|(term, list)| list.iter().map(move |_| term));
    fs::write(&paths[1], bytes(terms))?;
    fs::write(&paths[2], bytes(postings().flat_map(|(_, list)| list.iter().copied())))?;
    let named = paths.each_ref().map(|path| path.display().to_string());
    let measured: io::Result<Vec<Peer>> = python.measure(&[
        ("--queries", &named[..1]),
        ("--terms", &named[1..2]),
        ("--documents", &named[2..]),
    ]);
    paths.iter().try_for_each(fs::remove_file)?;
    println!("Sample of {} of the queries; rates are extrapolated.\n", sample.len());
    let mut table = Table::new("peer | queries/s: | best / it:");
    for peer in measured? {
        table.row(shown(&peer, workload, &sample, best)?);
    }
    Ok(())
}

fn shown(peer: &Peer, workload: &Workload, sample: &[usize], best: f64) -> io::Result<String> {
    match peer {
        Peer::Asked { name, seconds, counts } => {
            let right = sample.iter().map(|&query| &workload.right.counts[query]);
            if !right.eq(counts) {
                return Err(io::Error::other(format!("{name} gives wrong counts")));
            }
            let rate = sample.len() as f64 / seconds;
            Ok(format!("{name} | {rate:.0} | {:.0}", best / rate))
        }
        Peer::Missing { name, missing } => Ok(format!("{name} | {missing}")),
    }
}
