//! Limits of a device: the largest chunk, and the memory for the index.
//!
//! The memory is known when the device is open. Prepare and the kernel need the same number, and
//! either may be the first to ask: it is kept in a cell that is written once.

use std::sync::{Arc, OnceLock};

use trommel_kernels::cuda::queries::{DocumentLimits, QueryLimits};
use trommel_kernels::cuda::{Device, NoDevice};

use super::options::QueryOutput;
use super::queries::QueryBlock;
use super::tuning::Tuning;
use crate::wave::DeviceSession;

/// Maximum number of batches in flight. Two more chunks are filled and read meanwhile.
pub(super) const IN_FLIGHT: usize = 3;

/// Terms of a query that a batch has room for, on average, and terms of a small batch.
const TERMS_OF_QUERY: usize = 16;
const TERMS_MIN: usize = 1 << 10;
/// Ids of a unit of work of a device.
const UNIT_IDS: u64 = 256;

/// The largest chunk of a device.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChunkLimits {
    output: QueryOutput,
    documents: DocumentLimits,
}

impl ChunkLimits {
    /// Limits of batches of `batch_queries` queries.
    pub(super) fn new(output: QueryOutput, batch_queries: usize, tuning: &Tuning) -> Self {
        // A bucket is sent when its shortest lists reach this; the last query may pass it.
        let units = usize::try_from(2 * tuning.answer_documents / UNIT_IDS).unwrap_or(usize::MAX);
        let terms = TERMS_MIN.max(batch_queries * TERMS_OF_QUERY);
        let queries = QueryLimits { queries: batch_queries, terms, units: units + 1 };
        Self { output, documents: DocumentLimits { queries, documents: tuning.device_documents } }
    }

    pub(super) fn queries(&self) -> QueryLimits {
        self.documents.queries
    }

    pub(super) fn documents(&self) -> DocumentLimits {
        self.documents
    }

    /// Bytes of the batches in flight.
    fn bytes(&self) -> usize {
        let bytes = match self.output {
            QueryOutput::Count => self.queries().bytes(),
            QueryOutput::Documents => self.documents.bytes(),
        };
        bytes.saturating_mul(IN_FLIGHT)
    }

    /// Whether a device can answer `queries`: at least one of them has room for its documents.
    pub(super) fn hold(&self, queries: &QueryBlock) -> bool {
        let QueryLimits { queries: most, terms, units } = self.queries();
        let has_room = match self.output {
            QueryOutput::Count => true,
            QueryOutput::Documents => queries.longest <= self.documents.documents as u64,
        };
        let is_small = queries.len() <= most && queries.terms_len() <= terms;
        is_small && queries.answers_max / UNIT_IDS <= units as u64 && has_room
    }
}

/// Memory of a device for the index. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct DeviceRoom {
    session: DeviceSession,
    /// Bytes of the batches in flight.
    reserved: usize,
    /// Maximum bytes by the parameter.
    most: usize,
    bytes: Arc<OnceLock<usize>>,
}

impl DeviceRoom {
    /// All memory that is free beside chunks of these limits, but at most `most` bytes.
    pub(super) fn new(session: DeviceSession, limits: &ChunkLimits, most: usize) -> Self {
        Self { session, reserved: limits.bytes(), most, bytes: Arc::default() }
    }

    /// The device.
    ///
    /// # Errors
    /// If there is none.
    pub(super) fn device(&self) -> Result<Device, NoDevice> {
        self.session.open()
    }

    /// Bytes for the index; opens the device.
    ///
    /// # Errors
    /// If there is none.
    pub(super) fn bytes(&self) -> Result<usize, NoDevice> {
        if let Some(bytes) = self.bytes.get() {
            return Ok(*bytes);
        }
        let free = self.device()?.memory_bytes()?.0;
        Ok(*self.bytes.get_or_init(|| self.most.min(free.saturating_sub(self.reserved))))
    }
}
