//! The values of a node: one for each row, or one for all rows.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, Datum, StringArray, UInt32Array, new_null_array};
use arrow_schema::{ArrowError, DataType};
use arrow_select::filter::filter;
use arrow_select::take::take;

/// Values of a node.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    /// One value for each row.
    Rows(ArrayRef),
    /// An array of one value, which holds for all rows.
    Scalar(ArrayRef),
}

impl Value {
    pub(crate) fn array(&self) -> &ArrayRef {
        match self {
            Self::Rows(array) | Self::Scalar(array) => array,
        }
    }

    pub(crate) fn is_scalar(&self) -> bool {
        matches!(self, Self::Scalar(_))
    }

    /// `array` as a value of the same kind.
    pub(crate) fn like(&self, array: ArrayRef) -> Self {
        if self.is_scalar() { Self::Scalar(array) } else { Self::Rows(array) }
    }

    /// Place of the value of a row.
    pub(crate) fn place(&self, row: usize) -> usize {
        if self.is_scalar() { 0 } else { row }
    }

    /// One value for each of `rows` rows.
    pub(crate) fn into_array(self, rows: usize) -> ArrayRef {
        match self {
            Self::Rows(array) => array,
            Self::Scalar(array) => repeat(&array, rows),
        }
    }

    /// The values of the selected rows.
    pub(crate) fn select(&self, rows: &BooleanArray) -> Result<Self, ArrowError> {
        match self {
            Self::Rows(array) => Ok(Self::Rows(filter(array, rows)?)),
            Self::Scalar(array) => Ok(Self::Scalar(Arc::clone(array))),
        }
    }
}

impl Datum for Value {
    fn get(&self) -> (&dyn Array, bool) {
        (self.array().as_ref(), self.is_scalar())
    }
}

fn repeat(array: &ArrayRef, rows: usize) -> ArrayRef {
    if array.is_null(0) || *array.data_type() == DataType::Null {
        return new_null_array(array.data_type(), rows);
    }
    let places = UInt32Array::from_value(0, rows);
    take(array, &places, None).expect("place 0 is there")
}

/// Texts of a value, row by row.
pub(crate) struct Texts<'a> {
    array: &'a StringArray,
    is_scalar: bool,
}

impl<'a> Texts<'a> {
    /// The texts of a value of type Utf8.
    pub(crate) fn new(value: &'a Value) -> Self {
        Self { array: value.array().as_string(), is_scalar: value.is_scalar() }
    }

    /// The text of a row; `None` for null.
    pub(crate) fn get(&self, row: usize) -> Option<&'a str> {
        let place = if self.is_scalar { 0 } else { row };
        self.array.is_valid(place).then(|| self.array.value(place))
    }
}

/// Number of rows of a call: one if each argument is a scalar.
pub(crate) fn rows_of(arguments: &[Value], rows: usize) -> usize {
    if arguments.iter().all(Value::is_scalar) { 1 } else { rows }
}
