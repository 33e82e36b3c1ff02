//! Frequent pairs and triples. The table: whole runs of the operator from batches of transactions
//! to rows, in every layout, on one core and on all, beside Python packages. Each answer is
//! checked: the rows of some items against nested loops, number of rows and sum of supports of all
//! runs against each other. Other sections: figures of the paper, kernels by density, costs of
//! steps, streams in windows.

mod costs;
pub(crate) mod data;
mod figures;
mod lists;
mod python;
mod streams;
mod throughput;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_schema::SchemaRef;
use trommel::Device;
use trommel::frequent_pairs::{Layout, Support};
use trommel::placement::available_cores;
use trommel::unstable::cuda::Device as Gpu;
use trommel::{Collect, FrequentPairs, Graph, Memory, RunOptions};

use self::data::Case;
use self::figures::Paper;

/// Options of `frequent-pairs`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Arguments {
    /// Sections to run.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "table")]
    only: Vec<Section>,
    /// Folder for the figures of the paper.
    #[arg(long)]
    figures: Option<PathBuf>,
    /// Files in the FIMI format with a least support, such as `retail.dat:10`.
    #[arg(long, value_delimiter = ',')]
    files: Vec<String>,
    /// Layouts beside `auto`, such as `bitmap,sliced`.
    #[arg(long, value_delimiter = ',')]
    layouts: Vec<String>,
    /// Items of a row of the table: 2 or 3.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(2..=3))]
    itemset: u8,
    /// Device, such as `cuda`, that counts in the layouts, too; in those beside `auto` it alone.
    #[arg(long)]
    device: Option<Device>,
    /// Leave out the generated transactions.
    #[arg(long)]
    files_only: bool,
    /// Generated transactions of a hundredth of the size, to try the command.
    #[arg(long)]
    quick: bool,
    /// Measure Python packages, too: pyfim, scipy and mlxtend.
    #[arg(long)]
    python_peers: bool,
    /// Rounds; the median is shown.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
}

/// A part of the bench.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Section {
    /// The operator beside its peers.
    Table,
    /// Figures of the paper by items.
    Items,
    /// Figures of the paper by density.
    Density,
    /// Figure of the paper by cores.
    Cores,
    /// Batmaps, bitmaps and lists by density, without the operator.
    Throughput,
    /// Costs of steps, the constants of the model of `auto`.
    Costs,
    /// Generated streams in windows: time and memory.
    Streams,
}

/// Number of rows, and the sum of their supports.
type Totals = (u64, u64);

/// Cores and device of a run.
#[derive(Clone, Copy)]
enum Place {
    /// The first ones, that many.
    Cores(usize),
    AllCores,
    /// All cores, each with a run of its own over the same transactions: what more cores can give
    /// on this machine.
    EachCore,
    /// All cores and the device.
    Device(Device),
}

impl Place {
    fn device(self) -> Device {
        match self {
            Self::Cores(_) | Self::AllCores | Self::EachCore => Device::Cpu,
            Self::Device(device) => device,
        }
    }
}

/// Layouts that a GPU has.
const ON_DEVICE: [Layout; 5] =
    [Layout::Auto, Layout::Tensor, Layout::Bitmap, Layout::Batmap, Layout::Sparse];

/// Runs the bench.
///
/// # Errors
/// If a file or a layout is invalid, a figure cannot be written, or Python fails.
pub(crate) fn run(arguments: &Arguments) -> io::Result<()> {
    let Arguments { figures, rounds, quick, .. } = arguments;
    let paper = Paper::new(figures.as_deref(), *rounds, *quick);
    for section in &arguments.only {
        match section {
            Section::Table => table(arguments)?,
            Section::Items => paper.by_items()?,
            Section::Density => paper.by_density()?,
            Section::Cores => paper.by_cores()?,
            Section::Throughput => throughput::run(arguments.rounds),
            Section::Costs => costs::run(arguments.rounds),
            Section::Streams => {
                let part = if arguments.quick { 1000 } else { 1 };
                let transactions = [10_000_000, 100_000_000].map(|all| all / part);
                streams::run(&transactions, 1_000_000 / part);
            }
        }
    }
    Ok(())
}

