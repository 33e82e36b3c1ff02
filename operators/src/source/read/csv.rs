//! Format `csv`: columns of text, and columns that become a vector.
//!
//! ```text
//! header   name, x, y      ──► place of each column, for each file
//! record   "Bonn", 7.1, 50 ──► id, name: "Bonn", vector: [7.1, 50]
//! ```
//!
//! A record ends at a newline outside of quotes (RFC 4180). Lines are fed to the parser one by
//! one, so errors name the line at which a record begins.

use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::{ArrayRef, RecordBatch, UInt32Array};
use arrow_buffer::ScalarBuffer;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use csv_core::{ReadRecordResult, Reader, ReaderBuilder, Terminator};
use trommel_engine::memory::{MemoryBudget, Reservation};

use super::encoding::text_of;
use super::error::ReadError;
use super::input::{BadRow, Inputs};
use super::lines::{Line, LineFormat, Run};
use super::sets::shorten;
use crate::columns::{vector_array, vector_field};

/// Initial bytes of a record, and initial number of its fields; both double when they are full.
const RECORD_BYTES: usize = 1 << 10;
const FIELDS: usize = 16;
/// Bytes of a record that need no reservation.
const UNRESERVED_BYTES: usize = 256 << 10;
/// Columns of a file that a message names.
const NAMES_SHOWN: usize = 20;
/// End of a name that stands for all columns that begin with the rest of it.
const ANY: char = '*';

/// Columns to read.
#[derive(Debug, Clone)]
pub(super) struct CsvColumns {
    /// Names of the columns that stay text.
    pub(super) texts: Vec<String>,
    /// Names of the columns that become the vector, or beginnings of names.
    pub(super) vector: Vec<String>,
    /// Coordinates of a vector; 0 without a column `vector`.
    pub(super) dims: u32,
    pub(super) delimiter: u8,
}

/// True if `name` stands for all columns that begin with the rest of it.
pub(super) fn is_pattern(name: &str) -> bool {
    name.ends_with(ANY)
}

/// One row per record. Ids count all records of all files, including records left out.
pub(super) struct CsvRows {
    schema: SchemaRef,
    columns: CsvColumns,
    parser: Reader,
    record: Record,
    /// Places of the columns in the open file.
    places: Places,
    record_bytes_max: usize,
    next_id: u64,
    ids: Vec<u32>,
    texts: Vec<StringBuilder>,
    coordinates: Vec<f32>,
    /// Memory of long records.
    room: Reservation,
}

/// Record that is being parsed.
struct Record {
    text: Vec<u8>,
    /// End of each field in `text`.
    ends: Vec<usize>,
    /// Bytes of `text` and number of `ends` that are used.
    used: (usize, usize),
    /// Line at which it begins, from 1; 0 between records.
    line: u64,
    /// First byte of this line in the file.
    offset: u64,
    /// Its bytes in the file, where they may be asked for.
    raw: Vec<u8>,
    /// It is unusable, and has been refused.
    is_refused: bool,
}

/// Header of the open file.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Places {
    /// It has not come yet.
    Unknown,
    Known {
        fields: usize,
        texts: Vec<usize>,
        vector: Vec<usize>,
    },
    /// The file is left out.
    None,
}

impl Record {
    fn new() -> Self {
        let (text, ends) = (vec![0; RECORD_BYTES], vec![0; FIELDS]);
        Self { text, ends, used: (0, 0), line: 0, offset: 0, raw: Vec::new(), is_refused: false }
    }

    fn clear(&mut self) {
        self.used = (0, 0);
        self.line = 0;
        self.raw.clear();
        self.is_refused = false;
    }

    /// The record as the output `rejected` shows it.
    fn bad_row(&self) -> BadRow<'_> {
        let bytes = self.raw.strip_suffix(b"\n").unwrap_or(&self.raw);
        BadRow { line: Some(self.line), offset: Some(self.offset), bytes }
    }

    /// Adds bytes of a line; true if the record ends with them.
    fn add(&mut self, parser: &mut Reader, mut input: &[u8]) -> bool {
        // An empty input would tell the parser that the file ends.
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

    fn fields(&self) -> usize {
        self.used.1
    }

    /// Bytes of a field.
    fn field(&self, place: usize) -> &[u8] {
        let begin = if place == 0 { 0 } else { self.ends[place - 1] };
        &self.text[begin..self.ends[place]]
    }
}

