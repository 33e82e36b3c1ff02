//! The path of an item through the sieve.
//!
//! ```text
//! count ──► start_block ──► choose_hot ──► sift ──► absorb ──► settle ──► replace
//!            a block's       sometimes     hot      cold,      refused    above
//!            first step                    items    resident   items      the line
//! ```
//!
//! `docs/reference/sieve.md` tells these steps one by one, with an example.

use trommel_kernels::sieve::{
    GROUP, HotKeys, KEYS_MAX, MISSED_SLACK, sift, sift_weighted, sum_of_weights,
};

use super::Sieve;
use super::hottest::{NARROW_SHARE, WIDE_SHARE};
use super::shape::BLOCK_OF_WEIGHTS_MAX;
use crate::items::{Item, Items};
use crate::summary::counted::Counted;

/// Slots of counters that were within the slack at the last search.
#[derive(Clone, Debug)]
pub(super) struct SpareCounters {
    pub(super) slots: Vec<u32>,
    /// L at the last search.
    pub(super) slack: u64,
}

impl<K: Item> Sieve<K> {
    /// Counts each item of the batch with its weight, or once: the blocks one after the other.
    #[inline]
    pub(super) fn count<B: Items<K> + ?Sized>(&mut self, batch: &B, weights: Option<&[u64]>) {
        let mut scratch = std::mem::take(&mut self.scratch);
        // These weights are on the stack and not in the state, which may be small.
        let mut missed_weights = weights.map(|_| [0; BLOCK_OF_WEIGHTS_MAX + MISSED_SLACK]);
        let block = match weights {
            None => self.shape.block(),
            Some(_) => self.shape.block().min(BLOCK_OF_WEIGHTS_MAX),
        };
        for start in (0..batch.len()).step_by(block) {
            let range = start..batch.len().min(start + block);
            let weights = weights.map(|weights| &weights[range.clone()]);
            self.start_block(range.len());
            if K::CODE_IS_ITEM && self.hot.is_due() {
                self.choose_hot(weights.is_some());
            }
            self.hot.counted(range.len());
            let weight = match weights {
                None => range.len() as u64,
                Some(weights) => sum_of_weights(self.isa, weights),
            };
            self.observed = self.observed.saturating_add(weight);
            if self.hot.codes().is_empty() {
                let keys = scratch.keys(batch, range, self.index.secret());
                self.absorb(keys, weights, |position| batch.item(start + position));
            } else {
                let codes = batch.codes(range, self.index.secret(), &mut scratch.codes);
                let weights = weights.zip(missed_weights.as_mut().map(<[_; _]>::as_mut_slice));
                self.sift(codes, weights);
            }
        }
        self.scratch = scratch;
    }

    /// Prepares for a block of `items` items.
    fn start_block(&mut self, items: usize) {
        if self.is_full() {
            self.slack = self.shape.slack(self.observed);
            self.table.raise_line(self.slack);
        }
        if self.detours > self.table.len() / 8 {
            self.rehouse();
        }
        self.index.refresh(items);
    }

    #[cold]
    fn choose_hot(&mut self, has_weights: bool) {
        let is_wide = has_weights || size_of::<K::Code>() > size_of::<u32>();
        let share = if is_wide { WIDE_SHARE } else { NARROW_SHARE };
        let Self { hot, index, counts, table, .. } = self;
        let counted = index.items().zip(counts).map(|(item, count)| {
            let key = item.key();
            (K::code_of_key(key, index.secret()), count.saturating_add(table.hits(key)))
        });
        hot.choose(self.observed, share, counted);
    }

