//! The report of a run as a JSON object. The command line writes the report (`--report`) and
//! answers `GET /api/metrics` with it, and a Python program reads it.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::error::RunError;
use crate::metrics::{EdgeMetrics, Latency, Metrics, PartMetrics, StageMetrics};

/// The numbers of a run, in the order of the report. The [`Display`](fmt::Display) of a report is
/// JSON text.
///
/// # Examples
/// ```
/// # mod pipeline { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/numbers.rs")); }
/// # use pipeline::*;
/// # use trommel_engine::graph::Graph;
/// # use trommel_engine::runtime::RunOptions;
/// # let mut graph = Graph::new();
/// # let numbers = graph.add("numbers", Numbers(0, 1_000));
/// # graph.add_after(numbers, "sum", Sum(0));
/// use trommel_engine::report::Report;
///
/// let metrics = graph.build()?.run(RunOptions::new())?;
/// let text = Report::new("sum of numbers", &metrics, None).to_string();
/// let report: serde_json::Value = serde_json::from_str(&text)?;
/// assert_eq!(report["stages"][1]["items_in"], 1_000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Serialize)]
pub struct Report<'a> {
    pipeline: &'a str,
    wall_seconds: f64,
    device: &'static str,
    stages: Vec<StageReport<'a>>,
    edges: Vec<EdgeReport<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Maximum inputs or rows that were left out and that the report names; each worker of a stage has
/// some.
const LEFT_OUT_MAX: usize = 20;

#[derive(Debug, Serialize)]
struct StageReport<'a> {
    id: &'a str,
    operator: &'static str,
    items_in: u64,
    items_out: u64,
    /// Number of workers that did the work side by side.
    workers: usize,
    busy_seconds: f64,
    /// The part of `busy_seconds` that no other worker could share.
    serial_seconds: f64,
    blocked_seconds: f64,
    idle_seconds: f64,
    items_per_second: f64,
    latency_ms: LatencyReport,
    /// The operator's own numbers.
    #[serde(flatten)]
    counters: BTreeMap<String, ReportNumber>,
    /// Inputs that were left out, each with the reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<&'a str>,
    /// Byte positions up to which followed files have been read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    positions: Vec<InputPosition<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<PartReport<'a>>,
}

/// A number of an operator, in the unit that the end of its name says.
#[derive(Debug, PartialEq, Serialize)]
#[serde(untagged)]
enum ReportNumber {
    Count(u64),
    /// Seconds, or a share.
    Fraction(f64),
}

/// The name and the number of a counter in the report: times in seconds, shares as fractions.
#[expect(clippy::cast_precision_loss, reason = "times and shares are not exact")]
fn shown(name: &str, count: u64) -> (String, ReportNumber) {
    if let Some(name) = name.strip_suffix("_ns") {
        (format!("{name}_seconds"), ReportNumber::Fraction(count as f64 / 1e9))
    } else if let Some(name) = name.strip_suffix("_ppm") {
        (name.to_owned(), ReportNumber::Fraction(count as f64 / 1e6))
    } else {
        (name.to_owned(), ReportNumber::Count(count))
    }
}

/// A followed file. A renamed file keeps the name by which it was opened.
#[derive(Debug, Serialize)]
struct InputPosition<'a> {
    path: &'a str,
    bytes: u64,
}

#[derive(Debug, Serialize)]
struct PartReport<'a> {
    name: &'a str,
    items_in: u64,
    items_out: u64,
    busy_seconds: f64,
    blocked_seconds: f64,
    idle_seconds: f64,
}

#[derive(Debug, Serialize)]
struct LatencyReport {
    p50: f64,
    p99: f64,
    max: f64,
}

#[derive(Debug, Serialize)]
struct EdgeReport<'a> {
    from: &'a str,
    to: &'a str,
    depth: u64,
    depth_max: u64,
    bytes: u64,
    blocked_seconds: f64,
}

impl<'a> Report<'a> {
    /// The report of the pipeline of this name, with the first cause if the run failed.
    #[must_use]
    pub fn new(pipeline: &'a str, metrics: &'a Metrics, error: Option<&RunError>) -> Self {
        Self {
            pipeline,
            wall_seconds: metrics.wall.as_secs_f64(),
            device: device(metrics),
            stages: metrics.stages.iter().map(|stage| StageReport::new(stage, metrics)).collect(),
            edges: metrics.edges.iter().map(EdgeReport::new).collect(),
            error: error.map(ToString::to_string),
        }
    }
}

