//! Limits of a device: the largest chunk, and the memory for the index.
//!
//! The memory is known when the device is open. Prepare and the kernel need the same number, and
//! each of the two may be the first to ask.

use trommel_kernels::cuda::NoDevice;
use trommel_kernels::cuda::queries::{DocumentLimits, QueryLimits};

use super::queries::QueryBlock;
use crate::conjunctive_query::parameters::options::QueryOutput;
use crate::conjunctive_query::parameters::tuning::Tuning;
use crate::wave::DeviceSession;

/// Maximum number of batches in flight. Meanwhile, one more chunk is filled and one more chunk is
/// read.
pub(crate) const IN_FLIGHT: usize = 3;

/// Mean number of terms of a query for which a batch has room, and minimum room of a batch in
/// terms.
const TERMS_OF_QUERY: usize = 16;
const TERMS_MIN: usize = 1 << 10;
/// Ids of a unit of work of a device.
const UNIT_IDS: u64 = 256;

/// The largest chunk of a device.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChunkLimits {
    output: QueryOutput,
    documents: DocumentLimits,
}

impl ChunkLimits {
    /// Limits of batches of `batch_queries` queries.
    pub(crate) fn new(output: QueryOutput, batch_queries: usize, tuning: &Tuning) -> Self {
        // A bucket is sent when its shortest lists reach `answer_documents`; the last query may
        // exceed that number.
        let units = usize::try_from(2 * tuning.answer_documents / UNIT_IDS).unwrap_or(usize::MAX);
        let terms = TERMS_MIN.max(batch_queries * TERMS_OF_QUERY);
        let queries = QueryLimits { queries: batch_queries, terms, units: units + 1 };
        Self { output, documents: DocumentLimits { queries, documents: tuning.device_documents } }
    }

    pub(crate) fn queries(&self) -> QueryLimits {
        self.documents.queries
    }

    pub(crate) fn documents(&self) -> DocumentLimits {
        self.documents
    }

    /// Bytes of the batches in flight, once over resident segments and once with streamed lists;
    /// the lists themselves do not count.
    fn bytes(&self) -> usize {
        let bytes = match self.output {
            QueryOutput::Count => self.queries().bytes(),
            QueryOutput::Documents => self.documents.bytes(),
        };
        bytes.saturating_mul(2 * IN_FLIGHT)
    }

    /// Whether a device can answer `queries`: the batch is within the limits, and each query alone
    /// has room for its documents.
    pub(crate) fn hold(&self, queries: &QueryBlock) -> bool {
        let QueryLimits { queries: most, terms, units } = self.queries();
        let has_room = match self.output {
            QueryOutput::Count => true,
            QueryOutput::Documents => queries.longest <= self.documents.documents as u64,
        };
        let is_small = queries.len() <= most && queries.terms_len() <= terms;
        is_small && queries.answers_max / UNIT_IDS <= units as u64 && has_room
    }
}

/// Memory of a device for the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Room {
    /// Maximum bytes of the segments that stay.
    pub(crate) index_bytes: usize,
    /// Maximum words of the lists that a batch may send.
    pub(crate) list_words: usize,
}

impl Room {
    /// The room in `free` bytes, if `reserved` bytes are for batches, with at most `most` bytes of
    /// segments and `list_words` words of lists.
    fn new(free: usize, reserved: usize, most: usize, list_words: usize) -> Self {
        // The lists of the batches in flight take at most a quarter of the memory.
        let list_words = list_words.min(free / (4 * IN_FLIGHT * size_of::<u32>()));
        let lists = IN_FLIGHT * list_words * size_of::<u32>();
        let left = free.saturating_sub(reserved).saturating_sub(lists);
        Self { index_bytes: most.min(left), list_words }
    }
}

/// The session of a device, and the room in its memory. Clones share the session.
#[derive(Debug, Clone)]
pub(crate) struct DeviceRoom {
    session: DeviceSession,
    /// Bytes of the batches in flight.
    reserved: usize,
    /// Maximum bytes of the segments that stay, by the parameter.
    most: usize,
    /// Maximum words of the lists of a batch.
    list_words: usize,
}

impl DeviceRoom {
    /// The memory that is free in addition to chunks of these limits, but at most `most` bytes for
    /// segments that stay, and `list_words` words for the lists of a batch.
    pub(crate) fn new(
        session: DeviceSession,
        limits: &ChunkLimits,
        most: usize,
        list_words: usize,
    ) -> Self {
        Self { session, reserved: limits.bytes(), most, list_words }
    }

    /// Maximum bytes of the segments that stay, by the parameter.
    pub(crate) fn most(&self) -> usize {
        self.most
    }

    /// The first device.
    pub(crate) fn first(&self) -> &DeviceSession {
        &self.session
    }

    /// The room for the index, the same for all devices; opens a device.
    ///
    /// # Errors
    /// If there is none.
    pub(crate) fn room(&self) -> Result<Room, NoDevice> {
        let free = self.session.free_bytes()?;
        Ok(Room::new(free, self.reserved, self.most, self.list_words))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_divided() {
        let room = Room::new(1_000_000, 100_000, usize::MAX, 1_000);
        assert_eq!(room, Room { index_bytes: 888_000, list_words: 1_000 });
        assert_eq!(Room::new(1_000_000, 100_000, 500, 1_000).index_bytes, 500);
        let small = Room::new(48_000, 100_000, usize::MAX, 1 << 24);
        assert_eq!(small, Room { index_bytes: 0, list_words: 1_000 });
    }
}
