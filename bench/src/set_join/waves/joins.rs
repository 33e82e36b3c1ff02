//! Measured joins of one input in waves at all thresholds, and their tables.
//!
//! After Bellas, Gounaris, *Speeding-up the Verification Phase of Set Similarity Joins in the
//! GPGPU paradigm*, 2018: the phases of a join with a GPU (Table IV), and the number of inputs on
//! which each algorithm is the fastest one with a GPU (Table V).

use trommel::set_similarity_join::JoinAlgorithm;

use super::{Counted, Measured, Waves};
use crate::runner::report::{Table, cells, or_empty, right};

/// Selects a group of algorithms.
pub(super) type Group = fn(JoinAlgorithm) -> bool;

/// Selects a number of a run.
pub(super) type Number = fn(&Counted) -> f64;

/// Joins of one input.
pub(in super::super) struct Joins {
    /// Base name of its figures.
    pub(super) file: String,
    /// Description of the input.
    pub(super) title: String,
    /// Label of the thresholds.
    pub(super) x: &'static str,
    pub(super) measured: Vec<Measured>,
}

/// Runs with the chunk size and output of the first run, for inputs measured with several.
fn usual(measured: &[Measured]) -> impl Iterator<Item = &Measured> {
    let of = |measured: &Measured| (measured.waves.chunk_bytes, measured.waves.output);
    let first = measured.first().map(of);
    measured.iter().filter(move |measured| Some(of(measured)) == first)
}

impl Joins {
    /// Thresholds in the order of the arguments.
    pub(in super::super) fn thresholds(&self) -> Vec<u32> {
        distinct(self.measured.iter().map(|measured| measured.threshold))
    }

    /// Runs with the usual chunks and output.
    pub(super) fn runs(&self) -> Vec<Waves> {
        distinct(usual(&self.measured).map(|measured| measured.waves))
    }

    pub(super) fn algorithms(&self) -> Vec<JoinAlgorithm> {
        distinct(self.runs().iter().map(|waves| waves.algorithm))
    }

    /// Quotient CPU / GPU of a number of an algorithm, with the best kernel of the GPU.
    pub(super) fn gain(&self, threshold: u32, of: JoinAlgorithm, number: Number) -> Option<f64> {
        let least = |is_on_gpu| {
            let is_it = |waves: Waves| waves.algorithm == of && waves.is_on_gpu() == is_on_gpu;
            Some(number(&self.least(threshold, is_it, number)?.counted))
        };
        let (cpu, gpu) = (least(false)?, least(true)?);
        (gpu > 0.0).then(|| cpu / gpu)
    }

    /// Counts of a run at a threshold.
    pub(super) fn at(&self, threshold: u32, waves: Waves) -> Option<&Counted> {
        let is_it =
            |measured: &&Measured| measured.threshold == threshold && measured.waves == waves;
        self.measured.iter().find(is_it).map(|measured| &measured.counted)
    }

    /// The usual run of a group with the least value of a number.
    pub(in super::super) fn least(
        &self,
        threshold: u32,
        which: impl Fn(Waves) -> bool,
        of: Number,
    ) -> Option<&Measured> {
        usual(&self.measured)
            .filter(|measured| measured.threshold == threshold && which(measured.waves))
            .min_by(|left, right| of(&left.counted).total_cmp(&of(&right.counted)))
    }

    /// Points of a line over the thresholds.
    pub(super) fn line(&self, value: impl Fn(u32) -> Option<f64>) -> Vec<(f64, f64)> {
        let mut thresholds = self.thresholds();
        thresholds.sort_unstable();
        let point = |threshold: u32| Some((f64::from(threshold), value(threshold)?));
        thresholds.into_iter().filter_map(point).collect()
    }

