//! Scaling: whole runs of the command `trommel` on 1, 2, 4, ... cores, beside DuckDB and polars,
//! and the speed at which the machine reads the same files from its page cache.
//!
//! ```text
//! question ──► files ──► for each number of cores, by turns:
//!                          threads that read the files     seconds of the page cache
//!                          trommel, a process              seconds of the process
//!                          python/scaling.py, a process    seconds of the question
//! ```
//!
//! A run has the first n cores that this process may use: the thread that starts the run has that
//! affinity, and processes and threads inherit the affinity. Cores are those of the operating
//! system in the order of their numbers, and two of them may share a physical core. The clock of
//! `trommel` covers the whole process with the rows that it writes; the clock of a peer begins when
//! its packages are imported. The fastest run is shown. Files are in the page cache before the
//! first run.
//!
//! Every answer is checked. Counts of `trommel` have to be within its bounds of exact counts, and
//! the counts of peers have to be exact. Joins have to find the same rows on all numbers of cores,
//! and the rows of some sets, items, vectors and queries have to be those of a plain loop.

mod counts;
mod data;
mod machine;
mod peers;
mod questions;
mod samples;

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum as _;

use self::data::Data;
use self::machine::Cores;
use self::peers::{PEERS, Peers};
use self::questions::{Case, Program, Question};
use crate::runner::report::{Table, cells, right};
use crate::runner::turns::{Measured, Run, Turns, timed};
use crate::runner::{Runs, positive};

/// Share of the full sizes with `--quick`.
const QUICK: f64 = 0.0005;

/// Options of `scaling`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Arguments {
    /// Share of the full sizes: 15 million lines (1.1 GB), 400 million integers, 3 million sets, a
    /// million vectors, 500,000 queries to the sets.
    #[arg(long, default_value_t = 1.0, value_parser = share)]
    size: f64,
    /// Small data, for the answers alone.
    #[arg(long, conflicts_with = "size")]
    quick: bool,
    /// Questions; all by default.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Question>,
    /// Numbers of cores; 1, 2, 4, ... up to all cores of this process by default.
    #[arg(long, value_delimiter = ',', value_parser = positive)]
    cores: Vec<usize>,
    /// Folder for generated files, which a later run with the same sizes reads again; a temporary
    /// folder by default.
    #[arg(long)]
    data: Option<PathBuf>,
    /// Text in UTF-8 in place of the generated log. Peers cut words at blanks, so they answer
    /// `words` only of a text without punctuation.
    #[arg(long)]
    text: Option<PathBuf>,
    /// The command; by default `trommel` in the folder of this program.
    #[arg(long)]
    trommel: Option<PathBuf>,
    /// Python with the packages duckdb, polars and numpy; packages that are missing are left out.
    #[arg(long, default_value = "python3")]
    python: PathBuf,
    /// The fastest run is shown.
    #[command(flatten)]
    runs: Runs,
}

/// A share above 0 and at most 10.
fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (1e-6..=10.0).contains(share));
    share.ok_or_else(|| "expected a number from 0.000001 to 10".to_owned())
}

/// An error if something does not hold.
fn ensure(holds: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why()) }
}

/// What is measured on a number of cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    PageCache,
    Trommel,
    Peer(usize),
}

/// Measures and prints.
///
/// # Errors
/// If the command is missing, a file cannot be written, or an answer cannot be read.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let cores = Cores::of(&arguments.cores)?;
    let program = Program::find(arguments.trommel.as_deref())?;
    let peers = Peers::find(&arguments.python);
    let size = if arguments.quick { QUICK } else { arguments.size };
    let data = Data::new(arguments.data.as_deref(), arguments.text.as_deref(), size)?;
    let (version, peer_versions, load) = (program.version()?, peers.versions(), machine::load());
    println!("{version}; {peer_versions}; size {size}; load before the runs {load}\n");
    let all = || Question::value_variants().to_vec();
    let only = if arguments.only.is_empty() { all() } else { arguments.only.clone() };
    let mut cases = Vec::new();
    for question in only {
        cases.push((question, question.case(&data)?));
    }
    let names = right(cores.counts().iter().map(|count| match count {
        1 => "1 core".to_owned(),
        _ => format!("{count} cores"),
    }));
    let mut table = Table::new(&format!(
        "question         | MB:     | way                      | {names} | times:"
    ));
    let mut failures = Vec::new();
    for (question, case) in cases {
        let measuring = Measuring { question, case, cores: &cores, program: &program };
        failures.extend(measuring.measure(&peers, arguments.runs.or(3), &mut table)?);
    }
    drop(table);
    for failure in failures {
        println!("- {failure}");
    }
    Ok(())
}

/// A question that is measured.
struct Measuring<'a> {
    question: Question,
    case: Case,
    cores: &'a Cores,
    program: &'a Program,
}

