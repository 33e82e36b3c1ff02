//! Record batches as a Python object that any Arrow library takes.

mod cells;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use arrow_array::cast::AsArray as _;
use arrow_array::ffi::FFI_ArrowSchema;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::UInt64Type;
use arrow_array::{
    Array as _, ArrayRef, RecordBatch, RecordBatchIterator, RecordBatchOptions, UInt64Array,
};
use arrow_cast::cast;
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{ArrowError, DataType, Field, SchemaRef};
use arrow_select::concat::concat_batches;
use arrow_select::take::take_record_batch;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList, PyString};

use self::cells::values;
use crate::errors::{entry, invalid};
use crate::live::lock;

/// Rows that a table shows of itself.
const ROWS_SHOWN: usize = 10;
/// Rows that become dicts at a time.
const ROWS_AT_ONCE: usize = 1_024;

/// Rows with named columns, in Arrow's form.
#[pyclass(frozen, module = "trommel")]
pub(crate) struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    rows: usize,
}

/// Names and types of the columns of a table.
#[pyclass(frozen, eq, module = "trommel")]
#[derive(PartialEq)]
pub(crate) struct Schema(pub(crate) SchemaRef);

impl Table {
    pub(crate) fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        let rows = batches.iter().map(RecordBatch::num_rows).sum();
        Self { schema, batches, rows }
    }

    pub(crate) fn of_batch(batch: RecordBatch) -> Self {
        Self::new(batch.schema(), vec![batch])
    }

    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    pub(crate) fn batches(&self) -> &[RecordBatch] {
        &self.batches
    }

    fn column<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, PyList>> {
        let column = PyList::empty(py);
        for batch in &self.batches {
            for value in values(py, batch.column(index).as_ref())? {
                column.append(value)?;
            }
        }
        Ok(column)
    }

    /// The first column from a row on, to the end of a batch.
    fn chunk_at(&self, row: usize) -> ArrayRef {
        let mut left = row;
        for batch in &self.batches {
            if left < batch.num_rows() {
                return batch.column(0).slice(left, batch.num_rows() - left);
            }
            left -= batch.num_rows();
        }
        unreachable!("the row is one of the table's")
    }

    /// The first rows as texts, column by column.
    fn shown(&self) -> PyResult<Vec<Vec<String>>> {
        let options = FormatOptions::new().with_null("null");
        let mut columns = vec![Vec::new(); self.schema.fields().len()];
        let mut left = ROWS_SHOWN;
        for batch in &self.batches {
            let rows = left.min(batch.num_rows());
            left -= rows;
            for (shown, column) in columns.iter_mut().zip(batch.columns()) {
                let cells = ArrayFormatter::try_new(column.as_ref(), &options).map_err(invalid)?;
                shown.extend((0..rows).map(|row| cells.value(row).to_string()));
            }
        }
        Ok(columns)
    }
}

#[pymethods]
impl Table {
    fn __len__(&self) -> usize {
        self.rows
    }

    /// The number of rows.
    #[getter]
    fn num_rows(&self) -> usize {
        self.rows
    }

    /// The number of columns.
    #[getter]
    fn num_columns(&self) -> usize {
        self.schema.fields().len()
    }

