//! Items as numbers in the order of their first occurrence.

use std::fmt::Debug;
use std::hash::Hash;

use hashbrown::HashMap;
use rapidhash::fast::RandomState;

use super::ITEMS;
use crate::shared::budget::{Budget, BudgetFull, bytes_with};
use crate::shared::items::StoredItem;

/// Items below this number have a place in the table from the beginning.
const TABLE_MIN: usize = 1 << 16;

/// Maximum places of the table per known item. Up to this number, a table takes less memory than a
/// hash table, and a look-up is one load instead of a hash.
const PLACES_PER_ITEM: usize = 4;

/// An integer that gets a number.
pub(crate) trait Integer: StoredItem + Copy + Hash + Default + Debug {
    /// The integer as a place of a table.
    fn place(self) -> usize;
}

impl Integer for u32 {
    #[inline]
    fn place(self) -> usize {
        self as usize
    }
}

impl Integer for u64 {
    #[inline]
    fn place(self) -> usize {
        usize::try_from(self).unwrap_or(usize::MAX)
    }
}

/// Numbers items from 0 on.
#[derive(Debug, Default, Clone)]
pub(crate) struct ItemNumbers<I> {
    /// The items by number.
    items: Vec<I>,
    /// For each small item, its number plus one; 0 for an unknown item.
    table: Vec<u32>,
    /// Numbers of the items at or above the length of the table.
    others: HashMap<I, u32, RandomState>,
}

impl<I: Integer> ItemNumbers<I> {
    /// Bytes of an entry of a hash table that is half full.
    const ENTRY_BYTES: usize = 2 * (size_of::<(I, u32)>() + 1) * 8 / 7;

    /// The number of `item`. An unknown item gets a new number.
    ///
    /// # Errors
    /// If `budget` has no room for a new item.
    #[inline]
    pub(crate) fn number(&mut self, item: I, budget: &mut Budget) -> Result<u32, BudgetFull> {
        // 0 stands for no number, so that a new table consists of zeros, which cost nothing.
        match self.table.get(item.place()) {
            Some(&known) if known > 0 => Ok(known - 1),
            _ => self.number_rare(item, budget),
        }
    }

    /// The number of `item`, if the item is known.
    #[inline]
    pub(crate) fn find(&self, item: I) -> Option<u32> {
        match self.table.get(item.place()) {
            Some(&known) => known.checked_sub(1),
            None => self.others.get(&item).copied(),
        }
    }

    #[cold]
    fn number_rare(&mut self, item: I, budget: &mut Budget) -> Result<u32, BudgetFull> {
        let known = self.find(item);
        if let Err(full) = budget.reserve(ITEMS, self.bytes_while_added(item)) {
            return known.ok_or(full);
        }
        self.grow_table(item);
        if let Some(number) = known {
            return Ok(number);
        }
        let next = u32::try_from(self.items.len()).expect("there are 2^32 items");
        match self.table.get_mut(item.place()) {
            Some(place) => *place = next + 1,
            None => drop(self.others.insert(item, next)),
        }
        self.items.push(item);
        Ok(next)
    }

    /// Length of the table with a new `item`. The table grows to the place of `item` if the place
    /// is small for the number of known items.
    fn table_len(&self, item: I) -> usize {
        let len = TABLE_MIN.max(PLACES_PER_ITEM * self.items.len());
        if (self.table.len()..len).contains(&item.place()) { len } else { self.table.len() }
    }

    /// Bytes of memory while a new `item` is added.
    fn bytes_while_added(&self, item: I) -> usize {
        let Self { items, table, others } = self;
        let added = self.table_len(item) - table.len();
        let copied = if others.len() < others.capacity() { 0 } else { others.len() };
        bytes_with(items.capacity(), items.len(), 1, size_of::<I>())
            + bytes_with(table.capacity(), table.len(), added, size_of::<u32>())
            + (others.len() + 1) * Self::ENTRY_BYTES
            + copied * Self::ENTRY_BYTES / 2
    }

    /// Makes room for `item` in the table, if its place is small for the number of known items.
    fn grow_table(&mut self, item: I) {
        let len = self.table_len(item);
        if len > self.table.len() {
            self.table.resize(len, 0);
            let table = &mut self.table;
            self.others.retain(|&other, number| match table.get_mut(other.place()) {
                Some(place) => {
                    *place = *number + 1;
                    false
                }
                None => true,
            });
        }
    }

