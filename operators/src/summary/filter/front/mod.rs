//! The front half of the filter: the few bins X that absorb the most frequent items.

mod stored;

use trommel_kernels::Isa;
use trommel_kernels::filter::{self, Absorbed, Bins, NO_LANE};

use crate::shared::items::{Item, Items};
use crate::summary::counted::Counted;
use crate::summary::space_saving::SpaceSaving;

/// Number of text items that are hashed and searched before their strings are compared. The number
/// is small, because items after a full buffer of misses are hashed again.
const BLOCK_ITEMS: usize = 128;

/// The bins X of Algorithm Filter, in front of a [`SpaceSaving`] Y.
///
/// [`Filter::into_halves`](super::Filter::into_halves) makes the bins. The host of the two halves,
/// which is [`Filter`](super::Filter) or, in a pipeline, two stages, does for each batch:
///
/// ```text
/// until the batch is used up:
///     while front.exchange_due():  front.put_max(back.exchange(front.take_min()))
///     front.absorb(batch, start, missed)            stops when a bin may have to be exchanged
///     back.observe_at(batch, missed)
/// ```
///
/// The host waits only for the answer of `exchange`. Missed items may be under way to Y in any
/// number of messages, as long as Y receives the items and the exchanges in this order.
///
/// # Consistency
///
/// The sum n of the counts in Y is known here: the forwarded weight, plus each count handed over,
/// minus each count received. Y has a count of at most floor(n / |Y|), where a free counter counts
/// as 0. So an item may be forwarded while floor(n / |Y|) <= min X, that is, while `n < (min X + 1)
/// |Y|`, where a free bin counts as 0. Then the smallest of all k counts is in Y, and SpaceSaving
/// with k counters would replace the same counter.
///
/// Counts in X only grow, so an earlier `min X` is a lower bound (footnote 2 of the paper). `min X`
/// is read again only when n reaches the limit that follows from it. Then, while `n > min X |Y|`
/// (line 11 of Fig. 5), the smallest bin of X is exchanged for the largest counter of Y, or a free
/// bin is filled. Afterwards a weight of |Y| more may be forwarded, so exchanges come at most once
/// for a forwarded weight of |Y|. Each exchange lowers n, for min X < n / |Y| <= max Y. Each
/// exchange takes the maximum of Y, so no counter that comes to X leaves X again before the
/// condition holds: there are at most |X| exchanges.
/// |X| exchanges.
///
/// With saturated counts, n can exceed the sum, and an exchange can fail to lower n. Therefore n is
/// also bounded by |Y| times the received count, because no count in Y is larger then. When Y sends
/// the bin of X back, this bound alone fulfils the condition, so the exchanges end there, too. n
/// has 128 bits and cannot overflow.
///
/// Departure from the paper: Fig. 5 exchanges one bin and goes on, although the condition may still
/// be violated. Here the condition holds whenever an item is forwarded.
///
/// # Examples
///
/// ```
/// use trommel_kernels::Isa;
/// use trommel_operators::frequent_items::Filter;
///
/// let (mut front, mut back) = Filter::new(Isa::selected()?, 10, 2)?.into_halves();
/// let (batch, mut missed) = (&[7_u32, 1, 7, 2, 7, 3][..], [0; 64]);
/// let mut start = 0;
/// while start < batch.len() {
///     while front.exchange_due() {
///         let smallest = front.take_min();
///         front.put_max(back.exchange(smallest));
///     }
///     let done = front.absorb(batch, start, &mut missed);
///     back.observe_at(batch, &missed[..done.missed]);
///     start += done.consumed;
/// }
/// let seven = front.iter().chain(back.iter()).find(|counted| *counted.item == 7);
/// assert_eq!(seven.map(|counted| counted.count), Some(3));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct FilterFront<K: Item> {
    isa: Isa,
    /// Of the codes.
    secret: K::Secret,
    /// |X|, free bins included.
    bins_max: usize,
    /// |Y|.
    back_counters: u64,
    /// By bin, as `counts` and `kept`: the keys of the kernel.
    codes: Vec<K::Code>,
    counts: Vec<u64>,
    /// Item and error.
    kept: Vec<(K, u64)>,
    /// n: at least the sum of the counts in Y.
    forwarded: u128,
    /// Items may be forwarded while `forwarded` is below; 0 while an exchange is due.
    forwarded_end: u128,
    /// Between [`Self::take_min`] and [`Self::put_max`].
    is_exchanging: bool,
    observed: u64,
    /// For text: the codes of a block, and the bins that may have these codes.
    block_codes: Vec<K::Code>,
    block_lanes: Vec<u8>,
}

