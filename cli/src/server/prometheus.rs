//! Metrics in the two text formats that Prometheus reads: OpenMetrics, and the older one of its own
//! for programs that do not ask for the first.

use std::fmt;
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};
use trommel::metrics::{EdgeMetrics, Metrics, PartMetrics, StageMetrics};
use trommel::runtime::RunPhase;

/// Percentiles of the latencies, each with its quantile.
const PERCENTILES: [(&str, f64); 3] = [("50", 0.5), ("90", 0.9), ("99", 0.99)];
/// Operators' numbers that say how much there is at present; the others count events.
const LEVELS: [&str; 15] = [
    "answer_max_ns",
    "chunk_buffers",
    "distinct_tokens",
    "documents",
    "files_followed",
    "frequent_items",
    "index_bytes",
    "items",
    "overlap_ppm",
    "panes",
    "postings",
    "segments",
    "sets",
    "state_bytes",
    "terms",
];

/// The text for a pipeline.
pub(super) fn text(
    pipeline: &str,
    metrics: Metrics,
    phase: RunPhase,
) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix_and_labels(
        "trommel",
        [("pipeline".into(), pipeline.to_owned().into())].into_iter(),
    );
    registry.register_collector(Box::new(Run { metrics, phase }));
    let mut text = String::new();
    encode(&mut text, &registry)?;
    Ok(text)
}

/// The same text in the older format: the names of counters in comments have their ending, and
/// there are no units and no mark of the end.
pub(super) fn as_older(text: &str) -> String {
    let mut older = String::with_capacity(text.len());
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if line.starts_with("# UNIT ") || line == "# EOF" {
            continue;
        }
        let kind = if line.starts_with("# HELP ") { lines.peek().copied() } else { Some(line) };
        let is_counter =
            kind.is_some_and(|kind| kind.starts_with("# TYPE ") && kind.ends_with(" counter"));
        let mut words = line.splitn(4, ' ');
        match (is_counter, words.next(), words.next(), words.next(), words.next()) {
            (true, Some(mark), Some(word), Some(name), Some(rest)) => {
                older.push_str(&format!("{mark} {word} {name}_total {rest}\n"));
            }
            _ => older.extend([line, "\n"]),
        }
    }
    older
}

#[derive(Debug)]
struct Run {
    metrics: Metrics,
    phase: RunPhase,
}

type Labels<'a> = Vec<(&'static str, &'a str)>;
/// A value of a part, and its name without the prefix.
type OfPart<T> = fn(&PartMetrics) -> T;

impl Run {
    fn parts(&self) -> impl Iterator<Item = (Labels<'_>, &PartMetrics)> {
        self.metrics
            .stages
            .iter()
            .flat_map(|stage| stage.parts.iter().map(move |part| (part_labels(stage, part), part)))
    }

    fn count_parts(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        name: &str,
        help: &str,
        value: OfPart<u64>,
    ) -> fmt::Result {
        let values = self.parts().map(|(labels, part)| (labels, ConstCounter::new(value(part))));
        family(encoder, name, help, None, values)
    }

    fn time_parts(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        name: &str,
        help: &str,
        value: OfPart<Duration>,
    ) -> fmt::Result {
        let seconds = |part| ConstCounter::new(value(part).as_secs_f64());
        let values = self.parts().map(|(labels, part)| (labels, seconds(part)));
        family(encoder, name, help, Some(&Unit::Seconds), values)
    }

    fn encode_parts(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        self.count_parts(encoder, "stage_items_in", "Items taken", |part| part.items_in)?;
        self.count_parts(encoder, "stage_batches_in", "Batches taken", |part| part.batches_in)?;
        self.count_parts(encoder, "stage_items_out", "Items sent", |part| part.items_out)?;
        self.count_parts(encoder, "stage_batches_out", "Batches sent", |part| part.batches_out)?;
        let read = "Bytes read, before decompression";
        self.count_parts(encoder, "stage_read_bytes", read, |part| part.progress.bytes)?;
        let busy = "Time inside the operator";
        self.time_parts(encoder, "stage_busy", busy, |part| part.busy)?;
        let blocked = "Time during which an output had no space";
        self.time_parts(encoder, "stage_blocked", blocked, |part| part.blocked)?;
        let idle = "Time waiting for input";
        self.time_parts(encoder, "stage_idle", idle, |part| part.idle)?;
        let finished = self
            .parts()
            .map(|(labels, part)| (labels, ConstGauge::new(i64::from(part.is_finished))));
        family(encoder, "stage_finished", "Whether the stage has ended", None, finished)
    }

