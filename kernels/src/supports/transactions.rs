//! Transactions as lists of items, built from the tid lists of items.

use std::ops::Range;

use super::answer::{FoundPairs, Pair};
use crate::sets::Sets;

/// Maximum number of transactions that are set aside: each is a bit of a mask.
const ASIDE_MAX: usize = 64;

/// Minimum items of a transaction that is set aside: such a transaction has half a million pairs.
const ASIDE_ITEMS: u32 = 1024;

/// The items of each transaction, ascending, with a cursor that follows the rows.
///
/// ```text
/// transaction 7     | 12 30 | 31 58 90 |      rows up to 30 are counted:
///                   begin   next      end     the columns of row 31 are 12 and 30
/// ```
///
/// **Aside.** A transaction of `k` items has `k * (k - 1) / 2` pairs, and most of these pairs may
/// be in no other transaction. With a least support of `s`, up to `s - 1` transactions can be set
/// aside: a frequent pair is also in a transaction that is not aside. Each item has a mask of the
/// transactions aside that hold it; the common bits of two masks complete a support. So the largest
/// baskets cost no more than their items.
#[derive(Clone, Debug, Default)]
pub(super) struct Transactions {
    /// The items of the range. Transactions store items relative to the first.
    range: Range<u32>,
    /// Least support of a pair whose count is complete.
    least: u32,
    items: Vec<u32>,
    places: Vec<ItemRange>,
    /// The next row: the cursors are after all items before it.
    row: u32,
    /// For each item the transactions aside that hold it. Empty if no transaction is aside.
    masks: Vec<u64>,
    aside: u32,
}

/// A row to which columns are offered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    number: u32,
    /// Number of columns before it.
    pub(super) before: u32,
    /// The transactions aside that hold the items of the row.
    mask: u64,
}

/// Positions of a transaction. A transaction that is aside has no items.
#[derive(Clone, Copy, Debug, Default)]
struct ItemRange {
    begin: u32,
    next: u32,
    end: u32,
}

impl ItemRange {
    /// Moves the cursor after `items` items, 0 or 1.
    #[inline(always)]
    fn step(&mut self, items: u32) {
        self.next += u32::from(self.next < self.end) & items;
    }
}

impl Transactions {
    /// The transactions, below `transactions`, of the items `items` of `lists`. The largest
    /// transactions are set aside as far as pairs with the support `least` stay complete.
    pub(super) fn new(lists: Sets<'_>, transactions: u32, items: Range<u32>, least: u32) -> Self {
        let mut sizes = vec![0; transactions as usize];
        let tokens = [items.start, items.end].map(|item| lists.offsets()[item as usize] as usize);
        for &transaction in &lists.tokens()[tokens[0]..tokens[1]] {
            sizes[transaction as usize] += 1;
        }
        let aside = take_aside(&mut sizes, least);
        let mut end = 0;
        let place = |size| {
            let begin = end;
            end += size;
            ItemRange { begin, next: begin, end }
        };
        let places = sizes.into_iter().map(place).collect();
        let masks = vec![0; if aside.is_empty() { 0 } else { items.len() }];
        let asides = u32::try_from(aside.len()).expect("at most 64");
        let items_of = vec![0; end as usize];
        let range = items.clone();
        let mut this = Self { range, least, items: items_of, places, row: 0, masks, aside: asides };
        for (item, list) in (0..).zip(items.map(|item| lists.set(item as usize))) {
            list.iter().for_each(|&transaction| this.append(transaction, item, &aside));
        }
        this.rewind();
        this
    }

    fn append(&mut self, transaction: u32, item: u32, aside: &[u32]) {
        let place = &mut self.places[transaction as usize];
        if place.next < place.end {
            self.items[place.next as usize] = item;
            place.next += 1;
        } else {
            let bit = aside.partition_point(|&other| other < transaction);
            self.masks[item as usize] |= 1 << bit;
        }
    }

    fn rewind(&mut self) {
        self.places.iter_mut().for_each(|place| place.next = place.begin);
        self.row = self.range.start;
    }

