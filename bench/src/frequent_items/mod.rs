//! Frequent items: throughput and accuracy by the skew of the stream, next to other programs; the
//! sieve on every level of the processor and in every size; queries during ingestion; the figures
//! of the paper; and streams that were crafted to be slow. Every answer is checked against exact
//! counts.

mod attack;
mod budgets;
mod direct;
mod figures;
mod live;
mod pipelines;
mod processes;
mod results;
mod sieves;
mod simulation;
mod stream;
mod stream_summary;
mod table;

use std::path::PathBuf;
use std::rc::Rc;
use std::{fs, io};

use crate::runner::Peers;
use crate::runner::crates::Crates;
use crate::runner::plot::{Plot, Scale};
use clap::ValueEnum;

use self::direct::isa;
use self::processes::Processes;
use self::results::Results;
use self::stream::Shape;
use self::stream::Stream;
use self::table::{Candidate, Cell, Rows, header, print_row, ratios};

/// Section of the measurements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Section {
    /// Throughput and accuracy by skew, next to other programs.
    Table,
    /// The sieve on every level of the processor.
    Isa,
    /// The sieve within budgets of memory.
    State,
    /// The sieve over items that stay in the cache.
    Cache,
    /// The sieve over items of all kinds.
    Kinds,
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
    /// Zipf exponents for the budgets of memory.
    #[arg(long, value_delimiter = ',', default_value = "0.8,1,1.5,3")]
    state_skews: Vec<f64>,
    /// Zipf exponents of the paper's figures.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "0,0.25,0.5,0.75,1,1.25,1.5,1.75,2,2.5,3,4,5"
    )]
    figure_skews: Vec<f64>,
    /// Items of the streams for the paper's figures.
    #[arg(long, default_value_t = 20_000_000)]
    figure_items: usize,
    /// Zipf exponents of the streams counted during queries.
    #[arg(long, value_delimiter = ',', default_value = "1.5")]
    query_skews: Vec<f64>,
    /// Items counted during queries.
    #[arg(long, default_value_t = 200_000_000)]
    query_items: u64,
    /// Items per batch during queries, which are answered between batches.
    #[arg(long, default_value_t = 2048)]
    query_batch: usize,
    /// Paired rounds with and without queries.
    #[arg(long, default_value_t = 11)]
    query_rounds: usize,
    /// Rounds; the median is shown.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Sections to run; by default all.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Section>,
    /// Only measure streams crafted against hash functions, next to random ones.
    #[arg(long)]
    attack: bool,
    /// Folder for the figures.
    #[arg(long)]
    figures: Option<PathBuf>,
    #[command(flatten)]
    peers: Peers,
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
    #[arg(long)]
    quick: bool,
}

impl Arguments {
    fn shape(&self) -> Shape {
        let Self { items, alphabet, counters, batch, .. } = *self;
        Shape { items, alphabet, counters, batch: batch.max(1) }
    }

    /// Options within the possible ranges; small for `--quick`.
    fn settled(&self) -> Self {
        let mut settled = self.clone();
        settled.rounds = self.rounds.max(1);
        settled.query_rounds = self.query_rounds.max(1);
        if self.quick {
            (settled.items, settled.figure_items) = (200_000, 50_000);
            (settled.alphabet, settled.query_items) = (20_000, 200_000);
            (settled.rounds, settled.query_rounds) = (1, 1);
        }
        settled
    }

    fn has(&self, section: Section) -> bool {
        self.only.is_empty() || self.only.contains(&section)
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
        Candidate::new(READ_LIMIT, direct::read_limit),
        Candidate::new(SIEVE, |stream| direct::sieve(stream, isa())),
        Candidate::new(IN_PIPELINE, pipelines::sieve),
        Candidate::new(FROM_JSON, pipelines::json),
        Candidate::new(PARTITION, pipelines::partition),
        Candidate::new(FILTER, |stream| direct::filter(stream, isa(), direct::BINS)),
        Candidate::new("parallel_filter, 2 cores", |stream| {
            pipelines::parallel_filter(stream, direct::BINS)
        }),
        Candidate::new(PLAIN, direct::space_saving),
        Candidate::new("space_saving, Stream-Summary", direct::stream_summary),
        Candidate::new("exact, hash table", direct::exact),
        Candidate::new("exact, array", direct::exact_array),
    ]
}

/// Summaries of other crates, by the names that the program of the peers knows.
const CRATES: [&str; 3] = ["crate datasketches", "crate topk", "crate heavykeeper"];

/// The crates, if they are asked for.
fn peers(arguments: &Arguments) -> io::Result<Vec<Candidate>> {
    let Some(crates) = arguments.peers.rust_peers.then(Crates::start).transpose()? else {
        return Ok(Vec::new());
    };
    let crates = Rc::new(crates);
    let peer = |name| {
        let crates = Rc::clone(&crates);
        Candidate::new(name, move |stream| direct::by_crate(&crates, name, stream))
    };
    Ok(CRATES.map(peer).into())
}

