//! Python packages that join similar sets, over the same sets.
//!
//! Joins compare floating-point numbers, except DuckDB, whose query is ours, and may lose pairs
//! that reach the threshold exactly. MinHash finds most pairs, and false ones among them, which the
//! script counts. Missing and false pairs are shown and do not stop the program.

use std::fs;
use std::io;
use std::time::Duration;

use serde::Deserialize;

use super::data::Input;
use crate::runner::python::Python;

/// Result of our join at a threshold.
pub(super) struct Ours {
    pub(super) threshold: u32,
    pub(super) pairs: u64,
    /// Seconds of numbering tokens and joining, both of which peers have in their clock.
    pub(super) seconds: f64,
}

/// Output of the script: a measurement of a peer at a threshold, or the reason why it is missing.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Measured {
    Joined(Joined),
    Missing { name: String, missing: String },
}

#[derive(Debug, Deserialize)]
struct Joined {
    name: String,
    threshold: u32,
    seconds: Vec<f64>,
    /// Pairs that reach the threshold.
    pairs: u64,
    /// All pairs that a peer without verification returns.
    candidates: Option<u64>,
}

/// Measures all peers of the script on these sets, `rounds` times at each threshold, and prints a
/// table.
///
/// # Errors
/// If the script fails.
pub(super) fn measure(
    python: &Python,
    input: &Input,
    ours: &[Ours],
    rounds: usize,
) -> io::Result<()> {
    let path = python.file("sets.txt");
    fs::write(&path, input.lines())?;
    let thresholds: Vec<String> = ours.iter().map(|ours| ours.threshold.to_string()).collect();
    let measured = python.measure(&[
        ("--sets", &[path.display().to_string()]),
        ("--thresholds", &thresholds),
        ("--rounds", &[rounds.to_string()]),
    ]);
    fs::remove_file(&path)?;
    let measured: Vec<Measured> = measured?;
    println!("| threshold | join | pairs | missing | recall % | false | seconds | times ours |");
    println!("|---:|---|---:|---:|---:|---:|---:|---:|");
    for ours in ours {
        let Ours { threshold, pairs, seconds } = ours;
        println!("| {threshold} | trommel | {pairs} | 0 | 100 | 0 | {seconds:.4} | |");
        for peer in &measured {
            if let Measured::Joined(joined) = peer
                && joined.threshold == *threshold
            {
                joined.print(ours);
            }
        }
    }
    println!();
    for peer in &measured {
        if let Measured::Missing { name, missing } = peer {
            println!("without {name}, which could not be installed: {missing}\n");
        }
    }
    Ok(())
}

impl Joined {
    /// Prints a row of the table.
    fn print(&self, ours: &Ours) {
        let Self { name, threshold, pairs, .. } = self;
        let mut times: Vec<_> = self.seconds.iter().copied().map(Duration::from_secs_f64).collect();
        let seconds = super::median(&mut times).as_secs_f64();
        let missing = i128::from(ours.pairs) - i128::from(*pairs);
        let recall = 100.0 * *pairs as f64 / ours.pairs.max(1) as f64;
        let false_pairs = self.candidates.map_or(0, |candidates| candidates - pairs);
        let times = seconds / ours.seconds;
        println!(
            "| {threshold} | {name} | {pairs} | {missing} | {recall:.2} | {false_pairs} | \
             {seconds:.3} | {times:.0} |"
        );
    }
}
