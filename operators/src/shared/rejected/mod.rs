//! Rows and lines that cannot be used, and the actions for such rows.
//!
//! A stage that finds a bad row ends the run, leaves the row out, or sends the row to the output
//! `rejected`, as [`OnError`] says. The columns of this output are the same for all stages, so that
//! one stage can take the outputs of several stages.
//!
//! A source makes rows of lines with faults ([`Rejected`]). An operator looks for faults in the
//! columns that it reads ([`Faults`]), and [`BadRows`] applies the action of `on_error`.
//!
//! | file | contents |
//! |---|---|
//! | `bad_rows` | rows of batches that an operator cannot use |

mod bad_rows;

use std::sync::Arc;

use arrow_array::builder::{ArrayBuilder as _, StringBuilder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_json::writer::LineDelimitedWriter;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trommel_engine::operator::Demand;

pub(crate) use self::bad_rows::{BadRows, Faults};

/// Names of the outputs of a stage that sends rejected rows away.
const PORTS: &[&str] = &["", "rejected"];
/// The output of rejected rows.
pub(crate) const PORT: usize = 1;
/// Maximum rejected rows and files that the report names.
pub(crate) const NAMED_MAX: usize = 20;

/// Action for a row, a line or a file that cannot be used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OnError {
    /// End the run with an error that names the row, or the file and the line.
    #[default]
    Fail,
    /// Leave it out. A row or a line is counted in `skipped`; a file is counted in
    /// `files_skipped`, and the first 20 are named in a warning and in the report. Rows of a
    /// damaged file up to the damage are kept.
    Skip,
    /// Send it to the output `rejected`, with its place and the reason, and count it in
    /// `rejected`. A file is also counted and named as with `skip`. The report names the first 20
    /// lines.
    Reject,
}

impl OnError {
    /// Whether the run continues without the bad row.
    pub(crate) fn goes_on(self) -> bool {
        self != Self::Fail
    }

    /// Names of the outputs of a stage with this action; empty if the stage has one output.
    pub(crate) fn output_ports(action: Option<Self>) -> &'static [&'static str] {
        if action == Some(Self::Reject) { PORTS } else { &[] }
    }

    /// Sets the action to reject, unless another action is set. Returns whether the stage now
    /// rejects.
    pub(crate) fn reject(action: &mut Option<Self>) -> bool {
        *action.get_or_insert(Self::Reject) == Self::Reject
    }

    /// Columns of the output of rejected rows, if a stage with this action has that output.
    pub(crate) fn rejected(action: Option<Self>) -> Option<SchemaRef> {
        (action == Some(Self::Reject)).then(schema)
    }

    /// Columns of the outputs of a stage with this action, whose rows have the columns `rows`.
    pub(crate) fn outputs(self, rows: SchemaRef) -> Vec<SchemaRef> {
        [Some(rows), Self::rejected(Some(self))].into_iter().flatten().collect()
    }

    /// `demand` of a stage with this action. A rejected row is shown with all columns, so rejecting
    /// needs all columns.
    pub(crate) fn demand(action: Option<Self>, demand: Demand) -> Demand {
        if action == Some(Self::Reject) { Demand::all() } else { demand }
    }
}

/// Columns of rejected rows: `path`, `line_number` and `byte_offset` of a file, `column`, `reason`,
/// and the text of the row in `bytes`, in which bytes that are no text are written as `\xff`.
fn schema() -> SchemaRef {
    let text = |name: &str, is_nullable| Field::new(name, DataType::Utf8, is_nullable);
    Arc::new(Schema::new(vec![
        text("path", true),
        Field::new("line_number", DataType::UInt64, true),
        Field::new("byte_offset", DataType::UInt64, true),
        text("column", true),
        text("reason", false),
        text("bytes", false),
    ]))
}

/// Place of a row in a file, or a whole file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowPlace<'a> {
    pub(crate) path: &'a str,
    /// Line, from 1.
    pub(crate) line: Option<u64>,
    /// First byte of the row, after decompression.
    pub(crate) offset: Option<u64>,
}

/// Rejected rows that become a batch.
#[derive(Debug, Default)]
pub(crate) struct Rejected {
    paths: StringBuilder,
    lines: UInt64Builder,
    offsets: UInt64Builder,
    columns: StringBuilder,
    reasons: StringBuilder,
    bytes: StringBuilder,
}

impl Rejected {
    /// Adds a row.
    pub(crate) fn add(
        &mut self,
        place: Option<RowPlace<'_>>,
        column: Option<&str>,
        reason: &str,
        bytes: &[u8],
    ) {
        self.paths.append_option(place.map(|place| place.path));
        self.lines.append_option(place.and_then(|place| place.line));
        self.offsets.append_option(place.and_then(|place| place.offset));
        self.columns.append_option(column);
        self.reasons.append_value(reason);
        self.bytes.append_value(as_text(bytes));
    }

    /// Adds a row of a batch, as a line of JSON.
    pub(crate) fn add_row(&mut self, row: &RecordBatch, column: Option<&str>, reason: &str) {
        self.add(None, column, reason, json(row).as_bytes());
    }

    /// Number of rows so far.
    pub(crate) fn rows(&self) -> usize {
        self.reasons.len()
    }

    /// Bytes of the texts so far.
    pub(crate) fn bytes(&self) -> usize {
        let texts = [&self.paths, &self.columns, &self.reasons, &self.bytes];
        texts.map(|texts| texts.values_slice().len()).iter().sum()
    }

    /// The rows so far.
    pub(crate) fn take(&mut self) -> RecordBatch {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(self.paths.finish()),
            Arc::new(self.lines.finish()),
            Arc::new(self.offsets.finish()),
            Arc::new(self.columns.finish()),
            Arc::new(self.reasons.finish()),
            Arc::new(self.bytes.finish()),
        ];
        RecordBatch::try_new(schema(), columns).expect("columns of the schema")
    }
}

/// Bytes as a text, in which other bytes are escaped.
fn as_text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}")));
    }
    text
}

/// A row as JSON; without the columns that JSON has no form for.
fn json(row: &RecordBatch) -> String {
    let mut lines = Vec::new();
    let mut writer = LineDelimitedWriter::new(&mut lines);
    let is_written = writer.write(row).and_then(|()| writer.finish()).is_ok();
    let line =
        if is_written { String::from_utf8_lossy(&lines).into_owned() } else { String::new() };
    line.trim_end().to_owned()
}
