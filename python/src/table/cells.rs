//! Columns as Python values.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrowPrimitiveType, GenericListArray, OffsetSizeTrait};
use arrow_cast::cast;
use arrow_schema::DataType;
use pyo3::IntoPyObjectExt as _;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

/// The values of a column; a null is None. A time is a whole number of its unit since 1970.
pub(crate) fn values<'py>(py: Python<'py>, column: &dyn Array) -> PyResult<Vec<Bound<'py, PyAny>>> {
    match column.data_type() {
        DataType::UInt8 => numbers::<UInt8Type>(py, column),
        DataType::UInt16 => numbers::<UInt16Type>(py, column),
        DataType::UInt32 => numbers::<UInt32Type>(py, column),
        DataType::UInt64 => numbers::<UInt64Type>(py, column),
        DataType::Int8 => numbers::<Int8Type>(py, column),
        DataType::Int16 => numbers::<Int16Type>(py, column),
        DataType::Int32 => numbers::<Int32Type>(py, column),
        DataType::Int64 => numbers::<Int64Type>(py, column),
        DataType::Float32 => numbers::<Float32Type>(py, column),
        DataType::Float64 => numbers::<Float64Type>(py, column),
        DataType::Float16 => {
            let wide = column.as_primitive::<Float16Type>().unary::<_, Float32Type>(f32::from);
            numbers::<Float32Type>(py, &wide)
        }
        DataType::Boolean => objects(py, column.as_boolean().iter()),
        DataType::Utf8 => objects(py, column.as_string::<i32>().iter()),
        DataType::LargeUtf8 => objects(py, column.as_string::<i64>().iter()),
        DataType::Utf8View => objects(py, column.as_string_view().iter()),
        DataType::Binary => {
            let bytes = column.as_binary::<i32>().iter();
            objects(py, bytes.map(|bytes| bytes.map(|bytes| PyBytes::new(py, bytes))))
        }
        DataType::List(_) => lists(py, column.as_list::<i32>()),
        DataType::LargeList(_) => lists(py, column.as_list::<i64>()),
        DataType::FixedSizeList(_, size) => {
            let items = values(py, column.as_fixed_size_list().values().as_ref())?;
            let size = usize::try_from(*size).expect("the size of a list is not negative");
            (0..column.len())
                .map(|row| list(py, column, row, &items[row * size..(row + 1) * size]))
                .collect()
        }
        DataType::Dictionary(_, value) => {
            let plain = cast(column, value).map_err(crate::errors::invalid)?;
            values(py, plain.as_ref())
        }
        DataType::Timestamp(..) => {
            let numbers = cast(column, &DataType::Int64).map_err(crate::errors::invalid)?;
            values(py, numbers.as_ref())
        }
        DataType::Null => Ok(vec![py.None().into_bound(py); column.len()]),
        other => Err(PyTypeError::new_err(format!(
            "a column of {other} has no Python values here; read the table with an Arrow library"
        ))),
    }
}

fn numbers<'py, T: ArrowPrimitiveType>(
    py: Python<'py>,
    column: &dyn Array,
) -> PyResult<Vec<Bound<'py, PyAny>>>
where
    T::Native: IntoPyObject<'py>,
{
    objects(py, column.as_primitive::<T>().iter())
}

fn objects<'py, T: IntoPyObject<'py>>(
    py: Python<'py>,
    cells: impl Iterator<Item = Option<T>>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    cells
        .map(|cell| match cell {
            Some(cell) => cell.into_bound_py_any(py),
            None => Ok(py.None().into_bound(py)),
        })
        .collect()
}

fn lists<'py, O: OffsetSizeTrait>(
    py: Python<'py>,
    column: &GenericListArray<O>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let offsets = column.value_offsets();
    let (first, last) = (offsets[0].as_usize(), offsets[column.len()].as_usize());
    let items = values(py, column.values().slice(first, last - first).as_ref())?;
    let range = |row: usize| offsets[row].as_usize() - first..offsets[row + 1].as_usize() - first;
    (0..column.len()).map(|row| list(py, column, row, &items[range(row)])).collect()
}

fn list<'py>(
    py: Python<'py>,
    column: &dyn Array,
    row: usize,
    items: &[Bound<'py, PyAny>],
) -> PyResult<Bound<'py, PyAny>> {
    if column.is_null(row) {
        return Ok(py.None().into_bound(py));
    }
    Ok(PyList::new(py, items)?.into_any())
}
