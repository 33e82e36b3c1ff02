//! The columns that the operator reads.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch};
use arrow_buffer::ScalarBuffer;
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::DataType;
use arrow_select::filter::filter;
use thiserror::Error;
use trommel_engine::operator::{Counters, OperatorError};

use crate::expressions::{ColumnInput, Expression};
use crate::items::{pack, result_type, to_native};
use crate::long::shorten;

/// Columns that items are made of.
#[derive(Debug, Clone)]
pub(super) enum ItemInput {
    One(ColumnInput),
    /// A row of them is an item.
    Several(Vec<Expression>),
}

/// Where the items and weights of a batch are.
#[derive(Debug, Clone)]
pub(super) struct Input {
    item: ItemInput,
    /// Type of the items in results.
    item_type: DataType,
    weight: Option<ColumnInput>,
    /// The longest text item that is kept as it is.
    item_bytes_max: usize,
    /// The sum of all weights; none where counts are forgotten again.
    total: Option<u64>,
    nulls: u64,
    items_shortened: u64,
}

/// The weights of a stream add up to more than a count holds.
#[derive(Debug, Error)]
#[error(
    "the weights add up to more than 2^64 - 1, which is the greatest count; give smaller weights, \
     such as thousands of them"
)]
pub(super) struct WeightsFull;

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
    /// Items of this type, with weights or without.
    pub(super) fn new(
        (item, item_type): (ItemInput, DataType),
        weight: Option<ColumnInput>,
        item_bytes_max: usize,
    ) -> Self {
        let item_type = result_type(&item_type);
        let (total, nulls, items_shortened) = (Some(0), 0, 0);
        Self { item, item_type, weight, item_bytes_max, total, nulls, items_shortened }
    }

    /// The items of the first column, without weights.
    #[cfg(test)]
    pub(super) fn of_column(kind: DataType) -> Self {
        Self::new((ItemInput::One(ColumnInput::Column(0)), kind), None, 1024)
    }

    /// Type of the items in results.
    pub(super) fn item_type(&self) -> &DataType {
        &self.item_type
    }

    /// Counts are forgotten again, so that no sum of weights is too much.
    pub(super) fn fading(self) -> Self {
        Self { total: None, ..self }
    }

    /// The rows whose item and weight are not null; the others are counted. Long items have become
    /// their names.
    ///
    /// # Errors
    /// If all weights so far add up to more than a count holds.
    pub(super) fn read(&mut self, records: &RecordBatch) -> Result<Observations, OperatorError> {
        let mut items = self.items(records)?;
        let weights = self.weight.as_ref().map(|weight| weight.of(records)).transpose()?;
        let mut weights = weights.map(|weights| to_weights(&weights)).transpose()?;
        let has_nulls = |column: &ArrayRef| column.null_count() > 0;
        if has_nulls(&items) || weights.as_ref().is_some_and(has_nulls) {
            let is_valid =
                |row| items.is_valid(row) && weights.as_ref().is_none_or(|w| w.is_valid(row));
            let kept: BooleanArray = (0..items.len()).map(|row| Some(is_valid(row))).collect();
            items = filter(&items, &kept)?;
            weights = weights.map(|weights| filter(&weights, &kept)).transpose()?;
            self.nulls += (records.num_rows() - items.len()) as u64;
        }
        let weights = weights.map(|weights| weights.as_primitive::<UInt64Type>().values().clone());
        if let (Some(total), Some(weights)) = (self.total, &weights) {
            let sum =
                weights.iter().fold(u128::from(total), |sum, &weight| sum + u128::from(weight));
            self.total = Some(u64::try_from(sum).map_err(|_| WeightsFull)?);
        }
        Ok(Observations { items, weights })
    }

    /// The items of a batch as they are counted, with nulls.
    fn items(&mut self, records: &RecordBatch) -> Result<ArrayRef, OperatorError> {
        let columns = match &self.item {
            ItemInput::One(column) => vec![column.of(records)?],
            ItemInput::Several(columns) => {
                columns.iter().map(|column| column.evaluate(records)).collect::<Result<_, _>>()?
            }
        };
        let mut natives = Vec::with_capacity(columns.len());
        for column in columns {
            let native = to_native(&column)?;
            let short =
                native.as_string_opt().and_then(|texts| shorten(texts, self.item_bytes_max));
            let Some((short, count)) = short else {
                natives.push(native);
                continue;
            };
            natives.push(Arc::new(short));
            self.items_shortened += count;
        }
        Ok(match &self.item {
            ItemInput::One(_) => natives.remove(0),
            ItemInput::Several(_) => Arc::new(pack(&natives)),
        })
    }

    pub(super) fn counters(&self) -> Counters {
        vec![("nulls", self.nulls), ("items_shortened", self.items_shortened)]
    }
}

/// Weights as whole numbers of 64 bits.
fn to_weights(weights: &ArrayRef) -> Result<ArrayRef, OperatorError> {
    let options = CastOptions { safe: false, ..CastOptions::default() };
    let cast = cast_with_options(weights, &DataType::UInt64, &options);
    cast.map_err(|error| format!("a weight is no whole number from 0: {error}").into())
}

#[cfg(test)]
mod tests {
    use arrow_array::{UInt32Array, UInt64Array};

    use super::*;

    fn weighted() -> Input {
        let item = (ItemInput::One(ColumnInput::Column(0)), DataType::UInt32);
        Input::new(item, Some(ColumnInput::Column(1)), 1024)
    }

    fn batch(weights: &[u64]) -> RecordBatch {
        let items: UInt32Array = (0..).take(weights.len()).collect();
        let columns: [(&str, ArrayRef); 2] =
            [("item", Arc::new(items)), ("weight", Arc::new(UInt64Array::from(weights.to_vec())))];
        RecordBatch::try_from_iter(columns).unwrap()
    }

    #[test]
    fn weights_add_up_to_the_greatest_count_and_no_more() {
        let mut input = weighted();
        input.read(&batch(&[1 << 63, (1 << 63) - 2])).unwrap();
        let error = input.read(&batch(&[1, 1])).unwrap_err().to_string();
        assert!(error.contains("add up to more than 2^64 - 1"), "{error}");
        // Weights that were refused do not count.
        input.read(&batch(&[1])).unwrap();
        assert!(input.read(&batch(&[1])).is_err());
        let mut fading = weighted().fading();
        for _ in 0..3 {
            fading.read(&batch(&[u64::MAX, u64::MAX])).unwrap();
        }
    }
}
