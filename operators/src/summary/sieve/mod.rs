//! The sieve: SpaceSaving after cells that catch cold items and a filter that takes out hot items.
//!
//! ```text
//!                 hot: 0 to 8 keys           cells { key, hits, alpha[4] }        k + e counters
//!           ┌─ vertical SIMD filter ─┐ missed ┌─ hit: hits + 1 ──────────┐ rare ┌──────────────┐
//! batch ──► │ found: counter + 1     │ ─────► │ cold: alpha + 1, up to   │ ───► │ the smallest │
//!           └────────────────────────┘        │ the entry line           │      │ is replaced  │
//!                                             └──────────────────────────┘      └──────────────┘
//! ```
//!
//! Sources: Metwally, Agrawal, El Abbadi, *Efficient Computation of Frequent and Top-k Elements in
//! Data Streams*, ICDT 2005 (SpaceSaving); Homem, Carvalho, *Finding top-k elements in data
//! streams*, Information Sciences 180 (2010), §4 (filtered SpaceSaving: `alpha`); Roy, Teubner,
//! Alonso, *Efficient Frequent Item Counting in Multi-Core Hardware*, KDD 2012 (a SIMD filter for
//! the hottest items). Departures: cells are direct-mapped and hold the hits of their resident. The
//! *entry line* may be above the smallest count, which keeps cold items out of the counters at the
//! price of e more counters. The filter is vertical and adapts to the stream.
//!
//! # Guarantees
//!
//! Let N be the weight of the stream so far, k the counters asked for, e >= 1 the extra ones, and
//! C = k + e. Each cell has four places, and each place has a number alpha. The *slack* L is at
//! most N e / (k C), and the *line* l is at least L; neither ever falls. When an item of a positive
//! weight w arrives:
//!
//! - if the item is monitored, w is added to its count;
//! - else, while a counter is free, the item gets that counter, with count w and error 0;
//! - else, if alpha + w <= l in its place, w is added to that alpha;
//! - else l rises to the smallest count, if that is larger, and the item tries again. If alpha + w
//!   is still above the line, the item replaces a counter whose count v is at most L, or the
//!   smallest counter if no such counter exists or is found, with error a and count a + w, where
//!   alpha <= a <= l and a + w > l. The alpha of the place of the replaced item is raised to v if
//!   it is smaller.
//!
//! As long as N does not saturate:
//!
//! 1. *The smallest count m never falls* once all counters are taken: counts only grow, and an item
//!    enters with a count above l, where l >= m. So l, the largest one of L and of some earlier m,
//!    is never above the larger one of L and m; at a replacement it is L if m <= L, and otherwise
//!    m.
//! 2. *alpha <= l, and no unmonitored item of a place was seen more than alpha times.* While a
//!    counter is free, alpha is 0 and every item that arrived is monitored. Later, an unmonitored
//!    item that arrives and stays out adds its weight to alpha and to its true count. An item that
//!    is replaced has the count v <= l, which is not below its true count (3), and alpha is raised
//!    to v. Alpha is otherwise never lowered.
//! 3. *`count - error <= true count <= count`, and `error <= l`.* At the entry, the true count was
//!    between 0 and alpha <= a (2), and w has been added. So the true count is between w = count -
//!    error and count = a + w. Later arrivals add to both sides.
//! 4. *The excess E, the sum of max(0, count - L) over all counters, is at most N.* An arrival at a
//!    counter adds at most w to E, an arrival at alpha nothing, a growing L lowers E. When v is
//!    replaced by a + w and m <= L, then l = L (1), and a <= L adds at most w. Otherwise v = m = l,
//!    and E changes by (a + w - L) - (v - L) <= w, because a <= v.
//! 5. *l <= N / k.* Where l becomes L that is true because e <= C. Where it becomes m > L, all C
//!    counts are at least m, so that C (m - L) <= E <= N (4), and m <= L + N / C
//!    <= N (e / (k C) + k / (k C)) = N / k. N only grows.
//!
//! Together: **no count is below the true count, none exceeds it by more than N / k, and every item
//! that was seen more than N / k times is monitored** (2, 5); an item that is not monitored was
//! seen at most l times ([`Sieve::count_min`]). With at most C distinct items, all counts are
//! exact.
//!
//! The proof takes items in any order and batch: the proof holds after every prefix of every
//! stream, and therefore also for a block whose hot items are counted before the other items, and
//! whose refused items are counted last. The proof does not mention the hash function: knowledge of
//! the function can make the sieve slow, but not wrong. e is free to choose: with e = k, the rule
//! is "monitor 2 k items and enter at N / 2 k"; with no slack, L = 0 and e = 0, the rule is Homem
//! and Carvalho's with k counters.
//!
//! With M places, alpha is N / M on average, and e = f k^2 / M makes L about f N / M. [`Sieve`]
//! lets f be 6 if M allows, so that neither cold items nor the many items of middling frequency
//! reach the line often. With 4, Zipf 0.8 to 1 was a quarter slower, and more than 6 gained
//! nothing. But an item that is less frequent than L / N may never enter. So e is no more than a
//! tenth of k, and L no more than an eleventh of the bound N / k, as long as f stays at least 1.5:
//! with less, the line is in the midst of the alphas, and most items enter. For 1,000 counters and
//! 65,536 places, e is 92.
//!
//! # Secrets
//!
//! Each sieve draws the hash of its cells and the secret of the keys and codes of text at random,
//! and the hash of its `index` independently of both. So an item that was chosen without knowledge
//! of these costs, whatever the stream is, at most one cell, one short chain, and the replacement
//! of a counter. The cells decide which items enter, so counts differ from run to run, within their
//! bounds; [`Sieve::with_seed`] repeats the counts. A snapshot carries the seed of the cells and
//! the keys: who knows the seed can find items that share cells and texts that share keys. The hash
//! of the index is never written.
//!
//! Weights and counts have 64 bits and saturate. When N has saturated, (1), (2) and (3) still hold
//! for true counts that saturate likewise, and the bounds by N / k end.
//!
//! `docs/reference/sieve.md` follows the items of a block through the code.
//!
//! | file | contents |
//! |---|---|
//! | `counting` | the path of an item |
//! | `shape`, `scratch` | sizes, and buffers of a block |
//! | `table` | the cells, and the loop over the keys of a batch |
//! | `hot`, `hottest` | the items that the filter takes out, and the rule that chooses them |
//! | `lowest` | the counter with the smallest count |
//! | `merge` | two sieves become one |
//! | `stored` | a sieve as bytes |

