//! Files and standard input as streams.
//!
//! ```text
//! patterns ──► files ──► open, decompress ──► blocks of whole lines ──► lines, texts or sets
//!                                        └──► aligned words ──────────► integers
//! ```
//!
//! Files are read one after the other in large blocks; a batch may span files. Text is validated
//! once for each run of lines, and only a run that is not valid is looked at line by line, to name
//! the first bad one. Integers are read straight into the buffer that becomes the Arrow column.
//!
//! No call waits: pipes, terminals and devices are asked before each read (`raw.rs`), below the
//! decompressor, and the runtime waits for their descriptor. A stop takes nothing more from the
//! input and sends the rows of all bytes that were taken.

mod compression;
mod error;
mod follow;
mod input;
mod lines;
mod paths;
mod raw;
mod stream;
mod texts;
mod walk;
mod words;

#[cfg(test)]
mod tests;

use std::ops::RangeInclusive;

use arrow_array::types::{UInt32Type, UInt64Type};
use arrow_schema::SchemaRef;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use trommel_engine::error::{BindError, BindErrorKind};
use trommel_engine::operator::{BindContext, Fragment, Load, OperatorSpec};
use trommel_engine::registry::Configured;

use crate::parameters::{batch_items, check_batch, check_range};

pub use error::ReadError;

use follow::{FollowSource, Named};
use input::Inputs;
use lines::{LineBuffer, LineFormat, LineSource, SetLines, TextLines};
use texts::{Texts, Unit};
use words::{Word, WordSource};

const LINE_BYTES_RANGE: RangeInclusive<usize> = 1..=1 << 30;

/// How the bytes of a file are read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ReadFormat {
    /// Lines of UTF-8 text: column `line`.
    #[default]
    Lines,
    /// Paragraphs of UTF-8 text, which blank lines separate: columns `path`, `line_number` (of the
    /// first line, from 1) and `text`.
    Paragraphs,
    /// Whole files of UTF-8 text: columns `path` and `text`. An empty file has no row.
    Files,
    /// Little-endian 32-bit integers without a sign: column `item`.
    U32le,
    /// Little-endian 64-bit integers without a sign: column `item`.
    U64le,
    /// A set of integers a line, separated by blanks, in any order: columns `id` (line number from
    /// 0 over all files) and `set`.
    Sets,
}

/// What happens to a line or a file that cannot be used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OnError {
    /// The run ends with an error that names the place.
    #[default]
    Fail,
    /// It is left out: a line is counted in `skipped`; a file is counted in `files_skipped` and
    /// named in a warning and in the report, up to 20 of them. The rows of a file up to its damage
    /// stay.
    Skip,
}

/// Reads files and standard input.
///
/// # Ports
/// Out: `line` (Utf8); `path`, `text` (Utf8), and for paragraphs `line_number` (UInt64); `item`
/// (UInt32 or UInt64); or `id` (UInt32) and `set` (`List<UInt32>`, strictly ascending).
///
/// # Ends
/// A run that is stopped takes nothing more from the input. All complete rows that were taken pass
/// through; bytes of a line, an item or a text that is not complete are counted in
/// `unfinished_bytes`.
///
/// # Errors
/// When it is bound: a file that does not exist, a pattern without a match, a directory. While it
/// runs: what [`ReadError`] lists. Lines and files that cannot be used are left out instead if
/// [`OnError::Skip`] says so, files that do not exist among them.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Read {
    /// Files, patterns such as `logs/**/*.gz`, or `-` for standard input. Each file is read once,
    /// however it is named, and no link to a folder is followed in circles. As in a shell, a
    /// wildcard does not match hidden files. Files that end in .gz or .zst are decompressed; text
    /// that is compressed in this way is also recognised without the name, by its first bytes. A
    /// zstd window of up to 2 GiB (`--long=31`) is accepted, which takes as much memory.
    #[schemars(length(min = 1))]
    paths: Vec<String>,
    /// How the bytes of a file are read.
    #[serde(default)]
    format: ReadFormat,
    /// Goes on when the end of a file has come: waits for more, through rotation and truncation,
    /// and for files that match a pattern later; ends when the run is stopped. Files are read from
    /// their beginning; a file that is replaced is another file. For regular files of `lines` or
    /// `sets` that are not compressed, 512 at once. A copy of a file that matches too is read as
    /// well, so that its lines come twice.
    #[serde(default)]
    follow: bool,
    /// Items a batch. A batch is smaller when it holds long lines or when the input has no more at
    /// present.
    #[serde(default = "batch_items")]
    #[schemars(range(min = 1, max = 1_048_576))]
    batch: usize,
    /// What happens to a line that cannot be used: not UTF-8, too long, or not a set; a paragraph
    /// or a file of the format `files` with such a line cannot be used either. And to a file that
    /// is missing, cannot be opened, is damaged, or is cut while it is read.
    #[serde(default)]
    on_error: OnError,
    /// The longest line that is accepted, or paragraph, or file of the format `files`, in bytes.
    #[serde(default = "default_line_bytes_max")]
    #[schemars(range(min = 1, max = 1_073_741_824))]
    line_bytes_max: usize,
}

