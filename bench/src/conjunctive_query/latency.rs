//! Tables of the operator under loads: throughput, and latency by the size of its batches.

use std::io;
use std::path::Path;
use std::time::Duration;

use crate::runner::plot::{Plot, Scale};

use super::index::Workload;
use super::load::{Offer, Outcome, Served};

/// A load up to this is a share of the peak, a larger one is in queries a second.
const SHARE_MAX: f64 = 10.0;

/// Quantiles of the table.
const QUANTILES: [(&str, f64); 3] = [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)];

/// Loads to be measured.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct Loads {
    /// Loads of the operator: shares of its peak up to 10, or queries a second.
    #[arg(long, value_delimiter = ',', default_value = "0.25,0.5,0.9")]
    load: Vec<f64>,
    /// Values of `batch_queries` under load.
    #[arg(long, value_delimiter = ',', default_value = "1,16,64,256,1024,4096,32768")]
    load_batches: Vec<usize>,
    /// Seconds of each run under load.
    #[arg(long, default_value_t = 1.0)]
    load_seconds: f64,
    /// Runs of each load: the one with the lowest p99 is shown, and the p99 of the worst; the peak
    /// is the highest.
    #[arg(long, default_value_t = 3)]
    load_rounds: usize,
    /// Milliseconds of the deadline.
    #[arg(long, default_value_t = 5.0)]
    deadline_ms: f64,
    /// Cores of the pipeline under load; 0: as the engine places it.
    #[arg(long, value_delimiter = ',', default_value = "1,0")]
    cores: Vec<usize>,
}

/// Latency in milliseconds under a load.
struct Point {
    batch_queries: usize,
    load: f64,
    milliseconds: [f64; 3],
}

/// Measures, prints the tables and draws the figures.
///
/// # Errors
/// If the index or a figure cannot be written.
pub(super) fn run(loads: &Loads, workload: &Workload, figures: Option<&Path>) -> io::Result<()> {
    let served = Served::new(workload)?;
    for &cores in &loads.cores {
        let place = match cores {
            0 => "all-cores".to_owned(),
            1 => "one-core".to_owned(),
            cores => format!("{cores}-cores"),
        };
        println!(
            "Operator on {place}, deadline {} ms; latency in ms from the intended time of a query\n",
            loads.deadline_ms
        );
        println!(
            "| batch_queries | peak, queries/s | load | queries/s | answered/s | in a batch | p50 | p99 | p99.9 | max | worst p99 |"
        );
        println!(
            "|--------------:|----------------:|-----:|----------:|-----------:|-----------:|----:|----:|------:|----:|----------:|"
        );
        let mut peaks = Vec::new();
        let mut points = Vec::new();
        for &batch_queries in &loads.load_batches {
            // The peak first: loads are shares of that of the same batches.
            let offer = loads.offer(batch_queries, cores);
            let peak = loads.runs(&served, &offer).max_by(|a, b| a.rate.total_cmp(&b.rate));
            let peak = peak.expect("there is a run");
            println!(
                "| {batch_queries} | {:.0} | all | | {:.0} | {:.1} | | | | | |",
                peak.rate, peak.rate, peak.batch
            );
            peaks.push(peak.rate);
            for &load in &loads.load {
                let rate = if load <= SHARE_MAX { load * peak.rate } else { load };
                points.push(loads.point(&served, Offer { rate: Some(rate), ..offer }, load));
            }
        }
        println!();
        let name = format!("conjunctive-query-{}-{place}", workload.name);
        figures.map_or(Ok(()), |folder| loads.draw(folder, &name, &peaks, &points))?;
    }
    Ok(())
}

impl Loads {
    fn offer(&self, batch_queries: usize, cores: usize) -> Offer {
        Offer {
            batch_queries,
            deadline_ms: self.deadline_ms,
            rate: None,
            time: Duration::from_secs_f64(self.load_seconds.max(0.001)),
            cores,
        }
    }

    /// Runs, of which there is at least one.
    fn runs(&self, served: &Served, offer: &Offer) -> impl Iterator<Item = Outcome> {
        (0..self.load_rounds.max(1)).map(|_| served.run(offer))
    }

    /// Measures a load and prints its row.
    fn point(&self, served: &Served, offer: Offer, load: f64) -> Point {
        let in_ms = |nanoseconds: u64| Duration::from_nanos(nanoseconds).as_secs_f64() * 1e3;
        let p99 = |run: &Outcome| run.latency.value_at_quantile(0.99);
        let mut runs: Vec<Outcome> = self.runs(served, &offer).collect();
        // Other work on the machine only adds to latency: the lowest is the nearest to the truth.
        runs.sort_by_key(p99);
        let worst = runs.last().map_or(0, p99);
        let run = &runs[0];
        let milliseconds = QUANTILES.map(|(_, at)| in_ms(run.latency.value_at_quantile(at)));
        let [p50, p99, p999] = milliseconds;
        println!(
            "| {} | | {load} | {:.0} | {:.0} | {:.1} | {p50:.3} | {p99:.3} | {p999:.3} | {:.3} | {:.3} |",
            offer.batch_queries,
            offer.rate.unwrap_or_default(),
            run.rate,
            run.batch,
            in_ms(run.latency.max()),
            in_ms(worst),
        );
        Point { batch_queries: offer.batch_queries, load, milliseconds }
    }

    /// Draws the throughput, and for each load the latency, by the size of batches.
    fn draw(&self, folder: &Path, name: &str, peaks: &[f64], points: &[Point]) -> io::Result<()> {
        let about = format!("deadline {} ms", self.deadline_ms);
        let plot = |title: String, unit: &str| {
            Plot::new(title, about.clone(), Scale::Logarithmic)
                .axes("batch_queries", unit)
                .x_names(self.load_batches.iter().map(usize::to_string).collect())
        };
        let peaks = (0_u32..).map(f64::from).zip(peaks.iter().copied()).collect();
        plot("Conjunctive queries: peak of the operator".to_owned(), "queries/s")
            .main_line("peak", peaks)
            .write(folder, &format!("{name}-peak"))?;
        for &load in &self.load {
            let title = format!("Conjunctive queries: latency at a load of {load}");
            let mut plot = plot(title, "ms");
            for (place, (quantile, _)) in QUANTILES.iter().enumerate() {
                let at = |batch: usize| {
                    let mut of = points.iter();
                    of.find(|point| point.batch_queries == batch && point.load == load)
                        .map_or(0.0, |point| point.milliseconds[place].max(1e-3))
                };
                let line = (0_u32..).map(f64::from).zip(self.load_batches.iter().map(|&b| at(b)));
                plot = plot.line(quantile, line.collect());
            }
            plot.write(folder, &format!("{name}-latency-{load}"))?;
        }
        Ok(())
    }
}
