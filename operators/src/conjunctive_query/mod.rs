//! Conjunctive queries: the documents of a stream that have all terms of a query.
//!
//! ```text
//! documents ──► block of term numbers ──► segment ──► index: segments, merged as they come
//!                                                       │
//! queries ──► buckets by shortest list ──► batch ───────┴──► answer ──► documents or counts
//! ```
//!
//! **Index.** Terms are numbered in the order of their first occurrence. Documents are collected in
//! blocks. Kernels make [segments](trommel_kernels::inverted) of the blocks and merge the segments.
//! An index is an immutable list of segments that is replaced as a whole: a query runs on the
//! segments with which it began. The terms of a block are numbered within the block, so that a
//! segment of few documents has no rows for terms that occur only in other segments.
//!
//! **Queries.** A query is put in the bucket of its shortest list. A bucket is sent to a kernel
//! when the bucket is full, when the oldest query in the bucket would otherwise miss its deadline,
//! or when no input waits and a kernel has nothing to do. So batches grow with the load, and a
//! single query does not wait.
//!
//! **Device.** A GPU answers the batches that cost less on the GPU than on the CPU. A segment stays
//! in the memory of the GPU while an index has the segment. If a segment does not fit, each batch
//! sends the lists that its queries name.
//!
//! Source: Wu, Zhang, Ao, Wang, Liu, Wang, *A Batched GPU Algorithm for Set Intersection*, ISPAN
//! 2009: §III (batches of queries, semi-sorted by length). Departures from the paper: batches are
//! formed online, under a deadline (the paper leaves this open); a segment orders the queries of a
//! batch by their lists; an index that exceeds the memory of a GPU is streamed (the paper leaves
//! this open, §V).
//!
//! | folder or file | contents |
//! |---|---|
//! | `parameters` | the parameters, their checks, and the parts that they make |
//! | `data` | documents on their way to an index, and the index as a file |
//! | `plan` | queries that wait, batches of queries, and their costs |
//! | `prepare` | PREPARE: collects documents in blocks, and queries in buckets |
//! | `answer` | KERNEL: the chunk, and its answer on the CPU |
//! | `device` | the choice of a GPU, segments in its memory, and batches in flight |
//! | `rows` | COLLECT: rows of answers; answers to queries of a running stage |

mod answer;
mod data;
mod device;
mod parameters;
mod plan;
mod prepare;
mod rows;
#[cfg(test)]
mod tests;

pub use self::data::stored::IndexFileError;
pub use self::parameters::operator::ConjunctiveQuery;
pub use self::parameters::options::{AnswerOver, IndexSource, QueryOutput};
