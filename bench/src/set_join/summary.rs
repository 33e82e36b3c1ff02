//! The seconds of joins over the threshold, as a table and as a figure.
//!
//! After Bellas, Gounaris, *Speeding-up the Verification Phase of Set Similarity Joins in the GPGPU
//! paradigm*, 2018: the time of the whole join by threshold (Fig. 10), and the share of the
//! verification (Fig. 2).

use std::fs;
use std::io;
use std::path::Path;

use trommel::set_similarity_join::JoinAlgorithm;
use trommel_bench::plot::{Plot, Scale};

/// One algorithm on one level.
pub(super) struct Line {
    pub(super) algorithm: JoinAlgorithm,
    pub(super) name: String,
    /// By threshold.
    pub(super) seconds: Vec<f64>,
    /// The part of them in which pairs were verified.
    pub(super) verifying: Vec<f64>,
}

/// All algorithms over all thresholds.
pub(super) struct Summary<'a> {
    pub(super) thresholds: &'a [u32],
    pub(super) lines: Vec<Line>,
}

impl Summary<'_> {
    /// Prints a column for each threshold, and what `auto` gains over the best published
    /// algorithm; and how much of each time is verification.
    pub(super) fn print(&self) {
        self.head("seconds");
        for line in &self.lines {
            row(&line.name, &line.seconds, |seconds| format!("{seconds:.3}"));
        }
        let published = |line: &&Line| {
            let ours = [JoinAlgorithm::Auto, JoinAlgorithm::GpuSignatures];
            !ours.contains(&line.algorithm)
        };
        let best: Vec<f64> = (0..self.thresholds.len())
            .map(|at| {
                let published = self.lines.iter().filter(published);
                published.map(|line| line.seconds[at]).fold(f64::INFINITY, f64::min)
            })
            .collect();
        if best.iter().all(|best| best.is_finite()) {
            for line in self.lines.iter().filter(|line| line.algorithm == JoinAlgorithm::Auto) {
                let ratios: Vec<f64> =
                    best.iter().zip(&line.seconds).map(|(best, seconds)| best / seconds).collect();
                row(&format!("best published / {}", line.name), &ratios, |r| format!("{r:.1}"));
            }
        }
        println!();
        self.head("verification");
        for line in &self.lines {
            let shares = line.verifying.iter().zip(&line.seconds).map(|(part, all)| part / all);
            let shares: Vec<f64> = shares.collect();
            row(&line.name, &shares, |share| format!("{:.0} %", 100.0 * share));
        }
        println!();
    }

    fn head(&self, what: &str) {
        let thresholds: Vec<String> = self.thresholds.iter().map(u32::to_string).collect();
        println!("| {what} | {} |", thresholds.join(" | "));
        println!("|---|{}", "---:|".repeat(thresholds.len()));
    }

    /// Writes the figure into the folder.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn draw(&self, folder: &Path, name: &str, [title, x]: [&str; 2]) -> io::Result<()> {
        let mut plot = Plot::new(title, "one core; lower is better", Scale::Logarithmic)
            .axes(x, "seconds")
            .x_from(self.thresholds.iter().min().map_or(0.0, |&least| f64::from(least)));
        for line in &self.lines {
            let mut points: Vec<(f64, f64)> = self
                .thresholds
                .iter()
                .zip(&line.seconds)
                .map(|(&threshold, &seconds)| (f64::from(threshold), seconds))
                .collect();
            points.sort_by(|left, right| left.0.total_cmp(&right.0));
            plot = match line.algorithm {
                JoinAlgorithm::Auto => plot.main_line(&line.name, points),
                _ => plot.line(&line.name, points),
            };
        }
        fs::create_dir_all(folder)?;
        let path = folder.join(format!("set-join-{name}.svg"));
        fs::write(&path, plot.to_string())?;
        println!("wrote {}\n", path.display());
        Ok(())
    }
}

fn row(name: &str, values: &[f64], shown: impl Fn(f64) -> String) {
    let values: Vec<String> = values.iter().map(|&value| shown(value)).collect();
    println!("| {name} | {} |", values.join(" | "));
}
