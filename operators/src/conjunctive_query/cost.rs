//! Costs of a batch of queries on a device, in nanoseconds. They decide between a device and the
//! CPU, whose answers are the same.
//!
//! Measured with an H200 (bench/reports/gpu.md, *Conjunctive queries*): whole batches from host
//! memory to host memory, several in flight, over an index of 64 M postings and one of 402,251.

use super::options::QueryOutput;
use super::queries::QueryBlock;

/// Launches and copies of a batch of 64: 26 to 44 us for counts, 76 to 116 us for documents, which
/// are copied when their number is known.
const COUNT_BATCH_NS: u64 = 40_000;
const DOCUMENT_BATCH_NS: u64 = 110_000;

/// Time of one core by the time of the device for the same searches: 265 over the large index
/// (9.2 us and 0.035 us a query), 178 over the small one.
const CORES: u64 = 200;

/// Bytes of documents in a nanosecond, kernels included: 50 over the large index, 91 % of the bus.
const DOCUMENT_BYTES: u64 = 50;

/// Bytes of queries in a nanosecond over the bus.
const QUERY_BYTES: u64 = 55;

/// Bytes of lists in a nanosecond, from pageable memory (bench/reports/gpu.md, *The whole way*).
const LIST_BYTES: u64 = 6;

/// Time of a device for a batch over `segments` segments that it has. Documents are taken for as
/// many as the shortest lists have.
pub(super) fn on_device(queries: &QueryBlock, output: QueryOutput, segments: usize) -> u64 {
    let words = |count: usize| (count * size_of::<u32>()) as u64;
    let sent = words(queries.terms_len() + queries.len()) * segments as u64 / QUERY_BYTES;
    let (batch, fetched) = match output {
        QueryOutput::Count => (COUNT_BATCH_NS, words(queries.len()) / QUERY_BYTES),
        QueryOutput::Documents => {
            (DOCUMENT_BATCH_NS, queries.answers_max.saturating_mul(4) / DOCUMENT_BYTES)
        }
    };
    batch * segments as u64 + sent + fetched + queries.cost_ns / CORES
}

/// Time to send `bytes` bytes of lists to the device: segments that stay, or lists that come along
/// with a batch, which are copied to pinned memory first.
pub(super) fn send(bytes: usize) -> u64 {
    bytes as u64 / LIST_BYTES
}
