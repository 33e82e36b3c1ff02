//! Columns in the types that operators take: items, texts, sets, transactions, vectors.
//!
//! A column that has the right type already is not copied. Types that have no meaning for an
//! operator are left as they are: the operator refuses them, with the types that it takes.

use std::fmt;
use std::sync::{Arc, Mutex};

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, FixedSizeListArray, ListArray, RecordBatch, StringArray, UInt32Array,
    make_array, new_null_array,
};
use arrow_buffer::OffsetBuffer;
use arrow_cast::cast;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use arrow_select::concat::concat;
use pyo3::prelude::*;
use trommel::error::BindErrorKind;
use trommel::sets::{SetReadError, SetReader, lists};

use crate::live::lock;

/// The rows of a batch: some thousand, so that a run can be stopped between two.
const ROWS: usize = 8_192;
/// The same for items, which take a few nanoseconds each.
const ITEM_ROWS: usize = 65_536;

/// The form of the data of one source, as Python asks for it.
#[derive(Clone, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Form {
    /// `items`, `texts`, `sets`, `transactions`, `terms`, `vectors` or `rows`.
    kind: String,
    /// The column; if it is left out, the only one, or the one named as in the configuration.
    column: Option<String>,
    /// The column of weights of items.
    weight: Option<String>,
    /// More columns.
    carry: Vec<String>,
    /// The name of the column of ids.
    id: String,
    /// The name that the column gets.
    into: String,
}

/// Why data has not the form.
#[derive(Debug)]
pub(crate) enum Fault {
    /// There is no such column, by the engine's words.
    Missing(BindErrorKind),
    /// No column was named.
    Several {
        columns: String,
    },
    Negative {
        column: &'static str,
        row: u64,
        value: i64,
    },
    Length {
        row: u64,
        found: usize,
        expected: usize,
    },
    /// More bytes than offsets of 32 bits tell apart.
    Texts {
        rows: usize,
        bytes: usize,
    },
    Sets(SetReadError),
    Arrow(ArrowError),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(error) => error.fmt(f),
            Self::Several { columns } => {
                write!(f, "the data has several columns: {columns}; name one with `column`")
            }
            Self::Negative { column, row, value } => {
                write!(f, "invalid {column} {value} in row {row}: whole numbers are 0 to 2^64 - 1")
            }
            Self::Length { row, found, expected } => write!(
                f,
                "invalid vector in row {row}: it has {found} coordinates, and the first one has \
                 {expected}"
            ),
            Self::Texts { rows, bytes } => {
                write!(f, "texts of {bytes} bytes in {rows} rows: a batch has at most {}", i32::MAX)
            }
            Self::Sets(error) => error.fmt(f),
            Self::Arrow(error) => error.fmt(f),
        }
    }
}

impl From<ArrowError> for Fault {
    fn from(error: ArrowError) -> Self {
        Self::Arrow(error)
    }
}

/// Brings batches into a form.
pub(crate) struct Former {
    form: Form,
    /// Place of the column; `None` where all columns go on.
    column: Option<usize>,
    weight: Option<usize>,
    carry: Vec<usize>,
    /// Numbers the texts of sets, for all sources of a join.
    sets: Arc<Mutex<SetReader>>,
    /// Rows so far.
    row: u64,
    /// Coordinates of a vector, once there was one.
    dims: Option<usize>,
}

impl Former {
    pub(crate) fn new(
        form: Form,
        schema: &SchemaRef,
        sets: Arc<Mutex<SetReader>>,
    ) -> Result<Self, Fault> {
        let find = |name: &String| match schema.column_with_name(name) {
            Some((index, _)) => Ok(index),
            None => {
                let (column, schema) = (name.clone(), Arc::clone(schema));
                Err(Fault::Missing(BindErrorKind::MissingColumn { column, schema }))
            }
        };
        let column = match (form.kind.as_str(), &form.column) {
            ("rows", _) => None,
            (_, Some(name)) => Some(find(name)?),
            (_, None) if schema.fields().len() == 1 => Some(0),
            (_, None) => match schema.column_with_name(&form.into) {
                Some((index, _)) => Some(index),
                None => {
                    let names = schema.fields().iter().map(|field| format!("`{}`", field.name()));
                    return Err(Fault::Several { columns: names.collect::<Vec<_>>().join(", ") });
                }
            },
        };
        let weight = form.weight.as_ref().map(find).transpose()?;
        let carry = form.carry.iter().map(find).collect::<Result<_, _>>()?;
        Ok(Self { form, column, weight, carry, sets, row: 0, dims: None })
    }

