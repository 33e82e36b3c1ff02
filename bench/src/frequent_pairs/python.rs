//! Python packages that mine frequent pairs and triples.

use std::fs;
use std::io;
use std::time::Duration;

use serde::Deserialize;

use super::data::Case;
use super::operator::Totals;
use crate::runner::python::Python;
use crate::runner::turns::median;

/// Output of the script: a measurement of a peer, or the reason why it is missing.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Peer {
    Mined { name: String, seconds: Vec<f64>, rows: u64, sum: u64 },
    Missing { name: String, missing: String },
}

impl Peer {
    /// Name and time, or the reason why there is none.
    pub(super) fn shown(self, expected: Totals) -> (String, String) {
        match self {
            Self::Mined { name, seconds, rows, sum } => {
                let times = seconds.into_iter().map(Duration::from_secs_f64);
                let time = format!("{:.4}", median(times.collect()).as_secs_f64());
                let is_right = (rows, sum) == expected;
                let remark =
                    if is_right { String::new() } else { format!(" (finds {rows}, {sum})") };
                (name, time + &remark)
            }
            Self::Missing { name, missing } => (name, missing),
        }
    }
}

/// Measures all peers of the script on these transactions, with rows of `itemset` items.
///
/// # Errors
/// If the script fails.
pub(super) fn measure(python: &Python, case: &Case, itemset: usize) -> io::Result<Vec<Peer>> {
    let path = python.file("baskets.dat");
    fs::write(&path, case.lines())?;
    let measured = python.measure(&[
        ("--baskets", &[path.display().to_string()]),
        ("--support", &[case.least.to_string()]),
        ("--itemset", &[itemset.to_string()]),
    ]);
    fs::remove_file(&path)?;
    measured
}
