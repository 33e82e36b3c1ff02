//! Figures 7 to 11 and tables I and II of the paper: the runtime of all queries and the response
//! time of a batch by its size, in the order of arrival and semi-sorted, and by bucket; on one
//! core, and on a device if there is one.

mod semi_sort;

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use trommel_kernels::Isa;
use trommel_kernels::cuda::queries::{DeviceIndex, Policy, QueryCounts, Way};
use trommel_kernels::cuda::{CopyTimes, Device, DeviceError, Memory};
use trommel_kernels::inverted::{BatchScratch, QueryScratch};

pub(super) use self::semi_sort::shares;
use self::semi_sort::{Bucket, buckets};
use super::gpu::ask::Asked;
use super::workload::Workload;
use crate::runner::Figures;
use crate::runner::plot::{Plot, Scale};
use crate::runner::report::{Table, cells, right};
use crate::runner::turns::median;

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
    pub(super) figures: &'a Figures,
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
    by_bucket(&lines, workload, &buckets)?;
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
    for round in 0..=rounds {
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
    let responses: Vec<Duration> = times.into_iter().map(median).collect();
    let longest = responses.iter().copied().max().unwrap_or_default();
    Times { runtime: median(totals), response: median(responses), longest }
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
    let mut table =
        Table::new("where, order | batch: | all queries: | a batch, median: | slowest batch:");
    let plot = |what: &str| {
        let about = format!("{}, {queries} queries", workload.name);
        Plot::new(format!("Conjunctive queries: {what}"), about, Scale::Logarithmic)
            .axes("queries of a batch", "ms")
            .x_names(BATCHES.map(|batch| batch.to_string()).to_vec())
    };
    let mut runtime = plot("runtime of all queries");
    let mut response = plot("response time of a batch");
    for line in lines {
        for (order, workload) in [("as they come", workload), ("semi-sorted", sorted)] {
            let name = format!("{}, {order}", line.name);
            let (mut runtimes, mut responses) = (Vec::new(), Vec::new());
            for &batch in &BATCHES {
                let times = (line.answer)(workload, batch).map_err(io::Error::other)?;
                let [all, one, slowest] =
                    [times.runtime, times.response, times.longest].map(milliseconds);
                table.row(format!("{name} | {batch} | {all:.1} | {one:.4} | {slowest:.4}"));
                runtimes.push(Some(all));
                responses.push(Some(one));
            }
            runtime = runtime.line_by_number(&name, runtimes);
            response = response.line_by_number(&name, responses);
        }
    }
    drop(table);
    let name = format!("conjunctive-query-{}", workload.name);
    runtime.save(options.figures, &format!("{name}-runtime"))?;
    response.save(options.figures, &format!("{name}-response"))
}

/// Figure 9 as a table: microseconds a query, by bucket.
fn by_bucket(lines: &[Line<'_>], workload: &Workload, buckets: &[Bucket]) -> io::Result<()> {
    // The figure of the paper has its CPU, a query at a time, beside the batches of its GPU.
    let sizes = [1].into_iter().chain(BATCHES_OF_BUCKETS);
    let ways: Vec<(&Line, usize)> =
        lines.iter().flat_map(|line| sizes.clone().map(move |size| (line, size))).collect();
    let head: Vec<String> =
        ways.iter().map(|(line, size)| format!("{}, {size}", line.name)).collect();
    println!("Microseconds a query, by the shortest list and the queries of a batch\n");
    let mut table = Table::new(&format!("shortest list below: | queries: | {}", right(&head)));
    for bucket in buckets {
        let part = workload.with_queries(&bucket.queries);
        let each = |(line, size): &(&Line, usize)| {
            let times = (line.answer)(&part, *size)?;
            Ok(format!("{:.2}", 1e3 * milliseconds(times.runtime) / part.queries() as f64))
        };
        let times = ways.iter().map(each).collect::<Result<Vec<_>, DeviceError>>();
        let times = cells(times.map_err(io::Error::other)?);
        table.row(format!("{} | {} | {times}", bucket.name(), part.queries()));
    }
    Ok(())
}

/// Table II: plain copies of answers, one for each query or one for each batch. As in the paper, an
/// answer has the room of its shortest list.
fn transfers(device: &Device, workload: &Workload, rounds: usize) -> Result<(), DeviceError> {
    let queries = workload.queries();
    let ids: u64 = (0..queries).map(|query| u64::from(workload.shortest(query))).sum();
    let mean = usize::try_from(4 * ids).expect("it is in memory") / queries.max(1);
    println!("Copies of answers from the device, of {mean} bytes a query; ms for all queries\n");
    let mut table = Table::new("copies | bytes of one: | ms:");
    for (name, of_copy) in [("one a query", 1), ("one a batch of 2,048", BATCH_OF_TRANSFERS)] {
        // A copy has some bytes even if all answers are empty.
        let bytes = (mean * of_copy).max(4);
        let copy = CopyTimes::measure(device, bytes, rounds)?;
        let all = copy.device_to_host.mul_f64(queries as f64 / of_copy as f64);
        table.row(format!("{name} | {bytes} | {:.1}", milliseconds(all)));
    }
    Ok(())
}