    /// The names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<&str> {
        self.schema.fields().iter().map(|field| field.name().as_str()).collect()
    }

    /// Names and types of the columns.
    #[getter(schema)]
    fn schema_of(&self) -> Schema {
        Schema(Arc::clone(&self.schema))
    }

    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        entry(|| {
            let Some((index, _)) = self.schema.column_with_name(name) else {
                let names = self.column_names().join(", ");
                return Err(PyKeyError::new_err(format!(
                    "there is no column `{name}`; columns: {names}"
                )));
            };
            self.column(py, index)
        })
    }

    /// The columns of these names, without a copy. Raises `ValueError` for other names.
    fn select(&self, names: Vec<String>) -> PyResult<Self> {
        entry(|| {
            let index = |name: &String| self.schema.index_of(name).map_err(invalid);
            let indices: Vec<usize> = names.iter().map(index).collect::<PyResult<_>>()?;
            let schema = Arc::new(self.schema.project(&indices).map_err(invalid)?);
            let batches = self.batches.iter().map(|batch| batch.project(&indices).map_err(invalid));
            let batches = batches.collect::<PyResult<_>>()?;
            Ok(Self { schema, batches, rows: self.rows })
        })
    }

    /// The same rows with other names of the columns.
    fn with_names(&self, names: Vec<String>) -> PyResult<Self> {
        entry(|| {
            if names.len() != self.num_columns() {
                let (found, expected) = (names.len(), self.num_columns());
                return Err(invalid(format!("{found} names for {expected} columns")));
            }
            let fields = self.schema.fields().iter().zip(names);
            let fields: Vec<Field> =
                fields.map(|(field, name)| field.as_ref().clone().with_name(name)).collect();
            let schema = Arc::new(arrow_schema::Schema::new(fields));
            let named = |batch: &RecordBatch| {
                let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
                let columns = batch.columns().to_vec();
                RecordBatch::try_new_with_options(Arc::clone(&schema), columns, &options)
            };
            let batches = self.batches.iter().map(named).collect::<Result<_, _>>();
            Ok(Self::new(Arc::clone(&schema), batches.map_err(invalid)?))
        })
    }

    /// The first rows, without a copy.
    fn head(&self, rows: usize) -> PyResult<Self> {
        entry(|| {
            let mut left = rows;
            let mut batches = Vec::new();
            for batch in &self.batches {
                let taken = left.min(batch.num_rows());
                if taken > 0 {
                    batches.push(batch.slice(0, taken));
                }
                left -= taken;
            }
            Ok(Self::new(Arc::clone(&self.schema), batches))
        })
    }

    /// The columns as lists, by their names.
    fn to_pydict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        entry(|| {
            let columns = PyDict::new(py);
            for (index, field) in self.schema.fields().iter().enumerate() {
                columns.set_item(field.name(), self.column(py, index)?)?;
            }
            Ok(columns)
        })
    }

    /// The rows as dicts, one after the other.
    fn __iter__(&self) -> RowIterator {
        let batches = self.batches.iter().cloned().collect();
        RowIterator {
            schema: Arc::clone(&self.schema),
            rest: Mutex::new((batches, VecDeque::new())),
        }
    }

    /// The rows as dicts. A null is None; a time is a whole number of its unit since 1970.
    fn to_pylist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        entry(|| {
            let rows = PyList::empty(py);
            for batch in &self.batches {
                dicts(py, &self.schema, batch)?.into_iter().try_for_each(|row| rows.append(row))?;
            }
            Ok(rows)
        })
    }

    /// The rows as a stream of Arrow's C interface, without a copy.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        entry(|| {
            // The protocol allows to leave a request for other types unheeded.
            drop(requested_schema);
            let batches = self.batches.clone().into_iter().map(Ok::<_, ArrowError>);
            let reader = RecordBatchIterator::new(batches, Arc::clone(&self.schema));
            let stream = FFI_ArrowArrayStream::new(Box::new(reader));
            PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
        })
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        entry(|| self.schema_of().__arrow_c_schema__(py))
    }

    fn __repr__(&self) -> PyResult<String> {
        entry(|| {
            let columns = self.shown()?;
            let names = self.column_names();
            let widths: Vec<usize> = columns
                .iter()
                .zip(&names)
                .map(|(cells, name)| {
                    cells
                        .iter()
                        .map(|c| c.chars().count())
                        .max()
                        .unwrap_or(0)
                        .max(name.chars().count())
                })
                .collect();
            let line = |cells: Vec<&str>| {
                let padded =
                    cells.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}"));
                padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
            };
            let mut lines = vec![format!("trommel.Table of {} rows", self.rows), line(names)];
            let shown = self.rows.min(ROWS_SHOWN);
            lines.extend(
                (0..shown)
                    .map(|row| line(columns.iter().map(|cells| cells[row].as_str()).collect())),
            );
            if self.rows > shown {
                lines.push("…".to_owned());
            }
            Ok(lines.join("\n"))
        })
    }

    /// The first rows as HTML, for notebooks.
    fn _repr_html_(&self) -> PyResult<String> {
        entry(|| {
            let columns = self.shown()?;
            let cell = |tag: &str, text: &str| format!("<{tag}>{}</{tag}>", escaped(text));
            let head: String = self.column_names().iter().map(|name| cell("th", name)).collect();
            let shown = self.rows.min(ROWS_SHOWN);
            let rows: String = (0..shown)
                .map(|row| {
                    let cells: String =
                        columns.iter().map(|cells| cell("td", &cells[row])).collect();
                    format!("<tr>{cells}</tr>")
                })
                .collect();
            let rows_in_all = self.rows;
            Ok(format!(
                "<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table><p>{rows_in_all} rows</p>"
            ))
        })
    }
}

