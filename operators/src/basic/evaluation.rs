//! Expressions of an operator, and the action for rows in which an expression has no value.

use arrow_array::{ArrayRef, RecordBatch};
use trommel_engine::operator::{Counters, NamedInputs, OperatorError, Output};

use crate::expressions::{Expression, evaluate_rows, first_failed};
use crate::shared::rejected::{BadRows, OnError, PORT};

/// Expressions, with the action for bad rows.
#[derive(Debug, Clone)]
pub(super) struct Evaluation {
    expressions: Vec<Expression>,
    on_error: OnError,
    bad: BadRows,
}

impl Evaluation {
    pub(super) fn new(expressions: Vec<Expression>, on_error: OnError) -> Self {
        Self { expressions, on_error, bad: BadRows::new(Some(on_error), 1) }
    }

    /// As [`BadRows::are_of_a_copy`].
    pub(super) fn is_of_a_copy(&mut self) {
        self.bad.are_of_a_copy();
    }

    /// The rows in which all expressions have a value, and the columns of the values.
    pub(super) fn of(
        &mut self,
        records: &RecordBatch,
        out: &mut Output,
    ) -> Result<(RecordBatch, Vec<ArrayRef>), OperatorError> {
        if !self.on_error.goes_on() {
            return self.of_all(records);
        }
        let evaluated = evaluate_rows(&self.expressions, records);
        let mut faults = self.bad.faults();
        for failed in &evaluated.failed {
            faults.note(failed.index, self.expressions[failed.expression].text(), &failed.error);
        }
        self.bad.settle(0, records, &faults)?;
        self.bad.take_rejected().into_iter().for_each(|rows| out.send_to(PORT, rows));
        Ok((evaluated.records, evaluated.columns))
    }

    /// All rows, and the columns of the values.
    fn of_all(
        &mut self,
        records: &RecordBatch,
    ) -> Result<(RecordBatch, Vec<ArrayRef>), OperatorError> {
        let mut faults = self.bad.faults();
        let mut columns = Vec::with_capacity(self.expressions.len());
        for expression in &self.expressions {
            match expression.evaluate(records) {
                Ok(column) => columns.push(column),
                Err(error) => {
                    let index = first_failed(&self.expressions, records);
                    let row = records.slice(index, 1.min(records.num_rows()));
                    // The error of this row, since the error of the batch may be the error of
                    // another row.
                    let of_row = self.expressions.iter().find_map(|it| it.evaluate(&row).err());
                    faults.note(index, expression.text(), of_row.unwrap_or(error));
                    break;
                }
            }
        }
        self.bad.settle(0, records, &faults)?;
        Ok((records.clone(), columns))
    }

    pub(super) fn counters(&self) -> Counters {
        self.bad.counters()
    }

    pub(super) fn named(&self) -> NamedInputs {
        self.bad.named()
    }
}
