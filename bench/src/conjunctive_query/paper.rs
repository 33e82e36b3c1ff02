//! Figures 7 to 11 and tables I and II of the paper: the runtime of all queries and the response
//! time of a batch by its size, in the order of arrival and semi-sorted, and by bucket; on one
//! core, and on a device if there is one.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::runner::plot::{Plot, Scale};
use trommel_kernels::Isa;
use trommel_kernels::cuda::queries::{DeviceIndex, Policy, QueryCounts, Way};
use trommel_kernels::cuda::{CopyTimes, Device, DeviceError, Memory};
use trommel_kernels::inverted::{BatchScratch, QueryScratch};

use super::ask::Asked;
use super::index::Workload;
use super::semi_sort::{Bucket, buckets};

/// Sizes of batches: the paper's, and one.
const BATCHES: [usize; 9] = [1, 32, 128, 512, 1024, 2048, 8192, 16_384, 32_768];

/// Sizes of batches of a single bucket, as in figure 9.
const BATCHES_OF_BUCKETS: [usize; 3] = [64, 512, 16_384];

/// Queries whose answers are fetched at once in table II.
const BATCH_OF_TRANSFERS: usize = 2048;

/// The times of all queries.
#[derive(Clone, Copy)]
struct Times {
    runtime: Duration,
    /// Of a batch, median.
    response: Duration,
    /// Of the slowest batch.
    longest: Duration,
}

/// Answers the queries of a workload in batches of a size.
type Answer<'a> = dyn Fn(&Workload, usize) -> Result<Times, DeviceError> + 'a;

/// A line of the figures: a way of answering batches.
struct Line<'a> {
    name: &'static str,
    answer: Box<Answer<'a>>,
}

/// Devices, with the indexes on them.
pub(super) struct OnDevice<'a> {
    pub(super) device: &'a Device,
    pub(super) memory: &'a Arc<Memory>,
}

/// Where and how often is measured.
pub(super) struct Options<'a> {
    pub(super) on_device: Option<OnDevice<'a>>,
    pub(super) rounds: usize,
    pub(super) figures: Option<&'a Path>,
}

/// Measures, prints the tables and draws the figures.
///
/// # Errors
/// If a device fails or a figure cannot be written.
pub(super) fn run(workload: &Workload, options: &Options<'_>) -> io::Result<()> {
    let isa = Isa::available().last().expect("every processor is scalar");
    let buckets = buckets(workload);
    // One bucket after the other, so that batches hold queries of similar work.
    let order: Vec<usize> = buckets.iter().flat_map(|bucket| bucket.queries.clone()).collect();
    let sorted = workload.with_queries(&order);
    let mut lines = vec![Line {
        name: "one core",
        answer: Box::new(move |workload, batch| Ok(on_core(workload, isa, batch, options.rounds))),
    }];
    if let Some(on_device) = &options.on_device {
        lines.extend(on_device.lines(workload, options.rounds).map_err(io::Error::other)?);
    }
    by_batch(&lines, workload, &sorted, options)?;
    by_bucket(&lines, workload, &buckets, options)?;
    if let Some(OnDevice { device, .. }) = &options.on_device {
        transfers(device, workload, options.rounds).map_err(io::Error::other)?;
    }
    Ok(())
}

