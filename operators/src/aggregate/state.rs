//! The groups of some rows, and their values.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, UInt64Array};
use arrow_schema::{ArrowError, SchemaRef};
use trommel_engine::operator::OperatorError;

use super::accumulate::{Accumulator, Counts, Finish, Update};
use super::input::Observed;
use super::parameters::plan::{Computed, Origin, Plan};
use crate::shared::budget::{Budget, BudgetFull};
use crate::shared::groups::{Groups, GroupsFull};

const WHAT: &str = "the groups";

/// Maximum rows that are sent at once.
pub(crate) const ROWS_PER_CALL: usize = 8_192;
/// Maximum bytes of texts and lists that are sent at once; a single row may have more bytes.
const BYTES_PER_CALL: usize = 16 << 20;

/// The groups and their values.
pub(crate) struct State {
    plan: Arc<Plan>,
    budget: Budget,
    groups: Groups,
    /// Number of rows of each group.
    rows: Vec<u64>,
    /// For each argument the number of nulls of each group; empty as long as there is no null. So a
    /// count costs nothing beside the number of rows.
    nulls: Vec<Vec<u64>>,
    accumulators: Vec<Box<dyn Accumulator>>,
    /// The group of each row of a batch, or of each group that is merged.
    numbers: Vec<u32>,
}

impl State {
    /// No rows.
    ///
    /// # Errors
    /// If there is no memory for the one group of all rows.
    pub(crate) fn new(plan: &Arc<Plan>, budget: Budget) -> Result<Self, OperatorError> {
        let mut empty = Self {
            budget,
            groups: Groups::new(&plan.encoder, plan.hash.clone()),
            rows: Vec::new(),
            nulls: vec![Vec::new(); plan.arguments.len()],
            accumulators: plan.accumulators.iter().map(|(_, empty)| empty.copy()).collect(),
            numbers: Vec::new(),
            plan: Arc::clone(plan),
        };
        empty.grow_counts()?;
        let len = empty.groups.len();
        let Self { accumulators, budget, .. } = &mut empty;
        accumulators.iter_mut().try_for_each(|accumulator| accumulator.grow(len, budget))?;
        Ok(empty)
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        self.budget.used()
    }

    /// Columns of the rows.
    pub(crate) fn schema(&self) -> SchemaRef {
        Arc::clone(&self.plan.schema)
    }

    /// A copy for the answer to a query, whose memory is that of the query.
    pub(crate) fn copy(&self) -> Self {
        Self {
            plan: Arc::clone(&self.plan),
            budget: Budget::new(usize::MAX),
            groups: self.groups.clone(),
            rows: self.rows.clone(),
            nulls: self.nulls.clone(),
            accumulators: self.accumulators.iter().map(|kept| kept.copy()).collect(),
            numbers: Vec::new(),
        }
    }

    /// Number of groups.
    pub(crate) fn len(&self) -> usize {
        self.groups.len()
    }

