//! Costs of a batch of queries on a device, in nanoseconds. The costs decide between a device and
//! the CPU; both give the same answers.
//!
//! Measured with an H200 (bench/reports/gpu.md, *Conjunctive queries*): whole batches from host
//! memory to host memory, several in flight, over an index of 64 M postings and an index of 402,251
//! postings.

use super::queries::QueryBlock;
use crate::conjunctive_query::parameters::options::QueryOutput;

/// Launches and copies of a batch of 64 queries: 26 to 44 us for counts, 76 to 116 us for
/// documents, because documents are copied only after their number is known.
const COUNT_BATCH_NS: f64 = 40_000.0;
const DOCUMENT_BATCH_NS: f64 = 110_000.0;

/// Time of one core, divided by the time of the device for the same searches: 265 over the large
/// index (9.2 us and 0.035 us for each query), 178 over the small index.
const CORES: f64 = 200.0;

/// A byte of documents, kernels included: 50 bytes per nanosecond over the large index, 91 % of the
/// bus.
const DOCUMENT_BYTE_NS: f64 = 0.02;

/// A byte of queries over the bus.
const QUERY_BYTE_NS: f64 = 1.0 / 55.0;

/// Time of a device for a batch over `segments` segments in its memory. The number of documents
/// found is assumed to be the sum of the lengths of the shortest lists.
pub(crate) fn on_device(queries: &QueryBlock, output: QueryOutput, segments: usize) -> f64 {
    let bytes = |words: usize| (words * size_of::<u32>()) as f64;
    let segments = segments as f64;
    let sent = bytes(queries.terms_len() + queries.len()) * segments * QUERY_BYTE_NS;
    let (batch, fetched) = match output {
        QueryOutput::Count => (COUNT_BATCH_NS, bytes(queries.len()) * QUERY_BYTE_NS),
        QueryOutput::Documents => {
            (DOCUMENT_BATCH_NS, queries.answers_max as f64 * 4.0 * DOCUMENT_BYTE_NS)
        }
    };
    batch * segments + sent + fetched + queries.cost_ns as f64 / CORES
}
