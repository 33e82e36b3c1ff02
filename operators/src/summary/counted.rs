//! A counted item, and the ranking of counted items.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use crate::shared::items::StoredItem;
use crate::shared::state::{Reader, RestoreError, Writer};

/// An item with bounds of its true count: `count - error <= true count <= count`.
///
/// # Examples
///
/// ```
/// use trommel_operators::frequent_items::{Counted, SpaceSaving};
///
/// let mut summary = SpaceSaving::new(1)?;
/// summary.observe(&["a", "a", "b"][..]);
/// let Counted { item, count, error } = &summary.top(1)[0];
/// assert_eq!((&**item, *count, *error), ("b", 3, 2));
/// assert_eq!(summary.top(1)[0].count_min(), 1);
/// # Ok::<(), trommel_operators::frequent_items::CapacityError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Counted<K> {
    /// The item.
    pub item: K,
    /// The upper bound: never below the true count.
    pub count: u64,
    /// Upper bound of the excess of `count` over the true count; 0 if the count is exact.
    pub error: u64,
}

impl<K> Counted<K> {
    /// The lower bound of the true count.
    #[must_use]
    pub fn count_min(&self) -> u64 {
        self.count - self.error
    }

    /// Bounds in two streams together, from the bounds in each.
    pub(crate) fn plus(self, count: u64, error: u64) -> Self {
        let least = self.count_min().saturating_add(count - error);
        let count = self.count.saturating_add(count);
        Self { item: self.item, count, error: count - least }
    }

    /// The same with the item borrowed.
    #[must_use]
    pub fn as_ref(&self) -> Counted<&K> {
        Counted { item: &self.item, count: self.count, error: self.error }
    }
}

impl<K: StoredItem> Counted<&K> {
    pub(super) fn write(&self, to: &mut Writer) {
        to.item(self.item);
        to.u64(self.count);
        to.u64(self.error);
    }
}

impl<K: StoredItem> Counted<K> {
    /// Reads an item, and refuses an error that is above the count.
    pub(super) fn read(from: &mut Reader<'_>) -> Result<Self, RestoreError> {
        let item = from.item()?;
        let count = from.u64("a count")?;
        let error = from.u64("an error")?;
        let error = from.check("an error", error, &(0..=count))?;
        Ok(Self { item, count, error })
    }
}

impl<K: Clone> Counted<&K> {
    /// The same with an item of its own.
    #[must_use]
    pub fn cloned(&self) -> Counted<K> {
        Counted { item: self.item.clone(), count: self.count, error: self.error }
    }
}

/// Maximum number of ranks that a stage finds by itself, in a heap that stays in the first-level
/// cache. For more ranks, all items are sorted; for a query, the thread that asked sorts.
pub(crate) const HEAP_MAX: usize = 1024;

/// The `n` largest of distinct counted items: count descending, ties by item ascending.
///
/// # Cost
///
/// O(m log n) for m items, with n of them in memory, or all if n is above a thousand; only n are
/// cloned.
///
/// # Examples
///
/// ```
/// use trommel_operators::frequent_items::{SpaceSaving, top};
///
/// let mut summary = SpaceSaving::new(9)?;
/// summary.observe(&[5_u32, 4, 4, 8, 8, 3][..]);
/// let even = summary.iter().filter(|counted| counted.item % 2 == 0);
/// assert_eq!(top(even, 1)[0].item, 4);
/// # Ok::<(), trommel_operators::frequent_items::CapacityError>(())
/// ```
pub fn top<'a, K: Clone + Ord + 'a>(
    counted: impl IntoIterator<Item = Counted<&'a K>>,
    n: usize,
) -> Vec<Counted<K>> {
    top_borrowed(counted, n).into_iter().map(|counted| counted.cloned()).collect()
}

/// As [`top`], with the items borrowed.
pub(crate) fn top_borrowed<'a, K: Ord>(
    counted: impl IntoIterator<Item = Counted<&'a K>>,
    n: usize,
) -> Vec<Counted<&'a K>> {
    if n > HEAP_MAX {
        let mut ranked = select(counted, n);
        ranked.sort_unstable();
        return ranked.into_iter().map(|ranked| ranked.0).collect();
    }
    let mut best = BestRanks { ranked: BinaryHeap::new(), n, count_min: 0 };
    // `for_each` runs a chain of iterators as one loop after the other.
    counted.into_iter().for_each(|counted| {
        if counted.count >= best.count_min {
            best.admit(counted);
        }
    });
    best.ranked.into_sorted_vec().into_iter().map(|ranked| ranked.0).collect()
}

