//! Tables of comma-separated values: columns of the types of a schema.
//!
//! The fields of the records of a run are found together (`fields.rs`), and each column is made of
//! its fields. If a value fails, each record is parsed field by field, and becomes a row if each
//! field has the type of its column. If the types are not given, the first records of a file give
//! the types.

use std::collections::HashMap;
use std::str::FromStr;
use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, PrimitiveBuilder, StringBuilder};
use arrow_array::types::{
    Date32Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{ArrayRef, ArrowPrimitiveType, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};
use trommel_engine::memory::MemoryBudget;

use super::fields::FieldSpans;
use super::labelled::no_column;
use super::records::{Columns, CsvLines, CsvText, Fault, Record};
use crate::shared::columns::timestamp;
use crate::source::read::columns::first;
use crate::source::read::columns::places::{Form, Parts};
use crate::source::read::columns::values::{
    boolean, date, float32, float64, integer, microseconds,
};
use crate::source::read::divided::Divided;
use crate::source::read::error::ReadError;
use crate::source::read::files::input::Inputs;
use crate::source::read::text::encoding::text_of;

/// Rows of typed columns.
pub(crate) struct TypedRows {
    schema: SchemaRef,
    nulls: Vec<String>,
    /// Places of the columns in the open file.
    places: Vec<usize>,
    /// Places of the fields of records that are converted together, and the rows of these records.
    together: FieldSpans,
    done: Parts,
    /// Rows of records that were converted alone, which come after the rows so far.
    cells: Vec<Box<dyn Cells>>,
    rows: usize,
    bytes: usize,
}

/// Values of a column.
pub(crate) trait Cells: Send {
    /// Parses the value of the next row; false if the field is not of the type of the column.
    fn parse(&mut self, field: Option<&str>) -> bool;
    /// Adds the value that was parsed last.
    fn add(&mut self);
    fn take(&mut self) -> ArrayRef;
}

struct Scalars<P: ArrowPrimitiveType> {
    values: PrimitiveBuilder<P>,
    parse: fn(&str) -> Option<P::Native>,
    last: Option<P::Native>,
}

impl<P: ArrowPrimitiveType> Scalars<P> {
    fn boxed(kind: &DataType, parse: fn(&str) -> Option<P::Native>) -> Box<dyn Cells> {
        let values = PrimitiveBuilder::<P>::new().with_data_type(kind.clone());
        Box::new(Self { values, parse, last: None })
    }
}

fn integers<P: ArrowPrimitiveType>() -> Box<dyn Cells>
where
    P::Native: FromStr + TryFrom<i128>,
{
    Scalars::<P>::boxed(&P::DATA_TYPE, integer)
}

impl<P: ArrowPrimitiveType> Cells for Scalars<P> {
    fn parse(&mut self, field: Option<&str>) -> bool {
        self.last = field.and_then(|text| (self.parse)(text.trim()));
        self.last.is_some() || field.is_none()
    }

    fn add(&mut self) {
        self.values.append_option(self.last);
    }

    fn take(&mut self) -> ArrayRef {
        Arc::new(self.values.finish())
    }
}

struct Flags {
    values: BooleanBuilder,
    last: Option<bool>,
}

impl Cells for Flags {
    fn parse(&mut self, field: Option<&str>) -> bool {
        self.last = field.and_then(|text| boolean(text.trim()));
        self.last.is_some() || field.is_none()
    }

    fn add(&mut self) {
        self.values.append_option(self.last);
    }

    fn take(&mut self) -> ArrayRef {
        Arc::new(self.values.finish())
    }
}

#[derive(Default)]
struct Texts {
    values: StringBuilder,
    last: Option<String>,
}

impl Cells for Texts {
    fn parse(&mut self, field: Option<&str>) -> bool {
        match (field, &mut self.last) {
            (Some(text), Some(last)) => {
                last.clear();
                last.push_str(text);
            }
            (field, last) => *last = field.map(str::to_owned),
        }
        true
    }

    fn add(&mut self) {
        self.values.append_option(self.last.as_deref());
    }

    fn take(&mut self) -> ArrayRef {
        Arc::new(self.values.finish())
    }
}

/// The cells of a column of this type; `None` if no field can have a value of the type.
pub(crate) fn cells(kind: &DataType) -> Option<Box<dyn Cells>> {
    Some(match kind {
        DataType::Boolean => Box::new(Flags { values: BooleanBuilder::new(), last: None }),
        DataType::Int8 => integers::<Int8Type>(),
        DataType::Int16 => integers::<Int16Type>(),
        DataType::Int32 => integers::<Int32Type>(),
        DataType::Int64 => integers::<Int64Type>(),
        DataType::UInt8 => integers::<UInt8Type>(),
        DataType::UInt16 => integers::<UInt16Type>(),
        DataType::UInt32 => integers::<UInt32Type>(),
        DataType::UInt64 => integers::<UInt64Type>(),
        DataType::Float32 => Scalars::<Float32Type>::boxed(kind, float32),
        DataType::Float64 => Scalars::<Float64Type>::boxed(kind, float64),
        DataType::Date32 => Scalars::<Date32Type>::boxed(kind, date),
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            Scalars::<TimestampMicrosecondType>::boxed(kind, microseconds)
        }
        DataType::Utf8 => Box::new(Texts::default()),
        _ => return None,
    })
}

