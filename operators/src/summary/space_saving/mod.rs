//! SpaceSaving: k counters that follow the most frequent items of a stream.
//!
//! Source: Metwally, Agrawal, El Abbadi, *Efficient Computation of Frequent and Top-k Elements in
//! Data Streams*, ICDT 2005; as described by Roy, Teubner, Alonso, KDD 2012, §2.1, Fig. 2:
//!
//! ```text
//! for item x:  if x has a counter    counter.count += 1
//!              else if one is free   counter = { x, count: 1, error: 0 }
//!              else                  min = the counter with the smallest count
//!                                    min = { x, count: min.count + 1, error: min.count }
//! ```
//!
//! Departures: the two structures are not a hash table and the list of lists of Fig. 3, but a table
//! of chains ([`index`](super::index)) and a lazy search for the minimum
//! ([`min_queue`](super::min_queue)), so that a hit costs one increment. Items may have weights.
//! The exchange of a counter with the front half of [`Filter`](super::Filter) is an operation of
//! its own.

mod max_cache;
mod stored;

use self::max_cache::MaxCache;
pub(super) use self::stored::check_sums;
use super::capacity::{COUNTERS_MAX, CapacityError};
use super::counted::{Counted, top};
use super::index::ItemIndex;
use super::min_queue::MinQueue;
use crate::shared::items::{Item, Items};
use crate::shared::names::secret::random_seed;

/// Number of items, such as texts, whose keys are computed and whose chains are fetched into the
/// cache before the first of these items is counted.
const BLOCK: usize = 32;

/// A summary of a stream in `counters` counters, for any length and number of distinct items.
///
/// # Guarantees
///
/// With N the weight observed and k the counters, at any time (proofs: [module](super)):
///
/// - for each monitored item, `count - error <= true count <= count` and `error <= N / k`;
/// - each item whose true count is above N / k is monitored;
/// - no unmonitored item has a true count above [`Self::count_min`], which is at most N / k;
/// - with no more than k distinct items, all counts are exact.
///
/// The result is a function of the stream alone, and does not depend on the cut into batches.
/// Counts and N saturate at `u64::MAX`. The bounds by N / k hold until N saturates; the other
/// bounds hold for ever, for true counts that saturate likewise.
///
/// # Cost
///
/// Amortized O(1) per item of weight 1, O(log k) with weights; a single update can take O(k).
/// Memory: about 40 bytes a counter and the item; see [`Self::state_bytes`]. Nothing is allocated
/// per item except for text items of more than 15 bytes.
///
/// # Examples
///
/// ```
/// use trommel_operators::frequent_items::SpaceSaving;
///
/// let mut summary = SpaceSaving::new(2)?;
/// summary.observe(&[7_u32, 7, 7, 1, 7, 2, 7][..]);
/// let top = &summary.top(1)[0];
/// assert_eq!((top.item, top.count, top.error), (7, 5, 0));
/// # Ok::<(), trommel_operators::frequent_items::CapacityError>(())
/// ```
#[derive(Clone, Debug)]
pub struct SpaceSaving<K: Item> {
    counters: usize,
    index: ItemIndex<K>,
    /// By slot, as `errors`.
    counts: Vec<u64>,
    errors: Vec<u64>,
    min_queue: MinQueue,
    max_cache: MaxCache,
    observed: u64,
}

impl<K: Item> SpaceSaving<K> {
    /// An empty summary with `counters` counters.
    ///
    /// # Errors
    ///
    /// [`CapacityError::Counters`] if that is 0 or more than [`COUNTERS_MAX`]; nothing is allocated
    /// then.
    pub fn new(counters: usize) -> Result<Self, CapacityError> {
        Self::with_secret(counters, K::secret(random_seed()))
    }

    /// The same with this secret of the keys.
    pub(super) fn with_secret(counters: usize, secret: K::Secret) -> Result<Self, CapacityError> {
        if counters == 0 || counters > COUNTERS_MAX {
            return Err(CapacityError::Counters { counters });
        }
        Ok(Self::from_counted(counters, secret, 0, Vec::new()))
    }

    /// A summary that monitors these distinct items, at most `counters`.
    pub(super) fn from_counted(
        counters: usize,
        secret: K::Secret,
        observed: u64,
        counted: Vec<Counted<K>>,
    ) -> Self {
        let (mut counts, mut errors) = (Vec::with_capacity(counters), Vec::with_capacity(counters));
        counts.extend(counted.iter().map(|counted| counted.count));
        errors.extend(counted.iter().map(|counted| counted.error));
        let items = counted.into_iter().map(|counted| counted.item);
        Self {
            counters,
            index: ItemIndex::of(counters, secret, items),
            counts,
            errors,
            min_queue: MinQueue::default(),
            max_cache: MaxCache::default(),
            observed,
        }
    }

