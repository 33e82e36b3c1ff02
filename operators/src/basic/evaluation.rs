//! Expressions of an operator, and what becomes of the rows for which they have no value.

use arrow_array::{ArrayRef, RecordBatch};
use thiserror::Error;
use trommel_engine::operator::{Counters, OperatorError, Output};

use crate::expressions::{EvaluationError, Expression, evaluate_rows, first_failed};
use crate::rejected::{OnError, PORT, Rejected};

/// A row for which an expression has no value.
#[derive(Debug, Error)]
#[error("row {row} of the input: {error}")]
struct BadRow {
    /// Its number among the rows that the stage has got, from 1.
    row: u64,
    error: EvaluationError,
}

/// Expressions with the action for bad rows.
#[derive(Debug)]
pub(super) struct Evaluation {
    expressions: Vec<Expression>,
    on_error: OnError,
    /// Rows so far.
    rows: u64,
    skipped: u64,
    rejected: u64,
}

impl Evaluation {
    pub(super) fn new(expressions: Vec<Expression>, on_error: OnError) -> Self {
        Self { expressions, on_error, rows: 0, skipped: 0, rejected: 0 }
    }

    /// The rows that all expressions have a value for, and the columns of these values.
    pub(super) fn of(
        &mut self,
        records: &RecordBatch,
        out: &mut Output,
    ) -> Result<(RecordBatch, Vec<ArrayRef>), OperatorError> {
        let before = self.rows;
        self.rows += records.num_rows() as u64;
        let number = |index: usize| before + index as u64 + 1;
        if self.on_error == OnError::Fail {
            let columns = self.expressions.iter().map(|expression| expression.evaluate(records));
            let columns = columns.collect::<Result<Vec<_>, _>>().map_err(|error| {
                let index = first_failed(&self.expressions, records);
                let row = records.slice(index, 1.min(records.num_rows()));
                // The error of that row: the one of the batch may be that of another row.
                let of_row = self.expressions.iter().find_map(|it| it.evaluate(&row).err());
                BadRow { row: number(index), error: of_row.unwrap_or(error) }
            })?;
            return Ok((records.clone(), columns));
        }
        let evaluated = evaluate_rows(&self.expressions, records);
        let count = u64::try_from(evaluated.failed.len()).expect("a number of rows");
        if self.on_error == OnError::Skip {
            if let Some(first) = evaluated.failed.first().filter(|_| self.skipped == 0) {
                let (row, error) = (number(first.index), &first.error);
                tracing::warn!("row {row} of the input is left out: {error}; others are counted");
            }
            self.skipped += count;
        } else if count > 0 {
            self.rejected += count;
            let mut rejected = Rejected::default();
            for failed in &evaluated.failed {
                let column = self.expressions[failed.expression].text();
                rejected.add_row(&failed.row, Some(column), &failed.error.to_string());
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