fn table(arguments: &Arguments) -> io::Result<()> {
    let mut layouts = vec![Layout::Auto];
    for name in &arguments.layouts {
        let layout = Layout::ALL.into_iter().find(|layout| layout.name() == name);
        layouts.push(layout.ok_or_else(|| {
            let names = Layout::ALL.map(Layout::name).join(", ");
            io::Error::other(format!("unknown layout {name:?}; allowed are {names}"))
        })?);
    }
    // Held open, so that the context of a GPU is made once, in no measured time.
    let _context = arguments.device.map(open).transpose()?;
    let python = arguments.python_peers.then(python::prepare).transpose()?;
    let itemset = usize::from(arguments.itemset);
    let rows = if itemset == 2 { "pairs" } else { "triples" };
    println!("Seconds from batches of transactions to rows of {rows}; medians.\n");
    println!("| transactions | least support | {rows} | sum of supports | run | seconds |");
    println!("|---|---:|---:|---:|---|---:|");
    for case in cases(arguments)? {
        let totals = if itemset == 2 { check::<2>(&case) } else { check::<3>(&case) };
        let show = |name: &str, seconds: &str| {
            let Case { name: data, least, .. } = &case;
            let (rows, sum) = totals;
            println!("| {data} | {least} | {rows} | {sum} | {name} | {seconds} |");
        };
        for &layout in &layouts {
            for (place, on) in places(layout, arguments.device) {
                let run = Run { itemset, layout, place };
                let time = measure(&case, run, totals, arguments.rounds);
                let name = format!("trommel, `{}`, {on}", layout.name());
                show(&name, &format!("{:.4}", time.as_secs_f64()));
            }
        }
        if let Some(python) = &python {
            for peer in python::measure(python, &case, itemset)? {
                let (name, seconds) = peer.shown(totals);
                show(&name, &seconds);
            }
        }
    }
    Ok(())
}

/// Places where a layout is measured, and their names.
fn places(layout: Layout, device: Option<Device>) -> Vec<(Place, String)> {
    let mut places = Vec::new();
    if layout == Layout::Auto || device.is_none() {
        places.push((Place::Cores(1), "one core".to_owned()));
        places.push((Place::AllCores, "all cores".to_owned()));
        places.push((Place::EachCore, "a run on each core".to_owned()));
    }
    if let Some(device) = device.filter(|_| ON_DEVICE.contains(&layout)) {
        places.push((Place::Device(device), format!("device {device}")));
    }
    places
}

/// Opens a GPU.
fn open(device: Device) -> io::Result<Option<Gpu>> {
    let ordinal = match device {
        Device::Cpu => return Ok(None),
        Device::Cuda(ordinal) => ordinal,
        Device::Auto => 0,
    };
    Gpu::probe(ordinal).map(Some).map_err(io::Error::other)
}

fn cases(arguments: &Arguments) -> io::Result<Vec<Case>> {
    let mut cases = Vec::new();
    for file in &arguments.files {
        let (path, least) = file.rsplit_once(':').unwrap_or((file, ""));
        let least = least.parse().ok().filter(|&least| least > 0).ok_or_else(|| {
            io::Error::other(format!("invalid file {file:?}: expected PATH:SUPPORT"))
        })?;
        cases.push(Case::read(path, least)?);
    }
    if !arguments.files_only {
        let part = if arguments.quick { 100 } else { 1 };
        // The instance of the paper's figure 9, and one of many items.
        for (items, density, least) in [(4_000, 0.05, 150_u32), (64_000, 0.01, 10)] {
            let (elements, least) = (10_000_000 / part, least.div_ceil(part));
            cases.push(Case::generate(items, density, elements, least));
        }
    }
    Ok(cases)
}

/// Parameters of a run.
#[derive(Clone, Copy)]
struct Run {
    /// Items of a row.
    itemset: usize,
    layout: Layout,
    place: Place,
}

