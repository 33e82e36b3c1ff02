//! Columns in the types that operators take.
//!
//! A column that has the right type already is not copied.

use std::sync::{Arc, Mutex};

use arrow_array::builder::BooleanBufferBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int64Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, FixedSizeListArray, ListArray, RecordBatch, RecordBatchOptions, StringArray,
    make_array, new_empty_array, new_null_array,
};
use arrow_buffer::OffsetBuffer;
use arrow_cast::{CastOptions, cast, cast_with_options};
use arrow_schema::{DataType, Field, Schema};
use trommel::sets::{SetReadError, lists};

use super::accept::{Kind, vectors};
use super::types::{element, is_text, plain};
use super::{Fault, Shared};
use crate::live::lock;

/// How a column of one part is converted.
pub(super) struct Converting<'a> {
    pub(super) kind: Kind,
    /// Number of the first row in the call.
    pub(super) first: u64,
    pub(super) is_strict: bool,
    pub(super) shared: &'a Mutex<Shared>,
}

impl Converting<'_> {
    /// The column as `settled`, the type of all rows of its source.
    pub(super) fn convert(&self, column: &ArrayRef, settled: &DataType) -> Result<ArrayRef, Fault> {
        if *plain(column.data_type()) == DataType::Null {
            let nulls = new_null_array(settled, column.len());
            return if self.kind == Kind::Names { self.names(&nulls) } else { Ok(nulls) };
        }
        let is_untyped =
            element(column.data_type()).is_some_and(|item| *plain(item) == DataType::Null);
        let converted = match self.kind {
            Kind::Transactions | Kind::Terms if is_untyped => self.untyped(column, settled)?,
            Kind::Carried => Arc::clone(column),
            Kind::Items | Kind::Weights => self.items(column)?,
            Kind::Texts => text(column)?,
            Kind::Names => self.names(column)?,
            Kind::Sets => self.sets(column)?,
            Kind::Transactions | Kind::Terms => self.transactions(column, settled)?,
            Kind::Vectors => self.vectors(column, settled)?,
        };
        self.like(converted, settled)
    }

    /// The column in the type of the first data, if that holds all values.
    fn like(&self, column: ArrayRef, settled: &DataType) -> Result<ArrayRef, Fault> {
        let found = column.data_type();
        if found == settled {
            return Ok(column);
        }
        let changed = || Fault::Changed { found: found.clone(), settled: settled.clone() };
        match (found, settled) {
            (DataType::UInt64, DataType::UInt32) => {
                let numbers = column.as_primitive::<UInt64Type>();
                let wide = |row: &usize| {
                    numbers.is_valid(*row) && u32::try_from(numbers.value(*row)).is_err()
                };
                if let Some(row) = (0..numbers.len()).find(wide) {
                    let (what, value) = (self.kind.words().0, numbers.value(row));
                    return Err(Fault::Wide { what, row: self.first + row as u64, value });
                }
                Ok(cast(&column, settled)?)
            }
            (DataType::UInt32, DataType::UInt64) => Ok(cast(&column, settled)?),
            (DataType::List(found), DataType::List(settled_item))
                if is_text(plain(found.data_type()))
                    == is_text(plain(settled_item.data_type())) =>
            {
                Ok(cast(&column, settled)?)
            }
            _ if self.kind == Kind::Carried => {
                let options = CastOptions { safe: false, ..CastOptions::default() };
                cast_with_options(&column, settled, &options).map_err(|_| changed())
            }
            _ => Err(changed()),
        }
    }

    /// Whole numbers as UInt32 or UInt64, texts as Utf8.
    fn items(&self, column: &ArrayRef) -> Result<ArrayRef, Fault> {
        Ok(match column.data_type() {
            DataType::UInt32 | DataType::UInt64 => Arc::clone(column),
            DataType::UInt8 | DataType::UInt16 => cast(column, &DataType::UInt32)?,
            DataType::Int8 | DataType::Int16 | DataType::Int32 => {
                let wide = cast(column, &DataType::Int64)?;
                self.check_sign(&wide)?;
                cast(column, &DataType::UInt32)?
            }
            DataType::Int64 => {
                self.check_sign(column)?;
                let same_bits = column.to_data().into_builder().data_type(DataType::UInt64);
                make_array(same_bits.build()?)
            }
            DataType::Dictionary(..) | DataType::RunEndEncoded(..) => {
                self.items(&cast(column, plain(column.data_type()))?)?
            }
            _ => text(column)?,
        })
    }

    /// Refuses an Int64 column with a value below 0.
    fn check_sign(&self, column: &ArrayRef) -> Result<(), Fault> {
        let column = column.as_primitive::<Int64Type>();
        if column.values().iter().fold(0, |all, value| all | value) >= 0 {
            return Ok(());
        }
        let is_negative = |row: &usize| column.is_valid(*row) && column.value(*row) < 0;
        match (0..column.len()).find(is_negative) {
            Some(row) => {
                let (what, value) = (self.kind.words().0, column.value(row));
                Err(Fault::Negative { what, row: self.first + row as u64, value })
            }
            None => Ok(()),
        }
    }

    fn names(&self, column: &ArrayRef) -> Result<ArrayRef, Fault> {
        let names = text(column)?;
        match (0..names.len()).find(|&row| names.is_null(row)) {
            Some(row) => Err(Fault::NullName { row: self.first + row as u64 }),
            None => Ok(names),
        }
    }

    /// Sets of numbers; a null stays one.
    fn sets(&self, column: &ArrayRef) -> Result<ArrayRef, Fault> {
        let column = elements_as_they_are(column)?;
        let read = lock(self.shared).sets.read(0, &column);
        let read = read.map_err(|error| self.of_sets(error))?;
        with_nulls_of(read.column(1), &column)
    }

    /// Lists of texts stay texts; lists of numbers become sets of numbers of 32 bits.
    fn transactions(&self, column: &ArrayRef, settled: &DataType) -> Result<ArrayRef, Fault> {
        let is_texts = element(column.data_type()).is_some_and(|item| is_text(plain(item)));
        let column = elements_as_they_are(column)?;
        if !is_texts {
            let read = trommel::sets::SetReader::new().read(0, &column);
            let read = read.map_err(|error| self.of_sets(error))?;
            return with_nulls_of(read.column(1), &column);
        }
        let column = lists(&column).map_err(Fault::Sets)?;
        if let Some(row) = null_inside(&column) {
            let (what, element) = self.kind.words();
            return Err(Fault::NullInside { what, element, row: self.first + row as u64 });
        }
        match settled {
            DataType::List(item) if is_text(plain(item.data_type())) => Ok(cast(&column, settled)?),
            _ => Ok(Arc::new(column)),
        }
    }

    /// Lists of no type, which are empty or null.
    fn untyped(&self, column: &ArrayRef, settled: &DataType) -> Result<ArrayRef, Fault> {
        let column = lists(column).map_err(Fault::Sets)?;
        if let Some(row) = null_inside(&column) {
            let (what, element) = self.kind.words();
            return Err(Fault::NullInside { what, element, row: self.first + row as u64 });
        }
        let DataType::List(item) = settled else { return Ok(Arc::new(column)) };
        let offsets = OffsetBuffer::new_zeroed(column.len());
        let (item, values) = (Arc::clone(item), new_empty_array(item.data_type()));
        Ok(Arc::new(ListArray::try_new(item, offsets, values, column.nulls().cloned())?))
    }

    /// The fault of sets that were not read, in the words of the column.
    fn of_sets(&self, error: SetReadError) -> Fault {
        let (what, element) = self.kind.words();
        match error {
            SetReadError::Null { row } => {
                Fault::NullInside { what, element, row: self.first + row }
            }
            SetReadError::Range { row, token: value } => {
                Fault::Range { what, element, row: self.first + row, value }
            }
            other => Fault::Sets(other),
        }
    }

    fn vectors(&self, column: &ArrayRef, settled: &DataType) -> Result<ArrayRef, Fault> {
        let DataType::FixedSizeList(item, size) = settled else {
            return Ok(Arc::clone(column));
        };
        let expected = usize::try_from(*size).unwrap_or(0);
        if expected == 0 {
            return Err(Fault::NoCoordinates { row: self.first });
        }
        if let DataType::FixedSizeList(_, found) = column.data_type() {
            if found != size {
                let found = usize::try_from(*found).unwrap_or(0);
                return Err(Fault::Length { row: self.first, found, expected });
            }
            self.check_size(column.as_fixed_size_list().values(), column, expected)?;
            return Ok(cast(column, settled)?);
        }
        let lists = lists(column).map_err(Fault::Sets)?;
        let length = |row: usize| usize::try_from(lists.value_length(row)).unwrap_or(0);
        let mut valid = (0..lists.len()).filter(|&row| lists.is_valid(row));
        if let Some(row) = valid.find(|&row| length(row) != expected) {
            let (found, row) = (length(row), self.first + row as u64);
            return Err(Fault::Length { row, found, expected });
        }
        if lists.null_count() > 0 {
            let fixed = cast(&lists, &vectors_of(&lists, *size))?;
            return self.vectors(&fixed, settled);
        }
        self.check_size(lists.values(), column, expected)?;
        let coordinates = cast(lists.values(), &DataType::Float32)?;
        let coordinates = coordinates.as_primitive::<Float32Type>().clone();
        let (item, values) = (Arc::clone(item), Arc::new(coordinates));
        Ok(Arc::new(FixedSizeListArray::try_new(item, *size, values, None)?))
    }

    /// Refuses finite numbers that become infinite in float32. `rows` are the lists of `values`.
    fn check_size(&self, values: &ArrayRef, rows: &ArrayRef, dims: usize) -> Result<(), Fault> {
        if !self.is_strict || *values.data_type() != DataType::Float64 {
            return Ok(());
        }
        let values = values.as_primitive::<Float64Type>();
        let most = f64::from(f32::MAX) * (1.0 + f64::from(f32::EPSILON) / 4.0);
        let is_lost = |value: f64| value.abs() >= most && value.is_finite();
        if !values.values().iter().fold(false, |any, &value| any | is_lost(value)) {
            return Ok(());
        }
        let lost = |place: &usize| {
            values.is_valid(*place) && rows.is_valid(place / dims) && is_lost(values.value(*place))
        };
        match (0..values.len()).find(lost) {
            Some(place) => Err(Fault::TooLarge {
                row: self.first + (place / dims) as u64,
                coordinate: place % dims,
                value: values.value(place),
            }),
            None => Ok(()),
        }
    }
}

