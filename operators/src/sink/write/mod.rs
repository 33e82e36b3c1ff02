//! Sink that writes rows to files and to standard output.
//!
//! ```text
//! batches ──► encode (jsonl, csv) ──► buffer ──► target: standard output, a pipe or a device
//!        ├──► encode columns        ──┤                   a file under a temporary name, until it is whole
//!        │    (parquet, arrow)        │                   a file that grows, and is rotated
//!        └──► keep a bounded number   │
//!             of rows (table), layout │
//!             at the end ─────────────┘
//! ```
//!
//! With `by`, each value has a file of its own: see [`by`].

mod by;
mod columnar;
#[cfg(test)]
mod columnar_tests;
mod encode;
mod encoding;
mod files;
mod table;

#[cfg(test)]
mod tests;
mod writer;

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arrow_schema::{ArrowError, Field, SchemaRef};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use trommel_engine::error::{BindError, BindErrorKind};
use trommel_engine::memory::{MemoryBudget, MemoryFull};
use trommel_engine::operator::{
    BindContext, Body, Claim, Demand, Division, Fragment, Load, Operator, OperatorSpec, Outputs,
    Part,
};
use trommel_engine::registry::Configured;

use crate::expressions::ColumnInput;
use crate::shared::columns::find_column;
use crate::shared::files::{Destination, FileError, Patience, terminal_width};
use crate::shared::parameters::{Mistakes, blame, parameters, refuse};
pub use by::ValueError;
use columnar::{ColumnFormat, Columnar};
use encoding::Encoding;
pub use files::archive::RotateCompression;
use files::archive::{Archive, ArchiveRules};
use files::log::{Limits, Log, LogError};
use files::target::Target;
use table::TableRows;
use writer::{Buffer, Form, Reader, Stage, Writer};

/// Default of `row_group_bytes`.
const ROW_GROUP_BYTES: usize = 64 << 20;
/// Default of `flush_seconds`.
const FLUSH_SECONDS: f64 = 1.0;

/// Format of the output.
///
/// # Examples
/// The names in a configuration:
/// ```
/// use trommel_operators::WriteFormat;
/// assert_eq!(serde_json::to_string(&WriteFormat::Jsonl)?, "\"jsonl\"");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WriteFormat {
    /// One JSON object per line.
    #[default]
    Jsonl,
    /// Comma-separated values with a header; lists are not supported.
    Csv,
    /// The texts of the only column, each as a line; for a null, an empty one.
    Lines,
    /// Parquet, compressed by zstd, with the types of the columns. A file is whole at its end.
    Parquet,
    /// Arrow (IPC), with the types of the columns: a file (`.arrow`, Feather), or the stream for
    /// standard output, a pipe or a device. In a file, dictionaries become their values.
    Arrow,
    /// Aligned columns for reading, written at the end of the stream. Numbers with a fraction have
    /// four significant digits; on a terminal, texts are cut to its width.
    Table,
}