impl fmt::Display for Report<'_> {
    /// The JSON text, with a newline.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = serde_json::to_string_pretty(self).map_err(|_| fmt::Error)?;
        writeln!(f, "{text}")
    }
}

impl<'a> StageReport<'a> {
    fn new(stage: &'a StageMetrics, metrics: &Metrics) -> Self {
        let sum = |time: fn(&PartMetrics) -> Duration| {
            stage.parts.iter().map(time).sum::<Duration>().as_secs_f64()
        };
        let mut counters = BTreeMap::new();
        for &(name, count) in stage.parts.iter().flat_map(|part| &part.counters) {
            *counters.entry(name).or_insert(0) += count;
        }
        let inputs = || stage.parts.iter().map(|part| &part.inputs);
        let parts = if stage.parts.len() > 1 { &stage.parts[..] } else { &[] };
        Self {
            id: &stage.id,
            operator: stage.operator,
            items_in: stage.items_in(),
            items_out: stage.items_out(),
            workers: stage.workers(),
            busy_seconds: stage.busy().as_secs_f64(),
            serial_seconds: stage.serial().as_secs_f64(),
            blocked_seconds: sum(|part| part.blocked),
            idle_seconds: sum(|part| part.idle),
            items_per_second: rate(stage, metrics.wall),
            latency_ms: LatencyReport::new(stage.latency()),
            counters: counters.into_iter().map(|(name, count)| shown(name, count)).collect(),
            left_out: inputs()
                .flat_map(|inputs| &inputs.left_out)
                .map(AsRef::as_ref)
                .take(LEFT_OUT_MAX)
                .collect(),
            positions: inputs()
                .flat_map(|inputs| &inputs.positions)
                .map(|(path, bytes)| InputPosition { path, bytes: *bytes })
                .collect(),
            parts: parts.iter().map(PartReport::new).collect(),
        }
    }
}

/// The device of kernels: `cuda` if any chunk was answered there.
fn device(metrics: &Metrics) -> &'static str {
    let parts = metrics.stages.iter().flat_map(|stage| &stage.parts);
    let mut counters = parts.flat_map(|part| &part.counters);
    if counters.any(|&(name, count)| name == "waves_on_device" && count > 0) {
        "cuda"
    } else {
        "cpu"
    }
}

/// Items taken a second of the run; of a source, items sent.
#[expect(clippy::cast_precision_loss, reason = "a rate is not exact")]
fn rate(stage: &StageMetrics, wall: Duration) -> f64 {
    let items = if stage.items_in() > 0 { stage.items_in() } else { stage.items_out() };
    if wall.is_zero() { 0.0 } else { items as f64 / wall.as_secs_f64() }
}

impl<'a> PartReport<'a> {
    fn new(part: &'a PartMetrics) -> Self {
        Self {
            name: &part.name,
            items_in: part.items_in,
            items_out: part.items_out,
            busy_seconds: part.busy.as_secs_f64(),
            blocked_seconds: part.blocked.as_secs_f64(),
            idle_seconds: part.idle.as_secs_f64(),
        }
    }
}

impl LatencyReport {
    fn new(latency: &Latency) -> Self {
        let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
        Self {
            p50: milliseconds(latency.quantile(0.5)),
            p99: milliseconds(latency.quantile(0.99)),
            max: milliseconds(latency.max()),
        }
    }
}

impl<'a> EdgeReport<'a> {
    fn new(edge: &'a EdgeMetrics) -> Self {
        Self {
            from: &edge.from,
            to: &edge.to,
            depth: edge.depth,
            depth_max: edge.depth_max,
            bytes: edge.bytes,
            blocked_seconds: edge.blocked.as_secs_f64(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_shown_in_the_unit_that_its_name_ends_with() {
        assert_eq!(
            shown("kernel_ns", 1_500_000_000),
            ("kernel_seconds".into(), ReportNumber::Fraction(1.5))
        );
        assert_eq!(shown("overlap_ppm", 250_000), ("overlap".into(), ReportNumber::Fraction(0.25)));
        assert_eq!(shown("waves", 7), ("waves".into(), ReportNumber::Count(7)));
    }
}