/// Lists whose elements are no longer run-end encoded, and dictionaries of numbers no longer keys.
fn elements_as_they_are(column: &ArrayRef) -> Result<ArrayRef, Fault> {
    let Some(item) = element(column.data_type()) else { return Ok(Arc::clone(column)) };
    let is_kept = match item {
        DataType::RunEndEncoded(..) => false,
        DataType::Dictionary(_, value) => is_text(value),
        _ => true,
    };
    if is_kept {
        return Ok(Arc::clone(column));
    }
    let lists = lists(column).map_err(Fault::Sets)?;
    let item_type = plain(item).clone();
    let values = cast(lists.values(), &item_type)?;
    let item = Arc::new(Field::new_list_field(item_type, true));
    let offsets = lists.offsets().clone();
    Ok(Arc::new(ListArray::try_new(item, offsets, values, lists.nulls().cloned())?))
}

/// Vectors of any numbers, of `size` coordinates.
fn vectors_of(lists: &ListArray, size: i32) -> DataType {
    match element(lists.data_type()) {
        Some(item) => DataType::new_fixed_size_list(item.clone(), size, true),
        None => vectors(size),
    }
}

/// The lists, null where `rows` are.
fn with_nulls_of(lists: &ArrayRef, rows: &ArrayRef) -> Result<ArrayRef, Fault> {
    let Some(nulls) = rows.logical_nulls() else { return Ok(Arc::clone(lists)) };
    let (item, offsets, values, _) = lists.as_list::<i32>().clone().into_parts();
    Ok(Arc::new(ListArray::try_new(item, offsets, values, Some(nulls))?))
}

