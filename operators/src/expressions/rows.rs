//! Expressions over the rows of a batch of which some may have no value.

use arrow_array::{ArrayRef, RecordBatch};
use arrow_select::concat::concat;

use super::{EvaluationError, Expression};

/// Values of several expressions for the rows of a batch that have all of them.
#[derive(Debug)]
pub(crate) struct Evaluated {
    /// The rows.
    pub(crate) records: RecordBatch,
    /// The column of each expression.
    pub(crate) columns: Vec<ArrayRef>,
    /// The other rows, with the number of the expression at fault.
    pub(crate) failed: Vec<(RecordBatch, usize, EvaluationError)>,
}

/// Evaluates all `expressions`, and sets the rows aside for which one of them fails.
///
/// # Cost
/// A batch with a failing row is evaluated in halves, which are evaluated in halves in turn: n rows
/// of which k fail take the time of at most k log n parts, and never more than that of 2 n rows one
/// by one.
pub(crate) fn evaluate_rows(expressions: &[Expression], records: &RecordBatch) -> Evaluated {
    let mut parts = Vec::new();
    let mut failed = Vec::new();
    divide(expressions, records, &mut parts, &mut failed);
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

fn divide(
    expressions: &[Expression],
    records: &RecordBatch,
    parts: &mut Vec<(RecordBatch, Vec<ArrayRef>)>,
    failed: &mut Vec<(RecordBatch, usize, EvaluationError)>,
) {
    if records.num_rows() == 0 {
        return;
    }
    let mut columns = Vec::with_capacity(expressions.len());
    for (number, expression) in expressions.iter().enumerate() {
        match expression.evaluate(records) {
            Ok(column) => columns.push(column),
            Err(error) if records.num_rows() == 1 => {
                failed.push((records.clone(), number, error));
                return;
            }
            Err(_) => {
                let half = records.num_rows() / 2;
                divide(expressions, &records.slice(0, half), parts, failed);
                let rest = records.slice(half, records.num_rows() - half);
                divide(expressions, &rest, parts, failed);
                return;
            }
        }
    }
    parts.push((records.clone(), columns));
}
