//! Operator of `write`: encodes rows, buffers encoded rows, and passes the bytes to the target.
//!
//! If a target has no room, such as a pipe whose reader has stopped, the thread does not wait: the
//! remaining bytes stay in the buffer, and the operator takes no more rows until the bytes are
//! written.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, SchemaRef};
use trommel_engine::batch::Payload;
use trommel_engine::operator::{Counters, Flow, Operator, OperatorError, Output};

use super::WriteError;
use super::columnar::Columnar;
use super::encode::{EncodeRows, EncodedRows};
use super::encoding::Encoding;
use super::files::target::Target;
use super::table::TableRows;
use crate::shared::files::{FileError, Patience};

/// Maximum encoded bytes buffered for a file.
const BUFFER_BYTES: usize = 256 << 10;
/// Maximum room that an empty buffer keeps; a batch usually takes less.
const KEPT_BYTES: usize = 4 << 20;

/// Layout of the output.
pub(super) enum Form {
    /// Each row on its own, when the row arrives.
    Rows(Encoding),
    /// Many rows at once, column by column.
    Columns(Box<Columnar>),
    /// All rows at the end.
    Table(TableRows),
}

/// The next thing to do for the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// The operator takes rows.
    Taking,
    /// All rows have arrived: the operator lays out the rows of a table, or ends a file of columns.
    LayingOut,
    /// The operator writes the bytes that the buffer still has, and completes the file.
    Completing,
}

/// State of the reader of standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reader {
    Reads,
    HasLeft,
}

pub(super) struct Writer {
    /// Indices of the input columns to write.
    pub(super) selection: Vec<usize>,
    pub(super) schema: SchemaRef,
    pub(super) form: Form,
    pub(super) target: Target,
    /// Maximum time for which rows wait in the buffer; `None` for a file that is written as a
    /// whole.
    pub(super) flush_after: Option<Duration>,
    /// Encoded rows that are not yet written.
    pub(super) buffer: Buffer,
    pub(super) reader: Reader,
    pub(super) stage: Stage,
    /// Time of the next look for room, if no descriptor shows room.
    pub(super) look_at: Option<Instant>,
    /// The wait for the reader of a pipe. After a long wait, the user gets a message.
    pub(super) patience: Patience,
}

/// Encoded rows that are not yet written.
#[derive(Default)]
pub(super) struct Buffer {
    bytes: Vec<u8>,
    /// Bytes at the beginning that the target has taken.
    taken: usize,
    rows: u64,
    /// Time at which the rows must be written.
    due: Option<Instant>,
    /// Rows that have left the buffer; a reader that leaves may lack the last of these rows.
    rows_written: u64,
}

/// Rows that have arrived.
enum Arrived {
    Rows(RecordBatch),
    Encoded(EncodedRows),
}

/// Whether the whole buffer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
enum Flushed {
    All,
    /// The target has no room for the remaining bytes.
    Part,
}

impl Writer {
    /// A part in front of the writer that encodes the rows, if the stage may have several threads
    /// and the bytes of rows do not decide which file has the rows.
    pub(super) fn encoder(&self, threads: usize) -> Option<EncodeRows> {
        let Form::Rows(encoding) = self.form else { return None };
        let has_limit = matches!(&self.target, Target::Log(log) if log.bytes_max().is_some());
        let (selection, target) = (self.selection.clone(), self.target.name().to_owned());
        (threads > 1 && !has_limit).then_some(EncodeRows { selection, encoding, target, room: 0 })
    }

    fn encode_error(&self, source: ArrowError) -> WriteError {
        WriteError::Encode { path: self.target.name().to_owned(), source }
    }

