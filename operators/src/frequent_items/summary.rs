//! What SpaceSaving, the filter and the sieve have in common: what windows, decay, merging and the
//! operator are written against.

use std::fmt::Debug;

use trommel_engine::operator::OperatorError;

use super::stored::{RestoreError, StoredItem, free_bytes_max};
use super::{Counted, Filter, Item, Items, MergeError, Sieve, SpaceSaving};

/// A summary of a stream in bounded memory.
///
/// With N the weight observed and k the counters, every implementor promises: `count - error <=
/// true count <= count` for what is monitored, and at most [`Self::unmonitored`] for each item that
/// is not; neither an error nor such a bound is above N / k. Whoever uses only this keeps the
/// promises.
pub(super) trait Summary<K: Item>: Clone + Debug + Send + 'static {
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
pub(super) trait Stored<K: StoredItem>: Summary<K> {
    /// Everything that its future depends on, as bytes.
    fn snapshot(&self) -> Vec<u8>;
    /// The summary that was written down, if it takes no more memory than that, on the instruction
    /// set of this one.
    fn restored(&self, state: &[u8], state_bytes_max: usize) -> Result<Self, RestoreError>;
}

/// The summary that was written down, which has to be like `configured`.
pub(super) fn restore_like<K: StoredItem, S: Stored<K>>(
    configured: &S,
    state: &[u8],
) -> Result<S, OperatorError> {
    // What is like the one that is there takes no more, beside its strings.
    let state_bytes_max = free_bytes_max(state).saturating_add(configured.state_bytes_max());
    let restored = configured.restored(state, state_bytes_max)?;
    configured.check_like(&restored)?;
    Ok(restored)
}

macro_rules! summary {
    ($summary:ident, $restore:expr) => {
        impl<K: Item> Summary<K> for $summary<K> {
            fn observe<B: Items<K> + ?Sized>(&mut self, batch: &B, weights: Option<&[u64]>) {
                match weights {
                    None => $summary::observe(self, batch),
                    Some(weights) => self.observe_weighted(batch, weights),
                }
            }

            fn iter(&self) -> impl Iterator<Item = Counted<&K>> {
                $summary::iter(self)
            }

            fn estimate(&self, item: K::Ref<'_>) -> Option<Counted<&K>> {
                $summary::estimate(self, item)
            }

            fn unmonitored(&self) -> impl Fn(&K) -> u64 {
                $summary::unmonitored(self)
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

            fn state_bytes_max(&self) -> usize {
                $summary::bytes_max(self)
            }

            fn to_empty(&self) -> Self {
                $summary::to_empty(self)
            }

            fn check_like(&self, other: &Self) -> Result<(), MergeError> {
                $summary::check_like(self, other)
            }

            fn merge(&mut self, other: &Self) -> Result<(), MergeError> {
                $summary::merge(self, other)
            }

            fn scale_down(&mut self, bits: u32) {
                $summary::scale_down(self, bits);
            }
        }

        impl<K: StoredItem> Stored<K> for $summary<K> {
            fn snapshot(&self) -> Vec<u8> {
                $summary::snapshot(self)
            }

            fn restored(&self, state: &[u8], state_bytes_max: usize) -> Result<Self, RestoreError> {
                $restore(self, state, state_bytes_max)
            }
        }
    };
}

summary!(SpaceSaving, |_: &Self, state, most| Self::restore_within(state, most));
summary!(Filter, |filter: &Self, state, most| Self::restore_within(filter.isa(), state, most));
summary!(Sieve, |sieve: &Self, state, most| Self::restore_within(sieve.isa(), state, most));