/// The operator between batches in memory and a sink, on the given cores and device.
fn mine(
    (schema, batches): (SchemaRef, Vec<RecordBatch>),
    least: u32,
    Run { itemset, layout, place }: Run,
) -> (Duration, Vec<RecordBatch>) {
    let mut graph = Graph::new();
    let available = available_cores();
    // Named cores are the only ones; one core has one thread and one kernel.
    let cores: Vec<&[usize]> = match place {
        Place::Cores(count) => vec![&available[..count]],
        Place::EachCore => available.chunks(1).collect(),
        Place::AllCores | Place::Device(_) => vec![&[]],
    };
    let mut sinks = Vec::new();
    for (run, cores) in cores.into_iter().enumerate() {
        let name = |stage: &str| format!("{stage}{run}");
        let transactions = Memory::new(SchemaRef::clone(&schema), batches.clone());
        let source = graph.add(name("baskets"), transactions);
        let spec = FrequentPairs::new(Support::Count(least)).layout(layout).memory_max(1 << 36);
        let spec = spec.itemset(itemset).device(place.device());
        let pairs = graph.add_after(source, name("pairs"), spec);
        let (sink, rows) = Collect::new();
        let sink = graph.add_after(pairs, name("rows"), sink);
        if let Some(&first) = cores.first() {
            graph.cores(source, [first]);
            graph.cores(pairs, cores);
            graph.cores(sink, [first]);
        }
        sinks.push(rows);
    }
    let topology = graph.build().expect("the stages fit");
    let start = Instant::now();
    topology.run(RunOptions::new()).expect("the transactions are valid");
    let time = start.elapsed();
    let mut rows = sinks.into_iter().map(|rows| rows.batches());
    let first = rows.next().expect("there is a run");
    assert!(rows.all(|rows| totals(&rows) == totals(&first)), "two runs differ");
    (time, first)
}

/// A column of numbers.
fn numbers<'a>(rows: &'a RecordBatch, name: &str) -> &'a [u32] {
    rows.column_by_name(name).expect("a column of results").as_primitive::<UInt32Type>().values()
}

fn totals(rows: &[RecordBatch]) -> Totals {
    rows.iter().fold((0, 0), |(count, sum), rows| {
        let supports = numbers(rows, "support").iter().map(|&support| u64::from(support));
        (count + rows.num_rows() as u64, sum + supports.sum::<u64>())
    })
}

/// Compares the pairs or triples of some items with nested loops; returns the totals.
///
/// # Panics
/// If they differ.
fn check<const N: usize>(case: &Case) -> Totals {
    let sample: BTreeSet<u32> = case.sample();
    let run = Run { itemset: N, layout: Layout::Auto, place: Place::AllCores };
    let (_, rows) = mine(case.batches(), case.least, run);
    let mut found = BTreeMap::new();
    for rows in &rows {
        let columns: [&[u32]; N] =
            std::array::from_fn(|at| numbers(rows, ["left", "right", "third"][at]));
        let supports = numbers(rows, "support");
        for row in 0..rows.num_rows() {
            let items = columns.map(|column| column[row]);
            if items.iter().any(|item| sample.contains(item)) {
                let known = found.insert(items, supports[row]);
                assert!(known.is_none(), "{items:?} comes twice");
            }
        }
    }
    assert!(found == case.by_hand(&sample), "{}: wrong supports", case.name);
    totals(&rows)
}

/// Median time of some runs after one to warm up.
///
/// # Panics
/// If an answer is wrong.
fn measure(case: &Case, run: Run, expected: Totals, rounds: usize) -> Duration {
    let batches = case.batches();
    mine(batches.clone(), case.least, run);
    measure_warm(case, &batches, run, expected, rounds)
}

/// Median time of some runs over the `batches` of a case.
///
/// # Panics
/// If an answer is wrong.
fn measure_warm(
    case: &Case,
    batches: &(SchemaRef, Vec<RecordBatch>),
    run: Run,
    expected: Totals,
    rounds: usize,
) -> Duration {
    let time = |_| {
        let (time, rows) = mine(batches.clone(), case.least, run);
        let layout = run.layout;
        assert_eq!(totals(&rows), expected, "{}: {layout:?} gives another answer", case.name);
        time
    };
    let mut times: Vec<Duration> = (0..rounds.max(1)).map(time).collect();
    times.sort_unstable();
    times[times.len() / 2]
}
