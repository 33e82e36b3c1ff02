//! Tables of epsilon joins: on the CPU beside the crate kiddo and Python packages, of streams, and
//! on a GPU, from vectors in pinned memory to exact pairs in pinned memory. A plain loop checks the
//! pairs of some vectors. All ways have to find the same number of pairs; the pairs of peers are
//! compared one by one.

pub(crate) mod data;
mod device;
mod figure;
mod operator;
mod peers;
mod processor;
mod sample;
mod stream;

use std::io;

use clap::ValueEnum;

use trommel_kernels::cuda::vectors::{Answer, Filter, Method, Policy};
use trommel_kernels::cuda::{CopyTimes, Device, DeviceError};

use self::data::Workload;
use self::device::{Gpu, Way};
use self::figure::Distribution;
use self::peers::Peers;
use crate::runner::{Figures, PythonPeers, Runs, RustPeers, positive};

/// A table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Table {
    /// On the CPU.
    Cpu,
    /// Streams on the CPU.
    Stream,
    /// Memory of whole runs on the CPU; of the first vectors in a fresh process.
    Memory,
    /// On a GPU.
    Device,
    /// Figure 6 of the paper, on the CPU and on a GPU.
    Figure,
    /// The operator on all cores, and on a device.
    Operator,
}

/// Options of `epsilon-join`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Arguments {
    /// Vectors, as SHAPE:LEN:DIMS:EPSILON with the shapes `uniform`, `clusters`, `clusters-COUNT`,
    /// `correlated` and `topics`.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "uniform:1000000:8:0.1635,clusters:1000000:8:0.0344,\
                         correlated:1000000:8:0.02225,clusters:300000:2:0.0002175,\
                         clusters-500:1000000:2:0.00012,topics:100000:384:0.3,\
                         uniform:10000000:8:0.1226"
    )]
    vectors: Vec<Workload>,
    /// Tables to print.
    #[arg(long, value_delimiter = ',', default_value = "cpu,stream,device")]
    only: Vec<Table>,
    /// Device, such as `cuda`, on which the operator joins, too.
    #[arg(long)]
    device: Option<trommel::Device>,
    /// Ways to join: `nested`, `directory`, `boxes`, `tiles`, `float` for boxes without tensor
    /// cores, and `auto` for boxes, or tiles where there are too many dimensions.
    #[arg(long, value_delimiter = ',', default_value = "auto")]
    ways: Vec<String>,
    /// Parts of a join, whose copies and kernels overlap.
    #[arg(long, value_delimiter = ',', value_parser = positive, default_value = "1,4")]
    parts: Vec<usize>,
    /// Room for pairs.
    #[arg(long, default_value_t = 16_000_000)]
    room: usize,
    /// Vectors whose pairs are checked.
    #[arg(long, default_value_t = 64)]
    samples: usize,
    /// Window of a stream, and its distribution.
    #[arg(long, default_value = "uniform:800000:8:0.1635")]
    stream: Workload,
    /// Vectors of a stream after a full window.
    #[arg(long, value_parser = positive, default_value_t = 1 << 19)]
    streamed: usize,
    /// Distributions of the figure, each of which is drawn.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "uniform,clusters,correlated")]
    distributions: Vec<Distribution>,
    /// Numbers of vectors of the figure.
    #[arg(
        long,
        value_delimiter = ',',
        value_parser = positive,
        default_value = "250000,500000,1000000,2000000,4000000,8000000,11800000"
    )]
    sizes: Vec<usize>,
    #[command(flatten)]
    figures: Figures,
    #[command(flatten)]
    python: PythonPeers,
    #[command(flatten)]
    crates: RustPeers,
    /// On the CPU the fastest run is shown.
    #[command(flatten)]
    runs: Runs,
}

/// Leaves of a warp, under boxes.
const LEAVES: [usize; 2] = [2, 4];

/// Measures and prints.
///
/// # Errors
/// If a Python peer fails.
pub(crate) fn run(arguments: &Arguments) -> io::Result<()> {
    let runs = arguments.runs.or(5);
    // Memory first, as long as the process has not taken any for other tables.
    if arguments.only.contains(&Table::Memory) {
        arguments.vectors.iter().for_each(|workload| processor::memory(*workload));
    }
    if arguments.only.contains(&Table::Cpu) {
        let peers = Peers::prepare(arguments.crates, arguments.python)?;
        for workload in &arguments.vectors {
            processor::run(*workload, runs, arguments.samples, &peers)?;
        }
    }
    if arguments.only.contains(&Table::Stream) {
        stream::run(arguments.stream, arguments.streamed);
    }
    if arguments.only.contains(&Table::Operator) {
        for workload in &arguments.vectors {
            operator::run(*workload, arguments.device, runs, arguments.samples);
        }
    }
    let is_for_device = [Table::Device, Table::Figure].map(|table| arguments.only.contains(&table));
    if is_for_device == [false; 2] {
        return Ok(());
    }
    let device = Device::probe(0);
    if let Err(reason) = &device {
        println!("no GPU: {reason}");
    }
    let device = device.ok();
    if let (Some(device), [true, _]) = (&device, is_for_device) {
        for workload in &arguments.vectors {
            on_device(device, *workload, arguments, runs).expect("the device works");
        }
    }
    match is_for_device {
        [_, true] => {
            let Arguments { distributions, sizes, figures, .. } = arguments;
            figure::run(device.as_ref(), distributions, sizes, figures)
        }
        _ => Ok(()),
    }
}

fn on_device(
    device: &Device,
    workload: Workload,
    arguments: &Arguments,
    runs: Runs,
) -> Result<(), DeviceError> {
    let gpu = Gpu::new(device, workload)?;
    let copies = CopyTimes::measure(device, 1 << 28, 5)?;
    println!("{workload}");
    let mut known = None;
    for way in ways(device, workload, arguments) {
        let measured = gpu.measure(way, arguments.room, runs)?;
        let bus = 1e3 * gpu.bus(&copies, measured.pairs.len());
        println!("  {way}: {measured}, bus {bus:.3} ms");
        if known.is_none() {
            gpu.check(&measured.pairs, arguments.samples);
        }
        let count = measured.count;
        assert_eq!(*known.get_or_insert(count), count, "another number of pairs");
    }
    Ok(())
}

/// All ways that are asked for.
fn ways(device: &Device, workload: Workload, arguments: &Arguments) -> Vec<Way> {
    let mut ways = Vec::new();
    for name in &arguments.ways {
        let usual = Policy::of(device.properties(), workload.len);
        let is_boxed = Method::Boxes.takes(workload.dims);
        let (method, filter) = match name.as_str() {
            "nested" => (Method::NestedLoop, usual.filter),
            "directory" => (Method::Directory, usual.filter),
            "tiles" => (Method::Tiles, usual.filter),
            "float" => (Method::Boxes, Filter::Float),
            "auto" if !is_boxed => (Method::Tiles, usual.filter),
            _ => (Method::Boxes, usual.filter),
        };
        let has_leaves = method == Method::Boxes && name != "float";
        let leaves = if has_leaves { &LEAVES[..] } else { &[2] };
        for &leaves in leaves {
            let policy = Policy { filter, leaves, ..usual };
            let parts = arguments.parts.iter();
            ways.extend(parts.map(|&parts| Way { method, policy, parts, answer: Answer::Pairs }));
        }
    }
    ways
}
