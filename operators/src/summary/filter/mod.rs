//! Algorithm Filter: SpaceSaving whose most frequent items are counted in SIMD registers.

mod front;
mod stored;

use trommel_kernels::Isa;
use trommel_kernels::filter::BINS_MAX;

pub use self::front::FilterFront;
use super::capacity::CapacityError;
use super::counted::{Counted, top};
use super::space_saving::SpaceSaving;
use crate::shared::items::{Item, Items};
use crate::shared::names::secret::random_seed;

/// Number of missed items that the front half collects before the back half takes them: 8 KiB of
/// positions.
const MISSED_MAX: usize = 2048;

/// Frequent items in one pass: a few bins X, searched by SIMD, in front of a [`SpaceSaving`] Y.
///
/// Source: Roy, Teubner, Alonso, *Efficient Frequent Item Counting in Multi-Core Hardware*, KDD
/// 2012, §3, Fig. 5. Here, both halves run in the caller's thread; [`Self::into_halves`] gives the
/// halves to two threads (§4).
///
/// ```text
///            ┌─ X: 1 to 64 bins, all compared at once ─┐   missed   ┌─ Y: SpaceSaving ─┐
/// batch ───► │ found: count + 1                        │ ─────────► │ the others       │
///            └─────────────────────────────────────────┘            └──────────────────┘
///                     smallest bin of X  ◄── exchanged now and then ──►  largest of Y
/// ```
///
/// # Guarantees
///
/// The guarantees are those of [`SpaceSaving`] with k = |X| + |Y| counters; [`FilterFront`] has the
/// proof. The result depends neither on the cut of the stream into batches nor on the instruction
/// set.
///
/// # Cost
///
/// One SIMD search per item, and the cost of SpaceSaving for each item that is not in X; at most
/// |X| exchanges per |Y| forwarded items, one in sixteen of which looks at all counters.
///
/// # Examples
///
/// ```
/// use trommel_kernels::Isa;
/// use trommel_operators::frequent_items::Filter;
///
/// let mut filter = Filter::new(Isa::selected()?, 1_000, 16)?;
/// filter.observe(&["sand", "gold", "sand", "sand"][..]);
/// let top = &filter.top(1)[0];
/// assert_eq!((&*top.item, top.count, top.error), ("sand", 3, 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Filter<K: Item> {
    front: FilterFront<K>,
    back: SpaceSaving<K>,
    /// Positions on their way from the front to the back.
    missed: Vec<u32>,
}

impl<K: Item> Filter<K> {
    /// An empty filter with `counters` counters, `bins` of which are X.
    ///
    /// # Errors
    ///
    /// [`CapacityError::Bins`] if there are no bins or more than 64,
    /// [`CapacityError::NoBackCounters`] if they are all the counters, [`CapacityError::Counters`]
    /// if there are too many counters; nothing is allocated then.
    ///
    /// # Panics
    ///
    /// Not here, but at the first item, if this machine lacks the instruction set.
    pub fn new(isa: Isa, counters: usize, bins: usize) -> Result<Self, CapacityError> {
        if bins == 0 || bins > BINS_MAX {
            return Err(CapacityError::Bins { bins });
        }
        if counters <= bins {
            return Err(CapacityError::NoBackCounters { counters, bins });
        }
        let back_counters = counters - bins;
        let secret = K::secret(random_seed());
        let back = SpaceSaving::with_secret(back_counters, secret.clone())
            .map_err(|_| CapacityError::Counters { counters })?;
        let front = FilterFront::new(isa, bins, back_counters, secret);
        Ok(Self { front, back, missed: vec![0; MISSED_MAX] })
    }

    /// Counts each item of the batch once.
    ///
    /// # Panics
    ///
    /// If the batch has 2^32 items or more.
    pub fn observe<B: Items<K> + ?Sized>(&mut self, batch: &B) {
        let mut start = 0;
        while start < batch.len() {
            exchange_while_due(&mut self.front, &mut self.back);
            let done = self.front.absorb(batch, start, &mut self.missed);
            self.back.observe_at(batch, &self.missed[..done.missed]);
            start += done.consumed;
        }
    }

    /// Counts each item of the batch with its weight; weight 0 leaves no trace.
    ///
    /// # Panics
    ///
    /// If there are not as many weights as items, or 2^32 items or more.
    pub fn observe_weighted<B: Items<K> + ?Sized>(&mut self, batch: &B, weights: &[u64]) {
        let mut start = 0;
        while start < batch.len() {
            exchange_while_due(&mut self.front, &mut self.back);
            let done = self.front.absorb_weighted(batch, weights, start, &mut self.missed);
            self.back.observe_weighted_at(batch, weights, &self.missed[..done.missed]);
            start += done.consumed;
        }
    }

    /// A filter of the same size that monitors these items instead, in the order of their ranks.
    pub(super) fn rebuilt(&self, observed: u64, mut counted: Vec<Counted<K>>) -> Self {
        let others = counted.split_off(counted.len().min(self.bins()));
        let forwarded = others.iter().fold(0, |sum: u64, other| sum.saturating_add(other.count));
        let secret = self.back.secret().clone();
        let back = SpaceSaving::from_counted(self.back.counters(), secret, forwarded, others);
        Self {
            front: self.front.rebuilt(observed, counted, &back),
            back,
            missed: vec![0; MISSED_MAX],
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
        self.front.estimate(item).or_else(|| self.back.estimate(item))
    }

    /// The monitored items, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = Counted<&K>> {
        self.front.iter().chain(self.back.iter())
    }

    /// The smallest count, 0 while a counter is free: the most that an unmonitored item can have
    /// been seen. O(k).
    #[must_use]
    pub fn count_min(&self) -> u64 {
        self.front.count_min().min(self.back.count_min())
    }

    /// N: the weight observed so far, saturating.
    #[must_use]
    pub fn observed(&self) -> u64 {
        self.front.observed()
    }

    /// k: the most items that can be monitored, |X| + |Y|.
    #[must_use]
    pub fn counters(&self) -> usize {
        self.front.bins() + self.back.counters()
    }

    /// |X|.
    #[must_use]
    pub fn bins(&self) -> usize {
        self.front.bins()
    }

    /// The filter of two halves that belong together.
    pub(crate) fn from_halves(front: FilterFront<K>, back: SpaceSaving<K>) -> Self {
        Self { front, back, missed: vec![0; MISSED_MAX] }
    }

    /// Bytes of memory that the filter holds, itself included.
    #[must_use]
    pub fn state_bytes(&self) -> usize {
        self.front.state_bytes()
            + self.back.state_bytes()
            + size_of::<Vec<u32>>()
            + self.missed.capacity() * size_of::<u32>()
    }

    /// The two halves X and Y, for a host that runs the halves in two threads. [`FilterFront`] says
    /// how.
    #[must_use]
    pub fn into_halves(self) -> (FilterFront<K>, SpaceSaving<K>) {
        (self.front, self.back)
    }
}

/// Exchanges bins of X for counters of Y until X and Y are consistent again.
pub(crate) fn exchange_while_due<K: Item>(front: &mut FilterFront<K>, back: &mut SpaceSaving<K>) {
    while front.exchange_due() {
        let x_min = front.take_min();
        front.put_max(back.exchange(x_min));
    }
}
