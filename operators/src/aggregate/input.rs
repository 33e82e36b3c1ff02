//! From batches to the columns of groups and arguments.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_cast::cast;
use arrow_select::filter::filter;
use trommel_engine::operator::{Counters, NamedInputs, OperatorError, Output};

use super::parameters::plan::Plan;
use crate::shared::groups::{canonical, plain};
use crate::shared::rejected::{BadRows, OnError, PORT};

/// The columns of some rows.
#[derive(Debug)]
pub(crate) struct Observed {
    pub(crate) rows: usize,
    /// The columns of the groups.
    pub(crate) by: Vec<ArrayRef>,
    /// The column of each argument.
    pub(crate) arguments: Vec<ArrayRef>,
}

impl Observed {
    /// Some of the rows.
    pub(crate) fn part(&self, rows: Range<usize>) -> Self {
        let slice = |column: &ArrayRef| column.slice(rows.start, rows.len());
        Self {
            rows: rows.len(),
            by: self.by.iter().map(slice).collect(),
            arguments: self.arguments.iter().map(slice).collect(),
        }
    }
}

/// Reads batches.
#[derive(Debug)]
pub(crate) struct Input {
    plan: Arc<Plan>,
    bad: BadRows,
}

impl Input {
    pub(crate) fn new(plan: &Arc<Plan>, on_error: Option<OnError>) -> Self {
        let bad = BadRows::new(Some(on_error.unwrap_or_default()), 1);
        Self { plan: Arc::clone(plan), bad }
    }

    /// The work of the operator.
    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// As [`BadRows::are_of_a_copy`].
    pub(crate) fn is_of_a_copy(&mut self) {
        self.bad.are_of_a_copy();
    }

    /// The columns of the rows of a batch in which all expressions have a value.
    pub(crate) fn read(
        &mut self,
        records: &RecordBatch,
        out: &mut Output,
    ) -> Result<Observed, OperatorError> {
        let mut faults = self.bad.faults();
        let mut columns = Vec::with_capacity(self.plan.by.len() + self.plan.arguments.len());
        for expression in self.plan.by.iter().chain(&self.plan.arguments) {
            columns.push(faults.evaluate(expression, records)?);
        }
        self.bad.settle(0, records, &faults)?;
        self.bad.take_rejected().into_iter().for_each(|rows| out.send_to(PORT, rows));
        let usable = faults.usable(records.num_rows());
        for column in &mut columns {
            if let Some(usable) = &usable {
                *column = filter(column, usable)?;
            }
            let plain = plain(column.data_type());
            if plain != *column.data_type() {
                *column = cast(column, &plain)?;
            }
        }
        let rows = usable.map_or(records.num_rows(), |usable| usable.true_count());
        let arguments = columns.split_off(self.plan.by.len());
        let by = columns.iter().map(canonical).collect();
        Ok(Observed { rows, by, arguments })
    }

    pub(crate) fn counters(&self) -> Counters {
        self.bad.counters()
    }

    pub(crate) fn named(&self) -> NamedInputs {
        self.bad.named()
    }
}
