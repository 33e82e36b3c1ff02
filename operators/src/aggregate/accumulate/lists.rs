//! All values of each group, in their order.
//!
//! Values are kept as the columns in which they came, and beside each value the number of its
//! group. When rows are made, the places of the values are sorted by group. So a value costs
//! nothing but its own bytes and 4 bytes, and no group has memory of its own.

use std::any::Any;
use std::sync::{Arc, OnceLock};

use arrow_array::{Array, ArrayRef, ListArray, UInt32Array, new_empty_array};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{ArrowError, DataType, Field};
use arrow_select::concat::concat;
use arrow_select::interleave::interleave;
use arrow_select::take::take;
use thiserror::Error;
use trommel_engine::operator::OperatorError;

use super::{Accumulator, Finish, Update};
use crate::shared::budget::{Budget, BudgetFull};

const WHAT: &str = "lists";
/// Maximum values of a part that is joined with the next part, so that there are few parts.
const PART_MAX: usize = 1 << 13;

/// A list has more values than a column of lists can have.
#[derive(Debug, Error)]
#[error("`{call}`: {values} values of a group are more than a list can have, {}", i32::MAX)]
struct ListsFull {
    call: String,
    values: usize,
}

/// Values and the groups of the values.
#[derive(Debug, Clone)]
struct Part {
    values: ArrayRef,
    groups: UInt32Array,
}

/// The lists of all groups.
#[derive(Debug, Clone)]
pub(crate) struct Lists {
    kind: DataType,
    parts: Vec<Part>,
    groups: usize,
    order: OnceLock<Order>,
}

/// Places of values by group.
#[derive(Debug, Clone)]
struct Order {
    /// Part and place in the part of each value.
    places: Vec<(u32, u32)>,
    /// The end of the places of each group.
    ends: Vec<usize>,
}

impl Lists {
    /// Lists of values of the type `kind`.
    pub(crate) fn new(kind: &DataType) -> Self {
        Self { kind: kind.clone(), parts: Vec::new(), groups: 0, order: OnceLock::new() }
    }

    /// The type of a list of values of the type `kind`.
    pub(crate) fn list_type(kind: &DataType) -> DataType {
        DataType::List(Arc::new(Field::new_list_field(kind.clone(), true)))
    }

    fn add(&mut self, part: Part, budget: &mut Budget) -> Result<(), OperatorError> {
        if part.groups.is_empty() {
            return Ok(());
        }
        // A group and a place for each value, and the value.
        let bytes = |part: &Part| {
            let values = part.values.to_data().get_slice_memory_size()?;
            Ok::<_, ArrowError>(values + part.groups.len() * (4 + size_of::<(u32, u32)>()))
        };
        budget.take(WHAT, bytes(&part)?)?;
        // A part is joined with all parts before it that are not much larger. So each value is
        // copied a logarithmic number of times.
        let (mut begin, mut len) = (self.parts.len(), part.groups.len());
        while let Some(before) = begin.checked_sub(1) {
            let more = self.parts[before].groups.len();
            if more > PART_MAX || more > 2 * len {
                break;
            }
            (begin, len) = (before, len + more);
        }
        self.parts.push(part);
        let run = &self.parts[begin..];
        if run.len() > 1 {
            let values: Vec<&dyn Array> = run.iter().map(|part| part.values.as_ref()).collect();
            let values = concat(&values)?;
            let groups = run.iter().flat_map(|part| part.groups.values().iter().copied());
            let joined = Part { values, groups: groups.collect() };
            let old = run.iter().map(bytes).sum::<Result<usize, ArrowError>>()?;
            budget.give_back(old);
            self.parts.truncate(begin);
            budget.take(WHAT, bytes(&joined)?)?;
            self.parts.push(joined);
        }
        Ok(())
    }

    fn order(&self) -> &Order {
        self.order.get_or_init(|| {
            let mut ends = vec![0; self.groups];
            for part in &self.parts {
                part.groups.values().iter().for_each(|&group| ends[group as usize] += 1);
            }
            let mut sum = 0;
            for end in &mut ends {
                let begin = sum;
                sum += *end;
                *end = begin;
            }
            let mut places = vec![(0, 0); sum];
            let place = |place: usize| u32::try_from(place).expect("a batch has fewer values");
            for (number, part) in self.parts.iter().enumerate() {
                for (row, &group) in part.groups.values().iter().enumerate() {
                    let end = &mut ends[group as usize];
                    places[*end] = (place(number), place(row));
                    *end += 1;
                }
            }
            Order { places, ends }
        })
    }

    /// The places of the values of a group.
    fn places(&self, group: u32) -> &[(u32, u32)] {
        let (order, group) = (self.order(), group as usize);
        let begin = group.checked_sub(1).map_or(0, |before| order.ends[before]);
        &order.places[begin..order.ends[group]]
    }
}

impl Accumulator for Lists {
    fn copy(&self) -> Box<dyn Accumulator> {
        Box::new(self.clone())
    }

    fn update(&mut self, update: &mut Update<'_>) -> Result<(), OperatorError> {
        self.grow(update.len, update.budget)?;
        self.order = OnceLock::new();
        let (groups, values) = update.valid()?;
        // A copy of the values alone: a column may be a small part of a large buffer.
        let all = UInt32Array::from_iter_values(0..u32::try_from(groups.len())?);
        let values = take(&values, &all, None)?;
        self.add(Part { values, groups }, update.budget)
    }

    fn grow(&mut self, len: usize, budget: &mut Budget) -> Result<(), BudgetFull> {
        let more = len.saturating_sub(self.groups);
        budget.take(WHAT, more * size_of::<usize>())?;
        self.groups += more;
        Ok(())
    }

    fn merge(
        &mut self,
        other: &dyn Any,
        numbers: &[u32],
        budget: &mut Budget,
    ) -> Result<(), OperatorError> {
        let other = other.downcast_ref::<Self>().expect("workers have like accumulators");
        self.order = OnceLock::new();
        for Part { values, groups } in &other.parts {
            let groups = groups.values().iter().map(|&group| numbers[group as usize]);
            let part = Part { values: ArrayRef::clone(values), groups: groups.collect() };
            self.add(part, budget)?;
        }
        Ok(())
    }

    fn finish(&self, finish: &Finish<'_>) -> Result<ArrayRef, OperatorError> {
        let DataType::List(field) = finish.kind else { unreachable!("a column of lists") };
        let lists = finish.groups.iter().map(|&group| self.places(group));
        let values = lists.clone().map(<[_]>::len).sum::<usize>();
        if i32::try_from(values).is_err() {
            return Err(ListsFull { call: finish.text.to_owned(), values }.into());
        }
        let offsets = OffsetBuffer::<i32>::from_lengths(lists.clone().map(<[_]>::len));
        let places: Vec<(usize, usize)> = lists
            .flat_map(|places| places.iter().map(|&(part, row)| (part as usize, row as usize)))
            .collect();
        let parts: Vec<&dyn Array> = self.parts.iter().map(|part| part.values.as_ref()).collect();
        let values = match places[..] {
            [] => new_empty_array(&self.kind),
            _ => interleave(&parts, &places)?,
        };
        let lists = ListArray::try_new(Arc::clone(field), offsets, values, Some(finish.nulls()))?;
        Ok(Arc::new(lists))
    }

    fn value_bytes(&self, group: u32) -> usize {
        self.places(group).len() * size_of::<u64>()
    }
}