    /// The rows of a batch that are formed at once.
    pub(crate) fn rows_max(&self) -> usize {
        if self.form.kind == "items" { ITEM_ROWS } else { ROWS }
    }

    /// The batch in the form.
    pub(crate) fn form(&mut self, batch: &RecordBatch) -> Result<RecordBatch, Fault> {
        let begin = self.row;
        self.row += batch.num_rows() as u64;
        let Some(column) = self.column else { return plain(batch) };
        let column = &typed(&self.form.kind, batch.column(column));
        let mut columns = match self.form.kind.as_str() {
            "items" => vec![named(&self.form.into, items("item", begin, column)?)],
            "texts" => vec![named(&self.form.into, text(column)?)],
            "terms" => {
                let lists = self.transactions(begin, column)?;
                vec![named(&self.form.into, terms(&lists)?)]
            }
            "transactions" => vec![named(&self.form.into, self.transactions(begin, column)?)],
            "sets" => self.sets(begin, column)?,
            _ => {
                let ids = ids(begin, column.len()).map_err(Fault::Sets)?;
                {
                    let vectors = self.vectors(begin, column)?;
                    vec![named(&self.form.id, ids), named(&self.form.into, vectors)]
                }
            }
        };
        if let Some(weight) = self.weight {
            columns.push(named("weight", weights(begin, batch.column(weight))?));
        }
        for (&index, name) in self.carry.iter().zip(&self.form.carry) {
            columns.push((
                Field::new(name, batch.column(index).data_type().clone(), true),
                Arc::clone(batch.column(index)),
            ));
        }
        let (fields, columns): (Vec<Field>, Vec<ArrayRef>) = columns.into_iter().unzip();
        let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        Ok(RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)?)
    }

    fn sets(&self, begin: u64, column: &ArrayRef) -> Result<Vec<(Field, ArrayRef)>, Fault> {
        let read = lock(&self.sets).read(begin, column).map_err(Fault::Sets)?;
        let fields = read.schema();
        let set = fields.field(1).clone().with_name(&self.form.into);
        Ok(vec![
            named(&self.form.id, Arc::clone(read.column(0))),
            (set, Arc::clone(read.column(1))),
        ])
    }

    /// Lists of texts stay texts; lists of numbers become sets of numbers of 32 bits.
    fn transactions(&self, begin: u64, column: &ArrayRef) -> Result<ArrayRef, Fault> {
        let item = match column.data_type() {
            DataType::List(item)
            | DataType::LargeList(item)
            | DataType::ListView(item)
            | DataType::LargeListView(item)
            | DataType::FixedSizeList(item, _) => item.data_type().clone(),
            _ => return Ok(Arc::clone(column)),
        };
        if is_text(&item) {
            let texts = match item {
                DataType::Dictionary(..) => {
                    DataType::Dictionary(Box::new(DataType::UInt32), Box::new(DataType::Utf8))
                }
                _ => DataType::Utf8,
            };
            let column = lists(column).map_err(Fault::Sets)?;
            return Ok(cast(&column, &DataType::new_list(texts, true))?);
        }
        // Ids play no part in transactions, whose number they would bound.
        let read = SetReader::new().read(begin % (1 << 31), column).map_err(Fault::Sets)?;
        Ok(Arc::clone(read.column(1)))
    }

    fn vectors(&mut self, begin: u64, column: &ArrayRef) -> Result<ArrayRef, Fault> {
        let item = Arc::new(Field::new_list_field(DataType::Float32, true));
        match column.data_type() {
            DataType::FixedSizeList(found, _) if *found.data_type() == DataType::Float32 => {
                Ok(Arc::clone(column))
            }
            DataType::FixedSizeList(found, dims) if found.data_type().is_numeric() => {
                Ok(cast(column, &DataType::FixedSizeList(item, *dims))?)
            }
            DataType::List(found) | DataType::LargeList(found)
                if found.data_type().is_numeric() =>
            {
                let lists = lists(column).map_err(Fault::Sets)?;
                let lists = cast(&lists, &DataType::List(Arc::clone(&item)))?;
                let lists = lists.as_list::<i32>();
                let length = |row: usize| usize::try_from(lists.value_length(row)).unwrap_or(0);
                let mut valid = (0..lists.len()).filter(|&row| lists.is_valid(row));
                let first = valid.clone().next().map(length);
                let dims = *self.dims.get_or_insert(first.unwrap_or(1));
                if let Some(row) = valid.find(|&row| length(row) != dims) {
                    let (found, row) = (length(row), begin + row as u64);
                    return Err(Fault::Length { row, found, expected: dims });
                }
                if first.is_none() {
                    self.dims = None;
                }
                let size = i32::try_from(dims)
                    .map_err(|_| ArrowError::ComputeError("too many coordinates".into()))?;
                if lists.null_count() == 0 {
                    let coordinates = lists.values().as_primitive::<Float32Type>().clone();
                    return Ok(Arc::new(FixedSizeListArray::try_new(
                        item,
                        size,
                        Arc::new(coordinates),
                        None,
                    )?));
                }
                Ok(cast(lists, &DataType::FixedSizeList(item, size))?)
            }
            _ => Ok(Arc::clone(column)),
        }
    }
}

