//! Rows of the columns of a pattern.

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{Field, SchemaRef};
use trommel_engine::memory::{MemoryBudget, Reservation};

use super::super::divided::Divided;
use super::super::error::ReadError;
use super::pattern::Scanner;
use super::spans::{Mismatch, Span};
use crate::source::read::csv::typed::Cells;
use crate::source::read::files::input::{Inputs, Line};
use crate::source::read::text::lines::{LineFormat, Run};
use crate::source::read::text::records::Records;
use crate::source::read::text::sets::shorten;

/// Bytes of a record that need no reservation.
const UNRESERVED_BYTES: usize = 256 << 10;
/// Copies of a text until the text is in its column: one without escapes, one as the next value,
/// and two while the column grows.
const COPIES: usize = 4;

/// Rows of records that follow a pattern.
pub(in super::super) struct LogRows {
    schema: SchemaRef,
    scanner: Arc<Scanner>,
    /// Place of each value of the pattern in the record.
    spans: Vec<Span>,
    columns: Vec<Column>,
    /// Text of a value without its escapes.
    text: String,
    rows: usize,
    bytes: usize,
    room: Reservation,
}

/// A column that is read.
struct Column {
    /// Place of the column among the columns of the pattern.
    place: usize,
    is_text: bool,
    cells: Box<dyn Cells>,
}

/// Reason why a record makes no row.
enum Fault {
    Pattern(Mismatch),
    /// The value of this column of the pattern.
    Value(usize, String),
}

impl LogRows {
    /// Rows of the columns `schema`, which are some of the pattern's.
    ///
    /// # Errors
    /// The column whose type a text has no values of.
    ///
    /// # Panics
    /// If the pattern does not have one of the columns.
    pub(in super::super) fn new(
        scanner: impl Into<Arc<Scanner>>,
        schema: SchemaRef,
    ) -> Result<Self, Arc<Field>> {
        let scanner = scanner.into();
        let all = scanner.columns();
        let column = |field: &Arc<Field>| {
            let place = all.iter().position(|column| column.name == *field.name());
            let place = place.expect("the columns are chosen from the pattern's");
            let kind = &all[place].kind;
            let cells = kind.cells().ok_or_else(|| Arc::clone(field));
            cells.map(|cells| Column { place, is_text: kind.is_text(), cells })
        };
        let columns = schema.fields().iter().map(column).collect::<Result<_, Arc<Field>>>()?;
        let spans = vec![Span::Null; all.len()];
        Ok(Self {
            schema,
            scanner,
            spans,
            columns,
            text: String::new(),
            rows: 0,
            bytes: 0,
            room: Reservation::default(),
        })
    }

    /// Takes memory for long records from this budget.
    pub(in super::super) fn within(self, memory: &MemoryBudget) -> Self {
        Self { room: memory.reservation(), ..self }
    }

    /// Parses all values of a record and adds its row, or adds nothing.
    fn add(&mut self, record: &str) -> Result<(), Fault> {
        self.scanner.scan(record, &mut self.spans).map_err(Fault::Pattern)?;
        let mut bytes = 0;
        for Column { place, is_text, cells } in &mut self.columns {
            let value = self.spans[*place].text(record, &mut self.text);
            // Only columns of text have the values `` and `-`; in other columns both are nulls.
            let value = value.filter(|value| *is_text || !matches!(*value, "" | "-"));
            bytes += value.map_or(8, |value| value.len() + 8);
            if !cells.parse(value) {
                return Err(Fault::Value(*place, shorten(value.unwrap_or_default().as_bytes())));
            }
        }
        // All values have been parsed, so a bad row leaves no value in any column.
        self.columns.iter_mut().for_each(|column| column.cells.add());
        self.rows += 1;
        self.bytes += bytes;
        Ok(())
    }

    /// Reserves memory for a record, unless the reserved memory suffices.
    fn reserve(&mut self, record: Line<'_>, inputs: &Inputs) -> Result<(), ReadError> {
        let (bytes, wanted) = (record.bytes.len(), record.bytes.len() * COPIES);
        if bytes <= UNRESERVED_BYTES || wanted <= self.room.bytes() {
            return Ok(());
        }
        self.room.resize(wanted).map_err(|full| inputs.no_memory(record.number, full))
    }
}

impl Records for LogRows {
    fn push(&mut self, record: Line<'_>, inputs: &mut Inputs) -> Result<(), ReadError> {
        if record.bytes.iter().all(u8::is_ascii_whitespace) {
            return Ok(());
        }
        self.reserve(record, inputs)?;
        let Some(text) = inputs.text(record)? else { return Ok(()) };
        let Err(fault) = self.add(&text) else { return Ok(()) };
        let line = record.number;
        inputs.refuse(&record.into(), |path| match fault {
            Fault::Pattern(Mismatch { column, reason }) => {
                ReadError::Log { path, line, column, reason }
            }
            Fault::Value(place, found) => {
                let column = &self.scanner.columns()[place];
                let (expected, column) = (column.kind.described(), column.name.clone());
                ReadError::Value { path, line, column, expected, found: format!("`{found}`") }
            }
        })
    }
}

impl LineFormat for LogRows {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn append(&mut self, run: &Run<'_>, inputs: &mut Inputs) -> Result<(), ReadError> {
        run.for_each_accepted(inputs, |inputs, _, line| {
            line.map_or(Ok(()), |line| self.push(line, inputs))
        })
    }

    fn pass_over(&mut self, _: &mut Inputs, _: u64) -> Result<(), ReadError> {
        Ok(())
    }

    fn rows(&self) -> usize {
        self.rows
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn take(&mut self) -> RecordBatch {
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows));
        (self.rows, self.bytes) = (0, 0);
        self.room.resize(0).expect("less than before");
        let columns = self.columns.iter_mut().map(|column| column.cells.take()).collect();
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)
            .expect("of this schema")
    }
}

impl Divided for LogRows {
    fn another(&self, memory: &MemoryBudget) -> Self {
        let rows = Self::new(Arc::clone(&self.scanner), Arc::clone(&self.schema));
        rows.expect("rows of these columns have been made").within(memory)
    }
}
