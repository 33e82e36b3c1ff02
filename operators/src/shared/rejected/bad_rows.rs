//! Rows of batches that an operator cannot use.
//!
//! ```text
//! batch ──► columns, where values are missing ──► faults ──► settled: an error, a count, or rows
//!           nulls stand in their place                       of the output `rejected`
//! ```
//!
//! Operators leave rows with nulls out. A row with a fault therefore becomes a null: the row keeps
//! its place, and its position, which may be its id.

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::slice;
use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BooleanArray, RecordBatch, UInt64Array, make_array, new_null_array,
};
use arrow_buffer::{BooleanBufferBuilder, NullBuffer};
use arrow_schema::{ArrowError, DataType};
use arrow_select::concat::concat;
use arrow_select::take::take;
use thiserror::Error;
use trommel_engine::operator::{Counters, NamedInputs, OperatorError};

use crate::expressions::{ColumnInput, Expression, evaluate_rows, first_failed};
use crate::shared::rejected::{NAMED_MAX, OnError, Rejected, json};

/// A row that cannot be used.
#[derive(Debug, Error)]
#[error("{row} of {}: {reason}{hint}", input_name(*.input))]
struct BadRow {
    row: RowName,
    /// Number of the input, from 1, if there are several.
    input: Option<usize>,
    reason: String,
    hint: &'static str,
}

/// The name of a row in a message.
#[derive(Debug)]
enum RowName {
    /// Number of the row among the rows of the input, from 1.
    Number(u64),
    /// The beginning of the row as JSON, where the number is not known.
    Text(String),
}

impl Display for RowName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "row {number}"),
            Self::Text(text) => write!(f, "the row {text}"),
        }
    }
}

/// Maximum characters of a row in a message.
const ROW_CHARS_MAX: usize = 200;

fn input_name(input: Option<usize>) -> String {
    input.map_or_else(|| "the input".to_owned(), |input| format!("input {input}"))
}

/// The reason why a row of a batch cannot be used.
#[derive(Debug)]
struct Fault {
    /// The column or expression at fault.
    column: String,
    reason: String,
}

/// Faults of the rows of a batch; of each row, the first fault.
#[derive(Debug)]
pub(crate) struct Faults {
    action: Option<OnError>,
    rows: BTreeMap<usize, Fault>,
}

impl Faults {
    /// Whether a null is a fault. If a null is no fault, rows with nulls are left out.
    pub(crate) fn have_nulls(&self) -> bool {
        self.action.is_some()
    }

    /// Whether the row has a fault.
    pub(crate) fn has(&self, row: usize) -> bool {
        self.rows.contains_key(&row)
    }

    /// Whether no row has a fault.
    pub(crate) fn are_none(&self) -> bool {
        self.rows.is_empty()
    }

    /// The rows that have a fault, ascending.
    pub(crate) fn rows(&self) -> impl Iterator<Item = usize> {
        self.rows.keys().copied()
    }

    /// Notes that the row cannot be used because of `column`.
    pub(crate) fn note(&mut self, row: usize, column: &str, reason: impl Display) {
        let fault = || Fault { column: column.to_owned(), reason: reason.to_string() };
        // The first fault of a row is reported, since a later fault may follow from the null in the
        // place of the value.
        self.rows.entry(row).or_insert_with(fault);
    }

    /// Notes the rows that are null, if a null is a fault. `value` is the name of a value in
    /// messages.
    pub(crate) fn note_nulls(&mut self, nulls: Option<&NullBuffer>, column: &str, value: &str) {
        let Some(nulls) = nulls.filter(|nulls| self.have_nulls() && nulls.null_count() > 0) else {
            return;
        };
        let rows = (0..nulls.len()).filter(|&row| nulls.is_null(row));
        rows.for_each(|row| self.note(row, column, format_args!("{value} is null")));
    }

    /// The values of a column or an expression, with nulls in the rows in which the expression has
    /// no value. Such rows are noted as faults.
    pub(crate) fn values(
        &mut self,
        input: &ColumnInput,
        records: &RecordBatch,
    ) -> Result<ArrayRef, ArrowError> {
        match input {
            ColumnInput::Column(index) => Ok(Arc::clone(records.column(*index))),
            ColumnInput::Expression(expression) => self.evaluate(expression, records),
        }
    }

    /// As [`Self::values`].
    pub(crate) fn evaluate(
        &mut self,
        expression: &Expression,
        records: &RecordBatch,
    ) -> Result<ArrayRef, ArrowError> {
        let error = match expression.evaluate(records) {
            Ok(values) => return Ok(values),
            Err(error) => error,
        };
        let nulls = |rows| new_null_array(expression.data_type(), rows);
        let count = records.num_rows();
        if !self.action.is_some_and(OnError::goes_on) {
            // The run ends with this row, or with an earlier row that has another fault.
            let row = first_failed(slice::from_ref(expression), records);
            let one = expression.evaluate(&records.slice(row, 1.min(count)));
            self.note(row, expression.text(), one.err().unwrap_or(error));
            let before = expression.evaluate(&records.slice(0, row));
            let before = before.unwrap_or_else(|_| nulls(row));
            return concat(&[before.as_ref(), nulls(count - row).as_ref()]);
        }
        let evaluated = evaluate_rows(slice::from_ref(expression), records);
        let mut failed = evaluated.failed.iter().map(|failed| failed.index).peekable();
        let mut next = 0;
        let places = (0..count).map(|row| {
            if failed.next_if_eq(&row).is_some() {
                return None;
            }
            next += 1;
            Some(next - 1)
        });
        let places: UInt64Array = places.collect();
        for failed in &evaluated.failed {
            self.note(failed.index, expression.text(), &failed.error);
        }
        // If the expression has no value in any row, no value can be taken, not even for nulls.
        let values = &evaluated.columns[0];
        if values.is_empty() { Ok(nulls(count)) } else { take(values, &places, None) }
    }

