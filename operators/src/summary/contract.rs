//! Traits of SpaceSaving, the filter and the sieve, for windows, decay, merging and the operator.

use std::fmt::Debug;
use std::time::Instant;

use super::counted::Counted;
use super::filter::Filter;
use super::sieve::Sieve;
use super::space_saving::SpaceSaving;
use crate::shared::items::{Item, Items, StoredItem};
use crate::shared::state::RestoreError;

/// Counts of the items of a stream.
///
/// With N the observed weight, `count - error <= true count <= count` for monitored items, and the
/// true count of each other item is at most [`Self::count_min`].
pub(crate) trait Counts<K: Item>: Send + Sync + 'static {
    /// Tells the time at which the following batches entered the stream.
    fn enter(&mut self, _at: Instant) {}
    /// Counts each item once, or with its weight.
    fn observe<B: Items<K> + ?Sized>(&mut self, batch: &B, weights: Option<&[u64]>);
    /// The monitored items, in no particular order.
    fn iter(&self) -> impl Iterator<Item = Counted<&K>>;
    /// The most that any unmonitored item can have been seen.
    fn count_min(&self) -> u64;
    /// N.
    fn observed(&self) -> u64;
    /// Bytes of memory, the summary itself included.
    fn state_bytes(&self) -> usize;
}

/// A summary of a stream in bounded memory.
///
/// With k the counters, every implementor promises the bounds of [`Counts`] and two more: an item
/// that is not monitored was seen at most [`Self::unmonitored`] times, and neither an error nor
/// such a bound is above N / k. Code that uses only this trait keeps the promises.
pub(crate) trait Summary<K: Item>: Counts<K> + Clone + Debug {
    /// The counter of an item, if it is monitored.
    fn estimate(&self, item: K::Ref<'_>) -> Option<Counted<&K>>;
    /// Upper bound of the true count of an item that is not monitored.
    fn unmonitored(&self) -> impl Fn(&K) -> u64;
    /// The most items that are monitored.
    fn monitored_max(&self) -> usize;
    /// Upper bound of [`Counts::state_bytes`], without the texts of items.
    fn state_bytes_max(&self) -> usize;
    /// An empty summary of the same numbers of counters, bins and cells.
    fn to_empty(&self) -> Self;
    /// Refuses a summary of other numbers of counters, bins or cells.
    fn check_like(&self, other: &Self) -> Result<(), MergeError>;
    /// Becomes a summary of both streams.
    fn merge(&mut self, other: &Self) -> Result<(), MergeError>;
    /// Divides all counts by 2^bits. Upper bounds are rounded up, and lower bounds down.
    fn scale_down(&mut self, bits: u32);
}

/// A summary that can become bytes.
pub(crate) trait Stored<K: StoredItem>: Summary<K> {
    /// Everything on which the future of the summary depends, as bytes.
    fn snapshot(&self) -> Vec<u8>;
    /// The summary of `state`, on the instruction set of this summary, if the restored one takes at
    /// most `state_bytes_max` bytes of memory.
    fn restored(&self, state: &[u8], state_bytes_max: usize) -> Result<Self, RestoreError>;
}

/// Implements [`Counts`] by the public methods of a summary, which have the same names.
macro_rules! counts {
    ($summary:ident) => {
        impl<K: Item> Counts<K> for $summary<K> {
            fn observe<B: Items<K> + ?Sized>(&mut self, batch: &B, weights: Option<&[u64]>) {
                match weights {
                    None => $summary::observe(self, batch),
                    Some(weights) => self.observe_weighted(batch, weights),
                }
            }

            fn iter(&self) -> impl Iterator<Item = Counted<&K>> {
                $summary::iter(self)
            }

            fn count_min(&self) -> u64 {
                $summary::count_min(self)
            }

            fn observed(&self) -> u64 {
                $summary::observed(self)
            }

            fn state_bytes(&self) -> usize {
                $summary::state_bytes(self)
            }
        }
    };
}

counts!(SpaceSaving);
counts!(Filter);
counts!(Sieve);

/// The reason why two summaries cannot be merged, or one cannot replace the other: the summaries
/// were made with different numbers, so the result would not keep the bounds of both.
///
/// # Examples
///
/// ```
/// use trommel_operators::frequent_items::SpaceSaving;
///
/// let mut left = SpaceSaving::<u32>::new(100)?;
/// let error = left.merge(&SpaceSaving::new(200)?).unwrap_err();
/// assert_eq!((error.what, error.left, error.right), ("counters", 100, 200));
/// # Ok::<(), trommel_operators::frequent_items::CapacityError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid merge of a summary with {left} {what} and one with {right}: the numbers must be equal"
)]
pub struct MergeError {
    /// The numbers that differ: of counters, bins or cells.
    pub what: &'static str,
    /// The number of the summary that was to become both.
    pub left: usize,
    /// The number of the other summary.
    pub right: usize,
}

impl MergeError {
    /// Refuses numbers that differ.
    pub(crate) fn check(what: &'static str, left: usize, right: usize) -> Result<(), Self> {
        if left == right { Ok(()) } else { Err(Self { what, left, right }) }
    }
}
