//! Columns of the input that go with sets into the rows of their pairs.
//!
//! They lie in batches of a bounded size, so that no column has to hold all the text of an input:
//! offsets of 32 bits end at 2 GiB.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, OffsetSizeTrait, RecordBatch};
use arrow_schema::{ArrowError, DataType, SchemaRef};
use arrow_select::concat::concat_batches;
use arrow_select::interleave::interleave;

use super::side::Side;

/// Bytes of columns after which another batch is begun.
pub(crate) const BATCH_BYTES: usize = if cfg!(test) { 1 << 9 } else { 1 << 26 };

/// Columns by place of a set on its side.
#[derive(Debug)]
pub(crate) struct Carried {
    sides: [Rows; 2],
}

/// The rows of some batches, one after the other.
#[derive(Debug, Default)]
struct Rows {
    batches: Vec<RecordBatch>,
    /// By batch: how many rows it and those before it have.
    ends: Vec<usize>,
}

impl Rows {
    /// Small batches that follow each other are made one.
    fn new(
        schema: &SchemaRef,
        parts: impl IntoIterator<Item = RecordBatch>,
    ) -> Result<Self, ArrowError> {
        let mut rows = Self::default();
        let (mut group, mut bytes) = (Vec::new(), 0);
        for part in parts {
            let bytes_of_part = row_bytes(part.columns(), 0..part.num_rows());
            if bytes + bytes_of_part > BATCH_BYTES {
                rows.add(schema, &mut group)?;
                bytes = 0;
            }
            bytes += bytes_of_part;
            group.push(part);
        }
        rows.add(schema, &mut group)?;
        Ok(rows)
    }

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

    /// The batch of a place, and the row in it.
    fn find(&self, place: u32) -> (usize, usize) {
        let place = place as usize;
        let batch = self.ends.partition_point(|end| *end <= place);
        let end = self.ends[batch];
        (batch, place + self.batches[batch].num_rows() - end)
    }
}

impl Carried {
    /// Columns of one input: all of the left side.
    pub(crate) fn of_one(rows: RecordBatch) -> Self {
        let ends = vec![rows.num_rows()];
        Self::of_left(Rows { batches: vec![rows], ends })
    }

    fn of_left(rows: Rows) -> Self {
        Self { sides: [rows, Rows::default()] }
    }

    /// The columns of the sets at some places of a side, of which there must be one.
    pub(crate) fn take(
        &self,
        side: Side,
        places: impl IntoIterator<Item = u32>,
    ) -> Result<Vec<ArrayRef>, ArrowError> {
        let rows = &self.sides[side.index()];
        let places: Vec<(usize, usize)> =
            places.into_iter().map(|place| rows.find(place)).collect();
        let columns = 0..rows.batches[0].num_columns();
        let column = |column: usize| {
            let parts: Vec<&dyn Array> =
                rows.batches.iter().map(|batch| &**batch.column(column)).collect();
            interleave(&parts, &places)
        };
        columns.map(column).collect()
    }

    /// About how many bytes the columns of a set have.
    pub(crate) fn row_bytes(&self, side: Side, place: u32) -> usize {
        let rows = &self.sides[side.index()];
        let (batch, row) = rows.find(place);
        row_bytes(rows.batches[batch].columns(), row..row + 1)
    }

    /// The rows of the sets of some collections of a stream, one after the other.
    pub(crate) fn gather<'a>(
        carried: impl Iterator<Item = Option<&'a Self>>,
    ) -> Result<Option<Self>, ArrowError> {
        let mut parts = Vec::new();
        for carried in carried {
            // A stream has its columns in the order of its sets.
            let Some(carried) = carried else { return Ok(None) };
            parts.extend_from_slice(&carried.sides[0].batches);
        }
        let Some(schema) = parts.first().map(RecordBatch::schema) else { return Ok(None) };
        Ok(Some(Self::of_left(Rows::new(&schema, parts)?)))
    }

    /// Bytes of the columns.
    pub(crate) fn bytes(&self) -> usize {
        self.sides[0].batches.iter().map(RecordBatch::get_array_memory_size).sum()
    }
}

/// Bytes of some rows of columns.
fn row_bytes(columns: &[ArrayRef], rows: Range<usize>) -> usize {
    columns.iter().map(|column| value_bytes(column, rows.clone())).sum()
}

/// Bytes of some values that are copied when they are taken; where that is not known, as many as a
/// view has.
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

/// Collects the ids and columns of sets that are collected.
#[derive(Debug)]
pub(crate) struct Carrier {
    schemas: [SchemaRef; 2],
    rows: [Vec<RecordBatch>; 2],
    ids: [Vec<u32>; 2],
}

impl Carrier {
    /// Columns of two inputs, or twice those of one.
    pub(crate) fn new(schemas: [SchemaRef; 2]) -> Self {
        Self { schemas, rows: [Vec::new(), Vec::new()], ids: [Vec::new(), Vec::new()] }
    }

    /// Adds the columns of a batch, of which each row needs a [place](Self::place); returns their
    /// bytes.
    pub(crate) fn add(&mut self, side: Side, rows: RecordBatch) -> usize {
        let bytes = rows.get_array_memory_size();
        self.rows[side.index()].push(rows);
        bytes
    }

    /// The place of the next row.
    pub(crate) fn place(&mut self, side: Side, id: u32) -> u32 {
        let ids = &mut self.ids[side.index()];
        ids.push(id);
        u32::try_from(ids.len() - 1).expect("sets have 32-bit numbers")
    }

    /// The ids of all rows per side, and their columns.
    pub(crate) fn finish(self) -> Result<([Vec<u32>; 2], Carried), ArrowError> {
        let Self { schemas, rows: [left, right], ids } = self;
        let sides = [Rows::new(&schemas[0], left)?, Rows::new(&schemas[1], right)?];
        Ok((ids, Carried { sides }))
    }
}