/// Writes rows to a file or to standard output.
///
/// A file gets its name when it is complete and on the disk. A run that fails, or that is killed,
/// leaves nothing; only on a file system that cannot make a file without a name (NFS), a process
/// that is killed leaves `PATH.XXXXXXXX.part` with random letters. An existing file is replaced at
/// the end and keeps its mode; a link stays a link. A file that a container mounts, or whose folder
/// takes no new files, is written at the end instead of being replaced. Pipes, devices and open
/// descriptors (`/dev/stdout`, `/dev/fd/3`) are written directly. With `append` or `rotate` a file
/// grows while the stream runs, and its rows stay, however the run ends; when another program moves
/// or removes the file, the next rows go into a new one under its name, and
/// [`RunHandle::reopen`](trommel_engine::runtime::RunHandle::reopen) makes that one at once.
///
/// A pipe or a terminal whose reader has stopped holds up the rows, not the thread: queries of the
/// stages before it are answered, and the limit of a drain holds. A pipe that nobody has opened for
/// reading is waited for.
///
/// Two stages of a pipeline cannot write the same file, or both to standard output, since their
/// rows would be mixed. When the reader of standard output leaves, the remaining rows are dropped
/// without an error; the run ends when no other sink needs input.
///
/// # Ports
/// In: any columns; for `csv`, no lists and no structures; for the others, columns of the types
/// that the format has.
///
/// # Errors
/// While running: a [`WriteError`], with the error of the operating system as its source. At
/// bind: a missing or read-only folder, a path that is a folder or a socket, columns that the
/// format does not support, or a file to append to that has other columns.
///
/// # Examples
/// ```
/// use trommel_engine::graph::Graph;
/// use trommel_engine::runtime::RunOptions;
/// use trommel_operators::{Generate, Write, WriteFormat};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("items.csv");
/// let mut graph = Graph::new();
/// let items = graph.add("items", Generate::zipf(100, 1.0).items(3));
/// graph.add_after(items, "file", Write::new(path.to_string_lossy(), WriteFormat::Csv));
/// graph.build()?.run(RunOptions::new())?;
/// let text = std::fs::read_to_string(&path)?;
/// assert!(text.starts_with("item\n") && text.lines().count() == 4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[parameters(own_new)]
pub struct Write {
    /// Output file, or `-` for standard output.
    #[default("-")]
    #[setter(none)]
    path: String,
    /// Format of the rows.
    #[default]
    #[setter(none)]
    format: WriteFormat,
    /// Column, or `expression as name`, for each value of which a file is written. `path` has the
    /// name of the column in braces, `out/{host}.jsonl`; or it is a folder, `out/`, for files
    /// `out/host=VALUE/part-0.jsonl` without that column, which readers know as Hive's. Values are
    /// percent-encoded, and null is `__HIVE_DEFAULT_PARTITION__`. At most 100,000 values.
    by: Option<String>,
    /// Columns to write, in this order; all when left out.
    columns: Option<Vec<String>>,
    /// Maximum characters of a value in a table; longer values are cut and end with `…`. All when
    /// left out.
    #[range(1..)]
    cell_max: Option<usize>,
    /// Maximum rows of a table; further rows are only counted. The rows are kept until the end, in
    /// the memory of the pipeline.
    #[default(1_000)]
    #[range(1..=1_000_000)]
    rows_max: usize,
    /// For `parquet`: bytes of a row group, which a reader can pass over; 64 MiB when left out. The
    /// rows of one are in the memory of the pipeline until it is full, and it ends early when there
    /// is no more memory.
    #[range(65_536..=1_073_741_824)]
    row_group_bytes: Option<usize>,
    /// Columns to sort the rows of a table by, such as ["-similarity", "left"]: a minus sign before
    /// a name lets the column descend. Nulls are last. The rows that are kept are sorted, the first
    /// `rows_max` of the stream.
    #[default]
    sort: Vec<String>,
    /// Append rows to the file while the stream runs. Existing content stays, and so do rows
    /// written before a failure. An incomplete last line, left by a failed machine, gets a line
    /// end first. Only for `jsonl`, `csv` and `lines`.
    #[default]
    append: bool,
    /// Append as with `append`, and start a new file when the file reaches a size, {"bytes":
    /// 100000000}, or at fixed times, {"seconds": 3600}. The full file is synced to the disk and
    /// gets the current time (UTC) in its name: `rows.jsonl` becomes
    /// `rows.20261122T053312.123Z.jsonl`. {"seconds": 3600, "delay_seconds": 2} lets a file take
    /// rows for two seconds after the hour, such as those of a window that ends with it.
    /// With {"compress": "gzip"} or "zstd" a full file is then compressed, and {"keep": 24} removes
    /// all but the newest 24 full files.
    rotate: Option<Rotate>,
    /// Maximum seconds before a row is written, with `append` or `rotate`; 1 when left out. Rows
    /// are written earlier when 256 KiB of them wait.
    #[range(0.0..=86_400.0)]
    flush_seconds: Option<f64>,
}