/// The first row that is not null and has a null inside.
fn null_inside(lists: &ListArray) -> Option<usize> {
    let nulls = lists.values().logical_nulls().filter(|nulls| nulls.null_count() > 0)?;
    let offsets = lists.value_offsets();
    let place = |row: usize| usize::try_from(offsets[row]).unwrap_or(0);
    let has_null = |row: &usize| (place(*row)..place(row + 1)).any(|value| nulls.is_null(value));
    (0..lists.len()).filter(|&row| lists.is_valid(row)).find(has_null)
}

/// Texts of any type as Utf8; other columns as they are.
fn text(column: &ArrayRef) -> Result<ArrayRef, Fault> {
    Ok(match column.data_type() {
        // Not by `cast`, which fails where the offsets of a part of a long column exceed 2^31.
        DataType::LargeUtf8 => Arc::new(short(column.as_string::<i64>().iter())?),
        DataType::Utf8View => Arc::new(short(column.as_string_view().iter())?),
        found @ (DataType::Dictionary(..) | DataType::RunEndEncoded(..))
            if is_text(plain(found)) =>
        {
            text(&cast(column, plain(found))?)?
        }
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
pub(super) fn rows(
    fields: &[Field],
    columns: &[ArrayRef],
    rows: usize,
) -> Result<RecordBatch, Fault> {
    let mut converted = Vec::with_capacity(columns.len());
    let mut kept = Vec::with_capacity(columns.len());
    for (field, column) in fields.iter().zip(columns) {
        let column = match column.data_type() {
            DataType::LargeList(_) | DataType::ListView(_) | DataType::LargeListView(_) => {
                Arc::new(lists(column).map_err(Fault::Sets)?)
            }
            _ => text(column)?,
        };
        kept.push(field.clone().with_data_type(column.data_type().clone()).with_nullable(true));
        converted.push(column);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(Arc::new(Schema::new(kept)), converted, &options)?)
}

/// The column, null in the rows that are not valid by `validity`, a bitmap that begins at a bit.
pub(super) fn masked(column: ArrayRef, validity: &[u8], offset: usize) -> Result<ArrayRef, Fault> {
    let column = match column.data_type() {
        // Its nulls are those of its values.
        found @ DataType::RunEndEncoded(..) => cast(&column, plain(found))?,
        _ => column,
    };
    let mut missing = BooleanBufferBuilder::new(column.len());
    for row in offset..offset + column.len() {
        missing.append(validity[row / 8] >> (row % 8) & 1 == 0);
    }
    let missing = arrow_array::BooleanArray::new(missing.finish(), None);
    Ok(arrow_select::nullif::nullif(&column, &missing)?)
}