/// A column without a type, as programs make it of no values, in the type of its kind.
fn typed(kind: &str, column: &ArrayRef) -> ArrayRef {
    if *column.data_type() != DataType::Null {
        return Arc::clone(column);
    }
    let of = match kind {
        "items" | "texts" => DataType::Utf8,
        "vectors" => DataType::new_fixed_size_list(DataType::Float32, 1, true),
        _ => DataType::new_list(DataType::UInt32, true),
    };
    new_null_array(&of, column.len())
}

fn named(name: &str, column: ArrayRef) -> (Field, ArrayRef) {
    (Field::new(name, column.data_type().clone(), true), column)
}

fn ids(begin: u64, rows: usize) -> Result<ArrayRef, SetReadError> {
    let end = begin + rows as u64;
    if end > 1 << 32 {
        return Err(SetReadError::Ids { row: 1 << 32 });
    }
    let ids = (begin..end).map(|id| u32::try_from(id).expect("the end was checked"));
    Ok(Arc::new(UInt32Array::from_iter_values(ids)))
}

fn is_text(found: &DataType) -> bool {
    match found {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, value) => is_text(value),
        _ => false,
    }
}

/// Lists of terms without dictionaries; a null becomes a list without terms.
fn terms(lists: &ArrayRef) -> Result<ArrayRef, Fault> {
    let DataType::List(item) = lists.data_type() else { return Ok(Arc::clone(lists)) };
    let plain = match item.data_type() {
        DataType::Dictionary(..) => cast(lists, &DataType::new_list(DataType::Utf8, true))?,
        _ => Arc::clone(lists),
    };
    let lists = plain.as_list::<i32>();
    let Some(nulls) = lists.nulls() else { return Ok(plain) };
    let kept = (0..lists.len()).filter(|&row| nulls.is_valid(row));
    let lengths =
        (0..lists.len()).map(|row| if nulls.is_valid(row) { lists.value(row).len() } else { 0 });
    let values: Vec<ArrayRef> = kept.map(|row| lists.value(row)).collect();
    let values: Vec<&dyn Array> = values.iter().map(AsRef::as_ref).collect();
    let values = if values.is_empty() { lists.values().slice(0, 0) } else { concat(&values)? };
    let DataType::List(item) = plain.data_type() else { unreachable!("it is a list") };
    let offsets = OffsetBuffer::from_lengths(lengths);
    Ok(Arc::new(ListArray::try_new(Arc::clone(item), offsets, values, None)?))
}