impl<K: Item> FilterFront<K> {
    /// `bins` from 1 to 64, `back_counters` at least 1: checked by the caller.
    pub(in crate::summary) fn new(
        isa: Isa,
        bins: usize,
        back_counters: usize,
        secret: K::Secret,
    ) -> Self {
        let back_counters = back_counters as u64;
        Self {
            isa,
            secret,
            bins_max: bins,
            back_counters,
            codes: Vec::with_capacity(bins),
            counts: Vec::with_capacity(bins),
            kept: Vec::with_capacity(bins),
            forwarded: 0,
            forwarded_end: back_counters.into(),
            is_exchanging: false,
            observed: 0,
            block_codes: Vec::new(),
            block_lanes: Vec::new(),
        }
    }

    /// A front half of the same size with these bins, in front of `back`. No count of `back` is
    /// above a count of the bins.
    pub(in crate::summary) fn rebuilt(
        &self,
        observed: u64,
        bins: Vec<Counted<K>>,
        back: &SpaceSaving<K>,
    ) -> Self {
        let back_counters = usize::try_from(self.back_counters).expect("it was one");
        let mut front = Self::new(self.isa, self.bins_max, back_counters, self.secret.clone());
        front.observed = observed;
        front.forwarded = back.iter().map(|counted| u128::from(counted.count)).sum();
        // The limit is computed when the next batch comes.
        front.forwarded_end = 0;
        bins.into_iter().for_each(|counted| front.push(counted));
        front
    }

    /// Puts an item from elsewhere into a free bin.
    fn push(&mut self, counted: Counted<K>) {
        let Counted { mut item, count, error } = counted;
        item.rekey(&self.secret);
        self.codes.push(K::code_of_key(item.key(), &self.secret));
        self.counts.push(count);
        self.kept.push((item, error));
    }

    /// Takes the items of a batch from position `start` on: counts the items in X, and writes the
    /// positions of the others, to be forwarded to Y, to the front of `missed`.
    ///
    /// Stops after the item that fills `missed` or that uses up the weight that may be forwarded;
    /// then, or when an exchange is due at once, call [`Self::exchange_due`]. Consumes nothing
    /// while it is due.
    ///
    /// # Panics
    ///
    /// If the batch is shorter than `start` or has 2^32 items or more, or during an exchange.
    pub fn absorb<B: Items<K> + ?Sized>(
        &mut self,
        batch: &B,
        start: usize,
        missed: &mut [u32],
    ) -> Absorbed {
        let budget = self.budget();
        let room = usize::try_from(budget).unwrap_or(usize::MAX).min(missed.len());
        let missed = &mut missed[..room];
        let done = if K::CODE_IS_ITEM {
            let codes = batch.codes(start..batch.len(), &self.secret, &mut self.block_codes);
            let bins = Bins { keys: &self.codes, counts: &mut self.counts };
            let done = filter::absorb(self.isa, bins, codes, missed);
            shift(&mut missed[..done.missed], start);
            done
        } else {
            self.absorb_verified(batch, |_| 1, start, budget, missed)
        };
        self.account(done, done.consumed as u64)
    }

