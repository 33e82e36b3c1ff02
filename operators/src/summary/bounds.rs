//! The bounds that a summary gives, as a list: a summary that has stopped counting.
//!
//! ```text
//! monitored      a 7±0   c 5±1   k 9±2   …      ascending by item
//! unmonitored    2                              of every other item
//! ```
//!
//! Bounds of several streams are added item by item, in one pass over both lists, without a hash.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::contract::Summary;
use super::counted::Counted;
use crate::shared::items::Item;

/// Bounds of the count of every item of a stream.
#[derive(Clone, Debug)]
pub(crate) struct Bounds<K> {
    monitored: Vec<Counted<K>>,
    unmonitored: u64,
    observed: u64,
}

impl<K> Default for Bounds<K> {
    fn default() -> Self {
        Self { monitored: Vec::new(), unmonitored: 0, observed: 0 }
    }
}

impl<K: Item> Bounds<K> {
    /// The bounds that a summary gives.
    pub(crate) fn of<S: Summary<K>>(summary: &S) -> Self {
        let mut monitored: Vec<_> = summary.iter().map(|counted| counted.cloned()).collect();
        monitored.sort_unstable_by(|left, right| left.item.cmp(&right.item));
        monitored.shrink_to_fit();
        Self { monitored, unmonitored: summary.count_min(), observed: summary.observed() }
    }

    /// The items with bounds of their own, in ascending order.
    pub(crate) fn monitored(&self) -> &[Counted<K>] {
        &self.monitored
    }

    /// The same, owned.
    pub(crate) fn into_monitored(self) -> Vec<Counted<K>> {
        self.monitored
    }

    /// Upper bound of the count of every other item.
    pub(crate) fn unmonitored(&self) -> u64 {
        self.unmonitored
    }

    /// N, saturating.
    pub(crate) fn observed(&self) -> u64 {
        self.observed
    }

    /// Becomes the bounds of both streams together: the sums of the bounds of each.
    pub(crate) fn add(&mut self, other: &Self) {
        let ours = std::mem::take(&mut self.monitored).into_iter();
        let mut theirs = other.monitored.iter().peekable();
        let mut sums = Vec::with_capacity(ours.len() + theirs.len());
        let (our_most, their_most) = (self.unmonitored, other.unmonitored);
        // Both lists ascend, so one pass meets every item once and in order.
        for counted in ours {
            while let Some(their) = theirs.next_if(|their| their.item < counted.item) {
                sums.push(their.clone().plus(our_most, our_most));
            }
            let their = theirs.next_if(|their| their.item == counted.item);
            let (count, error) =
                their.map_or((their_most, their_most), |their| (their.count, their.error));
            sums.push(counted.plus(count, error));
        }
        sums.extend(theirs.map(|their| their.clone().plus(our_most, our_most)));
        self.monitored = sums;
        self.unmonitored = our_most.saturating_add(their_most);
        self.observed = self.observed.saturating_add(other.observed);
    }

    /// Keeps the `most` items with the largest upper bounds, at least 1. Among equal bounds, the
    /// first items stay. The dropped items lose their own bounds.
    pub(crate) fn keep(&mut self, most: usize) {
        if self.monitored.len() <= most {
            return;
        }
        let mut counts: Vec<u64> = self.monitored.iter().map(|counted| counted.count).collect();
        let by_count = |count: &u64| Reverse(*count);
        let (above, &mut least, _) = counts.select_nth_unstable_by_key(most - 1, by_count);
        let mut equal = most - above.iter().filter(|&&count| count > least).count();
        let mut dropped = 0;
        self.monitored.retain(|counted| {
            let is_kept = counted.count > least || (counted.count == least && equal > 0);
            if !is_kept {
                dropped = dropped.max(counted.count);
            } else if counted.count == least {
                equal -= 1;
            }
            is_kept
        });
        self.unmonitored = self.unmonitored.max(dropped);
    }

    /// Bytes of memory.
    pub(crate) fn state_bytes(&self) -> usize {
        size_of::<Self>() + Self::bytes(self.monitored.capacity()) + self.heap_bytes()
    }