    /// Whether each of the `rows` rows of the batch has no fault; `None` if no row has a fault.
    pub(crate) fn usable(&self, rows: usize) -> Option<BooleanArray> {
        if self.are_none() {
            return None;
        }
        let mut usable = BooleanBufferBuilder::new(rows);
        usable.append_n(rows, true);
        self.rows.keys().for_each(|&row| usable.set_bit(row, false));
        Some(BooleanArray::new(usable.finish(), None))
    }

    /// `values`, with nulls in the rows that have a fault.
    pub(crate) fn hide(&self, values: &dyn Array) -> ArrayRef {
        let usable = self.usable(values.len()).map(|usable| NullBuffer::new(usable.into_parts().0));
        // A column of type null has only nulls already, and has no null buffer.
        if usable.is_none() || *values.data_type() == DataType::Null {
            return make_array(values.to_data());
        }
        let nulls = NullBuffer::union(values.nulls(), usable.as_ref());
        let hidden = values.to_data().into_builder().nulls(nulls).build();
        make_array(hidden.expect("a bit for each value"))
    }
}

/// The rows that an operator cannot use.
#[derive(Debug, Clone)]
pub(crate) struct BadRows {
    /// The action for bad rows. Without an action, nulls are left out, and any other fault ends the
    /// run.
    action: Option<OnError>,
    /// Rows of each input so far.
    rows: Vec<u64>,
    /// Whether other operators get rows of the same inputs, so that rows have no numbers here.
    is_copied: bool,
    /// Number of rows that were left out or rejected so far, and the first such rows.
    count: u64,
    first: Vec<Arc<str>>,
    /// Rejected rows of the last batch.
    rejected: Option<RecordBatch>,
}

impl BadRows {
    /// The bad rows of `inputs` inputs.
    pub(crate) fn new(action: Option<OnError>, inputs: usize) -> Self {
        let (rows, first, rejected) = (vec![0; inputs], Vec::new(), None);
        Self { action, rows, is_copied: false, count: 0, first, rejected }
    }

    /// Names rows by their content, since other copies of the operator get rows of the same inputs.
    pub(crate) fn are_of_a_copy(&mut self) {
        self.is_copied = true;
    }

    /// The faults of the next batch, which has no faults yet.
    pub(crate) fn faults(&self) -> Faults {
        Faults { action: self.action, rows: BTreeMap::new() }
    }

    /// Applies the action to the rows of a batch of `input` that have faults.
    ///
    /// # Errors
    /// If a row has a fault, and the action is to fail.
    pub(crate) fn settle(
        &mut self,
        input: usize,
        records: &RecordBatch,
        faults: &Faults,
    ) -> Result<(), OperatorError> {
        let before = self.rows[input];
        self.rows[input] += records.num_rows() as u64;
        let name = |row: usize| match self.is_copied {
            false => RowName::Number(before + row as u64 + 1),
            true => {
                let text = json(&records.slice(row, 1));
                let end = text.char_indices().nth(ROW_CHARS_MAX).map_or(text.len(), |(end, _)| end);
                let rest = if end < text.len() { "…" } else { "" };
                RowName::Text(format!("{}{rest}", &text[..end]))
            }
        };
        let input = (self.rows.len() > 1).then_some(input + 1);
        let Some((&row, first)) = faults.rows.first_key_value() else { return Ok(()) };
        if !self.action.is_some_and(OnError::goes_on) {
            let (row, reason) = (name(row), first.reason.clone());
            let hint = "; `on_error` leaves such rows out or rejects them";
            return Err(BadRow { row, input, reason, hint }.into());
        }
        // Texts are made of bad rows only, so that good rows cost only a look at the empty map.
        let mut rejected = Rejected::default();
        for (&row, Fault { column, reason }) in &faults.rows {
            if self.first.len() < NAMED_MAX {
                let (row, reason) = (name(row), reason.clone());
                let named = BadRow { row, input, reason, hint: "" }.to_string();
                if self.action == Some(OnError::Skip) && self.first.is_empty() {
                    tracing::warn!("left out: {named}; further rows are counted");
                }
                self.first.push(named.into());
            }
            if self.action == Some(OnError::Reject) {
                rejected.add_row(&records.slice(row, 1), Some(column), reason);
            }
        }
        self.count += faults.rows.len() as u64;
        self.rejected = (rejected.rows() > 0).then(|| rejected.take());
        Ok(())
    }

    /// Whether a null is a fault. If a null is no fault, rows with nulls are left out.
    pub(crate) fn have_nulls(&self) -> bool {
        self.action.is_some()
    }

    /// Takes the rejected rows of a batch that has been settled.
    pub(crate) fn take_rejected(&mut self) -> Option<RecordBatch> {
        self.rejected.take()
    }

    /// The counter of bad rows; empty if no row can be bad, or if the first bad row ends the run.
    pub(crate) fn counters(&self) -> Counters {
        match self.action {
            None | Some(OnError::Fail) => Counters::new(),
            Some(OnError::Skip) => vec![("skipped", self.count)],
            Some(OnError::Reject) => vec![("rejected", self.count)],
        }
    }

    /// The first bad rows.
    pub(crate) fn named(&self) -> NamedInputs {
        NamedInputs { left_out: self.first.clone(), positions: Vec::new() }
    }
}
