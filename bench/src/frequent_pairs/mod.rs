//! Frequent pairs and triples. The table: whole runs of the operator from batches of transactions
//! to rows, in every layout, on one core and on all, beside Python packages. Each answer is
//! checked: the rows of some items against nested loops, number of rows and sum of supports of all
//! runs against each other. Other sections: figures of the paper, kernels by density, costs of
//! steps, streams in windows.

mod costs;
pub(crate) mod data;
mod figures;
mod lists;
mod operator;
mod python;
mod streams;
mod throughput;

use std::io;

use trommel::Device;
use trommel::frequent_pairs::Layout;
use trommel::unstable::cuda::Device as Gpu;

use self::data::Case;
use self::figures::Paper;
use self::operator::{Engine, Place, check};
use crate::runner::report::Table;
use crate::runner::turns::Turns;
use crate::runner::{Figures, PythonPeers, Runs};

/// Options of `frequent-pairs`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Arguments {
    /// Sections to run.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "table")]
    only: Vec<Section>,
    /// Files in the FIMI format with a least support, such as `retail.dat:10`.
    #[arg(long, value_delimiter = ',')]
    files: Vec<String>,
    /// Leave out the generated transactions.
    #[arg(long)]
    files_only: bool,
    /// Layouts beside `auto`, such as `bitmap,sliced`.
    #[arg(long, value_delimiter = ',', value_parser = layout)]
    layouts: Vec<Layout>,
    /// Items of a row of the table: 2 or 3.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(2..=3))]
    itemset: u8,
    /// Device, such as `cuda`, that counts in the layouts, too; in those beside `auto` it alone.
    #[arg(long)]
    device: Option<Device>,
    /// Generated transactions of a hundredth of the size, to try the command.
    #[arg(long, visible_alias = "test")]
    quick: bool,
    #[command(flatten)]
    runs: Runs,
    #[command(flatten)]
    figures: Figures,
    /// The packages are pyfim, scipy and mlxtend.
    #[command(flatten)]
    peers: PythonPeers,
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

fn layout(name: &str) -> Result<Layout, String> {
    let found = Layout::ALL.into_iter().find(|layout| layout.name() == name);
    found.ok_or_else(|| {
        let names = Layout::ALL.map(Layout::name).join(", ");
        format!("unknown layout {name:?}; allowed are {names}")
    })
}

/// Layouts that a GPU has.
const ON_DEVICE: [Layout; 5] =
    [Layout::Auto, Layout::Tensor, Layout::Bitmap, Layout::Batmap, Layout::Sparse];

/// Runs the bench.
///
/// # Errors
/// If a file is invalid, a figure cannot be written, or Python fails.
pub(crate) fn run(arguments: &Arguments) -> io::Result<()> {
    let runs = arguments.runs.or(5);
    let paper = Paper::new(&arguments.figures, runs, arguments.quick);
    for section in &arguments.only {
        match section {
            Section::Table => table(arguments, runs)?,
            Section::Items => paper.by_items()?,
            Section::Density => paper.by_density()?,
            Section::Cores => paper.by_cores()?,
            Section::Throughput => throughput::run(runs),
            Section::Costs => costs::run(runs),
            Section::Streams => {
                let part = if arguments.quick { 1000 } else { 1 };
                let transactions = [10_000_000, 100_000_000].map(|all| all / part);
                streams::run(&transactions, 1_000_000 / part);
            }
        }
    }
    Ok(())
}

fn table(arguments: &Arguments, runs: Runs) -> io::Result<()> {
    // Held open, so that the context of a GPU is made once, in no measured time.
    let _context = arguments.device.map(open).transpose()?;
    let python = arguments.peers.prepare("frequent_pairs")?;
    let itemset = usize::from(arguments.itemset);
    let rows = if itemset == 2 { "pairs" } else { "triples" };
    println!("Seconds from batches of transactions to rows of {rows}; medians.\n");
    let head =
        format!("transactions | least support: | {rows}: | sum of supports: | run | seconds:");
    let mut table = Table::new(&head);
    for case in cases(arguments)? {
        let totals = if itemset == 2 { check::<2>(&case) } else { check::<3>(&case) };
        let shown = format!("{} | {} | {} | {}", case.name, case.least, totals.0, totals.1);
        let batches = case.batches();
        let mut turns = Turns::new(runs).expect(totals);
        for layout in [Layout::Auto].into_iter().chain(arguments.layouts.iter().copied()) {
            for (place, on) in places(layout, arguments.device) {
                let engine = Engine { itemset, layout, place, least: case.least };
                let name = format!("trommel, `{}`, {on}", layout.name());
                let batches = &batches;
                turns.add(name, move || engine.run(batches));
            }
        }
        for engine in turns.run() {
            table.row(format!("{shown} | {} | {:.4}", engine.name, engine.seconds()));
        }
        if let Some(python) = &python {
            for peer in python::measure(python, &case, itemset)? {
                let (name, seconds) = peer.shown(totals);
                table.row(format!("{shown} | {name} | {seconds}"));
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
        // The primitives are measured on one device.
        Device::Auto | Device::CudaAll | Device::CudaList(_) => 0,
    };
    Gpu::probe(ordinal).map(Some).map_err(io::Error::other)
}

fn cases(arguments: &Arguments) -> io::Result<Vec<Case>> {
    let files = arguments.files.iter().map(|file| Case::named(file));
    let mut cases = files.collect::<io::Result<Vec<Case>>>()?;
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
