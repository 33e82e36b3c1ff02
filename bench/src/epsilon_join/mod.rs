//! Tables of epsilon joins: on the CPU beside the crate kiddo, and on a GPU, where vectors in
//! pinned memory become exact pairs in pinned memory. The pairs of some vectors are compared with
//! those of a plain loop, and all counts with each other.

mod data;
mod device;
#[cfg(feature = "peers")]
mod kiddo;
mod processor;
mod sample;

use clap::ValueEnum;

use trommel_kernels::cuda::vectors::{Answer, Filter, Method, Policy};
use trommel_kernels::cuda::{CopyTimes, Device, DeviceError};

use self::data::Workload;
use self::device::{Gpu, Way};

/// A table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Table {
    /// On the CPU.
    Cpu,
    /// On a GPU.
    Device,
}

/// Options of `epsilon-join`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Arguments {
    /// Vectors, as SHAPE:LEN:DIMS:EPSILON with the shapes `uniform`, `clusters`, `correlated` and
    /// `topics`.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "uniform:1000000:8:0.1635,clusters:1000000:8:0.0344,\
                         correlated:1000000:8:0.02225,clusters:300000:2:0.0002175,\
                         uniform:10000000:8:0.1226"
    )]
    vectors: Vec<Workload>,
    /// Tables to print.
    #[arg(long, value_delimiter = ',', default_value = "cpu,device")]
    only: Vec<Table>,
    /// Ways to join: `nested`, `directory`, `boxes`, `tiles`, and `float` for boxes without tensor
    /// cores.
    #[arg(long, value_delimiter = ',', default_value = "boxes")]
    ways: Vec<String>,
    /// Leaves of a warp, under boxes: 2 or 4.
    #[arg(long, value_delimiter = ',', default_value = "2,4")]
    leaves: Vec<usize>,
    /// Parts of a join, whose copies and kernels overlap.
    #[arg(long, value_delimiter = ',', default_value = "1,4")]
    parts: Vec<usize>,
    /// Room for pairs.
    #[arg(long, default_value_t = 16_000_000)]
    room: usize,
    /// Vectors whose pairs are checked.
    #[arg(long, default_value_t = 64)]
    samples: usize,
    /// Rounds; the median is shown, on the CPU the fastest.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
}

/// Measures and prints.
pub(crate) fn run(arguments: &Arguments) {
    if arguments.only.contains(&Table::Cpu) {
        for workload in &arguments.vectors {
            processor::run(*workload, arguments.rounds, arguments.samples);
        }
    }
    if !arguments.only.contains(&Table::Device) {
        return;
    }
    let device = match Device::probe(0) {
        Ok(device) => device,
        Err(reason) => return println!("no GPU: {reason}"),
    };
    for workload in &arguments.vectors {
        on_device(&device, *workload, arguments).expect("the device works");
    }
}

fn on_device(
    device: &Device,
    workload: Workload,
    arguments: &Arguments,
) -> Result<(), DeviceError> {
    let gpu = Gpu::new(device, workload)?;
    let copies = CopyTimes::measure(device, 1 << 28, 5)?;
    println!("{workload}");
    let mut known = None;
    for way in ways(device, workload, arguments) {
        let (row, pairs, count) = gpu.measure(way, arguments.room, arguments.rounds)?;
        println!("  {row}, bus {:.3} ms", 1e3 * gpu.bus(&copies, pairs.len()));
        if known.is_none() {
            gpu.check(&pairs, arguments.samples);
        }
        assert_eq!(*known.get_or_insert(count), count, "another number of pairs");
    }
    Ok(())
}

/// All ways that are asked for.
fn ways(device: &Device, workload: Workload, arguments: &Arguments) -> Vec<Way> {
    let mut ways = Vec::new();
    for name in &arguments.ways {
        let usual = Policy::of(device.properties(), workload.len);
        let (method, filter) = match name.as_str() {
            "nested" => (Method::NestedLoop, usual.filter),
            "directory" => (Method::Directory, usual.filter),
            "tiles" => (Method::Tiles, usual.filter),
            "float" => (Method::Boxes, Filter::Float),
            _ => (Method::Boxes, usual.filter),
        };
        let leaves = if name == "boxes" { &arguments.leaves[..] } else { &[2] };
        for &leaves in leaves {
            let policy = Policy { filter, leaves, ..usual };
            let parts = arguments.parts.iter();
            ways.extend(parts.map(|&parts| Way { method, policy, parts, answer: Answer::Pairs }));
        }
    }
    ways
}
