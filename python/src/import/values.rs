//! Python values as columns.

use std::sync::Arc;

use arrow_array::builder::{
    ArrayBuilder, Float64Builder, Int64Builder, ListBuilder, NullBuilder, StringBuilder,
    UInt64Builder,
};
use arrow_array::{ArrayRef, NullArray, RecordBatch};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyDict, PyFloat, PyInt, PyMemoryView, PyString};

use crate::errors::entry;
use crate::table::Table;

/// The type of the elements of a list. None has no type.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Text,
    /// Whole numbers of which one is above 2^63 - 1.
    Unsigned,
    Signed,
    Float,
}

/// A column of the elements of an iterable: texts, whole numbers, floats, or iterables of these.
/// None is a null.
#[pyfunction]
pub(crate) fn column(data: &Bound<'_, PyAny>, name: &str) -> PyResult<Table> {
    entry(|| {
        let rows: Vec<Bound<'_, PyAny>> = data.try_iter()?.collect::<PyResult<_>>()?;
        let is_nested = rows.iter().any(|row| !row.is_none() && is_list(row));
        let column = if is_nested { nested(&rows)? } else { flat(&rows)? };
        let batch = RecordBatch::try_from_iter_with_nullable([(name, column, true)]);
        batch.map(Table::of_batch).map_err(crate::errors::invalid)
    })
}

/// Texts, bytes and dicts can be iterated over, and are no lists of what that gives.
fn is_list(row: &Bound<'_, PyAny>) -> bool {
    !(row.is_instance_of::<PyString>() || is_bytes(row) || row.is_instance_of::<PyDict>())
        && row.try_iter().is_ok()
}

fn is_bytes(cell: &Bound<'_, PyAny>) -> bool {
    cell.is_instance_of::<PyBytes>()
        || cell.is_instance_of::<PyByteArray>()
        || cell.is_instance_of::<PyMemoryView>()
}