    /// Bytes of a list of `items` items, without their strings.
    pub(crate) const fn bytes(items: usize) -> usize {
        items.saturating_mul(size_of::<Counted<K>>())
    }

    fn heap_bytes(&self) -> usize {
        self.monitored.iter().map(|counted| counted.item.heap_bytes()).sum()
    }
}

/// The bounds of several streams together: the sums of the bounds of each.
///
/// # Cost
/// O(m log s) comparisons for m bounds of s streams in all. The lists ascend, so the stable sort
/// finds them as runs and merges them.
pub(crate) fn sum_bounds<K: Item>(streams: impl IntoIterator<Item = Bounds<K>>) -> Bounds<K> {
    // Each bound with the bound that an unmonitored item has in its stream.
    let mut all: Vec<(Counted<K>, u64)> = Vec::new();
    // Sums of unmonitored bounds may exceed 64 bits, and differences of them must be exact.
    let (mut unmonitored, mut observed, mut lists) = (0_u128, 0_u64, 0);
    for Bounds { monitored, unmonitored: most, observed: of_stream } in streams {
        unmonitored += u128::from(most);
        observed = observed.saturating_add(of_stream);
        all.extend(monitored.into_iter().map(|counted| (counted, most)));
        lists += 1;
    }
    if lists > 1 {
        all.sort_by(|(left, _), (right, _)| left.item.cmp(&right.item));
    }
    let narrow = |sum: u128| u64::try_from(sum).unwrap_or(u64::MAX);
    let mut monitored: Vec<Counted<K>> = Vec::with_capacity(all.len());
    let mut bounds = all.into_iter().peekable();
    while let Some((mut sum, most)) = bounds.next() {
        let mut absent = unmonitored - u128::from(most);
        while let Some((counted, most)) = bounds.next_if(|(next, _)| next.item == sum.item) {
            absent -= u128::from(most);
            sum = sum.plus(counted.count, counted.error);
        }
        // The streams that lack the item add the bounds of an unmonitored one.
        let absent = narrow(absent);
        monitored.push(sum.plus(absent, absent));
    }
    Bounds { monitored, unmonitored: narrow(unmonitored), observed }
}

/// The bounds of the items whose upper bounds in several streams together are the `most` largest
/// ones, with all items that have the last of these bounds; `None` if the sum of all bounds is
/// likely to be cheaper. The bound of every other item is not set.
///
/// Each step takes the item with the next largest bound of one stream, and looks up the bounds of
/// this item in the other streams. An item that no step has met has at most the sum of the next
/// bounds of all streams, so the steps end when `most` items have more (the threshold algorithm:
/// Fagin, Lotem, Naor, *Optimal aggregation algorithms for middleware*, PODS 2001).
///
/// # Cost
/// A pass over the counts, and at most a quarter of the comparisons of [`sum_bounds`].
pub(crate) fn largest_sums<K: Item>(streams: &[Bounds<K>], most: usize) -> Option<Bounds<K>> {
    let total: usize = streams.iter().map(|stream| stream.monitored.len()).sum();
    let longest = streams.iter().map(|stream| stream.monitored.len()).max()?;
    let of_sum = total * log2(streams.len());
    let mut steps = of_sum / (4 * streams.len() * log2(longest).max(1));
    if most == 0 || most > steps {
        return None;
    }
    let mut next: Vec<Descending> = streams.iter().map(Descending::of).collect();
    let mut met: Vec<Vec<bool>> =
        streams.iter().map(|stream| vec![false; stream.monitored.len()]).collect();
    let (mut sums, mut largest) = (Vec::new(), BinaryHeap::with_capacity(most + 1));
    loop {
        let frontier: u128 = next.iter().map(|stream| u128::from(stream.bound())).sum();
        let least = largest.peek().map_or(0, |&Reverse(least)| least);
        if largest.len() == most && u128::from(least) > frontier {
            sums.retain(|sum: &Counted<K>| sum.count >= least);
            sums.sort_unstable_by(|left, right| left.item.cmp(&right.item));
            let observed =
                streams.iter().fold(0, |sum: u64, stream| sum.saturating_add(stream.observed));
            return Some(Bounds { monitored: sums, unmonitored: least, observed });
        }
        for stream in 0..streams.len() {
            let Some(place) = next[stream].take() else { continue };
            if met[stream][place] {
                continue;
            }
            steps = steps.checked_sub(1)?;
            let sum = sum_of(&streams[stream].monitored[place].item, streams, &mut met);
            largest.push(Reverse(sum.count));
            if largest.len() > most {
                largest.pop();
            }
            sums.push(sum);
        }
        if next.iter().all(|stream| stream.places.is_empty()) {
            return None;
        }
    }
}

