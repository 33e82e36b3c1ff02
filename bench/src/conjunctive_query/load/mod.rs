//! Tables of the operator under loads: throughput, and latency by the size of its batches.

mod served;

use std::io;
use std::time::Duration;

use self::served::{Offer, Outcome, Served};
use super::workload::Workload;
use crate::runner::report::Table;

/// A load up to this is a share of the peak, a larger one is in queries a second.
const SHARE_MAX: f64 = 10.0;

/// Loads to be measured.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Loads {
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

/// Measures, and prints the tables.
///
/// # Errors
/// If the index cannot be written.
pub(super) fn run(loads: &Loads, workload: &Workload) -> io::Result<()> {
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
        let mut table = Table::new(
            "batch_queries: | peak, queries/s: | load: | queries/s: | answered/s: | in a batch: | \
             p50: | p99: | p99.9: | max: | worst p99:",
        );
        for &batch_queries in &loads.load_batches {
            // The peak first: loads are shares of that of the same batches.
            let offer = loads.offer(batch_queries, cores);
            let peak = loads.runs(&served, &offer).max_by(|a, b| a.rate.total_cmp(&b.rate));
            let peak = peak.expect("there is a run");
            let Outcome { rate, batch, .. } = &peak;
            table.row(format!("{batch_queries} | {rate:.0} | all |  | {rate:.0} | {batch:.1}"));
            for &load in &loads.load {
                let rate = if load <= SHARE_MAX { load * peak.rate } else { load };
                let offer = Offer { rate: Some(rate), ..offer };
                table.row(loads.row(&served, offer, load));
            }
        }
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

    /// Measures a load and returns its row.
    fn row(&self, served: &Served, offer: Offer, load: f64) -> String {
        let in_ms = |nanoseconds: u64| Duration::from_nanos(nanoseconds).as_secs_f64() * 1e3;
        let p99 = |run: &Outcome| run.latency.value_at_quantile(0.99);
        let mut runs: Vec<Outcome> = self.runs(served, &offer).collect();
        // Other work on the machine only adds to latency: the lowest is the nearest to the truth.
        runs.sort_by_key(p99);
        let worst = runs.last().map_or(0, p99);
        let run = &runs[0];
        let [p50, p99, p999] =
            [0.5, 0.99, 0.999].map(|at| in_ms(run.latency.value_at_quantile(at)));
        format!(
            "{} |  | {load} | {:.0} | {:.0} | {:.1} | {p50:.3} | {p99:.3} | {p999:.3} | {:.3} | {:.3}",
            offer.batch_queries,
            offer.rate.unwrap_or_default(),
            run.rate,
            run.batch,
            in_ms(run.latency.max()),
            in_ms(worst),
        )
    }
}
