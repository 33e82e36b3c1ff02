//! A window over a stream: a queue of panes, whose bounds are added.
//!
//! ```text
//!              ┌ pane ┬ pane ┬ pane ┬ live ┐
//! ─────────────┴──────┴──────┴──────┴──────┴──►   a pane ends: the oldest leaves, a new one lives
//!               older, in sums       newer
//! ```
//!
//! A summary cannot forget an item, so a window that slides forgets whole panes. A window of one
//! pane tumbles. Only the live pane counts, in a summary; an ended pane is a list of [`Bounds`],
//! with as many entries as the pane had items, at most.
//!
//! # Guarantees
//!
//! Let k be the counters asked for, C >= k the maximum number of items in the list of an ended
//! pane, e = C - k, and L = N e / (k C) for a stream of weight N. A list bounds the count of every
//! item that it lacks by u. The items of a list have counts c. With b the larger one of u and L,
//! let
//!
//! ```text
//! (1)  the sum of max(0, c - b) over the list is at most N - C (b - L)
//! (2)  each error is at most N / k
//! ```
//!
//! Sums are not negative, so that (1) implies `C (b - L) <= N`, and `u <= b <= L + N / C = N / k`:
//! *every item with a count above N / k is in the list*.
//!
//! 1. *Both hold when a pane ends.* [`SpaceSaving`](super::SpaceSaving) and
//!    [`Filter`](super::Filter) have C = k, L = 0, and k counts of at least u that sum to at most
//!    N, or u = 0. Of the [`Sieve`](super::Sieve), u is its line and the excess over L is at most
//!    N; if the line is above L, no count is below it ([`sieve`](super::sieve)). A summary with
//!    more counters than its pane has items is exact, also with fewer than k counters: u = 0, b =
//!    L, and the counts sum to N.
//! 2. *Both hold for the sum of two lists.* Let b = b_1 + b_2; it is at least u_1 + u_2, and at
//!    least L, which is linear in N. A combined count exceeds b by at most the sum of the
//!    excesses of its counts over b_1 and b_2: the sum over all items is at most N - C (b - L).
//!    An error is the sum of two, each an error or u_i.
//! 3. *Both hold when the C largest are kept.* Let d be the largest count that is dropped; u
//!    becomes the larger one of u and d. If d <= b, the new b' <= b, and each of at most C counts
//!    exceeds b' by at most b - b' more than b. Otherwise b' = d, the C counts that are kept are
//!    at least d, and the sum loses C (d - b). Both times (1) holds with b'.
//! 4. *With at most C distinct items in the window, counts are exact if the counts of the panes
//!    are*: nothing is dropped.
//!
//! The bounds of the window are the sum of the ended panes, reduced to C items, and of the live
//! one, so up to 2 C items are monitored. True counts that saturate stay within their bounds; the
//! bounds by N / k end when N saturates.
//!
//! # Cost
//!
//! Each pane costs four additions of lists, for any number of panes: the ended panes are two
//! stacks. `newer` holds the panes that ended last, with their sum. When `older` is used up, it
//! takes all of these panes, the newest at the bottom, so that the oldest leaves from its top. (The
//! technique is folklore: a queue of two stacks.) The sum from the bottom up to a pane is kept for
//! each of the [`BLOCK`] panes on top, and otherwise for each [`BLOCK`]th pane. So the memory is
//! that of the panes and of some 2 [`BLOCK`] lists, instead of one more list for each pane.

use super::bounds::Bounds;
use super::contract::Summary;
use super::counted::Counted;
use crate::shared::items::Item;

/// Panes between two sums that are kept: about the root of the most panes.
const BLOCK: usize = 32;

/// The ended panes of a window.
#[derive(Debug)]
pub(crate) struct EndedPanes<K> {
    /// C.
    monitored_max: usize,
    /// Maximum number of ended panes that belong to the window.
    ended_max: usize,
    /// Panes that ended last, the newest at the end, and their sum.
    newer: Vec<Bounds<K>>,
    newer_sum: Bounds<K>,
    /// Panes before `newer`, the oldest at the end, without the panes of `sums`.
    older: Vec<Bounds<K>>,
    /// The sum of the panes before each block of `older`.
    bases: Vec<Bounds<K>>,
    /// For the block on top of `older`: the sum up to each of its panes.
    sums: Vec<Bounds<K>>,
}

