//! The counters that share the smallest count, a bit each.

/// Counters of a word of bits.
const WORD: usize = u64::BITS as usize;

/// The counters that had the smallest count at the last scan.
#[derive(Clone, Debug, Default)]
pub(super) struct MinLevel {
    count: u64,
    /// Bit `slot % 64` of word `slot / 64`; words that are all zero are cut off at the end.
    words: Vec<u64>,
}

impl MinLevel {
    /// Collects the counters with the smallest count, and returns their number. One pass: the bits
    /// of 64 counters are built while their counts are in the cache, and thrown away if a smaller
    /// count comes later.
    pub(super) fn collect(&mut self, counts: &[u64]) -> usize {
        self.count = u64::MAX;
        self.words.clear();
        self.words.reserve_exact(counts.len().div_ceil(WORD));
        // The first word of the smallest count so far.
        let mut begin = 0;
        for chunk in counts.chunks(WORD) {
            let min = smallest(chunk);
            if min < self.count {
                self.count = min;
                begin = self.words.len();
            }
            self.words.push(if min == self.count { equal(chunk, min) } else { 0 });
        }
        self.words[..begin].fill(0);
        self.cut();
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// The count that all these counters had.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// The count and the last slot.
    #[inline]
    pub(super) fn last(&self) -> Option<(u64, u32)> {
        let word = self.words.last()?;
        let slot = self.words.len() * WORD - 1 - word.leading_zeros() as usize;
        Some((self.count, u32::try_from(slot).expect("capacities are below 2^32")))
    }

    /// Takes the last slot out.
    #[inline]
    pub(super) fn pop(&mut self) {
        if let Some(word) = self.words.last_mut() {
            *word &= !(1 << (WORD - 1) >> word.leading_zeros());
            self.cut();
        }
    }

    /// The slots, ascending.
    pub(super) fn slots(&self) -> impl Iterator<Item = u32> {
        (0..).zip(&self.words).flat_map(|(index, &word)| {
            let bits = (0..u64::BITS).filter(move |bit| word >> bit & 1 == 1);
            bits.map(move |bit| index * u64::BITS + bit)
        })
    }

    pub(super) fn clear(&mut self) {
        self.words.clear();
    }

    /// The most bytes on the heap for `counters` counters.
    pub(super) fn bytes(counters: usize) -> usize {
        counters.div_ceil(WORD) * size_of::<u64>()
    }

    /// Bytes on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        self.words.capacity() * size_of::<u64>()
    }

    #[inline]
    fn cut(&mut self) {
        while self.words.last() == Some(&0) {
            self.words.pop();
        }
    }
}

/// The smallest of one count or more. The loop takes four counts at a time, so that one comparison
/// does not wait for the comparison before.
fn smallest(counts: &[u64]) -> u64 {
    let (groups, rest) = counts.as_chunks::<4>();
    let mut mins = [u64::MAX; 4];
    for group in groups {
        for (min, &count) in mins.iter_mut().zip(group) {
            *min = count.min(*min);
        }
    }
    rest.iter().chain(&mins).fold(u64::MAX, |min, &count| min.min(count))
}

/// The counters of a chunk that have this count, a bit each.
fn equal(chunk: &[u64], count: u64) -> u64 {
    chunk.iter().zip(0..).fold(0, |word, (&other, bit)| word | u64::from(other == count) << bit)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_level_is_the_slots_of_the_smallest_count(
            counts in prop::collection::vec(prop_oneof![0..3_u64, Just(u64::MAX)], 1..300),
        ) {
            let min = *counts.iter().min().unwrap();
            let expected: Vec<u32> =
                (0..).zip(&counts).filter(|&(_, &count)| count == min).map(|pair| pair.0).collect();
            let mut level = MinLevel::default();
            // The level before leaves nothing.
            level.collect(&[0; 200]);
            prop_assert_eq!(level.collect(&counts), expected.len());
            prop_assert_eq!(level.count(), min);
            prop_assert_eq!(level.slots().collect::<Vec<_>>(), &*expected);
            prop_assert!(level.heap_bytes() <= MinLevel::bytes(counts.len().max(200)));
            for &slot in expected.iter().rev() {
                prop_assert_eq!(level.last(), Some((min, slot)));
                level.pop();
            }
            prop_assert_eq!(level.last(), None);
        }
    }
}
