//! A file for each value of a column: `"by": "host"`.
//!
//! ```text
//! batch ──► values of `by` ──► rows in the order of their values ──► a sheet for each value
//!                                                                       │ when many rows wait
//!                                              at most 256 open files ◄─┘
//! ```
//!
//! | file | contents |
//! |---|---|
//! | `names` | the path of a value's file |
//! | `values` | a number for each value, and the rows of a batch by value |
//! | `sheet` | the file of one value |
//! | `sheets` | all files: which files are open, when rows are written, and the names of complete files |
//! | `writer` | the operator |

mod names;
mod sheet;
mod sheets;
#[cfg(test)]
mod tests;
mod values;
mod writer;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow_schema::{DataType, SchemaRef};
use thiserror::Error;
use trommel_engine::error::{BindError, BindErrorKind};
use trommel_engine::operator::{BindContext, Claim, Fragment, Load};

use super::columnar::ColumnFormat;
use super::{ROW_GROUP_BYTES, Write, WriteFormat, check_types};
use crate::expressions::{Chosen, ColumnInput, choose};
use crate::shared::files::{Destination, FileError, FileId, existing_folder_of};
use crate::shared::parameters::{Mistakes, blame, refuse};
use names::Names;
use sheets::{Layout, Rules, Sheets};
use values::Values;
use writer::ValuesWriter;

/// Error of the files of values.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ValueError {
    /// A file cannot be opened.
    #[error(transparent)]
    File(#[from] FileError),
    /// There are too many values.
    #[error("`by` has more than {most} different values, each of which makes a file")]
    Many {
        /// Maximum number of values.
        most: usize,
    },
    /// The name of a file is too long.
    #[error(
        "the value `{value}…` of `by` makes a name of {bytes} bytes, and file systems have names \
         of at most 255; write by an expression such as `substr(column, 1, 50)`"
    )]
    Name {
        /// The beginning of the value.
        value: String,
        /// Bytes of the name.
        bytes: usize,
    },
    /// Another stage writes the file of a value.
    #[error("{path} is also written by another stage; name another path")]
    Taken {
        /// The file.
        path: String,
    },
    /// Rows cannot be appended to a file.
    #[error("cannot append to {path}: {reason}")]
    Append {
        /// The file.
        path: String,
        /// The reason.
        reason: String,
    },
}

impl Write {
    /// The values of `by`, and the name of the values in the path. Refuses parameters that exclude
    /// `by`.
    pub(super) fn value_of(
        &self,
        by: &str,
        input: &SchemaRef,
    ) -> Result<(ColumnInput, String), BindError> {
        let mut mistakes = Mistakes::default();
        mistakes.check(self.refuse_with_by());
        mistakes.check(self.sort_columns(input));
        let value = mistakes.check(bind_value(by, input));
        mistakes.all(|| value)
    }

    /// Makes the operator that writes a file for each value of `by`. The values have the name
    /// `name` in paths.
    pub(super) fn bind_by(
        &self,
        (by, name): (ColumnInput, String),
        input: &SchemaRef,
        context: BindContext,
    ) -> Result<Fragment, BindError> {
        let names = self.names(&name)?;
        let claim = claim(&names)?;
        let selection = self.selection_without(input, by.column().filter(|_| names.is_hive()))?;
        let schema = Arc::new(input.project(&selection).expect("columns of the input"));
        let header = self.header(&schema)?;
        let layout = match (self.encoding(), self.format) {
            (Some(encoding), _) => Layout::Rows(encoding),
            (None, WriteFormat::Parquet) => {
                let row_group_bytes = self.row_group_bytes.unwrap_or(ROW_GROUP_BYTES);
                Layout::Columns(ColumnFormat::Parquet { row_group_bytes })
            }
            (None, _) => Layout::Columns(ColumnFormat::ArrowFile),
        };
        if let Layout::Columns(format) = layout {
            check_types(&schema, |field| format.has(field), "a type that the format has")?;
        }
        let (outputs, memory) = (context.outputs, context.memory);
        let grows = self.append;
        let sheets = Sheets::new(Rules { names, layout, schema, header, grows, outputs, memory });
        let writer = ValuesWriter {
            by,
            selection,
            values: Values::default(),
            sheets,
            flush_after: self.flush_after(),
            due: None,
            next: 0,
        };
        Ok(Fragment::operator(Load::Light, writer, Vec::new()).claiming(Some(claim)))
    }