    /// Whether no row came.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.iter().all(|&rows| rows == 0)
    }

    /// Adds rows.
    pub(crate) fn add(&mut self, observed: &Observed) -> Result<(), OperatorError> {
        let keys = self.plan.encoder.encode(&observed.by, observed.rows)?;
        self.groups.number(&keys, &mut self.numbers, &mut self.budget)?;
        self.grow_counts()?;
        if self.plan.by.is_empty() {
            self.rows[0] += observed.rows as u64;
        } else {
            let rows = &mut self.rows[..];
            self.numbers.iter().for_each(|&group| rows[group as usize] += 1);
        }
        for (values, nulls) in observed.arguments.iter().zip(&mut self.nulls) {
            count_nulls(values, &self.numbers, nulls, self.groups.len(), &mut self.budget)
                .map_err(|full| full_after(self.groups.len(), full.into()))?;
        }
        for ((argument, _), accumulator) in
            self.plan.accumulators.iter().zip(&mut self.accumulators)
        {
            let mut update = Update {
                groups: &self.numbers,
                len: self.groups.len(),
                values: &observed.arguments[*argument],
                budget: &mut self.budget,
            };
            let updated = accumulator.update(&mut update);
            updated.map_err(|error| full_after(self.groups.len(), error))?;
        }
        Ok(())
    }

    /// Adds the rows of another state, which come after the rows of this one.
    pub(crate) fn merge(&mut self, other: &Self) -> Result<(), OperatorError> {
        self.groups.absorb(&other.groups, &mut self.numbers, &mut self.budget)?;
        self.grow_counts()?;
        let len = self.groups.len();
        add_counts(&mut self.rows, &other.rows, &self.numbers);
        for (nulls, others) in self.nulls.iter_mut().zip(&other.nulls) {
            if !others.is_empty() {
                grow(nulls, len, &mut self.budget)?;
                add_counts(nulls, others, &self.numbers);
            }
        }
        for (accumulator, other) in self.accumulators.iter_mut().zip(&other.accumulators) {
            let merged = accumulator
                .grow(len, &mut self.budget)
                .map_err(OperatorError::from)
                .and_then(|()| accumulator.merge(&**other, &self.numbers, &mut self.budget));
            merged.map_err(|error| full_after(len, error))?;
        }
        Ok(())
    }

    fn grow_counts(&mut self) -> Result<(), OperatorError> {
        let len = self.groups.len();
        grow(&mut self.rows, len, &mut self.budget).map_err(|full| full_after(len, full.into()))
    }

    /// The groups in the order of their rows.
    pub(crate) fn order(&mut self) -> Result<Vec<u32>, OperatorError> {
        let len = self.groups.len();
        let order = self.groups.order(&mut self.budget);
        order.map_err(|full| full_after(len, full.into()))
    }

    /// The first groups whose rows fit into a batch.
    pub(crate) fn fitting<'a>(&self, groups: &'a [u32]) -> &'a [u32] {
        let mut left = BYTES_PER_CALL;
        let fits = |&(place, &group): &(usize, &u32)| {
            let of_values = self.accumulators.iter().map(|kept| kept.value_bytes(group));
            let bytes = self.groups.key_bytes(group) + of_values.sum::<usize>();
            let fits = place == 0 || (place < ROWS_PER_CALL && bytes <= left);
            left = left.saturating_sub(bytes);
            fits
        };
        let mut len = 0;
        for place in groups.iter().enumerate().take_while(fits) {
            len = place.0 + 1;
        }
        &groups[..len]
    }

    /// The rows of some groups.
    pub(crate) fn rows(&self, groups: &[u32]) -> Result<RecordBatch, OperatorError> {
        let mut columns = self.plan.encoder.decode(&self.groups, groups)?;
        if self.plan.by.is_empty() {
            columns.clear();
        }
        for computed in &self.plan.computed {
            columns.push(self.column(computed, groups)?);
        }
        let batch = RecordBatch::try_new(Arc::clone(&self.plan.schema), columns);
        batch.map_err(ArrowError::into)
    }

    fn counts(&self, argument: usize) -> Counts<'_> {
        Counts { rows: &self.rows, nulls: &self.nulls[argument] }
    }

    fn column(&self, computed: &Computed, groups: &[u32]) -> Result<ArrayRef, OperatorError> {
        let count = |counts: Counts<'_>| -> ArrayRef {
            let counts = groups.iter().map(|&group| counts.of(group));
            Arc::new(UInt64Array::from_iter_values(counts))
        };
        match computed.origin {
            Origin::Rows => Ok(count(Counts { rows: &self.rows, nulls: &[] })),
            Origin::Values(argument) => Ok(count(self.counts(argument))),
            Origin::Accumulator(place, argument) => {
                let kind = computed.field.data_type();
                let (asked, text) = (computed.asked, &computed.text[..]);
                let counts = self.counts(argument);
                self.accumulators[place].finish(&Finish { groups, asked, kind, text, counts })
            }
        }
    }
}

/// `error` with the number of groups, if the memory is full.
fn full_after(groups: usize, error: OperatorError) -> OperatorError {
    match error.downcast::<BudgetFull>() {
        Ok(full) => GroupsFull::Memory { groups, full: *full }.into(),
        Err(other) => other,
    }
}

/// Makes `counts` `len` long.
fn grow(counts: &mut Vec<u64>, len: usize, budget: &mut Budget) -> Result<(), BudgetFull> {
    if len > counts.len() {
        budget.grow(WHAT, counts, len - counts.len())?;
        counts.resize(len, 0);
    }
    Ok(())
}

fn add_counts(counts: &mut [u64], others: &[u64], numbers: &[u32]) {
    for (&other, &to) in others.iter().zip(numbers) {
        counts[to as usize] += other;
    }
}

/// Counts the nulls of a column, if there are nulls.
fn count_nulls(
    values: &ArrayRef,
    groups: &[u32],
    counts: &mut Vec<u64>,
    len: usize,
    budget: &mut Budget,
) -> Result<(), BudgetFull> {
    // A column of the type null has no null buffer.
    let Some(nulls) = values.logical_nulls().filter(|nulls| nulls.null_count() > 0) else {
        return Ok(());
    };
    grow(counts, len, budget)?;
    for (is_valid, &group) in nulls.iter().zip(groups) {
        counts[group as usize] += u64::from(!is_valid);
    }
    Ok(())
}

/// Rows on their way out.
pub(crate) struct Unsent {
    state: State,
    order: Vec<u32>,
    next: usize,
}

impl Unsent {
    /// The rows of all groups.
    pub(crate) fn new(mut state: State) -> Result<Self, OperatorError> {
        Ok(Self { order: state.order()?, state, next: 0 })
    }

    /// The next rows; `None` if all rows have been taken.
    pub(crate) fn next_rows(&mut self) -> Result<Option<RecordBatch>, OperatorError> {
        let groups = self.state.fitting(&self.order[self.next..]);
        if groups.is_empty() {
            return Ok(None);
        }
        self.next += groups.len();
        self.state.rows(groups).map(Some)
    }
}
