//! Source of lines: reads files block by block, and makes rows of the lines.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use trommel_engine::operator::{
    Counters, NamedInputs, OperatorError, Output, Progress, Source, SourceFlow,
};
use trommel_kernels::Isa;

use super::encoding::Wide;
use super::lines::{Added, LineBuffer, LineFormat, Place, STEPS_MAX};
use crate::shared::parameters::BATCH_BYTES;
use crate::source::read::error::ReadError;
use crate::source::read::files::input::{Got, Inputs, Opened, UnreadFile};

/// Bytes of the first read after the end of a range; further reads double the bytes.
const READ_ON_BYTES: u64 = 4 << 10;
/// Pause before the next look whether a line may be longer than the buffer.
const TURN_PAUSE: Duration = Duration::from_millis(1);

/// Maximum bytes of the next read of a range that ends at `until`.
pub(crate) fn read_bytes(position: u64, until: u64, free: usize) -> usize {
    let bytes = match until.checked_sub(position) {
        Some(left @ 1..) => left,
        // The last line of the range ends after the range.
        _ => (position - until).max(READ_ON_BYTES),
    };
    usize::try_from(bytes).unwrap_or(usize::MAX).min(free)
}

/// Maximum lines and bytes of the next run of a range that ends at `until`, so that the last line
/// of the run begins in the range. A record that is open after the range continues line by line.
fn within_range(
    lines: &LineBuffer,
    until: u64,
    lines_max: usize,
    bytes_max: usize,
) -> (usize, usize) {
    match (until - 1).checked_sub(lines.place().offset()) {
        Some(left) => (lines_max, bytes_max.min(usize::try_from(left).unwrap_or(usize::MAX))),
        None => (1, 0),
    }
}

/// Reads lines; a batch may have lines of several files.
pub(crate) struct LineSource<F> {
    inputs: Inputs,
    lines: LineBuffer,
    format: F,
    /// Rows and bytes of a batch.
    batch: usize,
    bytes_max: usize,
    /// First byte after the range of the file that is read; `None` if the whole file is read.
    until: Option<u64>,
    /// Whether a line may be longer than the buffer.
    may_grow: bool,
}

impl<F: LineFormat> LineSource<F> {
    pub(crate) fn new(inputs: Inputs, format: F, batch: usize, lines: LineBuffer) -> Self {
        let (bytes_max, until, may_grow) = (BATCH_BYTES, None, true);
        Self { inputs, lines, format, batch, bytes_max, until, may_grow }
    }

    /// Sends a batch at about this number of bytes.
    pub(crate) fn bytes_max(self, bytes_max: usize) -> Self {
        Self { bytes_max, ..self }
    }

    /// The format, with the rows that have not been sent yet.
    pub(crate) fn into_format(self) -> F {
        self.format
    }

    pub(crate) fn inputs_mut(&mut self) -> &mut Inputs {
        &mut self.inputs
    }

    pub(crate) fn format(&self) -> &F {
        &self.format
    }

    pub(crate) fn format_mut(&mut self) -> &mut F {
        &mut self.format
    }

    /// Instruction set, and the longest line in bytes.
    pub(crate) fn limits(&self) -> (Isa, usize) {
        (self.lines.isa(), self.lines.line_bytes_max())
    }

    /// Begins a piece of the input after all files have been read: whole files, or the lines that
    /// begin in a range of a file before byte `until`. Reading begins at `place`.
    pub(crate) fn begin(
        &mut self,
        (piece, files): (u64, Vec<UnreadFile>),
        place: Place,
        until: Option<u64>,
    ) {
        self.inputs.add_files(piece, files);
        self.lines.resume(place);
        self.until = until;
    }

    /// Gives the memory of long lines back, after all files have been read.
    pub(crate) fn shrink(&mut self) {
        self.lines.shrink();
    }

    /// Says whether a line may be longer than the buffer. A source that reaches such a line and may
    /// not grow pauses.
    pub(crate) fn let_grow(&mut self, may_grow: bool) {
        self.may_grow = may_grow;
    }

    /// Whether all records that begin in the range have been taken.
    fn is_past_range(&self) -> bool {
        let is_past = |until| self.lines.place().offset() >= until;
        self.until.is_some_and(is_past) && self.inputs.is_open() && !self.format.is_within_record()
    }

    /// Closes the file at the end of the range. The lines after the range belong to other readers.
    fn end_range(&mut self) {
        self.until = None;
        self.lines.abandon();
        self.inputs.close();
    }

    /// The error with the number that its line has in the file.
    fn placed(&self, error: ReadError) -> OperatorError {
        self.inputs.placed(error).into()
    }

    #[cfg(test)]
    pub(crate) fn buffer_bytes(&self) -> usize {
        self.lines.buffer_bytes()
    }

