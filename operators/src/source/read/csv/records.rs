//! Records of comma-separated values.
//!
//! ```text
//! lines ──► records, each of one or more lines ──► fields ──► Columns: labelled.rs, typed.rs
//! ```
//!
//! A record ends at a newline outside of quotes (RFC 4180). Lines are fed to the parser one by
//! one, so errors name the line at which a record begins.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, SchemaRef};
use csv_core::{ReadRecordResult, Reader};
use encoding_rs::UTF_8;
use memchr::memchr;
use trommel_engine::memory::{MemoryBudget, Reservation};
use trommel_kernels::Isa;

use super::dialect::{Dialect, State, is_quoted_after};
use crate::shared::columns::type_name;
use crate::source::read::error::ReadError;
use crate::source::read::files::input::{BadRow, Inputs, Line};
use crate::source::read::following::growing::{Growing, RecordBegin};
use crate::source::read::text::encoding::text_of;
use crate::source::read::text::lines::{LineFormat, Run};
use crate::source::read::text::sets::shorten;

/// Initial bytes of a record, and initial number of its fields. Both double when the room is full.
const RECORD_BYTES: usize = 1 << 10;
const FIELDS: usize = 16;
/// Bytes of a record that need no reservation.
const UNRESERVED_BYTES: usize = 256 << 10;
/// Maximum bytes of records that are converted together.
const TOGETHER_BYTES_MAX: usize = 512 << 10;
/// Maximum columns of a file that a message names.
pub(crate) const NAMES_SHOWN: usize = 20;

/// Conversion of records to rows.
pub(crate) trait Columns: Send {
    /// Whether the conversion depends on which fields are quoted.
    const ASKS_FOR_QUOTES: bool;
    fn schema(&self) -> &SchemaRef;
    /// Finds the columns in the header of the next file, or says why the file is left out.
    fn begin(&mut self, path: Arc<str>, header: &[String]) -> Result<(), ReadError>;
    /// Counts a record. The record may be left out afterwards.
    fn count(&mut self, inputs: &Inputs, line: u64) -> Result<(), ReadError>;
    /// Adds the row of a record with as many fields as the header, or adds nothing.
    fn push(&mut self, record: &Record, inputs: &mut Inputs) -> Result<(), Fault>;
    /// Adds the rows of the whole records at the beginning of a text. Returns the bytes of these
    /// records, which is 0 if each record has to be converted alone.
    fn push_all(&mut self, _records: &CsvText<'_>) -> usize {
        0
    }
    /// The places that [`Self::begin`] has found, to be kept while other files have their turn.
    fn places(&self) -> Vec<usize>;
    /// Continues a file with the places that [`Self::places`] returned.
    fn set_places(&mut self, places: Vec<usize>);
    fn rows(&self) -> usize;
    fn bytes(&self) -> usize;
    fn take(&mut self) -> RecordBatch;
}

/// Records that are converted together.
pub(crate) struct CsvText<'a> {
    pub(crate) isa: Isa,
    /// Whole lines; the last line may lack its line end.
    pub(crate) text: &'a str,
    /// Fields of each record.
    pub(crate) fields: usize,
    pub(crate) dialect: &'a Dialect,
}

impl CsvText<'_> {
    /// Whether a line between two records is not a record.
    pub(crate) fn is_passed_over(&self, line: &[u8]) -> bool {
        line.first().is_none_or(|&byte| Some(byte) == self.dialect.comment)
    }
}

/// State of a file that is kept between two turns.
#[derive(Default)]
pub(crate) struct CsvFile {
    header: Header,
    places: Vec<usize>,
    /// A refused record that has not ended: its parser, its first line and its first byte.
    refused: Option<(Box<Reader>, RecordBegin)>,
}

/// Lines of records.
pub(crate) struct CsvLines<C> {
    columns: C,
    dialect: Dialect,
    parser: Reader,
    record: Record,
    header: Header,
    record_bytes_max: usize,
    /// Memory for long records.
    room: Reservation,
}

