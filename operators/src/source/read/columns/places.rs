//! Columns of one type from the places of their values in a text.
//!
//! ```text
//! text    host,status\na,200\nb,503\n       spans of `status`   200 503 ──► UInt16 [200, 503]
//! ```
//!
//! A format finds the places of the values of a run of lines, and a column is made of these values
//! at once. A value that is not of the type of its column gives no columns at all: the format then
//! parses each line alone.

use std::str::FromStr;
use std::sync::Arc;

use arrow_array::types::{
    Date32Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array as _, ArrayRef, ArrowPrimitiveType, BooleanArray, PrimitiveArray};
use arrow_array::{RecordBatch, StringArray};
use arrow_buffer::{BooleanBufferBuilder, NullBufferBuilder, OffsetBuffer};
use arrow_schema::{DataType, SchemaRef, TimeUnit};
use arrow_select::concat::concat_batches;

use super::values::{boolean, date, float32, float64, integer, microseconds};

/// Form of a value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Form {
    /// The row has no value.
    #[default]
    Missing,
    /// The value as it stands, such as a number.
    Bare,
    /// The value stands between quotes.
    Quoted,
    /// The value stands between quotes and has escapes. Its text is in [`Spans::unescaped`].
    Unescaped,
}

/// Place of a value.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Span {
    pub(crate) begin: u32,
    pub(crate) end: u32,
    pub(crate) form: Form,
}

impl Span {
    pub(crate) fn new(begin: usize, end: usize, form: Form) -> Self {
        let place = |at: usize| u32::try_from(at).expect("a run of lines is far below 2^32 bytes");
        Self { begin: place(begin), end: place(end), form }
    }
}

/// Places of the values of rows, row by row.
#[derive(Debug, Default)]
pub(crate) struct Spans {
    pub(crate) spans: Vec<Span>,
    /// Texts whose escapes have been replaced.
    pub(crate) unescaped: String,
}

impl Spans {
    pub(crate) fn clear(&mut self) {
        self.spans.clear();
        self.unescaped.clear();
    }

    /// Adds the text of a value with escapes to the unescaped texts.
    pub(crate) fn unescape(&mut self, write: impl FnOnce(&mut String)) -> Span {
        let begin = self.unescaped.len();
        write(&mut self.unescaped);
        Span::new(begin, self.unescaped.len(), Form::Unescaped)
    }

    /// The forms and the texts of a column of `columns`.
    fn column<'a>(
        &'a self,
        text: &'a str,
        (column, columns): (usize, usize),
    ) -> impl ExactSizeIterator<Item = (Form, &'a str)> {
        self.spans[column.min(self.spans.len())..].iter().step_by(columns).map(move |span| {
            let range = span.begin as usize..span.end as usize;
            match span.form {
                Form::Missing => (Form::Missing, ""),
                Form::Unescaped => (Form::Quoted, &self.unescaped[range]),
                form => (form, &text[range]),
            }
        })
    }

    /// The columns `schema` of the values in `text`; `None` if a value is not of the type of its
    /// column. `value` gets the form and the text of a value, and returns the text, `None` for a
    /// null, or a refusal.
    pub(crate) fn columns(
        &self,
        text: &str,
        schema: &SchemaRef,
        value: impl for<'a> Fn(&DataType, Form, &'a str) -> Result<Option<&'a str>, NotOfType>,
    ) -> Option<RecordBatch> {
        let count = schema.fields().len();
        let column = |(number, kind): (usize, &DataType)| {
            let values = self.column(text, (number, count));
            let values = values.map(|(form, text)| match form {
                Form::Missing => Ok(None),
                form => value(kind, form, text),
            });
            array(kind, values)
        };
        let kinds = schema.fields().iter().map(|field| field.data_type());
        let columns = kinds.enumerate().map(column).collect::<Option<Vec<_>>>()?;
        Some(RecordBatch::try_new(Arc::clone(schema), columns).expect("made to this schema"))
    }
}

/// Refusal of a value that is not of the type of its column.
pub(crate) struct NotOfType;

type Value<'a> = Result<Option<&'a str>, NotOfType>;

/// Whether columns of this type are made from texts.
pub(crate) fn is_made(kind: &DataType) -> bool {
    array(kind, std::iter::empty()).is_some()
}

