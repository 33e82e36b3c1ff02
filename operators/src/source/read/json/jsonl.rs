//! Format `jsonl`: an object of JSON on each line.
//!
//! ```text
//! {"user": {"id": 7}, "tags": ["a"]} ──► user: struct of id, tags: list of texts
//! ```
//!
//! If no column has lists or structs, one walk over a run of lines finds the values, and each
//! column is made of its values. Other columns are decoded by `arrow-json`, a run of lines at once.
//! Only if the run fails is each line decoded alone, so that the error names the bad line. The
//! decoder of numbers and times is our own: the decoder of `arrow-json` cuts `1.5` to 1 for a whole
//! number, and takes a number for microseconds.

use std::borrow::Cow;
use std::collections::HashMap;
use std::str::FromStr;
use std::sync::Arc;

use arrow_array::builder::PrimitiveBuilder;
use arrow_array::types::{
    Date32Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{ArrayRef, ArrowPrimitiveType, RecordBatch};
use arrow_json::ReaderBuilder;
use arrow_json::reader::{
    ArrayDecoder, Decoder, DecoderContext, DecoderFactory, Tape, TapeElement,
};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Fields, SchemaRef, TimeUnit};
use encoding_rs::UTF_8;
use memchr::memchr2_iter;
use serde_json::value::RawValue;
use trommel_engine::memory::{MemoryBudget, Reservation};

use super::members::Members;
use super::strict::{DEPTH_MAX, is_json};
use crate::shared::columns::type_name;
use crate::source::read::columns::places::{Form, NotOfType, Parts, Spans, is_made};
use crate::source::read::columns::values::{date, float32, float64, integer, microseconds};
use crate::source::read::divided::Divided;
use crate::source::read::error::ReadError;
use crate::source::read::files::input::{Inputs, Line};
use crate::source::read::text::encoding::text_of;
use crate::source::read::text::lines::{LineFormat, Run};

/// Maximum values that are decoded at once; in a table of many columns fewer lines are decoded at
/// once.
const CELLS_MAX: usize = 1 << 18;
/// Maximum lines that are decoded at once.
const LINES_MAX: usize = 4_096;
/// Bytes of lines that need no reservation.
const UNRESERVED_BYTES: usize = 512 << 10;
/// Bytes of memory per byte of JSON. A list of digits has, for each 2 bytes, an entry of 8 bytes,
/// the place of its text, and a value.
const EXPANSION: usize = 24;
/// Maximum items of a list that are decoded alone to find the bad item.
const ITEMS_LOOKED_AT: usize = 1_000;
/// Characters of a value that a message shows.
const VALUE_CHARS_SHOWN: usize = 60;

/// Rows of lines of JSON.
pub(crate) struct JsonRows {
    /// Finds the values of columns, if no column has lists or structs.
    members: Option<Members>,
    spans: Spans,
    /// Decodes a run of lines.
    runs: Decoder,
    /// Decodes one line.
    single: Decoder,
    lines_max: usize,
    rows: Parts,
    /// Memory of long lines.
    room: Reservation,
}

/// A line. `text` holds the line if the bytes need a conversion.
struct JsonLine<'a> {
    line: Line<'a>,
    text: Option<String>,
}

impl JsonLine<'_> {
    fn bytes(&self) -> &[u8] {
        self.text.as_ref().map_or(self.line.bytes, String::as_bytes)
    }
}

impl JsonRows {
    /// Rows of the columns `schema`.
    ///
    /// # Errors
    /// If a column has a type that JSON has no form for.
    pub(crate) fn new(schema: SchemaRef) -> Result<Self, ArrowError> {
        let columns = schema.flattened_fields().len().max(1);
        let lines_max = (CELLS_MAX / columns).clamp(1, LINES_MAX);
        let is_flat = schema.fields().iter().all(|field| is_made(field.data_type()));
        let names = schema.fields().iter().map(|field| field.name().as_str());
        Ok(Self {
            members: is_flat.then(|| Members::new(names)).flatten(),
            spans: Spans::default(),
            runs: decoder(&schema, lines_max)?,
            single: decoder(&schema, 1)?,
            lines_max,
            rows: Parts::new(schema),
            room: Reservation::default(),
        })
    }

    /// Takes memory for long lines from this budget.
    pub(crate) fn within(self, memory: &MemoryBudget) -> Self {
        Self { room: memory.reservation(), ..self }
    }