/// As [`top_borrowed`], in no particular order.
///
/// # Cost
///
/// O(m) for m items, which are kept meanwhile.
pub(crate) fn largest<'a, K: Ord>(
    counted: impl IntoIterator<Item = Counted<&'a K>>,
    n: usize,
) -> Vec<Counted<&'a K>> {
    select(counted, n).into_iter().map(|ranked| ranked.0).collect()
}

fn select<'a, K: Ord>(
    counted: impl IntoIterator<Item = Counted<&'a K>>,
    n: usize,
) -> Vec<Ranked<'a, K>> {
    let mut ranked: Vec<_> = counted.into_iter().map(Ranked).collect();
    if n < ranked.len() {
        ranked.select_nth_unstable(n);
        ranked.truncate(n);
    }
    ranked
}

/// The best ranks so far.
struct BestRanks<'a, K> {
    /// At most `n`, the last rank on top.
    ranked: BinaryHeap<Ranked<'a, K>>,
    n: usize,
    /// The count of the last rank, once there are `n`. Nearly all other items fail the comparison
    /// with this count.
    count_min: u64,
}

impl<'a, K: Ord> BestRanks<'a, K> {
    /// The function is not inlined, so that the loop around it is small enough for inlining: that
    /// is four times faster over a thousand counters.
    #[inline(never)]
    fn admit(&mut self, counted: Counted<&'a K>) {
        let candidate = Ranked(counted);
        if self.ranked.len() < self.n {
            self.ranked.push(candidate);
        } else if let Some(mut last) = self.ranked.peek_mut()
            && candidate < *last
        {
            *last = candidate;
        }
        if self.ranked.len() == self.n {
            self.count_min = self.ranked.peek().map_or(u64::MAX, |last| last.0.count);
        }
    }
}

/// A counted item in the order of ranks: the first rank is the smallest.
struct Ranked<'a, K>(Counted<&'a K>);

impl<K: Ord> Ranked<'_, K> {
    fn key(&self) -> (Reverse<u64>, &K) {
        (Reverse(self.0.count), self.0.item)
    }
}

impl<K: Ord> Ord for Ranked<'_, K> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl<K: Ord> PartialOrd for Ranked<'_, K> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<K: Ord> PartialEq for Ranked<'_, K> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<K: Ord> Eq for Ranked<'_, K> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_by_count_then_by_item() {
        let counts = [(5_u32, 1), (3, 9), (4, 9), (1, 2), (2, 1)];
        let counted = counts.map(|(item, count)| Counted { item, count, error: 0 });
        let ranked = |n| {
            let all = counted.iter().map(Counted::as_ref);
            top(all, n).into_iter().map(|counted| counted.item).collect::<Vec<_>>()
        };
        assert_eq!(ranked(9), [3, 4, 1, 2, 5]);
        assert_eq!(ranked(4), [3, 4, 1, 2]);
        assert_eq!(ranked(0), [0; 0]);
    }

    #[test]
    fn long_rankings_are_as_short_ones() {
        let items: Vec<u32> = (0..3_000).map(|i: u32| i.wrapping_mul(0x9E37_79B1)).collect();
        let counted =
            || (0..).zip(&items).map(|(i, item)| Counted { item, count: i % 7, error: 0 });
        let mut expected: Vec<_> = counted().map(|counted| counted.cloned()).collect();
        expected.sort_by_key(|counted| (Reverse(counted.count), counted.item));
        for n in [0, 1, HEAP_MAX, HEAP_MAX + 1, 2_000, 2_999, 3_000, usize::MAX] {
            assert_eq!(top(counted(), n), expected[..n.min(3_000)]);
            let mut largest: Vec<_> =
                largest(counted(), n).into_iter().map(|counted| counted.cloned()).collect();
            largest.sort_by_key(|counted| (Reverse(counted.count), counted.item));
            assert_eq!(largest, expected[..n.min(3_000)], "ties are cut by item");
        }
    }
}