/// The rows of a table, which become dicts a few at a time.
#[pyclass(frozen, module = "trommel._trommel")]
pub(crate) struct RowIterator {
    schema: SchemaRef,
    /// Batches to come, and dicts of the last one.
    rest: Mutex<(VecDeque<RecordBatch>, VecDeque<Py<PyDict>>)>,
}

#[pymethods]
impl RowIterator {
    fn __iter__(this: Bound<'_, Self>) -> Bound<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Py<PyDict>>> {
        entry(|| {
            let mut rest = lock(&self.rest);
            let (batches, rows) = &mut *rest;
            while rows.is_empty() {
                let Some(batch) = batches.pop_front() else { return Ok(None) };
                let taken = batch.num_rows().min(ROWS_AT_ONCE);
                if taken < batch.num_rows() {
                    batches.push_front(batch.slice(taken, batch.num_rows() - taken));
                }
                let dicts = dicts(py, &self.schema, &batch.slice(0, taken))?;
                rows.extend(dicts.into_iter().map(Bound::unbind));
            }
            Ok(rows.pop_front())
        })
    }
}

/// The rows of a batch as dicts.
fn dicts<'py>(
    py: Python<'py>,
    schema: &SchemaRef,
    batch: &RecordBatch,
) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let names = schema.fields().iter();
    let names: Vec<_> = names.map(|field| PyString::intern(py, field.name())).collect();
    let columns = batch.columns().iter().map(|column| values(py, column.as_ref()));
    let columns: Vec<Vec<Bound<'py, PyAny>>> = columns.collect::<PyResult<_>>()?;
    let dict = |row: usize| {
        let cells = PyDict::new(py);
        for (name, column) in names.iter().zip(&columns) {
            cells.set_item(name, &column[row])?;
        }
        Ok(cells)
    };
    (0..batch.num_rows()).map(dict).collect()
}

/// Text without the characters that mean something in HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[pymethods]
impl Schema {
    /// The names of the columns.
    #[getter]
    fn names(&self) -> Vec<&str> {
        self.0.fields().iter().map(|field| field.name().as_str()).collect()
    }

    /// The types of the columns, in the words of Arrow for Rust, such as `List(UInt32)`.
    #[getter]
    fn types(&self) -> Vec<String> {
        self.0.fields().iter().map(|field| field.data_type().to_string()).collect()
    }

    fn __len__(&self) -> usize {
        self.0.fields().len()
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        entry(|| {
            let schema = FFI_ArrowSchema::try_from(&*self.0).map_err(invalid)?;
            PyCapsule::new_with_value(py, schema, c"arrow_schema")
        })
    }

