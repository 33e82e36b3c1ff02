//! What SpaceSaving, the filter and the sieve have in common: what windows, decay, merging and the
//! operator are written against.

use std::fmt::Debug;

use super::counted::Counted;
use super::stored::RestoreError;
use crate::items::{Item, Items, StoredItem};

/// A summary of a stream in bounded memory.
///
/// With N the weight observed and k the counters, every implementor promises: `count - error <=
/// true count <= count` for what is monitored, and at most [`Self::unmonitored`] for each item that
/// is not; neither an error nor such a bound is above N / k. Whoever uses only this keeps the
/// promises.
pub(crate) trait Summary<K: Item>: Clone + Debug + Send + 'static {
    /// Counts each item once, or with its weight.
    fn observe<B: Items<K> + ?Sized>(&mut self, batch: &B, weights: Option<&[u64]>);
    /// The monitored items, in no particular order.
    fn iter(&self) -> impl Iterator<Item = Counted<&K>>;
    /// The counter of an item, if it is monitored.
    fn estimate(&self, item: K::Ref<'_>) -> Option<Counted<&K>>;
    /// The most that an item that is not monitored can have been seen.
    fn unmonitored(&self) -> impl Fn(&K) -> u64;
    /// The most that any unmonitored item can have been seen.
    fn count_min(&self) -> u64;
    /// N.
    fn observed(&self) -> u64;
    /// The most items that are monitored.
    fn monitored_max(&self) -> usize;
    /// Bytes of memory, itself included.
    fn state_bytes(&self) -> usize;
    /// The most that [`Self::state_bytes`] becomes, strings left out.
    fn state_bytes_max(&self) -> usize;
    /// An empty summary that was made with the same numbers.
    fn to_empty(&self) -> Self;
    /// Refuses a summary that was made with other numbers.
    fn check_like(&self, other: &Self) -> Result<(), MergeError>;
    /// Becomes a summary of both streams.
    fn merge(&mut self, other: &Self) -> Result<(), MergeError>;
    /// Divides all counts by 2^bits, upper bounds rounded up and lower ones down.
    fn scale_down(&mut self, bits: u32);
}

/// A summary that can be written down.
pub(crate) trait Stored<K: StoredItem>: Summary<K> {
    /// Everything that its future depends on, as bytes.
    fn snapshot(&self) -> Vec<u8>;
    /// The summary that was written down, if it takes no more memory than that, on the instruction
    /// set of this one.
    fn restored(&self, state: &[u8], state_bytes_max: usize) -> Result<Self, RestoreError>;
}

/// Why two summaries cannot be merged, or one cannot take the place of the other: they were made
/// with different numbers, so that the bounds of the result would not be those of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a summary with {left} {what} and one with {right} do not go together: make them alike")]
pub struct MergeError {
    /// What there are different numbers of: counters, bins or cells.
    pub what: &'static str,
    /// How many the one has that was to become both.
    pub left: usize,
    /// How many the other one has.
    pub right: usize,
}

impl MergeError {
    /// Refuses numbers that differ.
    pub(crate) fn check(what: &'static str, left: usize, right: usize) -> Result<(), Self> {
        if left == right { Ok(()) } else { Err(Self { what, left, right }) }
    }
}
