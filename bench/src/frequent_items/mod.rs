//! Frequent items: throughput and accuracy by the skew of the stream, next to other programs; the
//! sieve on every level of the processor and in every size; queries during ingestion; the figures
//! of the paper; and streams that were crafted to be slow. Every answer is checked against exact
//! counts.

mod attack;
mod budgets;
mod figures;
mod live;
mod results;
mod sieves;
mod simulation;
mod stream;
mod summaries;
mod table;

use std::io;
use std::path::PathBuf;
use std::rc::Rc;

use clap::ValueEnum;

use self::results::Results;
use self::stream::{Shape, Stream};
use self::summaries::pipelines;
use self::summaries::processes::Processes;
use self::table::{Candidate, Rows, print as print_table, ratios};
use crate::runner::plot::{Plot, Scale as Axis};
use crate::runner::{Figures, PythonPeers, Runs, RustPeers, isa};

/// Section of the measurements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Section {
    /// Throughput and accuracy by skew, next to other programs.
    Table,
    /// The sieve on every level of the processor.
    Isa,
    /// The sieve over items that stay in the cache.
    Cache,
    /// The sieve over items of all kinds.
    Kinds,
    /// The sieve within budgets of memory.
    State,
    /// Queries during ingestion.
    Queries,
    /// The figures of the paper's evaluation.
    Paper,
    /// The sieve on a simulated processor, by valgrind; only if it is named.
    Simulation,
}

/// Options of `frequent-items`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Arguments {
    /// Items of the stream.
    #[arg(long, default_value_t = 50_000_000)]
    items: usize,
    /// Distinct items.
    #[arg(long, default_value_t = 5_000_000)]
    alphabet: u32,
    /// Counters of each summary.
    #[arg(long, default_value_t = 1000)]
    counters: usize,
    /// Items per batch, directly and in pipelines.
    #[arg(long, default_value_t = 65_536)]
    batch: usize,
    /// Zipf exponents.
    #[arg(long, value_delimiter = ',', default_value = "0,0.5,0.8,1,1.2,1.5,2,2.5,3,5")]
    skews: Vec<f64>,
    /// Items of the streams for the paper's figures.
    #[arg(long, default_value_t = 20_000_000)]
    figure_items: usize,
    /// Sections to run; by default all.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Section>,
    /// Only measure streams crafted against hash functions, next to random ones.
    #[arg(long)]
    attack: bool,
    #[command(flatten)]
    runs: Runs,
    #[command(flatten)]
    figures: Figures,
    #[command(flatten)]
    python: PythonPeers,
    #[command(flatten)]
    crates: RustPeers,
    /// Folder with the sources of DataSketches for C++ (github.com/apache/datasketches-cpp):
    /// compile its sketch and measure it too.
    #[arg(long)]
    datasketches: Option<PathBuf>,
    /// File of results: add the numbers of the table to it and print all of them, so that a long
    /// run can be divided.
    #[arg(long)]
    results: Option<PathBuf>,
    /// Run as the program that valgrind measures.
    #[arg(long, hide = true)]
    simulated: bool,
    /// Only check the answers, over streams too short for measurements.
    #[arg(long, visible_alias = "test")]
    quick: bool,
}

impl Arguments {
    fn shape(&self) -> Shape {
        let Self { items, alphabet, counters, batch, .. } = *self;
        Shape { items, alphabet, counters, batch: batch.max(1) }
    }

    /// Options with their usual values; small for `--quick`.
    fn settled(&self) -> Self {
        let mut settled = self.clone();
        settled.runs = self.runs.or(if self.quick { 1 } else { 3 });
        if self.quick {
            (settled.items, settled.alphabet) = (200_000, 20_000);
        }
        settled
    }

    fn scale(&self) -> Scale {
        if self.quick {
            return Scale { figure_items: 50_000, query_items: 200_000, query_rounds: 1 };
        }
        let figure_items = self.figure_items;
        Scale { figure_items, query_items: 200_000_000, query_rounds: 11 }
    }

    fn has(&self, section: Section) -> bool {
        // The simulation takes long, and needs another program.
        let is_usual = self.only.is_empty() && section != Section::Simulation;
        is_usual || self.only.contains(&section)
    }

    fn measure(&self, section: Section) -> io::Result<()> {
        match section {
            Section::Table => over_skews(self)?,
            Section::Isa => sieves::levels(self),
            Section::Cache => sieves::cached(self),
            Section::Kinds => sieves::kinds(self),
            Section::State => budgets::run(self)?,
            Section::Queries => live::run(self),
            Section::Paper => figures::run(self)?,
            Section::Simulation => {
                if let Err(error) = simulation::run(self) {
                    println!("not measured, valgrind is not installed or failed: {error}");
                }
            }
        }
        Ok(())
    }
}

const READ_LIMIT: &str = "read limit (sum)";
const SIEVE: &str = "sieve";
const IN_PIPELINE: &str = "sieve, in a pipeline";
const FROM_JSON: &str = "sieve, in a pipeline from JSON";
const PARTITION: &str = "sieve, partition, 2 cores";
const FILTER: &str = "filter, 16 bins";
const PLAIN: &str = "space_saving";
const CLICKHOUSE: &str = "ClickHouse topK, all cores";

fn candidates() -> Vec<Candidate> {
    vec![
        Candidate::new(READ_LIMIT, summaries::read_limit),
        Candidate::new(SIEVE, |stream| summaries::sieve(stream, isa())),
        Candidate::new(IN_PIPELINE, pipelines::sieve),
        Candidate::new(FROM_JSON, pipelines::json),
        Candidate::new(PARTITION, pipelines::partition),
        Candidate::new(FILTER, |stream| summaries::filter(stream, isa(), summaries::BINS)),
        Candidate::new("parallel_filter, 2 cores", |stream| {
            pipelines::parallel_filter(stream, summaries::BINS)
        }),
        Candidate::new(PLAIN, summaries::space_saving),
        Candidate::new("space_saving, Stream-Summary", summaries::stream_summary),
        Candidate::new("exact, hash table", summaries::exact),
        Candidate::new("exact, array", summaries::exact_array),
    ]
}

