//! Rows into files and to standard output.
//!
//! ```text
//! batches ──► encode (jsonl, csv) ──► buffer ──► target: standard output, or a file under a temporary name
//!        └──► keep a bounded number of rows (table) ──► layout at the end ──┘
//! ```

mod table;
mod target;

#[cfg(test)]
mod tests;

use std::io;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_json::writer::LineDelimited;
use arrow_schema::{ArrowError, SchemaRef};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use trommel_engine::batch::Payload;
use trommel_engine::error::{BindError, BindErrorKind};
use trommel_engine::operator::{
    BindContext, Counters, Flow, Fragment, Load, Operator, OperatorError, OperatorSpec, Output,
};
use trommel_engine::registry::Configured;

use crate::columns::find_column;
use crate::parameters::check_range;
use table::TableRows;
use target::Target;

const ROWS_RANGE: RangeInclusive<usize> = 1..=1_000_000;
/// Encoded bytes that are kept back before they are written to a file.
const BUFFER_BYTES: usize = 256 << 10;

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
/// A file gets its name when it is complete: until then it is called `PATH.part`, and a run that
/// fails leaves nothing under the final name. What is there already is replaced; pipes and devices
/// are written to directly.
///
/// # Ports
/// In: any columns; `csv` takes no lists and no structures.
///
/// # Errors
/// [`WriteError`], with the operating system's error as its source. When it is bound: a folder that
/// does not exist, a path that is a folder, columns that the format cannot hold.
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
    /// The operating system refused to open, write or rename the file.
    #[error("cannot write {path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// What the operating system says; `BrokenPipe` when the reader of standard output has
        /// gone.
        source: io::Error,
    },
    /// The path is a directory.
    #[error("{path} is a directory")]
    Directory {
        /// The directory.
        path: String,
    },
    /// The folder that the file would be in does not exist.
    #[error("cannot write {path}: there is no folder {folder}")]
    NoFolder {
        /// The file.
        path: String,
        /// Its folder.
        folder: String,
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
        Self { path, format, columns: None, cell_max: None, rows_max: default_rows_max() }
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

    fn encoding(&self, schema: &SchemaRef) -> Result<Encoding, BindError> {
        match self.format {
            WriteFormat::Jsonl => Ok(Encoding::Jsonl),
            WriteFormat::Csv => {
                if let Some(field) = schema.fields().iter().find(|f| f.data_type().is_nested()) {
                    let kind = BindErrorKind::ColumnType {
                        column: field.name().clone(),
                        found: field.data_type().clone(),
                        expected: "a plain value, because csv has no lists; `jsonl` has",
                    };
                    return Err(kind.at("format"));
                }
                Ok(Encoding::Csv { has_header: false })
            }
            WriteFormat::Table => {
                let cell_max = self.cell_max.unwrap_or(usize::MAX);
                Ok(Encoding::Table(TableRows::new(self.rows_max, cell_max)))
            }
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
        let encoding = self.encoding(&schema)?;
        let target = match self.path.as_str() {
            "-" => Ok(Target::stdout()),
            path => Target::file(Path::new(path)),
        };
        let target = target.map_err(|error| BindErrorKind::Other(Box::new(error)).at("path"))?;
        let writer = Writer { selection, schema, encoding, target, buffer: Vec::new() };
        Ok(Fragment::operator(Load::Light, writer, Vec::new()))
    }
}

struct Writer {
    /// The columns of the input that are written.
    selection: Vec<usize>,
    schema: SchemaRef,
    encoding: Encoding,
    target: Target,
    buffer: Vec<u8>,
}

enum Encoding {
    Jsonl,
    Csv { has_header: bool },
    Table(TableRows),
}

impl Encoding {
    /// Adds the rows to `buffer`, or keeps them until [`Self::end`].
    fn add(&mut self, records: &RecordBatch, buffer: &mut Vec<u8>) -> Result<(), ArrowError> {
        match self {
            Self::Jsonl => {
                let options = arrow_json::WriterBuilder::new().with_explicit_nulls(true);
                let mut writer = options.build::<_, LineDelimited>(buffer);
                writer.write(records)?;
                writer.finish()
            }
            Self::Csv { has_header } => {
                let options = arrow_csv::WriterBuilder::new().with_header(!*has_header);
                *has_header = true;
                options.build(buffer).write(records)
            }
            Self::Table(rows) => {
                rows.add(records);
                Ok(())
            }
        }
    }

    /// Adds what belongs at the end of the stream.
    fn end(&mut self, schema: &SchemaRef, buffer: &mut Vec<u8>) -> Result<(), ArrowError> {
        match self {
            Self::Csv { has_header: false } => {
                self.add(&RecordBatch::new_empty(SchemaRef::clone(schema)), buffer)
            }
            Self::Jsonl | Self::Csv { .. } => Ok(()),
            Self::Table(rows) => {
                buffer.extend_from_slice(rows.layout(schema)?.as_bytes());
                Ok(())
            }
        }
    }
}

impl Writer {
    fn encode_error(&self, source: ArrowError) -> WriteError {
        WriteError::Encode { path: self.target.name().to_owned(), source }
    }

    fn flush(&mut self) -> Result<(), WriteError> {
        self.target.write(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

impl Operator for Writer {
    fn process(&mut self, _: usize, input: Payload, _: &mut Output) -> Result<Flow, OperatorError> {
        let records = input.into_records().project(&self.selection)?;
        self.encoding.add(&records, &mut self.buffer).map_err(|e| self.encode_error(e))?;
        if self.target.is_live() || self.buffer.len() >= BUFFER_BYTES {
            self.flush()?;
        }
        Ok(Flow::NeedInput)
    }

    fn finish(&mut self, _: &mut Output) -> Result<Flow, OperatorError> {
        self.encoding.end(&self.schema, &mut self.buffer).map_err(|e| self.encode_error(e))?;
        self.flush()?;
        self.target.complete()?;
        Ok(Flow::NeedInput)
    }

    fn counters(&self) -> Counters {
        match &self.encoding {
            Encoding::Table(rows) => vec![("rows_not_shown", rows.not_shown())],
            Encoding::Jsonl | Encoding::Csv { .. } => Counters::new(),
        }
    }
}