impl<K: Item> EndedPanes<K> {
    /// A window of `panes` panes, at least 1, the live one included.
    pub(crate) fn new(panes: usize, monitored_max: usize) -> Self {
        Self {
            monitored_max,
            ended_max: panes - 1,
            newer: Vec::new(),
            newer_sum: Bounds::default(),
            older: Vec::new(),
            bases: Vec::new(),
            sums: Vec::new(),
        }
    }

    /// Upper bound of the bytes of the ended panes, strings left out. Panes have at most
    /// `pane_items` items.
    pub(crate) fn bytes_max(panes: usize, monitored_max: usize, pane_items: usize) -> usize {
        if panes == 1 {
            return 0;
        }
        let of_pane = monitored_max.min(pane_items);
        let of_sum = monitored_max.min(pane_items.saturating_mul(panes));
        // The sum of two lists has twice as many items before the sum is reduced.
        let sums = panes / BLOCK + BLOCK + 6;
        let items = of_pane.saturating_mul(panes).saturating_add(of_sum.saturating_mul(sums));
        Bounds::<K>::bytes(items)
    }

    /// Whether a window consists of the live pane alone.
    fn are_none(&self) -> bool {
        self.ended_max == 0
    }

    /// Adds the pane that has ended now.
    pub(crate) fn push(&mut self, ended: Bounds<K>) {
        if self.are_none() {
            return;
        }
        add(&mut self.newer_sum, &ended, self.monitored_max);
        self.newer.push(ended);
        if self.newer.len() + self.older.len() + self.sums.len() > self.ended_max {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        // While `older` has panes, `sums` is not empty: its last element is their sum.
        if self.sums.is_empty() {
            self.turn_over();
        }
        self.sums.pop();
        if self.sums.is_empty() {
            self.open_block();
        }
    }

    /// Makes `older` of `newer`.
    fn turn_over(&mut self) {
        let mut sum = Bounds::default();
        for (index, pane) in std::mem::take(&mut self.newer).into_iter().rev().enumerate() {
            if index % BLOCK == 0 {
                self.bases.push(sum.clone());
            }
            add(&mut sum, &pane, self.monitored_max);
            self.older.push(pane);
        }
        self.newer_sum = Bounds::default();
        self.open_block();
    }

    /// Makes `sums` of the block on top of `older`, if there is one.
    fn open_block(&mut self) {
        let Some(mut sum) = self.bases.pop() else { return };
        for pane in self.older.drain(self.bases.len() * BLOCK..) {
            add(&mut sum, &pane, self.monitored_max);
            self.sums.push(sum.clone());
        }
    }

    /// The sum of the ended panes that belong to the window.
    pub(crate) fn sum(&self) -> Bounds<K> {
        let mut sum = self.sums.last().cloned().unwrap_or_default();
        add(&mut sum, &self.newer_sum, self.monitored_max);
        sum
    }

    /// N of the ended panes.
    fn observed(&self) -> u64 {
        let older = self.sums.last().map_or(0, Bounds::observed);
        older.saturating_add(self.newer_sum.observed())
    }

    /// Bytes of all lists.
    pub(crate) fn state_bytes(&self) -> usize {
        let lists = self.newer.iter().chain(&self.older).chain(&self.bases).chain(&self.sums);
        lists.chain([&self.newer_sum]).map(Bounds::state_bytes).sum()
    }
}

/// A window that consists of panes, of which the live one counts.
#[derive(Debug)]
pub(crate) struct PaneQueue<K, S> {
    live: S,
    ended: EndedPanes<K>,
}

impl<K: Item, S: Summary<K>> PaneQueue<K, S> {
    /// A window of `panes` panes, at least 1, with `empty` in the first. `monitored_max` is the
    /// number of counters asked for or, if that is more, the number of items that `empty` monitors.
    pub(crate) fn new(empty: S, panes: usize, monitored_max: usize) -> Self {
        Self { live: empty, ended: EndedPanes::new(panes, monitored_max) }
    }

    /// The pane that counts arriving items.
    pub(crate) fn live(&mut self) -> &mut S {
        &mut self.live
    }

    /// Ends the live pane.
    pub(crate) fn turn(&mut self) {
        let empty = self.live.to_empty();
        let ended = std::mem::replace(&mut self.live, empty);
        if !self.ended.are_none() {
            self.ended.push(Bounds::of(&ended));
        }
    }