    /// Like [`Self::absorb`] with the weight of each item of the batch.
    ///
    /// # Panics
    ///
    /// As [`Self::absorb`], and if there are not as many weights as items.
    pub fn absorb_weighted<B: Items<K> + ?Sized>(
        &mut self,
        batch: &B,
        weights: &[u64],
        start: usize,
        missed: &mut [u32],
    ) -> Absorbed {
        let (items, weights_len) = (batch.len(), weights.len());
        assert!(items == weights_len, "{items} items need as many weights, not {weights_len}");
        let budget = self.budget();
        let done = if K::CODE_IS_ITEM {
            let codes = batch.codes(start..items, &self.secret, &mut self.block_codes);
            let bins = Bins { keys: &self.codes, counts: &mut self.counts };
            let weights = &weights[start..];
            let done = filter::absorb_weighted(self.isa, bins, codes, weights, budget, missed);
            shift(&mut missed[..done.missed], start);
            done
        } else {
            self.absorb_verified(batch, |position| weights[position], start, budget, missed)
        };
        let consumed = &weights[start..start + done.consumed];
        self.account(done, consumed.iter().fold(0, |sum: u64, &weight| sum.saturating_add(weight)))
    }

    /// The weight that may still be forwarded; 0 when an exchange is due.
    fn budget(&mut self) -> u64 {
        if self.exchange_due() {
            return 0;
        }
        u64::try_from(self.forwarded_end - self.forwarded).unwrap_or(u64::MAX)
    }

    fn account(&mut self, done: Absorbed, weight: u64) -> Absorbed {
        self.observed = self.observed.saturating_add(weight);
        self.forwarded += u128::from(done.missed_weight);
        done
    }