/// Sizes of the sections beside the table.
struct Scale {
    figure_items: usize,
    /// Items counted during queries.
    query_items: u64,
    /// Paired rounds with and without queries.
    query_rounds: usize,
}

/// Summaries of other crates, by the names that the program of the peers knows.
const CRATES: [&str; 3] = ["crate datasketches", "crate topk", "crate heavykeeper"];

/// The crates, if they are asked for.
fn peers(arguments: &Arguments) -> io::Result<Vec<Candidate>> {
    let Some(crates) = arguments.crates.start()? else {
        return Ok(Vec::new());
    };
    let crates = Rc::new(crates);
    let peer = |name| {
        let crates = Rc::clone(&crates);
        Candidate::new(name, move |stream| summaries::by_crate(&crates, name, stream))
    };
    Ok(CRATES.map(peer).into())
}

/// Measures and prints.
///
/// # Errors
/// If results or figures cannot be written, or a peer fails.
pub(crate) fn run(arguments: &Arguments) -> io::Result<()> {
    let arguments = &arguments.settled();
    if arguments.attack {
        attack::run(arguments);
        return Ok(());
    }
    if arguments.simulated {
        simulation::simulated(arguments);
        return Ok(());
    }
    let Arguments { items, alphabet, counters, runs, .. } = arguments;
    let rounds = runs.rounds(3);
    println!(
        "{items} u32, alphabet {alphabet}, {counters} counters, median of {rounds} rounds after one to warm up"
    );
    println!("every bound that a summary gives is checked against exact counts\n");
    let mut all = Section::value_variants().iter().filter(|section| arguments.has(**section));
    all.try_for_each(|section| arguments.measure(*section))
}

/// Runs the section [`Section::Table`].
fn over_skews(arguments: &Arguments) -> io::Result<()> {
    let processes = Processes::prepare(arguments.python, arguments.datasketches.as_deref())?;
    let path = arguments.results.as_deref();
    let mut results = Results::load(path, arguments)?;
    let peers = peers(arguments)?;
    results.add_peers(peers.iter().map(|peer| peer.name.as_str()));
    let candidates: Vec<Candidate> = candidates().into_iter().chain(peers).collect();
    for &skew in &arguments.skews {
        let stream = Stream::zipf(arguments.shape(), skew);
        let mut rows = Rows::default();
        rows.measure(&candidates, &stream, 0, arguments.runs);
        for (name, cell) in rows.first_column() {
            results.add(name, skew, cell);
        }
        for (name, cell) in processes.measure(&stream, arguments.runs.rounds(3))? {
            results.add(&name, skew, cell);
            results.add_peers([name.as_str()]);
        }
    }
    results.save(path)?;
    let (skews, rows) = results.rows();
    print(&rows, &results.product_peers, &skews);
    plot(&rows, &skews, &results.product_peers, arguments)
        .save(&arguments.figures, "frequent-items")
}

fn print(rows: &Rows, product_peers: &[String], skews: &[f64]) {
    rows.print_rates("M items/s", skews);
    let (sieve, pipeline) = (rows.rates(SIEVE), rows.rates(IN_PIPELINE));
    let best = best_of(rows, product_peers);
    let lines = [
        ("pipeline / sieve", ratios(&pipeline, &sieve)),
        ("pipeline from JSON / sieve", ratios(&rows.rates(FROM_JSON), &sieve)),
        ("partition / pipeline", ratios(&rows.rates(PARTITION), &pipeline)),
        ("sieve / read limit", ratios(&sieve, &rows.rates(READ_LIMIT))),
        ("sieve / best peer", ratios(&sieve, &best)),
        ("sieve / ClickHouse", ratios(&sieve, &rows.rates(CLICKHOUSE))),
    ];
    let lines = lines.map(|(name, values)| (name.to_owned(), values));
    print_table("ratios", skews, lines, |ratio| format!("{ratio:.2}"));
    rows.print_accuracy(skews, "bytes of state");
}

/// Fastest of these rows at each skew.
fn best_of(rows: &Rows, names: &[String]) -> Vec<Option<f64>> {
    let rates = names.iter().map(|name| rows.rates(name)).filter(|rates| !rates.is_empty());
    rates
        .reduce(|best, rates| {
            best.iter()
                .zip(rates)
                .map(|(a, b)| [*a, b].into_iter().flatten().reduce(f64::max))
                .collect()
        })
        .unwrap_or_default()
}

fn plot(rows: &Rows, skews: &[f64], product_peers: &[String], arguments: &Arguments) -> Plot {
    let subtitle = format!(
        "{} million items over an alphabet of {} million, {} counters, one core",
        arguments.items as f64 / 1e6,
        f64::from(arguments.alphabet) / 1e6,
        arguments.counters
    );
    let points = |name: &str| rows.line(name, skews);
    let mut plot = Plot::new("Counting frequent items", subtitle, Axis::Logarithmic)
        .axes("Zipf exponent", "million items a second")
        .main_line("Trommel, sieve", points(SIEVE))
        .line("Trommel, the paper's filter", points(FILTER));
    for name in product_peers {
        plot = plot.line(name, points(name));
    }
    let fastest = plot.lines();
    plot.dashed("reading the items", fastest, points(READ_LIMIT))
}
