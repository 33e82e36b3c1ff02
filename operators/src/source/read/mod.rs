//! Files and standard input as streams.
//!
//! ```text
//! patterns ──► files ──► open, decompress ──► blocks of whole lines ──► lines, texts or sets
//!                                        │                         └──► records of CSV
//!                                        └──► rows of a fixed width ──► integers, vectors
//! ```
//!
//! Files are read one after the other in blocks of 256 KiB; a batch may span files. Text is
//! validated once per run of lines; only an invalid run is checked line by line, to name the
//! first bad one. Integers and vectors are read directly into the buffer that becomes the Arrow
//! column.
//!
//! No call waits. Pipes, terminals and devices are polled before each read (`raw.rs`), below the
//! decompressor, and the runtime waits for their descriptor. A stopped source takes nothing more
//! from its input and sends the rows of all bytes taken so far.

mod braces;
mod compression;
mod csv;
mod descriptors;
mod encoding;
mod error;
mod fixed;
mod follow;
mod followed;
mod input;
mod integers;
mod lines;
mod names;
mod npy;
mod paths;
mod plain;
mod raw;
mod sets;
mod stream;
mod texts;
mod vectors;
mod walk;

#[cfg(test)]
mod tests;

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use arrow_array::types::{UInt32Type, UInt64Type};
use arrow_schema::SchemaRef;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trommel_engine::error::{BindError, BindErrorKind};
use trommel_engine::memory::MemoryBudget;
use trommel_engine::operator::{BindContext, Fragment, Load, OperatorSpec};
use trommel_engine::registry::Configured;
use trommel_kernels::Isa;

use crate::columns::DIMS_MAX;
use crate::files::{input_claims, name_of};
use crate::parameters::{batch_items, check_batch, check_range, refuse};

pub use encoding::Invalid;
pub use error::ReadError;
pub use npy::NpyError;

use csv::{CsvColumns, CsvRows};
use encoding::Decoding;
use fixed::{RowFormat, RowSource};
use follow::{FollowSource, Named, TIMES, Times};
use input::Inputs;
use integers::Integers;
use lines::{LineBuffer, LineFormat, LineSource};
use names::Names;
use npy::NpyHeader;
use paths::{Files, Place};
use plain::{PLACE_COLUMNS, TextLines};
use sets::SetLines;
use texts::{Texts, Unit};
use vectors::{NpyVectors, RawVectors, npy_header};

const LINE_BYTES_RANGE: RangeInclusive<usize> = 1..=1 << 30;

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
    /// `vector`.
    Csv,
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

/// Action for a line or a file that cannot be used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OnError {
    /// End the run with an error that names the file and the line.
    #[default]
    Fail,
    /// Leave it out. A line is counted in `skipped`; a file is counted in `files_skipped`, and
    /// the first 20 are named in a warning and in the report. Rows of a damaged file up to the
    /// damage are kept.
    Skip,
}

