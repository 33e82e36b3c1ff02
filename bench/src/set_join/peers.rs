//! Python packages that join similar sets, over the same sets.
//!
//! Joins compare floating-point numbers, except DuckDB, whose query is ours, and may lose pairs
//! that reach the threshold exactly. MinHash finds most pairs, and false ones among them, which the
//! script counts. Missing and false pairs are shown and do not stop the program.

use std::fs;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use trommel::set_similarity_join::{JoinAlgorithm, Similarity};

use super::data::Input;
use super::library::Row;
use crate::runner::python::Python;
use crate::runner::report::Table;
use crate::runner::turns::{Run, Turns, median, timed};
use crate::runner::{Runs, isa};

/// Output of the script: a measurement of a peer at a threshold, or the reason why it is missing.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Peer {
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

/// Measures all peers of the script on each input, next to our join. Its clock covers numbering
/// tokens and joining, both of which peers have in their clock.
///
/// # Errors
/// If Python or its packages are missing, or the script fails.
pub(super) fn measure(inputs: &[Input], thresholds: &[u32], runs: Runs) -> io::Result<()> {
    let python = match Python::prepare("set_join") {
        Ok(python) => python,
        Err(error) => {
            println!("without Python peers: {error}\n");
            return Ok(());
        }
    };
    for input in inputs {
        println!("{}\n", input.name);
        let path = python.file("sets.txt");
        fs::write(&path, input.lines())?;
        let asked: Vec<String> = thresholds.iter().map(u32::to_string).collect();
        let measured = python.measure(&[
            ("--sets", &[path.display().to_string()]),
            ("--thresholds", &asked),
            ("--rounds", &[runs.rounds(3).to_string()]),
        ]);
        fs::remove_file(&path)?;
        let measured: Vec<Peer> = measured?;
        let mut table = Table::new(
            "threshold: | join | pairs: | missing: | recall %: | false: | seconds: | times ours:",
        );
        for &threshold in thresholds {
            let (pairs, ours) = our_join(input, threshold, runs);
            table.row(format!("{threshold} | trommel | {pairs} | 0 | 100 | 0 | {ours:.4}"));
            for peer in &measured {
                if let Peer::Joined(joined) = peer
                    && joined.threshold == threshold
                {
                    table.row(joined.row(pairs, ours));
                }
            }
        }
        drop(table);
        for peer in &measured {
            if let Peer::Missing { name, missing } = peer {
                println!("without {name}, which could not be installed: {missing}\n");
            }
        }
    }
    Ok(())
}

/// Pairs and seconds of our join.
fn our_join(input: &Input, threshold: u32, runs: Runs) -> (u64, f64) {
    let mut turns = Turns::<(), u64>::new(runs);
    turns.add("trommel", || {
        let (time, rest) = timed(|| {
            let collection = Arc::new(input.collect(false));
            let row = Row { collection, similarity: Similarity::Jaccard, threshold, answer: None };
            row.run(JoinAlgorithm::Auto, isa()).answer
        });
        Run { time, answer: (), rest }
    });
    let measured = turns.run().remove(0);
    (*measured.rest(), measured.seconds())
}

impl Joined {
    /// A row beside our pairs and seconds.
    fn row(&self, ours: u64, our_seconds: f64) -> String {
        let Self { name, threshold, pairs, .. } = self;
        let times = self.seconds.iter().copied().map(Duration::from_secs_f64);
        let seconds = median(times.collect()).as_secs_f64();
        let missing = i128::from(ours) - i128::from(*pairs);
        let recall = 100.0 * *pairs as f64 / ours.max(1) as f64;
        let false_pairs = self.candidates.map_or(0, |candidates| candidates - pairs);
        let times = seconds / our_seconds;
        format!(
            "{threshold} | {name} | {pairs} | {missing} | {recall:.2} | {false_pairs} | \
             {seconds:.3} | {times:.0}"
        )
    }
}