impl TypedRows {
    /// Rows of the columns `schema`, in which the words `nulls` are nulls.
    ///
    /// # Errors
    /// The column whose type has no values in a field.
    pub(crate) fn new(schema: SchemaRef, nulls: Vec<String>) -> Result<Self, Arc<Field>> {
        let cells = schema
            .fields()
            .iter()
            .map(|field| cells(field.data_type()).ok_or_else(|| Arc::clone(field)));
        let cells = cells.collect::<Result<_, _>>()?;
        let done = Parts::new(Arc::clone(&schema));
        let (places, together) = (Vec::new(), FieldSpans::default());
        Ok(Self { schema, nulls, places, together, done, cells, rows: 0, bytes: 0 })
    }

    /// A conversion to the same columns, without rows.
    fn another(&self) -> Self {
        let rows = Self::new(Arc::clone(&self.schema), self.nulls.clone());
        rows.expect("rows of these columns have been made")
    }

    /// Appends the rows of records that were converted alone to the other rows.
    fn close(&mut self) {
        if self.rows == 0 {
            return;
        }
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows));
        let columns = self.cells.iter_mut().map(|cells| cells.take()).collect();
        let schema = Arc::clone(&self.schema);
        let rows = RecordBatch::try_new_with_options(schema, columns, &options);
        self.done.push(rows.expect("of this schema"));
        (self.rows, self.bytes) = (0, 0);
    }

    /// The value of a field; `None` for a null.
    fn value<'a>(
        &self,
        record: &Record,
        place: usize,
        text: &'a str,
        kind: &DataType,
    ) -> Option<&'a str> {
        let is_null = self.nulls.iter().any(|null| null == text);
        // A quoted word is a text, even if the word is a null elsewhere. Values of other types have
        // no quotes.
        let is_text = *kind == DataType::Utf8 && record.is_quoted(place);
        (is_text || !is_null).then_some(text)
    }
}

impl Divided for CsvLines<TypedRows> {
    fn another(&self, memory: &MemoryBudget) -> Self {
        self.another(TypedRows::another, memory)
    }

    fn is_left_out(&self) -> bool {
        self.has_no_header()
    }
}

impl Columns for TypedRows {
    const ASKS_FOR_QUOTES: bool = true;

    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn begin(&mut self, path: Arc<str>, header: &[String]) -> Result<(), ReadError> {
        let mut places: HashMap<&str, (usize, usize)> = HashMap::new();
        for (place, name) in header.iter().enumerate() {
            places.entry(name).or_insert((place, 0)).1 += 1;
        }
        let place = |field: &Arc<Field>| match places.get(field.name().as_str()) {
            Some(&(place, 1)) => Ok(place),
            found => {
                let count = found.map_or(0, |(_, count)| *count);
                Err(no_column(Arc::clone(&path), header, field.name(), count))
            }
        };
        self.places = self.schema.fields().iter().map(place).collect::<Result<_, _>>()?;
        Ok(())
    }

