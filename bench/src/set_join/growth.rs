//! Whole runs over more and more sets: time, and memory at its peak.
//!
//! ```text
//! generate ──► set_similarity_join, count ──► collect
//! ```
//!
//! Sets are generated within the run, since files of 100 million would measure the disk; the time
//! of generating alone is a column. Without a window the join sees all sets at once, with one each
//! set meets those before it in the window, so memory must not grow with the number of sets. The
//! peak is that of the process, which keeps freed memory: numbers of sets must ascend.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::runner::plot::{Plot, Scale};
use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use trommel::Device;
use trommel::placement::{Placement, available_cores};
use trommel::set_similarity_join::{JoinWindow, Threshold};
use trommel::unstable::cuda;
use trommel::{Collect, Discard, Generate, Graph, JoinOutput, RunOptions, SetSimilarityJoin};

use super::data::MEMORY_MAX;
use super::{Patience, median};
use crate::runner::memory::{peak, reset_peak};

/// Distinct tokens.
const ALPHABET: u32 = 500_000;
/// Zipf exponent of the tokens.
const SKEW: f64 = 0.8;

/// Place of a join: the device of its work, and its stages on one core or on all.
#[derive(Debug, Clone, Copy)]
struct Place {
    device: Device,
    placement: Placement,
}

/// Measured run.
#[derive(Debug, Clone, Copy, Default)]
struct Measured {
    seconds: f64,
    pairs: u64,
    /// Largest resident memory of the process.
    bytes: u64,
    /// Seconds of the steps of the join, in one of the runs.
    steps: [f64; STEPS.len()],
}

/// Steps of a join, by the counters of their times: reading beside the first part of collecting,
/// the rest of collecting, sorting, planning and indexing on all cores, and joining.
const STEPS: [(&str, &str); 6] = [
    ("reading", "reading_ns"),
    ("collecting", "collecting_ns"),
    ("sorting", "sorting_ns"),
    ("planning", "planning_ns"),
    ("indexing", "indexing_ns"),
    ("joining", "joining_ns"),
];

/// Points of a place by the number of sets, for the figures.
struct Curve {
    name: String,
    seconds: Vec<(f64, f64)>,
    megabytes: Vec<(f64, f64)>,
}

/// Whole runs over each number of `sets`, ascending, at one threshold.
pub(super) struct Growth<'a> {
    pub(super) sets: &'a [u64],
    /// Minimum Jaccard similarity.
    pub(super) percent: u32,
    /// Sets in the window; all without one.
    pub(super) window: Option<usize>,
}

