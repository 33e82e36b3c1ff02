//! The progress of a run, on one line of a terminal.
//!
//! The thread that waits for the pipeline redraws the line. The line is removed when a stage begins
//! to write to the same terminal.

pub(crate) mod growth;

use std::io::{self, IsTerminal};
use std::time::Duration;

use indicatif::{BinaryBytes, ProgressBar, ProgressDrawTarget, ProgressStyle};
use trommel::Metrics;
use trommel::files::before_stdout;
use trommel::metrics::StageMetrics;

use crate::units::short;

const REDRAWS_PER_SECOND: u8 = 10;

/// The line, or none if it would not be seen.
pub(crate) struct Progress {
    line: ProgressBar,
    ends: Ends,
}

/// Ids of the stages that the line counts.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    /// Those whose output is counted.
    pub(crate) sources: Vec<String>,
    /// Those whose input is counted.
    pub(crate) sinks: Vec<String>,
}

impl Progress {
    /// A line for a pipeline with these ends, if standard error is a terminal and `is_wanted`.
    pub(crate) fn new(ends: Ends, is_wanted: bool) -> Self {
        let is_shown = is_wanted && io::stderr().is_terminal();
        let line = if is_shown {
            let target = ProgressDrawTarget::stderr_with_hz(REDRAWS_PER_SECOND);
            let line = ProgressBar::with_draw_target(None, target);
            if io::stdout().is_terminal() {
                let line = line.clone();
                before_stdout(move || line.finish_and_clear());
            }
            line.with_style(style("{spinner} {msg}"))
        } else {
            ProgressBar::hidden()
        };
        Self { line, ends }
    }

    /// Time between two draws, if there is a line.
    pub(crate) fn interval(&self) -> Option<Duration> {
        (!self.line.is_hidden()).then(|| Duration::from_secs(1) / REDRAWS_PER_SECOND.into())
    }

    /// Shows the numbers so far, if there is a line.
    pub(crate) fn draw(&self, metrics: &Metrics) {
        if self.line.is_hidden() || self.line.is_finished() {
            return;
        }
        let read = Reading::of(metrics, &self.ends);
        if read.bytes_total.is_some() && self.line.length().is_none() {
            self.line.set_style(style("{bar:24} {percent:>3} %  {msg}  {eta} left"));
        }
        self.line.set_message(read.describe(metrics.wall.as_secs_f64()));
        if let Some(total) = read.bytes_total {
            self.line.set_length(total);
        }
        self.line.set_position(read.bytes);
    }

    /// Writes a line to standard error, above the progress.
    pub(crate) fn say(&self, line: &str) {
        self.line.suspend(|| crate::say(line));
    }

    /// Removes the line.
    pub(crate) fn clear(&self) {
        self.line.finish_and_clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template).expect("the template is a constant");
    style.progress_chars("━━╌")
}

/// The progress of the sources of a run, and the rows that have reached its sinks.
#[derive(Debug, Default, PartialEq, Eq)]
struct Reading {
    items: u64,
    bytes: u64,
    /// Known when all sources know it.
    bytes_total: Option<u64>,
    rows_out: u64,
}

impl Reading {
    fn of(metrics: &Metrics, ends: &Ends) -> Self {
        let stages = ends.sources.iter().filter_map(|id| metrics.stage(id));
        let sinks = ends.sinks.iter().filter_map(|id| metrics.stage(id));
        let rows_out = sinks.map(StageMetrics::items_in).sum();
        let mut reading = Self { bytes_total: Some(0), rows_out, ..Self::default() };
        for source in stages {
            let progress = source.progress();
            reading.items += source.items_out();
            reading.bytes += progress.bytes;
            reading.bytes_total =
                reading.bytes_total.zip(progress.bytes_total).map(|(sum, bytes)| sum + bytes);
        }
        Self { bytes_total: reading.bytes_total.filter(|&bytes| bytes > 0), ..reading }
    }

    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rate is positive, and shown to three digits"
    )]
    fn describe(&self, seconds: f64) -> String {
        let rate = (self.items as f64 / seconds.max(1e-3)) as u64;
        let mut text = format!("{} items  {} items/s", short(self.items), short(rate));
        match self.bytes_total {
            Some(total) => {
                text.push_str(&format!("  {} of {}", BinaryBytes(self.bytes), BinaryBytes(total)));
            }
            None if self.bytes > 0 => text.push_str(&format!("  {}", BinaryBytes(self.bytes))),
            None => {}
        }
        if self.rows_out > 0 {
            text.push_str(&format!("  {} rows out", short(self.rows_out)));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_told_as_far_as_they_are_known() {
        let of = |bytes, bytes_total| Reading { items: 2_000_000, bytes, bytes_total, rows_out: 0 };
        let rate = "2.00 M items  1.00 M items/s";
        assert_eq!(of(0, None).describe(2.0), rate);
        assert_eq!(of(512, None).describe(2.0), format!("{rate}  512 B"));
        assert_eq!(of(512, Some(2048)).describe(2.0), format!("{rate}  512 B of 2.00 KiB"));
        let with_rows = Reading { rows_out: 3_000_000, ..of(0, None) };
        assert_eq!(with_rows.describe(2.0), format!("{rate}  3.00 M rows out"));
    }
}
