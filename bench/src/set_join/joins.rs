//! The joins of one input in waves, at all thresholds: what tables and figures take from them.

use trommel::set_similarity_join::JoinAlgorithm;

use super::waves::{Counted, Measured, Waves};

/// Some algorithms.
pub(super) type Group = fn(JoinAlgorithm) -> bool;

/// A number of a run.
pub(super) type Number = fn(&Counted) -> f64;

/// The joins of one input.
pub(super) struct Joins {
    /// What files about it are called.
    pub(super) file: String,
    /// What is joined.
    pub(super) title: String,
    /// What thresholds are.
    pub(super) x: &'static str,
    pub(super) measured: Vec<Measured>,
}

/// Of what is measured with several sizes of chunks or outputs, those runs that are like the first.
fn usual(measured: &[Measured]) -> impl Iterator<Item = &Measured> {
    let of = |measured: &Measured| (measured.waves.chunk_bytes, measured.waves.output);
    let first = measured.first().map(of);
    measured.iter().filter(move |measured| Some(of(measured)) == first)
}

impl Joins {
    /// In the order of the arguments.
    pub(super) fn thresholds(&self) -> Vec<u32> {
        distinct(self.measured.iter().map(|measured| measured.threshold))
    }

    /// What was run, with the usual chunks and output.
    pub(super) fn runs(&self) -> Vec<Waves> {
        distinct(usual(&self.measured).map(|measured| measured.waves))
    }

    pub(super) fn algorithms(&self) -> Vec<JoinAlgorithm> {
        distinct(self.runs().iter().map(|waves| waves.algorithm))
    }

    /// How much less of something a GPU needs than the CPU, by its best kernel.
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

    /// A run at a threshold.
    pub(super) fn at(&self, threshold: u32, waves: Waves) -> Option<&Counted> {
        let is_it =
            |measured: &&Measured| measured.threshold == threshold && measured.waves == waves;
        self.measured.iter().find(is_it).map(|measured| &measured.counted)
    }

    /// Of some of the usual runs, the one with the least of something.
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

    /// The points of a line over the thresholds.
    pub(super) fn line(&self, value: impl Fn(u32) -> Option<f64>) -> Vec<(f64, f64)> {
        let mut thresholds = self.thresholds();
        thresholds.sort_unstable();
        let point = |threshold: u32| Some((f64::from(threshold), value(threshold)?));
        thresholds.into_iter().filter_map(point).collect()
    }
}

/// Whether it is one of the algorithms of the literature.
pub(super) fn is_published(algorithm: JoinAlgorithm) -> bool {
    !matches!(algorithm, JoinAlgorithm::Auto | JoinAlgorithm::GpuSignatures)
}

/// Each once, in the order in which they come first.
pub(super) fn distinct<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    items.fold(Vec::new(), |mut distinct, item| {
        if !distinct.contains(&item) {
            distinct.push(item);
        }
        distinct
    })
}
