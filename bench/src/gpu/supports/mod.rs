//! Table of the supports of all pairs of items on a GPU: tid lists in pinned memory become frequent
//! pairs in pinned memory. Every answer is checked against sliced columns on the processor.

mod densities;
mod layouts;
mod matrix;
mod rows;

use std::time::Duration;

use trommel_kernels::cuda::supports::{Policy, TILE, Units};
use trommel_kernels::cuda::{CopyTimes, Device, DeviceError, Memory};

use crate::frequent_pairs::data::Case;

use self::layouts::{by_batmaps, by_counters};
use self::matrix::{Matrix, Workload};
use self::rows::Gpu;
use crate::runner::report::Table;
use crate::runner::turns::{Run, Turns, median};
use crate::runner::{Figures, Runs};

/// Options of `supports`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Arguments {
    /// Random matrices: items, transactions, density and least support.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "4000:50000:0.05:150,4000:1000000:0.05:2600,64000:15625:0.01:10"
    )]
    matrices: Vec<Matrix>,
    /// Files in the FIMI format with a least support, such as `retail.dat:10`, in place of the
    /// matrices.
    #[arg(long, value_delimiter = ',')]
    files: Vec<String>,
    /// Leaves out batmaps, which the processor makes.
    #[arg(long)]
    without_batmaps: bool,
    /// Leaves out counters, whose transactions the processor cuts.
    #[arg(long)]
    without_counters: bool,
    /// Kernels of all layouts by density in percent, over 4,096 items and 1 M transactions, in
    /// place of the matrices.
    #[arg(long, value_delimiter = ',')]
    densities: Vec<f64>,
    #[command(flatten)]
    figures: Figures,
    #[command(flatten)]
    runs: Runs,
}

/// Measures and prints.
pub(crate) fn run(arguments: &Arguments) {
    let (device, runs) = (super::device(), arguments.runs.or(7));
    if !arguments.densities.is_empty() {
        let device = device.expect("densities are measured on a device");
        return densities::run(&device, arguments, runs).expect("the device works");
    }
    for workload in workloads(arguments) {
        println!(
            "{}: {} tids, {} frequent pairs; all cores take {:.3} s; median of {} rounds\n",
            workload.matrix,
            workload.tids.len(),
            workload.answer.pairs,
            workload.time.as_secs_f64(),
            runs.rounds(7)
        );
        if let Some(device) = &device {
            on_device(device, &workload, arguments, runs).expect("the device works");
        }
    }
}

/// The files, or the matrices, one after the other.
fn workloads(arguments: &Arguments) -> Box<dyn Iterator<Item = Workload> + '_> {
    if arguments.files.is_empty() {
        return Box::new(arguments.matrices.iter().map(|&matrix| Workload::generate(matrix)));
    }
    Box::new(arguments.files.iter().map(|file| {
        Workload::of(&Case::named(file).expect("a file in the FIMI format, with a least support"))
    }))
}

fn on_device(
    device: &Device,
    workload: &Workload,
    arguments: &Arguments,
    runs: Runs,
) -> Result<(), DeviceError> {
    let budget = device.memory_bytes()?.0 / 2;
    let memory = Memory::new(device, budget, budget);
    let copies = CopyTimes::measure(device, budget.min(1 << 28), 5)?;
    let mut gpu = Gpu::new(&memory, workload)?;
    let mut held = Some((gpu.slot(&memory)?, gpu.slots(&memory)?));
    let rates = [copies.host_to_device, copies.device_to_host];
    let bus: f64 = gpu
        .bytes()
        .into_iter()
        .zip(rates)
        .map(|(bytes, time)| seconds(bytes, copies.bytes, time))
        .sum();
    let products = products(&gpu);
    let mut table = Table::new(
        "GPU           | rows ms: | kernel ms: | T bit products/s: | whole way ms: | bus ms: | bus share:",
    );
    for &units in Units::ALL {
        if !units.are_available(device.properties()) {
            continue;
        }
        let mut turns = Turns::<(), rows::Round>::new(runs);
        turns.add(units.to_string(), || {
            let (slot, slots) = held.take().expect("the round before has given them back");
            let alone = gpu.round(slot, Policy::of(units));
            let (slot, round) = alone.expect("the device works");
            let whole = gpu.whole_round(slots, Policy::of(units));
            let (slots, whole) = whole.expect("the device works");
            held = Some((slot, slots));
            Run { time: whole, answer: (), rest: round }
        });
        let engine = turns.run().remove(0);
        let middle = |time: fn(&rows::Round) -> Duration| {
            median(engine.all().map(time).collect()).as_secs_f64()
        };
        let (kernel, whole) = (middle(|round| round.kernel), engine.seconds());
        table.row(format!(
            "{} | {:.3} | {:.3} | {:.0} | {:.3} | {:.3} | {:.0}%",
            engine.name,
            1e3 * middle(|round| round.rows),
            1e3 * kernel,
            products / kernel / 1e12,
            1e3 * whole,
            1e3 * bus,
            100.0 * bus / whole
        ));
    }
    drop(table);
    if !arguments.without_batmaps {
        println!("{}\n", by_batmaps(&memory, workload, runs)?.about);
    }
    if !arguments.without_counters {
        println!("{}\n", by_counters(&memory, workload, runs)?.about);
    }
    Ok(())
}

/// Products of bits of all tiles.
fn products(gpu: &Gpu<'_>) -> f64 {
    let tile = f64::from(TILE * TILE) * f64::from(gpu.workload.matrix.transactions);
    f64::from(u32::try_from(gpu.tiles.len()).expect("tiles are numbered by 32 bits")) * tile
}

/// Seconds of `bytes` at the rate of a copy.
fn seconds(bytes: usize, copied: usize, time: Duration) -> f64 {
    bytes as f64 / copied.max(1) as f64 * time.as_secs_f64()
}
