//! Expressions of an operator, and what becomes of the rows for which they have no value.

use arrow_array::{ArrayRef, RecordBatch};
use trommel_engine::operator::{Counters, OperatorError, Output};

use crate::expressions::{Expression, evaluate_rows};
use crate::rejected::{OnError, PORT, Rejected};

/// Expressions with the action for bad rows.
#[derive(Debug)]
pub(super) struct Evaluation {
    expressions: Vec<Expression>,
    on_error: OnError,
    skipped: u64,
    rejected: u64,
}

impl Evaluation {
    pub(super) fn new(expressions: Vec<Expression>, on_error: OnError) -> Self {
        Self { expressions, on_error, skipped: 0, rejected: 0 }
    }

    /// The rows that all expressions have a value for, and the columns of these values.
    pub(super) fn of(
        &mut self,
        records: &RecordBatch,
        out: &mut Output,
    ) -> Result<(RecordBatch, Vec<ArrayRef>), OperatorError> {
        if self.on_error == OnError::Fail {
            let columns = self.expressions.iter().map(|expression| expression.evaluate(records));
            return Ok((records.clone(), columns.collect::<Result<Vec<_>, _>>()?));
        }
        let evaluated = evaluate_rows(&self.expressions, records);
        let count = u64::try_from(evaluated.failed.len()).expect("a number of rows");
        if self.on_error == OnError::Skip {
            self.skipped += count;
        } else if count > 0 {
            self.rejected += count;
            let mut rejected = Rejected::default();
            for (row, number, error) in &evaluated.failed {
                let column = self.expressions[*number].text();
                rejected.add_row(row, Some(column), &error.to_string());
            }
            out.send_to(PORT, rejected.take());
        }
        Ok((evaluated.records, evaluated.columns))
    }

    pub(super) fn counters(&self) -> Counters {
        match self.on_error {
            OnError::Fail => Counters::new(),
            OnError::Skip => vec![("skipped", self.skipped)],
            OnError::Reject => vec![("rejected", self.rejected)],
        }
    }
}
