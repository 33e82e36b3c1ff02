//! Values of groups that rows add to, as columns indexed by the numbers of the groups.
//!
//! An accumulator takes a batch at a time: one loop over the rows of the batch. Accumulators of
//! workers and of panes merge.
//!
//! | file | contents |
//! |---|---|
//! | `sums` | sums and means |
//! | `picked` | one value of each group: the least, the greatest, the first, the last |
//! | `distinct` | numbers of distinct values, exact |
//! | `hyperloglog` | numbers of distinct values, estimated |
//! | `quantiles` | quantiles of numbers |
//! | `lists` | all values |

mod distinct;
mod hyperloglog;
mod lists;
mod picked;
mod quantiles;
mod sums;

use std::any::Any;

use arrow_array::types::ArrowPrimitiveType;
use arrow_array::{Array, ArrayRef, BooleanArray, PrimitiveArray, UInt32Array};
use arrow_buffer::NullBuffer;
use arrow_schema::{ArrowError, DataType};
use arrow_select::filter::filter;
use thiserror::Error;
use trommel_engine::operator::OperatorError;

pub(crate) use self::distinct::Distinct;
pub(crate) use self::hyperloglog::Sketches;
pub(crate) use self::lists::Lists;
pub(crate) use self::picked::{Choice, picked};
pub(crate) use self::quantiles::{Quantiles, is_quantified};
pub(crate) use self::sums::{mean_type, sum_type, sums};
use crate::shared::budget::{Budget, BudgetFull};

/// A sum does not fit its type.
#[derive(Debug, Error)]
#[error(
    "`{call}`: the sum of a group does not fit {kind}; `cast(... as double)` in the call makes an \
     approximate sum"
)]
pub(crate) struct Overflow {
    call: String,
    kind: DataType,
}

/// Rows of a batch on their way into an accumulator.
pub(crate) struct Update<'a> {
    /// The group of each row.
    pub(crate) groups: &'a [u32],
    /// Number of groups.
    pub(crate) len: usize,
    /// The value of each row.
    pub(crate) values: &'a ArrayRef,
    pub(crate) budget: &'a mut Budget,
}

impl Update<'_> {
    /// The groups and the values of the rows that have a value.
    fn valid(&self) -> Result<(UInt32Array, ArrayRef), ArrowError> {
        let groups = UInt32Array::from(self.groups.to_vec());
        let nulls = self.values.logical_nulls().filter(|nulls| nulls.null_count() > 0);
        let Some(nulls) = nulls else { return Ok((groups, ArrayRef::clone(self.values))) };
        let is_valid = BooleanArray::new(nulls.into_inner(), None);
        let groups = groups.values().iter().zip(is_valid.values().iter());
        let groups = groups.filter(|(_, is_valid)| *is_valid).map(|(group, _)| *group);
        Ok((groups.collect(), filter(self.values, &is_valid)?))
    }
}

/// The thing that a column asks an accumulator for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Asked {
    Value,
    Mean,
    /// The smallest value that at least this share of the values does not exceed.
    Quantile(f64),
}

/// A column that is made of an accumulator.
pub(crate) struct Finish<'a> {
    /// The groups of the rows.
    pub(crate) groups: &'a [u32],
    pub(crate) asked: Asked,
    /// Type of the column.
    pub(crate) kind: &'a DataType,
    /// The call that the column stands for, for messages.
    pub(crate) text: &'a str,
    pub(crate) counts: Counts<'a>,
}

impl Finish<'_> {
    /// Number of values of a group.
    fn count(&self, group: u32) -> u64 {
        self.counts.of(group)
    }

    /// A value, if the group has values.
    fn valid<T>(&self, group: u32, value: impl FnOnce() -> T) -> Option<T> {
        (self.count(group) > 0).then(value)
    }

    /// The groups that have values.
    fn nulls(&self) -> NullBuffer {
        self.groups.iter().map(|&group| self.count(group) > 0).collect()
    }
}

/// Numbers of values by group: of the rows, without the rows in which the value is null.
#[derive(Clone, Copy)]
pub(crate) struct Counts<'a> {
    pub(crate) rows: &'a [u64],
    /// Empty as long as no value is null.
    pub(crate) nulls: &'a [u64],
}

impl Counts<'_> {
    /// Number of values of a group.
    pub(crate) fn of(&self, group: u32) -> u64 {
        let group = group as usize;
        self.rows[group] - self.nulls.get(group).copied().unwrap_or(0)
    }
}

/// A value for each group.
pub(crate) trait Accumulator: Any + Send + Sync {
    /// A copy, for an answer to a query.
    fn copy(&self) -> Box<dyn Accumulator>;

    /// Adds the rows of a batch. Nulls add nothing.
    ///
    /// # Errors
    /// If there is not enough memory.
    fn update(&mut self, update: &mut Update<'_>) -> Result<(), OperatorError>;

    /// Makes room for `len` groups.
    ///
    /// # Errors
    /// If there is not enough memory.
    fn grow(&mut self, len: usize, budget: &mut Budget) -> Result<(), BudgetFull>;

    /// Adds the values of another accumulator of the same kind, whose rows come after the rows of
    /// this one. `numbers` has the number here of each group there, and there is room for all.
    ///
    /// # Errors
    /// If there is not enough memory.
    fn merge(
        &mut self,
        other: &dyn Any,
        numbers: &[u32],
        budget: &mut Budget,
    ) -> Result<(), OperatorError>;

    /// The column of some groups.
    ///
    /// # Errors
    /// If a value does not fit its type.
    fn finish(&self, finish: &Finish<'_>) -> Result<ArrayRef, OperatorError>;

    /// Bytes of the value of a group in a column, if values have different lengths.
    fn value_bytes(&self, _group: u32) -> usize {
        0
    }
}

/// Calls `add` with the group and the value of each row that has a value.
#[inline(always)]
fn each<T: ArrowPrimitiveType>(
    groups: &[u32],
    values: &PrimitiveArray<T>,
    mut add: impl FnMut(usize, T::Native),
) {
    match values.nulls().filter(|nulls| nulls.null_count() > 0) {
        None => {
            for (&group, &value) in groups.iter().zip(values.values()) {
                add(group as usize, value);
            }
        }
        Some(nulls) => {
            let values = values.values();
            nulls.valid_indices().for_each(|row| add(groups[row] as usize, values[row]));
        }
    }
}

/// Makes `list` `len` long, with `value` for new groups.
fn grow<T: Clone>(
    what: &'static str,
    list: &mut Vec<T>,
    len: usize,
    value: T,
    budget: &mut Budget,
) -> Result<(), BudgetFull> {
    if len > list.len() {
        budget.grow(what, list, len - list.len())?;
        list.resize(len, value);
    }
    Ok(())
}
