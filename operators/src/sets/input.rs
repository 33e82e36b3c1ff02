//! Reads the sets of a batch.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_array::{Array, ListArray, RecordBatch, UInt32Array, UInt64Array};
use arrow_schema::{ArrowError, Schema, SchemaRef};
use arrow_select::take::take_record_batch;
use thiserror::Error;

use super::carrier::Carrier;
use crate::carry::CarriedRows;

/// Indexes of the columns of an input that a join reads.
#[derive(Debug, Clone)]
pub(crate) struct SetColumns {
    pub(crate) id: usize,
    pub(crate) set: usize,
    /// Carried columns.
    carry: Vec<usize>,
    /// Schema of the carried columns.
    carried: SchemaRef,
}

impl SetColumns {
    /// The columns `id`, `set` and `carry` of an input with the schema `input`.
    ///
    /// # Panics
    /// If `input` has no such columns.
    pub(crate) fn new(input: &Schema, id: usize, set: usize, carry: Vec<usize>) -> Self {
        let carried = Arc::new(input.project(&carry).expect("columns of the input"));
        Self { id, set, carry, carried }
    }

    /// The carried columns of a batch.
    pub(crate) fn carried(&self, records: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        records.project(&self.carry)
    }

    /// The carried columns of the given `rows` of a batch.
    pub(crate) fn carried_at(
        &self,
        records: &RecordBatch,
        rows: &[usize],
    ) -> Result<CarriedRows, ArrowError> {
        let rows = UInt64Array::from_iter_values(rows.iter().map(|&row| row as u64));
        Ok(CarriedRows::of_batch(take_record_batch(&self.carried(records)?, &rows)?))
    }

    /// Whether there are carried columns.
    pub(crate) fn carries(&self) -> bool {
        !self.carry.is_empty()
    }

    /// Schemas of the carried columns of left and right sets.
    pub(crate) fn carried_schemas(inputs: &[Self]) -> [SchemaRef; 2] {
        let right = inputs.len() - 1;
        [0, right].map(|input| SchemaRef::clone(&inputs[input].carried))
    }

    /// A carrier for the carried columns, if there are any.
    pub(crate) fn carrier(inputs: &[Self]) -> Option<Carrier> {
        inputs[0].carries().then(|| Carrier::new(Self::carried_schemas(inputs)))
    }
}

/// A token of a set is null.
#[derive(Debug, Error)]
#[error("invalid set with id {id}: a token is null")]
pub(crate) struct NullToken {
    id: u32,
}

/// The rows of a batch as ids and sets.
pub(crate) struct SetRows<'a> {
    ids: &'a UInt32Array,
    sets: &'a ListArray,
    tokens: &'a UInt32Array,
}

impl<'a> SetRows<'a> {
    /// The rows of `records`, whose `columns` have the types that binding the operator checked.
    pub(crate) fn new(records: &'a RecordBatch, columns: &SetColumns) -> Self {
        let ids = records.column(columns.id).as_primitive::<UInt32Type>();
        let sets = records.column(columns.set).as_list::<i32>();
        Self { ids, sets, tokens: sets.values().as_primitive::<UInt32Type>() }
    }

    /// Number of tokens of consecutive rows. Tokens behind a null row are counted, too.
    pub(crate) fn tokens_of(&self, rows: Range<usize>) -> usize {
        let [begin, end] = [rows.start, rows.end].map(|row| self.sets.value_offsets()[row]);
        usize::try_from(end - begin).expect("the offsets of a list do not descend")
    }

    /// Ids of all rows. Those of null rows are any.
    pub(crate) fn ids(&self) -> &'a [u32] {
        self.ids.values()
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    /// Ids, offsets and tokens of all rows, if none is null and each has `size_min` tokens or more,
    /// which is at least one.
    pub(crate) fn whole(&self, size_min: usize) -> Option<(&'a [u32], &'a [i32], &'a [u32])> {
        let Self { ids, sets, tokens } = self;
        if ids.null_count() + sets.null_count() + tokens.null_count() > 0 {
            return None;
        }
        let offsets = sets.value_offsets();
        let sizes = offsets.windows(2).map(|ends| ends[1] - ends[0]);
        let smallest = sizes.min().and_then(|size| usize::try_from(size).ok())?;
        (smallest >= size_min.max(1)).then(|| (&ids.values()[..], offsets, &tokens.values()[..]))
    }

    /// Id and tokens of a row; `None` if either is null.
    pub(crate) fn get(&self, row: usize) -> Result<Option<(u32, &'a [u32])>, NullToken> {
        let Self { ids, sets, tokens } = self;
        if ids.is_null(row) || sets.is_null(row) {
            return Ok(None);
        }
        let id = ids.value(row);
        let ends = &sets.value_offsets()[row..=row + 1];
        let [begin, end] = [ends[0], ends[1]]
            .map(|end| usize::try_from(end).expect("the offsets of a list are not negative"));
        if tokens.null_count() > 0 && (begin..end).any(|token| tokens.is_null(token)) {
            return Err(NullToken { id });
        }
        Ok(Some((id, &tokens.values()[begin..end])))
    }
}