/// Size or time limit of a file: `{"bytes": 100000000}`, `{"seconds": 3600}`, or both.
///
/// A file exceeds `bytes` only if a single row does. With `seconds` a file that has rows ends at
/// whole multiples of that time since 1970, such as every full hour, and `delay_seconds` later if
/// that is set. The names of full files sort as they were rotated. Each file begins with the
/// header of its format. The current file is always called `path`; the next run appends to it.
///
/// # Examples
/// ```
/// use trommel_operators::{Rotate, Write, WriteFormat};
///
/// let daily = Write::new("rows.jsonl", WriteFormat::Jsonl).rotate(Rotate::seconds(86_400.0));
/// ```
#[parameters(own_new, errors_at = "rotate")]
#[derive(Copy, Default, PartialEq)]
pub struct Rotate {
    /// Maximum bytes of a file.
    #[range(1..)]
    #[setter(none)]
    bytes: Option<u64>,
    /// Period of a file, in seconds.
    #[range(0.1..=1_000_000_000.0)]
    #[setter(none)]
    seconds: Option<f64>,
    /// Seconds after the end of a period for which its file takes rows, such as those of a window
    /// that ends with the period; less than `seconds`.
    #[range(0.0..=86_400.0)]
    delay_seconds: Option<f64>,
    /// Compress full files: to `NAME.gz`, or to `NAME.zst`. The plain file stays until the
    /// compressed one is whole; of a run that was killed, the next one compresses it.
    compress: Option<RotateCompression>,
    /// Maximum number of full files, compressed or not: older ones are removed. Only files are
    /// removed that have a name which this parameter gives; all are kept when left out.
    #[range(1..=1_000_000)]
    keep: Option<usize>,
}

impl Rotate {
    /// Files of at most `bytes` bytes.
    #[must_use]
    pub fn bytes(bytes: u64) -> Self {
        Self { bytes: Some(bytes), ..Self::defaults() }
    }

    /// Files that end at whole multiples of `seconds` since 1970.
    #[must_use]
    pub fn seconds(seconds: f64) -> Self {
        Self { seconds: Some(seconds), ..Self::defaults() }
    }

    fn limits(self) -> Result<Limits, BindError> {
        if self.bytes.is_none() && self.seconds.is_none() {
            let (value, allowed) = ("no limit".to_owned(), "set `bytes` or `seconds`".to_owned());
            return Err(BindErrorKind::Value { value, allowed }.at("rotate"));
        }
        self.check_ranges()?;
        let delay = self.delay_seconds.unwrap_or(0.0);
        if self.delay_seconds.is_some() && self.seconds.is_none_or(|period| delay >= period) {
            let value = format!("a delay of {delay} seconds");
            let allowed = "set `seconds`, to more than `delay_seconds`".to_owned();
            return Err(BindErrorKind::Value { value, allowed }.at("rotate"));
        }
        let period = self.seconds.map(Duration::from_secs_f64);
        let delay = Duration::from_secs_f64(delay);
        Ok(Limits { bytes: self.bytes, period, delay })
    }
}

/// Error of writing.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WriteError {
    /// A file could not be opened, written or renamed.
    #[error(transparent)]
    File(#[from] FileError),
    /// Appending to a growing file failed.
    #[error("{source}; the {rows} rows written before are kept")]
    Cut {
        /// Error of the file.
        source: FileError,
        /// Rows that this run wrote before.
        rows: u64,
    },
    /// The format cannot encode the rows.
    #[error("cannot write {path}: {source}")]
    Encode {
        /// The file.
        path: String,
        /// Error of the encoder.
        source: ArrowError,
    },
    /// The rows that are not yet in the file do not fit the memory of the pipeline.
    #[error("not enough memory for rows that are not yet in {path}: {source}")]
    Memory {
        /// The file.
        path: String,
        /// Error of the reservation.
        source: MemoryFull,
    },
}

impl Write {
    /// Writes to the file `path`, or to standard output if it is `-`.
    pub fn new(path: impl Into<String>, format: WriteFormat) -> Self {
        Self { path: path.into(), format, ..Self::defaults() }
    }