    /// Adds the rows of these lines.
    fn take_lines(
        &mut self,
        lines: &mut Vec<JsonLine<'_>>,
        inputs: &mut Inputs,
    ) -> Result<(), ReadError> {
        if lines.is_empty() {
            return Ok(());
        }
        match decode(&mut self.runs, lines) {
            Ok(rows) => self.rows.push(rows),
            Err(_) => {
                // A decoder that has failed still holds some of the lines.
                self.runs = self.new_decoder(self.lines_max);
                for line in lines.iter() {
                    self.take_line(line, inputs)?;
                }
            }
        }
        lines.clear();
        Ok(())
    }

    fn take_line(&mut self, row: &JsonLine<'_>, inputs: &mut Inputs) -> Result<(), ReadError> {
        match decode(&mut self.single, std::slice::from_ref(row)) {
            Ok(rows) => self.rows.push(rows),
            Err(reason) => {
                self.single = self.new_decoder(1);
                // A message of the decoder nests as deep as the value, so no decoder looks at a
                // deep value again.
                let fault = match is_too_deep(row.bytes()) {
                    true => Fault::Line(reason),
                    false => Fault::of(self.rows.schema().fields(), row.bytes(), &reason),
                };
                let line = row.line.number;
                inputs.refuse(&row.line.into(), |path| fault.error(path, line))?;
            }
        }
        Ok(())
    }

    fn new_decoder(&self, lines: usize) -> Decoder {
        decoder(self.rows.schema(), lines).expect("a decoder of this schema was built before")
    }

    /// Adds the rows of all lines of a run; false if a line needs the decoder.
    fn take_run(&mut self, run: &Run<'_>, text: &str) -> bool {
        let Some(members) = &mut self.members else { return false };
        self.spans.clear();
        for range in run.ranges() {
            let line = &text[range.clone()];
            let is_blank = line.bytes().all(|byte| byte.is_ascii_whitespace());
            if !is_blank && !members.find(line, range.start, &mut self.spans) {
                return false;
            }
        }
        let rows = self.spans.columns(text, self.rows.schema(), value);
        rows.map(|rows| self.rows.push(rows)).is_some()
    }

    fn reserve(&mut self, run: &Run<'_>, inputs: &Inputs) -> Result<(), ReadError> {
        let bytes = run.bytes().len();
        let wanted = bytes * EXPANSION;
        if bytes <= UNRESERVED_BYTES || wanted <= self.room.bytes() {
            return Ok(());
        }
        self.room.resize(wanted).map_err(|full| inputs.no_memory(run.first_line, full))
    }
}

impl LineFormat for JsonRows {
    fn schema(&self) -> &SchemaRef {
        self.rows.schema()
    }

    fn append(&mut self, run: &Run<'_>, inputs: &mut Inputs) -> Result<(), ReadError> {
        self.reserve(run, inputs)?;
        let encoding = inputs.line_encoding();
        let text = Some(run.bytes()).filter(|_| encoding == UTF_8);
        let text = text.and_then(|bytes| simdutf8::basic::from_utf8(bytes).ok());
        // In most runs the values can be found without a decoder.
        if let Some(text) = text
            && run.is_accepted()
            && self.take_run(run, text)
        {
            return Ok(());
        }
        let mut lines = Vec::with_capacity(run.lines().min(self.lines_max));
        for line in run.each() {
            if line.bytes.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            if !run.is_within(line) {
                // Errors are reported in the order of the lines.
                self.take_lines(&mut lines, inputs)?;
                run.accepts(line, inputs)?;
                continue;
            }
            let text = match text_of(line.bytes, encoding) {
                _ if text.is_some() => None,
                Ok(Cow::Borrowed(_)) => None,
                Ok(Cow::Owned(text)) => Some(text),
                Err(_) => {
                    self.take_lines(&mut lines, inputs)?;
                    let Some(text) = inputs.text(line)? else { continue };
                    Some(text.into_owned())
                }
            };
            lines.push(JsonLine { line, text });
            if lines.len() == self.lines_max {
                self.take_lines(&mut lines, inputs)?;
            }
        }
        self.take_lines(&mut lines, inputs)
    }

    fn pass_over(&mut self, _: &mut Inputs, _: u64) -> Result<(), ReadError> {
        Ok(())
    }

    fn rows(&self) -> usize {
        self.rows.rows()
    }

    fn bytes(&self) -> usize {
        self.rows.bytes()
    }

    fn take(&mut self) -> RecordBatch {
        self.room.resize(0).expect("less than before");
        self.rows.take()
    }
}

impl Divided for JsonRows {
    fn another(&self, memory: &MemoryBudget) -> Self {
        let rows = Self::new(Arc::clone(self.rows.schema()));
        rows.expect("rows of these columns have been made").within(memory)
    }
}

