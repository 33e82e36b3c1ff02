//! Tables and figures of the time of joins by threshold, and of the share of the verification.
//!
//! After Bellas, Gounaris, *Speeding-up the Verification Phase of Set Similarity Joins in the GPGPU
//! paradigm*, 2018: the time of the whole join by threshold (Fig. 10), and the share of the
//! verification (Fig. 2).

use std::io;
use std::path::Path;

use crate::runner::plot::{Plot, Scale};
use trommel::Isa;
use trommel::set_similarity_join::JoinAlgorithm;

use super::joins::{distinct, is_published};
use super::tables::{head, row};

/// Measurements of one algorithm on one level.
pub(super) struct Line {
    pub(super) algorithm: JoinAlgorithm,
    pub(super) isa: Isa,
    pub(super) name: String,
    /// Seconds by threshold.
    pub(super) seconds: Vec<f64>,
    /// Seconds of verification within that time.
    pub(super) verifying: Vec<f64>,
}

/// Measurements of all algorithms at all thresholds.
pub(super) struct Summary<'a> {
    pub(super) thresholds: &'a [u32],
    pub(super) lines: Vec<Line>,
}

impl Summary<'_> {
    /// Prints one column per threshold: the times, the gain of `auto` over the best published
    /// algorithm, both verified on the same level and, as published, without vectors, and the
    /// share of verification.
    pub(super) fn print(&self) {
        head("seconds", self.thresholds);
        for line in &self.lines {
            let seconds = line.seconds.iter().copied().map(Some);
            row(&line.name, seconds, |seconds| format!("{seconds:.3}"));
        }
        for line in self.lines.iter().filter(|line| line.algorithm == JoinAlgorithm::Auto) {
            for isa in distinct([Isa::Scalar, line.isa].into_iter()) {
                if let Some(best) = self.best_published(isa) {
                    let ratios = best.iter().zip(&line.seconds).map(|(best, own)| Some(best / own));
                    let name = format!("best published ({isa}) / {}", line.name);
                    row(&name, ratios, |ratio| format!("{ratio:.1}"));
                }
            }
        }
        println!();
        head("verification", self.thresholds);
        for line in &self.lines {
            let shares = Self::shares(line).map(Some);
            row(&line.name, shares, |share| format!("{:.0} %", 100.0 * share));
        }
        println!();
    }

    /// Time of the fastest published algorithm on a level, by threshold, if one was measured.
    fn best_published(&self, isa: Isa) -> Option<Vec<f64>> {
        let published = self.lines.iter().filter(|line| is_published(line.algorithm));
        let times = published.filter(|line| line.isa == isa).map(|line| line.seconds.clone());
        times.reduce(|best, times| best.iter().zip(times).map(|(b, time)| b.min(time)).collect())
    }

    /// Share of verification in the time of a line.
    fn shares(line: &Line) -> impl Iterator<Item = f64> {
        line.verifying.iter().zip(&line.seconds).map(|(part, all)| part / all)
    }

    /// Writes two figures into the folder: the time of whole joins, and the share of
    /// verification.
    ///
    /// # Errors
    /// If they cannot be written.
    pub(super) fn draw(&self, folder: &Path, name: &str, [title, x]: [&str; 2]) -> io::Result<()> {
        let least = self.thresholds.iter().min().map_or(0.0, |&least| f64::from(least));
        let plot = |title: &str, subtitle, scale, y| {
            Plot::new(title, subtitle, scale).axes(x, y).x_from(least)
        };
        let mut seconds = plot(title, "one core; lower is better", Scale::Logarithmic, "seconds");
        let mut shares = plot(
            &format!("{title}: verification"),
            "one core; the rest is the index and the filter",
            Scale::Share,
            "share of the time",
        );
        for line in &self.lines {
            seconds = self.add(seconds, line, line.seconds.iter().copied());
            shares = self.add(shares, line, Self::shares(line));
        }
        println!("wrote {}", seconds.write(folder, &format!("set-join-{name}"))?.display());
        let name = format!("set-join-{name}-verification");
        println!("wrote {}\n", shares.write(folder, &name)?.display());
        Ok(())
    }

    fn add(&self, plot: Plot, line: &Line, values: impl Iterator<Item = f64>) -> Plot {
        let mut points: Vec<(f64, f64)> =
            self.thresholds.iter().map(|&threshold| f64::from(threshold)).zip(values).collect();
        points.sort_by(|left, right| left.0.total_cmp(&right.0));
        match line.algorithm {
            JoinAlgorithm::Auto => plot.main_line(&line.name, points),
            _ => plot.line(&line.name, points),
        }
    }
}
