//! Crates that Trommel is measured beside: summaries, engines, indexes of documents, and a tree of
//! vectors.
//!
//! The runner of the bench starts this program and writes jobs to its standard input, each a line
//! of JSON. The program does each job once and prints a line of JSON with seconds and the answer,
//! which the runner compares with ours. Peers and our programs thus take turns, as they do within
//! one process. Data are in files of little-endian numbers, which the program keeps for later jobs.

mod documents;
mod engines;
mod numbers;
mod summaries;
mod vectors;
#[path = "../../src/work.rs"]
mod work;

use std::error::Error;
use std::io::{self, BufRead as _, Write as _};
use std::process::ExitCode;

use cap::Cap;
use mimalloc::MiMalloc;
use serde::Deserialize;
use serde_json::Value;

/// The allocator of all peers, as of the bench. It counts the bytes that it has given out.
#[global_allocator]
static ALLOCATOR: Cap<MiMalloc> = Cap::new(MiMalloc, usize::MAX);

/// A line of the runner.
#[derive(Debug, Deserialize)]
#[serde(tag = "table", rename_all = "kebab-case")]
enum Job {
    Engine(engines::Job),
    FrequentItems(summaries::Job),
    ConjunctiveQuery(documents::Job),
    EpsilonJoin(vectors::Job),
}

/// Data of earlier jobs.
#[derive(Default)]
struct Peers {
    summaries: summaries::Summaries,
    documents: documents::Documents,
}

impl Peers {
    fn answer(&mut self, job: Job) -> Result<Value, Box<dyn Error>> {
        match job {
            Job::Engine(job) => job.run(),
            Job::FrequentItems(job) => self.summaries.run(&job),
            Job::ConjunctiveQuery(job) => self.documents.run(&job),
            Job::EpsilonJoin(job) => job.run(),
        }
    }
}

fn main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("trommel-peers: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Answers all jobs, until the runner closes standard input.
fn serve() -> Result<(), Box<dyn Error>> {
    let mut peers = Peers::default();
    let mut answers = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let answer = peers.answer(serde_json::from_str(&line?)?)?;
        writeln!(answers, "{answer}")?;
        answers.flush()?;
    }
    Ok(())
}