    /// Prints the tables over the thresholds.
    pub(super) fn print(&self) {
        let totals: [(&str, Number); 2] = [
            ("join, seconds", |counted| counted.total),
            ("verification, seconds", |counted| counted.verifier),
        ];
        for (what, of) in totals {
            let value = |waves: &Waves, threshold| self.at(threshold, *waves).map(of);
            let rows = self.runs();
            self.table(what, &rows, |waves| waves.name(), value, |value| format!("{value:.4}"));
        }
        let gains: [(&str, Number); 2] = [
            ("verification, CPU / GPU", |counted| counted.verifier),
            ("join, CPU / GPU", |counted| counted.total),
        ];
        for (what, of) in gains {
            let name = |algorithm: &JoinAlgorithm| algorithm.name().to_owned();
            let gain = |algorithm: &JoinAlgorithm, at| self.gain(at, *algorithm, of);
            self.table(what, &self.algorithms(), name, gain, |gain| format!("{gain:.2}"));
        }
        self.phases("fastest published, GPU", is_published);
        self.phases("fastest, GPU", |_| true);
    }

    fn table<T>(
        &self,
        what: &str,
        rows: &[T],
        name: impl Fn(&T) -> String,
        value: impl Fn(&T, u32) -> Option<f64>,
        shown: impl Fn(f64) -> String,
    ) {
        let thresholds = self.thresholds();
        let mut table = Table::new(&format!("{what} | {}", right(&thresholds)));
        for row in rows {
            let values = thresholds.iter().map(|&at| or_empty(value(row, at), &shown));
            table.row(format!("{} | {}", name(row), cells(values)));
        }
    }

    /// Table IV: the fastest join with a GPU at each threshold, by phases.
    fn phases(&self, what: &str, which: Group) {
        let mut table = Table::new(&format!(
            "{what} | algorithm, mode | join: | filter: | feeding: | kernels: | overlap: | \
             verified: | MB to GPU:"
        ));
        for threshold in self.thresholds() {
            let is_it = |waves: Waves| waves.is_on_gpu() && which(waves.algorithm);
            let fastest = self.least(threshold, is_it, |counted| counted.total);
            let Some(Measured { waves, counted, .. }) = fastest else { continue };
            table.row(format!(
                "{threshold} | {} | {:.4} | {:.4} | {:.4} | {:.4} | {:.1} % | {} | {:.1}",
                waves.name(),
                counted.total,
                counted.filter,
                counted.feeding,
                counted.verifier,
                100.0 * counted.overlap,
                counted.verified,
                counted.megabytes(),
            ));
        }
    }
}

/// Table V: number of inputs on which each algorithm is the fastest one with a GPU, among the
/// published ones and among all.
pub(in super::super) fn print_winners(all: &[Joins]) {
    let thresholds = distinct(all.iter().flat_map(Joins::thresholds));
    let algorithms = distinct(all.iter().flat_map(Joins::algorithms));
    let groups: [(&str, Group); 2] =
        [("of the published ones", is_published), ("of all", |_| true)];
    for (group, is_in_group) in groups {
        let head = format!("fastest with a GPU, {group}: inputs | {}", right(&thresholds));
        let mut table = Table::new(&head);
        for &algorithm in algorithms.iter().filter(|&&algorithm| is_in_group(algorithm)) {
            let wins = |&threshold: &u32| {
                let is_it = |waves: Waves| waves.is_on_gpu() && is_in_group(waves.algorithm);
                let fastest = all
                    .iter()
                    .filter_map(|joins| joins.least(threshold, is_it, |counted| counted.total));
                fastest.filter(|fastest| fastest.waves.algorithm == algorithm).count()
            };
            table.row(format!("{} | {}", algorithm.name(), cells(thresholds.iter().map(wins))));
        }
    }
}

/// True for the algorithms of the literature.
pub(in super::super) fn is_published(algorithm: JoinAlgorithm) -> bool {
    !matches!(algorithm, JoinAlgorithm::Auto | JoinAlgorithm::GpuSignatures)
}

/// Distinct items in the order of their first occurrence.
pub(in super::super) fn distinct<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    items.fold(Vec::new(), |mut distinct, item| {
        if !distinct.contains(&item) {
            distinct.push(item);
        }
        distinct
    })
}
