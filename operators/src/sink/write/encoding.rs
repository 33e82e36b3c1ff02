//! Rows as bytes.

use arrow_array::RecordBatch;
use arrow_json::writer::LineDelimited;
use arrow_schema::{ArrowError, SchemaRef};

/// A format in which a row is bytes by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Jsonl,
    Csv,
}

impl Encoding {
    /// Adds the rows to `buffer`.
    pub(super) fn add(self, rows: &RecordBatch, buffer: &mut Vec<u8>) -> Result<(), ArrowError> {
        match self {
            Self::Jsonl => {
                let options = arrow_json::WriterBuilder::new().with_explicit_nulls(true);
                let mut writer = options.build::<_, LineDelimited>(buffer);
                writer.write(rows)?;
                writer.finish()
            }
            Self::Csv => {
                arrow_csv::WriterBuilder::new().with_header(false).build(buffer).write(rows)
            }
        }
    }

    /// The bytes that a file begins with.
    pub(super) fn header(self, schema: &SchemaRef) -> Result<Vec<u8>, ArrowError> {
        let mut header = Vec::new();
        if self == Self::Csv {
            let rows = RecordBatch::new_empty(SchemaRef::clone(schema));
            arrow_csv::WriterBuilder::new().with_header(true).build(&mut header).write(&rows)?;
        }
        Ok(header)
    }
}