    /// Refuses parameters that exclude `by`.
    fn refuse_with_by(&self) -> Result<(), BindError> {
        let mut mistakes = Mistakes::default();
        mistakes.refuse(self.rotate.is_some(), || {
            let allowed = "the files of values do not rotate; use `append`, or write by the day: \
                           \"by\": \"date_trunc('day', time) as day\"";
            refuse("rotate", "`rotate` with `by`", allowed)
        });
        mistakes.refuse(self.format == WriteFormat::Table, || {
            let allowed =
                "a table is one text for reading; use `jsonl`, `csv`, `parquet` or `arrow`";
            refuse("by", "`by` with a table", allowed)
        });
        let is_column = matches!(self.format, WriteFormat::Parquet | WriteFormat::Arrow);
        mistakes.refuse(self.append && is_column, || {
            let allowed = "a file of columns is complete at its end; use `jsonl` or `csv`";
            refuse("append", format!("the format {:?}", self.format).to_lowercase(), allowed)
        });
        mistakes.none()
    }

    /// The form of the paths.
    fn names(&self, column: &str) -> Result<Names, BindError> {
        let extension = match self.format {
            WriteFormat::Jsonl => "jsonl",
            WriteFormat::Csv => "csv",
            WriteFormat::Lines => "txt",
            WriteFormat::Parquet => "parquet",
            WriteFormat::Arrow => "arrow",
            WriteFormat::Table => unreachable!("refused before"),
        };
        Names::new(&self.path, column, extension).ok_or_else(|| {
            let allowed = format!(
                "`{{{column}}}` stands for the value, as in `out/{{{column}}}.{extension}`; or name \
                 a folder by `/` at its end, as in `out/`, for `out/{column}=VALUE/part-0.{extension}`"
            );
            refuse("path", format!("`{}`", self.path), allowed)
        })
    }

    /// Indices of the columns to write, without the column whose values name folders.
    fn selection_without(
        &self,
        input: &SchemaRef,
        left_out: Option<usize>,
    ) -> Result<Vec<usize>, BindError> {
        let mut selection = self.selection(input)?;
        selection.retain(|&column| Some(column) != left_out);
        if selection.is_empty() {
            let allowed = "the folder has the value, so the rows need another column";
            return Err(refuse("columns", "no column besides that of `by`", allowed));
        }
        Ok(selection)
    }
}

/// The values that `by` names, and the name of the values in the path.
fn bind_value(by: &str, input: &SchemaRef) -> Result<(ColumnInput, String), BindError> {
    let (values, name, kind) = match input.column_with_name(by) {
        Some(_) => {
            let (column, kind) = ColumnInput::bind(input, by, "by")?;
            (column, by.to_owned(), kind)
        }
        None => {
            let chosen = choose(by, input).map_err(|error| blame("by", error))?;
            let [Chosen { name, expression, is_unnested: false }] = &chosen[..] else {
                return Err(refuse("by", format!("`{by}`"), "expected one column or expression"));
            };
            let kind = expression.data_type().clone();
            (ColumnInput::Expression(Arc::new(expression.clone())), name.clone(), kind)
        }
    };
    if !has_text(&kind) {
        let expected = "a text, a number, a date, a point in time or a truth value";
        return Err(BindErrorKind::ColumnType { column: name, found: kind, expected }.at("by"));
    }
    Ok((values, name))
}

/// Whether each value has a text of its own.
fn has_text(kind: &DataType) -> bool {
    match kind {
        DataType::Dictionary(_, value) => has_text(value),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Boolean => true,
        other => {
            other.is_numeric() || (other.is_temporal() && !matches!(other, DataType::Interval(_)))
        }
    }
}

/// The claim to the folder, in which no other stage may write files of values.
fn claim(names: &Names) -> Result<Claim, BindError> {
    let of_path = |error: FileError| blame("path", error);
    let folder = names.folder();
    let inside = folder.join("file");
    Destination::file_with_folders(&inside).map_err(of_path)?;
    // The first file creates missing folders.
    let there = existing_folder_of(&inside);
    let found = there.and_then(|there| Ok((there, fs::metadata(there)?)));
    let (there, metadata) = found.map_err(|source| {
        let path = folder.display().to_string();
        of_path(FileError::Io { path, source })
    })?;
    let mut key = FileId::of(&metadata).key();
    let missing = folder.strip_prefix(there).unwrap_or(Path::new(""));
    key.extend(missing.components().as_path().as_os_str().as_encoded_bytes());
    Ok(Claim::new(key, folder.display().to_string(), "path"))
}