    /// The columns to sort by, each with a flag that is true if the column descends. If a column
    /// has a name that begins with a minus sign, the whole name stands for that column.
    fn sort_columns(&self, schema: &SchemaRef) -> Result<Vec<(usize, bool)>, BindError> {
        if !self.sort.is_empty() && self.format != WriteFormat::Table {
            let value = format!("the format {:?}", self.format).to_lowercase();
            let allowed = "only a `table` keeps its rows to sort them".to_owned();
            return Err(BindErrorKind::Value { value, allowed }.at("sort"));
        }
        let column = |name: &String| {
            let (name, descends) = match name.strip_prefix('-') {
                Some(rest) if schema.index_of(name).is_err() => (rest, true),
                _ => (name.as_str(), false),
            };
            match find_column(schema, name, "sort")? {
                (_, found) if found.is_nested() => {
                    let (column, expected) = (name.to_owned(), "a plain value");
                    Err(BindErrorKind::ColumnType { column, found, expected }.at("sort"))
                }
                (index, _) => Ok((index, descends)),
            }
        };
        let mut mistakes = Mistakes::default();
        let sorted = self.sort.iter().filter_map(|name| mistakes.check(column(name))).collect();
        mistakes.all(|| Some(sorted))
    }

    /// Encoding of each row, for formats that encode each row on its own.
    fn encoding(&self) -> Option<Encoding> {
        match self.format {
            WriteFormat::Jsonl => Some(Encoding::Jsonl),
            WriteFormat::Csv => Some(Encoding::Csv),
            WriteFormat::Lines => Some(Encoding::Lines),
            WriteFormat::Table | WriteFormat::Parquet | WriteFormat::Arrow => None,
        }
    }

    /// Layout of the rows of `schema`. With `is_live`, no file is written.
    fn form(
        &self,
        schema: &SchemaRef,
        is_live: bool,
        memory: &MemoryBudget,
    ) -> Result<Form, BindError> {
        let columns = match self.format {
            WriteFormat::Jsonl => return Ok(Form::Rows(Encoding::Jsonl)),
            WriteFormat::Csv => return Ok(Form::Rows(Encoding::Csv)),
            WriteFormat::Lines => return Ok(Form::Rows(Encoding::Lines)),
            WriteFormat::Table => {
                let cell_max = self.cell_max.unwrap_or(usize::MAX);
                let line_width = (self.path == "-").then(terminal_width).flatten();
                let rows =
                    TableRows::new(self.rows_max, cell_max, line_width, memory.reservation());
                return Ok(Form::Table(rows.sorted_by(self.sort_columns(schema)?)));
            }
            WriteFormat::Parquet => {
                let row_group_bytes = self.row_group_bytes.unwrap_or(ROW_GROUP_BYTES);
                ColumnFormat::Parquet { row_group_bytes }
            }
            WriteFormat::Arrow if is_live => ColumnFormat::ArrowStream,
            WriteFormat::Arrow => ColumnFormat::ArrowFile,
        };
        check_types(schema, |field| columns.has(field), "a type that the format has")?;
        let columnar = Columnar::new(columns, schema, memory.reservation());
        let of_format = |error: ArrowError| blame("format", error);
        Ok(Form::Columns(Box::new(columnar.map_err(of_format)?)))
    }

    /// The bytes at the beginning of a file.
    fn header(&self, schema: &SchemaRef) -> Result<Vec<u8>, BindError> {
        let Some(encoding) = self.encoding() else { return Ok(Vec::new()) };
        check_types(schema, |field| encoding.has(field), encoding.types())?;
        if encoding == Encoding::Lines && schema.fields().len() != 1 {
            let value = format!("{} columns", schema.fields().len());
            let allowed = "a line is the text of one column: name it in `columns`";
            return Err(refuse("format", value, allowed));
        }
        encoding.header(schema).map_err(|error| blame("format", error))
    }

    /// Refuses row groups for a format other than Parquet.
    fn check_row_groups(&self) -> Result<(), BindError> {
        match &self.row_group_bytes {
            Some(bytes) if self.format != WriteFormat::Parquet => {
                let allowed = "only `parquet` has row groups";
                Err(refuse("row_group_bytes", bytes.to_string(), allowed))
            }
            _ => Ok(()),
        }
    }

