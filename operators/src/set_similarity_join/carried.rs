//! Columns of the input that go with sets into the rows of their pairs.

use arrow_array::types::UInt32Type;
use arrow_array::{ArrayRef, PrimitiveArray, RecordBatch};
use arrow_schema::{ArrowError, SchemaRef};
use arrow_select::concat::concat_batches;
use arrow_select::take::{take, take_record_batch};

use super::collection::SetCollection;
use super::collector::Side;

/// Columns by place of a set on its side.
#[derive(Debug)]
pub(super) struct Carried {
    sides: [RecordBatch; 2],
}

impl Carried {
    /// Of a stream, in which sets of both sides come from the same input.
    pub(super) fn of_one(rows: RecordBatch) -> Self {
        Self { sides: [rows.clone(), rows] }
    }

    /// The columns of the sets at some places of a side.
    pub(super) fn take(
        &self,
        side: Side,
        places: impl IntoIterator<Item = u32>,
    ) -> Result<Vec<ArrayRef>, ArrowError> {
        let places = PrimitiveArray::<UInt32Type>::from_iter_values(places);
        let columns = self.sides[side.index()].columns().iter();
        columns.map(|column| take(column, &places, None)).collect()
    }

    /// The rows of the sets of some collections, one after the other.
    pub(super) fn gather<'a>(
        sets: impl Iterator<Item = &'a SetCollection>,
    ) -> Result<Option<Self>, ArrowError> {
        let mut all = Vec::new();
        for sets in sets {
            let Some(carried) = sets.carried() else { return Ok(None) };
            let places = PrimitiveArray::<UInt32Type>::from_iter_values(sets.places().to_vec());
            all.push(take_record_batch(&carried.sides[0], &places)?);
        }
        let Some(first) = all.first() else { return Ok(None) };
        Ok(Some(Self::of_one(concat_batches(&first.schema(), &all)?)))
    }

    /// Bytes of the columns.
    pub(super) fn bytes(&self) -> usize {
        self.sides[0].get_array_memory_size()
    }
}

/// Collects the ids and columns of sets that are collected.
#[derive(Debug)]
pub(super) struct Carrier {
    schemas: [SchemaRef; 2],
    rows: [Vec<RecordBatch>; 2],
    ids: [Vec<u32>; 2],
}

impl Carrier {
    /// Columns of two inputs, or twice those of one.
    pub(super) fn new(schemas: [SchemaRef; 2]) -> Self {
        Self { schemas, rows: [Vec::new(), Vec::new()], ids: [Vec::new(), Vec::new()] }
    }

    /// Adds the columns of a batch, of which each row needs a [place](Self::place); returns their
    /// bytes.
    pub(super) fn add(&mut self, side: Side, rows: RecordBatch) -> usize {
        let bytes = rows.get_array_memory_size();
        self.rows[side.index()].push(rows);
        bytes
    }

    /// The place of the next row.
    pub(super) fn place(&mut self, side: Side, id: u32) -> u32 {
        let ids = &mut self.ids[side.index()];
        ids.push(id);
        u32::try_from(ids.len() - 1).expect("sets have 32-bit numbers")
    }

    /// Gives the columns to the sets, whose ids are places so far.
    pub(super) fn finish(self, sets: &mut SetCollection) -> Result<(), ArrowError> {
        let [left, right] =
            [0, 1].map(|side| concat_batches(&self.schemas[side], &self.rows[side]));
        sets.label(|side, place| self.ids[side.index()][place as usize]);
        sets.carry(Carried { sides: [left?, right?] });
        Ok(())
    }
}
