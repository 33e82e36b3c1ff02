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

use trommel::placement::{Placement, available_cores};
use trommel::set_similarity_join::{JoinWindow, Threshold};
use trommel::unstable::cuda;
use trommel::{Collect, Device, Discard, Generate, Graph, JoinOutput, SetSimilarityJoin};

use super::data::MEMORY_MAX;
use crate::runner::memory::{peak, reset_peak};
use crate::runner::pipelines::{count, counter, run};
use crate::runner::plot::{Plot, Scale};
use crate::runner::report::{Table, cells, right};
use crate::runner::turns::{Run, Turns};
use crate::runner::{Figures, Runs};

/// Distinct tokens.
const ALPHABET: u32 = 500_000;
/// Zipf exponent of the tokens.
const SKEW: f64 = 0.8;

/// Steps of a join, by the counters of their times: reading beside the first part of collecting,
/// the rest of collecting, sorting, planning and indexing on all cores, and joining.
const STEPS: [&str; 6] = ["reading", "collecting", "sorting", "planning", "indexing", "joining"];

/// Place of a join: the device of its work, and its stages on one core or on all.
#[derive(Debug, Clone, Copy)]
struct Place {
    name: &'static str,
    device: Device,
    placement: Placement,
}

/// What a run has beside its time.
struct Rest {
    pairs: u64,
    /// Largest resident memory of the process.
    bytes: u64,
    /// Seconds of the steps of the join.
    steps: [f64; STEPS.len()],
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
    /// Prints a row for each number of sets and place, and draws the curves.
    ///
    /// # Errors
    /// If a figure cannot be written.
    pub(super) fn measure(&self, runs: Runs, figures: &Figures) -> io::Result<()> {
        let window = self.window.map_or("all sets at once".to_owned(), |sets| {
            format!("each set with the {sets} before it")
        });
        println!("Jaccard .{}, {window}\n", self.percent);
        let places = places();
        let plot = |subtitle: &str, y| {
            let title = format!("Joins of sets of 14 tokens, Jaccard .{}", self.percent);
            let names = self.sets.iter().map(|&sets| short(sets));
            Plot::new(title, subtitle, Scale::Logarithmic).axes("sets", y).x_names(names.collect())
        };
        let mut curves = places.iter().map(|_| [Vec::new(), Vec::new()]).collect::<Vec<_>>();
        let mut steps = Vec::new();
        let mut table = Table::new(
            "sets: | device | generating: | whole run, s: | 1,000 sets/s: | pairs: | peak, MB:",
        );
        for &sets in self.sets {
            let generating = self.median(sets, None, None, runs).0;
            let mut expected = None;
            for (&place, curve) in places.iter().zip(&mut curves) {
                let (seconds, rest) = self.median(sets, Some(place), expected, runs);
                let (rate, megabytes) = (sets as f64 / seconds / 1e3, rest.bytes as f64 / 1e6);
                table.row(format!(
                    "{sets} | {} | {generating:.3} | {seconds:.3} | {rate:.0} | {} | {megabytes:.0}",
                    place.name, rest.pairs,
                ));
                expected = Some(rest.pairs);
                curve[0].push(Some(seconds));
                curve[1].push(Some(megabytes));
                let of_steps = cells(rest.steps.map(|seconds| format!("{seconds:.3}")));
                steps.push(format!("{sets} | {} | {of_steps}", place.name));
            }
        }
        drop(table);
        if self.window.is_none() {
            let names = right(STEPS.map(|name| format!("{name}, s")));
            let mut table = Table::new(&format!("sets: | device | {names}"));
            steps.into_iter().for_each(|row| table.row(row));
        }
        let mut seconds = plot("whole runs; lower is better", "seconds");
        let mut memory = plot("peak of the process; lower is better", "MB");
        for (Place { name, .. }, [times, megabytes]) in places.iter().zip(curves) {
            seconds = seconds.line_by_number(name, times);
            memory = memory.line_by_number(name, megabytes);
        }
        seconds.save(figures, "set-join-growth")?;
        memory.save(figures, "set-join-growth-memory")
    }

    /// Median seconds of a run, or of generating alone; its largest peak and the steps.
    fn median(
        &self,
        sets: u64,
        place: Option<Place>,
        expected: Option<u64>,
        runs: Runs,
    ) -> (f64, Rest) {
        let mut turns = Turns::new(runs).cold().expect(expected);
        turns.add(place.map_or("generating", |place| place.name), || self.run(sets, place));
        let measured = turns.run().remove(0);
        let bytes = measured.all().map(|rest: &Rest| rest.bytes).max().unwrap_or(0);
        let Rest { pairs, steps, .. } = *measured.rest();
        (measured.seconds(), Rest { pairs, bytes, steps })
    }

    /// Runs a pipeline once.
    fn run(&self, sets: u64, place: Option<Place>) -> Run<u64, Rest> {
        let mut graph = Graph::new();
        let source = Generate::sets(ALPHABET, SKEW).sizes(5..=23).items(sets);
        let generate = graph.add("generate", source);
        let (sink, rows) = Collect::new();
        if let Some(Place { device, placement, .. }) = place {
            let threshold = Threshold::new(self.percent, 100).expect("a positive threshold");
            let join = SetSimilarityJoin::new(threshold).output(JoinOutput::Count);
            let mut join = join.device(device).memory_max(MEMORY_MAX);
            if let Some(sets) = self.window {
                join = join.window(JoinWindow::sets(sets as u64));
            }
            let join = graph.add_after(generate, "join", join);
            graph.add_after(join, "count", sink);
            graph.placement(placement);
        } else {
            graph.add_after(generate, "end", Discard::new());
            graph.placement(Placement::Fused);
        }
        reset_peak();
        let (time, metrics) = run(graph);
        let pairs = count(&rows);
        let seconds = |step| counter(&metrics, "join", &format!("{step}_ns")) as f64 / 1e9;
        let rest = Rest { pairs, bytes: peak(), steps: STEPS.map(seconds) };
        Run { time, answer: pairs, rest }
    }
}

/// One core, all cores, and where there is a GPU, the choice of the operator and that GPU.
fn places() -> Vec<Place> {
    let place = |name, device, placement| Place { name, device, placement };
    let mut places = vec![place("one core", Device::Cpu, Placement::Fused)];
    if available_cores().len() > 1 {
        places.push(place("all cores", Device::Cpu, Placement::Auto));
    }
    if cuda::Device::probe(0).is_ok() {
        places.push(place("auto", Device::Auto, Placement::Auto));
        places.push(place("GPU", Device::Cuda(0), Placement::Auto));
    }
    places
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
        let pairs = |window, placement| {
            let place = Place { name: "", device: Device::Cpu, placement };
            Growth { sets: &[], percent: 60, window }.run(500, Some(place)).answer
        };
        let [one, all] = [Placement::Fused, Placement::Auto];
        let expected = pairs(None, one);
        assert!(expected > 0);
        assert_eq!([pairs(None, all), pairs(Some(500), one), pairs(Some(500), all)], [expected; 3]);
        assert!(pairs(Some(2), one) < expected);
    }
}