fn flat(cells: &[Bound<'_, PyAny>]) -> PyResult<ArrayRef> {
    Ok(match kind(cells.iter().enumerate())? {
        None => Arc::new(NullArray::new(cells.len())),
        Some(Kind::Text) => {
            let mut column = StringBuilder::new();
            for cell in cells {
                column.append_option(text(cell)?);
            }
            Arc::new(column.finish())
        }
        Some(Kind::Unsigned) => {
            let mut column = UInt64Builder::new();
            for cell in cells {
                column.append_option(whole::<u64>(cell)?);
            }
            Arc::new(column.finish())
        }
        Some(Kind::Signed) => {
            let mut column = Int64Builder::new();
            for cell in cells {
                column.append_option(whole::<i64>(cell)?);
            }
            Arc::new(column.finish())
        }
        Some(Kind::Float) => {
            let mut column = Float64Builder::new();
            for cell in cells {
                column.append_option(cell.extract::<Option<f64>>()?);
            }
            Arc::new(column.finish())
        }
    })
}

fn nested(rows: &[Bound<'_, PyAny>]) -> PyResult<ArrayRef> {
    let mut lists: Vec<Option<Vec<Bound<'_, PyAny>>>> = Vec::with_capacity(rows.len());
    for (index, row) in rows.iter().enumerate() {
        lists.push(if row.is_none() {
            None
        } else if is_list(row) {
            Some(row.try_iter()?.collect::<PyResult<_>>()?)
        } else {
            return Err(mixed(index, "a list", row)?);
        });
    }
    let cells = lists.iter().enumerate();
    let cells = cells.flat_map(|(row, list)| list.iter().flatten().map(move |cell| (row, cell)));
    Ok(match kind(cells)? {
        // Lists without elements fit any type of elements.
        None => filled(&lists, NullBuilder::new(), |column, _| {
            column.append_null();
            Ok(())
        })?,
        Some(Kind::Text) => filled(&lists, StringBuilder::new(), |column, cell| {
            column.append_option(text(cell)?);
            Ok(())
        })?,
        Some(Kind::Unsigned) => filled(&lists, UInt64Builder::new(), |column, cell| {
            column.append_option(whole::<u64>(cell)?);
            Ok(())
        })?,
        Some(Kind::Signed) => filled(&lists, Int64Builder::new(), |column, cell| {
            column.append_option(whole::<i64>(cell)?);
            Ok(())
        })?,
        Some(Kind::Float) => filled(&lists, Float64Builder::new(), |column, cell| {
            column.append_option(cell.extract::<Option<f64>>()?);
            Ok(())
        })?,
    })
}

fn filled<'py, B: ArrayBuilder>(
    lists: &[Option<Vec<Bound<'py, PyAny>>>],
    items: B,
    append: impl Fn(&mut B, &Bound<'py, PyAny>) -> PyResult<()>,
) -> PyResult<ArrayRef> {
    let mut column = ListBuilder::new(items);
    for list in lists {
        for cell in list.iter().flatten() {
            append(column.values(), cell)?;
        }
        column.append(list.is_some());
    }
    Ok(Arc::new(column.finish()))
}

/// The kind of all cells; `None` if there are only nulls.
fn kind<'a, 'py: 'a>(
    cells: impl Iterator<Item = (usize, &'a Bound<'py, PyAny>)>,
) -> PyResult<Option<Kind>> {
    let mut kind = None;
    for (row, cell) in cells {
        if cell.is_none() {
            continue;
        }
        let found = kind_of(row, cell)?;
        kind = Some(match (kind, found) {
            (None, found) => found,
            (Some(known), found) if known == found => found,
            (Some(Kind::Signed | Kind::Unsigned), Kind::Signed | Kind::Unsigned) => Kind::Unsigned,
            (Some(Kind::Text), _) => return Err(mixed(row, "a text", cell)?),
            (_, Kind::Text) => return Err(mixed(row, "a number", cell)?),
            (Some(_), _) => Kind::Float,
        });
    }
    Ok(kind)
}

fn kind_of(row: usize, cell: &Bound<'_, PyAny>) -> PyResult<Kind> {
    if cell.is_instance_of::<PyString>() {
        return Ok(Kind::Text);
    }
    if cell.is_instance_of::<PyBool>() {
        return Err(mixed(row, "a text or a number", cell)?);
    }
    if is_bytes(cell) {
        return Err(mixed(row, "a text or a number (`.decode()` makes a text of bytes)", cell)?);
    }
    if cell.is_instance_of::<PyFloat>() {
        return Ok(Kind::Float);
    }
    if cell.is_instance_of::<PyInt>() || cell.hasattr("__index__")? {
        return Ok(if cell.extract::<i64>().is_ok() { Kind::Signed } else { Kind::Unsigned });
    }
    if cell.hasattr("__float__")? {
        Ok(Kind::Float)
    } else {
        Err(mixed(row, "a text or a number", cell)?)
    }
}

fn mixed(row: usize, expected: &str, cell: &Bound<'_, PyAny>) -> PyResult<PyErr> {
    let found = cell.get_type().name()?.to_string();
    Ok(PyTypeError::new_err(format!("row {row}: expected {expected}, found {found}")))
}

fn text<'a>(cell: &'a Bound<'_, PyAny>) -> PyResult<Option<std::borrow::Cow<'a, str>>> {
    if cell.is_none() {
        return Ok(None);
    }
    cell.cast::<PyString>()?.to_cow().map(Some)
}

fn whole<'a, 'py, T: FromPyObject<'a, 'py>>(cell: &'a Bound<'py, PyAny>) -> PyResult<Option<T>> {
    if cell.is_none() {
        return Ok(None);
    }
    cell.extract::<T>().map(Some).map_err(|_| {
        PyValueError::new_err(format!("{cell} is out of range; whole numbers are 0 to 2^64 - 1"))
    })
}
