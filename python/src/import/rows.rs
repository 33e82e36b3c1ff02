//! The columns of an object, and its chunks.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_array::{Array as _, ArrayRef, RecordBatch, RecordBatchOptions, make_array};
use arrow_cast::cast;
use arrow_data::ArrayData;
use arrow_pyarrow::FromPyArrow;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use super::types::{element, is_text, plain};
use super::{Fault, Form, Importer, Shared, convert};
use crate::errors::{entry, invalid};
use crate::table::Table;

/// The rows of an object: a [`Table`], or the reader of an object with an Arrow interface.
pub(crate) struct Rows {
    names: Vec<String>,
    source: Source,
}

enum Source {
    Table { schema: SchemaRef, batches: VecDeque<RecordBatch> },
    Reader(Py<PyAny>),
}

/// Consecutive rows: the columns that were asked for.
pub(super) struct Chunk {
    pub(super) columns: Vec<ArrayRef>,
    pub(super) rows: usize,
}

impl Rows {
    /// The rows of what `source` of the Python half returns.
    pub(crate) fn open(data: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(table) = data.cast::<Table>() {
            return Ok(Self::of_table(table.get()));
        }
        if !data.hasattr("column_type")? {
            let found = data.get_type().name()?.to_string();
            return Err(PyTypeError::new_err(format!("expected data, found {found}")));
        }
        let names = data.getattr("names")?.extract()?;
        Ok(Self { names, source: Source::Reader(data.clone().unbind()) })
    }

    fn of_table(table: &Table) -> Self {
        let schema = Arc::clone(table.schema());
        let names = schema.fields().iter().map(|field| field.name().clone()).collect();
        let batches = table.batches().iter().cloned().collect();
        Self { names, source: Source::Table { schema, batches } }
    }

    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// The fields of the columns at `places`.
    pub(super) fn fields(&self, py: Python<'_>, places: &[usize]) -> PyResult<Vec<Field>> {
        let field = |&place: &usize| match &self.source {
            Source::Table { schema, .. } => Ok(schema.field(place).clone()),
            Source::Reader(reader) => {
                let found = reader.bind(py).call_method1("column_type", (place,))?;
                let field = self.read::<Field>(place, &found)?;
                Ok(field.with_name(&self.names[place]))
            }
        };
        places.iter().map(field).collect()
    }

    /// The next rows of the columns at `places`; `None` at the end.
    pub(super) fn next(&mut self, py: Python<'_>, places: &[usize]) -> PyResult<Option<Chunk>> {
        let reader = match &mut self.source {
            Source::Table { batches, .. } => {
                return Ok(batches.pop_front().map(|batch| Chunk {
                    columns: places.iter().map(|&place| Arc::clone(batch.column(place))).collect(),
                    rows: batch.num_rows(),
                }));
            }
            Source::Reader(reader) => reader.bind(py).clone(),
        };
        // An array moves to the one who reads it, so a column that is used twice is read once.
        let mut used = places.to_vec();
        used.sort_unstable();
        used.dedup();
        let read = reader.call_method1("read", (used.clone(),))?;
        if read.is_none() {
            return Ok(None);
        }
        type Read<'py> = (usize, usize, Option<Vec<u8>>, Vec<Bound<'py, PyAny>>);
        let (offset, rows, validity, found): Read<'_> = read.extract()?;
        let mut read = Vec::with_capacity(found.len());
        for (&place, found) in used.iter().zip(&found) {
            let data = self.read::<ArrayData>(place, found)?;
            let is_short = data.len() < offset + rows;
            if is_short {
                let reason = format!("it has {} rows of {}", data.len(), offset + rows);
                return Err(invalid(self.unreadable(place, reason)));
            }
            let column = make_array(data).slice(offset, rows);
            read.push(match &validity {
                Some(validity) => convert::masked(column, validity, offset).map_err(invalid)?,
                None => column,
            });
        }
        let column = |place| used.binary_search(place).map(|index| Arc::clone(&read[index]));
        let columns = places.iter().map(|place| column(place).expect("it was read")).collect();
        Ok(Some(Chunk { columns, rows }))
    }

    /// Reads a type or an array of the column at `place`.
    fn read<T: FromPyArrow>(&self, place: usize, found: &Bound<'_, PyAny>) -> PyResult<T> {
        // Structures that contradict themselves are an error or a panic, and errors are exceptions
        // of pyarrow, which may not be there.
        match catch_unwind(AssertUnwindSafe(|| T::from_pyarrow_bound(found))) {
            Ok(read) => read.map_err(|error| reason(found.py(), &error)),
            Err(_) => Err("its Arrow structures are not consistent".to_owned()),
        }
        .map_err(|reason| invalid(self.unreadable(place, reason)))
    }

    fn unreadable(&self, place: usize, reason: String) -> Fault {
        Fault::Unreadable { column: self.names[place].clone(), reason }
    }
}