    /// Name of the parameter that makes the file grow while the stream runs, if set.
    fn growing(&self) -> Option<&'static str> {
        if self.rotate.is_some() { Some("rotate") } else { self.append.then_some("append") }
    }

    /// Refuses a time to buffer rows for a file that is written as a whole.
    fn check_flush(&self) -> Result<(), BindError> {
        match &self.flush_seconds {
            Some(seconds) if self.growing().is_none() => {
                let allowed = "set `append` or `rotate` too: standard output gets every batch at \
                               once, and other files appear at the end";
                Err(refuse("flush_seconds", seconds.to_string(), allowed))
            }
            _ => Ok(()),
        }
    }

    /// Maximum time to buffer rows. The parameter has been checked; `None` for files that are
    /// written as a whole.
    fn flush_after(&self) -> Option<Duration> {
        let seconds = self.flush_seconds.unwrap_or(FLUSH_SECONDS);
        self.growing().map(|_| Duration::from_secs_f64(seconds))
    }

    /// Target of the rows, and the claim to the target.
    fn target(
        &self,
        header: &[u8],
        outputs: Outputs,
    ) -> Result<(Target, Option<Claim>), BindError> {
        let of_path = |error: FileError| blame("path", error);
        let path = Path::new(&self.path);
        let Some(growing) = self.growing() else {
            let destination = match self.path.as_str() {
                "-" => Destination::stdout(),
                _ => Destination::file(path).map_err(of_path)?,
            };
            let destination = destination.within(outputs);
            let claim = destination.claim("path");
            return Ok((Target::Whole { destination, file: None }, claim));
        };
        let refuse = |value: &str, allowed: &str| {
            let (value, allowed) = (value.to_owned(), allowed.to_owned());
            Err(BindErrorKind::Value { value, allowed }.at(growing))
        };
        let whole = match self.format {
            WriteFormat::Jsonl | WriteFormat::Csv | WriteFormat::Lines => None,
            WriteFormat::Table => Some(("a table", "laid out")),
            WriteFormat::Parquet => Some(("a file of Parquet", "complete")),
            WriteFormat::Arrow => Some(("a file of Arrow", "complete")),
        };
        if let Some((whole, state)) = whole {
            let allowed =
                format!("it is {state} at the end of the stream; use `jsonl`, `csv` or `lines`");
            return refuse(whole, &allowed);
        }
        if self.path == "-" {
            return refuse("standard output", "it gets every batch at once; name a file as `path`");
        }
        let limits = self.rotate.map(Rotate::limits).transpose()?.unwrap_or_default();
        if self.rotate.is_some() {
            // Rotation creates files, so the folder must be writable.
            Destination::file(path).and_then(|file| file.check_siblings()).map_err(of_path)?;
        }
        let Rotate { compress, keep, .. } = self.rotate.unwrap_or_default();
        let archive =
            |path: &Path| Archive::new(path, ArchiveRules { compress, keep }, outputs.clone());
        let destination = Destination::log(path).map_err(of_path)?.within(outputs.clone());
        let claim = destination.claim("path");
        match Log::new(destination, limits, header.to_vec(), archive) {
            Ok(log) => Ok((Target::Log(Box::new(log)), claim)),
            Err(error @ LogError::NoFile) => refuse(&self.path, &error.to_string()),
            Err(error) => Err(BindErrorKind::Other(Box::new(error)).at("path")),
        }
    }

    /// Indices of the columns to write, their schema, and the bytes at the beginning of a file.
    fn rows(&self, input: &SchemaRef) -> Result<(Vec<usize>, SchemaRef, Vec<u8>), BindError> {
        let selection = self.selection(input)?;
        let schema = Arc::new(input.project(&selection).expect("columns of the input"));
        let mut mistakes = Mistakes::default();
        mistakes.check(self.sort_columns(&schema));
        let header = mistakes.check(self.header(&schema));
        mistakes.all(|| Some((selection, schema, header?)))
    }

    /// Indices of the columns to write.
    fn selection(&self, input: &SchemaRef) -> Result<Vec<usize>, BindError> {
        let Some(columns) = &self.columns else { return Ok((0..input.fields().len()).collect()) };
        if columns.is_empty() {
            let (value, allowed) = ("an empty list".to_owned(), "name a column".to_owned());
            return Err(BindErrorKind::Value { value, allowed }.at("columns"));
        }
        let column = |name: &String| Ok(find_column(input, name, "columns")?.0);
        columns.iter().map(column).collect()
    }

    /// Checks that the input has each of the columns to write.
    fn check_columns(&self, input: &SchemaRef) -> Result<(), BindError> {
        let columns = self.columns.as_deref().unwrap_or_default();
        let mut names = HashSet::new();
        BindError::collect(columns.iter().map(|name| {
            if !names.insert(name) {
                let (value, allowed) = (format!("`{name}` twice"), "name each column once");
                return Err(refuse("columns", value, allowed));
            }
            find_column(input, name, "columns").map(drop)
        }))
    }
}

