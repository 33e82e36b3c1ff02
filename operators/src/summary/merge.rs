//! Two summaries become one of both streams.
//!
//! Sources: Agarwal, Cormode, Huang, Phillips, Wei, Yi, *Mergeable Summaries*, PODS 2012 (merging
//! keeps the bound of one summary over the whole stream, in every order and grouping); Cafaro,
//! Pulimeno, Tempesta, *A parallel space saving algorithm for frequent items and the Hurwitz zeta
//! distribution*, Information Sciences 329 (2016) (add the other's minimum, keep the k largest);
//! Anderson, Bevin, Lang, Liberty, Rhodes, Thaler, *A High-Performance Algorithm for Identifying
//! Frequent Items in Data Streams*, IMC 2017 (merging in practice).
//!
//! # How
//!
//! A summary i bounds the count of *every* item: by [`Counted`] if the item is monitored, and
//! otherwise by 0 and u_i, where u_i is the smallest count. The bounds of both streams together are
//! the sums of the bounds of each ([`combine`]). The k items with the largest upper bounds stay
//! monitored.
//!
//! # Guarantees
//!
//! This is about [`SpaceSaving`] and [`Filter`]. Let N_i be the weight of summary i, and u_i the
//! smallest of its k counts, where a free counter has count 0; let N = N_1 + N_2, as long as this
//! sum does not saturate. For the proof of [the module](super) to hold from then on, a summary must
//! have four properties: bounds are true, errors are at most N_i / k, no unmonitored item was seen
//! more than u_i times, and **the counts sum to at most N_i** (equality is not used), so that u_i
//! <= N_i / k.
//!
//! 1. *Bounds are true*, as sums of true bounds. *Errors are at most N / k*: each error is the sum
//!    of two numbers, of which none is above N_i / k.
//! 2. *The k largest counts sum to at most N.* Call c - u_i the excess of a count c of summary i.
//!    The excesses of i sum to at most N_i - k u_i, because either all k counters are taken or u_i
//!    is 0. A combined count is u_1 + u_2 and the excesses of the item in both. So k combined
//!    counts sum to at most k (u_1 + u_2) + N_1 - k u_1 + N_2 - k u_2 = N.
//! 3. *No unmonitored item was seen more than the smallest count.* While a counter is free, nothing
//!    was dropped and neither summary had all its counters taken. Otherwise, an item that was
//!    monitored in neither summary was seen at most u_1 + u_2 times, and no combined count is below
//!    that. A dropped item had no larger combined count than each item that stays.
//! 4. *With at most k distinct items in both streams, all counts are exact*, if the counts of both
//!    summaries were: an item to which u_i > 0 is added would be one more than the k items of
//!    summary i.
//!
//! The result has the four properties again, so they hold after every sequence of merges and
//! batches. The result does not depend on which of two summaries is merged into the other. The
//! result does depend on the grouping of three summaries, within the bounds.
//!
//! When N saturates, the bounds by N / k end; (1) and (3) hold for true counts that saturate
//! likewise.
//!
//! # Scaling down
//!
//! [`Decayed`](super::decay::Decayed) divides counts by a power of 2 and rounds outwards. Bounds
//! stay true, and the order of counts stays. The k roundings raise the sum of the counts by less
//! than k, so the bound of the smallest count, and with it that of errors, is N / k + 1. After any
//! number of divisions by 2^b each, this bound is N / k + 1 + 2^-b + 2^-2b ... < N / k + 2.

use std::cmp::Reverse;

use super::contract::{MergeError, Summary};
use super::counted::Counted;
use super::filter::Filter;
use super::space_saving::SpaceSaving;
use crate::shared::items::Item;

/// The bounds, in both streams together, of all items that one of the summaries monitors.
pub(super) fn combine<K: Item, S: Summary<K>>(left: &S, right: &S) -> Vec<Counted<K>> {
    let (left_most, right_most) = (left.unmonitored(), right.unmonitored());
    let twice = |most| (most, most);
    let ours = left.iter().map(|counted| {
        let other = right.estimate(counted.item.borrowed());
        let most = || right_most(counted.item);
        let (count, error) =
            other.map_or_else(|| twice(most()), |other| (other.count, other.error));
        counted.plus(count, error)
    });
    let theirs = right.iter().filter(|counted| left.estimate(counted.item.borrowed()).is_none());
    let theirs = theirs.map(|counted| {
        let most = left_most(counted.item);
        counted.plus(most, most)
    });
    ours.chain(theirs).map(|counted| counted.cloned()).collect()
}

/// Keeps the `n` largest items, in the order of their ranks; returns the other items.
pub(super) fn keep_largest<K: Item>(counted: &mut Vec<Counted<K>>, n: usize) -> Vec<Counted<K>> {
    counted.sort_unstable_by(|a, b| (Reverse(a.count), &a.item).cmp(&(Reverse(b.count), &b.item)));
    counted.split_off(n.min(counted.len()))
}

/// Counts divided by 2^bits, rounded outwards.
pub(super) fn scaled<'a, K: Item>(
    counted: impl Iterator<Item = Counted<&'a K>>,
    bits: u32,
) -> Vec<Counted<K>> {
    let scaled = counted.map(|counted| {
        let (count, least) =
            (scaled_up(counted.count, bits), scaled_down(counted.count_min(), bits));
        Counted { item: counted.item.clone(), count, error: count - least }
    });
    scaled.collect()
}