/// Reads files or standard input.
///
/// # Ports
/// Out, by format: `line` (Utf8); `path` and `text` (Utf8), with `line_number` (UInt64) for
/// paragraphs; `item` (UInt32 or UInt64); `id` (UInt32) and `set` (`List<UInt32>`, strictly
/// ascending); or `id` and `vector` (`FixedSizeList<Float32>`), with texts (Utf8) for `csv`.
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
/// files that do not exist.
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
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Read {
    /// Files, patterns such as `logs/**/*.gz`, or `-` for standard input. A file is read once,
    /// even if several names or links lead to it; links to folders that form a circle are
    /// followed once. As in a shell, wildcards do not match hidden files. Files ending in .gz or
    /// .zst are decompressed; compressed text is also recognised by its first bytes. A zstd
    /// window may have up to 2 GiB (`--long=31`) and takes as much memory.
    #[schemars(with = "Vec<String>", length(min = 1))]
    paths: Vec<PathBuf>,
    /// Format of the files.
    #[serde(default)]
    format: ReadFormat,
    /// Follow files that grow: wait for more at the end of a file, through rotation and
    /// truncation, and look for new files that match a pattern or have a path that was named,
    /// until the run is stopped. A replaced or rewritten file counts as a new file. Only for
    /// uncompressed regular files of format `lines` or `sets`, at most 4,096 at once; what else a
    /// pattern matches is left out with a warning. The lines of a copy that matches a pattern too
    /// are read twice, and a file that is there for less than 100 ms may be missed.
    #[serde(default)]
    follow: bool,
    /// With `follow`: read the files that are there at the start from their beginning or their
    /// end. Files that come later are read from their beginning.
    #[serde(default)]
    from: ReadFrom,
    /// With `follow`: seconds without a new line after which a file is closed that no path or
    /// pattern leads to any more, such as a rotated one; 300 when left out.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1_000_000.0))]
    quiet_seconds: Option<f64>,
    /// Maximum rows per batch. A batch has fewer when its lines are long or the input has no more
    /// at present.
    #[serde(default = "batch_items")]
    #[schemars(range(min = 1, max = 1_048_576))]
    batch: usize,
    /// Action for a line that is too long or is not a set, for a text that has such a line, and
    /// for a file that is missing, cannot be opened, is damaged, or is truncated while it is read.
    /// When left out, `fail`; with `follow`, `skip`.
    #[serde(default)]
    on_error: Option<OnError>,
    /// Encoding of text, such as `utf-8`, `windows-1252`, `utf-16le` or `shift_jis`: a label of
    /// the Encoding Standard, in which `latin1` is `windows-1252`. A byte order mark of UTF-8 or
    /// UTF-16 counts more. When left out, UTF-8, and a file that looks like UTF-16 or UTF-32
    /// without a mark is an error.
    #[serde(default)]
    encoding: Option<String>,
    /// Action for a line with bytes that are no text in this encoding. When left out, that of
    /// `on_error`.
    #[serde(default)]
    invalid: Option<Invalid>,
    /// Maximum length of a line, in bytes; for `paragraphs` and `files`, of a text.
    #[serde(default = "default_line_bytes_max")]
    #[schemars(range(min = 1, max = 1_073_741_824))]
    line_bytes_max: usize,
    /// Coordinates of a vector: needed for `f32le`, for `npy` from standard input, a pipe or a
    /// missing file, and for `csv` with a name that ends in `*`.
    #[serde(default)]
    #[schemars(range(min = 1, max = 4_096))]
    dims: Option<u32>,
    /// For `f32le` and `npy`: a text file with a line for each vector, which becomes the column
    /// `name`.
    #[serde(default)]
    names: Option<PathBuf>,
    /// For `csv`: names of the columns that become columns of text. For `lines`: `path` and
    /// `line_number` (from 1), to be columns beside `line`.
    #[serde(default)]
    columns: Vec<String>,
    /// For `csv`: names of the columns of numbers that become the column `vector`, in this order.
    /// A name that ends in `*` stands for all columns that begin with the rest of it, in the order
    /// of the file.
    #[serde(default)]
    vector: Vec<String>,
    /// For `csv`: the character between two fields, such as `;` or `\t`; a comma when left out.
    #[serde(default)]
    #[schemars(length(min = 1, max = 1))]
    delimiter: Option<String>,
}

fn default_line_bytes_max() -> usize {
    1 << 20
}

impl Read {
    /// Reads `paths` (files, patterns, or `-` for standard input) in this `format`.
    pub fn new(paths: impl IntoIterator<Item = impl Into<PathBuf>>, format: ReadFormat) -> Self {
        Self {
            paths: paths.into_iter().map(Into::into).collect(),
            format,
            follow: false,
            from: ReadFrom::Beginning,
            quiet_seconds: None,
            batch: batch_items(),
            on_error: None,
            encoding: None,
            invalid: None,
            line_bytes_max: default_line_bytes_max(),
            dims: None,
            names: None,
            columns: Vec::new(),
            vector: Vec::new(),
            delimiter: None,
        }
    }

    /// Sets the coordinates of a vector: 1 to 4,096.
    #[must_use]
    pub fn dims(mut self, dims: u32) -> Self {
        self.dims = Some(dims);
        self
    }

