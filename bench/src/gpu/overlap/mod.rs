//! Table of the overlap of candidate pairs: every level of the processor on one core, every
//! kernel of a GPU, every answer checked.

mod gpu;
pub(crate) mod workload;

use std::io;

use trommel_kernels::cuda::overlap::Variant;
use trommel_kernels::{Isa, overlap};

use self::gpu::Alone;
use self::workload::Workload;
use crate::runner::plot::{Plot, Scale};
use crate::runner::report::Table;
use crate::runner::turns::{Run, Turns, timed};
use crate::runner::{Figures, Runs};

/// Options of `overlap`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Arguments {
    /// Candidate pairs.
    #[arg(long, default_value_t = 2_000_000)]
    pairs: usize,
    /// Mean sizes of the sets.
    #[arg(long, value_delimiter = ',', default_value = "14,50,120,500")]
    sizes: Vec<usize>,
    /// Candidates per probe.
    #[arg(long, default_value_t = 20)]
    candidates: usize,
    /// Number of chunks in which the pairs are sent to the device.
    #[arg(long, default_value_t = 16)]
    chunks: usize,
    /// Threads of a block, to tune the kernels; by default the policy of each kernel.
    #[arg(long, value_delimiter = ',')]
    threads: Vec<u32>,
    /// Levels of the processor to leave out, such as `scalar`.
    #[arg(long, value_delimiter = ',')]
    without: Vec<String>,
    #[command(flatten)]
    runs: Runs,
    #[command(flatten)]
    figures: Figures,
}

/// Measures and prints.
///
/// # Errors
/// If a figure cannot be written.
pub(crate) fn run(arguments: &Arguments) -> io::Result<()> {
    let runs = arguments.runs.or(5);
    if arguments.figures.folder().is_some() && arguments.threads.is_empty() {
        let needed = "--figures draws the kernels by the threads of a block, which --threads names";
        return Err(io::Error::other(needed));
    }
    let gpu = super::device().and_then(|device| {
        gpu::Gpu::new(&device).inspect_err(|error| println!("GPU failed: {error}\n")).ok()
    });
    for size in &arguments.sizes {
        let workload = Workload::new(*size, arguments.pairs, arguments.candidates);
        let rounds = runs.rounds(5);
        println!("{workload}; GB/s: both sets of each pair; median of {rounds} rounds\n");
        levels(&workload, arguments, runs);
        if let Some(gpu) = &gpu {
            let kernels = gpu.table(&workload, arguments, runs).expect("the device worked before");
            draw(*size, &workload, &kernels, &arguments.figures)?;
        }
    }
    Ok(())
}

/// Draws the kernels by the threads of a block, after Bellas, Gounaris, *Speeding-up the
/// Verification Phase of Set Similarity Joins in the GPGPU paradigm*, 2018, Fig. 15.
fn draw(size: usize, workload: &Workload, kernels: &[Alone], figures: &Figures) -> io::Result<()> {
    let mut threads: Vec<u32> = kernels.iter().map(|alone| alone.threads).collect();
    threads.sort_unstable();
    threads.dedup();
    let subtitle = format!("{workload}; higher is better");
    let mut plot = Plot::new("Kernels by the threads of a block", subtitle, Scale::Logarithmic)
        .axes("threads of a block", "million pairs a second")
        .x_names(threads.iter().map(u32::to_string).collect());
    for kernel in Variant::ALL {
        let rate = |threads: &u32| {
            let is_it = |alone: &&Alone| alone.kernel == kernel && alone.threads == *threads;
            kernels.iter().find(is_it).map(|alone| alone.rate)
        };
        plot = plot.line_by_number(&kernel.to_string(), threads.iter().map(rate));
    }
    plot.save(figures, &format!("overlap-threads-{size}"))
}

fn levels(workload: &Workload, arguments: &Arguments, runs: Runs) {
    let pairs = workload.pairs();
    let mut turns = Turns::<()>::new(runs);
    for isa in Isa::available() {
        if arguments.without.iter().any(|name| name == isa.name()) {
            continue;
        }
        let mut overlaps = vec![0; workload.len()];
        turns.add(format!("{isa}, overlaps"), move || {
            let (time, ()) = timed(|| overlap::verify(isa, pairs, &mut overlaps));
            workload.check(&overlaps);
            Run { time, answer: (), rest: () }
        });
        turns.add(format!("{isa}, count"), move || {
            let (time, count) = timed(|| overlap::count(isa, pairs));
            workload.check_count(count);
            Run { time, answer: (), rest: () }
        });
    }
    let mut table = Table::new("CPU, one core                  | M pairs/s: |   GB/s:");
    for engine in turns.run() {
        let (rate, gigabytes) =
            (workload.rate(engine.median()), workload.gigabytes(engine.median()));
        table.row(format!("{} | {rate:.1} | {gigabytes:.1}", engine.name));
    }
}