/// Whether a quote is open after `line`; it is open before if `is_quoted`. A quote opens at the
/// beginning of a field only.
fn is_quoted_after(line: &[u8], delimiter: u8, is_quoted: bool) -> bool {
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum State {
        FieldBegins,
        Plain,
        Quoted,
        /// A quote in quotes: it ends them, unless another one follows.
        Quote,
    }
    let begin = if is_quoted { State::Quoted } else { State::FieldBegins };
    let step = |state, &byte: &u8| match (state, byte) {
        (State::FieldBegins | State::Quote, b'"') => State::Quoted,
        (State::Quoted, b'"') => State::Quote,
        (State::Quoted, _) => State::Quoted,
        (_, byte) if byte == delimiter => State::FieldBegins,
        _ => State::Plain,
    };
    line.iter().fold(begin, step) == State::Quoted
}

/// Reason why a record cannot be used.
enum Fault {
    Fields(usize),
    /// The field in this place is not UTF-8.
    Text(usize),
    /// The field in this place is not a number.
    Number(usize),
}

impl CsvRows {
    pub(super) fn new(columns: CsvColumns, record_bytes_max: usize) -> Self {
        let mut fields = vec![Field::new("id", DataType::UInt32, false)];
        fields.extend(columns.texts.iter().map(|name| Field::new(name, DataType::Utf8, false)));
        if columns.dims > 0 {
            fields.push(vector_field(columns.dims));
        }
        let mut builder = ReaderBuilder::new();
        builder.delimiter(columns.delimiter).terminator(Terminator::Any(b'\n'));
        Self {
            schema: Arc::new(Schema::new(fields)),
            parser: builder.build(),
            record: Record::new(),
            places: Places::Unknown,
            record_bytes_max,
            next_id: 0,
            ids: Vec::new(),
            texts: columns.texts.iter().map(|_| StringBuilder::new()).collect(),
            coordinates: Vec::new(),
            room: Reservation::default(),
            columns,
        }
    }

    /// Takes memory for long records from this budget.
    pub(super) fn within(self, memory: &MemoryBudget) -> Self {
        Self { room: memory.reservation(), ..self }
    }

    /// Adds a line. Without it the line with this `number` cannot be used, nor the record that
    /// contains it.
    fn add(
        &mut self,
        inputs: &mut Inputs,
        number: u64,
        line: Option<Line<'_>>,
        line_end: &[u8],
    ) -> Result<(), ReadError> {
        let is_between = self.record.line == 0;
        if self.places == Places::None
            || is_between && line.is_some_and(|line| line.bytes.is_empty())
        {
            return Ok(());
        }
        if is_between {
            self.record.line = number;
            self.record.offset = line.map_or(0, |line| line.offset);
        }
        let Some(Line { bytes, .. }) = line else {
            // Whether a quote is open at its end is unknown, so the record ends with the line.
            self.record.is_refused = true;
            self.parser.reset();
            return self.close(inputs);
        };
        let bytes_max = self.record_bytes_max;
        if self.record.used.0 + bytes.len() > bytes_max && !self.record.is_refused {
            self.record.is_refused = true;
            let line = self.record.line;
            let error = |path| ReadError::TextTooLong { path, line, bytes_max };
            inputs.refuse(&self.record.bad_row(), error)?;
        }
        self.reserve(inputs, bytes.len())?;
        let Self { record, parser, .. } = self;
        if record.is_refused {
            // Parsed on, up to its end, without its text.
            record.used = (0, 0);
        } else if inputs.rejects() {
            record.raw.extend_from_slice(bytes);
            record.raw.push(b'\n');
        }
        // In quotes, the line end belongs to the field, as it is in the file.
        let is_kept =
            line_end != b"\n" && is_quoted_after(bytes, self.columns.delimiter, !is_between);
        let line_end = if is_kept { line_end } else { b"\n" };
        if record.add(parser, bytes) || record.add(parser, line_end) {
            self.close(inputs)
        } else {
            Ok(())
        }
    }