    /// Names the vectors by the lines of the text file `path`.
    #[must_use]
    pub fn names(mut self, path: impl Into<PathBuf>) -> Self {
        self.names = Some(path.into());
        self
    }

    /// Sets the encoding of text: a label of the Encoding Standard, such as `windows-1252`.
    #[must_use]
    pub fn encoding(mut self, label: impl Into<String>) -> Self {
        self.encoding = Some(label.into());
        self
    }

    /// Sets the action for a line with bytes that are no text in the encoding.
    #[must_use]
    pub fn invalid(mut self, invalid: Invalid) -> Self {
        self.invalid = Some(invalid);
        self
    }

    /// Sets the columns of a CSV file that become columns of text, or `path` and `line_number` as
    /// columns beside `line`.
    #[must_use]
    pub fn columns(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.columns = names.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the columns of a CSV file that become the column `vector`.
    #[must_use]
    pub fn vector(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.vector = names.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the character between two fields of a CSV file; the default is a comma.
    #[must_use]
    pub fn delimiter(mut self, delimiter: char) -> Self {
        self.delimiter = Some(delimiter.into());
        self
    }

    /// Sets the maximum rows per batch: 1 to 1,048,576.
    #[must_use]
    pub fn batch(mut self, items: usize) -> Self {
        self.batch = items;
        self
    }

    /// Follows files that grow, until the run is stopped.
    #[must_use]
    pub fn follow(mut self) -> Self {
        self.follow = true;
        self
    }

    /// Sets where followed files that are there at the start are read from.
    #[must_use]
    pub fn from(mut self, from: ReadFrom) -> Self {
        self.from = from;
        self
    }

    /// Sets the seconds after which a quiet file is closed that no path leads to any more: 0 to
    /// 1,000,000.
    #[must_use]
    pub fn quiet_seconds(mut self, seconds: f64) -> Self {
        self.quiet_seconds = Some(seconds);
        self
    }

    /// Sets the action for a line or a file that cannot be used.
    #[must_use]
    pub fn on_error(mut self, on_error: OnError) -> Self {
        self.on_error = Some(on_error);
        self
    }

    /// Sets the maximum length of a line or a text, in bytes: 1 to 2^30.
    #[must_use]
    pub fn line_bytes_max(mut self, bytes: usize) -> Self {
        self.line_bytes_max = bytes;
        self
    }

    fn lines(&self, memory: &MemoryBudget) -> Result<LineBuffer, BindError> {
        let isa = Isa::selected().map_err(|error| BindErrorKind::Other(error.into()))?;
        let lines = LineBuffer::of_file(isa, self.line_bytes_max).within(memory);
        Ok(if self.encoding.is_some() { lines.without_guesses() } else { lines })
    }

    fn action(&self) -> OnError {
        let usual = if self.follow { OnError::Skip } else { OnError::Fail };
        self.on_error.unwrap_or(usual)
    }

    /// The encoding of text, and the action for other bytes.
    fn decoding(&self) -> Result<Decoding, BindError> {
        let invalid = self.invalid.unwrap_or(match self.action() {
            OnError::Fail => Invalid::Fail,
            OnError::Skip => Invalid::Skip,
        });
        let Some(name) = &self.encoding else { return Ok(Decoding::usual(invalid)) };
        let encoding = encoding::named(name).ok_or_else(|| {
            let allowed = "expected a label of the Encoding Standard, such as `utf-8`, \
                           `windows-1252`, `utf-16le`, `iso-8859-2` or `shift_jis`";
            refuse("encoding", format!("`{name}`"), allowed)
        })?;
        Ok(Decoding { encoding, invalid })
    }

    /// Rows of lines, with the columns that were asked for.
    fn text_lines(&self) -> Result<TextLines, BindError> {
        let is_unknown = |name: &&String| !PLACE_COLUMNS.contains(&name.as_str());
        if let Some(name) = self.columns.iter().find(is_unknown) {
            let allowed = "lines have `path` and `line_number` beside `line`";
            return Err(refuse("columns", format!("`{name}`"), allowed));
        }
        Ok(TextLines::with_columns(&self.columns))
    }

    fn bind_lines(
        &self,
        inputs: Inputs,
        memory: &MemoryBudget,
        format: impl LineFormat + 'static,
    ) -> Result<Fragment, BindError> {
        let schema = SchemaRef::clone(format.schema());
        let source = LineSource::new(inputs, format, self.batch, self.lines(memory)?);
        Ok(Fragment::source(Load::Heavy, source, schema))
    }

    /// Binds a source that follows files; refuses formats and paths that cannot be followed.
    fn bind_following(&self, context: BindContext) -> Result<Fragment, BindError> {
        let refuse = |value: &str, allowed: &str| {
            let (value, allowed) = (value.to_owned(), allowed.to_owned());
            Err(BindErrorKind::Value { value, allowed }.at("follow"))
        };
        if let Some(seconds) = &self.quiet_seconds {
            check_range("quiet_seconds", seconds, &(0.0..=1e6))?;
        }
        if self.reads_stdin() {
            return refuse("true with standard input", "only files can be followed");
        }
        let named = follow::named(&self.paths, self.on_error != Some(OnError::Skip))
            .map_err(|error| BindErrorKind::Other(Box::new(error)).at("paths"))?;
        match self.format {
            ReadFormat::Lines => self.following(named, context, self.text_lines()?),
            ReadFormat::Sets => {
                let sets = SetLines::new().within(&context.memory);
                self.following(named, context, sets)
            }
            _ => refuse("true", "`format` must be `lines` or `sets`"),
        }
    }

    fn following(
        &self,
        named: Vec<Named>,
        context: BindContext,
        format: impl LineFormat + 'static,
    ) -> Result<Fragment, BindError> {
        let schema = SchemaRef::clone(format.schema());
        let decoding = self.decoding()?;
        if !decoding.keeps_line_ends() {
            let allowed = "`follow` reads encodings in which ASCII is one byte a character";
            return Err(refuse("encoding", decoding.encoding.name(), allowed));
        }
        let inputs = Inputs::none(self.action()).decoding(decoding).leaving_out(context.outputs);
        let claims: Vec<_> = named.iter().flat_map(Named::claims).collect();
        let lines = self.lines(&context.memory)?.skipping_zeros();
        let quiet = self.quiet_seconds.map_or(TIMES.quiet, Duration::from_secs_f64);
        let source = FollowSource::new(inputs, named, format, self.batch, lines)
            .times(Times { quiet, ..TIMES });
        let is_at_end = self.from == ReadFrom::End;
        let source = if is_at_end { source.beginning_at_end() } else { source };
        let fragment = Fragment::source(Load::Heavy, source, schema).claiming(claims);
        Ok(if is_at_end { fragment } else { fragment.rereading() })
    }

    fn bind_rows(&self, inputs: Inputs, format: impl RowFormat + 'static) -> Fragment {
        let schema = SchemaRef::clone(format.schema());
        let source = RowSource::new(inputs, format, self.batch);
        Fragment::source(Load::Heavy, source, schema)
    }

    /// Refuses parameters of followed files.
    fn check_not_followed(&self) -> Result<(), BindError> {
        let given =
            [("from", self.from == ReadFrom::End), ("quiet_seconds", self.quiet_seconds.is_some())];
        let allowed = "it is for followed files only, with `follow`: true";
        match given.into_iter().find(|(_, is_given)| *is_given) {
            Some((parameter, _)) => Err(refuse(parameter, "a value", allowed)),
            None => Ok(()),
        }
    }

    /// Refuses parameters of other formats.
    fn check_format(&self) -> Result<(), BindError> {
        let of_vectors = [ReadFormat::F32le, ReadFormat::Npy, ReadFormat::Csv];
        let of_csv = [ReadFormat::Csv];
        let of_rows = [ReadFormat::F32le, ReadFormat::Npy];
        let of_names = [ReadFormat::Csv, ReadFormat::Lines];
        let of_text = [
            ReadFormat::Lines,
            ReadFormat::Paragraphs,
            ReadFormat::Files,
            ReadFormat::Sets,
            ReadFormat::Csv,
        ];
        let given: [(_, _, &[ReadFormat], _); 7] = [
            ("encoding", self.encoding.is_some(), &of_text, "of text"),
            ("invalid", self.invalid.is_some(), &of_text, "of text"),
            ("dims", self.dims.is_some(), &of_vectors, "`f32le`, `npy` or `csv`"),
            ("names", self.names.is_some(), &of_rows, "`f32le` or `npy`"),
            ("columns", !self.columns.is_empty(), &of_names, "`csv` or `lines`"),
            ("vector", !self.vector.is_empty(), &of_csv, "`csv`"),
            ("delimiter", self.delimiter.is_some(), &of_csv, "`csv`"),
        ];
        for (parameter, is_given, formats, names) in given {
            if is_given && !formats.contains(&self.format) {
                let allowed = format!("`{parameter}` is for `format` {names} only");
                return Err(refuse(parameter, "a value", allowed));
            }
        }
        if self.names.is_some() && self.action() == OnError::Skip {
            let allowed = "with `on_error`: \"skip\", vectors would get the names of others";
            return Err(refuse("names", "a file", allowed));
        }
        self.dims.map_or(Ok(()), |dims| check_range("dims", &dims, &(1..=DIMS_MAX)))
    }

    /// Coordinates of the vectors of the files: `dims`, or those of the first file.
    fn npy_dims(&self, files: &Files) -> Result<u32, BindError> {
        if let Some(dims) = self.dims {
            return Ok(dims);
        }
        let first = files.places.first();
        let Some(place @ Place::File(path)) = first.filter(|_| files.bytes.is_some()) else {
            let allowed = "vectors of standard input or of a pipe need `dims`";
            return Err(refuse("dims", "no value", allowed));
        };
        let blame = |error: ReadError| BindErrorKind::Other(Box::new(error)).at("paths");
        let path = name_of(path).into();
        match npy_header(place) {
            Ok(Ok(NpyHeader { dims, .. })) => {
                let allowed = format!("vectors of 1 to {DIMS_MAX} coordinates");
                let dims = u32::try_from(dims).ok().filter(|dims| (1..=DIMS_MAX).contains(dims));
                dims.ok_or_else(|| refuse("paths", format!("{path}"), allowed))
            }
            Ok(Err(source)) => Err(blame(ReadError::Npy { path, source })),
            Err(source) => Err(blame(ReadError::Read { path, source })),
        }
    }

    /// The open file of names.
    fn open_names(&self) -> Result<Option<Names>, BindError> {
        let open = |path: &PathBuf| Names::open(path, self.line_bytes_max);
        let names = self.names.as_ref().map(open).transpose();
        names.map_err(|error| BindErrorKind::Other(Box::new(error)).at("names"))
    }

    fn csv_columns(&self) -> Result<CsvColumns, BindError> {
        let Self { columns, vector, dims, .. } = self;
        if columns.is_empty() && vector.is_empty() {
            let allowed = "name at least one of the columns, here or in `vector`";
            return Err(refuse("columns", "an empty list", allowed));
        }
        let given = columns.iter().map(String::as_str);
        let names: Vec<&str> = ["id", "vector"].into_iter().chain(given).collect();
        let repeated = (2..names.len()).find(|&place| names[..place].contains(&names[place]));
        if let Some(place) = repeated {
            let allowed = "the columns of the rows need names of their own";
            return Err(refuse("columns", format!("`{}`", names[place]), allowed));
        }
        let dims = match (dims, u32::try_from(vector.len())) {
            (Some(dims), Ok(0)) => {
                return Err(refuse("dims", dims.to_string(), "name the `vector`"));
            }
            (Some(dims), _) => *dims,
            (None, _) if vector.iter().any(|name| csv::is_pattern(name)) => {
                return Err(refuse("dims", "no value", "a name that ends in `*` needs `dims`"));
            }
            (None, names) => names.unwrap_or(u32::MAX),
        };
        check_range("vector", &dims, &(0..=DIMS_MAX))?;
        let delimiter = match self.delimiter.as_deref().unwrap_or(",").as_bytes() {
            &[byte] if byte.is_ascii() && !b"\"\r\n".contains(&byte) => byte,
            found => {
                let found = format!("{:?}", String::from_utf8_lossy(found));
                let allowed = "expected one ASCII character that is no quote and no line end";
                return Err(refuse("delimiter", found, allowed));
            }
        };
        Ok(CsvColumns { texts: columns.clone(), vector: vector.clone(), dims, delimiter })
    }
}

impl Configured for Read {
    const NAME: &'static str = "read";
    const SUMMARY: &'static str = "read files or standard input";
}

impl OperatorSpec for Read {
    fn operator(&self) -> &'static str {
        Self::NAME
    }

    fn input_ports(&self) -> RangeInclusive<usize> {
        0..=0
    }

    fn reads_stdin(&self) -> bool {
        let names = [paths::STDIN, "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"].map(Path::new);
        self.paths.iter().any(|path| names.contains(&path.as_path()))
    }

    fn bind(self: Box<Self>, _: &[SchemaRef], context: BindContext) -> Result<Fragment, BindError> {
        check_batch(self.batch)?;
        check_range("line_bytes_max", &self.line_bytes_max, &LINE_BYTES_RANGE)?;
        self.check_format()?;
        if !self.follow {
            self.check_not_followed()?;
        }
        if self.follow && !self.paths.is_empty() {
            return self.bind_following(context);
        }
        let files = paths::resolve(&self.paths, self.action())
            .map_err(|error| BindErrorKind::Other(Box::new(error)).at("paths"))?;
        let Some(mut files) = files else {
            let allowed = "name at least one file".to_owned();
            return Err(
                BindErrorKind::Value { value: "an empty list".to_owned(), allowed }.at("paths")
            );
        };
        let is_text = !matches!(
            self.format,
            ReadFormat::U32le | ReadFormat::U64le | ReadFormat::F32le | ReadFormat::Npy
        );
        let npy_dims = match self.format {
            ReadFormat::Npy => self.npy_dims(&files)?,
            _ => 0,
        };
        let mut claims = std::mem::take(&mut files.claims);
        claims.extend(self.names.iter().flat_map(|path| input_claims(path, "names")));
        let inputs = Inputs::new(files, self.action(), is_text);
        let inputs = inputs.decoding(self.decoding()?).leaving_out(context.outputs);
        let (bytes_max, memory) = (self.line_bytes_max, &context.memory);
        let texts = |unit| Texts::new(unit, bytes_max).within(memory);
        let fragment = match self.format {
            ReadFormat::Lines => self.bind_lines(inputs, memory, self.text_lines()?)?,
            ReadFormat::Paragraphs => self.bind_lines(inputs, memory, texts(Unit::Paragraph))?,
            ReadFormat::Files => self.bind_lines(inputs, memory, texts(Unit::File))?,
            ReadFormat::Sets => self.bind_lines(inputs, memory, SetLines::new().within(memory))?,
            ReadFormat::Csv => {
                let rows = CsvRows::new(self.csv_columns()?, bytes_max).within(memory);
                self.bind_lines(inputs, memory, rows)?
            }
            ReadFormat::U32le => self.bind_rows(inputs, Integers::<UInt32Type>::new()),
            ReadFormat::U64le => self.bind_rows(inputs, Integers::<UInt64Type>::new()),
            ReadFormat::F32le => {
                let Some(dims) = self.dims else {
                    return Err(refuse("dims", "no value", "`f32le` needs `dims`"));
                };
                self.bind_rows(inputs, RawVectors::new(dims, self.open_names()?))
            }
            ReadFormat::Npy => {
                self.bind_rows(inputs, NpyVectors::new(npy_dims, self.open_names()?))
            }
        };
        Ok(fragment.claiming(claims))
    }
}
