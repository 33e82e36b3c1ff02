//! Expressions over the rows of a batch, in which some rows may have no value.

use arrow_array::{ArrayRef, RecordBatch};
use arrow_select::concat::concat;

use crate::expressions::{EvaluationError, Expression};

/// Values of several expressions, for the rows of a batch in which all expressions have a value.
#[derive(Debug)]
pub(crate) struct Evaluated {
    /// The rows in which all expressions have a value.
    pub(crate) records: RecordBatch,
    /// The column of each expression.
    pub(crate) columns: Vec<ArrayRef>,
    /// The rows in which an expression has no value.
    pub(crate) failed: Vec<FailedRow>,
}

/// A row for which an expression has no value.
#[derive(Debug)]
pub(crate) struct FailedRow {
    /// Place of the row in the batch, from 0.
    pub(crate) index: usize,
    /// The number of the first expression that has no value for the row, from 0.
    pub(crate) expression: usize,
    pub(crate) error: EvaluationError,
}

/// Evaluates all `expressions`, and sets aside the rows for which an expression fails.
///
/// # Cost
/// A batch with a failing row is evaluated in halves, and each half with a failing row again in
/// halves. If k of n rows fail, at most 2 k log2(n) + 1 parts are evaluated (log2 rounded up), and
/// never more than 2 n - 1 parts. Each row is in at most log2(n) + 1 parts.
pub(crate) fn evaluate_rows(expressions: &[Expression], records: &RecordBatch) -> Evaluated {
    let mut parts = Vec::new();
    let mut failed = Vec::new();
    divide(expressions, (records, 0), &mut parts, &mut failed);
    if let [(records, columns)] = &mut parts[..] {
        let (records, columns) = (records.clone(), std::mem::take(columns));
        return Evaluated { records, columns, failed };
    }
    let batches: Vec<&RecordBatch> = parts.iter().map(|(records, _)| records).collect();
    let joined = arrow_select::concat::concat_batches(&records.schema(), batches);
    let column = |number: usize| {
        let parts: Vec<&dyn arrow_array::Array> =
            parts.iter().map(|(_, columns)| columns[number].as_ref()).collect();
        if parts.is_empty() {
            return arrow_array::new_empty_array(expressions[number].data_type());
        }
        concat(&parts).expect("parts of one column have one type")
    };
    let columns = (0..expressions.len()).map(column).collect();
    Evaluated { records: joined.expect("parts of one batch"), columns, failed }
}

/// The place of the first row for which an expression has no value, after an expression has failed
/// for the batch.
///
/// # Cost
/// The expressions are evaluated over log2(n) parts of the n rows, which have fewer than n rows in
/// all.
pub(crate) fn first_failed(expressions: &[Expression], records: &RecordBatch) -> usize {
    let fails = |rows: &RecordBatch| {
        expressions.iter().any(|expression| expression.evaluate(rows).is_err())
    };
    let (mut begin, mut count) = (0, records.num_rows());
    while count > 1 {
        let half = count / 2;
        if fails(&records.slice(begin, half)) {
            count = half;
        } else {
            (begin, count) = (begin + half, count - half);
        }
    }
    begin
}

/// Adds the values of `records` to `parts`, and the failing rows to `failed`. `begin` is the place
/// of the first row of `records` in the batch.
fn divide(
    expressions: &[Expression],
    (records, begin): (&RecordBatch, usize),
    parts: &mut Vec<(RecordBatch, Vec<ArrayRef>)>,
    failed: &mut Vec<FailedRow>,
) {
    if records.num_rows() == 0 {
        return;
    }
    let mut columns = Vec::with_capacity(expressions.len());
    for (number, expression) in expressions.iter().enumerate() {
        match expression.evaluate(records) {
            Ok(column) => columns.push(column),
            Err(error) if records.num_rows() == 1 => {
                failed.push(FailedRow { index: begin, expression: number, error });
                return;
            }
            Err(_) => {
                let half = records.num_rows() / 2;
                divide(expressions, (&records.slice(0, half), begin), parts, failed);
                let rest = records.slice(half, records.num_rows() - half);
                divide(expressions, (&rest, begin + half), parts, failed);
                return;
            }
        }
    }
    parts.push((records.clone(), columns));
}
