//! Copies of sets: equal ones are joined once where pairs are only counted.
//!
//! Of n copies, each is a partner of all others, so that a join which looks at pairs takes n²
//! steps for a number that arithmetic gives. In the order of a collection, copies are neighbours.

use super::collection::{SetCollection, SortedPart};
use super::numbering::TokenCounts;

impl SetCollection {
    /// Leaves each set once, with the [number](Self::copies) of its copies, if there are at least
    /// `pairs_min` pairs of copies for each set, so that this pays. The ids that are left are
    /// those of the first copies. Without memory for that, the collection stays as it is.
    pub(crate) fn merge_copies(&mut self, pairs_min: u64) -> bool {
        let (mut copies, mut pairs, mut tokens) = (Vec::<u32>::new(), 0_u64, 0);
        for set in (0..).take(self.len()) {
            if let Some(count) = copies.last_mut().filter(|_| set > 0 && self.is_copy(set)) {
                pairs += u64::from(*count);
                *count += 1;
            } else {
                copies.push(1);
                tokens += self.size(set) as usize;
            }
        }
        if pairs < pairs_min.saturating_mul(self.len() as u64) {
            return false;
        }
        let set_bytes = 3 * size_of::<u32>() + size_of::<u8>();
        let bytes = copies.len() * set_bytes + tokens * size_of::<u32>();
        let kept = size_of_val(&copies[..]);
        if pairs == 0 || self.budget_mut().take("the sets without copies", bytes + kept).is_err() {
            return false;
        }
        let mut part = SortedPart::split(&[(copies.len(), tokens)]);
        let mut set = 0;
        for count in &copies {
            part[0].push(self.side(set), self.block().id(set), self.set(set));
            set += count;
        }
        // The sets with all copies took more, and are dropped now.
        self.budget_mut().give_back(bytes);
        let counts = TokenCounts { distinct: self.distinct(), unshared: self.unshared() };
        let merged = SortedPart::join(part, self.is_two_sided(), counts, self.budget());
        *self = merged.with_copies(copies);
        true
    }

    /// Whether a set is equal to the one before it.
    fn is_copy(&self, set: u32) -> bool {
        self.side(set) == self.side(set - 1) && self.set(set) == self.set(set - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sets::{SetCollector, Side};

    fn collection(copies: &[u32]) -> SetCollection {
        let mut collector = SetCollector::new(1 << 20);
        for id in 0..copies.iter().copied().max().unwrap_or(0) {
            for (token, _) in (0..).zip(copies).filter(|&(_, &count)| id < count) {
                collector.push(Side::Left, id, &[token, token + 1, 99]).unwrap();
            }
        }
        collector.finish().unwrap()
    }

    #[test]
    fn copies_are_merged_where_their_pairs_are_many() {
        // 45 + 3 + 0 pairs of 14 sets.
        let mut sets = collection(&[10, 3, 1]);
        assert!(!sets.merge_copies(4) && sets.copies().is_none());
        assert_eq!(sets.len(), 14);
        let before = sets.budget();
        assert!(sets.merge_copies(3));
        let mut copies = sets.copies().unwrap().to_vec();
        copies.sort_unstable();
        assert_eq!((copies, sets.len(), sets.tokens()), (vec![1, 3, 10], 3, 9));
        let (mut before, mut after) = (before, sets.budget());
        let free = |budget: &mut crate::budget::Budget| {
            (0..1 << 20).rev().find(|&bytes| budget.take("all", bytes).is_ok()).unwrap()
        };
        assert_eq!(free(&mut before) - free(&mut after), 12, "the numbers of copies");
        assert!(!collection(&[1, 1]).merge_copies(0), "without copies, nothing changes");
        assert!(!collection(&[]).merge_copies(0));
    }
}