/// Rounded up.
fn log2(number: usize) -> usize {
    number.next_power_of_two().trailing_zeros() as usize
}

/// The places of the bounds of a stream, by descending upper bounds.
struct Descending {
    places: BinaryHeap<(u64, Reverse<usize>)>,
    unmonitored: u64,
}

impl Descending {
    fn of<K>(stream: &Bounds<K>) -> Self {
        let places = (0..).zip(&stream.monitored);
        let places = places.map(|(place, counted)| (counted.count, Reverse(place)));
        Self { places: places.collect(), unmonitored: stream.unmonitored }
    }

    /// The bound of every item that has not been taken.
    fn bound(&self) -> u64 {
        self.places.peek().map_or(0, |(count, _)| *count).max(self.unmonitored)
    }

    fn take(&mut self) -> Option<usize> {
        self.places.pop().map(|(_, Reverse(place))| place)
    }
}

/// The sums of the bounds of `item` in all streams. Notes the places of the item.
fn sum_of<K: Item>(item: &K, streams: &[Bounds<K>], met: &mut [Vec<bool>]) -> Counted<K> {
    let (mut sum, mut absent): (Option<Counted<K>>, u128) = (None, 0);
    for (stream, met) in streams.iter().zip(met) {
        match stream.monitored.binary_search_by(|counted| counted.item.cmp(item)) {
            Ok(place) => {
                met[place] = true;
                let counted = &stream.monitored[place];
                sum = Some(match sum {
                    Some(sum) => sum.plus(counted.count, counted.error),
                    None => counted.clone(),
                });
            }
            Err(_) => absent += u128::from(stream.unmonitored),
        }
    }
    let absent = u64::try_from(absent).unwrap_or(u64::MAX);
    sum.expect("a stream has the item").plus(absent, absent)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(entries: &[(u32, u64, u64)], unmonitored: u64, observed: u64) -> Bounds<u32> {
        let counted = |&(item, count, error)| Counted { item, count, error };
        Bounds { monitored: entries.iter().map(counted).collect(), unmonitored, observed }
    }

    #[test]
    fn bounds_are_added_item_by_item() {
        let mut sum = of(&[(1, 5, 1), (4, 9, 0), (6, 2, 2)], 2, 30);
        sum.add(&of(&[(0, 7, 3), (4, 1, 1), (9, 3, 0)], 1, 20));
        let expected = [(0, 9, 5), (1, 6, 2), (4, 10, 1), (6, 3, 3), (9, 5, 2)];
        let expected = of(&expected, 3, 50);
        assert_eq!(sum.monitored(), expected.monitored());
        assert_eq!((sum.unmonitored(), sum.observed()), (3, 50));
        sum.add(&Bounds::default());
        assert_eq!((sum.monitored(), sum.unmonitored()), (expected.monitored(), 3));
    }

    #[test]
    fn sums_saturate_as_bounds() {
        let mut sum = of(&[(1, u64::MAX - 1, 15)], u64::MAX, u64::MAX);
        sum.add(&of(&[(1, 10, 3)], 9, 10));
        assert_eq!(sum.monitored(), [Counted { item: 1, count: u64::MAX, error: 9 }]);
        assert_eq!((sum.unmonitored(), sum.observed()), (u64::MAX, u64::MAX));
    }

    #[test]
    fn few_steps_find_the_largest_sums_where_few_items_are_frequent() {
        let stream = |shift: u32| {
            let entries: Vec<_> = (0..4_000)
                .map(|item| (item * 3 + shift, if item < 20 { 9_000 } else { 5 }, 0))
                .collect();
            of(&entries, 5, 1 << 20)
        };
        let streams: Vec<_> = (0..16).map(|number| stream(number % 2)).collect();
        let largest = largest_sums(&streams, 10).unwrap();
        assert_eq!(largest.monitored().len(), 40, "all items of one bound");
        assert!(largest.monitored().iter().all(|sum| sum.count == 8 * 9_000 + 8 * 5));
        // Where all bounds are alike, no small number of steps suffices.
        let even: Vec<_> = (0..16).map(|_| of(&[(1, 5, 0), (2, 5, 0), (3, 5, 0)], 5, 99)).collect();
        assert!(largest_sums(&even, 1).is_none() && largest_sums(&streams, 5_000).is_none());
        assert!(largest_sums(&streams, 0).is_none() && largest_sums::<u32>(&[], 1).is_none());
    }

    proptest! {
        #[test]
        fn the_sum_of_streams_is_that_of_additions(
            streams in prop::collection::vec(
                (prop::collection::btree_map(0..20_u32, (0..9_u64, 0..9_u64), 0..12), 0..5_u64, 0..99_u64),
                0..7,
            ),
        ) {
            let streams: Vec<Bounds<u32>> = streams
                .into_iter()
                .map(|(entries, unmonitored, observed)| {
                    let entries: Vec<_> = entries
                        .into_iter()
                        .map(|(item, (count, error))| (item, count + error, error))
                        .collect();
                    of(&entries, unmonitored, observed)
                })
                .collect();
            let mut added = Bounds::default();
            streams.iter().for_each(|stream| added.add(stream));
            let sum = sum_bounds(streams);
            prop_assert_eq!(sum.monitored(), added.monitored());
            prop_assert_eq!(sum.unmonitored(), added.unmonitored());
            prop_assert_eq!(sum.observed(), added.observed());
        }

        #[test]
        fn the_largest_sums_are_those_of_the_sum(
            streams in prop::collection::vec(
                (prop::collection::btree_map(0..400_u32, (0..9_u64, 0..99_u64), 0..300), 0..5_u64, 0..99_u64),
                2..7,
            ),
            (heavy, rows_max, n) in (0..8_u32, 1..60_usize, 1..12_usize),
        ) {
            let streams: Vec<Bounds<u32>> = streams
                .into_iter()
                .map(|(entries, unmonitored, observed)| {
                    // Few items are much more frequent, in some of the streams.
                    let weight = |item| if item < heavy { 1_000 * u64::from(item % 3 + 1) } else { 0 };
                    let entries: Vec<_> = entries
                        .into_iter()
                        .map(|(item, (count, error))| (item, weight(item) + count + error, error))
                        .collect();
                    of(&entries, unmonitored, observed)
                })
                .collect();
            if let Some(mut largest) = largest_sums(&streams, n.min(rows_max)) {
                let mut sum = sum_bounds(streams);
                prop_assert_eq!(largest.observed(), sum.observed());
                sum.keep(rows_max);
                largest.keep(rows_max);
                let top = |bounds: &Bounds<u32>| {
                    crate::summary::top(bounds.monitored().iter().map(Counted::as_ref), n)
                };
                prop_assert_eq!(top(&largest), top(&sum));
            }
        }

        #[test]
        fn the_largest_are_kept_in_the_order_of_ranks(
            counts in prop::collection::vec(0..9_u64, 0..40),
            most in 1..45_usize,
            unmonitored in 0..9_u64,
        ) {
            let entries: Vec<_> = (0..).zip(&counts).map(|(item, &count)| (item, count, 0)).collect();
            let mut bounds = of(&entries, unmonitored, 100);
            bounds.keep(most);
            let mut ranked = entries;
            ranked.sort_by_key(|&(item, count, _)| (Reverse(count), item));
            let dropped = ranked.split_off(most.min(ranked.len()));
            ranked.sort_unstable();
            let kept = of(&ranked, 0, 0);
            prop_assert_eq!(bounds.monitored(), kept.monitored());
            let most_dropped = dropped.first().map_or(0, |&(_, count, _)| count);
            prop_assert_eq!(bounds.unmonitored(), unmonitored.max(most_dropped));
        }
    }
}
