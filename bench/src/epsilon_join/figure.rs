//! Figure 6 of the paper (Böhm, Noll, Plant, Zherdin, BTW 2009, §6): times by the number of
//! vectors, of a nested loop and of an index, each on one core and on a GPU, and ours on the GPU.

use std::io;

use clap::ValueEnum;
use trommel_kernels::cuda::Device;
use trommel_kernels::cuda::vectors::{Answer, Method, Policy};
use trommel_kernels::vectors::{Epsilon, Vectors};

use super::data::{Shape, Workload};
use super::device::{Gpu, Way};
use super::processor::{by_directory, by_loop};
use crate::runner::plot::{Plot, Scale};
use crate::runner::report::{Table, cells, or_empty, right};
use crate::runner::{Figures, Runs, isa};

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

/// Measures, prints the tables and draws the figures.
///
/// # Errors
/// If a figure cannot be written.
pub(super) fn run(
    device: Option<&Device>,
    distributions: &[Distribution],
    sizes: &[usize],
    figures: &Figures,
) -> io::Result<()> {
    for (shape, name, epsilon) in distributions.iter().map(|one| one.parts()) {
        println!("Figure 6, {name}, {DIMS} dimensions, seconds\n");
        let mut table = Table::new(&format!("vectors: | epsilon: | pairs: | {}", right(LINES)));
        let mut lines: [Vec<Option<f64>>; LINES.len()] = Default::default();
        for &len in sizes {
            // The number of pairs of a vector stays about the same.
            let epsilon = epsilon * (1e6 / len as f64).powf(1.0 / DIMS as f64);
            let workload = Workload { shape, len, dims: DIMS, epsilon };
            let (count, times) = measure(device, workload);
            let shown = cells(times.map(|time| or_empty(time, |time| format!("{time:.4}"))));
            table.row(format!("{len} | {epsilon:.4} | {count} | {shown}"));
            lines.iter_mut().zip(times).for_each(|(line, time)| line.push(time));
        }
        drop(table);
        let names = sizes.iter().map(|len| format!("{} M", *len as f64 / 1e6)).collect();
        let title = format!("Epsilon join, {name}");
        let mut plot = Plot::new(title, "from vectors in memory to pairs", Scale::Logarithmic)
            .axes("vectors", "seconds")
            .x_names(names);
        let is_measured = |line: &Vec<Option<f64>>| line.iter().any(Option::is_some);
        for (at, (name, line)) in LINES.iter().zip(lines).enumerate() {
            if at + 1 == LINES.len() && is_measured(&line) {
                let points = (0_u32..).map(f64::from).zip(line);
                plot = plot.main_line(name, points.filter_map(|(x, y)| Some((x, y?))).collect());
            } else {
                plot = plot.line_by_number(name, line);
            }
        }
        plot.save(figures, &format!("epsilon-join-{name}"))?;
    }
    Ok(())
}

/// The number of pairs, and seconds of each line that is measured.
fn measure(device: Option<&Device>, workload: Workload) -> (u64, [Option<f64>; 5]) {
    let isa = isa();
    let values = workload.values();
    let vectors = Vectors::new(&values, workload.dims);
    let epsilon = Epsilon::new(workload.epsilon).expect("a distance");
    let (pairs, mut all) = (workload.len * workload.len / 2, Vec::new());
    let indexed = by_directory(isa, vectors, epsilon, &mut all).time.as_secs_f64();
    let count = all.len() as u64;
    let nested = (pairs <= PAIRS_MAX[0]).then(|| {
        let run = by_loop(isa, vectors, epsilon);
        assert_eq!(run.answer, count, "another number of pairs");
        run.time.as_secs_f64()
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
        let measured = gpu
            .measure(way, room, Runs { rounds: Some(1), seconds: f64::INFINITY })
            .expect("the device works");
        assert_eq!(measured.count, count, "{method}: another number of pairs");
        times[place] = Some(measured.whole / 1e3);
    }
    (count, times)
}
