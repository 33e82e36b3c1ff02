//! Formats `u32le` and `u64le`: little-endian integers.

use std::marker::PhantomData;
use std::sync::Arc;

use arrow_array::types::ArrowPrimitiveType;
use arrow_array::{PrimitiveArray, RecordBatch};
use arrow_buffer::{Buffer, ScalarBuffer};
use arrow_schema::SchemaRef;

use super::source::RowFormat;
use crate::shared::columns::{column_batch, column_schema};
use crate::source::read::error::ReadError;
use crate::source::read::files::input::Inputs;

/// Integer type of a file in little-endian order.
pub(crate) trait Word: ArrowPrimitiveType {
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

/// One integer per row; column `item`.
pub(crate) struct Integers<T> {
    schema: SchemaRef,
    word: PhantomData<fn() -> T>,
}

impl<T: Word> Integers<T> {
    pub(crate) fn new() -> Self {
        Self { schema: column_schema("item", T::DATA_TYPE), word: PhantomData }
    }
}

impl<T: Word> RowFormat for Integers<T> {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn width(&self) -> usize {
        size_of::<T::Native>()
    }

    fn batch(&mut self, rows: Buffer, _: &Inputs) -> Result<RecordBatch, ReadError> {
        let items = rows.len() / self.width();
        let items = PrimitiveArray::<T>::new(ScalarBuffer::new(rows, 0, items), None);
        // The compiler decides: on little-endian machines the bytes of the file are the column.
        let items = if cfg!(target_endian = "big") { items.unary(T::from_file) } else { items };
        Ok(column_batch(&self.schema, Arc::new(items)))
    }
}
