//! Source of rows of a fixed width, read directly into Arrow buffers.
//!
//! ```text
//! file ──► header, if the format has one ──► bytes of whole rows ──► RowFormat ──► batch
//! ```

use std::os::fd::BorrowedFd;

use arrow_array::RecordBatch;
use arrow_buffer::{Buffer, MutableBuffer};
use arrow_schema::SchemaRef;
use trommel_engine::operator::{
    Counters, NamedInputs, OperatorError, Output, Progress, Source, SourceFlow,
};

use crate::source::read::error::ReadError;
use crate::source::read::files::input::{BadRow, Got, Inputs, Opened, UnreadFile};
use crate::source::read::files::ranged::FileRange;
use crate::source::read::text::lines::STEPS_MAX;

/// Initial size of the buffer in bytes. The size doubles whenever reads fill the buffer.
const BYTES_MIN: usize = 4 << 10;
/// Maximum bytes of a batch: the size of the largest batch of 64-bit integers.
const BYTES_MAX: usize = 8 << 20;

/// Conversion of rows of a fixed width to a batch.
pub(crate) trait RowFormat: Send {
    /// Schema of the rows.
    fn schema(&self) -> &SchemaRef;
    /// Bytes of a row in the file, at least 1.
    fn width(&self) -> usize;
    /// Number of bytes of the file's header that are needed after `header`, its first bytes; 0 if
    /// the header is complete or the format has no header.
    fn header_bytes_wanted(&self, _header: &[u8]) -> usize {
        0
    }
    /// Takes the complete header of the open file. If this fails, the file is left out.
    fn begin(&mut self, _header: &[u8], _inputs: &Inputs) -> Result<(), ReadError> {
        Ok(())
    }
    /// Handles the end of the open file, which had `bytes` bytes of whole rows.
    fn end(&mut self, _bytes: u64, _inputs: &mut Inputs) -> Result<(), ReadError> {
        Ok(())
    }
    /// Handles the end of the last file, unless the source was stopped before.
    fn finish(&mut self) -> Result<(), ReadError> {
        Ok(())
    }
    /// Number of rows of all files so far, in a format whose rows have ids.
    fn rows_so_far(&self) -> u64 {
        0
    }
    /// Sets the number of rows before the next one.
    fn set_rows_so_far(&mut self, _rows: u64) {}
    /// Makes a batch of whole rows, aligned to 64 bytes.
    fn batch(&mut self, rows: Buffer, inputs: &Inputs) -> Result<RecordBatch, ReadError>;
}

/// Reads rows; a batch may span files.
pub(crate) struct RowSource<F> {
    inputs: Inputs,
    format: F,
    /// Maximum rows per batch, and the bytes of a full batch.
    batch: usize,
    batch_bytes: usize,
    /// Bytes that were read and not yet sent, in the first `filled` bytes; the buffer is at most as
    /// long as a batch.
    buffer: MutableBuffer,
    filled: usize,
    /// First bytes of the open file, until its header is complete.
    header: Vec<u8>,
    has_begun: bool,
    /// Bytes of the open file after its header so far, after decompression.
    file_bytes: u64,
}

impl<F: RowFormat> RowSource<F> {
    pub(crate) fn new(inputs: Inputs, format: F, batch: usize) -> Self {
        let mut source = Self {
            inputs,
            format,
            batch,
            batch_bytes: 0,
            buffer: MutableBuffer::default(),
            filled: 0,
            header: Vec::new(),
            has_begun: false,
            file_bytes: 0,
        };
        source.resize();
        source
    }

    pub(crate) fn inputs_mut(&mut self) -> &mut Inputs {
        &mut self.inputs
    }

    pub(crate) fn format(&self) -> &F {
        &self.format
    }

    /// Begins a piece of the input after all files have been read. `rows` is the number of rows
    /// before.
    pub(crate) fn begin_files(&mut self, (piece, files): (u64, Vec<UnreadFile>), rows: u64) {
        self.inputs.add_files(piece, files);
        self.forget_file();
        self.format.set_rows_so_far(rows);
    }

    /// As [`Self::begin_files`], for a range that begins after the header of its file.
    pub(crate) fn begin_range(
        &mut self,
        (piece, range): (u64, FileRange),
        rows: u64,
    ) -> Result<(), ReadError> {
        let (header, begin) = (range.file.head().to_vec(), range.begin);
        let path = range.file.path();
        self.begin_files((piece, vec![UnreadFile::Range(range, begin)]), rows);
        self.inputs.set_path(path);
        let width = self.format.width();
        self.format.begin(&header, &self.inputs)?;
        if self.format.width() != width {
            self.resize();
        }
        self.file_bytes = begin - header.len() as u64;
        (self.has_begun, self.header) = (true, header);
        Ok(())
    }

    /// Fits the buffer, which is empty, to the width of the rows.
    fn resize(&mut self) {
        let width = self.format.width();
        self.batch_bytes = self.batch.min((BYTES_MAX / width).max(1)) * width;
        self.buffer.resize(BYTES_MIN.min(self.batch_bytes), 0);
    }

    /// Sends the complete rows, and keeps the bytes of an incomplete row.
    fn send(&mut self, out: &mut Output) -> Result<(), ReadError> {
        let whole = self.filled - self.filled % self.format.width();
        if whole > 0 {
            let rows = self.take(whole);
            out.send(self.format.batch(rows, &self.inputs)?);
        }
        Ok(())
    }