    /// Counts a block of items with their weights, or once each: in their cells, and refused items
    /// by [`Self::settle`].
    #[inline]
    fn absorb<'a>(
        &mut self,
        keys: &[K::Key],
        weights: Option<&[u64]>,
        item: impl Fn(usize) -> K::Ref<'a>,
    ) {
        let mut refused = std::mem::take(&mut self.refused);
        self.table.absorb(self.isa, keys, weights, &mut refused);
        for (start, &word) in (0..).step_by(GROUP).zip(&refused) {
            self.prefetch(&keys[start..], word);
            for position in bits(word).map(|bit| start + bit) {
                let weight = weights.map_or(1, |weights| weights[position]);
                self.settle(item(position), keys[position], weight);
            }
        }
        self.refused = refused;
    }

    /// Fetches into the cache what [`Self::settle`] reads for refused keys that are not exact.
    /// `refused` has a bit for each of the first [`GROUP`] keys.
    ///
    /// Without this, a look-up would wait for memory up to four times: for the cell, the chain, the
    /// item, and the text of the item. Every monitored item with such a key is looked up.
    #[inline]
    fn prefetch(&self, keys: &[K::Key], refused: u64) {
        let (mut heads, mut len) = ([0; GROUP], 0);
        for key in bits(refused).map(|bit| keys[bit]).filter(|&key| !K::is_exact(key)) {
            heads[len] = self.index.head(key);
            self.table.prefetch(key);
            self.index.prefetch_head(heads[len]);
            len += 1;
        }
        let heads = &heads[..len];
        heads.iter().for_each(|&head| self.index.prefetch_first(head));
        heads.iter().for_each(|&head| self.index.prefetch_first_memory(head));
    }

    /// Counts a block of items that are their codes, the hot items first. `weights` has the weights
    /// of the items, and a buffer for the weights of missed items.
    fn sift(&mut self, codes: &[K::Code], weights: Option<(&[u64], &mut [u64])>) {
        let mut missed = std::mem::take(&mut self.missed);
        missed.resize(self.shape.block() + MISSED_SLACK, K::Code::default());
        let mut hits = [0; KEYS_MAX];
        let hits = &mut hits[..self.hot.codes().len()];
        // One pass takes the hot items out, so a hot item costs neither a hash nor a cell.
        let hot = HotKeys { keys: self.hot.codes(), hits };
        let (end, missed_weights) = match weights {
            Some((weights, missed_weights)) => {
                let room = codes.len() + MISSED_SLACK;
                let (missed, missed_weights) = (&mut missed[..room], &mut missed_weights[..room]);
                let end = sift_weighted(self.isa, hot, codes, weights, missed, missed_weights);
                (end, Some(&missed_weights[..end]))
            }
            None => (sift(self.isa, hot, codes, &mut missed), None),
        };
        for (&slot, hits) in self.hot.slots().iter().zip(hits) {
            let count = &mut self.counts[slot as usize];
            *count = count.saturating_add(*hits);
        }
        let keys = K::keys_of_codes(&missed[..end]).expect("a sifted item is its code");
        self.absorb(keys, missed_weights, |position| {
            K::from_code(&missed[position]).expect("a sifted item is its code")
        });
        self.missed = missed;
    }

    /// Counts an item that its cell has refused.
    #[inline(never)]
    fn settle(&mut self, item: K::Ref<'_>, key: K::Key, weight: u64) {
        let place = self.table.place(key);
        // An item that is neither a resident nor in a crowded place is not monitored and needs no
        // look-up.
        if self.table.may_hold(place, key) {
            let is_resident = self.table.is_resident(place, key);
            self.detours += usize::from(!is_resident);
            if let Some(slot) = self.index.find(item, key, self.index.head(key)) {
                if is_resident && K::is_exact(key) {
                    self.flush(slot);
                }
                let count = &mut self.counts[slot as usize];
                *count = count.saturating_add(weight);
                return;
            }
        }
        if weight == 0 {
            return;
        }
        if !self.is_full() {
            self.push(Counted { item: K::new(item, key), count: weight, error: 0 });
        } else if !self.table.add_alpha(place, weight) {
            self.replace(item, key, place, weight);
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.index.len() == self.shape.slots()
    }

    #[cold]
    fn push(&mut self, counted: Counted<K>) {
        let key = counted.item.key();
        self.table.house(self.table.place(key), key, K::is_exact(key));
        self.index.push(counted.item);
        self.counts.push(counted.count);
        self.errors.push(counted.error);
    }

    /// Replaces a counter by an item that is above the line: a counter within the slack, or else a
    /// smallest one, unless that raises the line above the item. `place` is the place of the key.
    fn replace(&mut self, item: K::Ref<'_>, key: K::Key, place: usize, weight: u64) {
        let slot = match self.take_spare() {
            Some(slot) => slot,
            None => {
                let slot = self.lowest();
                self.table.raise_line(self.counts[slot as usize]);
                if self.table.add_alpha(place, weight) {
                    return;
                }
                slot
            }
        };
        // Alpha and the weight were rounded up to units. An item that passes the line only by this
        // rounding is lifted above the line.
        let above = self.table.line().saturating_add(1).saturating_sub(weight);
        let error = self.table.alpha(place).max(above);
        let count = error.saturating_add(weight);
        self.table.evict(self.index.item(slot).key(), self.counts[slot as usize]);
        self.index.assign(slot, item, key, self.index.head(key));
        self.table.house(place, key, K::is_exact(key));
        self.counts[slot as usize] = count;
        self.errors[slot as usize] = error;
        self.hot.replaced(slot, error);
    }

    /// A counter whose count, its hits included, is within the slack. The answer may be `None`
    /// although such a counter exists: the counters are searched once for each slack.
    fn take_spare(&mut self) -> Option<u32> {
        if self.spare.slots.is_empty() && self.spare.slack < self.slack {
            self.spare.slack = self.slack;
            let slots = (0..).zip(&self.counts).filter(|(_, count)| **count <= self.slack);
            self.spare.slots.extend(slots.map(|(slot, _)| slot));
        }
        while let Some(slot) = self.spare.slots.pop() {
            self.flush(slot);
            if self.counts[slot as usize] <= self.slack {
                return Some(slot);
            }
        }
        None
    }

    /// A counter with the smallest count, its hits included. The hits of all other counters stay in
    /// their cells, so that a snapshot does not depend on what the heap has seen.
    fn lowest(&mut self) -> u32 {
        let Self { lowest, table, index, counts, .. } = self;
        let slot = lowest.slot(counts.len(), |slot| {
            counts[slot as usize].saturating_add(table.hits(index.item(slot).key()))
        });
        self.flush(slot);
        slot
    }

    /// Moves the hits of a slot from its cell to its count. A cell has no hits of items that may
    /// share their key.
    fn flush(&mut self, slot: u32) {
        let hits = self.table.take_hits(self.index.item(slot).key());
        let count = &mut self.counts[slot as usize];
        *count = count.saturating_add(hits);
    }

    /// Chooses the residents again: the most frequent item of each cell.
    #[cold]
    fn rehouse(&mut self) {
        (0..).take(self.counts.len()).for_each(|slot| self.flush(slot));
        let Self { table, index, counts, .. } = self;
        table.rehouse(counts, |slot| index.item(slot).key(), K::is_exact);
        self.detours = 0;
    }
}

/// The positions of the set bits.
fn bits(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let place = (word != 0).then(|| word.trailing_zeros() as usize);
        word &= word.wrapping_sub(1);
        place
    })
}