/// Header of the open file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Header {
    /// The header has not been read yet.
    #[default]
    Unknown,
    /// The header has this number of fields.
    Fields(usize),
    /// The file is left out.
    None,
}

/// Record that is being parsed.
pub(crate) struct Record {
    text: Vec<u8>,
    /// End of each field in `text`.
    ends: Vec<usize>,
    /// Bytes of `text` and number of `ends` that are used.
    used: (usize, usize),
    /// Line at which the record begins, from 1; 0 between records.
    line: u64,
    /// First byte of this line in the file.
    offset: u64,
    /// The bytes of the record in the file, if the output `rejected` may need the bytes.
    raw: Vec<u8>,
    /// Whether each field is quoted; empty if no field is quoted.
    quoted: Vec<bool>,
    /// The record cannot be used, and has been refused.
    is_refused: bool,
}

impl Record {
    fn new() -> Self {
        Self {
            text: vec![0; RECORD_BYTES],
            ends: vec![0; FIELDS],
            used: (0, 0),
            line: 0,
            offset: 0,
            raw: Vec::new(),
            quoted: Vec::new(),
            is_refused: false,
        }
    }

    fn clear(&mut self) {
        self.used = (0, 0);
        self.line = 0;
        self.raw.clear();
        self.quoted.clear();
        self.is_refused = false;
    }

    /// The record as the output `rejected` shows it.
    fn bad_row(&self) -> BadRow<'_> {
        let bytes = self.raw.strip_suffix(b"\n").unwrap_or(&self.raw);
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        BadRow { line: Some(self.line), offset: Some(self.offset), bytes }
    }

    /// Adds bytes of a line. Returns true if the record ends with these bytes.
    fn add(&mut self, parser: &mut Reader, mut input: &[u8]) -> bool {
        // The parser takes an empty input for the end of the file.
        while !input.is_empty() {
            let (text, ends) = (&mut self.text[self.used.0..], &mut self.ends[self.used.1..]);
            let (result, read, written, ended) = parser.read_record(input, text, ends);
            input = &input[read..];
            self.used = (self.used.0 + written, self.used.1 + ended);
            match result {
                ReadRecordResult::OutputFull => self.text.resize(self.text.len() * 2, 0),
                ReadRecordResult::OutputEndsFull => self.ends.resize(self.ends.len() * 2, 0),
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::Record | ReadRecordResult::End => return true,
            }
        }
        false
    }

    /// Number of fields.
    pub(crate) fn fields(&self) -> usize {
        self.used.1
    }

    /// Bytes of a field.
    pub(crate) fn field(&self, place: usize) -> &[u8] {
        let begin = if place == 0 { 0 } else { self.ends[place - 1] };
        &self.text[begin..self.ends[place]]
    }

    /// Whether a field is quoted.
    pub(crate) fn is_quoted(&self, place: usize) -> bool {
        self.quoted.get(place).is_some_and(|&is_quoted| is_quoted)
    }

    /// Finds the fields that are quoted.
    fn find_quotes(&mut self, dialect: &Dialect) {
        if memchr(dialect.quote, &self.raw).is_none() {
            return;
        }
        let mut state = State::FieldBegins;
        for &byte in &self.raw {
            if state == State::FieldBegins {
                self.quoted.push(byte == dialect.quote);
            }
            state = state.after(byte, dialect);
        }
    }
}

/// Reason why a record cannot be used.
pub(crate) enum Fault {
    /// The field in this place is no text in the encoding of the file.
    Text(usize),
    /// The field in this place is not a number.
    Number(usize),
    /// The value of the field in this place is not of the type of its column.
    Value { place: usize, column: String, expected: DataType },
}

impl<C: Columns> CsvLines<C> {
    /// Records of at most `record_bytes_max` bytes.
    pub(crate) fn new(columns: C, dialect: Dialect, record_bytes_max: usize) -> Self {
        Self {
            columns,
            parser: dialect.parser(),
            dialect,
            record: Record::new(),
            header: Header::Unknown,
            record_bytes_max,
            room: Reservation::default(),
        }
    }

