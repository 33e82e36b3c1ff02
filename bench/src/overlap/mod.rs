//! Table of the overlap of candidate pairs: every level of the processor on one core, every
//! kernel of a GPU, every answer checked.

mod gpu;
pub(crate) mod workload;

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::runner::plot::{Plot, Scale};
use trommel_kernels::cuda::Device;
use trommel_kernels::cuda::overlap::Variant;
use trommel_kernels::{Isa, overlap};

use self::gpu::Alone;
use self::workload::Workload;

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
    /// Chunks in flight at once.
    #[arg(long, default_value_t = 3)]
    slots: usize,
    /// Threads of a block, to tune the kernels; by default the policy of each kernel.
    #[arg(long, value_delimiter = ',')]
    threads: Vec<u32>,
    /// Levels of the processor to leave out, such as `scalar`.
    #[arg(long, value_delimiter = ',')]
    without: Vec<String>,
    /// Rounds; the median is shown.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Folder for figures of the kernels by the threads of a block.
    #[arg(long, requires = "threads")]
    figures: Option<PathBuf>,
}

/// Measures and prints.
pub(crate) fn run(arguments: &Arguments) {
    let device = Device::probe(0);
    let gpu = match &device {
        Ok(device) => match gpu::Gpu::new(device) {
            Ok(gpu) => Some(gpu),
            Err(error) => {
                println!("GPU failed: {error}\n");
                None
            }
        },
        Err(reason) => {
            println!("no GPU: {reason}\n");
            None
        }
    };
    for size in &arguments.sizes {
        let workload = Workload::new(*size, arguments.pairs, arguments.candidates);
        println!(
            "{workload}; GB/s: both sets of each pair; median of {} rounds\n",
            arguments.rounds
        );
        println!("| {:<30} | M pairs/s |   GB/s |", "CPU, one core");
        println!("|:{:-<30}-|----------:|-------:|", "");
        levels(&workload, arguments);
        println!();
        if let Some(gpu) = &gpu {
            let kernels = gpu.table(&workload, arguments).expect("the device worked before");
            if let Some(folder) = &arguments.figures {
                draw(*size, &workload, &kernels, folder).expect("the figures can be written");
            }
        }
    }
}

/// Draws the kernels by the threads of a block, after Bellas, Gounaris, *Speeding-up the
/// Verification Phase of Set Similarity Joins in the GPGPU paradigm*, 2018, Fig. 15.
fn draw(size: usize, workload: &Workload, kernels: &[Alone], folder: &Path) -> io::Result<()> {
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
        let points = (0_u32..).map(f64::from).zip(threads.iter().map(rate));
        let points = points.filter_map(|(x, y)| Some((x, y?))).collect();
        plot = plot.line(&kernel.to_string(), points);
    }
    println!("wrote {}\n", plot.write(folder, &format!("overlap-threads-{size}"))?.display());
    Ok(())
}

fn levels(workload: &Workload, arguments: &Arguments) {
    let mut overlaps = vec![0; workload.len()];
    let pairs = workload.pairs();
    for isa in Isa::available() {
        if arguments.without.iter().any(|name| name == isa.name()) {
            continue;
        }
        let time = median(arguments.rounds, || {
            let start = Instant::now();
            overlap::verify(isa, pairs, &mut overlaps);
            let time = start.elapsed();
            workload.check(&overlaps);
            time
        });
        line(&format!("{isa}, overlaps"), workload, time);
        let time = median(arguments.rounds, || {
            let start = Instant::now();
            let count = overlap::count(isa, pairs);
            let time = start.elapsed();
            workload.check_count(count);
            time
        });
        line(&format!("{isa}, count"), workload, time);
    }
}

fn line(name: &str, workload: &Workload, time: Duration) {
    println!("| {name:<30} | {:>9.1} | {:>6.1} |", workload.rate(time), workload.gigabytes(time));
}

/// Median of `rounds` results of `run`, after one that is not counted.
fn median(rounds: usize, mut run: impl FnMut() -> Duration) -> Duration {
    run();
    let mut times: Vec<Duration> = (0..rounds.max(1)).map(|_| run()).collect();
    times.sort_unstable();
    times[times.len() / 2]
}
