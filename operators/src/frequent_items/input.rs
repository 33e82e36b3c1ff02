//! The columns that the operator reads.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch};
use arrow_buffer::ScalarBuffer;
use arrow_schema::ArrowError;
use arrow_select::filter::filter;
use trommel_engine::operator::Counters;

use crate::long::shorten;

/// Where the items and weights of a batch are.
#[derive(Debug, Clone)]
pub(super) struct Input {
    item: usize,
    weight: Option<usize>,
    /// The longest text item that is kept as it is.
    item_bytes_max: usize,
    nulls: u64,
    items_shortened: u64,
}

/// The items of one batch, and their weights if they have any.
#[derive(Debug, Clone)]
pub(super) struct Observations {
    /// A column without nulls.
    pub(super) items: ArrayRef,
    /// One for each item.
    pub(super) weights: Option<ScalarBuffer<u64>>,
}

impl Observations {
    /// Bytes of memory. Others may hold the batch too, but while a message with it waits, it is the
    /// queue that keeps it alive.
    pub(super) fn bytes(&self) -> usize {
        let weights = self.weights.as_ref().map_or(0, |weights| size_of_val(&weights[..]));
        self.items.get_array_memory_size() + weights
    }
}

impl Input {
    pub(super) fn new(item: usize, weight: Option<usize>, item_bytes_max: usize) -> Self {
        Self { item, weight, item_bytes_max, nulls: 0, items_shortened: 0 }
    }

    /// The rows whose item and weight are not null; the others are counted. Long items have become
    /// their names.
    pub(super) fn read(&mut self, records: &RecordBatch) -> Result<Observations, ArrowError> {
        let mut items = ArrayRef::clone(records.column(self.item));
        let mut weights = self.weight.map(|weight| ArrayRef::clone(records.column(weight)));
        let has_nulls = |column: &ArrayRef| column.null_count() > 0;
        if has_nulls(&items) || weights.as_ref().is_some_and(has_nulls) {
            let is_valid =
                |row| items.is_valid(row) && weights.as_ref().is_none_or(|w| w.is_valid(row));
            let kept: BooleanArray = (0..items.len()).map(|row| Some(is_valid(row))).collect();
            items = filter(&items, &kept)?;
            weights = weights.map(|weights| filter(&weights, &kept)).transpose()?;
            self.nulls += (records.num_rows() - items.len()) as u64;
        }
        let short = items.as_string_opt().and_then(|items| shorten(items, self.item_bytes_max));
        if let Some((short, count)) = short {
            items = Arc::new(short);
            self.items_shortened += count;
        }
        let weights = weights.map(|weights| weights.as_primitive::<UInt64Type>().values().clone());
        Ok(Observations { items, weights })
    }

    pub(super) fn counters(&self) -> Counters {
        vec![("nulls", self.nulls), ("items_shortened", self.items_shortened)]
    }
}
