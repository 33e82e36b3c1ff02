//! The sets of a batch.

use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_array::{Array, ListArray, RecordBatch, UInt32Array};
use thiserror::Error;

/// Where the ids and the sets of an input are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Columns {
    pub(super) id: usize,
    pub(super) set: usize,
}

/// A token is null.
#[derive(Debug, Error)]
#[error("the set with id {id} has a token that is null")]
pub(super) struct NullToken {
    id: u32,
}

/// The rows of a batch.
pub(super) struct SetRows<'a> {
    ids: &'a UInt32Array,
    sets: &'a ListArray,
    tokens: &'a UInt32Array,
}

impl<'a> SetRows<'a> {
    /// The columns are of the types that were checked when the operator was bound.
    pub(super) fn new(records: &'a RecordBatch, columns: Columns) -> Self {
        let ids = records.column(columns.id).as_primitive::<UInt32Type>();
        let sets = records.column(columns.set).as_list::<i32>();
        Self { ids, sets, tokens: sets.values().as_primitive::<UInt32Type>() }
    }

    /// The id and the tokens of a row; none if either is null.
    pub(super) fn get(&self, row: usize) -> Result<Option<(u32, &'a [u32])>, NullToken> {
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
