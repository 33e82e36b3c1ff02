//! Slots by token, for tokens that are too sparse for a table by token.
//!
//! ```text
//! places     | . | 90 -> 7 | 12 -> 3 | . | 55 -> 0 | .      a token lies at the place of its hash,
//!                    └ hash    └ next place                 or after it
//! ```
//!
//! Open addressing with linear probing (Knuth, *The Art of Computer Programming* 3, §6.4). A token
//! costs one cache miss, which can be prefetched, because the hash alone gives the place at which a
//! search begins. The hash has a random seed, so nobody can choose input that collides.

use std::hash::BuildHasher;

use rapidhash::fast::RandomState;
use trommel_kernels::prefetch;

/// A token and its slot.
type Place = (u32, u32);

/// Slot of a free place.
const FREE: u32 = u32::MAX;

/// Minimum number of places of a table that is not empty.
const PLACES_MIN: usize = 16;

/// Slots by token.
#[derive(Debug, Default)]
pub(crate) struct SlotTable {
    hasher: RandomState,
    /// Places: a power of two, of which at most three quarters are in use; or empty.
    places: Vec<Place>,
    len: usize,
}

impl SlotTable {
    /// Places for `len` tokens.
    fn places_for(len: usize) -> usize {
        if len == 0 { 0 } else { (len + len / 3 + 1).next_power_of_two().max(PLACES_MIN) }
    }

    /// Index of the place at which the search for `token` begins.
    #[inline]
    fn home(&self, token: u32) -> usize {
        let last = self.places.len() as u64 - 1;
        usize::try_from(self.hasher.hash_one(token) & last).expect("the index of a place")
    }

    /// Index of the place of `token`, or of the free place for `token`. The table must have a free
    /// place.
    #[inline]
    fn find(&self, token: u32) -> usize {
        let mut at = self.home(token);
        while self.places[at].1 != FREE && self.places[at].0 != token {
            at = (at + 1) & (self.places.len() - 1);
        }
        at
    }

    /// Prefetches the place of `token`.
    #[inline]
    pub(crate) fn prefetch(&self, token: u32) {
        if !self.places.is_empty() {
            prefetch(&self.places, self.home(token));
        }
    }

    /// The slot of `token`.
    #[inline]
    pub(crate) fn get(&self, token: u32) -> Option<u32> {
        if self.places.is_empty() {
            return None;
        }
        let (_, slot) = self.places[self.find(token)];
        (slot != FREE).then_some(slot)
    }

    /// Adds `token`, which is not in the table, with `slot`, which is below 2^32 - 1.
    pub(crate) fn insert(&mut self, token: u32, slot: u32) {
        self.widen(1);
        let at = self.find(token);
        self.places[at] = (token, slot);
        self.len += 1;
    }

    /// Makes room for `tokens` more tokens.
    pub(crate) fn widen(&mut self, tokens: usize) {
        let places = Self::places_for(self.len + tokens);
        if places <= self.places.len() {
            return;
        }
        let old = std::mem::replace(&mut self.places, vec![(0, FREE); places]);
        for place in old.into_iter().filter(|place| place.1 != FREE) {
            let at = self.find(place.0);
            self.places[at] = place;
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of::<Place>() * self.places.len()
    }

    /// Maximum bytes that `tokens` more tokens take, in addition to the bytes of the present table.
    pub(crate) fn growth(&self, tokens: usize) -> usize {
        let places = Self::places_for(self.len + tokens);
        if places <= self.places.len() { 0 } else { size_of::<Place>() * places }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_keep_their_slots_while_the_table_grows() {
        let token = |slot: u32| slot.wrapping_mul(0x9E37_79B1) ^ slot << 16;
        let mut table = SlotTable::default();
        assert_eq!((table.get(0), table.bytes()), (None, 0));
        for slot in 0..5000 {
            let (growth, before) = (table.growth(1), table.bytes());
            table.prefetch(token(slot));
            assert_eq!(table.get(token(slot)), None);
            table.insert(token(slot), slot);
            assert_eq!(table.bytes(), if growth > 0 { growth } else { before });
            assert!(4 * table.len <= 3 * table.places.len());
        }
        assert!((0..5000).all(|slot| table.get(token(slot)) == Some(slot)));
        let (growth, bytes) = (table.growth(5000), table.bytes());
        table.widen(5000);
        assert!(growth == table.bytes() && growth > bytes && table.growth(5000) == 0);
        assert!((0..5000).all(|slot| table.get(token(slot)) == Some(slot)));
    }
}