impl Growth<'_> {
    /// Prints a line for each number of sets and place, and draws the curves into `figures`.
    ///
    /// # Errors
    /// If a figure cannot be written.
    pub(super) fn measure(&self, patience: Patience, figures: Option<&Path>) -> io::Result<()> {
        let window = self.window.map_or("all sets at once".to_owned(), |sets| {
            format!("each set with the {sets} before it")
        });
        println!("Jaccard .{}, {window}\n", self.percent);
        println!(
            "| sets | device | generating | whole run, s | 1,000 sets/s | pairs | peak, MB |\n\
             |---:|---|---:|---:|---:|---:|---:|"
        );
        let places = places();
        let curve = |place: &Place| Curve {
            name: place.name(),
            seconds: Vec::new(),
            megabytes: Vec::new(),
        };
        let mut curves: Vec<Curve> = places.iter().map(curve).collect();
        let mut steps = Vec::new();
        for (at, &sets) in self.sets.iter().enumerate() {
            let generating = self.median(sets, None, patience).seconds;
            let mut expected = None;
            for (&place, curve) in places.iter().zip(&mut curves) {
                let measured = self.median(sets, Some(place), patience);
                let Measured { seconds, pairs, bytes, .. } = measured;
                steps.push((sets, place, measured.steps));
                assert_eq!(pairs, *expected.get_or_insert(pairs), "{}: all pairs", place.name());
                let (rate, megabytes) = (sets as f64 / seconds / 1e3, bytes as f64 / 1e6);
                println!(
                    "| {sets} | {} | {generating:.3} | {seconds:.3} | {rate:.0} | {pairs} | \
                     {megabytes:.0} |",
                    place.name(),
                );
                curve.seconds.push((at as f64, seconds));
                curve.megabytes.push((at as f64, megabytes));
            }
        }
        println!();
        if self.window.is_none() {
            print_steps(&steps);
        }
        figures.map_or(Ok(()), |folder| self.draw(&curves, folder))
    }

    /// Median time of a run, or of generating alone, and its largest peak.
    fn median(&self, sets: u64, place: Option<Place>, patience: Patience) -> Measured {
        let (mut times, mut total, mut most) = (Vec::new(), 0.0, 0);
        let (mut pairs, mut steps) = (0, [0.0; STEPS.len()]);
        while times.len() < patience.rounds() && !patience.is_over(total) {
            reset_peak();
            let time;
            (time, pairs, steps) = self.run(sets, place);
            most = most.max(peak());
            total += time.as_secs_f64();
            times.push(time);
        }
        Measured { seconds: median(&mut times).as_secs_f64(), pairs, bytes: most, steps }
    }

    /// Runs a pipeline once.
    fn run(&self, sets: u64, place: Option<Place>) -> (Duration, u64, [f64; STEPS.len()]) {
        let mut graph = Graph::new();
        let source = Generate::sets(ALPHABET, SKEW).sizes(5..=23).items(sets);
        let generate = graph.add("generate", source);
        let (sink, rows) = Collect::new();
        match place {
            Some(Place { device, placement }) => {
                let threshold = Threshold::new(self.percent, 100).expect("a positive threshold");
                let mut join = SetSimilarityJoin::new(threshold)
                    .output(JoinOutput::Count)
                    .device(device)
                    .memory_max(MEMORY_MAX);
                if let Some(sets) = self.window {
                    join = join.window(JoinWindow::sets(sets as u64));
                }
                let join = graph.add_after(generate, "join", join);
                graph.add_after(join, "count", sink);
                graph.placement(placement);
            }
            None => {
                graph.add_after(generate, "end", Discard::new());
                graph.placement(Placement::Fused);
            }
        }
        let topology = graph.build().expect("the graph is whole");
        let begin = Instant::now();
        let metrics = topology.run(RunOptions::new()).expect("enough memory");
        let time = begin.elapsed();
        let parts = metrics.stage("join").map_or(&[][..], |stage| &stage.parts);
        let seconds = |(_, counter): (&str, &str)| {
            let counters = parts.iter().flat_map(|part| &part.counters);
            let ns = counters.filter(|(name, _)| *name == counter).map(|(_, ns)| *ns);
            ns.sum::<u64>() as f64 / 1e9
        };
        let count = |rows: &RecordBatch| rows.column(0).as_primitive::<UInt64Type>().value(0);
        (time, rows.take().first().map_or(0, count), STEPS.map(seconds))
    }

    fn draw(&self, curves: &[Curve], folder: &Path) -> io::Result<()> {
        let title = format!("Joins of sets of 14 tokens, Jaccard .{}", self.percent);
        let names: Vec<String> = self.sets.iter().map(|&sets| short(sets)).collect();
        let plot = |subtitle: &str, y| {
            let plot = Plot::new(&title, subtitle, Scale::Logarithmic);
            plot.axes("sets", y).x_names(names.clone())
        };
        let mut seconds = plot("whole runs; lower is better", "seconds");
        let mut memory = plot("peak of the process; lower is better", "MB");
        for curve in curves {
            seconds = seconds.line(&curve.name, curve.seconds.clone());
            memory = memory.line(&curve.name, curve.megabytes.clone());
        }
        println!("wrote {}", seconds.write(folder, "set-join-growth")?.display());
        println!("wrote {}\n", memory.write(folder, "set-join-growth-memory")?.display());
        Ok(())
    }
}

/// Prints the time of each step of the joins.
fn print_steps(measured: &[(u64, Place, [f64; STEPS.len()])]) {
    let names = STEPS.map(|(name, _)| format!("{name}, s")).join(" | ");
    println!("| sets | device | {names} |\n|---:|---{}|", "|---:".repeat(STEPS.len()));
    for (sets, place, steps) in measured {
        let steps = steps.map(|seconds| format!("{seconds:.3}")).join(" | ");
        println!("| {sets} | {} | {steps} |", place.name());
    }
    println!();
}

/// One core, all cores, and where there is a GPU, the choice of the operator and that GPU.
fn places() -> Vec<Place> {
    let cpu = |placement| Place { device: Device::Cpu, placement };
    let mut places = vec![cpu(Placement::Fused)];
    if available_cores().len() > 1 {
        places.push(cpu(Placement::Auto));
    }
    if cuda::Device::probe(0).is_ok() {
        let on = |device| Place { device, placement: Placement::Auto };
        places.extend([on(Device::Auto), on(Device::Cuda(0))]);
    }
    places
}

impl Place {
    fn name(self) -> String {
        match (self.device, self.placement) {
            (Device::Cpu, Placement::Fused) => "one core".to_owned(),
            (Device::Cpu, _) => "all cores".to_owned(),
            (Device::Auto, _) => "auto".to_owned(),
            (Device::Cuda(_), _) => "GPU".to_owned(),
        }
    }
}

/// A number such as 30k or 10M.
fn short(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        1_000..1_000_000 => format!("{}k", number / 1_000),
        _ => format!("{}M", number / 1_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_of_all_sets_has_the_pairs_of_all_sets() {
        let pairs =
            |window, place| Growth { sets: &[], percent: 60, window }.run(500, Some(place)).1;
        let [one, all] = [Placement::Fused, Placement::Auto]
            .map(|placement| Place { device: Device::Cpu, placement });
        let expected = pairs(None, one);
        assert!(expected > 0);
        assert_eq!([pairs(None, all), pairs(Some(500), one), pairs(Some(500), all)], [expected; 3]);
        assert!(pairs(Some(2), one) < expected);
    }
}