    /// Takes memory for long records from this budget.
    pub(crate) fn within(self, memory: &MemoryBudget) -> Self {
        Self { room: memory.reservation(), ..self }
    }

    /// A format with the columns that `another` makes of the columns of this format. The new format
    /// takes memory from the budget `memory`.
    pub(crate) fn another(&self, another: impl Fn(&C) -> C, memory: &MemoryBudget) -> Self {
        let columns = another(&self.columns);
        Self::new(columns, self.dialect.clone(), self.record_bytes_max).within(memory)
    }

    /// Whether the open file is left out because of its header.
    pub(crate) fn has_no_header(&self) -> bool {
        self.header == Header::None
    }

    pub(crate) fn columns(&self) -> &C {
        &self.columns
    }

    pub(crate) fn columns_mut(&mut self) -> &mut C {
        &mut self.columns
    }

    /// The columns, with the rows that have not been taken.
    pub(crate) fn into_columns(self) -> C {
        self.columns
    }

    /// Whether a line between two records is not a record.
    fn is_passed_over(&self, line: Line<'_>) -> bool {
        line.bytes.first().is_none_or(|&byte| Some(byte) == self.dialect.comment)
    }

    /// Adds a line. `None` stands for a line with this `number` that cannot be used: the record of
    /// the line is then refused.
    fn add(
        &mut self,
        inputs: &mut Inputs,
        number: u64,
        line: Option<Line<'_>>,
        line_end: &[u8],
    ) -> Result<(), ReadError> {
        let is_between = self.record.line == 0;
        if self.header == Header::None
            || is_between && line.is_some_and(|line| self.is_passed_over(line))
        {
            return Ok(());
        }
        if is_between {
            self.record.line = number;
            self.record.offset = line.map_or(0, |line| line.offset);
        }
        let Some(Line { bytes, .. }) = line else {
            // Whether a quote is open at the end of this line is unknown, so the record ends with
            // the line.
            self.record.is_refused = true;
            self.parser.reset();
            return self.close(inputs);
        };
        let bytes_max = self.record_bytes_max;
        if self.record.used.0 + bytes.len() > bytes_max && !self.record.is_refused {
            self.record.is_refused = true;
            let line = self.record.line;
            // A record only continues in a further line if a quote is open.
            let error = |path| ReadError::LongQuote { path, line, bytes_max };
            inputs.refuse(&self.record.bad_row(), error)?;
            if self.header == Header::Unknown {
                // A file without a header is left out.
                self.parser.reset();
                return self.close(inputs);
            }
        }
        self.reserve(inputs, bytes.len())?;
        let Self { record, parser, .. } = self;
        if record.is_refused {
            // The parser goes on to the end of the record, and the text is dropped.
            record.used = (0, 0);
        } else if inputs.rejects() || C::ASKS_FOR_QUOTES {
            record.raw.extend_from_slice(bytes);
            record.raw.extend_from_slice(line_end);
        }
        // Inside of quotes, the line end belongs to the field, as the file has it.
        let is_kept = line_end != b"\n" && is_quoted_after(bytes, &self.dialect, !is_between);
        let line_end = if is_kept { line_end } else { b"\n" };
        if record.add(parser, bytes) || record.add(parser, line_end) {
            self.close(inputs)
        } else {
            Ok(())
        }
    }

    /// Whether the records of a run can be converted together.
    fn is_plain(&self, run: &Run<'_>, inputs: &Inputs) -> bool {
        let bytes = run.bytes();
        // A record of several lines may exceed the limit although each line is within the limit.
        let is_within =
            bytes.len() <= self.record_bytes_max || memchr(self.dialect.quote, bytes).is_none();
        inputs.line_encoding() == UTF_8
            && bytes.len() <= TOGETHER_BYTES_MAX
            && is_within
            && run.is_accepted()
            && !run.has_other_line_ends()
    }

