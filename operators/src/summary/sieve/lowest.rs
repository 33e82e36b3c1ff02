//! The counter with the smallest count.
//!
//! ```text
//! slots   [2 │ 5 0 │ 1 4 3]    a binary heap by (seen, slot): the smallest first
//! seen    [7 9 3 8 9 5]        by slot: the count when the heap last looked, never too large
//! ```
//!
//! Counts of a sieve never fall, and most counts grow without a note to the heap. So what the heap
//! has seen of a count is a lower bound. If the first count is still true, it is a smallest count.
//! If not, the heap reads the count again, the slot sinks, and the next slot is first. Among equals
//! the lowest slot is found, whatever was asked before, so a snapshot needs nothing of the heap.
//!
//! Cost: O(log k) for a count that has grown since the heap read it, so O(log k) for each item,
//! amortized. 12 bytes a counter.

/// The smallest of counts that never fall. Empty until the first search.
#[derive(Clone, Debug, Default)]
pub(super) struct LowestCount {
    slots: Vec<u32>,
    seen: Vec<u64>,
}

impl LowestCount {
    /// The slot with the smallest of `counters` counts; among equals, the lowest slot. `count`
    /// returns the count of a slot. `counters` is at least 1, and the same in all calls.
    pub(super) fn slot(&mut self, counters: usize, mut count: impl FnMut(u32) -> u64) -> u32 {
        if self.slots.is_empty() {
            self.slots.reserve_exact(counters);
            self.slots.extend((0..).take(counters));
            // All counts are equal, so the slots in their order are a heap.
            self.seen.reserve_exact(counters);
            self.seen.resize(counters, 0);
        }
        loop {
            let slot = self.slots[0];
            let count = count(slot);
            let seen = &mut self.seen[slot as usize];
            if *seen == count {
                return slot;
            }
            debug_assert!(*seen < count, "the count of slot {slot} fell from {seen} to {count}");
            *seen = count;
            self.sink();
        }
    }

    /// Moves the first slot down to its position in the heap.
    fn sink(&mut self) {
        let Self { slots, seen } = self;
        let order = |slot: u32| (seen[slot as usize], slot);
        let moved = slots[0];
        let mut place = 0;
        loop {
            let left = 2 * place + 1;
            let Some(&(mut least)) = slots.get(left) else { break };
            let mut child = left;
            if let Some(&right) = slots.get(left + 1)
                && order(right) < order(least)
            {
                (child, least) = (left + 1, right);
            }
            if order(moved) <= order(least) {
                break;
            }
            slots[place] = least;
            place = child;
        }
        slots[place] = moved;
    }

    /// The most bytes on the heap for `counters` counters.
    pub(super) const fn bytes_max(counters: usize) -> usize {
        counters * (size_of::<u32>() + size_of::<u64>())
    }

    /// Bytes on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<u32>() + self.seen.capacity() * size_of::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_first_of_the_smallest_is_found_whatever_grows_and_whenever_it_was_asked(
            mut counts in prop::collection::vec(0..40_u64, 1..60),
            steps in prop::collection::vec((0..60_usize, 0..60_u64, any::<bool>()), 1..200),
        ) {
            let mut lowest = LowestCount::default();
            for (grown, weight, is_asked) in steps {
                let grown = grown % counts.len();
                counts[grown] += weight;
                if is_asked {
                    let expected = (0..counts.len()).min_by_key(|&slot| counts[slot]).unwrap();
                    let slot = lowest.slot(counts.len(), |slot| counts[slot as usize]);
                    prop_assert_eq!(slot as usize, expected);
                    prop_assert!(lowest.heap_bytes() <= LowestCount::bytes_max(counts.len()));
                }
            }
        }
    }

    #[test]
    fn counts_at_the_end_of_their_range_are_found() {
        let mut lowest = LowestCount::default();
        for _ in 0..10 {
            assert_eq!(lowest.slot(3, |_| u64::MAX), 0);
        }
    }
}