    fn __repr__(&self) -> String {
        let fields = self.0.fields().iter();
        let fields = fields.map(|field| format!("{}: {}", field.name(), field.data_type()));
        format!("trommel.Schema({})", fields.collect::<Vec<_>>().join(", "))
    }
}

/// The columns of several tables side by side, each of which has one column; without a copy.
#[pyfunction]
pub(crate) fn combine(columns: Vec<(String, PyRef<'_, Table>)>) -> PyResult<Table> {
    entry(|| {
        let rows = columns.first().map_or(0, |(_, table)| table.rows);
        let mut fields = Vec::with_capacity(columns.len());
        for (name, table) in &columns {
            let [field] = &table.schema.fields()[..] else {
                return Err(invalid(format!(
                    "`{name}` has {} columns; expected one",
                    table.num_columns()
                )));
            };
            if table.rows != rows {
                let (first, found) = (&columns[0].0, table.rows);
                return Err(invalid(format!(
                    "`{name}` has {found} rows, and `{first}` has {rows}"
                )));
            }
            fields.push(field.as_ref().clone().with_name(name));
        }
        let schema = Arc::new(arrow_schema::Schema::new(fields));
        let mut batches = Vec::new();
        let mut begin = 0;
        while begin < rows {
            let chunks: Vec<ArrayRef> =
                columns.iter().map(|(_, table)| table.chunk_at(begin)).collect();
            let len = chunks.iter().map(|chunk| chunk.len()).min().unwrap_or(0);
            let chunks = chunks.iter().map(|chunk| chunk.slice(0, len)).collect();
            batches.push(RecordBatch::try_new(Arc::clone(&schema), chunks).map_err(invalid)?);
            begin += len;
        }
        Ok(Table::new(schema, batches))
    })
}

/// The rows by ascending numbers of their first column, from which `first` is taken.
#[pyfunction]
pub(crate) fn in_order(py: Python<'_>, table: PyRef<'_, Table>, first: u64) -> PyResult<Table> {
    entry(|| {
        let schema = Arc::clone(&table.schema);
        let batches = table.batches.clone();
        drop(table);
        let sorted = py.detach(|| -> Result<RecordBatch, ArrowError> {
            let rows = concat_batches(&schema, &batches)?;
            let numbers = cast(rows.column(0), &DataType::UInt64)?;
            let numbers = numbers.as_primitive::<UInt64Type>().values();
            let mut order: Vec<u64> = (0..).take(rows.num_rows()).collect();
            order.sort_by_key(|&row| numbers[usize::try_from(row).expect("a row of the table")]);
            let from_zero =
                order.iter().map(|&row| numbers[usize::try_from(row).expect("as above")] - first);
            let from_zero: ArrayRef = Arc::new(UInt64Array::from_iter_values(from_zero));
            let mut columns =
                take_record_batch(&rows, &UInt64Array::from(order))?.columns().to_vec();
            columns[0] = cast(&from_zero, schema.field(0).data_type())?;
            RecordBatch::try_new(Arc::clone(&schema), columns)
        });
        Ok(Table::of_batch(sorted.map_err(invalid)?))
    })
}

/// A table without rows, with columns of these names and types.
#[pyfunction]
pub(crate) fn empty(columns: Vec<(String, String)>) -> PyResult<Table> {
    entry(|| {
        let field = |(name, kind): (String, String)| {
            let kind = match kind.as_str() {
                "UInt32" => DataType::UInt32,
                "UInt64" => DataType::UInt64,
                "Utf8" => DataType::Utf8,
                other => {
                    let said =
                        format!("column `{name}` is {other}; expected UInt32, UInt64 or Utf8");
                    return Err(invalid(said));
                }
            };
            Ok(Field::new(name, kind, true))
        };
        let fields: Vec<Field> = columns.into_iter().map(field).collect::<PyResult<_>>()?;
        Ok(Table::new(Arc::new(arrow_schema::Schema::new(fields)), Vec::new()))
    })
}