    /// The secret of the keys.
    pub(crate) fn secret(&self) -> &K::Secret {
        self.index.secret()
    }

    /// Counts each item of the batch once.
    pub fn observe<B: Items<K> + ?Sized>(&mut self, batch: &B) {
        self.start(batch.len(), batch.len() as u64);
        self.add_all(batch, batch.len(), |position| (position, 1));
    }

    /// Counts the items at the given positions of the batch once.
    ///
    /// # Panics
    ///
    /// If the batch has no such position.
    pub fn observe_at<B: Items<K> + ?Sized>(&mut self, batch: &B, positions: &[u32]) {
        self.start(positions.len(), positions.len() as u64);
        self.add_all(batch, positions.len(), |place| (positions[place] as usize, 1));
    }

    /// Counts each item of the batch with its weight; weight 0 leaves no trace.
    ///
    /// # Panics
    ///
    /// If there are not as many weights as items.
    ///
    /// # Examples
    ///
    /// ```
    /// use trommel_operators::frequent_items::SpaceSaving;
    ///
    /// let mut bytes = SpaceSaving::new(100)?;
    /// bytes.observe_weighted(&["/a", "/b", "/a"][..], &[1_500, 40, 200]);
    /// assert_eq!(bytes.estimate("/a").map(|counted| counted.count), Some(1_700));
    /// assert_eq!((bytes.estimate("/c"), bytes.count_min()), (None, 0));
    /// # Ok::<(), trommel_operators::frequent_items::CapacityError>(())
    /// ```
    pub fn observe_weighted<B: Items<K> + ?Sized>(&mut self, batch: &B, weights: &[u64]) {
        let (items, weights_len) = (batch.len(), weights.len());
        assert!(items == weights_len, "{items} items need as many weights, not {weights_len}");
        let weight = weights.iter().fold(0, |sum: u64, &weight| sum.saturating_add(weight));
        self.start(items, weight);
        self.add_all(batch, items, |position| (position, weights[position]));
    }

    /// Counts the items at the given positions of the batch with their weights; weight 0 leaves no
    /// trace.
    ///
    /// # Panics
    ///
    /// If the batch or the weights have no such position.
    pub fn observe_weighted_at<B: Items<K> + ?Sized>(
        &mut self,
        batch: &B,
        weights: &[u64],
        positions: &[u32],
    ) {
        let chosen = positions.iter().map(|&position| weights[position as usize]);
        let weight = chosen.fold(0, |sum: u64, weight| sum.saturating_add(weight));
        self.start(positions.len(), weight);
        let weighted = |position: u32| (position as usize, weights[position as usize]);
        self.add_all(batch, positions.len(), |place| weighted(positions[place]));
    }

    /// Prepares for a batch of `items` items that have `weight` in all.
    fn start(&mut self, items: usize, weight: u64) {
        self.index.refresh(items);
        self.observed = self.observed.saturating_add(weight);
        self.max_cache.forget();
    }

    /// Counts `len` items: `weighted` tells the position of each in the batch, and its weight.
    #[inline(always)]
    fn add_all<B: Items<K> + ?Sized>(
        &mut self,
        batch: &B,
        len: usize,
        weighted: impl Fn(usize) -> (usize, u64),
    ) {
        if K::CODE_IS_ITEM {
            // Such items are found so soon that fetching memory in advance would take longer.
            for (position, weight) in (0..len).map(weighted) {
                let key = batch.key(position, self.index.secret());
                self.add(batch.item(position), key, self.index.head(key), weight);
            }
            return;
        }
        let (mut keys, mut heads) = ([K::Key::default(); BLOCK], [0; BLOCK]);
        for start in (0..len).step_by(BLOCK) {
            let block = start..len.min(start + BLOCK);
            for ((key, head), place) in keys.iter_mut().zip(&mut heads).zip(block.clone()) {
                *key = batch.key(weighted(place).0, self.index.secret());
                *head = self.index.head(*key);
            }
            // The heads of chains are on their way while the last keys are computed. The first
            // nodes are on their way while the other heads are read.
            let heads = &heads[..block.len()];
            heads.iter().for_each(|&head| self.index.prefetch_head(head));
            heads.iter().for_each(|&head| self.index.prefetch_first(head));
            for ((&key, &head), place) in keys.iter().zip(heads).zip(block) {
                let (position, weight) = weighted(place);
                self.add(batch.item(position), key, head, weight);
            }
        }
    }

