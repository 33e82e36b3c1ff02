//! Python packages that join similar sets, over the same sets.
//!
//! All of them compare floating-point numbers, except DuckDB, whose query is ours. So they may
//! lose pairs that reach the threshold exactly; these are shown as missing and do not stop the
//! program.

use std::fs;
use std::io;
use std::time::Duration;

use serde::Deserialize;

use super::data::Input;
use crate::python::Python;

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
    Joined { name: String, threshold: u32, seconds: Vec<f64>, pairs: u64 },
    Missing { name: String, missing: String },
}

/// Measures all peers of the script on these sets, once at each threshold, and prints a table.
///
/// # Errors
/// If the script fails.
pub(super) fn measure(python: &Python, input: &Input, ours: &[Ours]) -> io::Result<()> {
    let path = python.file("sets.txt");
    fs::write(&path, input.lines())?;
    let thresholds: Vec<String> = ours.iter().map(|ours| ours.threshold.to_string()).collect();
    let measured =
        python.measure(&[("--sets", &[path.display().to_string()]), ("--thresholds", &thresholds)]);
    fs::remove_file(&path)?;
    let measured: Vec<Measured> = measured?;
    println!("| threshold | join | pairs | missing | seconds | times ours |");
    println!("|---:|---|---:|---:|---:|---:|");
    for Ours { threshold, pairs, seconds } in ours {
        println!("| {threshold} | trommel | {pairs} | | {seconds:.4} | |");
        for peer in &measured {
            let Measured::Joined { name, threshold: at, seconds: times, pairs: found } = peer
            else {
                continue;
            };
            if at != threshold {
                continue;
            }
            let mut times: Vec<_> = times.iter().copied().map(Duration::from_secs_f64).collect();
            let time = super::median(&mut times).as_secs_f64();
            let missing = i128::from(*pairs) - i128::from(*found);
            let times = time / seconds;
            println!("| {threshold} | {name} | {found} | {missing} | {time:.3} | {times:.0} |");
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