/// Items as UInt32, UInt64 or Utf8.
fn items(what: &'static str, begin: u64, column: &ArrayRef) -> Result<ArrayRef, Fault> {
    Ok(match column.data_type() {
        DataType::UInt8 | DataType::UInt16 => cast(column, &DataType::UInt32)?,
        DataType::Int8 | DataType::Int16 | DataType::Int32 => {
            let wide = cast(column, &DataType::Int64)?;
            check_sign(what, begin, &wide)?;
            cast(column, &DataType::UInt32)?
        }
        DataType::Int64 => {
            check_sign(what, begin, column)?;
            let same_bits = column.to_data().into_builder().data_type(DataType::UInt64);
            make_array(same_bits.build()?)
        }
        DataType::Dictionary(_, value) if is_text(value) || value.is_integer() => {
            items(what, begin, &cast(column, value)?)?
        }
        _ => text(column)?,
    })
}

fn weights(begin: u64, column: &ArrayRef) -> Result<ArrayRef, Fault> {
    let weights = items("weight", begin, column)?;
    match weights.data_type() {
        DataType::UInt32 => Ok(cast(&weights, &DataType::UInt64)?),
        _ => Ok(weights),
    }
}

/// Refuses an Int64 column with a value below 0.
fn check_sign(what: &'static str, begin: u64, column: &ArrayRef) -> Result<(), Fault> {
    let column = column.as_primitive::<Int64Type>();
    if column.values().iter().fold(0, |all, value| all | value) >= 0 {
        return Ok(());
    }
    let is_negative = |row: &usize| column.is_valid(*row) && column.value(*row) < 0;
    match (0..column.len()).find(is_negative) {
        Some(row) => {
            let value = column.value(row);
            Err(Fault::Negative { column: what, row: begin + row as u64, value })
        }
        None => Ok(()),
    }
}

/// Texts of any type as Utf8; other columns as they are.
fn text(column: &ArrayRef) -> Result<ArrayRef, Fault> {
    Ok(match column.data_type() {
        // Not by `cast`, which fails where the offsets of a part of a long column exceed 2^31.
        DataType::LargeUtf8 => Arc::new(short(column.as_string::<i64>().iter())?),
        DataType::Utf8View => Arc::new(short(column.as_string_view().iter())?),
        DataType::Dictionary(_, value) if is_text(value) => text(&cast(column, value)?)?,
        _ => Arc::clone(column),
    })
}

/// Texts with offsets of 32 bits.
fn short<'a>(
    texts: impl ExactSizeIterator<Item = Option<&'a str>> + Clone,
) -> Result<StringArray, Fault> {
    let (rows, bytes) = (texts.len(), texts.clone().flatten().map(str::len).sum());
    if i32::try_from(bytes).is_err() {
        return Err(Fault::Texts { rows, bytes });
    }
    Ok(texts.collect())
}

/// All columns; texts as Utf8, lists with offsets of 32 bits.
fn plain(batch: &RecordBatch) -> Result<RecordBatch, Fault> {
    let schema = batch.schema();
    let mut columns = Vec::with_capacity(batch.num_columns());
    let mut fields = Vec::with_capacity(batch.num_columns());
    for (field, column) in schema.fields().iter().zip(batch.columns()) {
        let column = match column.data_type() {
            DataType::LargeList(_) | DataType::ListView(_) => {
                Arc::new(lists(column).map_err(Fault::Sets)?)
            }
            _ => text(column)?,
        };
        fields.push(Field::new(field.name(), column.data_type().clone(), field.is_nullable()));
        columns.push(column);
    }
    let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)?)
}

/// Parts of a batch of at most `rows` rows, without a copy.
pub(crate) fn parts(batch: &RecordBatch, rows: usize) -> impl Iterator<Item = RecordBatch> + '_ {
    let starts = (0..batch.num_rows()).step_by(rows);
    starts.map(move |start| batch.slice(start, rows.min(batch.num_rows() - start)))
}
