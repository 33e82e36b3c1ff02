//! One value of each group: the least, the greatest, the first or the last.
//!
//! Values of primitive types are a column of their own. Other values are kept as the bytes that
//! `arrow-row` makes of them, whose order is the order of the values.

use std::any::Any;
use std::sync::Arc;

use arrow_array::builder::PrimitiveBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::ArrowPrimitiveType;
use arrow_array::{Array, ArrayRef, ArrowNativeTypeOp, downcast_primitive, make_array};
use arrow_schema::{ArrowError, DataType};
use arrow_select::take::take;
use trommel_engine::operator::OperatorError;

use super::{Accumulator, Finish, Update, each, grow};
use crate::shared::budget::{Budget, BudgetFull};
use crate::shared::groups::{Encoder, canonical};

const WHAT: &str = "the values of groups";

/// The value that a group keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    Least,
    Greatest,
    First,
    Last,
}

impl Choice {
    fn is_of_order(self) -> bool {
        matches!(self, Self::Least | Self::Greatest)
    }
}

/// An accumulator of values of the type `kind`.
///
/// # Errors
/// If values of the type have no order.
pub(crate) fn picked(choice: Choice, kind: &DataType) -> Result<Box<dyn Accumulator>, ArrowError> {
    macro_rules! primitive {
        ($t:ty) => {
            Ok(Box::new(Primitives::<$t>::new(choice)))
        };
    }
    downcast_primitive!(
        kind => (primitive),
        _ => {
            let encoder = Encoder::new(std::slice::from_ref(kind))?;
            Ok(Box::new(Encoded { choice, encoder: Arc::new(encoder), values: Vec::new() }))
        }
    )
}

/// Values of a primitive type.
struct Primitives<T: ArrowPrimitiveType> {
    choice: Choice,
    values: Vec<T::Native>,
    /// Whether each group has a value, for choices that depend on the order of rows.
    has_value: Vec<bool>,
}

impl<T: ArrowPrimitiveType> Primitives<T> {
    fn new(choice: Choice) -> Self {
        Self { choice, values: Vec::new(), has_value: Vec::new() }
    }

    /// The value of a group without values: no value is chosen after the worst one.
    fn worst(&self) -> T::Native {
        match self.choice {
            Choice::Least => T::Native::MAX_TOTAL_ORDER,
            _ => T::Native::MIN_TOTAL_ORDER,
        }
    }
}

impl<T: ArrowPrimitiveType> Accumulator for Primitives<T> {
    fn copy(&self) -> Box<dyn Accumulator> {
        let (values, has_value) = (self.values.clone(), self.has_value.clone());
        Box::new(Self { choice: self.choice, values, has_value })
    }

    fn update(&mut self, update: &mut Update<'_>) -> Result<(), OperatorError> {
        self.grow(update.len, update.budget)?;
        let (groups, kept) = (update.groups, &mut self.values[..]);
        let is_set = &mut self.has_value[..];
        let array;
        let values = match self.choice.is_of_order() {
            true => {
                array = canonical(update.values);
                array.as_primitive::<T>()
            }
            false => update.values.as_primitive::<T>(),
        };
        match self.choice {
            Choice::Least => each(groups, values, |group, value| {
                if value.is_lt(kept[group]) {
                    kept[group] = value;
                }
            }),
            Choice::Greatest => each(groups, values, |group, value| {
                if value.is_gt(kept[group]) {
                    kept[group] = value;
                }
            }),
            Choice::First => each(groups, values, |group, value| {
                if !is_set[group] {
                    (kept[group], is_set[group]) = (value, true);
                }
            }),
            Choice::Last => each(groups, values, |group, value| {
                (kept[group], is_set[group]) = (value, true);
            }),
        }
        Ok(())
    }

    fn grow(&mut self, len: usize, budget: &mut Budget) -> Result<(), BudgetFull> {
        let worst = self.worst();
        grow(WHAT, &mut self.values, len, worst, budget)?;
        if !self.choice.is_of_order() {
            grow(WHAT, &mut self.has_value, len, false, budget)?;
        }
        Ok(())
    }