mod counting;
mod hot;
mod hottest;
mod lowest;
mod merge;
mod scratch;
mod shape;
mod stored;
mod table;
#[cfg(test)]
mod tests;

use trommel_kernels::Isa;
use trommel_kernels::sieve::GROUP;

use self::counting::SpareCounters;
use self::hot::HotItems;
pub(crate) use self::hottest::{NARROW_SHARE, hottest};
use self::lowest::LowestCount;
use self::scratch::BlockScratch;
use self::shape::{CELLS_LOG_MAX, SieveShape};
use self::table::CellTable;
use super::capacity::{COUNTERS_MAX, CapacityError};
use super::counted::{Counted, top};
use super::index::ItemIndex;
use crate::shared::items::{Item, Items};
use crate::shared::names::secret::Secret;

/// Frequent items in one pass: a cold item costs one cell, and hot items are counted by SIMD.
///
/// [The module](self) says how the sieve works and why the counts are right.
///
/// # Guarantees
///
/// For N items (or their weight) and k = [`Self::counters`]:
///
/// - `count - error <= true count <= count` for each monitored item, and `error <= N / k`;
/// - every item with a true count above N / k is monitored;
/// - no unmonitored item has a true count above [`Self::count_min`], which is at most N / k;
/// - with no more than k distinct items, all counts are exact.
///
/// Up to [`Self::monitored_max`] items are monitored, somewhat more than k. Within these bounds,
/// the result depends on the cut of the stream into batches and on the seed of the sieve, but not
/// on the instruction set.
///
/// # Cost
///
/// Two multiplications, one cell and one well-predicted branch per item, with a weight or without;
/// less for the items that the filter takes out. Amortized O(log k) for items that enter, and for
/// monitored ones that share their cell with another. A text of more than 15 bytes, whose key may
/// be shared, is compared with each hit. Memory: 24 to 40 bytes a cell, 16 cells a counter but at
/// most 16,384, and about 80 bytes a counter; see [`Self::state_bytes`]. Nothing is allocated per
/// item except for text items of more than 15 bytes.
///
/// # Examples
///
/// ```
/// use trommel_kernels::Isa;
/// use trommel_operators::frequent_items::Sieve;
///
/// let mut sieve = Sieve::new(Isa::selected()?, 1_000)?;
/// sieve.observe(&[7_u32, 7, 7, 1, 7, 2, 7][..]);
/// let top = &sieve.top(1)[0];
/// assert_eq!((top.item, top.count, top.error), (7, 5, 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Sieve<K: Item> {
    isa: Isa,
    shape: SieveShape,
    /// The secret of the cells and of the keys.
    secret: Secret,
    table: CellTable<K::Key>,
    index: ItemIndex<K>,
    /// The count of each slot, without the hits in the cells.
    counts: Vec<u64>,
    errors: Vec<u64>,
    lowest: LowestCount,
    /// The slack L.
    slack: u64,
    spare: SpareCounters,
    hot: HotItems<K::Code>,
    /// Number of items that crowded places have sent the slow way since the residents were chosen.
    detours: usize,
    observed: u64,
    scratch: BlockScratch<K>,
    /// The items of a block that the filter leaves.
    missed: Vec<K::Code>,
    /// A bit for each item of a block that its cell could not count.
    refused: Vec<u64>,
}

