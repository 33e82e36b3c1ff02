//! The operator: encodes rows, keeps some of them back, and passes them to the target.

use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, SchemaRef};
use trommel_engine::batch::Payload;
use trommel_engine::operator::{Counters, Flow, Operator, OperatorError, Output};

use super::WriteError;
use super::encoding::Encoding;
use super::table::TableRows;
use super::target::{Reader, Target};

/// Encoded bytes that are kept back before they are written to a file.
const BUFFER_BYTES: usize = 256 << 10;

/// How rows become bytes.
pub(super) enum Form {
    /// As they come.
    Rows(Encoding),
    /// At the end.
    Table(TableRows),
}

pub(super) struct Writer {
    /// The columns of the input that are written.
    pub(super) selection: Vec<usize>,
    pub(super) schema: SchemaRef,
    pub(super) form: Form,
    pub(super) target: Target,
    /// How long rows may be kept back; only a file that is read while it grows has such a time.
    pub(super) flush_after: Option<Duration>,
    /// Encoded rows.
    pub(super) buffer: Buffer,
    pub(super) reader: Reader,
}

/// Encoded rows that have not been written.
#[derive(Default)]
pub(super) struct Buffer {
    bytes: Vec<u8>,
    rows: u64,
    /// When it must be written.
    due: Option<Instant>,
    /// Rows that were written before.
    rows_written: u64,
}

impl Writer {
    fn encode_error(&self, source: ArrowError) -> WriteError {
        WriteError::Encode { path: self.target.name().to_owned(), source }
    }

    /// Adds rows to the buffer; in a file with a limit, only as many as it has room for.
    fn put(&mut self, rows: &RecordBatch) -> Result<(), WriteError> {
        let Form::Rows(encoding) = self.form else { return Ok(()) };
        let before = self.buffer.bytes.len();
        encoding.add(rows, &mut self.buffer.bytes).map_err(|error| self.encode_error(error))?;
        let Some(has_rows) = self.is_too_large(before)? else {
            self.buffer.rows += rows.num_rows() as u64;
            return Ok(());
        };
        let count = rows.num_rows();
        if count > 1 {
            self.buffer.bytes.truncate(before);
            self.put(&rows.slice(0, count / 2))?;
            return self.put(&rows.slice(count / 2, count - count / 2));
        }
        if has_rows {
            self.buffer.bytes.truncate(before);
            self.rotate()?;
            return self.put(rows);
        }
        self.buffer.rows += 1;
        Ok(())
    }

    /// With what is in the buffer, the file has more bytes than it may; and whether it has rows
    /// besides those behind `before` in the buffer.
    fn is_too_large(&mut self, before: usize) -> Result<Option<bool>, WriteError> {
        let Target::Log(log) = &mut self.target else { return Ok(None) };
        let Some(most) = log.bytes_max() else { return Ok(None) };
        let len = log.begin().map_err(|error| self.buffer.blame(error))?;
        let is_larger = len + self.buffer.bytes.len() as u64 > most;
        Ok(is_larger.then(|| !log.is_fresh(len + before as u64)))
    }

    fn rotate(&mut self) -> Result<(), WriteError> {
        self.flush()?;
        let Target::Log(log) = &mut self.target else { return Ok(()) };
        log.rotate().map_err(|error| self.buffer.blame(error))
    }

    fn flush(&mut self) -> Result<(), WriteError> {
        if self.reader == Reader::Reads {
            let written = self.target.write(&self.buffer.bytes);
            self.reader = written.map_err(|error| self.fail(error))?;
        }
        self.buffer.rows_written += self.buffer.rows;
        self.buffer.rows = 0;
        self.buffer.bytes.clear();
        self.buffer.due = None;
        Ok(())
    }

    /// Says how much of a growing file is there all the same.
    fn fail(&self, error: crate::files::FileError) -> WriteError {
        match &self.target {
            Target::Whole { .. } => WriteError::File(error),
            Target::Log(_) => self.buffer.blame(error),
        }
    }

    /// Does what the time asks for.
    fn keep_time(&mut self, now: Instant) -> Result<(), WriteError> {
        let has_passed = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if let Target::Log(log) = &self.target
            && has_passed(log.until())
        {
            self.rotate()?;
        }
        if has_passed(self.buffer.due) {
            self.flush()?;
        }
        Ok(())
    }
}

impl Buffer {
    fn blame(&self, source: crate::files::FileError) -> WriteError {
        WriteError::Cut { source, rows: self.rows_written }
    }
}

impl Operator for Writer {
    fn process(&mut self, _: usize, input: Payload, _: &mut Output) -> Result<Flow, OperatorError> {
        if self.reader == Reader::HasLeft {
            return Ok(Flow::NeedInput);
        }
        let records = input.into_records().project(&self.selection)?;
        if let Form::Table(rows) = &mut self.form {
            rows.add(&records);
            return Ok(Flow::NeedInput);
        }
        self.reader = self.target.begin().map_err(|error| self.fail(error))?;
        let now = Instant::now();
        self.keep_time(now)?;
        self.put(&records)?;
        if self.target.is_live() || self.buffer.bytes.len() >= BUFFER_BYTES {
            self.flush()?;
        } else if self.buffer.due.is_none() {
            self.buffer.due = self.flush_after.and_then(|after| now.checked_add(after));
            self.keep_time(now)?;
        }
        Ok(Flow::NeedInput)
    }

    fn wake_at(&self) -> Option<Instant> {
        let until = match &self.target {
            Target::Log(log) => log.until(),
            Target::Whole { .. } => None,
        };
        self.buffer.due.into_iter().chain(until).min()
    }

    fn wake(&mut self, now: Instant, _: &mut Output) -> Result<Flow, OperatorError> {
        self.keep_time(now)?;
        Ok(Flow::NeedInput)
    }

    fn finish(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        // A stream without rows makes a file, too.
        if self.reader == Reader::Reads {
            self.reader = self.target.begin().map_err(|error| self.fail(error))?;
        }
        self.resume(out)
    }

    /// Lays out some more of a table, or ends.
    fn resume(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        if let Form::Table(rows) = &mut self.form
            && self.reader == Reader::Reads
        {
            let laid_out = rows.lay_out(&self.schema, &mut self.buffer.bytes);
            let is_all = laid_out.map_err(|error| self.encode_error(error))?;
            if self.target.is_live() || self.buffer.bytes.len() >= BUFFER_BYTES {
                self.flush()?;
            }
            if !is_all {
                return Ok(Flow::HaveOutput);
            }
        }
        self.flush()?;
        if let Some(file) = self.target.complete().map_err(|error| self.fail(error))? {
            out.commit_at_end(|| Ok(file.commit()?));
        }
        Ok(Flow::NeedInput)
    }

    fn needs_input(&self) -> bool {
        self.reader == Reader::Reads
    }

    fn counters(&self) -> Counters {
        let mut counters = Counters::new();
        match &self.form {
            Form::Table(rows) => counters.push(("rows_not_shown", rows.not_shown())),
            Form::Rows(_) => counters.push(("rows_written", self.buffer.rows_written)),
        }
        if let Target::Log(log) = &self.target {
            counters.push(("files_rotated", log.rotated()));
        }
        counters
    }
}

impl Drop for Writer {
    /// What came before a failure elsewhere stays in a file that grows.
    fn drop(&mut self) {
        if let Target::Log(_) = &self.target
            && self.buffer.rows > 0
        {
            // The failure that ended the run is the one to tell.
            let _ = self.flush();
        }
    }
}
