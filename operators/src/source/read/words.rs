//! Source of little-endian integers, read directly into Arrow buffers.

use std::marker::PhantomData;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::PrimitiveArray;
use arrow_array::types::ArrowPrimitiveType;
use arrow_buffer::{Buffer, MutableBuffer, ScalarBuffer};
use arrow_schema::SchemaRef;
use trommel_engine::operator::{
    Counters, NamedInputs, OperatorError, Output, Progress, Source, SourceFlow,
};

use super::error::ReadError;
use super::input::{Got, Inputs, Opened};
use super::lines::STEPS_MAX;
use crate::columns::{column_batch, column_schema};

/// Initial size of the buffer in bytes; it doubles whenever reads fill it.
const BYTES_MIN: usize = 4 << 10;

/// Integer type of a file in little-endian order.
pub(super) trait Word: ArrowPrimitiveType {
    /// Converts a value from little-endian to the byte order of the machine.
    fn from_file(value: Self::Native) -> Self::Native;
}

impl Word for arrow_array::types::UInt32Type {
    fn from_file(value: u32) -> u32 {
        u32::from_le(value)
    }
}

impl Word for arrow_array::types::UInt64Type {
    fn from_file(value: u64) -> u64 {
        u64::from_le(value)
    }
}

/// Reads integers; a batch may span files.
pub(super) struct WordSource<T: Word> {
    inputs: Inputs,
    schema: SchemaRef,
    batch_bytes: usize,
    /// Bytes read and not sent, the first `filled` ones; at most as long as a batch.
    buffer: MutableBuffer,
    filled: usize,
    /// Bytes of the open file so far, after decompression.
    file_bytes: u64,
    word: PhantomData<fn() -> T>,
}

impl<T: Word> WordSource<T> {
    const WIDTH: usize = size_of::<T::Native>();

    pub(super) fn new(inputs: Inputs, batch: usize) -> Self {
        let batch_bytes = batch * Self::WIDTH;
        Self {
            inputs,
            schema: column_schema("item", T::DATA_TYPE),
            batch_bytes,
            buffer: MutableBuffer::from_len_zeroed(BYTES_MIN.min(batch_bytes)),
            filled: 0,
            file_bytes: 0,
            word: PhantomData,
        }
    }

    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Sends the complete items and keeps the bytes of an incomplete one.
    fn send(&mut self, out: &mut Output) {
        let left = self.filled % Self::WIDTH;
        let whole = self.filled - left;
        if whole == 0 {
            return;
        }
        // Arrow aligns its buffers to 64 bytes and items start at offset 0, so the words are
        // aligned.
        let values = ScalarBuffer::new(self.take(whole), 0, whole / Self::WIDTH);
        let items = PrimitiveArray::<T>::new(values, None);
        // Decided at compile time: on little-endian machines the bytes of the file are the
        // column.
        let items = if cfg!(target_endian = "big") { items.unary(T::from_file) } else { items };
        out.send(column_batch(&self.schema, Arc::new(items)));
    }

    /// Takes the first `whole` bytes: a copy if they fill at most half of the buffer, so that a
    /// few items do not hold the memory of a batch; otherwise the buffer itself.
    fn take(&mut self, whole: usize) -> Buffer {
        let rest = whole..self.filled;
        self.filled = rest.len();
        if whole <= self.buffer.len() / 2 {
            let items = Buffer::from(&self.buffer.as_slice()[..whole]);
            self.buffer.as_slice_mut().copy_within(rest, 0);
            return items;
        }
        // The full buffer becomes the column; reads continue in a new one.
        let mut next = MutableBuffer::from_len_zeroed(self.buffer.len());
        next.as_slice_mut()[..rest.len()].copy_from_slice(&self.buffer.as_slice()[rest]);
        let mut full = std::mem::replace(&mut self.buffer, next);
        full.truncate(whole);
        Buffer::from(full)
    }

    /// Drops the incomplete item at the end of the buffer; returns its bytes.
    fn drop_partial(&mut self) -> usize {
        let left = self.filled % Self::WIDTH;
        self.filled -= left;
        left
    }

    /// Closes the open file at its end; refuses an incomplete item.
    fn close(&mut self) -> Result<(), ReadError> {
        let (left, width) = (self.drop_partial(), Self::WIDTH);
        if left > 0 {
            let offset = self.file_bytes - left as u64;
            self.inputs.refuse(|path| ReadError::PartialItem { path, offset, left, width })?;
        }
        self.inputs.close();
        self.file_bytes = 0;
        Ok(())
    }

    fn read_block(&mut self) -> Result<Got, ReadError> {
        let Self { inputs, buffer, filled, batch_bytes, .. } = self;
        if *filled == buffer.len() {
            buffer.resize((buffer.len() * 2).min(*batch_bytes), 0);
        }
        let got = inputs.read(&mut buffer.as_slice_mut()[*filled..])?;
        match got {
            Got::Bytes(bytes) => {
                self.filled += bytes;
                self.file_bytes += bytes as u64;
            }
            Got::FileEnd => self.close()?,
            Got::Broken => {
                self.drop_partial();
                self.inputs.close();
                self.file_bytes = 0;
            }
            Got::Stopped => {
                let unfinished_bytes = self.drop_partial();
                self.inputs.close_stopped(unfinished_bytes);
            }
            Got::Nothing | Got::Again => {}
        }
        Ok(got)
    }
}

impl<T: Word> Source for WordSource<T> {
    fn next(&mut self, out: &mut Output) -> Result<SourceFlow, OperatorError> {
        for _ in 0..STEPS_MAX {
            if self.filled == self.batch_bytes {
                break;
            }
            match self.inputs.open_next()? {
                Opened::Yes if self.read_block()? == Got::Nothing => {
                    // Items on hand are sent at once: the input may stay silent for hours.
                    if self.filled < Self::WIDTH {
                        return Ok(SourceFlow::AwaitReadable(Duration::MAX));
                    }
                    break;
                }
                Opened::Yes | Opened::Skipped => {}
                Opened::NoMore => {
                    self.send(out);
                    return Ok(SourceFlow::Finished);
                }
            }
        }
        self.send(out);
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
