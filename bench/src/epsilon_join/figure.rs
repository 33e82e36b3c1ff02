//! Figure 6 of the paper (Böhm, Noll, Plant, Zherdin, BTW 2009, §6): times by the number of
//! vectors, of a nested loop and of an index, each on one core and on a GPU, and ours on the GPU.

use std::io;
use std::path::Path;

use crate::runner::plot::{Plot, Scale};
use clap::ValueEnum;
use trommel::Isa;
use trommel_kernels::cuda::Device;
use trommel_kernels::cuda::vectors::{Answer, Method, Policy};
use trommel_kernels::vectors::{Epsilon, Vectors};

use super::data::{Shape, Workload};
use super::device::{Gpu, Way};
use super::processor::{by_directory, by_loop};

/// Distribution of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Distribution {
    /// DS1.
    Uniform,
    /// DS2.
    Clusters,
    /// DS3.
    Correlated,
}

impl Distribution {
    /// The shape, its name, and the epsilon of a million vectors, which makes .7 pairs of a
    /// vector.
    const fn parts(self) -> (Shape, &'static str, f64) {
        match self {
            Self::Uniform => (Shape::Uniform, "uniform", 0.1635),
            Self::Clusters => (Shape::Clusters(5), "clusters", 0.0344),
            Self::Correlated => (Shape::Correlated, "correlated", 0.02225),
        }
    }
}

const DIMS: usize = 8;

/// Pairs of vectors that nested loops compare at most, on one core and on a GPU: seconds.
const PAIRS_MAX: [usize; 2] = [1 << 35, 1 << 41];

const LINES: [&str; 5] = [
    "nested loop, one core",
    "directory, one core",
    "nested loop, GPU",
    "the paper's directory, GPU",
    "boxes, GPU",
];

/// Measures, prints the tables and draws the figures into `folder`.
///
/// # Errors
/// If a figure cannot be written.
pub(super) fn run(
    device: Option<&Device>,
    distributions: &[Distribution],
    sizes: &[usize],
    folder: Option<&Path>,
) -> io::Result<()> {
    for (shape, name, epsilon) in distributions.iter().map(|one| one.parts()) {
        println!("Figure 6, {name}, {DIMS} dimensions, seconds\n");
        println!("| vectors | epsilon | pairs | {} |", LINES.join(" | "));
        println!("|---:|---:|---:|{}", "---:|".repeat(LINES.len()));
        let mut lines: [Vec<(f64, f64)>; 5] = Default::default();
        for (at, &len) in (0_u32..).zip(sizes) {
            // The number of pairs of a vector stays about the same.
            let epsilon = epsilon * (1e6 / len as f64).powf(1.0 / DIMS as f64);
            let workload = Workload { shape, len, dims: DIMS, epsilon };
            let (count, times) = measure(device, workload);
            let shown =
                times.map(|time| time.map_or_else(String::new, |time| format!("{time:.4}")));
            println!("| {len} | {epsilon:.4} | {count} | {} |", shown.join(" | "));
            for (line, time) in lines.iter_mut().zip(times) {
                line.extend(time.map(|time| (f64::from(at), time)));
            }
        }
        println!();
        let Some(folder) = folder else { continue };
        let names = sizes.iter().map(|len| format!("{} M", *len as f64 / 1e6)).collect();
        let title = format!("Epsilon join, {name}");
        let mut plot = Plot::new(title, "from vectors in memory to pairs", Scale::Logarithmic)
            .axes("vectors", "seconds")
            .x_names(names);
        for (name, points) in LINES.iter().zip(lines).filter(|(_, points)| !points.is_empty()) {
            plot = if *name == LINES[4] {
                plot.main_line(name, points)
            } else {
                plot.line(name, points)
            };
        }
        plot.write(folder, &format!("epsilon-join-{name}"))?;
    }
    Ok(())
}

/// The number of pairs, and seconds of each line that is measured.
fn measure(device: Option<&Device>, workload: Workload) -> (u64, [Option<f64>; 5]) {
    let isa = Isa::selected().expect("the variable names a level of this machine");
    let mut values = vec![0.0; workload.len * workload.dims];
    workload.fill(&mut values);
    let vectors = Vectors::new(&values, workload.dims);
    let epsilon = Epsilon::new(workload.epsilon).expect("a distance");
    let (pairs, mut all) = (workload.len * workload.len / 2, Vec::new());
    let indexed = by_directory(isa, vectors, epsilon, &mut all).whole.as_secs_f64();
    let count = all.len() as u64;
    let nested = (pairs <= PAIRS_MAX[0]).then(|| {
        let (row, found) = by_loop(isa, vectors, epsilon);
        assert_eq!(found, count, "another number of pairs");
        row.whole.as_secs_f64()
    });
    let mut times = [nested, Some(indexed), None, None, None];
    let Some(device) = device else { return (count, times) };
    let gpu = Gpu::new(device, workload).expect("the vectors fit");
    for (place, method) in [(2, Method::NestedLoop), (3, Method::Directory), (4, Method::Boxes)] {
        if method == Method::NestedLoop && pairs > PAIRS_MAX[1] {
            continue;
        }
        let policy = Policy::of(device.properties(), workload.len);
        let way = Way { method, policy, parts: 1, answer: Answer::Pairs };
        let room = all.len().max(1);
        let measured = gpu.measure(way, room, 1).expect("the device works");
        assert_eq!(measured.count, count, "{method}: another number of pairs");
        times[place] = Some(measured.whole / 1e3);
    }
    (count, times)
}