    /// The monitored items of the window, in no particular order.
    pub(crate) fn counted(&self) -> Vec<Counted<K>> {
        self.counted_and_min().0
    }

    /// The monitored items of the window, and the most that an unmonitored one can have been seen.
    pub(crate) fn counted_and_min(&self) -> (Vec<Counted<K>>, u64) {
        let live_min = self.live.count_min();
        if self.ended.are_none() {
            return (self.live.iter().map(|counted| counted.cloned()).collect(), live_min);
        }
        let mut window = self.ended.sum();
        let count_min = window.unmonitored().saturating_add(live_min);
        window.add(&Bounds::of(&self.live));
        (window.into_monitored(), count_min)
    }

    /// N of the window.
    pub(crate) fn observed(&self) -> u64 {
        self.ended.observed().saturating_add(self.live.observed())
    }

    /// The most that an unmonitored item can have been seen in the window.
    pub(crate) fn count_min(&self) -> u64 {
        self.ended.sum().unmonitored().saturating_add(self.live.count_min())
    }

    /// Bytes of the summary and of all lists.
    pub(crate) fn state_bytes(&self) -> usize {
        self.ended.state_bytes() + self.live.state_bytes()
    }
}

/// Adds a list to `sum` and keeps the largest items.
fn add<K: Item>(sum: &mut Bounds<K>, other: &Bounds<K>, monitored_max: usize) {
    sum.add(other);
    sum.keep(monitored_max);
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use trommel_kernels::Isa;

    use super::*;
    use crate::summary::{Filter, Sieve, SpaceSaving};
    use crate::testing::streams::Random;

    /// Checks a window of `panes` panes against the items in it.
    fn check<S: Summary<u32>>(empty: &S, panes: usize, (counters, pane_items): (usize, usize)) {
        let monitored_max = counters.max(empty.monitored_max());
        let mut queue = PaneQueue::new(empty.clone(), panes, monitored_max);
        let mut ended: Vec<Vec<u32>> = Vec::new();
        let mut random = Random(panes as u64);
        for turn in 0..2 * panes as u64 + 9 {
            let recent = 10 * (turn / 7);
            let items: Vec<u32> = (0..pane_items)
                .map(|_| {
                    let end = 1 + random.below(recent + 90);
                    u32::try_from(random.below(end)).unwrap()
                })
                .collect();
            queue.live().observe(&items[..], None);
            ended.push(items);
            if turn.is_multiple_of(1 + panes as u64 / 8) {
                let window = &ended[ended.len().saturating_sub(panes)..];
                check_window(&queue, &window.concat(), counters);
            }
            queue.turn();
        }
        let ended = &queue.ended;
        let lists = ended.newer.len() + ended.older.len() + ended.bases.len() + ended.sums.len();
        assert!(lists <= panes + panes / BLOCK + BLOCK + 1, "{lists} lists for {panes} panes");
    }

    fn check_window<S: Summary<u32>>(queue: &PaneQueue<u32, S>, items: &[u32], counters: usize) {
        let mut truth: HashMap<u32, u64> = HashMap::new();
        items.iter().for_each(|&item| *truth.entry(item).or_default() += 1);
        let (counted, bound) = (queue.counted(), items.len() as u64 / counters as u64);
        assert_eq!(queue.observed(), items.len() as u64);
        assert!(queue.count_min() <= bound);
        for Counted { item, count, error } in &counted {
            let truth = truth.remove(item).unwrap_or(0);
            assert!(count - error <= truth && truth <= *count && *error <= bound, "{item}");
        }
        assert!(truth.values().all(|&count| count <= queue.count_min()), "{truth:?}");
    }

    #[test]
    fn windows_of_any_number_of_panes_keep_the_bounds() {
        let isa = Isa::selected().unwrap();
        for panes in [1, 2, 32, 33, 34, 97] {
            for (counters, pane_items) in [(30, 200), (400, 9)] {
                let size = (counters, pane_items);
                check(&SpaceSaving::new(counters).unwrap(), panes, size);
                check(&Filter::new(isa, counters, 4).unwrap(), panes, size);
                check(&Sieve::new(isa, counters).unwrap(), panes, size);
            }
            // Exact panes of fewer counters than the window.
            check(&SpaceSaving::new(6).unwrap(), panes, (20, 5));
        }
    }
}
