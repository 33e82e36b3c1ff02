//! Records of several lines: a pattern begins each record, which has the lines up to the next
//! beginning.
//!
//! ```text
//! 12:00 failed         ─┐
//!   at main.rs:7        ├──► one record, with newlines inside
//!   at lib.rs:9        ─┘
//! 12:01 works          ────► the next record
//! ```

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use encoding_rs::UTF_8;
use regex::bytes::{Regex, RegexBuilder};
use trommel_engine::memory::{MemoryBudget, Reservation};

use super::encoding::text_of;
use super::lines::{LineFormat, Run};
use crate::source::read::divided::Divided;
use crate::source::read::error::ReadError;
use crate::source::read::files::input::{BadRow, Inputs, Line};
use crate::source::read::following::growing::{Growing, RecordBegin};

/// Maximum bytes of a compiled pattern.
const PATTERN_BYTES_MAX: usize = 4 << 20;
/// Bytes of a record that need no reservation.
const UNRESERVED_BYTES: usize = 256 << 10;

/// Conversion of records to rows.
pub(crate) trait Records: LineFormat {
    /// Adds the row of a record, or refuses the record. Newlines separate the lines of `record`.
    fn push(&mut self, record: Line<'_>, inputs: &mut Inputs) -> Result<(), ReadError>;
}

/// The pattern of the first line of a record.
#[derive(Debug, Clone)]
pub(crate) struct Beginning(Regex);

impl Beginning {
    /// Compiles a regular expression.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    pub(crate) fn new(pattern: &str) -> Result<Self, String> {
        let built = RegexBuilder::new(pattern).size_limit(PATTERN_BYTES_MAX).build();
        built.map(Self).map_err(|error| {
            let said = error.to_string();
            let line = said.lines().last().unwrap_or_default().trim_start_matches("error: ");
            format!("this is no regular expression: {line}")
        })
    }

    fn fits(&self, line: Line<'_>, inputs: &Inputs) -> bool {
        let encoding = inputs.line_encoding();
        if encoding != UTF_8
            && let Ok(text) = text_of(line.bytes, encoding)
        {
            return self.0.is_match(text.as_bytes());
        }
        self.0.is_match(line.bytes)
    }
}

/// Joins lines to records.
pub(crate) struct Joined<R> {
    records: R,
    beginning: Beginning,
    open: Option<Open>,
    bytes_max: usize,
    /// Memory for long records.
    room: Reservation,
}

/// Incomplete record.
struct Open {
    /// Number of its first line, from 1.
    line: u64,
    /// First byte of this line in the file.
    offset: u64,
    bytes: Vec<u8>,
    /// The record was refused, and the refusal has been reported.
    is_refused: bool,
}

impl<R: Records> Joined<R> {
    /// Records of at most `bytes_max` bytes.
    pub(crate) fn new(records: R, beginning: Beginning, bytes_max: usize) -> Self {
        Self { records, beginning, open: None, bytes_max, room: Reservation::default() }
    }

    /// Takes memory for long records from this budget.
    pub(crate) fn within(self, memory: &MemoryBudget) -> Self {
        Self { room: memory.reservation(), ..self }
    }

    /// Adds a line. `None` stands for a line with this `number` that cannot be used: the lines up
    /// to the next beginning are then passed over.
    fn add(
        &mut self,
        inputs: &mut Inputs,
        number: u64,
        line: Option<Line<'_>>,
    ) -> Result<(), ReadError> {
        let Some(line) = line else {
            // The line may have begun a record, so the next lines are passed over as a part of that
            // record.
            self.close(inputs)?;
            self.open = Some(Open { line: number, offset: 0, bytes: Vec::new(), is_refused: true });
            return Ok(());
        };
        if self.beginning.fits(line, inputs) {
            self.close(inputs)?;
        }
        let Some(open) = &mut self.open else {
            let Line { number, offset, bytes } = line;
            self.open =
                Some(Open { line: number, offset, bytes: bytes.to_vec(), is_refused: false });
            return Ok(());
        };
        if open.is_refused {
            return Ok(());
        }
        let bytes = open.bytes.len() + 1 + line.bytes.len();
        if bytes > self.bytes_max {
            open.is_refused = true;
            let (line, bytes_max) = (open.line, self.bytes_max);
            let row = BadRow { line: Some(line), offset: Some(open.offset), bytes: &open.bytes };
            let error = |path| ReadError::TextTooLong { path, line, bytes_max };
            inputs.refuse(&row, error)?;
            open.bytes = Vec::new();
            return Ok(());
        }
        // The bytes of a record grow by doubling.
        let wanted = bytes.next_power_of_two() * 2;
        if bytes > UNRESERVED_BYTES && wanted > self.room.bytes() {
            self.room.resize(wanted).map_err(|full| inputs.no_memory(open.line, full))?;
        }
        open.bytes.push(b'\n');
        open.bytes.extend_from_slice(line.bytes);
        Ok(())
    }

    /// Makes a row of the open record, if a record is open and not refused.
    fn close(&mut self, inputs: &mut Inputs) -> Result<(), ReadError> {
        match self.open.take() {
            Some(Open { line, offset, bytes, is_refused: false }) => {
                self.records.push(Line { number: line, offset, bytes: &bytes }, inputs)
            }
            _ => Ok(()),
        }
    }
}

impl<R: Records> Growing for Joined<R> {
    /// Number of the first line of a refused record that has not ended.
    type File = Option<u64>;
    const COMPLETES: bool = true;

    fn resume(&mut self, refused: Option<u64>) {
        let open = |line| Open { line, offset: 0, bytes: Vec::new(), is_refused: true };
        self.open = refused.map(open);
    }

    fn incomplete(&self) -> Option<RecordBegin> {
        let open = self.open.as_ref().filter(|open| !open.is_refused);
        open.map(|open| (open.line, open.offset))
    }

    fn pause(&mut self) -> Option<u64> {
        self.open.take().filter(|open| open.is_refused).map(|open| open.line)
    }

    fn complete(&mut self, inputs: &mut Inputs) -> Result<(), ReadError> {
        self.close(inputs)
    }
}

impl<R: Records + Divided> Divided for Joined<R> {
    fn another(&self, memory: &MemoryBudget) -> Self {
        let records = self.records.another(memory);
        Self::new(records, self.beginning.clone(), self.bytes_max).within(memory)
    }
}

impl<R: Records> LineFormat for Joined<R> {
    fn schema(&self) -> &SchemaRef {
        self.records.schema()
    }

    fn append(&mut self, run: &Run<'_>, inputs: &mut Inputs) -> Result<(), ReadError> {
        run.for_each_accepted(inputs, |inputs, number, line| self.add(inputs, number, line))
    }

    fn pass_over(&mut self, inputs: &mut Inputs, line: u64) -> Result<(), ReadError> {
        self.add(inputs, line, None)
    }

    fn end_file(&mut self, inputs: &mut Inputs) -> Result<(), ReadError> {
        self.close(inputs)
    }

    fn abandon(&mut self) -> usize {
        self.open.take().map_or(0, |open| open.bytes.len())
    }

    fn rows(&self) -> usize {
        self.records.rows()
    }

    fn bytes(&self) -> usize {
        self.records.bytes()
    }

    fn take(&mut self) -> RecordBatch {
        if self.open.is_none() {
            self.room.resize(0).expect("less than before");
        }
        self.records.take()
    }
}