    /// Takes records from the byte `begin` of a run on, if a record begins there. Returns the first
    /// byte that was not taken.
    fn take_all(&mut self, run: &Run<'_>, begin: usize, are_tried: &mut bool) -> usize {
        let Header::Fields(fields) = self.header else { return 0 };
        if self.record.line > 0 {
            return 0;
        }
        *are_tried = true;
        let Ok(text) = simdutf8::basic::from_utf8(&run.bytes()[begin..]) else { return 0 };
        let records = CsvText { isa: run.isa, text, fields, dialect: &self.dialect };
        begin + self.columns.push_all(&records)
    }

    /// Reserves memory for this number of further bytes of the record, and for its row.
    fn reserve(&mut self, inputs: &Inputs, bytes: usize) -> Result<(), ReadError> {
        let bytes = self.record.used.0 + bytes;
        let wanted = bytes.next_power_of_two() * 2;
        if bytes <= UNRESERVED_BYTES || wanted <= self.room.bytes() {
            return Ok(());
        }
        self.room.resize(wanted).map_err(|full| inputs.no_memory(self.record.line, full))
    }

    /// Takes the complete record.
    fn close(&mut self, inputs: &mut Inputs) -> Result<(), ReadError> {
        if self.header == Header::Unknown {
            self.take_header(inputs)?;
            if self.dialect.has_header {
                self.record.clear();
                return Ok(());
            }
        }
        let result = match self.header {
            Header::Fields(fields) => self.take_record(fields, inputs),
            Header::Unknown | Header::None => Ok(()),
        };
        self.record.clear();
        result
    }

    fn take_header(&mut self, inputs: &mut Inputs) -> Result<(), ReadError> {
        self.header = Header::None;
        if self.record.is_refused {
            return inputs.leave_out(ReadError::NoHeader { path: inputs.path() });
        }
        let names = self.names(inputs);
        let begun = names.and_then(|names| {
            self.columns.begin(inputs.path(), &names)?;
            Ok(names.len())
        });
        match begun {
            Ok(fields) => self.header = Header::Fields(fields),
            Err(error) => inputs.leave_out(error)?,
        }
        Ok(())
    }

    /// The names of the columns: the fields of the record, or `c1`, `c2` and so on.
    fn names(&self, inputs: &Inputs) -> Result<Vec<String>, ReadError> {
        let by_place = |place: usize| format!("c{}", place + 1);
        let (line, encoding) = (self.record.line, inputs.line_encoding());
        let name = |place: usize| {
            if !self.dialect.has_header {
                return Ok(by_place(place));
            }
            let field = self.record.field(place);
            let name = match text_of(field, encoding) {
                Ok(name) => name.trim().to_owned(),
                // A file is left out as a whole if its header is no text.
                Err(_) if inputs.replaces() => inputs.replaced(field).trim().to_owned(),
                Err(_) => {
                    let (path, encoding) = (inputs.path(), encoding.name());
                    return Err(ReadError::CsvText { path, line, field: place + 1, encoding });
                }
            };
            Ok(if name.is_empty() { by_place(place) } else { name })
        };
        (0..self.record.fields()).map(name).collect()
    }

    fn take_record(&mut self, fields: usize, inputs: &mut Inputs) -> Result<(), ReadError> {
        let (line, found) = (self.record.line, self.record.fields());
        self.columns.count(inputs, line)?;
        if self.record.is_refused {
            return Ok(());
        }
        if found != fields {
            let error = |path| ReadError::CsvFields { path, line, found, fields };
            return inputs.refuse(&self.record.bad_row(), error);
        }
        if C::ASKS_FOR_QUOTES {
            self.record.find_quotes(&self.dialect);
        }
        let Err(fault) = self.columns.push(&self.record, inputs) else { return Ok(()) };
        let encoding = inputs.line_encoding().name();
        let is_of_bytes = matches!(fault, Fault::Text(_));
        let shown = |place| shorten(self.record.field(place));
        let error = |path| match fault {
            Fault::Text(place) => ReadError::CsvText { path, line, field: place + 1, encoding },
            Fault::Number(place) => {
                ReadError::Number { path, line, field: place + 1, token: shown(place) }
            }
            Fault::Value { place, column, expected } => {
                let (expected, found) = (type_name(&expected), format!("`{}`", shown(place)));
                ReadError::Value { path, line, column, expected, found }
            }
        };
        let row = self.record.bad_row();
        match is_of_bytes {
            true => inputs.refuse_bytes(&row, error).map(drop),
            false => inputs.refuse(&row, error),
        }
    }
}

