//! Operator of `write` with `by`.

use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use trommel_engine::batch::Payload;
use trommel_engine::operator::{Counters, Flow, Operator, OperatorError, Output};

use super::sheets::Sheets;
use super::values::{Sorted, Values};
use crate::expressions::ColumnInput;

/// Number of files that are completed in one call.
const COMPLETED: usize = 256;

pub(super) struct ValuesWriter {
    /// The value of each row.
    pub(super) by: ColumnInput,
    /// Indices of the input columns to write.
    pub(super) selection: Vec<usize>,
    pub(super) values: Values,
    pub(super) sheets: Sheets,
    /// Maximum time for which rows wait; `None` unless the files grow while they are read.
    pub(super) flush_after: Option<Duration>,
    /// Time at which the rows must be written.
    pub(super) due: Option<Instant>,
    /// Number of the next file to complete.
    pub(super) next: usize,
}

impl ValuesWriter {
    fn put(&mut self, records: &RecordBatch) -> Result<(), OperatorError> {
        let values = self.by.of(records)?;
        let rows = records.project(&self.selection)?;
        let begin = |value: Option<&str>| Ok::<(), OperatorError>(self.sheets.begin(value)?);
        let Sorted { rows, groups } = self.values.sort(&rows, &values, begin)?;
        for (number, range) in groups {
            self.sheets.add(number, &rows.slice(range.start, range.len()))?;
        }
        self.sheets.settle()
    }

    fn keep_time(&mut self, now: Instant) -> Result<(), OperatorError> {
        if self.due.is_some_and(|due| due <= now) {
            self.due = None;
            self.sheets.flush()?;
        }
        Ok(())
    }
}

impl Operator for ValuesWriter {
    fn process(&mut self, _: usize, input: Payload, _: &mut Output) -> Result<Flow, OperatorError> {
        self.put(&input.into_records())?;
        if let Some(after) = self.flush_after {
            let now = Instant::now();
            self.due = self.due.or_else(|| now.checked_add(after));
            self.keep_time(now)?;
        }
        Ok(Flow::NeedInput)
    }

    fn wake_at(&self) -> Option<Instant> {
        self.due
    }

    fn wake(&mut self, now: Instant, _: &mut Output) -> Result<Flow, OperatorError> {
        self.keep_time(now)?;
        Ok(Flow::NeedInput)
    }

    fn finish(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        self.sheets.flush()?;
        self.resume(out)
    }

    fn resume(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        let end = self.sheets.len().min(self.next + COMPLETED);
        for number in self.next..end {
            self.sheets.complete(number)?;
        }
        self.next = end;
        if end < self.sheets.len() {
            return Ok(Flow::HaveOutput);
        }
        out.commit_at_end(self.sheets.take_commit());
        Ok(Flow::NeedInput)
    }

    fn reopen(&mut self) -> Result<(), OperatorError> {
        Ok(self.sheets.reopen()?)
    }

    fn counters(&self) -> Counters {
        let (files, reopened) = self.sheets.files();
        vec![
            ("rows_written", self.sheets.rows_written()),
            ("files", files),
            ("files_reopened", reopened),
        ]
    }
}

impl Drop for ValuesWriter {
    /// Writes the waiting rows of growing files when the run fails elsewhere.
    fn drop(&mut self) {
        if self.flush_after.is_some() {
            // The run reports the error that ended it, so this error is dropped.
            let _ = self.sheets.flush();
        }
    }
}
