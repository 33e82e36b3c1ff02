//! The sets of a batch.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_array::{Array, ListArray, RecordBatch, UInt32Array, UInt64Array};
use arrow_schema::{ArrowError, Schema, SchemaRef};
use arrow_select::take::take_record_batch;
use thiserror::Error;

use super::carrier::Carrier;
use crate::carry::CarriedRows;

/// Where the ids and the sets of an input are, and the columns that go with them.
#[derive(Debug, Clone)]
pub(crate) struct SetColumns {
    pub(crate) id: usize,
    pub(crate) set: usize,
    carry: Vec<usize>,
    carried: SchemaRef,
}

impl SetColumns {
    /// SetColumns of an input with this schema.
    ///
    /// # Panics
    /// If a column that is carried is not there.
    pub(crate) fn new(input: &Schema, id: usize, set: usize, carry: Vec<usize>) -> Self {
        let carried = Arc::new(input.project(&carry).expect("columns of the input"));
        Self { id, set, carry, carried }
    }

    /// The columns that go with the sets of a batch.
    pub(crate) fn carried(&self, records: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        records.project(&self.carry)
    }

    /// The columns that go with the sets at some rows of a batch.
    pub(crate) fn carried_at(
        &self,
        records: &RecordBatch,
        rows: &[usize],
    ) -> Result<CarriedRows, ArrowError> {
        let rows = UInt64Array::from_iter_values(rows.iter().map(|&row| row as u64));
        Ok(CarriedRows::of_batch(take_record_batch(&self.carried(records)?, &rows)?))
    }

    /// Whether any columns go with the sets.
    pub(crate) fn carries(&self) -> bool {
        !self.carry.is_empty()
    }

    /// The columns that go with the left and with the right sets of pairs.
    pub(crate) fn carried_schemas(inputs: &[Self]) -> [SchemaRef; 2] {
        let right = inputs.len() - 1;
        [0, right].map(|input| SchemaRef::clone(&inputs[input].carried))
    }

    /// What collects the columns, if there are any.
    pub(crate) fn carrier(inputs: &[Self]) -> Option<Carrier> {
        inputs[0].carries().then(|| Carrier::new(Self::carried_schemas(inputs)))
    }
}

/// A token is null.
#[derive(Debug, Error)]
#[error("the set with id {id} has a token that is null")]
pub(crate) struct NullToken {
    id: u32,
}

/// The rows of a batch.
pub(crate) struct SetRows<'a> {
    ids: &'a UInt32Array,
    sets: &'a ListArray,
    tokens: &'a UInt32Array,
}

impl<'a> SetRows<'a> {
    /// The columns are of the types that were checked when the operator was bound.
    pub(crate) fn new(records: &'a RecordBatch, columns: &SetColumns) -> Self {
        let ids = records.column(columns.id).as_primitive::<UInt32Type>();
        let sets = records.column(columns.set).as_list::<i32>();
        Self { ids, sets, tokens: sets.values().as_primitive::<UInt32Type>() }
    }

    /// The id and the tokens of a row; none if either is null.
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