fn default_line_bytes_max() -> usize {
    1 << 20
}

impl Read {
    /// Reads `paths` (files, patterns, or `-` for standard input) in this format.
    pub fn new(paths: impl IntoIterator<Item = impl Into<String>>, format: ReadFormat) -> Self {
        Self {
            paths: paths.into_iter().map(Into::into).collect(),
            format,
            follow: false,
            batch: batch_items(),
            on_error: OnError::Fail,
            line_bytes_max: default_line_bytes_max(),
        }
    }

    /// Sets how many items a batch has: 1 to 1,048,576.
    #[must_use]
    pub fn batch(mut self, items: usize) -> Self {
        self.batch = items;
        self
    }

    /// Goes on when the end of a file has come, until the run is stopped.
    #[must_use]
    pub fn follow(mut self) -> Self {
        self.follow = true;
        self
    }

    /// Sets what happens to a line or a file that cannot be used.
    #[must_use]
    pub fn on_error(mut self, on_error: OnError) -> Self {
        self.on_error = on_error;
        self
    }

    /// Sets the longest line that is accepted, in bytes: 1 to 2^30.
    #[must_use]
    pub fn line_bytes_max(mut self, bytes: usize) -> Self {
        self.line_bytes_max = bytes;
        self
    }

    fn bind_lines(&self, inputs: Inputs, format: impl LineFormat + 'static) -> Fragment {
        let schema = SchemaRef::clone(format.schema());
        let source = LineSource::new(inputs, format, self.batch, self.line_bytes_max);
        Fragment::source(Load::Heavy, source, schema)
    }

    /// Follows files, if their format and their paths allow it.
    fn bind_following(&self) -> Result<Fragment, BindError> {
        let refuse = |value: &str, allowed: &str| {
            let (value, allowed) = (value.to_owned(), allowed.to_owned());
            Err(BindErrorKind::Value { value, allowed }.at("follow"))
        };
        if self.reads_stdin() {
            return refuse("true beside standard input", "it is for files");
        }
        let named = follow::named(&self.paths, self.on_error == OnError::Fail)
            .map_err(|error| BindErrorKind::Other(Box::new(error)).at("paths"))?;
        match self.format {
            ReadFormat::Lines => Ok(self.following(named, TextLines::new(self.batch))),
            ReadFormat::Sets => Ok(self.following(named, SetLines::new())),
            _ => refuse("true", "it goes with `format`: `lines` or `sets`"),
        }
    }

    fn following(&self, named: Vec<Named>, format: impl LineFormat + 'static) -> Fragment {
        let schema = SchemaRef::clone(format.schema());
        let lines = LineBuffer::of_file(self.line_bytes_max);
        let inputs = Inputs::none(self.on_error);
        let source = FollowSource::new(inputs, named, format, self.batch, lines);
        Fragment::source(Load::Heavy, source, schema)
    }

    fn bind_words<T: Word>(&self, inputs: Inputs) -> Fragment {
        let source = WordSource::<T>::new(inputs, self.batch);
        let schema = SchemaRef::clone(source.schema());
        Fragment::source(Load::Heavy, source, schema)
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
        let names = [paths::STDIN, "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"];
        self.paths.iter().any(|path| names.contains(&path.as_str()))
    }

    fn bind(self: Box<Self>, _: &[SchemaRef], _: BindContext) -> Result<Fragment, BindError> {
        check_batch(self.batch)?;
        check_range("line_bytes_max", &self.line_bytes_max, &LINE_BYTES_RANGE)?;
        if self.follow && !self.paths.is_empty() {
            return self.bind_following();
        }
        let files = paths::resolve(&self.paths, self.on_error)
            .map_err(|error| BindErrorKind::Other(Box::new(error)).at("paths"))?;
        let Some(files) = files else {
            let allowed = "name at least one file".to_owned();
            return Err(
                BindErrorKind::Value { value: "an empty list".to_owned(), allowed }.at("paths")
            );
        };
        let is_text = !matches!(self.format, ReadFormat::U32le | ReadFormat::U64le);
        let inputs = Inputs::new(files, self.on_error, is_text);
        Ok(match self.format {
            ReadFormat::Lines => self.bind_lines(inputs, TextLines::new(self.batch)),
            ReadFormat::Paragraphs => {
                self.bind_lines(inputs, Texts::new(Unit::Paragraph, self.line_bytes_max))
            }
            ReadFormat::Files => {
                self.bind_lines(inputs, Texts::new(Unit::File, self.line_bytes_max))
            }
            ReadFormat::Sets => self.bind_lines(inputs, SetLines::new()),
            ReadFormat::U32le => self.bind_words::<UInt32Type>(inputs),
            ReadFormat::U64le => self.bind_words::<UInt64Type>(inputs),
        })
    }
}
