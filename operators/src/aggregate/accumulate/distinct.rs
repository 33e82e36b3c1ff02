//! Numbers of distinct values, exact: the distinct pairs of a group and a value are groups again.

use std::any::Any;
use std::sync::Arc;

use arrow_array::{ArrayRef, UInt64Array};
use arrow_schema::{ArrowError, DataType};
use trommel_engine::operator::OperatorError;

use super::{Accumulator, Finish, Update, grow};
use crate::shared::budget::{Budget, BudgetFull};
use crate::shared::groups::{Encoder, Groups, GroupsFull, KeyHash, canonical};
use crate::shared::parameters::BATCH_ITEMS;

/// The distinct values of all groups.
#[derive(Clone)]
pub(crate) struct Distinct {
    /// Keys of a group and a value.
    encoder: Arc<Encoder>,
    pairs: Groups,
    counts: Vec<u64>,
    /// The pair of each row of a batch.
    numbers: Vec<u32>,
}

impl Distinct {
    /// Distinct values of the type `kind`.
    ///
    /// # Errors
    /// If values of the type have no order.
    pub(crate) fn new(kind: &DataType, hash: KeyHash) -> Result<Self, ArrowError> {
        let encoder = Arc::new(Encoder::new(&[DataType::UInt32, kind.clone()])?);
        let pairs = Groups::new(&encoder, hash);
        Ok(Self { encoder, pairs, counts: Vec::new(), numbers: Vec::new() })
    }

    /// Adds pairs of a group and a value.
    fn add(&mut self, pairs: [ArrayRef; 2], budget: &mut Budget) -> Result<(), OperatorError> {
        use arrow_array::cast::AsArray;
        use arrow_array::types::UInt32Type;
        let known = self.pairs.len();
        let keys = self.encoder.encode(&pairs, pairs[0].len())?;
        let numbered = self.pairs.number(&keys, &mut self.numbers, budget);
        // The caller knows the number of groups.
        numbered.map_err(|error| match error {
            GroupsFull::Memory { full, .. } => OperatorError::from(full),
            error @ GroupsFull::Number => error.into(),
        })?;
        let groups = pairs[0].as_primitive::<UInt32Type>().values();
        // New pairs have numbers in the order of their first rows.
        let mut next = known;
        for (&pair, &group) in self.numbers.iter().zip(groups) {
            if pair as usize == next {
                self.counts[group as usize] += 1;
                next += 1;
            }
        }
        Ok(())
    }
}

impl Accumulator for Distinct {
    fn copy(&self) -> Box<dyn Accumulator> {
        Box::new(self.clone())
    }

    fn update(&mut self, update: &mut Update<'_>) -> Result<(), OperatorError> {
        self.grow(update.len, update.budget)?;
        let (groups, values) = update.valid()?;
        self.add([Arc::new(groups), canonical(&values)], update.budget)
    }

    fn grow(&mut self, len: usize, budget: &mut Budget) -> Result<(), BudgetFull> {
        grow("counts of distinct values", &mut self.counts, len, 0, budget)
    }

    fn merge(
        &mut self,
        other: &dyn Any,
        numbers: &[u32],
        budget: &mut Budget,
    ) -> Result<(), OperatorError> {
        use arrow_array::cast::AsArray;
        use arrow_array::types::UInt32Type;
        let other = other.downcast_ref::<Self>().expect("workers have like accumulators");
        let pairs: Vec<u32> = (0..u32::try_from(other.pairs.len())?).collect();
        for pairs in pairs.chunks(BATCH_ITEMS) {
            let mut columns = other.encoder.decode(&other.pairs, pairs)?;
            let (values, groups) = (columns.remove(1), columns.remove(0));
            let groups =
                groups.as_primitive::<UInt32Type>().unary::<_, UInt32Type>(|g| numbers[g as usize]);
            self.add([Arc::new(groups), values], budget)?;
        }
        Ok(())
    }

    fn finish(&self, finish: &Finish<'_>) -> Result<ArrayRef, OperatorError> {
        let counts = finish.groups.iter().map(|&group| self.counts[group as usize]);
        Ok(Arc::new(UInt64Array::from_iter_values(counts)))
    }
}