    /// The items that are `used`, by number, with new numbers in the same order.
    pub(crate) fn retained(&self, used: &[bool]) -> Self {
        let (mut retained, mut unlimited) = (Self::default(), Budget::new(usize::MAX));
        for (&item, _) in self.items.iter().zip(used).filter(|(_, used)| **used) {
            retained.number(item, &mut unlimited).expect("fewer than all items fit");
        }
        retained
    }

    /// The items with these numbers.
    pub(crate) fn items_of(&self, numbers: &[u32]) -> impl Iterator<Item = I> {
        numbers.iter().map(|&number| self.items[number as usize])
    }

    /// The items by number.
    pub(crate) fn items(&self) -> &[I] {
        &self.items
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<I>() * self.items.capacity()
            + size_of::<u32>() * self.table.capacity()
            + self.others.len() * Self::ENTRY_BYTES
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    impl<I: Integer> ItemNumbers<I> {
        fn number_of(&mut self, item: I) -> u32 {
            self.number(item, &mut Budget::new(usize::MAX)).unwrap()
        }
    }

    #[test]
    fn numbers_follow_the_first_occurrence() {
        let mut numbers = ItemNumbers::<u32>::default();
        let mut expected = HashMap::new();
        // Small and large items, items that move into the table as the table grows, and the largest
        // item.
        let spread = (0..200_000_u32).map(|i| i.wrapping_mul(7_919) % 300_000);
        let items = [5, 0, u32::MAX, 70_000, 5, 65_535, 65_536, u32::MAX].into_iter().chain(spread);
        for item in items.chain((0..400_000).step_by(3)) {
            let next = u32::try_from(expected.len()).unwrap();
            assert_eq!(numbers.number_of(item), *expected.entry(item).or_insert(next), "{item}");
        }
        assert_eq!(numbers.items().len(), expected.len());
        assert!((0..).zip(numbers.items()).all(|(number, item)| expected[item] == number));
        assert!(numbers.table.len() > TABLE_MIN && numbers.others.len() < 3);
    }

    #[test]
    fn an_item_that_the_growing_table_takes_over_keeps_its_number() {
        let far = u32::try_from(TABLE_MIN).unwrap() + 4;
        let mut numbers = ItemNumbers::<u32>::default();
        assert_eq!(numbers.number_of(far), 0);
        let needed = far / u32::try_from(PLACES_PER_ITEM).unwrap();
        (1..=needed).for_each(|item| assert_eq!(numbers.number_of(item), item));
        assert!(numbers.find(far) == Some(0) && numbers.table.len() == TABLE_MIN);
        assert_eq!(numbers.number_of(far), 0);
        assert!(numbers.find(far) == Some(0) && numbers.table.len() > TABLE_MIN);
        assert_eq!(numbers.items().len(), needed as usize + 1);

        let mut used = vec![true; numbers.items().len()];
        used[3] = false;
        let retained = numbers.retained(&used);
        assert_eq!(retained.items().len(), needed as usize);
        assert_eq!([0, 2, 4].map(|item| retained.find(item)), [None, Some(2), Some(3)]);
    }

    #[test]
    fn scattered_items_take_no_table() {
        let mut numbers = ItemNumbers::<u32>::default();
        for item in 0..100_000_u32 {
            numbers.number_of(item.wrapping_mul(0x9E37_79B1));
        }
        assert!(numbers.bytes() < 100_000 * 48, "{}", numbers.bytes());
    }

    #[test]
    fn items_take_no_more_than_the_budget() {
        for (spread, bytes_max) in [(1, 300_000), (1, 3_000_000), (0x9E37_79B1, 600_000)] {
            let (mut numbers, mut budget) = (ItemNumbers::<u32>::default(), Budget::new(bytes_max));
            let failed = (0..1_000_000_u32)
                .find(|&item| numbers.number(item.wrapping_mul(spread), &mut budget).is_err());
            let added = failed.expect("a million items do not fit");
            assert!(added as usize == numbers.items().len() && numbers.bytes() <= bytes_max);
            // While the items are copied, two or three times the bytes are needed.
            assert!(added as usize * 100 > bytes_max, "{added} items in {bytes_max} bytes");
            assert!((0..added).all(|item| numbers.find(item.wrapping_mul(spread)) == Some(item)));
        }
    }
}
