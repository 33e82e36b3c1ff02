//! The payload of an edge: record batches between operators, and typed chunks inside an operator.
//!
//! A [`Batch`] is an Arrow record batch with a number and a time from its source, so that every
//! stage can measure latency. A [`Chunk`] is a value of a type that only the parts of one operator
//! know (missed items, candidate pairs, a wave). A chunk never crosses the border of an operator.
//! The type of a chunk is fixed when the parts are written, so opening a chunk costs one
//! comparison.

use std::any::{Any, type_name};
use std::fmt;
use std::time::Instant;

use arrow_array::RecordBatch;

/// The position of a batch in the stream. The source sets the position; all batches and chunks that
/// are made from the batch inherit it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// Number of the batch at its source, from 0.
    pub sequence: u64,
    /// The time at which the source began to produce the batch.
    pub entered: Instant,
}

/// An Arrow record batch on its way through the graph.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use std::time::Instant;
/// use arrow_array::{ArrayRef, RecordBatch, UInt32Array};
/// use trommel_engine::batch::{Batch, Origin, Payload};
///
/// let items: ArrayRef = Arc::new(UInt32Array::from(vec![7, 3]));
/// let records = RecordBatch::try_from_iter([("item", items)])?;
/// let origin = Origin { sequence: 0, entered: Instant::now() };
/// let payload = Payload::Batch(Batch { records, origin });
/// assert_eq!((payload.items(), payload.origin()), (2, Some(origin)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Batch {
    /// The rows.
    pub records: RecordBatch,
    /// The source batch that these rows come from.
    pub origin: Origin,
}

/// A value that one part of an operator sends to another part of the same operator.
///
/// # Examples
/// ```
/// use trommel_engine::batch::{Chunk, Payload};
///
/// let missed = vec![7_u32, 3, 7];
/// let chunk = Chunk::new(missed, 3, 12);
/// let payload = Payload::Chunk(chunk);
/// assert_eq!((payload.items(), payload.bytes()), (3, 12));
/// assert_eq!(payload.into_value::<Vec<u32>>(), [7, 3, 7]);
/// ```
pub struct Chunk {
    value: Box<dyn Any + Send>,
    type_name: &'static str,
    items: usize,
    bytes: usize,
    origin: Option<Origin>,
}

impl Chunk {
    /// Wraps `value`, which stands for `items` items and takes about `bytes` bytes. The limits of
    /// queues count the bytes.
    pub fn new<T: Send + 'static>(value: T, items: usize, bytes: usize) -> Self {
        Self { value: Box::new(value), type_name: type_name::<T>(), items, bytes, origin: None }
    }

    /// As [`Chunk::new`], for a boxed value. With [`Chunk::into_box`], a value can travel back and
    /// forth without an allocation.
    pub fn from_box<T: Send + 'static>(value: Box<T>, items: usize, bytes: usize) -> Self {
        Self { value, type_name: type_name::<T>(), items, bytes, origin: None }
    }

    /// Sets the batch that the chunk comes from, in place of the batch in hand when the chunk is
    /// sent. For chunks that a part has kept for a while, so that their latency counts from their
    /// own source.
    #[must_use]
    pub fn with_origin(mut self, origin: Option<Origin>) -> Self {
        self.origin = origin;
        self
    }

    pub(crate) fn stamped(mut self, origin: Origin) -> Self {
        self.origin.get_or_insert(origin);
        self
    }

    /// Takes the value out.
    ///
    /// # Panics
    /// If the chunk holds another type: then the two parts of the operator disagree, which is a bug
    /// of the operator.
    #[must_use]
    pub fn into_value<T: 'static>(self) -> T {
        *self.into_box()
    }

    /// Takes the value out, in its box.
    ///
    /// # Panics
    /// As [`Chunk::into_value`].
    #[must_use]
    pub fn into_box<T: 'static>(self) -> Box<T> {
        let held = self.type_name;
        match self.value.downcast::<T>() {
            Ok(value) => value,
            Err(_) => panic!("expected a chunk of {}, found {held}", type_name::<T>()),
        }
    }
}

impl fmt::Debug for Chunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chunk")
            .field("type", &self.type_name)
            .field("items", &self.items)
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

/// A batch or a chunk.
#[derive(Debug)]
pub enum Payload {
    /// Between operators.
    Batch(Batch),
    /// Between the parts of one operator.
    Chunk(Chunk),
}

impl Payload {
    /// The rows of a batch.
    ///
    /// # Panics
    /// If this is a chunk. The graph connects batches only to the first part of an operator, so a
    /// first part may call this without a check.
    #[must_use]
    pub fn into_records(self) -> RecordBatch {
        match self {
            Self::Batch(batch) => batch.records,
            Self::Chunk(chunk) => panic!("expected a record batch, found {chunk:?}"),
        }
    }

    /// The chunk.
    ///
    /// # Panics
    /// If this is a batch. Later parts of an operator receive only chunks, from the part before.
    #[must_use]
    pub fn into_chunk(self) -> Chunk {
        match self {
            Self::Batch(batch) => {
                panic!("expected a chunk, found {} rows", batch.records.num_rows())
            }
            Self::Chunk(chunk) => chunk,
        }
    }

    /// The value of a chunk.
    ///
    /// # Panics
    /// If this is a batch or a chunk of another type. Only later parts of an operator receive
    /// chunks, and only from the part before them.
    #[must_use]
    pub fn into_value<T: 'static>(self) -> T {
        self.into_chunk().into_value()
    }

    /// Number of items.
    #[must_use]
    pub fn items(&self) -> usize {
        match self {
            Self::Batch(batch) => batch.records.num_rows(),
            Self::Chunk(chunk) => chunk.items,
        }
    }

    /// Number of bytes, for the limits of queues.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Self::Batch(batch) => batch.records.get_array_memory_size(),
            Self::Chunk(chunk) => chunk.bytes,
        }
    }

    /// The source batch that the payload comes from; `None` before the first part has sent the
    /// payload.
    #[must_use]
    pub fn origin(&self) -> Option<Origin> {
        match self {
            Self::Batch(batch) => Some(batch.origin),
            Self::Chunk(chunk) => chunk.origin,
        }
    }

    pub(crate) fn set_sequence(&mut self, sequence: u64) {
        match self {
            Self::Batch(Batch { origin, .. }) | Self::Chunk(Chunk { origin: Some(origin), .. }) => {
                origin.sequence = sequence;
            }
            Self::Chunk(_) => {}
        }
    }

    /// A second reference to a batch, for a second consumer; `None` for a chunk, which has exactly
    /// one consumer.
    pub(crate) fn share(&self) -> Option<Self> {
        match self {
            Self::Batch(batch) => Some(Self::Batch(batch.clone())),
            Self::Chunk(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_of_a_source_are_numbered_as_its_batches_are() {
        let origin = Origin { sequence: 0, entered: Instant::now() };
        let mut stamped = Payload::Chunk(Chunk::new((), 1, 0).stamped(origin));
        stamped.set_sequence(7);
        assert_eq!(stamped.origin(), Some(Origin { sequence: 7, ..origin }));
        let mut unstamped = Payload::Chunk(Chunk::new((), 1, 0));
        unstamped.set_sequence(7);
        assert_eq!(unstamped.origin(), None);
    }
}
