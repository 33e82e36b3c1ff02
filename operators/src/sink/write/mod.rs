//! Rows into files and to standard output.
//!
//! ```text
//! batches ──► encode (jsonl, csv) ──► buffer ──► target: standard output, a pipe or a device
//!        └──► keep a bounded number of rows (table)      a file under a temporary name, until it is whole
//!             ──► layout at the end ──┘                  a file that grows, and is rotated
//! ```

mod encoding;
mod log;
mod table;
mod target;

#[cfg(test)]
mod tests;
mod writer;

use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arrow_schema::{ArrowError, SchemaRef};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use trommel_engine::error::{BindError, BindErrorKind};
use trommel_engine::operator::{BindContext, Claim, Fragment, Load, OperatorSpec};
use trommel_engine::registry::Configured;

use crate::columns::find_column;
use crate::files::{Destination, FileError};
use crate::parameters::check_range;
use encoding::Encoding;
use log::{Limits, Log, LogError};
use table::TableRows;
use target::{Reader, Target};
use writer::{Buffer, Form, Writer};

const ROWS_RANGE: RangeInclusive<usize> = 1..=1_000_000;
/// Of `flush_seconds`: at once, to a day.
const FLUSH_RANGE: RangeInclusive<f64> = 0.0..=86_400.0;
/// What `flush_seconds` is when it is left out.
const FLUSH_SECONDS: f64 = 1.0;
/// Of `rotate.seconds`.
const PERIOD_RANGE: RangeInclusive<f64> = 0.1..=1e9;

/// How rows are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WriteFormat {
    /// A JSON object a line.
    #[default]
    Jsonl,
    /// Comma-separated values with a header. Lists cannot be written.
    Csv,
    /// Aligned columns for people, written at the end of the stream.
    Table,
}

/// Writes rows to a file or to standard output.
///
/// A file gets its name when it is complete and on the disk: until then it is called
/// `PATH.XXXXXXXX.part`, with letters that differ each time, and a run that fails leaves nothing
/// under the final name. Only a process that is killed leaves the temporary file. A file that is
/// there already is replaced at the end, and keeps its mode; a link stays one. Pipes and devices
/// are written to directly. With `append` or `rotate` a file grows while the stream runs instead,
/// and what was written stays, however the run ends.
///
/// No two stages of a pipeline may write the same file, or standard output, in which their rows
/// would be mixed. When the reader of standard output leaves, its rows are dropped, which is no
/// failure; the run ends when no other sink needs input either.
///
/// # Ports
/// In: any columns; `csv` takes no lists and no structures.
///
/// # Errors
/// [`WriteError`], with the operating system's error as its source. When it is bound: a folder that
/// does not exist or may not be written to, a path that is a folder or a socket, columns that the
/// format cannot hold, or that the file does not have that they are to be appended to.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Write {
    /// The file, or `-` for standard output.
    #[serde(default = "default_path")]
    path: String,
    /// How rows are written.
    #[serde(default)]
    format: WriteFormat,
    /// The columns to write, in this order; all when left out.
    #[serde(default)]
    columns: Option<Vec<String>>,
    /// How many characters of a value a table shows, with the mark behind what is cut off; all when
    /// left out.
    #[serde(default)]
    #[schemars(range(min = 1))]
    cell_max: Option<usize>,
    /// How many rows a table shows; the others are counted.
    #[serde(default = "default_rows_max")]
    #[schemars(range(min = 1, max = 1_000_000))]
    rows_max: usize,
    /// Add rows to the end of the file while the stream runs. What the file holds stays, and so
    /// does what was written before a failure. If its last line has no end, because a machine
    /// failed, it gets one first. Not for tables.
    #[serde(default)]
    append: bool,
    /// As `append`; and when the file is full, {"bytes": 100000000}, or at certain times,
    /// {"seconds": 3600}, it is brought to the disk and gets the present time (UTC) in its name:
    /// `rows.jsonl` becomes `rows.20261122T053312.123Z.jsonl`, and `rows.jsonl` begins again.
    #[serde(default)]
    rotate: Option<Rotate>,
    /// How long a row may wait before it is written, with `append` or `rotate`; 1 second when left
    /// out. A row is written earlier when there are 256 KiB of them.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 86_400.0))]
    flush_seconds: Option<f64>,
}

