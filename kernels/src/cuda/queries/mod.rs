//! Conjunctive queries on a device: the contract of [`crate::inverted`], a batch of queries at a
//! time, over an index that stays in the device's memory.
//!
//! A [`Segment`](crate::inverted::Segment) goes to the device once, its words as they are
//! ([`DeviceIndex`]); a batch of queries goes through a [`Slot`]:
//!
//! ```text
//! Slot ──submit──► Flight ──collect──► Slot, with a number of documents for each query,
//!                                      or with the documents of as many queries as have room
//! ```
//!
//! The lists of a query are ordered on the device, the shortest first, by the warp that takes the
//! query: on the host that would cost more than all else. A warp takes a unit of 256 ids of the
//! shortest list and searches them in the next list, the common ids in the list after it, and so
//! on; where all lists are bitmaps, a unit is 1,024 of their words. So short and long queries need
//! no order among themselves:
//!
//! ```text
//! queries    ▓▓ ▓▓ ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓ ▓▓       ▓▓ unit
//! 1st kernel ▓▓ ▓▓ ▓▓                 ▓▓       orders lists, takes first units, lists the others
//! 2nd kernel          ▓▓ ▓▓ ▓▓ ▓▓ ▓▓ ▓▓        takes the listed units
//! ```
//!
//! [`QueryCounts`] returns the number of documents of each query, and [`QueryDocuments`] the
//! documents, in the order of the queries. The documents of a unit are bits at first, one for each
//! of its ids; sums over all units place them, and a last kernel writes them. A batch whose
//! documents exceed the room ends early, at a query: the others are asked again.
//!
//! An index that is larger than the device's memory stays on the host. [`Streamed`] buffers have
//! room for lists: a batch brings the lists that it names, each once, in the layout of a segment
//! and under new numbers ([`ListNamer`](crate::inverted::ListNamer)). A batch whose lists exceed
//! the room is cut before it is submitted. Queries with the same lists go together for that reason.
//!
//! For comparison, [`Policy`] has also the batched kernel of the paper for numbers of documents: a
//! block takes a query. [`SerialCounts`] is its plain algorithm, one query after the other.
//!
//! Source: Wu, Zhang, Ao, Wang, Liu, Wang, *A Batched GPU Algorithm for Set Intersection*, ISPAN
//! 2009: §III (batches; search, scan and compaction; all results in one transfer). Departures:
//!
//! - Units in place of a block a query, which replaces the paper's order by length (§IV).
//! - A bit or a bucket is searched where the paper searches the whole list.
//! - Ids that fail are moved out of the way among the 32 lanes of a warp, by votes in place of
//!   scans. No block waits for a barrier.
//!
//! Kernels: `kernels/cuda/queries.cu`, `queries.cuh` (units), `inverted.cuh` (lists), `serial.cu`.
//!
//! | file | contents |
//! |---|---|
//! | `index` | a segment in a device's memory |
//! | `launch` | ways of counting, entry points and grids |
//! | `buffers` | the queries of a batch and its units |
//! | `counts`, `documents` | the steps of a batch, for numbers of documents and for documents |
//! | `published/serial` | numbers of documents, one query after the other |
//! | `streamed`, `over_lists` | a batch that brings its lists along; the steps that it shares with the others |

mod buffers;
mod counts;
mod documents;
mod index;
mod launch;
mod over_lists;
mod published;
mod streamed;

pub use self::buffers::{QueryJob, QueryLimits};
pub use self::counts::{CountsKept, QueryCounts};
pub use self::documents::{DocumentLimits, DocumentsAnswered, DocumentsKept, QueryDocuments};
pub use self::index::DeviceIndex;
pub use self::launch::{Policy, Way};
pub use self::published::{SerialCounts, SerialKept, SerialLimits};
pub use self::streamed::{Streamed, StreamedJob, StreamedKept, StreamedLimits};

#[cfg(doc)]
use super::Slot;