    /// Reserves memory for this number of bytes more of the record, and for its row.
    fn reserve(&mut self, inputs: &Inputs, bytes: usize) -> Result<(), ReadError> {
        let bytes = self.record.used.0 + bytes;
        let wanted = bytes.next_power_of_two() * 2;
        if bytes <= UNRESERVED_BYTES || wanted <= self.room.bytes() {
            return Ok(());
        }
        self.room.resize(wanted).map_err(|full| inputs.no_memory(self.record.line, full))
    }

    /// Takes the record, which is complete.
    fn close(&mut self, inputs: &mut Inputs) -> Result<(), ReadError> {
        let result = match &self.places {
            Places::Unknown => self.take_header(inputs),
            Places::Known { .. } => self.take_record(inputs),
            Places::None => Ok(()),
        };
        self.record.clear();
        result
    }

    fn take_header(&mut self, inputs: &mut Inputs) -> Result<(), ReadError> {
        if self.record.is_refused {
            self.places = Places::None;
            return inputs.leave_out(ReadError::NoHeader { path: inputs.path() });
        }
        match self.find_places(inputs) {
            Ok(places) => self.places = places,
            Err(error) => {
                self.places = Places::None;
                inputs.leave_out(error)?;
            }
        }
        Ok(())
    }

    /// The places of the columns by the header, which is the record.
    fn find_places(&self, inputs: &Inputs) -> Result<Places, ReadError> {
        let (path, line) = (inputs.path(), self.record.line);
        let encoding = inputs.line_encoding();
        let name = |place: usize| {
            let field = self.record.field(place);
            if let Ok(name) = text_of(field, encoding) {
                return Ok(name.trim().to_owned());
            }
            let (path, encoding) = (inputs.path(), encoding.name());
            let error = ReadError::CsvText { path, line, field: place + 1, encoding };
            // A file whose header is no text is left out as a whole.
            if inputs.replaces() {
                Ok(inputs.replaced(field).trim().to_owned())
            } else {
                Err(error)
            }
        };
        let header: Vec<String> = (0..self.record.fields()).map(name).collect::<Result<_, _>>()?;
        let all = |name: &str| -> Vec<usize> {
            let prefix = name.strip_suffix(ANY);
            let is_it = |found: &str| match prefix {
                Some(prefix) => found.starts_with(prefix),
                None => found == name,
            };
            (0..header.len()).filter(|&place| is_it(&header[place])).collect()
        };
        let missing = |name: &String, count| {
            let (path, name) = (Arc::clone(&path), name.clone());
            let found = header.iter().take(NAMES_SHOWN).map(|name| format!("`{name}`"));
            let found = found.collect::<Vec<_>>().join(", ");
            Err(ReadError::CsvColumn { path, name, count, found })
        };
        let mut texts = Vec::new();
        for name in &self.columns.texts {
            match all(name)[..] {
                [place] => texts.push(place),
                ref places => return missing(name, places.len()),
            }
        }
        let mut vector = Vec::new();
        for name in &self.columns.vector {
            let places = all(name);
            if places.len() != 1 && !is_pattern(name) {
                return missing(name, places.len());
            }
            vector.extend(places);
        }
        let (found, dims) = (vector.len() as u64, self.columns.dims);
        if found != u64::from(dims) {
            return Err(ReadError::Dims { path, found, dims });
        }
        Ok(Places::Known { fields: header.len(), texts, vector })
    }