/// Runs on each number of cores: seconds of the fastest run, or the reason why there are none.
type Seconds = Vec<Result<f64, String>>;

impl Measuring<'_> {
    /// Prints the rows of the question; returns what peers could not do.
    fn measure(
        &self,
        peers: &Peers,
        runs: Runs,
        table: &mut Table,
    ) -> Result<Vec<String>, Box<dyn Error>> {
        machine::read(&self.case.files, self.cores.largest())?;
        let asks_peers = self.question.name_for_peers().is_some();
        let there = (0..PEERS.len()).filter(|&peer| asks_peers && peers.has(peer));
        let ways = [Way::PageCache, Way::Trommel].into_iter();
        let ways: Vec<Way> = ways.chain(there.map(Way::Peer)).collect();
        let mut turns = Turns::<(), Result<(), String>>::new(runs).cold();
        for &way in &ways {
            for &count in self.cores.counts() {
                turns.add(self.question.name(), move || self.once(way, count, peers));
            }
        }
        let measured = turns.run();
        let seconds = |way: Way| -> Option<Seconds> {
            let at = ways.iter().position(|&one| one == way)?;
            let count = self.cores.counts().len();
            Some(measured[at * count..][..count].iter().map(fastest).collect())
        };
        let (page_cache, ours) = (seconds(Way::PageCache), seconds(Way::Trommel));
        let (page_cache, ours) = page_cache.zip(ours).expect("both are measured");
        let share = |(cache, ours): (&Result<f64, String>, &Result<f64, String>)| {
            Some(format!("{:.1}", 100.0 * cache.as_ref().ok()? / ours.as_ref().ok()?))
        };
        let shares = page_cache.iter().zip(&ours).map(|pair| share(pair).unwrap_or_default());
        let shares: Vec<String> = shares.collect();
        self.row(table, "trommel, s", &ours);
        self.print(table, "trommel, % of page cache", &cells(shares));
        self.row(table, "page cache, s", &page_cache);
        if !asks_peers {
            return Ok(Vec::new());
        }
        let mut failures = Vec::new();
        for (peer, name) in PEERS.iter().enumerate() {
            let name = format!("{name}, s");
            let Some(theirs) = seconds(Way::Peer(peer)) else {
                let none = self.cores.counts().iter().map(|_| "not installed");
                self.print(table, &name, &cells(none));
                continue;
            };
            self.row(table, &name, &theirs);
            let failed = theirs.iter().find_map(|seconds| seconds.as_ref().err());
            failures.extend(failed.map(|why| format!("{}, {name}: {why}", self.question.name())));
        }
        Ok(failures)
    }

    /// One run on `count` cores.
    fn once(&self, way: Way, count: usize, peers: &Peers) -> Run<(), Result<(), String>> {
        let on_cores = self.cores.first(count);
        let (time, rest) = match way {
            Way::PageCache => {
                let read = || machine::read(&self.case.files, count).expect("it was read before");
                let (time, bytes) = on_cores.run(|| timed(read));
                assert_eq!(bytes, self.case.bytes, "{}: bytes were not read", self.question.name());
                (time, Ok(()))
            }
            Way::Trommel => {
                let (time, rows) = self.program.run(&self.case.command, &on_cores);
                let name = self.question.name();
                self.case.check(&rows).unwrap_or_else(|why| panic!("trommel, {name}: {why}"));
                (time, Ok(()))
            }
            Way::Peer(peer) => {
                let file = &self.case.files[0];
                match peers.run(peer, self.question, file, &on_cores) {
                    Ok((seconds, rows)) => {
                        (Duration::from_secs_f64(seconds), self.case.check_exact(rows))
                    }
                    Err(why) => (Duration::ZERO, Err(why)),
                }
            }
        };
        Run { time, answer: (), rest }
    }

    /// Prints seconds on each number of cores, and the quotient of the first and the last of them.
    fn row(&self, table: &mut Table, way: &str, seconds: &Seconds) {
        let shown = seconds.iter().map(|seconds| match seconds {
            Ok(seconds) => format!("{seconds:.4}"),
            Err(_) => "failed".to_owned(),
        });
        let times = match &seconds[..] {
            [Ok(first), .., Ok(last)] => format!("{:.2}", first / last),
            _ => String::new(),
        };
        self.print(table, way, &format!("{} | {times}", cells(shown)));
    }

    fn print(&self, table: &mut Table, way: &str, values: &str) {
        let (name, megabytes) = (self.question.name(), self.case.bytes as f64 / 1e6);
        table.row(format!("{name} | {megabytes:.1} | {way} | {values}"));
    }
}

/// Seconds of the fastest run, if all runs gave the right answer.
fn fastest(engine: &Measured<Result<(), String>>) -> Result<f64, String> {
    match engine.all().find_map(|run| run.as_ref().err()) {
        Some(why) => Err(why.clone()),
        None => Ok(engine.fastest().as_secs_f64()),
    }
}