    #[inline(always)]
    fn add(&mut self, item: K::Ref<'_>, key: K::Key, head: u32, weight: u64) {
        if weight == 0 {
            return;
        }
        if let Some(slot) = self.index.find(item, key, head) {
            // The queue of minima needs no note: it reads the count when the turn of the counter
            // comes.
            let count = &mut self.counts[slot as usize];
            *count = count.saturating_add(weight);
        } else if self.index.len() < self.counters {
            self.push(Counted { item: K::new(item, key), count: weight, error: 0 });
        } else {
            let slot = self.min_queue.take_min(&self.counts);
            if !K::CODE_IS_ITEM
                && let Some(next) = self.min_queue.candidate()
            {
                self.index.prefetch_link(next);
            }
            let min = self.counts[slot as usize];
            let count = min.saturating_add(weight);
            self.counts[slot as usize] = count;
            self.errors[slot as usize] = min;
            self.index.assign(slot, item, key, head);
            self.min_queue.put_back(slot, count, self.counters);
        }
    }

    #[cold]
    fn push(&mut self, counted: Counted<K>) {
        self.index.push(counted.item);
        self.counts.push(counted.count);
        self.errors.push(counted.error);
    }

    /// The back half of an exchange of bins (KDD 2012, Fig. 5, lines 11-15; Fig. 10): monitors
    /// `x_min`, and hands over the counter with the largest count, `x_min` itself if no other count
    /// is larger.
    ///
    /// Without `x_min`, the counter that is handed over is free afterwards; the answer is `None`
    /// only if no item was monitored. After the call, no count is above the count that was handed
    /// over. N does not change: N is the observed weight, and no longer the sum of the counts.
    ///
    /// # Cost
    ///
    /// O(k) for the first exchange after an update and for every sixteenth that follows, O(1) for
    /// the others.
    ///
    /// # Panics
    ///
    /// In debug builds, if the item of `x_min` is monitored.
    pub fn exchange(&mut self, x_min: Option<Counted<K>>) -> Option<Counted<K>> {
        let max = self.max_cache.take_max(&self.counts);
        match (x_min, max) {
            (None, None) => None,
            (None, Some((_, slot))) => Some(self.remove(slot)),
            (Some(x_min), Some((count, slot))) if count > x_min.count => {
                Some(self.replace(slot, x_min))
            }
            (Some(x_min), _) => {
                self.max_cache.forget();
                Some(x_min)
            }
        }
    }

    fn remove(&mut self, slot: u32) -> Counted<K> {
        self.min_queue.forget();
        self.max_cache.forget();
        Counted {
            item: self.index.swap_remove(slot),
            count: self.counts.swap_remove(slot as usize),
            error: self.errors.swap_remove(slot as usize),
        }
    }

    fn replace(&mut self, slot: u32, new: Counted<K>) -> Counted<K> {
        debug_assert!(
            self.index.items().all(|item| *item != new.item),
            "{:?} is monitored",
            new.item
        );
        self.min_queue.put_back(slot, new.count, self.counters);
        self.max_cache.replaced(new.count);
        Counted {
            item: self.index.replace(slot, new.item),
            count: std::mem::replace(&mut self.counts[slot as usize], new.count),
            error: std::mem::replace(&mut self.errors[slot as usize], new.error),
        }
    }

    /// The `n` largest counters: count descending, ties by item ascending. O(k log n).
    #[must_use]
    pub fn top(&self, n: usize) -> Vec<Counted<K>> {
        top(self.iter(), n)
    }

    /// The counter of an item, if it is monitored. If not, its true count is at most
    /// [`Self::count_min`].
    #[must_use]
    pub fn estimate(&self, item: K::Ref<'_>) -> Option<Counted<&K>> {
        let slot = self.index.slot_of(item)?;
        Some(Counted {
            item: self.index.item(slot),
            count: self.counts[slot as usize],
            error: self.errors[slot as usize],
        })
    }

    /// The monitored items, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = Counted<&K>> {
        let bounds = self.counts.iter().zip(&self.errors);
        self.index.items().zip(bounds).map(|(item, (&count, &error))| Counted {
            item,
            count,
            error,
        })
    }

    /// The smallest count, 0 while a counter is free: the most that an unmonitored item can have
    /// been seen. O(k).
    #[must_use]
    pub fn count_min(&self) -> u64 {
        let full = self.index.len() == self.counters;
        if full { self.counts.iter().copied().min().unwrap_or(0) } else { 0 }
    }

    /// N: the weight observed so far, saturating.
    #[must_use]
    pub fn observed(&self) -> u64 {
        self.observed
    }

    /// k: the most items that can be monitored.
    #[must_use]
    pub fn counters(&self) -> usize {
        self.counters
    }

    /// The number of monitored items.
    #[must_use]
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether nothing is monitored.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.index.len() == 0
    }

    /// Bytes of memory that the summary holds, itself included. O(k) for text items, whose strings
    /// are counted.
    #[must_use]
    pub fn state_bytes(&self) -> usize {
        size_of::<Self>()
            + self.index.heap_bytes()
            + (self.counts.capacity() + self.errors.capacity()) * size_of::<u64>()
            + self.min_queue.heap_bytes()
            + self.max_cache.heap_bytes()
    }
}