impl<C: Columns> Growing for CsvLines<C> {
    type File = CsvFile;

    fn resume(&mut self, file: CsvFile) {
        self.header = file.header;
        self.columns.set_places(file.places);
        if let Some((parser, (line, offset))) = file.refused {
            self.parser = *parser;
            (self.record.line, self.record.offset) = (line, offset);
            self.record.is_refused = true;
        }
    }

    fn incomplete(&self) -> Option<RecordBegin> {
        let is_open = self.record.line > 0 && !self.record.is_refused;
        is_open.then_some((self.record.line, self.record.offset))
    }

    fn pause(&mut self) -> CsvFile {
        let Record { line, offset, is_refused, .. } = self.record;
        // A clone of a parser would lose its classes of bytes, so the parser itself moves.
        let refused = is_refused.then(|| {
            let parser = std::mem::replace(&mut self.parser, self.dialect.parser());
            (Box::new(parser), (line, offset))
        });
        let file = CsvFile { header: self.header, places: self.columns.places(), refused };
        self.abandon();
        file
    }

    fn needs_head(&self) -> bool {
        self.dialect.has_header && self.header == Header::Unknown
    }
}

impl<C: Columns> LineFormat for CsvLines<C> {
    fn schema(&self) -> &SchemaRef {
        self.columns.schema()
    }

    fn append(&mut self, run: &Run<'_>, inputs: &mut Inputs) -> Result<(), ReadError> {
        // One attempt per run converts records together, from the first record on that begins in
        // the run.
        let mut are_tried = !self.is_plain(run, inputs);
        let mut taken = if are_tried { 0 } else { self.take_all(run, 0, &mut are_tried) };
        if taken == run.bytes().len() {
            return Ok(());
        }
        run.for_each_with_end(inputs, |inputs, number, line, line_end| {
            let begin = run.begin_of(number);
            if !are_tried {
                taken = self.take_all(run, begin, &mut are_tried);
            }
            if begin < taken { Ok(()) } else { self.add(inputs, number, line, line_end) }
        })
    }

    fn pass_over(&mut self, inputs: &mut Inputs, line: u64) -> Result<(), ReadError> {
        self.add(inputs, line, None, b"\n")
    }

    fn end_file(&mut self, inputs: &mut Inputs) -> Result<(), ReadError> {
        let (line, is_refused) = (self.record.line, self.record.is_refused);
        let is_empty = self.header == Header::Unknown;
        if line > 0 {
            if !is_refused {
                let error = |path| ReadError::OpenQuote { path, line };
                inputs.refuse(&self.record.bad_row(), error)?;
            }
            if matches!(self.header, Header::Fields(_)) {
                self.columns.count(inputs, line)?;
            }
        } else if is_empty && self.dialect.has_header {
            inputs.leave_out(ReadError::NoHeader { path: inputs.path() })?;
        }
        self.abandon();
        Ok(())
    }

    fn is_within_record(&self) -> bool {
        self.record.line > 0
    }

    fn abandon(&mut self) -> usize {
        let bytes = self.record.used.0;
        self.record.clear();
        self.parser.reset();
        self.header = Header::Unknown;
        bytes
    }

    fn rows(&self) -> usize {
        self.columns.rows()
    }

    fn bytes(&self) -> usize {
        self.columns.bytes()
    }

    fn take(&mut self) -> RecordBatch {
        self.columns.take()
    }
}