    fn count(&mut self, _: &Inputs, _: u64) -> Result<(), ReadError> {
        Ok(())
    }

    fn push(&mut self, record: &Record, inputs: &mut Inputs) -> Result<(), Fault> {
        let encoding = inputs.line_encoding();
        let mut bytes = 0;
        // The check covers all fields, so the same records are refused whatever columns are read.
        let is_broken = |&place: &usize| text_of(record.field(place), encoding).is_err();
        let broken = (0..record.fields()).find(is_broken);
        if let Some(place) = broken.filter(|_| !inputs.replaces()) {
            return Err(Fault::Text(place));
        }
        let is_replaced = broken.is_some();
        for (column, &place) in self.places.iter().enumerate() {
            let kind = self.schema.field(column).data_type();
            let text = match text_of(record.field(place), encoding) {
                Ok(text) => text,
                Err(_) => inputs.replaced(record.field(place)).into(),
            };
            let value = self.value(record, place, &text, kind);
            bytes += value.map_or(8, |value| value.len() + 8);
            if !self.cells[column].parse(value) {
                let (column, expected) = (self.schema.field(column).name().clone(), kind.clone());
                return Err(Fault::Value { place, column, expected });
            }
        }
        if is_replaced {
            inputs.count_replaced();
        }
        self.cells.iter_mut().for_each(|cells| cells.add());
        self.rows += 1;
        self.bytes += bytes;
        Ok(())
    }

    fn push_all(&mut self, records: &CsvText<'_>) -> usize {
        // Earlier rows are appended first, so that rows stay in the order of their records.
        self.close();
        let Some(bytes) = self.together.find(records, &self.places) else { return 0 };
        // A text that has only comments and blank lines adds no rows.
        if self.together.spans.spans.is_empty() {
            return bytes;
        }
        let nulls = &self.nulls;
        let spans = &self.together.spans;
        let rows = spans.columns(records.text, &self.schema, |kind, form, text| {
            // A quoted word is a text; values of other types have no quotes.
            let is_text = *kind == DataType::Utf8;
            let may_be_null = !is_text || form != Form::Quoted;
            if may_be_null && nulls.iter().any(|null| null == text) {
                return Ok(None);
            }
            Ok(Some(if is_text { text } else { text.trim() }))
        });
        let Some(rows) = rows else { return 0 };
        self.done.push(rows);
        bytes
    }

    fn places(&self) -> Vec<usize> {
        self.places.clone()
    }

    fn set_places(&mut self, places: Vec<usize>) {
        self.places = places;
    }

    fn rows(&self) -> usize {
        self.done.rows() + self.rows
    }

    fn bytes(&self) -> usize {
        self.done.bytes() + self.bytes
    }

    fn take(&mut self) -> RecordBatch {
        self.close();
        self.done.take()
    }
}

/// The narrowest type of the texts of a column.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Seen {
    #[default]
    Null,
    Flag,
    Whole,
    Unsigned,
    Number,
    Day,
    Time,
    Text,
}

impl Seen {
    fn of(text: &str) -> Self {
        let text = text.trim();
        let digits = text.strip_prefix('-').unwrap_or(text);
        let is_whole = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        // A column whose numbers would lose digits is a column of texts, such as postcodes or long
        // keys.
        if is_whole && digits.len() > 1 && digits.starts_with('0') {
            return Self::Text;
        }
        if boolean(text).is_some() {
            Self::Flag
        } else if text.parse::<i64>().is_ok() {
            Self::Whole
        } else if text.parse::<u64>().is_ok() {
            Self::Unsigned
        } else if !is_whole
            && digits.starts_with(|c: char| c.is_ascii_digit() || c == '.')
            && float64(text).is_some()
        {
            Self::Number
        } else if text.len() == "2024-02-29".len() && date(text).is_some() {
            Self::Day
        } else if text.contains(':') && microseconds(text).is_some() {
            Self::Time
        } else {
            Self::Text
        }
    }

