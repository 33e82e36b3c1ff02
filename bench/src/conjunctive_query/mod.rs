//! Conjunctive queries over indexes of text and of synthetic lists, in sections:
//!
//! | section | contents |
//! |---|---|
//! | `counts` | counts on one core and on all, beside the peers roaring, croaring, tantivy and DuckDB |
//! | `paper` | the figures of the paper: batches in two orders, and buckets; with a GPU, too |
//! | `load` | the operator in a pipeline under loads: throughput and latency |
//! | `device` | counts and documents on a GPU by the size of a batch, from host memory to host memory |
//!
//! Every answer is checked: the counts of each way and each peer are compared with those by the
//! processor, and these with a search by hand.

mod gpu;
mod load;
mod paper;
mod processor;
mod python;
mod workload;

use std::fs;
use std::io;
use std::path::PathBuf;

use trommel_kernels::cuda::Device;

use self::gpu::{Bus, Table};
use self::load::Loads;
use self::paper::{OnDevice, Options};
use self::workload::{Input, Shape, Workload, standard_library};
use crate::runner::crates::Crates;
use crate::runner::python::Python;
use crate::runner::{Figures, PythonPeers, Runs, RustPeers};

/// Synthetic indexes if no input is named: of 203 MB and of 256 MB as plain lists, and a small one.
const INDEXES: [&str; 3] =
    ["200000:1000000:51650000", "200000:4194304:64000000", "30000:25000:400000"];

/// Options of `conjunctive-query`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Arguments {
    /// Folder of text, whose paragraphs are the documents. Without this option and `--indexes`,
    /// the documentation of the standard library, if it is there, and synthetic indexes.
    #[arg(long)]
    text: Option<PathBuf>,
    /// Synthetic indexes: terms, documents and postings.
    #[arg(long, value_delimiter = ',')]
    indexes: Vec<Shape>,
    /// Sections to run.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "counts,paper,load,device")]
    only: Vec<Section>,
    /// Queries of 2 to 8 terms over each index.
    #[arg(long, default_value_t = 128_000)]
    queries: usize,
    /// Queries of a batch on a device.
    #[arg(long, value_delimiter = ',', default_value = "1,64,1000,4000,16000,64000")]
    batches: Vec<usize>,
    /// Queries on the processor.
    #[arg(long, default_value_t = 33_337)]
    processor_queries: usize,
    #[command(flatten)]
    python: PythonPeers,
    #[command(flatten)]
    crates: RustPeers,
    #[command(flatten)]
    loads: Loads,
    /// Bytes of a copy that gives the speed of the bus.
    #[arg(long, default_value_t = 256 << 20)]
    copy_bytes: usize,
    #[command(flatten)]
    figures: Figures,
    #[command(flatten)]
    runs: Runs,
}

/// A part of the bench.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Section {
    /// Counts on the processor, beside peers.
    Counts,
    /// Figures of the paper.
    Paper,
    /// The operator under loads.
    Load,
    /// Batches on a GPU.
    Device,
}

/// Measures and prints.
///
/// # Errors
///
/// If a text or Python fails, a device fails, or a figure cannot be written.
pub(crate) fn run(arguments: &Arguments) -> io::Result<()> {
    let device = Device::probe(0).inspect_err(|reason| println!("processor only: {reason}\n")).ok();
    let bus = device.as_ref().map(|device| Bus::measure(device, arguments.copy_bytes));
    let bus = bus.transpose().map_err(io::Error::other)?;
    let device = device.as_ref().zip(bus.as_ref());
    let python = arguments.python.prepare("conjunctive_query")?;
    let crates = arguments.crates.start()?;
    let peers = (python.as_ref(), crates.as_ref());
    for input in arguments.inputs() {
        let workload = Workload::of(input, arguments.queries.max(1))?;
        describe(&workload);
        for section in &arguments.only {
            arguments.section(*section, &workload, device, peers)?;
        }
    }
    Ok(())
}

impl Arguments {
    fn inputs(&self) -> Vec<Input> {
        let synthetic = |shapes: Vec<Shape>| shapes.into_iter().map(Input::Synthetic);
        if self.text.is_some() || !self.indexes.is_empty() {
            let text = self.text.iter().cloned().map(Input::Text);
            return text.chain(synthetic(self.indexes.clone())).collect();
        }
        let shapes = INDEXES.map(|shape| shape.parse().expect("a shape")).to_vec();
        standard_library().into_iter().map(Input::Text).chain(synthetic(shapes)).collect()
    }

    fn section(
        &self,
        section: Section,
        workload: &Workload,
        device: Option<(&Device, &Bus)>,
        (python, crates): (Option<&Python>, Option<&Crates>),
    ) -> io::Result<()> {
        if section == Section::Device && device.is_none() {
            return Ok(());
        }
        println!("{section:?}, load average {}\n", load_average());
        let runs = self.runs.or(5);
        let (rounds, figures) = (runs.rounds(5), &self.figures);
        // As many queries as the paper has; the table of the GPU has more.
        let first: Vec<usize> = (0..workload.queries().min(self.processor_queries)).collect();
        match section {
            Section::Counts => {
                let workload = workload.with_queries(&first);
                let best = processor::table(&workload, runs, crates)?;
                python.map_or(Ok(()), |python| python::table(python, &workload, best))
            }
            Section::Paper => {
                let memory = device.map(|(device, _)| gpu::memory(device, workload));
                let on_device = device.zip(memory.as_ref());
                let on_device = on_device.map(|((device, _), memory)| OnDevice { device, memory });
                let options = Options { on_device, rounds, figures };
                paper::run(&workload.with_queries(&first), &options)
            }
            Section::Load => load::run(&self.loads, workload),
            Section::Device => {
                let Some((device, bus)) = device else { return Ok(()) };
                let table = Table { device, bus, batches: &self.batches, rounds };
                table.print(workload).map_err(io::Error::other)
            }
        }
    }
}

/// Prints the sizes of an index and its queries.
fn describe(workload: &Workload) {
    let (bytes, postings) = (workload.segment.as_bytes().len(), workload.postings());
    let queries = workload.queries();
    println!(
        "{}: {} documents, {} terms, {postings} postings of {:.1} MB as plain ids, {:.1} MB, {:.2} B a posting",
        workload.name,
        workload.documents.len(),
        workload.documents.term_count(),
        4e-6 * postings as f64,
        1e-6 * bytes as f64,
        bytes as f64 / postings.max(1) as f64,
    );
    let [below_1000, below_4000, below_10_000] = paper::shares(workload, [1_000, 3_841, 10_000]);
    println!(
        "{queries} queries of {:.1} terms and {:.1} documents; shortest lists: {below_1000:.1} % below 1,000 documents, \
         {below_4000:.1} % up to 3,840, {below_10_000:.1} % below 10,000\n",
        workload.terms.len() as f64 / queries.max(1) as f64,
        workload.documents(0, queries) as f64 / queries.max(1) as f64,
    );
}

/// The load average of the machine: other programs are part of the noise.
fn load_average() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').take(3).collect::<Vec<&str>>().join(" ")
}