    /// Whether a batch is complete.
    pub(crate) fn is_full(&self) -> bool {
        let (rows, bytes) = (self.format.rows(), self.format.bytes());
        self.inputs.rows_waiting(rows) >= self.batch
            || self.inputs.bytes_waiting(bytes) >= self.bytes_max
    }

    fn append_run(&mut self) -> Result<(), ReadError> {
        let lines_max = self.batch - self.inputs.rows_waiting(self.format.rows());
        let bytes_max = self.bytes_max - self.inputs.bytes_waiting(self.format.bytes());
        let (lines_max, bytes_max) = match self.until {
            None => (lines_max, bytes_max),
            Some(until) => within_range(&self.lines, until, lines_max, bytes_max),
        };
        self.format.append(&self.lines.run(lines_max, bytes_max), &mut self.inputs)
    }

    /// Reads one block.
    fn read_block(&mut self) -> Result<Got, ReadError> {
        let (line, position) = (self.lines.place().line, self.lines.position());
        let free = self.lines.free();
        let free = free.map_err(|source| self.inputs.no_memory(line, source))?;
        let len = self.until.map_or(free.len(), |until| read_bytes(position, until, free.len()));
        let got = self.inputs.read(&mut free[..len])?;
        match got {
            Got::Bytes(bytes) => match self.lines.add(bytes) {
                Added::Bytes => {}
                Added::TooLong(line) => {
                    let bytes_max = self.lines.line_bytes_max();
                    self.format.refuse_long(&mut self.inputs, line, bytes_max)?;
                }
                Added::Wide(Wide::Utf16(encoding)) => {
                    let bytes = self.lines.take_bytes();
                    if self.inputs.transcode(encoding, &bytes)? == Got::Broken {
                        self.inputs.close();
                    }
                }
                Added::Wide(wide) => {
                    self.inputs.leave_out(wide.error(self.inputs.path()))?;
                    self.lines.abandon();
                    self.inputs.close();
                }
            },
            // The end of the file is reported again after these lines.
            Got::FileEnd if self.lines.end() => {}
            Got::FileEnd => {
                if let Some(run) = self.lines.last_run() {
                    self.format.append(&run, &mut self.inputs)?;
                    // The end of the file is reported again after the batch; the end may add
                    // another row.
                    if self.is_full() {
                        return Ok(got);
                    }
                }
                self.format.end_file(&mut self.inputs)?;
                self.inputs.close();
            }
            Got::Broken => {
                self.lines.abandon();
                self.format.abandon();
                self.inputs.close();
            }
            Got::Stopped => {
                let unfinished_bytes = self.lines.abandon() + self.format.abandon();
                self.inputs.close_stopped(unfinished_bytes);
            }
            Got::Nothing | Got::Again => {}
        }
        Ok(got)
    }
}

impl<F: LineFormat> LineSource<F> {
    fn advance(&mut self, out: &mut Output) -> Result<SourceFlow, ReadError> {
        if let Some(pause) = self.format.wait() {
            return Ok(SourceFlow::Idle(pause));
        }
        for _ in 0..STEPS_MAX {
            if self.is_full() {
                break;
            }
            if self.is_past_range() {
                self.end_range();
                continue;
            }
            if self.lines.has_lines() {
                self.append_run()?;
                continue;
            }
            let has_rows = self.inputs.rows_waiting(self.format.rows()) > 0;
            if !self.may_grow && self.lines.is_full() {
                match has_rows {
                    true => break,
                    false => return Ok(SourceFlow::Idle(TURN_PAUSE)),
                }
            }
            match self.inputs.open_next()? {
                // No record may begin in a range.
                Opened::Yes if self.is_past_range() => self.end_range(),
                Opened::Yes if self.read_block()? == Got::Nothing => {
                    // Waiting rows are sent at once, since the input may stay silent for hours.
                    if !has_rows {
                        return Ok(self.inputs.await_data());
                    }
                    break;
                }
                Opened::Yes | Opened::Skipped => {}
                Opened::NoMore => {
                    self.format.send(&mut self.inputs, out);
                    return Ok(SourceFlow::Finished);
                }
            }
        }
        self.format.send(&mut self.inputs, out);
        Ok(SourceFlow::HaveOutput)
    }
}

impl<F: LineFormat> Source for LineSource<F> {
    fn next(&mut self, out: &mut Output) -> Result<SourceFlow, OperatorError> {
        self.advance(out).map_err(|error| self.placed(error))
    }

    fn stop(&mut self, out: &mut Output) -> Result<SourceFlow, OperatorError> {
        self.inputs.stop();
        self.next(out)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.inputs.descriptor()
    }

    fn progress(&self) -> Progress {
        self.inputs.progress()
    }

    fn counters(&self) -> Counters {
        self.inputs.counters()
    }

    fn named_inputs(&self) -> NamedInputs {
        self.inputs.named()
    }
}
