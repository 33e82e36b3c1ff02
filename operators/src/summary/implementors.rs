//! The summaries under one trait.

use super::contract::{MergeError, Stored, Summary};
use super::counted::Counted;
use super::filter::Filter;
use super::sieve::Sieve;
use super::space_saving::SpaceSaving;
use super::stored::RestoreError;
use crate::items::{Item, Items, StoredItem};

macro_rules! summary {
    ($summary:ident, $monitored_max:ident, $restore:expr) => {
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

            fn monitored_max(&self) -> usize {
                self.$monitored_max()
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

summary!(SpaceSaving, counters, |_: &Self, state, most| Self::restore_within(state, most));
summary!(Filter, counters, |filter: &Self, state, most| Self::restore_within(
    filter.isa(),
    state,
    most
));
summary!(Sieve, monitored_max, |sieve: &Self, state, most| Self::restore_within(
    sieve.isa(),
    state,
    most
));