    fn encode_latencies(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let latencies = self.metrics.stages.iter().flat_map(|stage| {
            PERCENTILES.map(move |(percentile, quantile)| {
                let labels = vec![
                    ("stage", stage.id.as_str()),
                    ("operator", stage.operator),
                    ("percentile", percentile),
                ];
                (labels, ConstGauge::new(stage.latency().quantile(quantile).as_secs_f64()))
            })
        });
        let help = "Time of a batch from its source to the end of the stage";
        family(encoder, "stage_latency", help, Some(&Unit::Seconds), latencies)
    }

    /// The operators' own numbers, a family for each name.
    fn encode_counters(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let mut names: Vec<&str> =
            self.parts().flat_map(|(_, part)| part.counters.iter().map(|c| c.0)).collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            let values = || {
                self.parts().flat_map(|(labels, part)| {
                    let named = part.counters.iter().filter(|counter| counter.0 == name);
                    named.map(move |&(name, value)| (labels.clone(), shown(name, value)))
                })
            };
            let help = format!("`{name}` as the operator reports it");
            let shown = format!("operator_{}", shown_name(name));
            if LEVELS.contains(&name) {
                let levels = values().map(|(labels, value)| (labels, ConstGauge::new(value)));
                family(encoder, &shown, &help, None, levels)?;
            } else {
                let counts = values().map(|(labels, value)| (labels, ConstCounter::new(value)));
                family(encoder, &shown, &help, None, counts)?;
            }
        }
        Ok(())
    }

    fn encode_edges(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let edges = || self.metrics.edges.iter().map(|edge| (edge_labels(edge), edge));
        let gauge = |value: u64| ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
        let depth = edges().map(|(labels, edge)| (labels, gauge(edge.depth)));
        family(encoder, "edge_batches", "Batches that wait in a queue", None, depth)?;
        let most = edges().map(|(labels, edge)| (labels, gauge(edge.depth_max)));
        family(
            encoder,
            "edge_batches_max",
            "Maximum of batches that waited in a queue",
            None,
            most,
        )?;
        let bytes = edges().map(|(labels, edge)| (labels, gauge(edge.bytes)));
        family(encoder, "edge", "Bytes that wait in a queue", Some(&Unit::Bytes), bytes)?;
        let blocked =
            edges().map(|(labels, edge)| (labels, ConstCounter::new(edge.blocked.as_secs_f64())));
        let help = "Time during which the producer had a batch that did not fit";
        family(encoder, "edge_blocked", help, Some(&Unit::Seconds), blocked)
    }
}

impl Collector for Run {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let wall = [(Labels::new(), ConstGauge::new(self.metrics.wall.as_secs_f64()))];
        family(&mut encoder, "wall", "Time since the start", Some(&Unit::Seconds), wall)?;
        let is_draining =
            [(Labels::new(), ConstGauge::new(i64::from(self.phase != RunPhase::Running)))];
        family(&mut encoder, "stopping", "Whether the run has been stopped", None, is_draining)?;
        self.encode_parts(&mut encoder)?;
        self.encode_latencies(&mut encoder)?;
        self.encode_counters(&mut encoder)?;
        self.encode_edges(&mut encoder)
    }
}

/// One metric with its values.
fn family<'a, M: EncodeMetric>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    unit: Option<&Unit>,
    values: impl IntoIterator<Item = (Labels<'a>, M)>,
) -> fmt::Result {
    let mut values = values.into_iter().peekable();
    let Some((_, first)) = values.peek() else { return Ok(()) };
    let mut encoder = encoder.encode_descriptor(name, help, unit, first.metric_type())?;
    values.try_for_each(|(labels, value)| value.encode(encoder.encode_family(&labels)?))
}

fn part_labels<'a>(stage: &'a StageMetrics, part: &'a PartMetrics) -> Labels<'a> {
    let mut labels = vec![("stage", stage.id.as_str()), ("operator", stage.operator)];
    if stage.parts.len() > 1 {
        labels.push(("part", &part.name));
    }
    labels
}

fn edge_labels(edge: &EdgeMetrics) -> Labels<'_> {
    vec![("from", &edge.from), ("to", &edge.to)]
}

/// The name of an operator's number with the unit of [`shown`].
fn shown_name(name: &str) -> String {
    match (name.strip_suffix("_ns"), name.strip_suffix("_ppm")) {
        (Some(name), _) => format!("{name}_seconds"),
        (_, Some(name)) => format!("{name}_ratio"),
        _ => name.to_owned(),
    }
}

/// An operator's number: times in seconds, shares as fractions.
#[expect(clippy::cast_precision_loss, reason = "metrics are floats")]
fn shown(name: &str, value: u64) -> f64 {
    let value = value as f64;
    match name {
        name if name.ends_with("_ns") => value / 1e9,
        name if name.ends_with("_ppm") => value / 1e6,
        _ => value,
    }
}
