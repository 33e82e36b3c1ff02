//! Raw little-endian integers, read straight into Arrow buffers.

use std::marker::PhantomData;
use std::sync::Arc;

use arrow_array::PrimitiveArray;
use arrow_array::types::ArrowPrimitiveType;
use arrow_buffer::{Buffer, MutableBuffer, ScalarBuffer};
use arrow_schema::SchemaRef;
use trommel_engine::operator::{Counters, OperatorError, Output, Progress, Source, SourceFlow};

use super::error::ReadError;
use super::input::{Got, IDLE, Inputs};
use crate::columns::{column_batch, column_schema};

/// An integer that files hold in little-endian order.
pub(super) trait Word: ArrowPrimitiveType {
    /// Brings a value whose bytes were read from a file into the machine's order.
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
    /// What was read and not sent, from its beginning on; as long as a batch.
    buffer: MutableBuffer,
    filled: usize,
    /// Bytes read of the open file, after decompression.
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
            buffer: MutableBuffer::from_len_zeroed(batch_bytes),
            filled: 0,
            file_bytes: 0,
            word: PhantomData,
        }
    }

    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Sends the whole items; the bytes of an incomplete one stay.
    fn send(&mut self, out: &mut Output) {
        let left = self.filled % Self::WIDTH;
        let whole = self.filled - left;
        if whole == 0 {
            return;
        }
        let mut next = MutableBuffer::from_len_zeroed(self.batch_bytes);
        next.as_slice_mut()[..left].copy_from_slice(&self.buffer.as_slice()[whole..self.filled]);
        let mut full = std::mem::replace(&mut self.buffer, next);
        full.truncate(whole);
        self.filled = left;
        let values = ScalarBuffer::new(Buffer::from(full), 0, whole / Self::WIDTH);
        let items = PrimitiveArray::<T>::new(values, None);
        let items = if cfg!(target_endian = "big") { items.unary(T::from_file) } else { items };
        out.send(column_batch(&self.schema, Arc::new(items)));
    }

    /// Closes the open file; bytes that are no whole item are refused.
    fn close(&mut self) -> Result<(), ReadError> {
        let (left, width) = (self.filled % Self::WIDTH, Self::WIDTH);
        if left > 0 {
            self.filled -= left;
            let offset = self.file_bytes - left as u64;
            self.inputs.refuse(|path| ReadError::PartialItem { path, offset, left, width })?;
        }
        self.inputs.close();
        self.file_bytes = 0;
        Ok(())
    }
}

impl<T: Word> Source for WordSource<T> {
    fn next(&mut self, out: &mut Output) -> Result<SourceFlow, OperatorError> {
        while self.filled < self.batch_bytes {
            if !self.inputs.open_next()? {
                self.send(out);
                return Ok(SourceFlow::Finished);
            }
            let has_output = self.filled >= Self::WIDTH;
            let target = &mut self.buffer.as_slice_mut()[self.filled..];
            match self.inputs.read(target, has_output)? {
                Got::Bytes(bytes) => {
                    self.filled += bytes;
                    self.file_bytes += bytes as u64;
                }
                Got::FileEnd => self.close()?,
                Got::Nothing if has_output => break,
                Got::Nothing => return Ok(SourceFlow::Idle(IDLE)),
            }
        }
        self.send(out);
        Ok(SourceFlow::HaveOutput)
    }

    fn progress(&self) -> Progress {
        self.inputs.progress()
    }

    fn counters(&self) -> Counters {
        self.inputs.counters()
    }
}