    /// Encodes `rows` into the buffer. If a file with a size limit has no room for all rows, each
    /// half of the rows is encoded on its own. The file is rotated before a row for which the file
    /// has no room.
    fn put(&mut self, rows: &RecordBatch) -> Result<(), WriteError> {
        let encoding = match &mut self.form {
            Form::Rows(encoding) => *encoding,
            Form::Columns(columns) => {
                let encoded = columns.add(rows, &mut self.buffer.bytes);
                let encoded = encoded.map_err(|error| error.of_file(self.target.name()))?;
                self.buffer.rows += encoded as u64;
                return Ok(());
            }
            Form::Table(_) => unreachable!("a table keeps its rows"),
        };
        let before = self.buffer.bytes.len();
        encoding.add(rows, &mut self.buffer.bytes).map_err(|error| self.encode_error(error))?;
        let Some(has_rows) = self.is_too_large(before)? else {
            self.buffer.rows += rows.num_rows() as u64;
            return Ok(());
        };
        let count = rows.num_rows();
        // The size of rows is only known after encoding. The batch is therefore encoded again in
        // halves: a row is encoded about log2(rows) times at worst.
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

    /// `None` if there is no size limit, or if file and buffer together are within the limit.
    /// Otherwise, true if the file or the buffer has rows before the bytes from `before` on.
    fn is_too_large(&mut self, before: usize) -> Result<Option<bool>, WriteError> {
        let Target::Log(log) = &mut self.target else { return Ok(None) };
        let Some(most) = log.bytes_max() else { return Ok(None) };
        let len = log.begin().map_err(|error| self.buffer.blame(error))?;
        let is_larger = len + self.buffer.bytes.len() as u64 > most;
        Ok(is_larger.then(|| !log.is_fresh(len + before as u64)))
    }

    fn rotate(&mut self) -> Result<(), WriteError> {
        let Flushed::All = self.flush()? else { unreachable!("a growing file has room") };
        let Target::Log(log) = &mut self.target else { return Ok(()) };
        log.rotate().map_err(|error| self.buffer.blame(error))
    }

    fn flush(&mut self) -> Result<Flushed, WriteError> {
        self.look_at = None;
        while self.reader == Reader::Reads && !self.buffer.is_written() {
            match self.target.write(&self.buffer.bytes[self.buffer.taken..]) {
                Ok(0) => {
                    self.look_at = self.target.look_at();
                    if self.look_at.is_some() {
                        let name = self.target.name();
                        let tell = || tracing::warn!("{name} has no reader: waiting for one");
                        self.patience.wait(Instant::now(), tell);
                    }
                    return Ok(Flushed::Part);
                }
                Ok(bytes) => self.buffer.taken += bytes,
                Err(FileError::Io { source, .. })
                    if self.target.is_stdout() && source.kind() == io::ErrorKind::BrokenPipe =>
                {
                    self.reader = Reader::HasLeft;
                }
                Err(error) => return Err(self.fail(error)),
            }
        }
        self.buffer.clear();
        Ok(Flushed::All)
    }

    /// Wraps `error`. The error of a growing file has the number of rows that are written.
    fn fail(&self, error: FileError) -> WriteError {
        match &self.target {
            Target::Whole { .. } => WriteError::File(error),
            Target::Log(_) => self.buffer.blame(error),
        }
    }

    /// Rotates a file that has reached its maximum age, and flushes rows that are due.
    fn keep_time(&mut self, now: Instant) -> Result<(), WriteError> {
        let has_passed = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if let Target::Log(log) = &self.target
            && has_passed(log.until())
        {
            self.rotate()?;
        }
        if has_passed(self.buffer.due) {
            let Flushed::All = self.flush()? else { unreachable!("a growing file has room") };
        }
        Ok(())
    }

    /// Compresses the next bytes of full files; false if no full file waits.
    fn pack(&mut self) -> Result<bool, WriteError> {
        let Target::Log(log) = &mut self.target else { return Ok(false) };
        let archive = log.archive_mut();
        if !archive.has_work() {
            return Ok(false);
        }
        archive.step().map_err(|error| self.buffer.blame(error))?;
        Ok(true)
    }

    /// Continues after a flush of the whole buffer, or waits for room.
    fn go_on(&mut self, flushed: Flushed, out: &mut Output) -> Result<Flow, OperatorError> {
        match (flushed, self.stage) {
            (Flushed::Part, _) => Ok(Flow::AwaitWritable),
            (Flushed::All, Stage::Taking) => Ok(Flow::NeedInput),
            (Flushed::All, Stage::LayingOut) => Ok(Flow::HaveOutput),
            (Flushed::All, Stage::Completing) if self.pack()? => Ok(Flow::HaveOutput),
            (Flushed::All, Stage::Completing) => {
                if let Some(file) = self.target.complete().map_err(|error| self.fail(error))? {
                    out.commit_at_end(|| Ok(file.commit()?));
                }
                Ok(Flow::NeedInput)
            }
        }
    }

    /// Lays out the next rows of a table, or ends a file of columns.
    fn lay_out(&mut self) -> Result<(), WriteError> {
        match &mut self.form {
            _ if self.reader == Reader::HasLeft => {}
            Form::Table(rows) => {
                let laid_out = rows.lay_out(&self.schema, &mut self.buffer.bytes);
                if !laid_out.map_err(|error| self.encode_error(error))? {
                    return Ok(());
                }
            }
            Form::Columns(columns) => {
                let encoded = columns.finish(&mut self.buffer.bytes);
                self.buffer.rows += encoded.map_err(|error| self.encode_error(error))? as u64;
            }
            Form::Rows(_) => {}
        }
        self.stage = Stage::Completing;
        Ok(())
    }
}

impl Buffer {
    /// A buffer that begins with the header of the format.
    pub(super) fn new(header: Vec<u8>) -> Self {
        Self { bytes: header, ..Self::default() }
    }

