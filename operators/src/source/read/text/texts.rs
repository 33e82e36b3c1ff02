//! Paragraphs and whole files as rows.

use std::sync::Arc;

use arrow_array::builder::{StringBuilder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use trommel_engine::memory::{MemoryBudget, Reservation};

use super::lines::{LineFormat, Run};
use crate::source::read::divided::Divided;
use crate::source::read::error::ReadError;
use crate::source::read::files::input::{BadRow, Inputs, Line};

/// Bytes of a text that need no reservation.
const UNRESERVED_BYTES: usize = 256 << 10;

/// Text of one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Consecutive lines without a blank one.
    Paragraph,
    /// All lines of a file.
    File,
}

/// Incomplete text.
#[derive(Debug)]
struct Open {
    /// Number of its first line, from 1.
    line: u64,
    text: String,
    /// The text was refused, and the refusal has been reported.
    is_refused: bool,
}

/// Format of texts of several lines, with the path of their file. Lines are joined by `
/// `; the last line has no line end.
pub(crate) struct Texts {
    unit: Unit,
    schema: SchemaRef,
    bytes_max: usize,
    open: Option<Open>,
    paths: StringBuilder,
    lines: UInt64Builder,
    texts: StringBuilder,
    rows: usize,
    /// Memory for long texts.
    room: Reservation,
}

impl Texts {
    /// Texts of at most `bytes_max` bytes each.
    pub(crate) fn new(unit: Unit, bytes_max: usize) -> Self {
        let mut fields = vec![Field::new("path", DataType::Utf8, false)];
        if unit == Unit::Paragraph {
            fields.push(Field::new("line_number", DataType::UInt64, false));
        }
        fields.push(Field::new("text", DataType::Utf8, false));
        Self {
            unit,
            schema: Arc::new(Schema::new(fields)),
            bytes_max,
            open: None,
            paths: StringBuilder::new(),
            lines: UInt64Builder::new(),
            texts: StringBuilder::new(),
            rows: 0,
            room: Reservation::default(),
        }
    }

    /// Takes memory for long texts from this budget.
    pub(crate) fn within(self, memory: &MemoryBudget) -> Self {
        Self { room: memory.reservation(), ..self }
    }

    /// Adds a line. `None` stands for a line with this `number` that cannot be used: the text with
    /// this line is then dropped.
    fn add(
        &mut self,
        inputs: &mut Inputs,
        number: u64,
        line: Option<Line<'_>>,
    ) -> Result<(), ReadError> {
        let is_blank = |line: Line<'_>| line.bytes.iter().all(u8::is_ascii_whitespace);
        if self.unit == Unit::Paragraph && line.is_some_and(is_blank) {
            self.close(inputs);
            return Ok(());
        }
        let is_first = self.open.is_none();
        let new = || Open { line: number, text: String::new(), is_refused: false };
        let open = self.open.get_or_insert_with(new);
        // The lines of an unusable text are passed over up to its end.
        if open.is_refused {
            return Ok(());
        }
        let Some(added) = line else {
            open.is_refused = true;
            return Ok(());
        };
        // The newline before this line counts, too.
        let breaks = usize::from(!is_first);
        if open.text.len() + breaks + added.bytes.len() > self.bytes_max {
            open.is_refused = true;
            let (line, bytes_max) = (open.line, self.bytes_max);
            let error = |path| ReadError::TextTooLong { path, line, bytes_max };
            return inputs.refuse(&BadRow::gone(line), error);
        }
        self.reserve(inputs, added.bytes.len())?;
        let Some(open) = &mut self.open else { return Ok(()) };
        match inputs.text(added)? {
            Some(text) => {
                if !is_first {
                    open.text.push('\n');
                }
                open.text.push_str(&text);
            }
            None => open.is_refused = true,
        }
        Ok(())
    }

    /// Reserves memory for this number of further bytes of the open text, and for its row.
    fn reserve(&mut self, inputs: &Inputs, bytes: usize) -> Result<(), ReadError> {
        let Some(open) = &self.open else { return Ok(()) };
        let bytes = open.text.len() + bytes;
        if bytes <= UNRESERVED_BYTES {
            return Ok(());
        }
        // The bytes of the text and the column grow by doubling.
        let wanted = bytes.next_power_of_two() * 2;
        match wanted > self.room.bytes() {
            true => self.room.resize(wanted).map_err(|full| inputs.no_memory(open.line, full)),
            false => Ok(()),
        }
    }

    /// Closes the open text, if any. The text becomes a row unless the text was refused.
    fn close(&mut self, inputs: &Inputs) {
        if let Some(Open { line, text, .. }) = self.open.take().filter(|open| !open.is_refused) {
            self.paths.append_value(inputs.path());
            self.lines.append_value(line);
            self.texts.append_value(text);
            self.rows += 1;
        }
    }
}

impl Divided for Texts {
    fn another(&self, memory: &MemoryBudget) -> Self {
        Self::new(self.unit, self.bytes_max).within(memory)
    }
}

impl LineFormat for Texts {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn append(&mut self, run: &Run<'_>, inputs: &mut Inputs) -> Result<(), ReadError> {
        run.for_each_accepted(inputs, |inputs, number, line| self.add(inputs, number, line))
    }

    fn pass_over(&mut self, inputs: &mut Inputs, line: u64) -> Result<(), ReadError> {
        self.add(inputs, line, None)
    }

    fn end_file(&mut self, inputs: &mut Inputs) -> Result<(), ReadError> {
        self.close(inputs);
        Ok(())
    }

    fn abandon(&mut self) -> usize {
        self.open.take().map_or(0, |open| open.text.len())
    }

    fn rows(&self) -> usize {
        self.rows
    }

    fn bytes(&self) -> usize {
        self.paths.values_slice().len() + self.texts.values_slice().len()
    }

    fn take(&mut self) -> RecordBatch {
        let (paths, texts) = (self.paths.finish(), self.texts.finish());
        let lines: ArrayRef = Arc::new(self.lines.finish());
        let mut columns: Vec<ArrayRef> = vec![Arc::new(paths)];
        if self.unit == Unit::Paragraph {
            columns.push(lines);
        }
        columns.push(Arc::new(texts));
        self.rows = 0;
        RecordBatch::try_new(SchemaRef::clone(&self.schema), columns).expect("of this schema")
    }
}
