//! Files and standard input as streams.
//!
//! ```text
//! patterns ──► files ──► open, decompress ──► blocks of whole lines ──► lines, texts or sets
//!                                        │                         ├──► records of CSV
//!                                        │                         └──► objects of JSON
//!                                        └──► rows of a fixed width ──► integers, vectors
//! ```
//!
//! Copies of the source share regular files ([`pieces`]). A copy reads files one after the other in
//! blocks of 256 KiB; a batch may span files. Text is validated once per run of lines; only an
//! invalid run is checked line by line, to name the first bad one. Integers and vectors are read
//! directly into the buffer that becomes the Arrow column.
//!
//! No call waits. Pipes, terminals and devices are polled before each read (`raw.rs`), below the
//! decompressor, and the runtime waits for their descriptor. A stopped source takes nothing more
//! from its input and sends the rows of all bytes taken so far.

mod bind;
mod columns;
mod csv;
mod divided;
mod error;
mod files;
mod fixed;
mod following;
mod json;
mod log;
mod pieces;
mod tables;
mod text;

#[cfg(test)]
mod tests;

use std::path::PathBuf;

use arrow_schema::Schema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::shared::parameters::{BATCH_ITEMS, parameters};
use crate::shared::rejected::OnError;

pub use error::{ReadError, TableError};
pub use fixed::npy::NpyError;
pub use text::encoding::Invalid;

use columns::schema::TableSchema;

/// Format of the input files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ReadFormat {
    /// Lines of text; column `line`, and `path` and `line_number` on request. Lines end with a
    /// newline, which may follow a carriage return; or, in a file without a newline in its first
    /// line, with a carriage return alone.
    #[default]
    Lines,
    /// Paragraphs of text, separated by blank lines; columns `path`, `line_number` (first
    /// line of the paragraph, from 1) and `text`.
    Paragraphs,
    /// Whole files of text, one row per file; columns `path` and `text`. An empty file has
    /// no row.
    Files,
    /// Little-endian unsigned 32-bit integers; column `item`.
    U32le,
    /// Little-endian unsigned 64-bit integers; column `item`.
    U64le,
    /// Sets of unsigned 32-bit integers, one set per line, separated by blanks, in any order;
    /// columns `id` (line number from 0, counted over all files) and `set`.
    Sets,
    /// Vectors of `dims` little-endian 32-bit numbers, one after the other; columns `id` (from 0)
    /// and `vector`.
    F32le,
    /// Arrays of NumPy: float32 or float64, which is rounded to float32, in C order, a vector per
    /// row; columns `id` (from 0, counted over all files) and `vector`.
    Npy,
    /// Comma-separated values (RFC 4180) with the names of the columns in the first record;
    /// columns `id` (record number from 0, counted over all files), the `columns` as text, and
    /// `vector`. With a `schema`, or with neither `columns` nor `vector`, a table.
    Csv,
    /// A table: an object of JSON on each line, whose members are the columns. An object inside of
    /// it is a struct, and a list is a list. A member that is missing is null, and one that the
    /// table does not have is passed over. Blank lines are passed over.
    Jsonl,
    /// A table: lines of a log that follow the `pattern`, which names the columns. Blank lines are
    /// passed over.
    Log,
    /// A table: a file of Parquet, with its columns.
    Parquet,
    /// A table: a file or a stream of Arrow (IPC), with its columns.
    Arrow,
}

/// Place in a followed file at which reading begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ReadFrom {
    /// The first line.
    #[default]
    Beginning,
    /// The line after the last one.
    End,
}