/// Counts in batches on one core; a batch of one is a query alone.
fn on_core(workload: &Workload, isa: Isa, batch: usize, rounds: usize) -> Times {
    let (mut one, mut many, mut counts) = (QueryScratch::new(), BatchScratch::new(), Vec::new());
    let begins: Vec<usize> = (0..workload.queries()).step_by(batch).collect();
    let mut times = vec![Vec::new(); begins.len()];
    let mut totals = Vec::new();
    for round in 0..=rounds.max(1) {
        let start = Instant::now();
        let mut before = start;
        for (&begin, times) in begins.iter().zip(&mut times) {
            let end = workload.queries().min(begin + batch);
            if batch == 1 {
                counts.clear();
                counts.push(workload.segment.count(isa, workload.query(begin), &mut one));
            } else {
                let queries = workload.batch(begin, end);
                workload.segment.count_batch(isa, queries, &mut many, &mut counts);
            }
            let now = Instant::now();
            // The first round warms up, and its answers are checked.
            if round == 0 {
                assert!(counts == workload.right.counts[begin..end], "wrong counts");
                before = Instant::now();
            } else {
                times.push(now - before);
                before = now;
            }
        }
        if round > 0 {
            totals.push(start.elapsed());
        }
    }
    let mut responses: Vec<Duration> = times.iter_mut().map(|times| median(times)).collect();
    let longest = responses.iter().copied().max().unwrap_or_default();
    Times { runtime: median(&mut totals), response: median(&mut responses), longest }
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

impl OnDevice<'_> {
    /// Our index and way, and the paper's block a query over plain lists.
    fn lines(&self, workload: &Workload, rounds: usize) -> Result<[Line<'_>; 2], DeviceError> {
        let index = DeviceIndex::upload(self.memory, &workload.segment)?;
        let plain = DeviceIndex::upload_plain(self.memory, &workload.segment)?;
        let line = |name, index, way| Line {
            name,
            answer: Box::new(move |workload: &Workload, batch: usize| {
                let batch = batch.min(workload.queries());
                let asked = Asked { workload, index: &index, policy: Policy::of(way), rounds };
                let measured = asked.measure::<QueryCounts>(self.device, batch)?;
                // Whole batches are measured, in a row; one alone gives the response time.
                let batches = workload.queries() as f64 / batch as f64;
                let (response, longest) = (measured.latency, measured.latency);
                Ok(Times { runtime: measured.whole.mul_f64(batches), response, longest })
            }),
        };
        Ok([
            line("GPU", index, Way::Units),
            line("GPU, plain ids, block a query", plain, Way::Blocks),
        ])
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Tables and figures over sizes of batches: 7, 8, 10, 11, and table I.
fn by_batch(
    lines: &[Line<'_>],
    workload: &Workload,
    sorted: &Workload,
    options: &Options<'_>,
) -> io::Result<()> {
    let queries = workload.queries();
    println!("{queries} queries in batches, semi-sorted in 20 buckets or not; ms\n");
    println!("| where, order | batch | all queries | a batch, median | slowest batch |");
    println!("|:-------------|------:|------------:|----------------:|--------------:|");
    let names = BATCHES.map(|batch| batch.to_string()).to_vec();
    let plot = |title: &str| {
        Plot::new(title, format!("{}, {queries} queries", workload.name), Scale::Logarithmic)
            .axes("queries of a batch", "ms")
            .x_names(names.clone())
    };
    let mut runtime = plot("Conjunctive queries: runtime of all queries");
    let mut response = plot("Conjunctive queries: response time of a batch");
    for line in lines {
        for (order, workload) in [("as they come", workload), ("semi-sorted", sorted)] {
            let name = format!("{}, {order}", line.name);
            let mut points = (Vec::new(), Vec::new());
            for (at, &batch) in (0_u32..).zip(&BATCHES) {
                let times = (line.answer)(workload, batch).map_err(io::Error::other)?;
                let [all, one, slowest] =
                    [times.runtime, times.response, times.longest].map(milliseconds);
                println!("| {name} | {batch} | {all:.1} | {one:.4} | {slowest:.4} |");
                points.0.push((f64::from(at), all));
                points.1.push((f64::from(at), one));
            }
            runtime = runtime.line(&name, points.0);
            response = response.line(&name, points.1);
        }
    }
    println!();
    let Some(folder) = options.figures else { return Ok(()) };
    runtime.write(folder, &format!("conjunctive-query-{}-runtime", workload.name))?;
    response.write(folder, &format!("conjunctive-query-{}-response", workload.name))?;
    Ok(())
}

/// Table and figure 9: microseconds a query, by bucket.
fn by_bucket(
    lines: &[Line<'_>],
    workload: &Workload,
    buckets: &[Bucket],
    options: &Options<'_>,
) -> io::Result<()> {
    // The figure of the paper has its CPU, a query at a time, beside the batches of its GPU.
    let sizes = [1].into_iter().chain(BATCHES_OF_BUCKETS);
    let ways: Vec<(&Line, usize)> =
        lines.iter().flat_map(|line| sizes.clone().map(move |size| (line, size))).collect();
    let head: Vec<String> =
        ways.iter().map(|(line, size)| format!("{}, {size}", line.name)).collect();
    println!("Microseconds a query, by the shortest list and the queries of a batch\n");
    println!("| shortest list below | queries | {} |", head.join(" | "));
    println!("|--------------------:|--------:|{}", "---:|".repeat(ways.len()));
    let mut points = vec![Vec::new(); ways.len()];
    for (at, bucket) in (0_u32..).zip(buckets) {
        let part = workload.with_queries(&bucket.queries);
        let mut cells = Vec::new();
        for ((line, size), points) in ways.iter().zip(&mut points) {
            let times = (line.answer)(&part, *size).map_err(io::Error::other)?;
            let each = 1e3 * milliseconds(times.runtime) / part.queries() as f64;
            cells.push(format!("{each:.2}"));
            points.push((f64::from(at), each));
        }
        println!("| {} | {} | {} |", bucket.name(), part.queries(), cells.join(" | "));
    }
    println!();
    let Some(folder) = options.figures else { return Ok(()) };
    let title = "Conjunctive queries: time of a query by its shortest list";
    let mut plot = Plot::new(title, workload.name.clone(), Scale::Logarithmic)
        .axes("documents of the shortest list, less than", "microseconds a query")
        .x_names(buckets.iter().map(Bucket::name).collect());
    // Few enough lines for as many colours: one query alone, and middle batches.
    for ((name, points), (_, size)) in head.iter().zip(points).zip(&ways) {
        if [1, 512].contains(size) {
            plot = plot.line(name, points);
        }
    }
    plot.write(folder, &format!("conjunctive-query-{}-buckets", workload.name))?;
    Ok(())
}

/// Table II: plain copies of answers, one for each query or one for each batch. As in the paper, an
/// answer has the room of its shortest list.
fn transfers(device: &Device, workload: &Workload, rounds: usize) -> Result<(), DeviceError> {
    let queries = workload.queries();
    let ids: u64 = (0..queries).map(|query| u64::from(workload.shortest(query))).sum();
    let mean = usize::try_from(4 * ids).expect("it is in memory") / queries.max(1);
    println!("Copies of answers from the device, of {mean} bytes a query; ms for all queries\n");
    println!("| copies | bytes of one | ms |");
    println!("|:-------|-------------:|---:|");
    for (name, of_copy) in [("one a query", 1), ("one a batch of 2,048", BATCH_OF_TRANSFERS)] {
        // A copy has some bytes even if all answers are empty.
        let bytes = (mean * of_copy).max(4);
        let copy = CopyTimes::measure(device, bytes, rounds)?;
        let all = copy.device_to_host.mul_f64(queries as f64 / of_copy as f64);
        println!("| {name} | {bytes} | {:.1} |", milliseconds(all));
    }
    println!();
    Ok(())
}
