//! The counters with the largest counts, for a filter that exchanges bins several times in a row.
//!
//! One pass over the counts finds the largest few counts, which serve the exchanges that follow,
//! until a count changes.

/// Counters found by one pass. A filter seldom exchanges more bins at a time.
const CACHED_MAX: usize = 16;

/// The largest counts that are not used up; empty when these are not known.
#[derive(Clone, Debug, Default)]
pub(super) struct MaxCache {
    /// Count and slot, ascending by count.
    ascending: Vec<(u64, u32)>,
}

impl MaxCache {
    /// Takes out the count and the slot of a largest counter; among equals, the lowest slot.
    pub(super) fn take_max(&mut self, counts: &[u64]) -> Option<(u64, u32)> {
        if self.ascending.is_empty() {
            self.scan(counts);
        }
        self.ascending.pop()
    }

    /// Notes that a counter that was taken out has become `count`. Cached counts up to this one are
    /// forgotten.
    pub(super) fn replaced(&mut self, count: u64) {
        let end = self.ascending.partition_point(|&(cached, _)| cached <= count);
        self.ascending.drain(..end);
    }

    /// Forgets the counts, because counts have changed or slots have moved.
    pub(super) fn forget(&mut self) {
        self.ascending.clear();
    }

    /// Bytes on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        self.ascending.capacity() * size_of::<(u64, u32)>()
    }

    fn scan(&mut self, counts: &[u64]) {
        let mut enough = None;
        for (slot, &count) in (0..).zip(counts) {
            if enough.is_none_or(|least| least < count) {
                let place = self.ascending.partition_point(|&(other, _)| other < count);
                self.ascending.insert(place, (count, slot));
                if self.ascending.len() > CACHED_MAX {
                    self.ascending.remove(0);
                }
                if self.ascending.len() == CACHED_MAX {
                    enough = Some(self.ascending[0].0);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_maximum_is_taken_whatever_replaces_it(
            mut counts in prop::collection::vec(0..30_u64, 1..60),
            replacements in prop::collection::vec(0..30_u64, 1..100),
        ) {
            let mut cache = MaxCache::default();
            for count in replacements {
                let (max, slot) = cache.take_max(&counts).expect("there are counts");
                prop_assert_eq!(Some(max), counts.iter().copied().max());
                prop_assert_eq!(counts.iter().position(|&count| count == max), Some(slot as usize));
                counts[slot as usize] = count;
                cache.replaced(count);
            }
        }
    }

    #[test]
    fn a_replacement_above_some_counts_is_found_in_its_turn() {
        let mut counts = [18; 3];
        let mut cache = MaxCache::default();
        for (replacement, expected) in [(6, 18), (7, 18), (0, 18), (0, 7), (0, 6)] {
            let (max, slot) = cache.take_max(&counts).expect("there are counts");
            assert_eq!(max, expected);
            counts[slot as usize] = replacement;
            cache.replaced(replacement);
        }
    }

    #[test]
    fn no_count_has_no_maximum() {
        assert_eq!(MaxCache::default().take_max(&[]), None);
    }
}