    /// Adds rows that another part has encoded.
    fn add(&mut self, EncodedRows { bytes, rows }: EncodedRows) {
        self.rows += rows;
        if self.bytes.is_empty() {
            self.bytes = bytes;
        } else {
            self.bytes.extend_from_slice(&bytes);
        }
    }

    fn blame(&self, source: FileError) -> WriteError {
        WriteError::Cut { source, rows: self.rows_written }
    }

    fn is_written(&self) -> bool {
        self.taken == self.bytes.len()
    }

    /// Drops the bytes, which the target has taken, or whose reader has left.
    fn clear(&mut self) {
        self.rows_written += self.rows;
        (self.rows, self.taken, self.due) = (0, 0, None);
        self.bytes.clear();
        // The bytes of a row group are many more than the bytes of other formats, so the room is
        // given back.
        self.bytes.shrink_to(KEPT_BYTES);
    }
}

impl Operator for Writer {
    fn process(
        &mut self,
        _: usize,
        input: Payload,
        out: &mut Output,
    ) -> Result<Flow, OperatorError> {
        if self.reader == Reader::HasLeft {
            return Ok(Flow::NeedInput);
        }
        let rows = match input {
            Payload::Batch(batch) => Arrived::Rows(batch.records.project(&self.selection)?),
            Payload::Chunk(chunk) => Arrived::Encoded(chunk.into_value()),
        };
        if let (Form::Table(table), Arrived::Rows(rows)) = (&mut self.form, &rows) {
            table.add(rows)?;
            return Ok(Flow::NeedInput);
        }
        self.target.begin().map_err(|error| self.fail(error))?;
        let now = Instant::now();
        self.keep_time(now)?;
        match rows {
            Arrived::Rows(rows) => self.put(&rows)?,
            Arrived::Encoded(encoded) => self.buffer.add(encoded),
        }
        self.pack()?;
        // A reader of standard output or of a pipe gets each batch at once.
        if self.target.is_live() || self.buffer.bytes.len() >= BUFFER_BYTES {
            let flushed = self.flush()?;
            return self.go_on(flushed, out);
        }
        if self.buffer.due.is_none() {
            self.buffer.due = self.flush_after.and_then(|after| now.checked_add(after));
            self.keep_time(now)?;
        }
        Ok(Flow::NeedInput)
    }

    fn wake_at(&self) -> Option<Instant> {
        let until = match &self.target {
            Target::Log(log) => log.wake_at(),
            Target::Whole { .. } => self.look_at,
        };
        self.buffer.due.into_iter().chain(until).min()
    }

    fn wake(&mut self, now: Instant, _: &mut Output) -> Result<Flow, OperatorError> {
        self.keep_time(now)?;
        self.pack()?;
        Ok(Flow::NeedInput)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.target.descriptor()
    }

    fn finish(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        // A stream without rows makes a file, too, so that a reader finds the file.
        if self.reader == Reader::Reads {
            self.target.begin().map_err(|error| self.fail(error))?;
        }
        if let Form::Table(rows) = &mut self.form {
            rows.sort(&self.schema)?;
        }
        self.stage = Stage::LayingOut;
        self.resume(out)
    }

    /// Continues with the bytes that had no room, and then with the end of the stream.
    fn resume(&mut self, out: &mut Output) -> Result<Flow, OperatorError> {
        let has_room = self.buffer.taken == 0 && self.look_at.is_none();
        if self.stage == Stage::LayingOut && has_room {
            self.lay_out()?;
            let is_full = self.target.is_live() || self.buffer.bytes.len() >= BUFFER_BYTES;
            if self.stage == Stage::LayingOut && !is_full {
                return Ok(Flow::HaveOutput);
            }
        }
        let flushed = self.flush()?;
        self.go_on(flushed, out)
    }

    fn needs_input(&self) -> bool {
        self.reader == Reader::Reads
    }

    /// Opens a growing file again. The rows in the buffer go into the file that now has the name.
    fn reopen(&mut self) -> Result<(), OperatorError> {
        if let Target::Log(log) = &mut self.target {
            log.reopen().map_err(|error| self.buffer.blame(error))?;
        }
        Ok(())
    }

    fn counters(&self) -> Counters {
        let mut counters = Counters::new();
        match &self.form {
            Form::Table(rows) => counters.push(("rows_not_shown", rows.not_shown())),
            Form::Rows(_) | Form::Columns(_) => {
                counters.push(("rows_written", self.buffer.rows_written));
            }
        }
        if let Target::Log(log) = &self.target {
            counters.extend(log.counters());
        }
        counters
    }
}

impl Drop for Writer {
    /// Writes the buffered rows of a growing file when the run fails elsewhere.
    fn drop(&mut self) {
        if let Target::Log(_) = &self.target
            && self.buffer.rows > 0
        {
            // The run reports the error that ended the run, so this error is dropped.
            let _ = self.flush();
        }
    }
}
