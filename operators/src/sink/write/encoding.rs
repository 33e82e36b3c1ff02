//! Encoding of rows as bytes.

use arrow_array::cast::AsArray as _;
use arrow_array::{RecordBatch, StringArray};
use arrow_json::writer::LineDelimited;
use arrow_schema::{ArrowError, DataType, Field, SchemaRef};

use super::columnar::null_row;

/// Maximum characters of a text in a message.
const SHOWN_MAX: usize = 40;

/// Format that encodes each row on its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    /// A JSON object per line.
    Jsonl,
    /// Comma-separated values.
    Csv,
    /// The texts of the only column, one per line.
    Lines,
}

impl Encoding {
    /// Whether the format has the type of `field`. An encoder only reports a missing type when the
    /// encoder gets rows, so a null is encoded.
    pub(super) fn has(self, field: &Field) -> bool {
        if self == Self::Lines {
            return *field.data_type() == DataType::Utf8;
        }
        let (schema, null) = null_row(field);
        let null = RecordBatch::try_new(schema, vec![null]);
        null.and_then(|rows| self.add(&rows, &mut Vec::new())).is_ok()
    }

    /// The types that the format has, in the words of messages.
    pub(super) fn types(self) -> &'static str {
        match self {
            Self::Jsonl => "a type that `jsonl` has; `arrow` has all types",
            Self::Csv => "a plain value: csv does not support lists, `jsonl` does",
            Self::Lines => "a text",
        }
    }

    /// Appends the encoded `rows` to `buffer`.
    pub(super) fn add(self, rows: &RecordBatch, buffer: &mut Vec<u8>) -> Result<(), ArrowError> {
        match self {
            Self::Jsonl => {
                // Without explicit nulls, the key of a null would be missing, and rows would have
                // different keys.
                let options = arrow_json::WriterBuilder::new().with_explicit_nulls(true);
                let mut writer = options.build::<_, LineDelimited>(buffer);
                writer.write(rows)?;
                writer.finish()
            }
            Self::Csv => {
                // Batches are encoded one by one, so the header is written once per file,
                // elsewhere.
                arrow_csv::WriterBuilder::new().with_header(false).build(buffer).write(rows)
            }
            Self::Lines => add_lines(rows.column(0).as_string(), buffer),
        }
    }

    /// Bytes at the beginning of a file: the header of CSV.
    pub(super) fn header(self, schema: &SchemaRef) -> Result<Vec<u8>, ArrowError> {
        let mut header = Vec::new();
        if self == Self::Csv {
            let rows = RecordBatch::new_empty(SchemaRef::clone(schema));
            arrow_csv::WriterBuilder::new().with_header(true).build(&mut header).write(&rows)?;
        }
        Ok(header)
    }
}

/// Appends each text as a line. A null gives an empty line.
fn add_lines(texts: &StringArray, buffer: &mut Vec<u8>) -> Result<(), ArrowError> {
    for text in texts {
        let text = text.unwrap_or_default();
        // A reader would read such a text as two lines.
        if text.contains('\n') {
            let shown: String = text.chars().take(SHOWN_MAX).collect();
            let reason = format!("the text {shown:?}… has a line end, so that it is no line");
            return Err(ArrowError::InvalidArgumentError(reason));
        }
        buffer.extend_from_slice(text.as_bytes());
        buffer.push(b'\n');
    }
    Ok(())
}
