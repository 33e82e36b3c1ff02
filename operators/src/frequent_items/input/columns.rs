//! The columns that the operator reads.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch};
use arrow_buffer::ScalarBuffer;
use arrow_cast::cast;
use arrow_schema::DataType;
use arrow_select::filter::filter;
use thiserror::Error;
use trommel_engine::operator::{Counters, NamedInputs, OperatorError, Output};

use crate::expressions::{ColumnInput, Expression};
use crate::shared::items::{pack, result_type, to_native};
use crate::shared::names::long::shorten;
use crate::shared::rejected::{BadRows, Faults, OnError, PORT};

/// Columns from which items are made.
#[derive(Debug, Clone)]
pub(crate) enum ItemInput {
    One(ColumnInput),
    /// Several columns; a row of these columns is an item.
    Several(Vec<Expression>),
}

/// The columns of a batch that hold the items and weights.
#[derive(Debug, Clone)]
pub(crate) struct Input {
    item: ItemInput,
    /// Type of the items in results.
    item_type: DataType,
    weight: Option<ColumnInput>,
    /// Maximum bytes of a text item that is kept without shortening.
    item_bytes_max: usize,
    /// The sum of all weights; `None` if counts fade.
    total: Option<u64>,
    nulls: u64,
    items_shortened: u64,
    bad: BadRows,
}

/// The weights of a stream add up to more than a count holds.
#[derive(Debug, Error)]
#[error(
    "the weights add up to more than 2^64 - 1, which is the greatest count; give smaller weights, \
     such as thousands of them"
)]
pub(crate) struct WeightsFull;

/// The items of one batch, and their weights if the input has weights.
#[derive(Debug, Clone)]
pub(crate) struct Observations {
    /// A column without nulls.
    pub(crate) items: ArrayRef,
    /// A weight for each item.
    pub(crate) weights: Option<ScalarBuffer<u64>>,
}

impl Observations {
    /// Bytes of memory. Other owners may hold the batch, too, but while a message with the batch
    /// waits, the queue keeps the batch alive.
    pub(crate) fn bytes(&self) -> usize {
        let weights = self.weights.as_ref().map_or(0, |weights| size_of_val(&weights[..]));
        self.items.get_array_memory_size() + weights
    }
}

impl Input {
    /// Items of this type, with weights or without.
    pub(crate) fn new(
        (item, item_type): (ItemInput, DataType),
        weight: Option<ColumnInput>,
        item_bytes_max: usize,
    ) -> Self {
        let item_type = result_type(&item_type);
        let (total, nulls, items_shortened, bad) = (Some(0), 0, 0, BadRows::new(None, 1));
        Self { item, item_type, weight, item_bytes_max, total, nulls, items_shortened, bad }
    }

    /// The items of the first column, without weights.
    #[cfg(test)]
    pub(crate) fn of_column(kind: DataType) -> Self {
        Self::new((ItemInput::One(ColumnInput::Column(0)), kind), None, 1024)
    }

    /// Sets the action for rows that cannot be counted.
    pub(crate) fn on_error(self, action: Option<OnError>) -> Self {
        Self { bad: BadRows::new(action, 1), ..self }
    }

    /// As [`BadRows::are_of_a_copy`].
    pub(crate) fn is_of_a_copy(&mut self) {
        self.bad.are_of_a_copy();
    }

    /// Type of the items in results.
    pub(crate) fn item_type(&self) -> &DataType {
        &self.item_type
    }

    /// Marks counts as fading, so that no sum of weights is too large.
    pub(crate) fn fading(self) -> Self {
        Self { total: None, ..self }
    }

    /// The rows whose item and weight are not null. Rows with a null are counted, and sent to the
    /// output of rejected rows if there is such an output. Long items are replaced by their names.
    ///
    /// # Errors
    /// If a row has a fault and the action for such rows is to end the run, or if all weights so
    /// far add up to more than a count holds.
    pub(crate) fn read(
        &mut self,
        records: &RecordBatch,
        out: &mut Output,
    ) -> Result<Observations, OperatorError> {
        let mut faults = self.bad.faults();
        let mut items = self.items(records, &mut faults)?;
        let weight = self.weight.as_ref();
        let weights = weight.map(|weight| to_weights(weight, records, &mut faults));
        let mut weights = weights.transpose()?;
        self.bad.settle(0, records, &faults)?;
        self.bad.take_rejected().into_iter().for_each(|rows| out.send_to(PORT, rows));
        // A fault becomes a null here; all nulls are left out below.
        if !faults.are_none() {
            items = faults.hide(&items);
        }
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
    fn items(
        &mut self,
        records: &RecordBatch,
        faults: &mut Faults,
    ) -> Result<ArrayRef, OperatorError> {
        let mut columns = Vec::new();
        let mut note = |column: ArrayRef, name: &str, faults: &mut Faults| {
            faults.note_nulls(column.logical_nulls().as_ref(), name, "the item");
            columns.push(column);
        };
        match &self.item {
            ItemInput::One(input) => {
                note(faults.values(input, records)?, input.text(records.schema_ref()), faults);
            }
            ItemInput::Several(expressions) => {
                for expression in expressions {
                    note(faults.evaluate(expression, records)?, expression.text(), faults);
                }
            }
        }
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

    pub(crate) fn counters(&self) -> Counters {
        let mut counters = vec![("nulls", self.nulls), ("items_shortened", self.items_shortened)];
        counters.extend(self.bad.counters());
        counters
    }

    pub(crate) fn named(&self) -> NamedInputs {
        self.bad.named()
    }
}

/// Weights as whole numbers of 64 bits; null for a row without a valid weight.
fn to_weights(
    input: &ColumnInput,
    records: &RecordBatch,
    faults: &mut Faults,
) -> Result<ArrayRef, OperatorError> {
    let name = input.text(records.schema_ref());
    let given = faults.values(input, records)?;
    faults.note_nulls(given.logical_nulls().as_ref(), name, "the weight");
    let weights = cast(&given, &DataType::UInt64)?;
    if weights.null_count() > given.logical_null_count() {
        let shown = cast(&given, &DataType::Utf8)?;
        let shown = shown.as_string::<i32>();
        for row in (0..weights.len()).filter(|&row| weights.is_null(row) && shown.is_valid(row)) {
            let weight = shown.value(row);
            faults.note(row, name, format_args!("the weight {weight} is no whole number from 0"));
        }
    }
    Ok(weights)
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
        input.read(&batch(&[1 << 63, (1 << 63) - 2]), &mut Output::new()).unwrap();
        let error = input.read(&batch(&[1, 1]), &mut Output::new()).unwrap_err().to_string();
        assert!(error.contains("add up to more than 2^64 - 1"), "{error}");
        // Weights that were refused do not count.
        input.read(&batch(&[1]), &mut Output::new()).unwrap();
        assert!(input.read(&batch(&[1]), &mut Output::new()).is_err());
        let mut fading = weighted().fading();
        for _ in 0..3 {
            fading.read(&batch(&[u64::MAX, u64::MAX]), &mut Output::new()).unwrap();
        }
    }
}