fn array<'a>(
    kind: &DataType,
    values: impl ExactSizeIterator<Item = Value<'a>>,
) -> Option<ArrayRef> {
    match kind {
        DataType::Boolean => flags(values),
        DataType::Int8 => integers::<Int8Type>(values),
        DataType::Int16 => integers::<Int16Type>(values),
        DataType::Int32 => integers::<Int32Type>(values),
        DataType::Int64 => integers::<Int64Type>(values),
        DataType::UInt8 => integers::<UInt8Type>(values),
        DataType::UInt16 => integers::<UInt16Type>(values),
        DataType::UInt32 => integers::<UInt32Type>(values),
        DataType::UInt64 => integers::<UInt64Type>(values),
        DataType::Float32 => scalars::<Float32Type>(kind, values, float32),
        DataType::Float64 => scalars::<Float64Type>(kind, values, float64),
        DataType::Date32 => scalars::<Date32Type>(kind, values, date),
        DataType::Timestamp(TimeUnit::Microsecond, zone)
            if zone.as_deref().is_none_or(|zone| zone == "UTC") =>
        {
            scalars::<TimestampMicrosecondType>(kind, values, microseconds)
        }
        DataType::Utf8 => texts(values),
        _ => None,
    }
}

fn integers<'a, P: ArrowPrimitiveType>(
    values: impl ExactSizeIterator<Item = Value<'a>>,
) -> Option<ArrayRef>
where
    P::Native: FromStr + TryFrom<i128>,
{
    scalars::<P>(&P::DATA_TYPE, values, integer)
}

fn scalars<'a, P: ArrowPrimitiveType>(
    kind: &DataType,
    values: impl ExactSizeIterator<Item = Value<'a>>,
    parse: impl Fn(&str) -> Option<P::Native>,
) -> Option<ArrayRef> {
    let mut numbers: Vec<P::Native> = Vec::with_capacity(values.len());
    let mut nulls = NullBufferBuilder::new(values.len());
    for value in values {
        match value.ok()? {
            None => {
                numbers.push(P::Native::default());
                nulls.append_null();
            }
            Some(text) => {
                numbers.push(parse(text)?);
                nulls.append_non_null();
            }
        }
    }
    let array = PrimitiveArray::<P>::new(numbers.into(), nulls.finish());
    Some(Arc::new(array.with_data_type(kind.clone())))
}

fn flags<'a>(values: impl ExactSizeIterator<Item = Value<'a>>) -> Option<ArrayRef> {
    let mut flags = BooleanBufferBuilder::new(values.len());
    let mut nulls = NullBufferBuilder::new(values.len());
    for value in values {
        match value.ok()? {
            None => {
                flags.append(false);
                nulls.append_null();
            }
            Some(text) => {
                flags.append(boolean(text)?);
                nulls.append_non_null();
            }
        }
    }
    Some(Arc::new(BooleanArray::new(flags.finish(), nulls.finish())))
}

fn texts<'a>(values: impl ExactSizeIterator<Item = Value<'a>>) -> Option<ArrayRef> {
    let mut bytes = Vec::new();
    let mut ends: Vec<i32> = Vec::with_capacity(values.len() + 1);
    ends.push(0);
    let mut nulls = NullBufferBuilder::new(values.len());
    for value in values {
        match value.ok()? {
            None => nulls.append_null(),
            Some(text) => {
                bytes.extend_from_slice(text.as_bytes());
                nulls.append_non_null();
            }
        }
        ends.push(i32::try_from(bytes.len()).ok()?);
    }
    let ends = OffsetBuffer::new(ends.into());
    Some(Arc::new(StringArray::try_new(ends, bytes.into(), nulls.finish()).ok()?))
}

/// Rows in several parts, which become one batch.
pub(crate) struct Parts {
    schema: SchemaRef,
    parts: Vec<RecordBatch>,
    rows: usize,
    bytes: usize,
}

impl Parts {
    pub(crate) fn new(schema: SchemaRef) -> Self {
        Self { schema, parts: Vec::new(), rows: 0, bytes: 0 }
    }

    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn push(&mut self, rows: RecordBatch) {
        self.rows += rows.num_rows();
        self.bytes +=
            rows.columns().iter().map(|column| column.get_buffer_memory_size()).sum::<usize>();
        self.parts.push(rows);
    }

    pub(crate) fn take(&mut self) -> RecordBatch {
        (self.rows, self.bytes) = (0, 0);
        match &mut self.parts[..] {
            [_] => self.parts.pop().expect("one part"),
            _ => {
                let parts = std::mem::take(&mut self.parts);
                concat_batches(&self.schema, &parts).expect("parts of one schema")
            }
        }
    }
}
