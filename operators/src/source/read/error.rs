//! Errors of reading.

use std::io;
use std::sync::Arc;

use thiserror::Error;
use trommel_engine::memory::MemoryFull;

use super::fixed::npy::NpyError;

/// Error of a file, or of a place in a file.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// A path is neither a file nor a valid pattern.
    #[error(
        "there is no file `{pattern}`, and it is no pattern either: {reason}{}",
        brackets(pattern)
    )]
    Pattern {
        /// The pattern.
        pattern: String,
        /// Position and reason.
        reason: String,
    },
    /// A pattern matches no file.
    #[error("no file matches the pattern `{pattern}`{}", no_such_name(pattern))]
    NoMatch {
        /// The pattern.
        pattern: String,
    },
    /// A pattern matches more files than a source can list.
    #[error("the pattern `{pattern}` matches more than {files_max} files")]
    TooManyFiles {
        /// The pattern.
        pattern: String,
        /// Maximum files of a source.
        files_max: usize,
    },
    /// The path is a directory.
    #[error("{path} is a directory; `{path}/*` names the files in it")]
    Directory {
        /// The directory.
        path: Arc<str>,
    },
    /// A file that a pattern matches is written by the run itself.
    #[error("{path} is an output of this run")]
    Output {
        /// The file.
        path: Arc<str>,
    },
    /// The file cannot be opened.
    #[error("cannot open {path}: {source}")]
    Open {
        /// The file.
        path: Arc<str>,
        /// Error of the operating system.
        source: io::Error,
    },
    /// Reading or decompressing failed.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: Arc<str>,
        /// Error of the operating system or of the decompressor.
        source: io::Error,
    },
    /// The file was truncated while it was read.
    #[error(
        "{path} was truncated while it was read: {bytes} bytes when it was opened, {read} read"
    )]
    Cut {
        /// The file.
        path: Arc<str>,
        /// Size of the file when it was opened, in bytes.
        bytes: u64,
        /// Bytes read.
        read: u64,
    },
    /// The file is text in an encoding that is not read here.
    #[error(
        "{path} is {encoding}, which is not supported here; \
         convert it: `iconv -f {encoding} -t UTF-8 FILE | trommel …`"
    )]
    Encoding {
        /// The file.
        path: Arc<str>,
        /// The encoding.
        encoding: &'static str,
    },
    /// The file looks like text in UTF-16, without a byte order mark.
    #[error("{path} looks like {encoding} without a byte order mark; name its `encoding`")]
    Unmarked {
        /// The file.
        path: Arc<str>,
        /// The encoding.
        encoding: &'static str,
    },
    /// The file has bytes that are no text in its encoding.
    #[error("{path} has bytes that are no text in {encoding}")]
    Malformed {
        /// The file.
        path: Arc<str>,
        /// The encoding.
        encoding: &'static str,
    },
    /// There is no memory for a long line or text.
    #[error("{path}:{line}: no memory for a long line: {source}")]
    Memory {
        /// The file.
        path: Arc<str>,
        /// The line, from 1.
        line: u64,
        /// The budget.
        source: MemoryFull,
    },
    /// A line is longer than `line_bytes_max`.
    #[error("{path}:{line}: the line is longer than {bytes_max} bytes (`line_bytes_max`)")]
    LineTooLong {
        /// The file.
        path: Arc<str>,
        /// The line, from 1.
        line: u64,
        /// Maximum bytes of a line.
        bytes_max: usize,
    },
    /// A paragraph or a file is longer than `line_bytes_max`.
    #[error(
        "{path}:{line}: the text that begins here is longer than {bytes_max} bytes (`line_bytes_max`)"
    )]
    TextTooLong {
        /// The file.
        path: Arc<str>,
        /// Its first line, from 1.
        line: u64,
        /// Maximum bytes of a text.
        bytes_max: usize,
    },
    /// A line is no text in the encoding of the inputs.
    #[error("{path}:{line}: byte {offset} of the line is not valid {encoding}")]
    NotText {
        /// The file.
        path: Arc<str>,
        /// The line, from 1.
        line: u64,
        /// Index of the first invalid byte in the line, from 0.
        offset: usize,
        /// The encoding.
        encoding: &'static str,
    },
    /// A token of a line is not an item of a set.
    #[error(
        "{path}:{line}: invalid item `{token}` of a set; \
         expected whole numbers from 0 to {max}, separated by blanks",
        max = u32::MAX
    )]
    Token {
        /// The file.
        path: Arc<str>,
        /// The line, from 1.
        line: u64,
        /// The token, shortened if the token is long.
        token: String,
    },
    /// A line is no object of JSON.
    #[error("{path}:{line}: not an object of JSON: {reason}")]
    Json {
        /// The file.
        path: Arc<str>,
        /// The line, from 1.
        line: u64,
        /// Place in the line and reason.
        reason: String,
    },
    /// A record of a log does not follow the pattern.
    #[error("{path}:{line}: the line does not follow the pattern: {reason}")]
    Log {
        /// The file.
        path: Arc<str>,
        /// The line, or the first line of the record, from 1.
        line: u64,
        /// Name of the column at whose end or in whose place the record fails.
        column: Option<String>,
        /// Reason.
        reason: String,
    },
    /// A value is not of the type of its column.
    #[error("{path}:{line}: column `{column}` is {expected}; found {found}")]
    Value {
        /// The file.
        path: Arc<str>,
        /// The line, or the first line of the record, from 1.
        line: u64,
        /// Name of the column, with the names of the members that lead to the value.
        column: String,
        /// Type of the column.
        expected: String,
        /// Type and text of the value; a long text is shortened.
        found: String,
    },
    /// There are more than 2^32 rows with ids.
    #[error("{path}:{line}: more than 2^32 rows; their ids have 32 bits")]
    TooManyRows {
        /// The file.
        path: Arc<str>,
        /// The line, from 1.
        line: u64,
    },
    /// The length of a file is not a multiple of the item size.
    #[error("{path}: incomplete item at byte {offset}: {left} of {width} bytes")]
    PartialItem {
        /// The file.
        path: Arc<str>,
        /// Offset of the incomplete item, in bytes after decompression.
        offset: u64,
        /// Bytes of the item that are there.
        left: usize,
        /// Bytes of an item.
        width: usize,
    },
    /// A file ends within its header.
    #[error("{path} ends after {bytes} bytes, within its header")]
    PartialHeader {
        /// The file.
        path: Arc<str>,
        /// Bytes of the file.
        bytes: usize,
    },
    /// A file of NumPy cannot be used.
    #[error("{path}: {source}")]
    Npy {
        /// The file.
        path: Arc<str>,
        /// Reason.
        source: NpyError,
    },
    /// The vectors of a file do not have the expected length.
    #[error("{path} has vectors of {found} coordinates; expected {dims}")]
    Dims {
        /// The file.
        path: Arc<str>,
        /// Coordinates of its vectors.
        found: u64,
        /// Coordinates of all vectors.
        dims: u32,
    },
    /// A file of NumPy has fewer or more vectors than its header says.
    #[error("{path} has {found} vectors; its header says {rows}")]
    NpyRows {
        /// The file.
        path: Arc<str>,
        /// Vectors by the header.
        rows: u64,
        /// Vectors in the file.
        found: u64,
    },
    /// A column of a CSV file is missing, or several columns have its name.
    #[error("{path} has {count} columns named `{name}`, expected one; its columns are {found}")]
    CsvColumn {
        /// The file.
        path: Arc<str>,
        /// Name of the column.
        name: String,
        /// Columns of this name.
        count: usize,
        /// The first columns of the file.
        found: String,
    },
    /// A record of a CSV file has fewer or more fields than the header.
    #[error("{path}:{line}: a record of {found} fields; the header has {fields}")]
    CsvFields {
        /// The file.
        path: Arc<str>,
        /// First line of the record, from 1.
        line: u64,
        /// Fields of the record.
        found: usize,
        /// Fields of the header.
        fields: usize,
    },
    /// A field is not a number.
    #[error("{path}:{line}: invalid number `{token}` in field {field}")]
    Number {
        /// The file.
        path: Arc<str>,
        /// First line of the record, from 1.
        line: u64,
        /// Number of the field, from 1.
        field: usize,
        /// The field, shortened if the field is long.
        token: String,
    },
    /// A field is no text in the encoding of the inputs.
    #[error("{path}:{line}: field {field} is not valid {encoding}")]
    CsvText {
        /// The file.
        path: Arc<str>,
        /// First line of the record, from 1.
        line: u64,
        /// Number of the field, from 1.
        field: usize,
        /// The encoding.
        encoding: &'static str,
    },
    /// A quote is not closed.
    #[error("{path}:{line}: the record that begins here has a quote that is not closed")]
    OpenQuote {
        /// The file.
        path: Arc<str>,
        /// First line of the record, from 1.
        line: u64,
    },
    /// A quote is not closed within `line_bytes_max`.
    #[error(
        "{path}:{line}: the record that begins here has a quote that is not closed within \
         {bytes_max} bytes (`line_bytes_max`); all lines up to the next quote belong to the record"
    )]
    LongQuote {
        /// The file.
        path: Arc<str>,
        /// First line of the record, from 1.
        line: u64,
        /// Maximum bytes of a record.
        bytes_max: usize,
    },
    /// A CSV file is empty.
    #[error("{path} has no header; expected the names of its columns in the first line")]
    NoHeader {
        /// The file.
        path: Arc<str>,
    },
    /// The columns of a table are not given, and the first file does not show them.
    #[error(
        "cannot infer the columns of {path}: {reason}; \
         name the columns and their types in `schema`, such as {{\"status\": \"u16\"}}"
    )]
    NoColumns {
        /// The file.
        path: Arc<str>,
        /// Reason.
        reason: String,
    },
    /// A table cannot be read.
    #[error("cannot read {path}: {source}")]
    Table {
        /// The file.
        path: Arc<str>,
        /// Reason.
        source: TableError,
    },
    /// There are more vectors than names.
    #[error("{path} has {names} names; there are more vectors")]
    TooFewNames {
        /// The file of names.
        path: Arc<str>,
        /// Its lines.
        names: u64,
    },
    /// There are more names than vectors.
    #[error("{path} has more names than there are vectors, which are {vectors}")]
    TooManyNames {
        /// The file of names.
        path: Arc<str>,
        /// Number of vectors.
        vectors: u64,
    },
    /// There are more than 2^32 vectors.
    #[error("{path}: more than 2^32 vectors; their ids have 32 bits")]
    TooManyVectors {
        /// The file.
        path: Arc<str>,
    },
}

