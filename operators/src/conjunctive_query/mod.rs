//! Conjunctive queries: the documents of a stream that have all terms of a query.
//!
//! ```text
//! documents ──► block of term numbers ──► segment ──► index: segments, merged as they come
//!                                                       │
//! queries ──► buckets by shortest list ──► batch ───────┴──► answer ──► documents or counts
//! ```
//!
//! **Index.** Terms are numbered in the order of their first occurrence. Documents are collected
//! in blocks, which kernels make [segments](trommel_kernels::inverted) of and merge. An index is an
//! immutable list of segments, replaced as a whole: queries run on the segments that they began
//! with. The terms of a block are numbered within it, so that a segment of few documents has no
//! rows for all other terms.
//!
//! **Queries.** A query is put in the bucket of its shortest list. A bucket is sent to a kernel
//! when it is full, when the oldest query in it would miss its deadline, or when no input waits and
//! a kernel has nothing to do. So batches grow with the load, and a query alone does not wait.
//!
//! **Device.** A GPU answers the batches that cost less there. Segments stay in its memory while an
//! index names them, or batches bring the lists along that they name.
//!
//! Source: Wu, Zhang, Ao, Wang, Liu, Wang, *A Batched GPU Algorithm for Set Intersection*, ISPAN
//! 2009: §III (batches of queries, semi-sorted by length). Departures: batches are formed online,
//! under a deadline, which the paper leaves open; a segment orders the queries of a batch by their
//! lists. An index that exceeds the memory of a GPU is streamed, which the paper leaves open (§V).
//!
//! | file | contents |
//! |---|---|
//! | `operator`, `options`, `bind` | the parameters, their checks, and the parts that they make |
//! | `sets` | the sets of a batch |
//! | `segments`, `bytes`, `growth` | segments of documents, their bytes, and the index that grows |
//! | `index` | answers over several segments |
//! | `waiting`, `queries`, `buckets` | queries that wait for their index; queries that are answered together, and when |
//! | `stored` | the index as a file |
//! | `question` | queries of a running stage |
//! | `prepare`, `chunk`, `kernel`, `collect` | the parts of the operator |
//! | `device`, `cost`, `limits` | the choice of a device for a batch, by costs and limits |
//! | `flights`, `joined`, `resident` | batches in flight on a device, their answers, and the segments in its memory |
//! | `streamed` | lists that batches bring along |
//! | `tuning` | sizes that are no parameters |

mod bind;
mod buckets;
mod chunk;
mod collect;
mod cost;
mod device;
mod flights;
mod growth;
mod index;
mod joined;
mod kernel;
mod limits;
mod operator;
mod options;
mod prepare;
mod queries;
mod question;
mod resident;
mod segments;
mod sets;
mod stored;
mod streamed;
#[cfg(test)]
mod tests;
mod tuning;
mod waiting;

pub use self::operator::ConjunctiveQuery;
pub use self::options::{AnswerOver, IndexSource, QueryOutput};
pub use self::stored::IndexFileError;
