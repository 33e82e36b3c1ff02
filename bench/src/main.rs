//! Measurements of Trommel: `cargo run --release -p trommel-bench -- engine` measures the cost of
//! the engine, next to a hand-written loop and, with `--rust-peers`, next to other engines.
#![expect(clippy::print_stdout, reason = "tables are the output of this program")]

mod arrays;
mod conjunctive_query;
mod engine;
mod epsilon_join;
mod frequent_items;
mod frequent_pairs;
mod gpu;
mod runner;
mod scaling;
mod set_join;
mod tables;
mod top;

use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Parser;
use signal_hook::consts::SIGPIPE;

/// Measurements of Trommel, with checked answers.
#[derive(Parser)]
struct Bench {
    #[command(subcommand)]
    table: Command,
    /// File for the rows of all tables as JSON.
    #[arg(long, global = true)]
    json: Option<PathBuf>,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Joins and counts of arrays in memory, for comparison with the Python package.
    Arrays(arrays::Arguments),
    /// Conjunctive queries over inverted lists, on the processor and in batches on a GPU.
    ConjunctiveQuery(conjunctive_query::Arguments),
    /// Cost of the engine in ns per item, and of queries to a running pipeline.
    Engine(engine::Arguments),
    /// Epsilon joins of vectors on a GPU.
    EpsilonJoin(epsilon_join::Arguments),
    /// Throughput and accuracy of the summaries of frequent items, by the skew of the stream.
    FrequentItems(frequent_items::Arguments),
    /// Frequent pairs of items, whole runs in every layout, beside Python packages.
    FrequentPairs(frequent_pairs::Arguments),
    /// Overlaps of candidate pairs of token sets, on each level of the processor and by each
    /// kernel of a GPU.
    Overlap(gpu::overlap::Arguments),
    /// Verification of candidate pairs in a pipeline, in waves, on one core or a GPU.
    Waves(gpu::waves::Arguments),
    /// Signatures of all pairs of token sets, on each level of the processor and a GPU.
    Signatures(gpu::signatures::Arguments),
    /// Supports of all pairs of items, by each unit of a GPU.
    Supports(gpu::supports::Arguments),
    /// Whole runs of the command by the number of cores, beside DuckDB, polars and the page cache.
    Scaling(scaling::Arguments),
    /// Set-similarity joins by every algorithm at every threshold.
    SetJoin(set_join::Arguments),
    /// Questions to tables of CSV, JSON, Parquet and logs, beside DuckDB and polars.
    Tables(tables::Arguments),
    /// Most frequent lines and words of a file, next to programs that count all.
    Top(top::Arguments),
}

/// Status after the reader of standard output has left: 128 and the number of the signal, as shells
/// tell it.
const READER_LEFT: i32 = 128 + SIGPIPE;

fn main() -> ExitCode {
    if let Err(error) = end_with_reader() {
        println!("{error}");
        return ExitCode::FAILURE;
    }
    run(Bench::parse())
}

/// Lets the process end when the reader of standard output has left. Rust ignores the signal, and
/// printing would panic. No measurement writes to another pipe.
fn end_with_reader() -> io::Result<()> {
    let ends = Arc::new(AtomicBool::new(true));
    signal_hook::flag::register_conditional_shutdown(SIGPIPE, READER_LEFT, ends).map(drop)
}

fn run(Bench { table, json }: Bench) -> ExitCode {
    let save = || json.map_or(Ok(()), |path| runner::report::save(&path));
    match measure(table).and_then(|()| Ok(save()?)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(command: Command) -> Result<(), Box<dyn Error>> {
    if !matches!(command, Command::Arrays(_)) {
        println!("{}\n", runner::machine());
    }
    match command {
        Command::Arrays(arguments) => arrays::run(&arguments)?,
        Command::ConjunctiveQuery(arguments) => conjunctive_query::run(&arguments)?,
        Command::Engine(arguments) => engine::run(&arguments)?,
        Command::EpsilonJoin(arguments) => epsilon_join::run(&arguments)?,
        Command::FrequentItems(arguments) => frequent_items::run(&arguments)?,
        Command::FrequentPairs(arguments) => frequent_pairs::run(&arguments)?,
        Command::Overlap(arguments) => gpu::overlap::run(&arguments)?,
        Command::Waves(arguments) => gpu::waves::run(&arguments)?,
        Command::Signatures(arguments) => gpu::signatures::run(&arguments),
        Command::Supports(arguments) => gpu::supports::run(&arguments),
        Command::Scaling(arguments) => scaling::run(&arguments)?,
        Command::SetJoin(arguments) => set_join::run(&arguments)?,
        Command::Tables(arguments) => tables::run(&arguments)?,
        Command::Top(arguments) => top::run(&arguments)?,
    }
    Ok(())
}