/// When a file is full: `{"bytes": 100000000}`, `{"seconds": 3600}`, or both.
///
/// A file has more than `bytes` only if a single row has. With `seconds` it ends at whole multiples
/// of them since 1970, such as every full hour, if it has rows. Each begins with the header of its
/// format, and the last one keeps the name `path`; the next run goes on in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Rotate {
    /// Bytes of a file.
    #[serde(default)]
    #[schemars(range(min = 1))]
    bytes: Option<u64>,
    /// Seconds of a file.
    #[serde(default)]
    #[schemars(range(min = 0.1, max = 1_000_000_000.0))]
    seconds: Option<f64>,
}

impl Rotate {
    /// Files of at most this many bytes.
    #[must_use]
    pub fn bytes(bytes: u64) -> Self {
        Self { bytes: Some(bytes), seconds: None }
    }

    /// Files that end at whole multiples of this many seconds since 1970.
    #[must_use]
    pub fn seconds(seconds: f64) -> Self {
        Self { bytes: None, seconds: Some(seconds) }
    }

    fn limits(self) -> Result<Limits, BindError> {
        if self.bytes.is_none() && self.seconds.is_none() {
            let (value, allowed) = ("no limit".to_owned(), "set `bytes` or `seconds`".to_owned());
            return Err(BindErrorKind::Value { value, allowed }.at("rotate"));
        }
        if let Some(bytes) = &self.bytes {
            check_range("rotate", bytes, &(1..=u64::MAX))?;
        }
        if let Some(seconds) = &self.seconds {
            check_range("rotate", seconds, &PERIOD_RANGE)?;
        }
        let period = self.seconds.map(Duration::from_secs_f64);
        Ok(Limits { bytes: self.bytes, period })
    }
}

fn default_path() -> String {
    "-".to_owned()
}

fn default_rows_max() -> usize {
    1000
}

/// Why rows cannot be written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The file cannot be opened, written or renamed.
    #[error(transparent)]
    File(#[from] FileError),
    /// Writing to a file that grows has failed.
    #[error("{source}; the {rows} rows that were written before stay")]
    Cut {
        /// What the operating system says.
        source: FileError,
        /// Rows that this run has written before.
        rows: u64,
    },
    /// The rows cannot be written in this format.
    #[error("cannot write {path}: {source}")]
    Encode {
        /// The file.
        path: String,
        /// What does not fit.
        source: ArrowError,
    },
}

impl Write {
    /// Writes to the file `path`, or to standard output if it is `-`.
    pub fn new(path: impl Into<String>, format: WriteFormat) -> Self {
        let path = path.into();
        Self {
            path,
            format,
            columns: None,
            cell_max: None,
            rows_max: default_rows_max(),
            append: false,
            rotate: None,
            flush_seconds: None,
        }
    }

    /// Writes these columns, in this order.
    #[must_use]
    pub fn columns(mut self, columns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.columns = Some(columns.into_iter().map(Into::into).collect());
        self
    }

    /// Sets how many characters of a value a table shows, at least 1.
    #[must_use]
    pub fn cell_max(mut self, characters: usize) -> Self {
        self.cell_max = Some(characters);
        self
    }

    /// Sets how many rows a table shows: 1 to 1,000,000.
    #[must_use]
    pub fn rows_max(mut self, rows: usize) -> Self {
        self.rows_max = rows;
        self
    }

    /// Adds rows to the end of the file while the stream runs.
    #[must_use]
    pub fn append(mut self) -> Self {
        self.append = true;
        self
    }

    /// Adds rows to the end of the file, and begins another when it is full.
    #[must_use]
    pub fn rotate(mut self, rotate: Rotate) -> Self {
        self.rotate = Some(rotate);
        self
    }

    /// Sets how many seconds a row may wait before it is appended: 0 to 86,400.
    #[must_use]
    pub fn flush_seconds(mut self, seconds: f64) -> Self {
        self.flush_seconds = Some(seconds);
        self
    }

    fn form(&self, schema: &SchemaRef) -> Result<Form, BindError> {
        match self.format {
            WriteFormat::Jsonl => Ok(Form::Rows(Encoding::Jsonl)),
            WriteFormat::Csv => {
                if let Some(field) = schema.fields().iter().find(|f| f.data_type().is_nested()) {
                    let kind = BindErrorKind::ColumnType {
                        column: field.name().clone(),
                        found: field.data_type().clone(),
                        expected: "a plain value, because csv has no lists; `jsonl` has",
                    };
                    return Err(kind.at("format"));
                }
                Ok(Form::Rows(Encoding::Csv))
            }
            WriteFormat::Table => {
                let cell_max = self.cell_max.unwrap_or(usize::MAX);
                Ok(Form::Table(TableRows::new(self.rows_max, cell_max)))
            }
        }
    }