/// The text of a value, by the form that it has in JSON.
fn value<'a>(kind: &DataType, form: Form, text: &'a str) -> Result<Option<&'a str>, NotOfType> {
    let is_of_kind = match kind {
        DataType::Utf8 => true,
        DataType::Boolean => form == Form::Bare,
        DataType::Date32 | DataType::Timestamp(..) => form == Form::Quoted,
        _ => form == Form::Quoted || !text.starts_with(['t', 'f']),
    };
    if is_of_kind { Ok(Some(text)) } else { Err(NotOfType) }
}

/// Whether values are nested deeper than [`DEPTH_MAX`].
fn is_too_deep(line: &[u8]) -> bool {
    // Most lines do not have [`DEPTH_MAX`] brackets.
    if memchr2_iter(b'[', b'{', line).nth(DEPTH_MAX).is_none() {
        return false;
    }
    let (mut depth, mut is_quoted, mut is_escaped) = (0_usize, false, false);
    line.iter().any(|&byte| {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            b'[' | b'{' if !is_quoted => depth += 1,
            b']' | b'}' if !is_quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth > DEPTH_MAX
    })
}

/// Decodes one object per line.
fn decode(decoder: &mut Decoder, lines: &[JsonLine<'_>]) -> Result<RecordBatch, String> {
    let said = |error: ArrowError| match error {
        ArrowError::JsonError(reason) => reason,
        error => error.to_string(),
    };
    for (objects, line) in (1..).zip(lines) {
        let bytes = line.bytes();
        // The decoder accepts more than JSON.
        if !is_json(bytes) {
            return Err(match is_too_deep(bytes) {
                true => format!("its values are nested more than {DEPTH_MAX} deep"),
                false => "the line is no JSON".to_owned(),
            });
        }
        let read = decoder.decode(bytes).map_err(said)?;
        if decoder.has_partial_record() {
            return Err("the line ends within a value".to_owned());
        }
        if read < bytes.len() || decoder.len() != objects {
            return Err("more than one value on a line".to_owned());
        }
    }
    decoder.flush().map_err(said)?.ok_or_else(|| "the line is empty".to_owned())
}

/// A decoder of this number of lines.
fn decoder(schema: &SchemaRef, lines: usize) -> Result<Decoder, ArrowError> {
    // With room for one more line the decoder does not stop before the end of a run.
    options(ReaderBuilder::new(Arc::clone(schema))).with_batch_size(lines + 1).build_decoder()
}

fn options(builder: ReaderBuilder) -> ReaderBuilder {
    builder.with_coerce_primitive(true).with_decoder_factory(Arc::new(Strict))
}

/// Decoders that keep each value as it is or fail.
#[derive(Debug)]
struct Strict;

impl DecoderFactory for Strict {
    fn make_default_decoder(
        &self,
        _: &DecoderContext,
        field: &FieldRef,
        _: bool,
    ) -> Result<Option<Box<dyn ArrayDecoder>>, ArrowError> {
        let kind = field.data_type();
        Ok(Some(match kind {
            DataType::Int8 => integers::<Int8Type>(),
            DataType::Int16 => integers::<Int16Type>(),
            DataType::Int32 => integers::<Int32Type>(),
            DataType::Int64 => integers::<Int64Type>(),
            DataType::UInt8 => integers::<UInt8Type>(),
            DataType::UInt16 => integers::<UInt16Type>(),
            DataType::UInt32 => integers::<UInt32Type>(),
            DataType::UInt64 => integers::<UInt64Type>(),
            DataType::Float32 => Scalars::<Float32Type>::boxed(kind, float32, true),
            DataType::Float64 => Scalars::<Float64Type>::boxed(kind, float64, true),
            DataType::Date32 => Scalars::<Date32Type>::boxed(kind, date, false),
            DataType::Timestamp(TimeUnit::Microsecond, zone)
                if zone.as_deref().is_none_or(|zone| zone == "UTC") =>
            {
                Scalars::<TimestampMicrosecondType>::boxed(kind, microseconds, false)
            }
            _ => return Ok(None),
        }))
    }
}

fn integers<P: ArrowPrimitiveType>() -> Box<dyn ArrayDecoder>
where
    P::Native: FromStr + TryFrom<i128>,
{
    Scalars::<P>::boxed(&P::DATA_TYPE, integer, true)
}

/// Decodes values that are written as texts, and as numbers where `takes_numbers`.
struct Scalars<P: ArrowPrimitiveType> {
    kind: DataType,
    parse: fn(&str) -> Option<P::Native>,
    takes_numbers: bool,
}

impl<P: ArrowPrimitiveType> Scalars<P> {
    fn boxed(
        kind: &DataType,
        parse: fn(&str) -> Option<P::Native>,
        takes_numbers: bool,
    ) -> Box<dyn ArrayDecoder> {
        Box::new(Self { kind: kind.clone(), parse, takes_numbers })
    }
}

impl<P: ArrowPrimitiveType> ArrayDecoder for Scalars<P> {
    fn decode(&mut self, tape: &Tape<'_>, places: &[u32]) -> Result<ArrayRef, ArrowError> {
        let mut values =
            PrimitiveBuilder::<P>::with_capacity(places.len()).with_data_type(self.kind.clone());
        for &place in places {
            let text = match tape.get(place) {
                TapeElement::Null => {
                    values.append_null();
                    continue;
                }
                TapeElement::String(text) => tape.get_string(text),
                TapeElement::Number(text) if self.takes_numbers => tape.get_string(text),
                _ => return Err(tape.error(place, "another value")),
            };
            let value = (self.parse)(text);
            values.append_value(value.ok_or_else(|| tape.error(place, "another value"))?);
        }
        Ok(Arc::new(values.finish()))
    }
}

/// Reason why a line cannot be used.
enum Fault {
    Line(String),
    Value { column: String, expected: DataType, found: String },
}

type Object<'a> = HashMap<String, &'a RawValue>;

impl Fault {
    /// The fault of a line that the decoder refused for this `reason`.
    fn of(fields: &Fields, line: &[u8], reason: &str) -> Self {
        let members = match serde_json::from_slice::<Object<'_>>(line) {
            Ok(members) => members,
            Err(error) => return Self::Line(at_byte(&error)),
        };
        Self::of_members(fields, &members, "").unwrap_or_else(|| Self::Line(reason.to_owned()))
    }

    /// The first value that does not fit.
    fn of_members(fields: &Fields, members: &Object<'_>, within: &str) -> Option<Self> {
        fields.iter().find_map(|field| {
            let value = members.get(field.name())?.get();
            let column = format!("{within}{}", field.name());
            (!fits(field, value)).then(|| Self::of_value(field, value, column))
        })
    }

    /// The fault of a value, or of the first member or item inside of the value that does not fit.
    fn of_value(field: &Field, value: &str, column: String) -> Self {
        let inner = match field.data_type() {
            DataType::Struct(fields) => {
                let members = serde_json::from_str::<Object<'_>>(value).ok();
                members
                    .and_then(|members| Self::of_members(fields, &members, &format!("{column}.")))
            }
            DataType::List(item) => {
                let items = serde_json::from_str::<Vec<&RawValue>>(value).unwrap_or_default();
                let mut items = items.iter().take(ITEMS_LOOKED_AT).enumerate();
                let bad = items.find(|(_, value)| !fits(item, value.get()));
                bad.map(|(place, value)| {
                    Self::of_value(item, value.get(), format!("{column}[{place}]"))
                })
            }
            _ => None,
        };
        // Escapes are checked when a caller asks for the text.
        if value.starts_with('"')
            && let Err(error) = serde_json::from_str::<String>(value)
        {
            return Self::Line(format!("`{column}`: {}", at_byte(&error)));
        }
        let expected = field.data_type().clone();
        inner.unwrap_or_else(|| Self::Value { column, expected, found: described(value) })
    }

    fn error(self, path: Arc<str>, line: u64) -> ReadError {
        match self {
            Self::Line(reason) => ReadError::Json { path, line, reason },
            Self::Value { column, expected, found } => {
                let expected = type_name(&expected);
                ReadError::Value { path, line, column, expected, found }
            }
        }
    }
}

/// The reason that a parser of one line gives.
fn at_byte(error: &serde_json::Error) -> String {
    error.to_string().replace(" at line 1 column ", " at byte ")
}

/// Whether a value of JSON fits a column.
fn fits(field: &Field, value: &str) -> bool {
    let decoder = options(ReaderBuilder::new_with_field(Arc::new(field.clone()))).build_decoder();
    decoder.is_ok_and(|mut decoder| {
        // The decoder finds the end of a number at the blank.
        let is_decoded = decoder.decode(format!("{value} ").as_bytes()).is_ok();
        is_decoded && decoder.flush().is_ok()
    })
}

/// A value of JSON for messages.
fn described(value: &str) -> String {
    let kind = match value.as_bytes().first() {
        Some(b'"') => "the text ",
        Some(b'{') => "the object ",
        Some(b'[') => "the list ",
        Some(b't' | b'f' | b'n') => "",
        _ => "the number ",
    };
    let mut shown: String = value.chars().take(VALUE_CHARS_SHOWN).collect();
    if shown.len() < value.len() {
        shown.push('…');
    }
    format!("{kind}{shown}")
}