/// The text of an exception, without its type.
fn reason(py: Python<'_>, error: &PyErr) -> String {
    let text = error.value(py).to_string();
    text.trim_start_matches("C Data interface error: ").replace("\"\"", "\"")
}

/// The rows of data as a table, without a copy.
#[pyfunction]
pub(crate) fn table(py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<Table> {
    entry(|| {
        let rows = Rows::open(data)?;
        let places: Vec<usize> = (0..rows.names.len()).collect();
        whole(py, rows, &places)
    })
}

/// The columns of data that `form` uses, as a table without a copy.
#[pyfunction]
pub(crate) fn chosen(py: Python<'_>, data: &Bound<'_, PyAny>, form: Form) -> PyResult<Table> {
    entry(|| {
        let rows = Rows::open(data)?;
        let importer = Importer::new(form, Shared::new());
        let mut places = importer.places(&rows).map_err(invalid)?;
        places.sort_unstable();
        places.dedup();
        whole(py, rows, &places)
    })
}

fn whole(py: Python<'_>, mut rows: Rows, places: &[usize]) -> PyResult<Table> {
    if let Source::Table { schema, batches } = &rows.source {
        let schema = Arc::new(schema.project(places).map_err(invalid)?);
        let project = |batch: &RecordBatch| batch.project(places).map_err(invalid);
        let batches = batches.iter().map(project).collect::<PyResult<_>>()?;
        return Ok(Table::new(schema, batches));
    }
    let mut fields: Vec<Field> = rows.fields(py, places)?;
    let mut chunks = Vec::new();
    while let Some(chunk) = rows.next(py, places)? {
        chunks.push(chunk);
    }
    for (column, field) in fields.iter_mut().enumerate() {
        // A struct with nulls has them in each column, and a mask ends an encoding.
        let kinds = chunks.iter().map(|chunk| chunk.columns[column].data_type());
        let is_typed =
            |kind: &&DataType| !kind.is_null() && element(kind).is_none_or(|item| !item.is_null());
        let typed = kinds.clone().find(is_typed).or_else(|| kinds.clone().next());
        if let Some(kind) = typed {
            *field = field.clone().with_data_type(kind.clone()).with_nullable(true);
        }
    }
    let schema = Arc::new(Schema::new(fields));
    let mut batches = Vec::with_capacity(chunks.len());
    for chunk in chunks {
        let fields = schema.fields().iter().zip(&chunk.columns);
        let columns =
            fields.map(|(field, column)| like(column, field.data_type()).map_err(invalid));
        let columns = columns.collect::<PyResult<Vec<ArrayRef>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(chunk.rows));
        let schema = Arc::clone(&schema);
        batches
            .push(RecordBatch::try_new_with_options(schema, columns, &options).map_err(invalid)?);
    }
    Ok(Table::new(schema, batches))
}

/// A chunk of a column in the type of the others.
fn like(column: &ArrayRef, settled: &DataType) -> Result<ArrayRef, Fault> {
    let found = column.data_type();
    if found == settled {
        return Ok(Arc::clone(column));
    }
    let is_text = |kind| is_text(plain(kind));
    let is_untyped = |kind: &DataType| {
        let item = element(kind).unwrap_or(kind);
        *plain(item) == DataType::Null
    };
    let is_same = plain(found) == plain(settled);
    if is_same || is_untyped(found) || is_text(found) && is_text(settled) {
        Ok(cast(column, settled)?)
    } else {
        Err(Fault::Changed { found: found.clone(), settled: settled.clone() })
    }
}