    fn take_record(&mut self, inputs: &mut Inputs) -> Result<(), ReadError> {
        let line = self.record.line;
        let id = u32::try_from(self.next_id)
            .map_err(|_| ReadError::TooManyRows { path: inputs.path(), line })?;
        self.next_id += 1;
        if self.record.is_refused {
            return Ok(());
        }
        let begin = self.coordinates.len();
        let Err(fault) = self.push(id, inputs) else { return Ok(()) };
        self.coordinates.truncate(begin);
        let Places::Known { fields, .. } = &self.places else { return Ok(()) };
        let encoding = inputs.line_encoding().name();
        let is_of_bytes = matches!(fault, Fault::Text(_));
        let error = |path| match fault {
            Fault::Fields(found) => ReadError::CsvFields { path, line, found, fields: *fields },
            Fault::Text(place) => ReadError::CsvText { path, line, field: place + 1, encoding },
            Fault::Number(place) => {
                let token = shorten(self.record.field(place));
                ReadError::Number { path, line, field: place + 1, token }
            }
        };
        let row = self.record.bad_row();
        match is_of_bytes {
            true => inputs.refuse_bytes(&row, error).map(drop),
            false => inputs.refuse(&row, error),
        }
    }

    /// Adds the row of the record; the coordinates of an unusable one have to be removed.
    fn push(&mut self, id: u32, inputs: &mut Inputs) -> Result<(), Fault> {
        let Places::Known { fields, texts, vector } = &self.places else { return Ok(()) };
        let record = &self.record;
        if record.fields() != *fields {
            return Err(Fault::Fields(record.fields()));
        }
        let number = |place: usize| -> Option<f32> {
            str::from_utf8(record.field(place)).ok()?.trim().parse().ok()
        };
        for &place in vector {
            self.coordinates.push(number(place).ok_or(Fault::Number(place))?);
        }
        // All texts are checked before one is added.
        let encoding = inputs.line_encoding();
        let is_broken = |&&place: &&usize| text_of(record.field(place), encoding).is_err();
        let broken = texts.iter().find(is_broken);
        if let Some(&place) = broken {
            if !inputs.replaces() {
                return Err(Fault::Text(place));
            }
            inputs.count_replaced();
        }
        for (builder, &place) in self.texts.iter_mut().zip(texts) {
            let field = record.field(place);
            match text_of(field, encoding) {
                Ok(text) => builder.append_value(text),
                Err(_) => builder.append_value(inputs.replaced(field)),
            }
        }
        self.ids.push(id);
        Ok(())
    }
}

impl LineFormat for CsvRows {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn append(&mut self, run: &Run<'_>, inputs: &mut Inputs) -> Result<(), ReadError> {
        run.for_each_with_end(inputs, |inputs, number, line, line_end| {
            self.add(inputs, number, line, line_end)
        })
    }

    fn pass_over(&mut self, inputs: &mut Inputs, line: u64) -> Result<(), ReadError> {
        self.add(inputs, line, None, b"\n")
    }

    fn end_file(&mut self, inputs: &mut Inputs) -> Result<(), ReadError> {
        let (line, is_refused) = (self.record.line, self.record.is_refused);
        let is_empty = self.places == Places::Unknown;
        if line > 0 && !is_refused {
            let error = |path| ReadError::OpenQuote { path, line };
            inputs.refuse(&self.record.bad_row(), error)?;
        } else if is_empty {
            inputs.leave_out(ReadError::NoHeader { path: inputs.path() })?;
        }
        self.abandon();
        Ok(())
    }

    fn abandon(&mut self) -> usize {
        let bytes = self.record.used.0;
        self.record.clear();
        self.parser.reset();
        self.places = Places::Unknown;
        bytes
    }

    fn rows(&self) -> usize {
        self.ids.len()
    }

    fn bytes(&self) -> usize {
        let texts: usize = self.texts.iter().map(|texts| texts.values_slice().len()).sum();
        texts + size_of_val(&self.coordinates[..])
    }

    fn take(&mut self) -> RecordBatch {
        let ids = std::mem::take(&mut self.ids);
        let mut columns: Vec<ArrayRef> = vec![Arc::new(UInt32Array::from(ids))];
        columns.extend(self.texts.iter_mut().map(|texts| Arc::new(texts.finish()) as ArrayRef));
        if self.columns.dims > 0 {
            let capacity = self.coordinates.len();
            let next = Vec::with_capacity(capacity);
            let coordinates = std::mem::replace(&mut self.coordinates, next);
            columns.push(vector_array(self.columns.dims, ScalarBuffer::from(coordinates)));
        }
        RecordBatch::try_new(SchemaRef::clone(&self.schema), columns).expect("of this schema")
    }
}
