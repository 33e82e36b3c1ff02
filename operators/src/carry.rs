//! Carried columns: columns of an input that an operator passes on with the rows of its output.
//!
//! They are kept in batches of a bounded size, because 32-bit offsets limit the text of one
//! column to 2 GiB.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, OffsetSizeTrait, RecordBatch};
use arrow_schema::{ArrowError, DataType, SchemaRef};
use arrow_select::concat::concat_batches;
use arrow_select::interleave::interleave;
use trommel_engine::error::BindError;

use crate::columns::find_column;
use crate::parameters::refuse;

/// Indexes of the columns `names` of the parameter `carry`.
///
/// # Errors
/// If a column is missing in `input`, or is named twice.
pub(crate) fn carried_columns(
    names: &[String],
    input: &SchemaRef,
) -> Result<Vec<usize>, BindError> {
    let mut columns: Vec<usize> = Vec::with_capacity(names.len());
    for name in names {
        let (column, _) = find_column(input, name, "carry")?;
        if columns.contains(&column) {
            return Err(refuse("carry", format!("`{name}` twice"), "name each column once"));
        }
        columns.push(column);
    }
    Ok(columns)
}

/// Rows of carried columns, in consecutive batches.
#[derive(Debug, Default)]
pub(crate) struct CarriedRows {
    batches: Vec<RecordBatch>,
    /// Per batch: number of rows up to its end.
    ends: Vec<usize>,
}

impl CarriedRows {
    /// The rows of `parts`. Small parts are concatenated to batches of up to `batch_bytes`.
    pub(crate) fn new(
        schema: &SchemaRef,
        parts: impl IntoIterator<Item = RecordBatch>,
        batch_bytes: usize,
    ) -> Result<Self, ArrowError> {
        let mut rows = Self::default();
        let (mut group, mut bytes) = (Vec::new(), 0);
        for part in parts {
            let bytes_of_part = row_bytes(part.columns(), 0..part.num_rows());
            if bytes + bytes_of_part > batch_bytes {
                rows.add(schema, &mut group)?;
                bytes = 0;
            }
            bytes += bytes_of_part;
            group.push(part);
        }
        rows.add(schema, &mut group)?;
        Ok(rows)
    }

    /// The rows of one batch.
    pub(crate) fn of_batch(rows: RecordBatch) -> Self {
        Self { ends: vec![rows.num_rows()], batches: vec![rows] }
    }

    /// The rows of `parts`, one part after the other; `None` if a part has no carried columns.
    pub(crate) fn joined<'a>(
        parts: impl Iterator<Item = Option<&'a Self>>,
        batch_bytes: usize,
    ) -> Result<Option<Self>, ArrowError> {
        let mut batches = Vec::new();
        for part in parts {
            let Some(part) = part else { return Ok(None) };
            batches.extend_from_slice(&part.batches);
        }
        let Some(schema) = batches.first().map(RecordBatch::schema) else { return Ok(None) };
        Ok(Some(Self::new(&schema, batches, batch_bytes)?))
    }

    /// Concatenates the batches of `group` to one batch, and empties `group`.
    fn add(&mut self, schema: &SchemaRef, group: &mut Vec<RecordBatch>) -> Result<(), ArrowError> {
        let batch = match &group[..] {
            [] => return Ok(()),
            [one] => one.clone(),
            _ => concat_batches(schema, &group[..])?,
        };
        group.clear();
        self.ends.push(self.ends.last().unwrap_or(&0) + batch.num_rows());
        self.batches.push(batch);
        Ok(())
    }

    /// Index of the batch of `row`, and the row in that batch.
    fn find(&self, row: u32) -> (usize, usize) {
        let row = row as usize;
        let batch = self.ends.partition_point(|end| *end <= row);
        let end = self.ends[batch];
        (batch, row + self.batches[batch].num_rows() - end)
    }

    /// Copies the columns at `rows`. There must be at least one batch.
    pub(crate) fn take(
        &self,
        rows: impl IntoIterator<Item = u32>,
    ) -> Result<Vec<ArrayRef>, ArrowError> {
        let rows: Vec<(usize, usize)> = rows.into_iter().map(|row| self.find(row)).collect();
        let column = |column: usize| {
            let parts: Vec<&dyn Array> =
                self.batches.iter().map(|batch| &**batch.column(column)).collect();
            interleave(&parts, &rows)
        };
        (0..self.batches[0].num_columns()).map(column).collect()
    }

    /// Approximate bytes of the columns at `row`.
    pub(crate) fn row_bytes(&self, row: u32) -> usize {
        let (batch, row) = self.find(row);
        row_bytes(self.batches[batch].columns(), row..row + 1)
    }

    /// Bytes of all columns.
    pub(crate) fn bytes(&self) -> usize {
        self.batches.iter().map(RecordBatch::get_array_memory_size).sum()
    }
}

/// Approximate bytes of the given `rows` of `columns`.
fn row_bytes(columns: &[ArrayRef], rows: Range<usize>) -> usize {
    columns.iter().map(|column| value_bytes(column, rows.clone())).sum()
}

/// Bytes that copying the values at `rows` moves. A type of unknown width counts 16 bytes per
/// value, like a view.
fn value_bytes(values: &ArrayRef, rows: Range<usize>) -> usize {
    fn within<O: OffsetSizeTrait>(offsets: &[O], rows: Range<usize>) -> Range<usize> {
        offsets[rows.start].as_usize()..offsets[rows.end].as_usize()
    }
    match values.data_type() {
        DataType::Utf8 => within(values.as_string::<i32>().value_offsets(), rows).len(),
        DataType::LargeUtf8 => within(values.as_string::<i64>().value_offsets(), rows).len(),
        DataType::Binary => within(values.as_binary::<i32>().value_offsets(), rows).len(),
        DataType::LargeBinary => within(values.as_binary::<i64>().value_offsets(), rows).len(),
        DataType::List(_) => {
            let lists = values.as_list::<i32>();
            value_bytes(lists.values(), within(lists.value_offsets(), rows))
        }
        DataType::LargeList(_) => {
            let lists = values.as_list::<i64>();
            value_bytes(lists.values(), within(lists.value_offsets(), rows))
        }
        DataType::Struct(_) => row_bytes(values.as_struct().columns(), rows),
        other => rows.len() * other.primitive_width().unwrap_or(size_of::<u128>()),
    }
}