    /// The form for items whose code may be shared: searches the codes of a block, then compares
    /// the items.
    fn absorb_verified<B: Items<K> + ?Sized>(
        &mut self,
        batch: &B,
        weight: impl Fn(usize) -> u64,
        start: usize,
        budget: u64,
        missed: &mut [u32],
    ) -> Absorbed {
        let mut done = Absorbed::default();
        let mut codes = std::mem::take(&mut self.block_codes);
        let mut lanes = std::mem::take(&mut self.block_lanes);
        'batch: while start + done.consumed < batch.len() {
            let first = start + done.consumed;
            let end = batch.len().min(first + BLOCK_ITEMS);
            let block = batch.codes(first..end, &self.secret, &mut codes);
            lanes.resize(block.len(), NO_LANE);
            // Codes are compared by SIMD, and strings only where a code was found.
            filter::locate(self.isa, &self.codes, block, &mut lanes);
            for (position, &lane) in (first..).zip(&lanes) {
                if done.missed == missed.len() || done.missed_weight >= budget {
                    break 'batch;
                }
                let weight = weight(position);
                if let Some(bin) = self.verified(batch, position, lane) {
                    self.counts[bin] = self.counts[bin].saturating_add(weight);
                } else {
                    missed[done.missed] =
                        u32::try_from(position).expect("a batch has less than 2^32 items");
                    done.missed += 1;
                    done.missed_weight = done.missed_weight.saturating_add(weight);
                }
                done.consumed += 1;
            }
        }
        (self.block_codes, self.block_lanes) = (codes, lanes);
        done
    }

    /// The bin of the item at `position`, whose code was found in `lane`, the first of the bins
    /// with that code.
    #[inline]
    fn verified<B: Items<K> + ?Sized>(
        &self,
        batch: &B,
        position: usize,
        lane: u8,
    ) -> Option<usize> {
        if lane == NO_LANE {
            return None;
        }
        let lane = usize::from(lane);
        let (item, key) = (batch.item(position), batch.key(position, &self.secret));
        if self.kept[lane].0.is(item, key) {
            return Some(lane);
        }
        let mut others = self.kept.iter().skip(lane + 1);
        others.position(|(kept, _)| kept.is(item, key)).map(|offset| lane + 1 + offset)
    }

    /// Whether a bin of X has to be exchanged before anything more is forwarded; often the smallest
    /// count in X has grown and the answer is no.
    ///
    /// # Panics
    ///
    /// During an exchange.
    pub fn exchange_due(&mut self) -> bool {
        assert!(!self.is_exchanging, "an exchange is under way: put_max comes first");
        if self.forwarded < self.forwarded_end {
            return false;
        }
        let back_counters = u128::from(self.back_counters);
        let safe = u128::from(self.count_min()) * back_counters;
        let due = self.forwarded > safe;
        self.forwarded_end = if due { 0 } else { safe + back_counters };
        due
    }

    /// Starts an exchange: takes the bin with the smallest count out of X, for Y to monitor. `None`
    /// if X has a free bin to be filled.
    ///
    /// # Panics
    ///
    /// During an exchange.
    pub fn take_min(&mut self) -> Option<Counted<K>> {
        assert!(!self.is_exchanging, "an exchange is under way: put_max comes first");
        self.is_exchanging = true;
        if self.codes.len() < self.bins_max {
            return None;
        }
        let (bin, _) = self.counts.iter().enumerate().min_by_key(|&(_, &count)| count)?;
        self.codes.swap_remove(bin);
        let (item, error) = self.kept.swap_remove(bin);
        let count = self.counts.swap_remove(bin);
        self.forwarded += u128::from(count);
        Some(Counted { item, count, error })
    }

    /// Ends an exchange: puts the answer of Y into the free bin. Another exchange may be due at
    /// once.
    ///
    /// # Panics
    ///
    /// If no exchange is under way.
    pub fn put_max(&mut self, y_max: Option<Counted<K>>) {
        assert!(self.is_exchanging, "no exchange is under way: take_min comes first");
        self.is_exchanging = false;
        let Some(counted) = y_max else {
            self.forwarded = 0;
            return;
        };
        let count = u128::from(counted.count);
        let rest = self.forwarded.saturating_sub(count);
        self.forwarded = rest.min(count * u128::from(self.back_counters));
        self.push(counted);
    }

    /// The bins in use, in no particular order. During an exchange, the bin that was taken out is
    /// not among them.
    pub fn iter(&self) -> impl Iterator<Item = Counted<&K>> {
        let kept = self.kept.iter().zip(&self.counts);
        kept.map(|((item, error), &count)| Counted { item, count, error: *error })
    }

    /// The bin of an item, if it is in X.
    #[must_use]
    pub fn estimate(&self, item: K::Ref<'_>) -> Option<Counted<&K>> {
        let key = K::key_of(item, &self.secret);
        self.iter().find(|counted| counted.item.is(item, key))
    }

    /// The smallest count, 0 while a bin is free.
    #[must_use]
    pub fn count_min(&self) -> u64 {
        let full = self.counts.len() == self.bins_max;
        if full { self.counts.iter().copied().min().unwrap_or(0) } else { 0 }
    }

    /// N: the weight of all items taken, absorbed or forwarded, saturating.
    #[must_use]
    pub fn observed(&self) -> u64 {
        self.observed
    }

    /// |X|.
    #[must_use]
    pub fn bins(&self) -> usize {
        self.bins_max
    }

    /// The instruction-set level of the search.
    #[must_use]
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// Bytes of memory that the front half holds, itself included.
    #[must_use]
    pub fn state_bytes(&self) -> usize {
        let codes = self.codes.capacity() + self.block_codes.capacity();
        size_of::<Self>()
            + codes * size_of::<K::Code>()
            + self.counts.capacity() * size_of::<u64>()
            + self.kept.capacity() * size_of::<(K, u64)>()
            + self.kept.iter().map(|(item, _)| item.heap_bytes()).sum::<usize>()
            + self.block_lanes.capacity()
    }
}

/// Makes positions in the rest of a batch positions in the batch.
fn shift(positions: &mut [u32], start: usize) {
    let start = u32::try_from(start).expect("a batch has less than 2^32 items");
    for position in positions {
        *position = position.checked_add(start).expect("a batch has less than 2^32 items");
    }
}
