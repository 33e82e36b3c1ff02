//! The counter with the smallest count. The search is lazy, because counts hardly ever become
//! smaller.
//!
//! ```text
//!   counts    3 3 3 3 4 4 5 6 6 | 8 9 12 ...
//!             run, ascending    ▲ horizon: counts above it are not looked at before the run is used up
//!             + a heap of counters that came back below the horizon
//! ```
//!
//! A scan of all counts collects the counters below a *horizon* in ascending order: the *run*. If
//! many counters share the smallest count, the scan collects only these counters, with a bit for
//! each: a *level*. Later hits of a counter cost nothing here: when the turn of the counter comes,
//! its count is not the recorded one any more, and the counter is put back if its count is still
//! below the horizon. Only a counter whose count was replaced is put back at once, because the new
//! count may be below the recorded one.
//!
//! Invariant: each counter whose count is below the horizon has an entry in the level, run or heap,
//! and the recorded count of the entry is not above the true count. So the first entry, in the
//! order of recorded counts, whose recorded count is still true is a minimum: the entry of a
//! smaller counter would have come before.
//!
//! Cost: a scan collects at least an eighth of the k counters, and the next scan comes when all
//! collected counters have grown to the horizon. So scans cost O(1) per update, amortized, for any
//! weights (O(log k) for the part that sorts). With unit weights, usually more than an eighth of
//! the counters share the smallest count; then the horizon is right above that count, nothing is
//! sorted and nothing put back: O(1). Otherwise the cost is O(log k), amortized. The Stream-Summary
//! of the original paper bounds each single update of weight 1 instead, but moves a counter from
//! one list to another on every hit, and skewed streams consist of hits.

mod level;
mod stored;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use self::level::MinLevel;

/// The scan collects a level if at least one counter in `LEVEL_SHARE` has the smallest count.
const LEVEL_SHARE: usize = 8;

/// Otherwise the scan collects one counter in `POOL_SHARE`.
const POOL_SHARE: usize = 4;

/// The candidates for replacement.
#[derive(Clone, Debug, Default)]
pub(super) struct MinQueue {
    /// Counters with the smallest count. The level or the run is empty.
    level: MinLevel,
    /// Recorded counts and slots in descending order, so that the smallest count is at the end.
    run: Vec<(u64, u32)>,
    /// Recorded counts and slots of counters that were put back.
    heap: BinaryHeap<Reverse<(u64, u32)>>,
    horizon: u64,
}

impl MinQueue {
    /// Takes out a counter with the smallest count; the caller gives it a new count and calls
    /// [`Self::put_back`].
    ///
    /// `counts` has at least one count. The caller has put back each counter whose count became
    /// smaller.
    #[inline]
    pub(super) fn take_min(&mut self, counts: &[u64]) -> u32 {
        loop {
            let Some((recorded, slot)) = self.pop() else {
                self.scan(counts);
                continue;
            };
            let count = counts[slot as usize];
            if count == recorded {
                return slot;
            }
            self.put_back(slot, count, counts.len());
        }
    }

    /// The counter that is probably taken out next, so that its memory can be fetched in advance.
    #[inline]
    pub(super) fn candidate(&self) -> Option<u32> {
        self.level.last().or(self.run.last().copied()).map(|(_, slot)| slot)
    }

    /// Puts back one of `counters` counters that was taken out or whose count has become smaller.
    #[inline]
    pub(super) fn put_back(&mut self, slot: u32, count: u64, counters: usize) {
        if count < self.horizon {
            self.heap.push(Reverse((count, slot)));
            if self.heap.len() > 2 * counters {
                self.forget();
            }
        }
    }

    /// Forgets the candidates, because slots have moved; the next call scans.
    pub(super) fn forget(&mut self) {
        self.level.clear();
        self.run.clear();
        self.heap.clear();
        self.horizon = 0;
    }

    /// Upper bound of the bytes on the heap for `counters` counters: the binary heap has at most
    /// twice as many entries and one more, and a vector that grows doubles.
    pub(super) fn bytes_max(counters: usize) -> usize {
        let entries = counters + 2 * (2 * counters + 1);
        entries * size_of::<(u64, u32)>() + MinLevel::bytes(counters)
    }

    /// Bytes on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        let entries = self.run.capacity() + self.heap.capacity();
        entries * size_of::<(u64, u32)>() + self.level.heap_bytes()
    }

    /// The entry with the smallest recorded count.
    #[inline]
    fn pop(&mut self) -> Option<(u64, u32)> {
        if let Some(entry) = self.level.last() {
            if self.heap.peek().is_none_or(|Reverse(heap)| *heap >= entry) {
                self.level.pop();
                return Some(entry);
            }
            return self.heap.pop().map(|entry| entry.0);
        }
        match (self.run.last(), self.heap.peek()) {
            (Some(run), Some(Reverse(heap))) if heap < run => self.heap.pop().map(|entry| entry.0),
            (Some(_), _) => self.run.pop(),
            (None, _) => self.heap.pop().map(|entry| entry.0),
        }
    }

    #[cold]
    fn scan(&mut self, counts: &[u64]) {
        let len = self.level.collect(counts);
        self.horizon = self.level.count().saturating_add(1);
        if len < counts.len() / LEVEL_SHARE {
            self.level.clear();
            self.run.reserve_exact(counts.len());
            self.run.extend(counts.iter().copied().zip(0..));
            let (_, &mut (quantile, _), _) =
                self.run.select_nth_unstable(counts.len() / POOL_SHARE);
            self.horizon = quantile.saturating_add(1);
            self.run.retain(|&(count, _)| count < self.horizon);
            self.run.sort_unstable_by_key(|&entry| Reverse(entry));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_minimum_is_taken_whatever_changes(
            mut counts in prop::collection::vec(0..40_u64, 1..60),
            steps in prop::collection::vec((0..60_usize, 0..60_u64, any::<bool>(), 1..30_u64), 1..200),
        ) {
            let mut queue = MinQueue::default();
            let counters = counts.len();
            for (changed, count, may_shrink, weight) in steps {
                let changed = changed % counters;
                if may_shrink {
                    counts[changed] = count;
                    queue.put_back(u32::try_from(changed).unwrap(), count, counters);
                } else {
                    counts[changed] += count;
                }
                let slot = queue.take_min(&counts);
                let taken = &mut counts[slot as usize];
                *taken += weight;
                let (before, after) = (*taken - weight, *taken);
                queue.put_back(slot, after, counters);
                prop_assert!(counts.iter().all(|&count| count >= before));
            }
        }
    }

    #[test]
    fn counts_at_the_end_of_their_range_are_served_for_ever() {
        let mut queue = MinQueue::default();
        for _ in 0..10 {
            let slot = queue.take_min(&[u64::MAX; 3]);
            queue.put_back(slot, u64::MAX, 3);
        }
    }
}
