//! Arrow data of Python objects, as record batches.

use std::sync::Arc;

use arrow_array::RecordBatchReader as _;
use arrow_array::ffi_stream::RecordBatchStreamReader;
use arrow_array::{RecordBatch, StructArray, make_array};
use arrow_data::ArrayData;
use arrow_pyarrow::FromPyArrow as _;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::errors::{invalid, of_stream};
use crate::table::Table;

/// The rows of an object.
pub(crate) struct Batches {
    pub(crate) schema: SchemaRef,
    pub(crate) rows: Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>> + Send>,
}

impl Batches {
    fn of(schema: SchemaRef, rows: Vec<RecordBatch>) -> Self {
        Self { schema, rows: Box::new(rows.into_iter().map(Ok)) }
    }
}

/// The rows of an object with an Arrow interface, or of a list of arrays of one type. An array
/// becomes a column `name`, but an array of structs becomes their fields.
pub(crate) fn batches(data: &Bound<'_, PyAny>, name: &str) -> PyResult<Batches> {
    if let Ok(table) = data.cast::<Table>() {
        let table = table.get();
        return Ok(Batches::of(Arc::clone(table.schema()), table.batches().to_vec()));
    }
    if let Ok(arrays) = data.cast::<PyList>() {
        return chunks(arrays, name);
    }
    if data.hasattr("__arrow_c_array__")? {
        let (schema, batch) = batch_of(&ArrayData::from_pyarrow_bound(data)?, name)?;
        return Ok(Batches::of(schema, vec![batch]));
    }
    if data.hasattr("__arrow_c_stream__")? {
        let reader = RecordBatchStreamReader::from_pyarrow_bound(data)?;
        return Ok(Batches { schema: reader.schema(), rows: Box::new(reader) });
    }
    let found = data.get_type().name()?.to_string();
    Err(PyTypeError::new_err(format!(
        "expected data with an Arrow interface (`__arrow_c_stream__` or `__arrow_c_array__`), a \
         NumPy array or a list; found {found}"
    )))
}

/// Chunks of one column.
fn chunks(arrays: &Bound<'_, PyList>, name: &str) -> PyResult<Batches> {
    let mut rows = Vec::with_capacity(arrays.len());
    let mut schema: Option<SchemaRef> = None;
    for array in arrays {
        let (found, batch) = batch_of(&ArrayData::from_pyarrow_bound(&array)?, name)?;
        schema.get_or_insert(found);
        rows.push(batch);
    }
    let schema = schema.ok_or_else(|| PyTypeError::new_err("a list of chunks has one at least"))?;
    Ok(Batches::of(schema, rows))
}

fn batch_of(data: &ArrayData, name: &str) -> PyResult<(SchemaRef, RecordBatch)> {
    let array = make_array(data.clone());
    let batch = match data.data_type() {
        DataType::Struct(_) => RecordBatch::from(StructArray::from(data.clone())),
        found => {
            let field = Field::new(name, found.clone(), true);
            let schema = Arc::new(Schema::new(vec![field]));
            RecordBatch::try_new(schema, vec![array]).map_err(invalid)?
        }
    };
    Ok((batch.schema(), batch))
}

/// The rows of an Arrow object, without a copy.
#[pyfunction]
pub(crate) fn table(py: Python<'_>, data: &Bound<'_, PyAny>, name: &str) -> PyResult<Table> {
    let batches = batches(data, name)?;
    let schema = Arc::clone(&batches.schema);
    let rows = py.detach(|| batches.rows.collect::<Result<Vec<_>, _>>()).map_err(of_stream)?;
    Ok(Table::new(schema, rows))
}
