//! Carried columns: columns of an input that an operator passes on with the rows of its output.
//!
//! Carried columns are kept in batches of a bounded size, because 32-bit offsets limit the text of
//! one column to 2 GiB.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, OffsetSizeTrait, RecordBatch, RecordBatchOptions};
use arrow_schema::{ArrowError, DataType, FieldRef, Schema, SchemaRef};
use arrow_select::concat::concat_batches;
use arrow_select::interleave::interleave;
use trommel_engine::error::BindError;
use trommel_engine::operator::Demand;

use crate::shared::columns::find_column;
use crate::shared::columns::ids::{IdInput, RowIds};
use crate::shared::parameters::{Mistakes, Names, refuse};

/// Stands for all columns in the parameter `carry`.
const ALL: &str = "*";

/// Indexes of the columns `names` of the parameter `carry`; `*` stands for all columns. The rows of
/// the output already have the columns `taken`.
///
/// # Errors
/// If a column is missing in `input`, is named twice, or has a name that is taken.
pub(crate) fn carried_columns(
    names: &Names,
    input: &SchemaRef,
    taken: &[&str],
) -> Result<Vec<usize>, BindError> {
    let columns = match names.as_slice() {
        [all] if all == ALL => (0..input.fields().len()).collect(),
        names => named_columns(names, input)?,
    };
    let mut mistakes = Mistakes::default();
    for &column in &columns {
        let name = input.field(column).name();
        mistakes.refuse(taken.contains(&name.as_str()), || {
            let allowed = "a column of the rows has this name; rename the column by `select`";
            refuse("carry", format!("`{name}`"), allowed)
        });
    }
    mistakes.all(|| Some(columns))
}

/// The [carried columns](carried_columns) of each of `inputs`.
///
/// # Errors
/// As [`carried_columns`], for the first input that does not have the columns.
pub(crate) fn carried_by_all(
    names: &Names,
    inputs: &[SchemaRef],
    taken: &[&str],
) -> Result<Vec<Vec<usize>>, BindError> {
    inputs.iter().map(|input| carried_columns(names, input, taken)).collect()
}

/// `demand` with the columns `names` of the parameter `carry`.
pub(crate) fn carried_demand(names: &Names, demand: Demand) -> Demand {
    match names.as_slice() {
        [all] if all == ALL => Demand::all(),
        names => names.iter().cloned().fold(demand, Demand::column),
    }
}

fn named_columns(names: &[String], input: &SchemaRef) -> Result<Vec<usize>, BindError> {
    let mut mistakes = Mistakes::default();
    let mut columns: Vec<usize> = Vec::with_capacity(names.len());
    let mut seen = HashSet::with_capacity(names.len());
    for name in names {
        if name == ALL {
            let allowed = "`*` is all columns: name it alone";
            mistakes.refuse(true, || refuse("carry", "`*` beside names", allowed));
            continue;
        }
        let found = mistakes.check(find_column(input, name, "carry"));
        let is_twice = found.as_ref().is_some_and(|(column, _)| !seen.insert(*column));
        mistakes.refuse(is_twice, || {
            refuse("carry", format!("`{name}` twice"), "name each column once")
        });
        columns.extend(found.map(|(column, _)| column));
    }
    mistakes.all(|| Some(columns))
}

/// Columns of an input that travel with its rows: ids that are no numbers of 32 bits, and the
/// columns of `carry`.
#[derive(Debug, Clone)]
pub(crate) struct CarriedColumns {
    has_ids: bool,
    /// Places in the input.
    columns: Vec<usize>,
    /// Schema of the columns, with the ids first.
    schema: SchemaRef,
}

impl CarriedColumns {
    /// The columns at `columns` of `input`, after the `ids` if the ids are carried.
    ///
    /// # Panics
    /// If `input` has no such columns.
    pub(crate) fn new(input: &Schema, ids: &IdInput, columns: Vec<usize>) -> Self {
        let id = ids.carried_field();
        let has_ids = id.is_some();
        let fields = columns.iter().map(|&column| Arc::clone(&input.fields()[column]));
        let fields: Vec<FieldRef> = id.map(Arc::new).into_iter().chain(fields).collect();
        Self { has_ids, columns, schema: Arc::new(Schema::new(fields)) }
    }

    /// Whether no columns are carried.
    pub(crate) fn is_empty(&self) -> bool {
        self.schema.fields().is_empty()
    }

    /// The columns.
    pub(crate) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The type of the ids, if the ids are carried.
    pub(crate) fn id_type(&self) -> Option<&DataType> {
        self.has_ids.then(|| self.schema.field(0).data_type())
    }

    /// The columns of `carry`.
    pub(crate) fn others(&self) -> &[FieldRef] {
        &self.schema.fields()[usize::from(self.has_ids)..]
    }

    /// The carried columns of a batch with the ids `ids`.
    pub(crate) fn of(
        &self,
        records: &RecordBatch,
        ids: &RowIds,
    ) -> Result<RecordBatch, ArrowError> {
        let others = self.columns.iter().map(|&column| Arc::clone(records.column(column)));
        let columns = ids.carried.clone().into_iter().chain(others).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(records.num_rows()));
        RecordBatch::try_new_with_options(SchemaRef::clone(&self.schema), columns, &options)
    }
}

/// Rows of carried columns, in consecutive batches.
#[derive(Debug, Default)]
pub(crate) struct CarriedRows {
    batches: Vec<RecordBatch>,
    /// For each batch, the number of rows up to its end.
    ends: Vec<usize>,
}

impl CarriedRows {
    /// The rows of `parts`. Small parts are concatenated to batches of up to `batch_bytes` bytes.
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

/// Number of bytes that a copy of the values at `rows` moves. A type of unknown width counts 16
/// bytes per value, like a view.
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