/// Divided by 2^bits, rounded up.
pub(super) fn scaled_up(count: u64, bits: u32) -> u64 {
    let whole = scaled_down(count, bits);
    whole + u64::from(whole.checked_shl(bits).unwrap_or(0) != count)
}

/// Divided by 2^bits, rounded down.
pub(super) fn scaled_down(count: u64, bits: u32) -> u64 {
    count.checked_shr(bits).unwrap_or(0)
}

impl<K: Item> SpaceSaving<K> {
    /// Becomes a summary of both streams, with the guarantees of one over both: errors of at most
    /// (N1 + N2) / k, and every item above that is monitored.
    ///
    /// In which order and grouping summaries are merged does not matter for the guarantees.
    ///
    /// # Errors
    ///
    /// [`MergeError`] if the numbers of counters differ; nothing happens then.
    ///
    /// # Cost
    ///
    /// O(k log k).
    ///
    /// # Examples
    ///
    /// ```
    /// use trommel_operators::frequent_items::SpaceSaving;
    ///
    /// let mut monday = SpaceSaving::new(100)?;
    /// monday.observe(&[7_u32, 7, 1][..]);
    /// let mut tuesday = SpaceSaving::new(100)?;
    /// tuesday.observe(&[7_u32, 2][..]);
    /// monday.merge(&tuesday)?;
    /// assert_eq!((monday.observed(), monday.top(1)[0].count), (5, 3));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn merge(&mut self, other: &Self) -> Result<(), MergeError> {
        self.check_like(other)?;
        let mut counted = combine(self, other);
        keep_largest(&mut counted, self.counters());
        let observed = self.observed().saturating_add(other.observed());
        *self = self.with_counted(observed, counted);
        Ok(())
    }

    /// A summary of the same size and secret that monitors these items instead.
    fn with_counted(&self, observed: u64, counted: Vec<Counted<K>>) -> Self {
        Self::from_counted(self.counters(), self.secret().clone(), observed, counted)
    }
}

impl<K: Item> Summary<K> for SpaceSaving<K> {
    fn estimate(&self, item: K::Ref<'_>) -> Option<Counted<&K>> {
        SpaceSaving::estimate(self, item)
    }

    fn unmonitored(&self) -> impl Fn(&K) -> u64 {
        let most = self.count_min();
        move |_| most
    }

    fn monitored_max(&self) -> usize {
        self.counters()
    }

    fn state_bytes_max(&self) -> usize {
        Self::bytes_max(self.counters())
    }

    fn to_empty(&self) -> Self {
        self.with_counted(0, Vec::new())
    }

    fn check_like(&self, other: &Self) -> Result<(), MergeError> {
        MergeError::check("counters", self.counters(), other.counters())
    }

    fn merge(&mut self, other: &Self) -> Result<(), MergeError> {
        SpaceSaving::merge(self, other)
    }

    fn scale_down(&mut self, bits: u32) {
        let observed = scaled_up(self.observed(), bits);
        *self = self.with_counted(observed, scaled(self.iter(), bits));
    }
}

impl<K: Item> Filter<K> {
    /// Becomes a summary of both streams, with the guarantees of one over both: errors of at most
    /// (N1 + N2) / k, and every item above that is monitored. The largest go to the bins.
    ///
    /// In which order and grouping summaries are merged does not matter for the guarantees.
    ///
    /// # Errors
    ///
    /// [`MergeError`] if the numbers of counters or bins differ; nothing happens then.
    ///
    /// # Cost
    ///
    /// O(k log k + k |X|).
    pub fn merge(&mut self, other: &Self) -> Result<(), MergeError> {
        self.check_like(other)?;
        let mut counted = combine(self, other);
        keep_largest(&mut counted, self.counters());
        *self = self.rebuilt(self.observed().saturating_add(other.observed()), counted);
        Ok(())
    }
}

impl<K: Item> Summary<K> for Filter<K> {
    fn estimate(&self, item: K::Ref<'_>) -> Option<Counted<&K>> {
        Filter::estimate(self, item)
    }

    fn unmonitored(&self) -> impl Fn(&K) -> u64 {
        let most = self.count_min();
        move |_| most
    }

    fn monitored_max(&self) -> usize {
        self.counters()
    }

    fn state_bytes_max(&self) -> usize {
        self.to_empty().state_bytes() + SpaceSaving::<K>::bytes_max(self.counters())
    }

    fn to_empty(&self) -> Self {
        self.rebuilt(0, Vec::new())
    }

    fn check_like(&self, other: &Self) -> Result<(), MergeError> {
        MergeError::check("counters", self.counters(), other.counters())?;
        MergeError::check("bins", self.bins(), other.bins())
    }

    fn merge(&mut self, other: &Self) -> Result<(), MergeError> {
        Filter::merge(self, other)
    }

    fn scale_down(&mut self, bits: u32) {
        let mut counted = scaled(self.iter(), bits);
        keep_largest(&mut counted, self.counters());
        *self = self.rebuilt(scaled_up(self.observed(), bits), counted);
    }
}