    /// The items.
    pub(super) fn range(&self) -> &Range<u32> {
        &self.range
    }

    /// Number of transactions.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// # Panics
    ///
    /// If `found` has another least support than the transactions were made for.
    pub(super) fn check(&self, found: &FoundPairs) {
        assert!(found.least() == self.least, "another least support than at first");
    }

    /// The head of the row `number`, an item twice or two items; `None` if no item is before it.
    ///
    /// # Panics
    ///
    /// If the last item is not one of the items.
    pub(super) fn head(&self, number: u32, items: [u32; 2]) -> Option<Head> {
        let (range, last) = (&self.range, items[1]);
        assert!(last < range.end, "item {last} is not one of {range:?}");
        let before = items[0].checked_sub(range.start).filter(|&before| before > 0)?;
        let mask = |item: u32| self.masks.get((item - range.start) as usize).unwrap_or(&0);
        Some(Head { number, before, mask: mask(items[0]) & mask(last) })
    }

    /// Moves the cursors to the item `row` of `lists`, which is one of the items.
    pub(super) fn seek(&mut self, lists: Sets<'_>, row: u32) {
        if row < self.row {
            self.rewind();
        }
        for passed in self.row..row {
            for &transaction in lists.set(passed as usize) {
                self.places[transaction as usize].step(1);
            }
        }
        self.row = row;
    }

    /// The items before the next row in a transaction of the row, as a range of
    /// [`items`](Self::items). Moves the cursor after `step` items, 0 or 1.
    #[inline(always)]
    pub(super) fn columns(&mut self, transaction: u32, step: u32) -> Range<usize> {
        let place = &mut self.places[transaction as usize];
        let columns = place.begin as usize..place.next as usize;
        place.step(step);
        columns
    }

    /// Visits the rows before the item `end` in a transaction: each, relative to the first item,
    /// with the items before it. Moves the cursor after these rows.
    #[inline(always)]
    pub(super) fn rows(
        &mut self,
        transaction: usize,
        end: u32,
        mut visit: impl FnMut(u32, &[u32]),
    ) {
        let place = &mut self.places[transaction];
        let end = end - self.range.start;
        let items = &self.items[place.begin as usize..place.end as usize];
        let mut next = (place.next - place.begin) as usize;
        while let Some(&row) = items.get(next).filter(|&&row| row < end) {
            visit(row, &items[..next]);
            next += 1;
            place.next += 1;
        }
    }

    /// Ends the rows before `row`: all their transactions have been visited.
    #[inline(always)]
    pub(super) fn end_rows(&mut self, row: u32) {
        self.row = row;
    }

    /// The items of all transactions.
    #[inline(always)]
    pub(super) fn items(&self) -> &[u32] {
        &self.items
    }

    /// Least count of a frequent pair in the transactions that are not aside; at least 1.
    #[inline(always)]
    pub(super) fn least_count(&self, least: u32) -> u32 {
        least - self.aside
    }

    /// Offers `column` with a row; `count` is the number of transactions that hold both and are not
    /// aside.
    #[inline(always)]
    pub(super) fn offer(&self, column: u32, head: Head, count: u32, found: &mut FoundPairs) {
        let aside = match &self.masks[..] {
            [] => 0,
            masks => (masks[column as usize] & head.mask).count_ones(),
        };
        let left = self.range.start + column;
        found.offer(Pair { left, right: head.number, support: count + aside });
    }
}

/// Chooses the transactions that are set aside, ascending, and removes their items from `sizes`.
fn take_aside(sizes: &mut [u32], least: u32) -> Vec<u32> {
    let mut large: Vec<(u32, u32)> = sizes.iter().copied().zip(0..).collect();
    large.retain(|&(size, _)| size >= ASIDE_ITEMS);
    large.sort_unstable();
    let count = ASIDE_MAX.min(least as usize - 1).min(large.len());
    let mut aside: Vec<u32> =
        large[large.len() - count..].iter().map(|&(_, transaction)| transaction).collect();
    aside.sort_unstable();
    aside.iter().for_each(|&transaction| sizes[transaction as usize] = 0);
    aside
}
