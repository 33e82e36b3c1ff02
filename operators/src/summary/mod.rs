//! Summaries of a stream: its frequent items in bounded memory, with bounds on every count.
//!
//! ```text
//! SpaceSaving                 k counters; the reference
//! Filter = FilterFront ──► SpaceSaving     |X| bins in SIMD registers in front of |Y| counters, k = |X| + |Y|
//! Sieve                       cells for cold items and a SIMD filter for hot ones; the fastest
//! ```
//!
//! Sources: Metwally, Agrawal, El Abbadi, *Efficient Computation of Frequent and Top-k Elements in
//! Data Streams*, ICDT 2005 ([`SpaceSaving`]); Roy, Teubner, Alonso, *Efficient Frequent Item
//! Counting in Multi-Core Hardware*, KDD 2012 ([`Filter`] §3, its two halves §4); Homem, Carvalho,
//! *Finding top-k elements in data streams*, Information Sciences 180, 2010 ([`Sieve`]).
//!
//! These types know no thread, no channel and no pipeline. A summary takes batches
//! ([`Items`](crate::shared::items::Items)) of integers or strings
//! ([`Item`](crate::shared::items::Item)) and answers with counted items ([`Counted`]).
//!
//! # Guarantees
//!
//! This section is about [`SpaceSaving`] and [`Filter`]. The [`sieve`] has a proof of its own, of
//! the same bounds.
//!
//! Let N be the weight of the stream so far, k the counters, and m the smallest of the k counts,
//! where a free counter has count 0. Each item of weight w adds w to exactly one count, and counts
//! are never lowered. So the counts sum to N, m <= N / k, and m never falls. As long as N is below
//! 2^64, so that nothing saturates:
//!
//! 1. *No unmonitored item has a true count above m.* Every item that arrives gets a counter, so an
//!    item that never had a counter has true count 0. An item that has lost its counter had count m
//!    when it lost the counter for the last time, and m was not below its true count (2). Since
//!    then the item has not arrived, and m has not fallen.
//! 2. *`count - error <= true count <= count` for each counter.* When an item gets a free counter,
//!    no item has lost a counter yet; the item arrives for the first time, and its count is exact.
//!    When an item replaces another, its true count before was between 0 and m (1). So its true
//!    count afterwards is between w = count - error and m + w = count. Later arrivals add to both
//!    sides.
//! 3. *`error <= N / k`*: an error is the m of an earlier moment, or 0.
//! 4. *An item with a true count above N / k is monitored*: N / k >= m, so by (1) no such item is
//!    unmonitored.
//! 5. *With at most k distinct items all counts are exact*: none is replaced, so all errors are 0.
//!
//! [`SpaceSaving`] replaces the minimum by definition. [`Filter`] divides the counters into X and Y
//! and replaces only in Y; [`FilterFront`] shows that whenever an item is forwarded to Y, Y has a
//! minimum of all k counters. An exchange moves counters between X and Y and changes no counter, so
//! all of the above holds for X and Y together. A free counter is a count of 0: while X has a free
//! bin, items are forwarded only while Y has a free counter, too, so nothing is replaced before all
//! k counters are in use.
//!
//! Counts saturate at 2^64 - 1. True counts that saturate likewise stay within their bounds (1, 2,
//! 5); only the bounds by N / k (3, 4) end when N saturates.
//!
//! | file | contents |
//! |---|---|
//! | `contract` | the traits of all summaries, for windows, decay and merging |
//! | `space_saving`, `filter`, `sieve` | the summaries |
//! | `index` | the slot of an item |
//! | `min_queue` | the smallest count |
//! | `counted` | a counted item, and rankings |
//! | `merge` | two summaries become one |
//! | `decay` | counts that fade |
//! | `bounds` | the bounds of all counts, as a list |
//! | `pane_queue` | windows that slide |
//! | `capacity` | the sizes that a summary can have |

mod bounds;
mod capacity;
mod contract;
mod counted;
mod decay;
mod filter;
mod index;
mod merge;
mod min_queue;
mod pane_queue;
pub mod sieve;
mod space_saving;
#[cfg(test)]
mod tests;

pub use trommel_kernels::filter::Absorbed;

pub(crate) use self::bounds::{Bounds, largest_sums, sum_bounds};
pub use self::capacity::{COUNTERS_MAX, CapacityError};
pub use self::contract::MergeError;
pub(crate) use self::contract::{Counts, Stored, Summary};
pub use self::counted::{Counted, top};
pub(crate) use self::counted::{HEAP_MAX, largest, top_borrowed};
pub(crate) use self::decay::{Decayed, Fading, HalfLife, faded};
pub(crate) use self::filter::exchange_while_due;
pub use self::filter::{Filter, FilterFront};
pub(crate) use self::pane_queue::{EndedPanes, PaneQueue};
pub use self::sieve::Sieve;
pub(crate) use self::sieve::{NARROW_SHARE, hottest};
pub use self::space_saving::SpaceSaving;