    /// The parameter that makes the file grow while the stream runs, if one does.
    fn growing(&self) -> Option<&'static str> {
        if self.rotate.is_some() { Some("rotate") } else { self.append.then_some("append") }
    }

    /// How long rows may be kept back.
    fn flush_after(&self) -> Result<Option<Duration>, BindError> {
        if let Some(seconds) = &self.flush_seconds {
            check_range("flush_seconds", seconds, &FLUSH_RANGE)?;
            if self.growing().is_none() {
                let value = seconds.to_string();
                let allowed = "set `append` or `rotate` beside it: standard output gets every \
                               batch at once, and other files get their name at the end"
                    .to_owned();
                return Err(BindErrorKind::Value { value, allowed }.at("flush_seconds"));
            }
        }
        let seconds = self.flush_seconds.unwrap_or(FLUSH_SECONDS);
        Ok(self.growing().map(|_| Duration::from_secs_f64(seconds)))
    }

    /// Where rows go, and the claim to that.
    fn target(&self, header: Vec<u8>) -> Result<(Target, Option<Claim>), BindError> {
        let blame = |error: FileError| BindErrorKind::Other(Box::new(error)).at("path");
        let path = Path::new(&self.path);
        let Some(growing) = self.growing() else {
            let destination = match self.path.as_str() {
                "-" => Destination::stdout(),
                _ => Destination::file(path).map_err(blame)?,
            };
            let claim = destination.claim("path");
            return Ok((Target::Whole { destination, header, file: None }, claim));
        };
        let refuse = |value: &str, allowed: &str| {
            let (value, allowed) = (value.to_owned(), allowed.to_owned());
            Err(BindErrorKind::Value { value, allowed }.at(growing))
        };
        if self.format == WriteFormat::Table {
            return refuse(
                "a table",
                "it is laid out at the end of the stream; use another `format`",
            );
        }
        if self.path == "-" {
            return refuse("standard output", "it gets every batch at once; name a file as `path`");
        }
        let limits = self.rotate.map(Rotate::limits).transpose()?.unwrap_or_default();
        if self.rotate.is_some() {
            // Its folder gets new files.
            Destination::file(path).map_err(blame)?;
        }
        let destination = Destination::log(path).map_err(blame)?;
        let claim = destination.claim("path");
        match Log::new(destination, limits, header) {
            Ok(log) => Ok((Target::Log(log), claim)),
            Err(error @ LogError::NoFile) => refuse(&self.path, &error.to_string()),
            Err(error) => Err(BindErrorKind::Other(Box::new(error)).at("path")),
        }
    }

    /// Where the columns to write are.
    fn selection(&self, input: &SchemaRef) -> Result<Vec<usize>, BindError> {
        let Some(columns) = &self.columns else { return Ok((0..input.fields().len()).collect()) };
        if columns.is_empty() {
            let (value, allowed) = ("an empty list".to_owned(), "name a column".to_owned());
            return Err(BindErrorKind::Value { value, allowed }.at("columns"));
        }
        let column = |name: &String| Ok(find_column(input, name, "columns")?.0);
        columns.iter().map(column).collect()
    }
}

impl Configured for Write {
    const NAME: &'static str = "write";
    const SUMMARY: &'static str = "write rows to a file or to standard output";
}

impl OperatorSpec for Write {
    fn operator(&self) -> &'static str {
        Self::NAME
    }

    fn input_ports(&self) -> RangeInclusive<usize> {
        1..=1
    }

    fn bind(self: Box<Self>, inputs: &[SchemaRef], _: BindContext) -> Result<Fragment, BindError> {
        check_range("rows_max", &self.rows_max, &ROWS_RANGE)?;
        if let Some(characters) = &self.cell_max {
            check_range("cell_max", characters, &(1..=usize::MAX))?;
        }
        let selection = self.selection(&inputs[0])?;
        let schema = Arc::new(inputs[0].project(&selection).expect("columns of the input"));
        let form = self.form(&schema)?;
        let header = match &form {
            Form::Rows(encoding) => encoding.header(&schema),
            Form::Table(_) => Ok(Vec::new()),
        };
        let header = header.map_err(|error| BindErrorKind::Other(error.into()).at("format"))?;
        let flush_after = self.flush_after()?;
        let (target, claim) = self.target(header)?;
        let (buffer, reader) = (Buffer::default(), Reader::Reads);
        let writer = Writer { selection, schema, form, target, flush_after, buffer, reader };
        Ok(Fragment::operator(Load::Light, writer, Vec::new()).claiming(claim))
    }
}