impl<K: Item> Sieve<K> {
    /// An empty sieve with the guarantees of `counters` counters. The sieve has 16 cells a counter,
    /// but no more than 16,384 cells unless that is less than two cells a counter.
    ///
    /// # Errors
    ///
    /// [`CapacityError::Counters`] if that is 0 or more than [`COUNTERS_MAX`]; nothing is allocated
    /// then.
    ///
    /// # Panics
    ///
    /// The first batch panics if this machine lacks the instruction set.
    pub fn new(isa: Isa, counters: usize) -> Result<Self, CapacityError> {
        check(counters)?;
        Ok(Self::with_shape(isa, SieveShape::usual(counters), Secret::random()))
    }

    /// Upper bound of the memory of a sieve that [`Self::new`] makes with up to [`COUNTERS_MAX`]
    /// counters, without the texts of items.
    pub(crate) fn bytes_max(counters: usize) -> usize {
        SieveShape::usual(counters).state_bytes_max::<K>()
    }

    /// A sieve with as many cells, a power of two, as a memory of `state_bytes_max` can hold beside
    /// the counters, without the texts of items. Fewer cells are slower and give larger errors,
    /// within the same bounds. In the same memory, twice as many counters as requested items, with
    /// five cells for each counter, find more of these items than more counters do.
    ///
    /// # Errors
    ///
    /// As for [`Self::new`], and [`CapacityError::StateBytes`] if the counters and 2 cells do not
    /// fit.
    ///
    /// # Examples
    ///
    /// ```
    /// use trommel_kernels::Isa;
    /// use trommel_operators::frequent_items::Sieve;
    ///
    /// let mut sieve = Sieve::within(Isa::selected()?, 100, 64_000)?;
    /// sieve.observe(&(0..100_000_u32).collect::<Vec<_>>()[..]);
    /// assert!(sieve.state_bytes() <= 64_000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn within(
        isa: Isa,
        counters: usize,
        state_bytes_max: usize,
    ) -> Result<Self, CapacityError> {
        check(counters)?;
        let mut shapes = (1..=CELLS_LOG_MAX).rev().map(|log| SieveShape::new(counters, 1 << log));
        match shapes.find(|shape| shape.state_bytes_max::<K>() <= state_bytes_max) {
            Some(shape) => Ok(Self::with_shape(isa, shape, Secret::random())),
            None => {
                let bytes_min = SieveShape::new(counters, 2).state_bytes_max::<K>();
                Err(CapacityError::StateBytes { counters, bytes: state_bytes_max, bytes_min })
            }
        }
    }

    /// An empty sieve of the same size with this seed: sieves with equal seeds give equal counts
    /// for equal batches.
    ///
    /// Without this call, each sieve draws a seed of its own. Who knows the seed can choose items
    /// that make counting slow, above all texts.
    ///
    /// # Examples
    ///
    /// ```
    /// use trommel_kernels::Isa;
    /// use trommel_operators::frequent_items::Sieve;
    ///
    /// let count = || -> Result<_, Box<dyn std::error::Error>> {
    ///     let mut sieve = Sieve::new(Isa::selected()?, 10)?.with_seed(7);
    ///     sieve.observe(&(0..1_000_u32).map(|i| i * i % 97).collect::<Vec<_>>()[..]);
    ///     Ok(sieve.top(20))
    /// };
    /// assert_eq!(count()?, count()?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Self {
        Self::with_shape(self.isa, self.shape, Secret::from_seed(seed))
    }

    fn with_shape(isa: Isa, shape: SieveShape, secret: Secret) -> Self {
        let slots = shape.slots();
        Self {
            isa,
            shape,
            secret,
            table: CellTable::new(shape.cells, secret.code_hash()),
            index: ItemIndex::new(slots, K::secret(secret.item_seed())),
            counts: Vec::with_capacity(slots),
            errors: Vec::with_capacity(slots),
            lowest: LowestCount::default(),
            slack: 0,
            spare: SpareCounters { slots: Vec::with_capacity(slots), slack: 0 },
            hot: HotItems::new(slots),
            detours: 0,
            observed: 0,
            scratch: BlockScratch::default(),
            missed: Vec::new(),
            refused: Vec::with_capacity(shape.block().div_ceil(GROUP)),
        }
    }

    /// Counts each item of the batch once.
    pub fn observe<B: Items<K> + ?Sized>(&mut self, batch: &B) {
        self.count(batch, None);
    }

    /// Counts each item of the batch with its weight; weight 0 leaves no trace.
    ///
    /// # Panics
    ///
    /// If there are not as many weights as items.
    pub fn observe_weighted<B: Items<K> + ?Sized>(&mut self, batch: &B, weights: &[u64]) {
        let (items, weights_len) = (batch.len(), weights.len());
        assert!(items == weights_len, "{items} items need as many weights, not {weights_len}");
        self.count(batch, Some(weights));
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
        self.index.slot_of(item).map(|slot| self.counted(slot))
    }

    /// The monitored items, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = Counted<&K>> {
        (0..).zip(&self.counts).map(|(slot, _)| self.counted(slot))
    }

    fn counted(&self, slot: u32) -> Counted<&K> {
        let item = self.index.item(slot);
        let count = self.counts[slot as usize].saturating_add(self.table.hits(item.key()));
        Counted { item, count, error: self.errors[slot as usize] }
    }

    /// The entry line, 0 while a counter is free: upper bound of the true count of an unmonitored
    /// item. O(1).
    #[must_use]
    pub fn count_min(&self) -> u64 {
        self.table.line()
    }

    /// N: the weight observed so far, saturating.
    #[must_use]
    pub fn observed(&self) -> u64 {
        self.observed
    }

    /// k: the number of counters in the guarantees.
    #[must_use]
    pub fn counters(&self) -> usize {
        self.shape.counters
    }

    /// C = k + e: the maximum number of monitored items.
    #[must_use]
    pub fn monitored_max(&self) -> usize {
        self.shape.slots()
    }

    /// The number of cells.
    #[must_use]
    pub fn cells(&self) -> usize {
        self.shape.cells
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

    /// Bytes of memory that the sieve holds, the sieve itself included. O(k) for text items, whose
    /// strings are counted.
    #[must_use]
    pub fn state_bytes(&self) -> usize {
        size_of::<Self>()
            + self.table.heap_bytes()
            + self.index.heap_bytes()
            + (self.counts.capacity() + self.errors.capacity()) * size_of::<u64>()
            + self.lowest.heap_bytes()
            + self.spare.slots.capacity() * size_of::<u32>()
            + self.hot.heap_bytes()
            + self.scratch.bytes()
            + self.missed.capacity() * size_of::<K::Code>()
            + self.refused.capacity() * size_of::<u64>()
    }
}

fn check(counters: usize) -> Result<(), CapacityError> {
    if counters == 0 || counters > COUNTERS_MAX {
        return Err(CapacityError::Counters { counters });
    }
    Ok(())
}