    fn with(self, other: Self) -> Self {
        match (self, other) {
            (Self::Null, seen) | (seen, Self::Null) => seen,
            (seen, other) if seen == other => seen,
            // `data_type` makes texts of the column if negative numbers and numbers beyond `i64`
            // meet.
            (Self::Whole | Self::Unsigned, Self::Whole | Self::Unsigned) => Self::Unsigned,
            (Self::Whole | Self::Number, Self::Whole | Self::Number) => Self::Number,
            (Self::Day | Self::Time, Self::Day | Self::Time) => Self::Time,
            _ => Self::Text,
        }
    }

    fn data_type(self) -> DataType {
        match self {
            Self::Flag => DataType::Boolean,
            Self::Whole => DataType::Int64,
            Self::Unsigned => DataType::UInt64,
            Self::Number => DataType::Float64,
            Self::Day => DataType::Date32,
            Self::Time => timestamp(None),
            Self::Null | Self::Text => DataType::Utf8,
        }
    }
}

/// The kind of the texts of a column so far.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SeenTexts {
    seen: Seen,
    /// Whether the column has numbers below zero.
    is_negative: bool,
}

impl SeenTexts {
    pub(crate) fn add(&mut self, text: &str) {
        self.seen = self.seen.with(Seen::of(text));
        self.is_negative |= text.trim_start().starts_with('-');
    }

    /// The narrowest type that has all texts so far.
    pub(crate) fn data_type(&self) -> DataType {
        let is_mixed = self.seen == Seen::Unsigned && self.is_negative;
        if is_mixed { DataType::Utf8 } else { self.seen.data_type() }
    }
}

/// Takes the first records of a file to find the types of its columns. Bad records are passed over,
/// since the run reports bad records.
pub(crate) struct FirstRecords {
    schema: SchemaRef,
    names: Vec<String>,
    seen: Vec<SeenTexts>,
    nulls: Vec<String>,
    records: usize,
    bytes: usize,
}

impl FirstRecords {
    pub(crate) fn new(nulls: Vec<String>) -> Self {
        Self {
            schema: Arc::new(Schema::empty()),
            names: Vec::new(),
            seen: Vec::new(),
            nulls,
            records: 0,
            bytes: 0,
        }
    }

    /// The columns of the records. The error is a name that several columns have, or nothing if the
    /// file has no columns.
    pub(crate) fn columns(&self) -> Result<Fields, Option<&str>> {
        let mut names: Vec<&String> = self.names.iter().collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Some(twice[0]));
        }
        if names.is_empty() {
            return Err(None);
        }
        let column = |(name, seen): (&String, &SeenTexts)| Field::new(name, seen.data_type(), true);
        Ok(self.names.iter().zip(&self.seen).map(column).collect())
    }
}

impl Columns for FirstRecords {
    const ASKS_FOR_QUOTES: bool = true;

    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn begin(&mut self, _: Arc<str>, header: &[String]) -> Result<(), ReadError> {
        self.names = header.to_vec();
        self.seen = vec![SeenTexts::default(); header.len()];
        Ok(())
    }

    fn count(&mut self, _: &Inputs, _: u64) -> Result<(), ReadError> {
        self.records += 1;
        Ok(())
    }

    fn push(&mut self, record: &Record, inputs: &mut Inputs) -> Result<(), Fault> {
        for place in 0..record.fields() {
            let field = record.field(place);
            self.bytes += field.len();
            let Ok(text) = text_of(field, inputs.line_encoding()) else { continue };
            if self.nulls.iter().any(|null| *null == text) {
                continue;
            }
            self.seen[place].add(&text);
        }
        Ok(())
    }

    // No other file has its turn between the first records, so no places are kept.
    fn places(&self) -> Vec<usize> {
        Vec::new()
    }

    fn set_places(&mut self, _: Vec<usize>) {}

    fn rows(&self) -> usize {
        if self.bytes < first::BYTES_MAX { self.records } else { first::ROWS }
    }

    fn bytes(&self) -> usize {
        0
    }

    fn take(&mut self) -> RecordBatch {
        RecordBatch::new_empty(Arc::clone(&self.schema))
    }
}