/// Measures and prints.
pub(crate) fn run(arguments: &Arguments) {
    let arguments = &arguments.settled();
    let Arguments { items, alphabet, counters, rounds, .. } = arguments;
    if arguments.attack {
        return attack::run(arguments);
    }
    if arguments.simulated {
        return simulation::simulated(arguments);
    }
    println!(
        "{items} u32, alphabet {alphabet}, {counters} counters, median of {rounds} rounds after one to warm up"
    );
    println!("every bound that a summary gives is checked against exact counts\n");
    if arguments.has(Section::Table) {
        over_skews(arguments).expect("results and figures are written");
    }
    if arguments.has(Section::Isa) {
        sieves::levels(arguments);
    }
    if arguments.has(Section::Cache) {
        sieves::cached(arguments);
    }
    if arguments.has(Section::Kinds) {
        sieves::kinds(arguments);
    }
    if arguments.has(Section::State) {
        budgets::run(arguments).expect("the peers work");
    }
    if arguments.has(Section::Queries) {
        live::run(arguments);
    }
    if arguments.has(Section::Paper) {
        figures::run(arguments).expect("the figures can be written");
    }
    if arguments.only.contains(&Section::Simulation)
        && let Err(error) = simulation::run(arguments)
    {
        println!("not measured, valgrind is not installed or failed: {error}");
    }
}

/// Runs the section [`Section::Table`].
fn over_skews(arguments: &Arguments) -> io::Result<()> {
    let processes =
        Processes::prepare(arguments.peers.python_peers, arguments.datasketches.as_deref())?;
    let path = arguments.results.as_deref();
    let mut results = Results::load(path, arguments)?;
    let peers = peers(arguments)?;
    results.add_peers(peers.iter().map(|peer| peer.name));
    let candidates: Vec<Candidate> = candidates().into_iter().chain(peers).collect();
    for &skew in &arguments.skews {
        let stream = Stream::zipf(arguments.shape(), skew);
        let mut rows = Rows::default();
        rows.measure(&candidates, &stream, 0, arguments.rounds);
        for row in rows.iter() {
            results.add(&row.name, skew, row.cells[0].expect("it was measured"));
        }
        for (name, cell) in processes.measure(&stream, arguments.rounds)? {
            results.add(&name, skew, cell);
            results.add_peers([name.as_str()]);
        }
    }
    results.save(path)?;
    let (skews, rows) = results.rows();
    print(&rows, &results.product_peers, &skews);
    if let Some(folder) = &arguments.figures {
        let plot = plot(&rows, &skews, &results.product_peers, arguments);
        fs::create_dir_all(folder)?;
        let path = folder.join("frequent-items.svg");
        fs::write(&path, plot.to_string())?;
        println!("wrote {}\n", path.display());
    }
    Ok(())
}

fn print(rows: &Rows, product_peers: &[String], skews: &[f64]) {
    rows.print("M items/s", skews, |cell| Some(cell.rate), |rate| format!("{rate:.0}"));
    header("ratios", skews);
    let rates = |name: &str| rows.named(name).map_or_else(Vec::new, table::Row::rates);
    let (sieve, pipeline) = (rates(SIEVE), rates(IN_PIPELINE));
    let best = best_of(rows, product_peers);
    let lines = [
        ("pipeline / sieve", ratios(&pipeline, &sieve)),
        ("pipeline from JSON / sieve", ratios(&rates(FROM_JSON), &sieve)),
        ("partition / pipeline", ratios(&rates(PARTITION), &pipeline)),
        ("sieve / read limit", ratios(&sieve, &rates(READ_LIMIT))),
        ("sieve / best peer", ratios(&sieve, &best)),
        ("sieve / ClickHouse", ratios(&sieve, &rates(CLICKHOUSE))),
    ];
    for (name, values) in lines.iter().filter(|(_, values)| values.iter().any(Option::is_some)) {
        print_row(name, skews.len(), values, |ratio| format!("{ratio:.2}"));
    }
    println!();
    rows.print("top-100 precision", skews, |cell| cell.precision, |share| format!("{share:.2}"));
    let error = |cell: &Cell| cell.relative_error;
    rows.print("relative error of the top 100", skews, error, |error| format!("{error:.1e}"));
    rows.print("bytes of state", skews, state_bytes, whole);
}

/// Fastest of these rows at each skew.
fn best_of(rows: &Rows, names: &[String]) -> Vec<Option<f64>> {
    let rates = names.iter().filter_map(|name| Some(rows.named(name)?.rates()));
    rates
        .reduce(|best, rates| {
            best.iter()
                .zip(rates)
                .map(|(a, b)| [*a, b].into_iter().flatten().reduce(f64::max))
                .collect()
        })
        .unwrap_or_default()
}

fn state_bytes(cell: &Cell) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
    cell.state_bytes.map(|bytes| bytes as f64)
}

fn whole(number: f64) -> String {
    format!("{number:.0}")
}

fn plot(rows: &Rows, skews: &[f64], product_peers: &[String], arguments: &Arguments) -> Plot {
    let subtitle = format!(
        "{} million items over an alphabet of {} million, {} counters, one core",
        arguments.items as f64 / 1e6,
        f64::from(arguments.alphabet) / 1e6,
        arguments.counters
    );
    let points = |name: &str| -> Vec<(f64, f64)> {
        let rates = rows.named(name).map_or_else(Vec::new, table::Row::rates);
        skews.iter().zip(rates).filter_map(|(&skew, rate)| Some((skew, rate?))).collect()
    };
    let mut plot = Plot::new("Counting frequent items", subtitle, Scale::Logarithmic)
        .axes("Zipf exponent", "million items a second")
        .main_line("Trommel, sieve", points(SIEVE))
        .line("Trommel, the paper's filter", points(FILTER));
    for name in product_peers {
        plot = plot.line(name, points(name));
    }
    let fastest = plot.lines();
    plot.dashed("reading the items", fastest, points(READ_LIMIT))
}
