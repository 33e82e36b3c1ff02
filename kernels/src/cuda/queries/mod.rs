//! Conjunctive queries on a device: the contract of [`crate::inverted`], a batch of queries at a
//! time, over an index that stays in the device's memory.
//!
//! The words of a [`Segment`](crate::inverted::Segment) go to the device once, without a change
//! ([`DeviceIndex`]); a batch of queries goes through a [`Slot`]:
//!
//! ```text
//! Slot ──submit──► Flight ──collect──► Slot, with a number of documents for each query,
//!                                      or with the documents of as many queries as have room
//! ```
//!
//! The warp that takes a query orders its lists on the device, the shortest first: on the host the
//! order would cost more than all other work. A warp takes a unit of 256 ids of the shortest list
//! and searches these ids in the next list, the common ids in the list after it, and so on; where
//! all lists are bitmaps, a unit is 1,024 words. So a batch may have short and long queries in any
//! order:
//!
//! ```text
//! queries    ▓▓ ▓▓ ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓ ▓▓       ▓▓ unit
//! 1st kernel ▓▓ ▓▓ ▓▓                 ▓▓       orders lists, takes first units, lists the others
//! 2nd kernel          ▓▓ ▓▓ ▓▓ ▓▓ ▓▓ ▓▓        takes the listed units
//! ```
//!
//! [`QueryCounts`] returns the number of documents of each query, and [`QueryDocuments`] the
//! documents, in the order of the queries. The documents of a unit are bits at first, one for each
//! of its ids; sums over all units give their places, and a last kernel writes the documents. A
//! batch whose documents exceed the room ends early, at a query: the caller asks the remaining
//! queries again.
//!
//! An index that is larger than the device's memory stays on the host. [`Streamed`] buffers have
//! room for lists: a batch sends the lists that it names, without repetition, in the layout of a
//! segment and under new numbers ([`ListNamer`](crate::inverted::ListNamer)). A batch whose lists
//! exceed the room is cut before it is submitted. For this reason queries with the same lists
//! should be in the same batch.
//!
//! For comparison, [`Policy`] also has the batched kernel of the paper for numbers of documents, in
//! which a block takes a query. [`SerialCounts`] is the plain algorithm of the paper, one query
//! after another.
//!
//! Source: Wu, Zhang, Ao, Wang, Liu, Wang, *A Batched GPU Algorithm for Set Intersection*, ISPAN
//! 2009: §III (batches; search, scan and compaction; all results in one transfer). Departures:
//!
//! - Units replace a block for each query, and make the paper's order by length (§IV) unnecessary.
//! - A bit or a bucket is searched where the paper searches the whole list.
//! - The 32 lanes of a warp drop the ids that fail by votes in place of scans. No block waits for a
//!   barrier.
//!
//! Kernels: `kernels/cuda/queries.cu`, `queries.cuh` (units), `inverted.cuh` (lists), `serial.cu`.
//!
//! | file | contents |
//! |---|---|
//! | `index` | a segment in a device's memory |
//! | `launch` | ways of counting, entry points and grids |
//! | `buffers` | the queries of a batch and its units |
//! | `counts`, `documents` | the steps of a batch, for numbers of documents and for documents |
//! | `published/serial` | numbers of documents, one query after another |
//! | `streamed`, `over_lists` | a batch that sends its lists; the steps that resident and streamed lists share |

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