    /// Takes the first `whole` bytes. Bytes that fill at most half of the buffer are copied, so
    /// that a few rows do not hold the memory of a batch; otherwise the buffer itself is taken.
    /// Arrow aligns both to 64 bytes.
    fn take(&mut self, whole: usize) -> Buffer {
        let rest = whole..self.filled;
        self.filled = rest.len();
        if whole <= self.buffer.len() / 2 {
            let rows = Buffer::from(&self.buffer.as_slice()[..whole]);
            self.buffer.as_slice_mut().copy_within(rest, 0);
            return rows;
        }
        // The full buffer becomes the column, and reads continue in a new buffer.
        let mut next = MutableBuffer::from_len_zeroed(self.buffer.len());
        next.as_slice_mut()[..rest.len()].copy_from_slice(&self.buffer.as_slice()[rest]);
        let mut full = std::mem::replace(&mut self.buffer, next);
        full.truncate(whole);
        Buffer::from(full)
    }

    /// Drops the incomplete row at the end of the buffer, or an incomplete header. Returns the
    /// number of dropped bytes.
    fn drop_partial(&mut self) -> usize {
        let left = self.filled % self.format.width();
        self.filled -= left;
        let header = if self.has_begun { 0 } else { self.header.len() };
        left + header
    }

    /// Closes the open file at its end; refuses an incomplete row.
    fn close(&mut self) -> Result<(), ReadError> {
        let width = self.format.width();
        if self.inputs.is_range_complete() {
            // Further rows of the file belong to other readers.
        } else if self.has_begun {
            let left = self.drop_partial();
            let whole = self.file_bytes - left as u64;
            if left > 0 {
                let offset = self.header.len() as u64 + whole;
                let error = |path| ReadError::PartialItem { path, offset, left, width };
                let row = BadRow { line: None, offset: Some(offset), bytes: b"" };
                self.inputs.refuse(&row, error)?;
            }
            self.format.end(whole, &mut self.inputs)?;
        } else {
            let (path, bytes) = (self.inputs.path(), self.header.len());
            self.inputs.leave_out(ReadError::PartialHeader { path, bytes })?;
        }
        self.inputs.close();
        self.forget_file();
        Ok(())
    }

    fn forget_file(&mut self) {
        self.header.clear();
        self.has_begun = false;
        self.file_bytes = 0;
    }

    /// Reads bytes of the header, or takes the header if it is complete.
    fn read_header(&mut self) -> Result<Got, ReadError> {
        let have = self.header.len();
        let wanted = self.format.header_bytes_wanted(&self.header);
        if wanted > 0 {
            self.header.resize(have + wanted, 0);
            let got = self.inputs.read(&mut self.header[have..]);
            let read = if let Ok(Got::Bytes(bytes)) = got { bytes } else { 0 };
            self.header.truncate(have + read);
            return got;
        }
        let width = self.format.width();
        match self.format.begin(&self.header, &self.inputs) {
            Ok(()) => {
                self.has_begun = true;
                // If this file has another width, the rows of earlier files have been sent.
                if self.format.width() != width {
                    self.resize();
                }
            }
            Err(error) => {
                self.inputs.leave_out(error)?;
                self.inputs.close();
                self.forget_file();
            }
        }
        Ok(Got::Again)
    }

    fn read_rows(&mut self) -> Result<Got, ReadError> {
        let Self { inputs, buffer, filled, batch_bytes, .. } = self;
        if *filled == buffer.len() {
            buffer.resize((buffer.len() * 2).min(*batch_bytes), 0);
        }
        let got = inputs.read(&mut buffer.as_slice_mut()[*filled..])?;
        if let Got::Bytes(bytes) = got {
            self.filled += bytes;
            self.file_bytes += bytes as u64;
        }
        Ok(got)
    }

    fn read_block(&mut self) -> Result<Got, ReadError> {
        let got = if self.has_begun { self.read_rows()? } else { self.read_header()? };
        match got {
            Got::FileEnd => self.close()?,
            Got::Broken => {
                self.drop_partial();
                self.inputs.close();
                self.forget_file();
            }
            Got::Stopped => {
                let unfinished_bytes = self.drop_partial();
                self.inputs.close_stopped(unfinished_bytes);
                self.forget_file();
            }
            Got::Bytes(_) | Got::Nothing | Got::Again => {}
        }
        Ok(got)
    }

    /// True if rows wait, and the file to begin may have rows of another width.
    fn is_before_header(&self) -> bool {
        !self.has_begun && self.filled > 0 && self.format.header_bytes_wanted(&[]) > 0
    }
}

impl<F: RowFormat> Source for RowSource<F> {
    fn next(&mut self, out: &mut Output) -> Result<SourceFlow, OperatorError> {
        for _ in 0..STEPS_MAX {
            if self.filled == self.batch_bytes || self.is_before_header() {
                break;
            }
            match self.inputs.open_next()? {
                Opened::Yes if self.read_block()? == Got::Nothing => {
                    // Waiting rows are sent at once, since the input may stay silent for hours.
                    if self.filled < self.format.width() {
                        return Ok(self.inputs.await_data());
                    }
                    break;
                }
                Opened::Yes | Opened::Skipped => {}
                Opened::NoMore => {
                    self.send(out)?;
                    if !self.inputs.is_stopped() {
                        self.format.finish()?;
                    }
                    return Ok(SourceFlow::Finished);
                }
            }
        }
        self.send(out)?;
        Ok(SourceFlow::HaveOutput)
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
