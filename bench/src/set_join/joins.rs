//! Measured joins of one input in waves at all thresholds, the source of tables and figures.

use trommel::set_similarity_join::JoinAlgorithm;

use super::waves::{Counted, Measured, Waves};

/// Selects a group of algorithms.
pub(super) type Group = fn(JoinAlgorithm) -> bool;

/// Selects a number of a run.
pub(super) type Number = fn(&Counted) -> f64;

/// Joins of one input.
pub(super) struct Joins {
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
    pub(super) fn thresholds(&self) -> Vec<u32> {
        distinct(self.measured.iter().map(|measured| measured.threshold))
    }

    /// Runs with the usual chunks and output.
    pub(super) fn runs(&self) -> Vec<Waves> {
        distinct(usual(&self.measured).map(|measured| measured.waves))
    }

    pub(super) fn algorithms(&self) -> Vec<JoinAlgorithm> {
        distinct(self.runs().iter().map(|waves| waves.algorithm))
    }

    /// Quotient CPU / GPU of a number, with the best kernel of the GPU.
    pub(super) fn gain(
        &self,
        threshold: u32,
        which: impl Fn(JoinAlgorithm) -> bool,
        of: impl Fn(&Counted) -> f64,
    ) -> Option<f64> {
        let least = |is_on_gpu| {
            let is_it = |waves: Waves| which(waves.algorithm) && waves.is_on_gpu() == is_on_gpu;
            Some(of(&self.least(threshold, is_it, &of)?.counted))
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
    pub(super) fn least(
        &self,
        threshold: u32,
        which: impl Fn(Waves) -> bool,
        of: impl Fn(&Counted) -> f64,
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
}

/// True for the algorithms of the literature.
pub(super) fn is_published(algorithm: JoinAlgorithm) -> bool {
    !matches!(algorithm, JoinAlgorithm::Auto | JoinAlgorithm::GpuSignatures)
}

/// Distinct items in the order of their first occurrence.
pub(super) fn distinct<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    items.fold(Vec::new(), |mut distinct, item| {
        if !distinct.contains(&item) {
            distinct.push(item);
        }
        distinct
    })
}
