//! The kernels of all layouts by the density of a matrix.

use std::time::Duration;

use trommel_kernels::cuda::supports::{Policy, Units};
use trommel_kernels::cuda::{Device, DeviceError, Memory};

use super::Arguments;
use super::layouts::{by_batmaps, by_counters, kernel};
use super::matrix::{Matrix, Workload};
use super::rows::Gpu;
use crate::runner::Runs;
use crate::runner::plot::{Plot, Scale};
use crate::runner::report::{Table, cells, or_empty, right};

const ITEMS: u32 = 4096;
const TRANSACTIONS: u32 = 1_000_000;

/// Densities up to which the processor makes batmaps and cuts transactions in a reasonable time.
const SPARSE_PERCENT_MAX: f64 = 3.0;

/// Measures all layouts, prints a table and draws it.
pub(super) fn run(device: &Device, arguments: &Arguments, runs: Runs) -> Result<(), DeviceError> {
    let densities = &arguments.densities;
    let layouts = Units::ALL.iter().map(ToString::to_string);
    let names: Vec<String> = layouts.chain(["batmaps", "counters"].map(str::to_owned)).collect();
    // Milliseconds of each layout, by density.
    let mut lines: Vec<Vec<Option<f64>>> = vec![Vec::new(); names.len()];
    for &percent in densities {
        let workload = Workload::generate(Matrix::of_density(ITEMS, TRANSACTIONS, percent));
        println!("{}: {} frequent pairs", workload.matrix, workload.answer.pairs);
        let times = measure(device, &workload, arguments, runs)?;
        for (line, time) in lines.iter_mut().zip(times) {
            line.push(time.map(|time| 1e3 * time.as_secs_f64()));
        }
    }
    println!();
    let heads = densities.iter().map(|percent| format!("{percent} %"));
    let mut table = Table::new(&format!("kernel, ms    | {}", right(heads)));
    let subtitle = format!("{ITEMS} items x {TRANSACTIONS} transactions, kernel alone");
    let mut plot = Plot::new("Frequent pairs on a GPU by density", subtitle, Scale::Logarithmic)
        .axes("density, %", "milliseconds")
        .x_names(densities.iter().map(ToString::to_string).collect());
    for (name, line) in names.iter().zip(lines) {
        let times = line.iter().map(|time| or_empty(*time, |time| format!("{time:.3}")));
        table.row(format!("{name} | {}", cells(times)));
        plot = plot.line_by_number(name, line);
    }
    drop(table);
    plot.save(&arguments.figures, "supports-density").expect("the figure can be written");
    Ok(())
}

/// The time of each layout, in the order of the lines.
fn measure(
    device: &Device,
    workload: &Workload,
    arguments: &Arguments,
    runs: Runs,
) -> Result<Vec<Option<Duration>>, DeviceError> {
    let budget = device.memory_bytes()?.0 / 2;
    let memory = Memory::new(device, budget, budget);
    let mut gpu = Gpu::new(&memory, workload)?;
    let mut slot = Some(gpu.slot(&memory)?);
    let mut times = Vec::new();
    for &units in Units::ALL {
        let is_available = units.are_available(device.properties());
        times
            .push(is_available.then(|| {
                kernel(runs, &mut slot, |slot| Ok(gpu.round(slot, Policy::of(units))?.0))
            }));
    }
    drop((gpu, slot));
    let is_sparse = workload.matrix.density <= SPARSE_PERCENT_MAX / 100.0;
    let sparse = [
        (is_sparse && !arguments.without_batmaps).then(|| by_batmaps(&memory, workload, runs)),
        (is_sparse && !arguments.without_counters).then(|| by_counters(&memory, workload, runs)),
    ];
    for measured in sparse {
        let measured = measured.transpose()?;
        if let Some(measured) = &measured {
            println!("  {}", measured.about);
        }
        times.push(measured.map(|measured| measured.kernel));
    }
    Ok(times)
}