/// Advice on brackets, for a pattern with brackets: the name of a file may have brackets, too.
fn brackets(pattern: &str) -> &'static str {
    match pattern.contains('[') {
        true => "; in a pattern, `[ab]` is one of the characters in brackets, and `[[]` a bracket",
        false => "",
    }
}

/// The statement that no file has the pattern as its name, if the pattern has brackets.
fn no_such_name(pattern: &str) -> String {
    match brackets(pattern) {
        "" => String::new(),
        said => format!(", and none has this name{said}"),
    }
}

/// Reason why a table cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TableError {
    /// The file is a pipe, a terminal or a device.
    #[error("tables are read from regular files only, since their columns are at the end")]
    NotRegular,
    /// The file is damaged, or uses a feature that its decoder does not have.
    #[error("{0}")]
    Decode(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The decoder met bytes that the decoder does not expect.
    #[error("it is damaged")]
    Damaged,
    /// The next part of the file does not fit into memory.
    #[error("no memory for its next part: {0}")]
    Memory(#[source] MemoryFull),
    /// The file lacks a column of the first file.
    #[error("it has no column `{name}` of the type {expected}, which the first file has")]
    Missing {
        /// The column.
        name: String,
        /// The type of the column.
        expected: String,
    },
    /// The file has a column that the first file lacks.
    #[error("it has the column `{name}`, which the first file does not have")]
    More {
        /// The column.
        name: String,
    },
}

impl ReadError {
    /// The line that the error names.
    pub(super) fn line_mut(&mut self) -> Option<&mut u64> {
        match self {
            Self::Memory { line, .. }
            | Self::LineTooLong { line, .. }
            | Self::TextTooLong { line, .. }
            | Self::NotText { line, .. }
            | Self::Token { line, .. }
            | Self::Json { line, .. }
            | Self::Log { line, .. }
            | Self::Value { line, .. }
            | Self::TooManyRows { line, .. }
            | Self::CsvFields { line, .. }
            | Self::Number { line, .. }
            | Self::CsvText { line, .. }
            | Self::OpenQuote { line, .. }
            | Self::LongQuote { line, .. } => Some(line),
            _ => None,
        }
    }

    /// The column of the value that cannot be used.
    pub(super) fn column(&self) -> Option<&str> {
        match self {
            Self::Value { column, .. } => Some(column),
            Self::Log { column, .. } => column.as_deref(),
            _ => None,
        }
    }
}