    fn merge(
        &mut self,
        other: &dyn Any,
        numbers: &[u32],
        _: &mut Budget,
    ) -> Result<(), OperatorError> {
        let other = other.downcast_ref::<Self>().expect("workers have like accumulators");
        for (from, &to) in numbers.iter().enumerate() {
            let (to, value) = (to as usize, other.values[from]);
            let is_better = match self.choice {
                Choice::Least => value.is_lt(self.values[to]),
                Choice::Greatest => value.is_gt(self.values[to]),
                Choice::First => other.has_value[from] && !self.has_value[to],
                Choice::Last => other.has_value[from],
            };
            if is_better {
                self.values[to] = value;
                if !self.choice.is_of_order() {
                    self.has_value[to] = true;
                }
            }
        }
        Ok(())
    }

    fn finish(&self, finish: &Finish<'_>) -> Result<ArrayRef, OperatorError> {
        let mut column = PrimitiveBuilder::<T>::with_capacity(finish.groups.len());
        for &group in finish.groups {
            column.append_option(finish.valid(group, || self.values[group as usize]));
        }
        let data = column.finish().into_data().into_builder().data_type(finish.kind.clone());
        Ok(make_array(data.build()?))
    }
}

/// Values of other types, as bytes.
#[derive(Clone)]
struct Encoded {
    choice: Choice,
    encoder: Arc<Encoder>,
    /// The bytes of each value; empty if a group has no value.
    values: Vec<Vec<u8>>,
}

impl Encoded {
    fn choose(
        &mut self,
        group: usize,
        value: &[u8],
        budget: &mut Budget,
    ) -> Result<(), BudgetFull> {
        let kept = &mut self.values[group];
        let is_better = kept.is_empty()
            || match self.choice {
                Choice::Least => value < &kept[..],
                Choice::Greatest => value > &kept[..],
                Choice::First => false,
                Choice::Last => true,
            };
        if is_better {
            if value.len() > kept.capacity() {
                // The old value needs no copy.
                budget.take(WHAT, value.len())?;
                budget.give_back(kept.capacity());
                *kept = Vec::new();
                kept.reserve_exact(value.len());
            }
            kept.clear();
            kept.extend_from_slice(value);
        }
        Ok(())
    }
}

impl Accumulator for Encoded {
    fn copy(&self) -> Box<dyn Accumulator> {
        Box::new(self.clone())
    }

    fn update(&mut self, update: &mut Update<'_>) -> Result<(), OperatorError> {
        self.grow(update.len, update.budget)?;
        let (groups, values) = update.valid()?;
        let encoded = self.encoder.encode_bytes(&[values])?;
        for (row, &group) in groups.values().iter().enumerate() {
            self.choose(group as usize, encoded.value(row), update.budget)?;
        }
        Ok(())
    }

    fn grow(&mut self, len: usize, budget: &mut Budget) -> Result<(), BudgetFull> {
        grow(WHAT, &mut self.values, len, Vec::new(), budget)
    }

    fn merge(
        &mut self,
        other: &dyn Any,
        numbers: &[u32],
        budget: &mut Budget,
    ) -> Result<(), OperatorError> {
        let other = other.downcast_ref::<Self>().expect("workers have like accumulators");
        for (value, &to) in other.values.iter().zip(numbers) {
            if !value.is_empty() {
                self.choose(to as usize, value, budget)?;
            }
        }
        Ok(())
    }

    fn finish(&self, finish: &Finish<'_>) -> Result<ArrayRef, OperatorError> {
        let kept = finish.groups.iter().map(|&group| &self.values[group as usize]);
        let kept = kept.filter(|value| !value.is_empty()).map(|value| &value[..]);
        let values = self.encoder.decode_bytes(kept)?.remove(0);
        let mut next = 0;
        let places = finish.groups.iter().map(|&group| {
            finish.valid(group, || {
                next += 1;
                next - 1
            })
        });
        let places: arrow_array::UInt64Array = places.collect();
        if values.is_empty() {
            return Ok(arrow_array::new_null_array(finish.kind, places.len()));
        }
        Ok(take(&values, &places, None)?)
    }

    fn value_bytes(&self, group: u32) -> usize {
        self.values[group as usize].len()
    }
}