/// Reads files or standard input.
///
/// # Ports
/// Out, by format: `line` (Utf8); `path` and `text` (Utf8), with `line_number` (UInt64) for
/// paragraphs; `item` (UInt32 or UInt64); `id` (UInt32) and `set` (`List<UInt32>`, strictly
/// ascending); `id` and `vector` (`FixedSizeList<Float32>`), with texts (Utf8) for `csv`; or the
/// columns of a table. With [`OnError::Reject`], a second output `rejected` of bad lines.
///
/// # Ends
/// A stopped run takes nothing more from the input. All complete rows read so far pass through;
/// bytes of an incomplete line, item or text are counted in `unfinished_bytes`.
///
/// # Errors
/// At bind: a file that does not exist, a pattern without a match, or a directory; a file that
/// another stage writes; a pipe or standard input that another stage reads too. A file that a
/// pattern matches and that is an output of the run is left out. While running: a [`ReadError`].
/// With [`OnError::Skip`], lines and files that cannot be used are left out instead, including
/// files that do not exist; with [`OnError::Reject`], lines go to the output `rejected`.
///
/// # Examples
/// ```
/// use trommel_engine::graph::Graph;
/// use trommel_engine::runtime::RunOptions;
/// use trommel_operators::{Collect, Read, ReadFormat};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("words.txt");
/// std::fs::write(&path, "one\ntwo\nthree\n")?;
///
/// let mut graph = Graph::new();
/// let lines = graph.add("lines", Read::new([path], ReadFormat::Lines));
/// let (sink, rows) = Collect::new();
/// graph.add_after(lines, "rows", sink);
/// graph.build()?.run(RunOptions::new())?;
/// assert_eq!(rows.rows(), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[parameters(own_new)]
pub struct Read {
    /// Files, patterns such as `logs/**/*.gz`, or `-` for standard input. A file is read once,
    /// even if several names or links lead to it; links to folders that form a circle are
    /// followed once. As in a shell, wildcards do not match hidden files. Files ending in .gz or
    /// .zst are decompressed; compressed text is also recognised by its first bytes. A zstd
    /// window may have up to 2 GiB (`--long=31`) and takes as much memory.
    #[schemars(with = "Vec<String>", length(min = 1))]
    paths: Vec<PathBuf>,
    /// Format of the files.
    #[default]
    #[setter(none)]
    format: ReadFormat,
    /// Follow files that grow: wait for more at the end of a file, through rotation and truncation,
    /// and look for new files that match a pattern or have a path that was named, until the run is
    /// stopped. A replaced or rewritten file counts as a new file. Only for uncompressed regular
    /// files of format `lines`, `sets`, `csv`, `jsonl` or `log`, at most 4,096 at once; what else a
    /// pattern matches is left out with a warning. The lines of a copy that matches a pattern too
    /// are read twice, and a file that is there for less than 100 ms may be missed.
    #[default]
    follow: bool,
    /// With `follow`: read the files that are there at the start from their beginning or their
    /// end. Files that come later are read from their beginning.
    #[default]
    from: ReadFrom,
    /// With `follow`: seconds without a new line after which a file is closed that no path or
    /// pattern leads to any more, such as a rotated one; 300 when left out.
    #[range(0.0..=1_000_000.0)]
    quiet_seconds: Option<f64>,
    /// Maximum rows per batch. A batch has fewer when its lines are long or the input has no more
    /// at present.
    #[default(BATCH_ITEMS)]
    #[range(1..=1_048_576)]
    batch: usize,
    /// Action for a line that is too long, is not a set or is not a row of the table, for a text
    /// that has such a line, and for a file that is missing, cannot be opened, is damaged, or is
    /// truncated while it is read. When left out, `fail`; with `follow`, `skip`. `reject` is for
    /// `lines`, `sets`, `csv`, `jsonl` and `log`.
    on_error: Option<OnError>,
    /// Encoding of text, such as `utf-8`, `windows-1252`, `utf-16le` or `shift_jis`: a label of
    /// the Encoding Standard, in which `latin1` is `windows-1252`. A byte order mark of UTF-8 or
    /// UTF-16 counts more. When left out, UTF-8, and a file that looks like UTF-16 or UTF-32
    /// without a mark is an error.
    encoding: Option<String>,
    /// Action for a line with bytes that are no text in this encoding. When left out, that of
    /// `on_error`.
    invalid: Option<Invalid>,
    /// Maximum length of a line, in bytes; for `paragraphs` and `files`, of a text.
    #[default(1_048_576)]
    #[range(1..=1_073_741_824)]
    line_bytes_max: usize,
    /// Coordinates of a vector: needed for `f32le`, for `npy` from standard input, a pipe or a
    /// missing file, and for `csv` with a name that ends in `*`.
    #[range(1..=4_096)]
    dims: Option<u32>,
    /// For `f32le` and `npy`: a text file with a line for each vector, which becomes the column
    /// `name`.
    names: Option<PathBuf>,
    /// For `csv` without a `schema`: names of the columns that become columns of text. For `lines`:
    /// `path` and `line_number` (from 1), to be columns beside `line`. For tables: the columns to
    /// read, in this order; all of them when left out.
    #[default]
    columns: Vec<String>,
    /// For `csv`: names of the columns of numbers that become the column `vector`, in this order.
    /// A name that ends in `*` stands for all columns that begin with the rest of it, in the order
    /// of the file.
    #[default]
    vector: Vec<String>,
    /// For `csv`: the character between two fields, such as `;` or `\t`; a comma when left out.
    #[schemars(length(min = 1, max = 1))]
    #[setter(char)]
    delimiter: Option<String>,
    /// For `csv`: the character around a field that has delimiters or line ends; `"` when left out.
    #[schemars(length(min = 1, max = 1))]
    #[setter(char)]
    quote: Option<String>,
    /// For `csv`: the first character of lines that are passed over, such as `#`; none when left
    /// out.
    #[schemars(length(min = 1, max = 1))]
    #[setter(char)]
    comment: Option<String>,
    /// For `csv`: whether the first record names the columns; otherwise they are `c1`, `c2` and so
    /// on. When left out, true.
    header: Option<bool>,
    /// For tables of `csv`: the words that are nulls, such as `["NA", ""]`; the empty one when left
    /// out. A word in quotes is a text in a column of texts.
    null: Option<Vec<String>>,
    /// For `log`: `combined` or `common` for access logs of web servers, `syslog`, `logfmt`, or a
    /// template such as `{ip} [{time:%d/%b/%Y:%H:%M:%S %z}] "{path}" {status:u16}`. `{name}` is a
    /// text, `{name:type}` a value, `{name:%Y-%m-%d}` a time in the words of `strptime`, and `{_}`
    /// a text that is passed over; `{{` and `}}` are braces. A field ends at the text that follows
    /// it.
    pattern: Option<String>,
    /// For `lines` and `log`: a regular expression that fits the first line of a record, such as
    /// `^\d{4}-`. The lines up to the next one belong to the record, as those of a stack trace.
    /// When left out, each line is a record.
    start: Option<String>,
    /// For `jsonl`, `csv` and the pattern `logfmt`: the columns of the table and their types, such
    /// as `{"status": "u16", "tags": ["text"], "user": {"id": "i64"}}`, in the order of their
    /// names. When left out, the columns of the first 1,000 rows of the first file that has some;
    /// standard input, pipes and followed files that are not there yet need it.
    #[setter(none)]
    schema: Option<TableSchema>,
}

impl Read {
    /// Reads `paths` (files, patterns, or `-` for standard input) in this `format`.
    pub fn new(paths: impl IntoIterator<Item = impl Into<PathBuf>>, format: ReadFormat) -> Self {
        Self { format, ..Self::defaults(paths) }
    }

    /// Sets the columns of a table and their types. Each column may have nulls.
    #[must_use]
    pub fn schema(mut self, columns: &Schema) -> Self {
        self.schema = Some(TableSchema::of(columns));
        self
    }

    /// Sets the columns of a table and their types by a text of JSON, as in a pipeline:
    /// `{"host": "text", "status": "u16"}`.
    ///
    /// # Errors
    /// If the text is no JSON, or names no types.
    pub fn schema_json(mut self, columns: &str) -> Result<Self, serde_json::Error> {
        self.schema = Some(serde_json::from_str(columns)?);
        Ok(self)
    }
}
