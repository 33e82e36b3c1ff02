//! Cuckoo insertion: places each element of a set in `D` of its `D + 1` slots.
//!
//! A new element takes its free slots, at most `D`. Further copies are inserted as in the paper
//! (§II-A), cyclically from table to table, and each copy takes the place of the element in its
//! slot:
//!
//! ```text
//! insert x:  loop ROUNDS_MAX times { for each table t { swap x and slot h_t(x); if x is none { done } } }
//!            failed, x has no place
//! ```
//!
//! After a failure the element whose insertion failed is deleted and goes to the side list, and
//! the element that was left without a place is inserted again.

use std::hint::select_unpredictable;

use super::map::{BLOCK, Block};
use super::permute::Permutations;
use super::slot::{TABLES_MAX, slot};
use crate::Isa;

/// Number of rounds through all tables after which an insertion has failed. Failures in a set for
/// `D` = 2 and `D n / r` = 0.99 at `r` = 65,536: 25 with 8 rounds, 5 with 16, 0.1 with 64, 0.03
/// with 256.
const ROUNDS_MAX: usize = 64;

/// An element of the set under construction: a number that no element of an earlier set has.
type Element = u32;

/// The tables of one set under construction. All sets use the same memory in turn.
#[derive(Default)]
pub(super) struct Tables<const D: usize> {
    /// The value of each element of the set in each table.
    values: [Vec<u32>; TABLES_MAX],
    /// For each element of the set the tables that hold it, as bits.
    held: Vec<u8>,
    /// The slots, table after table. A slot with the number of an element of an earlier set, or
    /// with 0, is free, so that nothing is cleared between two sets.
    slots: Vec<Element>,
    range_bits: u32,
    /// The first element of the set.
    first: Element,
}

impl<const D: usize> Tables<D> {
    /// All tables, as bits.
    const ALL: u8 = (1 << (D + 1)) - 1;

    /// Arranges a set and writes its map, which is zero; its failed insertions go to `side`,
    /// ascending. `first` is greater than all elements of the sets before.
    pub(super) fn build(
        &mut self,
        isa: Isa,
        permutations: &Permutations<D>,
        (first, tids): (Element, &[u32]),
        map: &mut [Block],
        side: &mut Vec<u32>,
    ) {
        let range = map.len() * BLOCK / (D + 1);
        self.range_bits = range.trailing_zeros();
        self.first = first;
        if self.slots.len() < (D + 1) * range {
            self.slots = vec![0; (D + 1) * range];
        }
        for table in 0..=D {
            permutations.permute(isa, table, tids, &mut self.values[table]);
        }
        self.held.clear();
        self.held.resize(tids.len(), 0);
        let failed = side.len();
        for (element, _) in (first..).zip(tids) {
            let lacking = self.take_free(element);
            if lacking > 0 {
                let fail = |failed| side.push(tids[(failed - first) as usize]);
                self.insert(element, lacking, fail);
            }
        }
        side[failed..].sort_unstable();
        for table in 0..=D {
            self.write(permutations, table, map);
        }
    }

    /// The index of an element in the set.
    #[inline(always)]
    fn index(&self, element: Element) -> usize {
        (element - self.first) as usize
    }

    /// The index of the slot of a value.
    #[inline(always)]
    fn place(&self, table: usize, value: u32) -> usize {
        (table << self.range_bits) | (value as usize & ((1 << self.range_bits) - 1))
    }

    /// Puts a new element in its free slots, at most `D`; returns the number of copies without a
    /// slot.
    #[inline(always)]
    fn take_free(&mut self, element: Element) -> u32 {
        let index = self.index(element);
        let (mut places, mut taken) = ([0; TABLES_MAX], 0_u8);
        for (table, place) in places[..=D].iter_mut().enumerate() {
            *place = self.place(table, self.values[table][index]);
            taken |= u8::from(self.slots[*place] >= self.first) << table;
        }
        let missed = if taken == 0 { 1 << D } else { taken };
        self.held[index] = Self::ALL & !missed;
        for (table, &place) in places[..=D].iter().enumerate() {
            // Each table gets a store, as a branch would be mispredicted.
            let slot = &mut self.slots[place];
            *slot = select_unpredictable(missed >> table & 1 == 1, *slot, element);
        }
        missed.count_ones() - 1
    }

    /// Inserts the lacking copies of a new element, and then elements that lost their place; `fail`
    /// gets each element whose insertion failed and which is therefore in no slot.
    #[cold]
    fn insert(&mut self, element: Element, lacking: u32, mut fail: impl FnMut(Element)) {
        let mut inserted = element;
        let mut nestless = (0..lacking).find_map(|_| self.move_in(element));
        // An element fails in each turn, and a failed element is never inserted again.
        while let Some(left) = nestless {
            self.delete(inserted);
            fail(inserted);
            nestless = if left == inserted { None } else { self.move_in(left) };
            inserted = left;
        }
    }

    /// Puts one copy of an element in a slot, the copy that was there in its next slot, and so on;
    /// returns the element that has no place after [`ROUNDS_MAX`] rounds.
    fn move_in(&mut self, mut element: Element) -> Option<Element> {
        for _ in 0..ROUNDS_MAX {
            for table in 0..=D {
                let index = self.index(element);
                let place = self.place(table, self.values[table][index]);
                if self.slots[place] == element {
                    continue;
                }
                self.held[index] |= 1 << table;
                element = std::mem::replace(&mut self.slots[place], element);
                if element < self.first {
                    return None;
                }
                let index = self.index(element);
                self.held[index] &= !(1 << table);
            }
        }
        Some(element)
    }

    /// Takes an element out of all tables.
    fn delete(&mut self, element: Element) {
        let index = self.index(element);
        let held = std::mem::take(&mut self.held[index]);
        for table in (0..=D).filter(|table| held >> table & 1 == 1) {
            let place = self.place(table, self.values[table][index]);
            self.slots[place] = 0;
        }
    }

    /// Writes the bytes of a table.
    fn write(&mut self, permutations: &Permutations<D>, table: usize, map: &mut [Block]) {
        let elements = (self.first..).zip(self.values[table].iter().zip(&self.held));
        for (element, (&value, &held)) in elements {
            let is_held = held >> table & 1 == 1;
            let place = self.place(table, value);
            debug_assert!(held == 0 || held.count_ones() as usize == D, "{element} in {held:b}");
            debug_assert!(is_held == (self.slots[place] == element), "{element} at {place}");
            let missed = (!held).trailing_zeros() as usize;
            let slot = slot::<D>(permutations.code(value), table, missed);
            // The write has no branch: another element may hold the slot.
            map[place / BLOCK].0[place % BLOCK] |= select_unpredictable(is_held, slot, 0);
        }
    }
}
