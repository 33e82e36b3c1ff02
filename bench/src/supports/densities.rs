//! The kernels of all layouts by the density of a matrix.

use std::time::Duration;

use crate::runner::plot::{Plot, Scale};
use trommel_kernels::cuda::supports::{Policy, Units};
use trommel_kernels::cuda::{Device, DeviceError, Memory};

use super::Arguments;
use super::layouts::{by_batmaps, by_counters, middle};
use super::matrix::{Matrix, Workload};
use super::rows::Gpu;

const ITEMS: u32 = 4096;
const TRANSACTIONS: u32 = 1_000_000;

/// Densities up to which the processor makes batmaps and cuts transactions in a reasonable time.
const SPARSE_PERCENT_MAX: f64 = 3.0;

/// A layout with the kernel's times by density.
struct Line {
    name: String,
    times: Vec<(f64, Duration)>,
}

/// Measures all layouts, prints a table and draws it.
pub(super) fn run(device: &Device, arguments: &Arguments) -> Result<(), DeviceError> {
    let layouts = Units::ALL.iter().map(ToString::to_string);
    let names = layouts.chain(["batmaps", "counters"].map(str::to_owned));
    let mut lines: Vec<Line> = names.map(|name| Line { name, times: Vec::new() }).collect();
    for &percent in &arguments.densities {
        let workload = Workload::generate(Matrix::of_density(ITEMS, TRANSACTIONS, percent));
        println!("{}: {} frequent pairs", workload.matrix, workload.answer.pairs);
        for (line, time) in lines.iter_mut().zip(measure(device, &workload, arguments)?) {
            line.times.extend(time.map(|time| (percent, time)));
        }
    }
    print(&arguments.densities, &lines);
    if let Some(folder) = &arguments.figures {
        let title = "Frequent pairs on a GPU by density";
        let subtitle = format!("{ITEMS} items x {TRANSACTIONS} transactions, kernel alone");
        let mut plot = Plot::new(title, subtitle, Scale::Logarithmic)
            .axes("density, %", "milliseconds")
            .x_names(arguments.densities.iter().map(ToString::to_string).collect());
        for line in lines.iter().filter(|line| !line.times.is_empty()) {
            plot = plot.line(&line.name, points(&arguments.densities, line));
        }
        plot.write(folder, "supports-density").expect("the figure can be written");
    }
    Ok(())
}

/// The time of each layout, in the order of the lines.
fn measure(
    device: &Device,
    workload: &Workload,
    arguments: &Arguments,
) -> Result<Vec<Option<Duration>>, DeviceError> {
    let budget = device.memory_bytes()?.0 / 2;
    let memory = Memory::new(device, budget, budget);
    let mut gpu = Gpu::new(&memory, workload)?;
    let mut slot = gpu.slot(&memory)?;
    let mut times = Vec::new();
    for &units in Units::ALL {
        if !units.are_available(device.properties()) {
            times.push(None);
            continue;
        }
        let mut rounds = Vec::new();
        for _ in 0..=arguments.rounds.max(1) {
            let round;
            (slot, round) = gpu.round(slot, Policy::of(units))?;
            rounds.push(round.kernel);
        }
        times.push(Some(middle(rounds)));
    }
    drop((gpu, slot));
    let is_sparse = workload.matrix.density <= SPARSE_PERCENT_MAX / 100.0;
    let sparse = [
        (is_sparse && !arguments.without_batmaps)
            .then(|| by_batmaps(&memory, workload, arguments.rounds)),
        (is_sparse && !arguments.without_counters)
            .then(|| by_counters(&memory, workload, arguments.rounds)),
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

fn time_of(line: &Line, percent: f64) -> Option<Duration> {
    let found = line.times.iter().find(|(of, _)| of.total_cmp(&percent).is_eq());
    found.map(|(_, time)| *time)
}

fn print(densities: &[f64], lines: &[Line]) {
    let heads: Vec<String> = densities.iter().map(|percent| format!("{percent:>8} %")).collect();
    println!("\n| kernel, ms    | {} |", heads.join(" | "));
    println!("|:--------------|{}", "-----------:|".repeat(densities.len()));
    for line in lines {
        let times = densities.iter().map(|percent| match time_of(line, *percent) {
            Some(time) => format!("{:>10.3}", 1e3 * time.as_secs_f64()),
            None => format!("{:>10}", ""),
        });
        println!("| {:<13} | {} |", line.name, times.collect::<Vec<_>>().join(" | "));
    }
}

/// Points of a line at 0, 1, ..., the numbers of the densities.
fn points(densities: &[f64], line: &Line) -> Vec<(f64, f64)> {
    let points = (0_u32..).zip(densities).filter_map(|(at, percent)| {
        let time = time_of(line, *percent)?;
        Some((f64::from(at), 1e3 * time.as_secs_f64()))
    });
    points.collect()
}