/// Checks that the format has the types of all columns.
fn check_types(
    schema: &SchemaRef,
    has: impl Fn(&Field) -> bool,
    expected: &'static str,
) -> Result<(), BindError> {
    let refused = schema.fields().iter().filter(|field| !has(field)).map(|field| {
        let (column, found) = (field.name().clone(), field.data_type().clone());
        Err(BindErrorKind::ColumnType { column, found, expected }.at("format"))
    });
    BindError::collect(refused)
}

impl Configured for Write {
    const NAME: &'static str = "write";
    const SUMMARY: &'static str = "write rows to a file or to standard output";
}

impl OperatorSpec for Write {
    fn operator(&self) -> &'static str {
        Self::NAME
    }

    fn demand(&self, _: usize, _: &Demand) -> Demand {
        let Some(columns) = &self.columns else { return Demand::all() };
        let demand = columns.iter().cloned().fold(Demand::none(), Demand::column);
        self.by.iter().fold(demand, |demand, by| ColumnInput::demand(by, demand))
    }

    fn bind(
        self: Box<Self>,
        inputs: &[SchemaRef],
        context: BindContext,
    ) -> Result<Fragment, BindError> {
        let mut mistakes = Mistakes::default();
        mistakes.check(self.check_ranges());
        let has_columns = mistakes.check(self.check_columns(&inputs[0])).is_some();
        mistakes.check(self.check_flush());
        mistakes.check(self.check_row_groups());
        mistakes.check(self.rotate.map_or(Ok(()), |rotate| rotate.limits().map(drop)));
        if let Some(by) = &self.by {
            let value = mistakes.check(self.value_of(by, &inputs[0]));
            return self.bind_by(mistakes.all(|| value)?, &inputs[0], context);
        }
        // If a column is missing, the rows are unknown.
        let rows = if has_columns { mistakes.check(self.rows(&inputs[0])) } else { None };
        let (selection, schema, header) = mistakes.all(|| rows)?;
        let (target, claim) = self.target(&header, context.outputs)?;
        let form = self.form(&schema, target.is_live(), &context.memory)?;
        // A growing file writes its own header, also after each rotation.
        let header = if self.growing().is_some() { Vec::new() } else { header };
        let writer = Writer {
            selection,
            schema,
            form,
            target,
            flush_after: self.flush_after(),
            buffer: Buffer::new(header),
            reader: Reader::Reads,
            stage: Stage::Taking,
            look_at: None,
            patience: Patience::default(),
        };
        let fragment = match writer.encoder(context.threads) {
            None => Fragment::operator(Load::Light, writer, Vec::new()),
            Some(encoder) => {
                let encode = part("encode", Load::Moderate, encoder.clone());
                let parts = vec![encode, part("write", Load::Light, writer)];
                let copy = move || Ok(Body::Operator(Box::new(encoder.clone())));
                Fragment::new(parts, Vec::new()).divided(Division::Anywhere, 0, usize::MAX, copy)
            }
        };
        Ok(fragment.claiming(claim))
    }
}

fn part(name: &'static str, load: Load, operator: impl Operator + 'static) -> Part {
    Part { name: name.into(), load, body: Body::Operator(Box::new(operator)) }
}
