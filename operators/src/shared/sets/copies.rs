//! Copies of sets: if pairs are only counted, equal sets are joined once.
//!
//! Each of n copies is a partner of all other copies, so that a join which visits pairs takes n²
//! steps for a number that arithmetic gives. In the order of a collection, copies are neighbours.

use std::cmp::Ordering;
use std::ops::Range;

use super::arrival::numbering::TokenCounts;
use super::collection::{SetCollection, SortedPart};
use super::side::Side;

impl SetCollection {
    /// Keeps one set of each group of equal sets, with the [number](Self::copies) of its copies, if
    /// there are at least `pairs_min` pairs of copies per set, so that the merge pays. The
    /// remaining ids are the ids of the first copies. Without memory for the merge, the collection
    /// stays unchanged.
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
        // The sets with all copies took more memory, and are dropped now.
        self.budget_mut().give_back(bytes);
        let counts = TokenCounts { distinct: self.distinct(), unshared: self.unshared() };
        let merged = SortedPart::join(part, self.is_two_sided(), counts, self.budget());
        *self = merged.with_copies(copies);
        true
    }

    /// Pairs of equal sets of the sizes for which `is_similar` holds: pairs of one input, or of a
    /// left and a right set.
    pub(crate) fn pairs_of_copies(&self, is_similar: impl Fn(u32) -> bool) -> u64 {
        let sizes = self.sizes().iter().filter(|run| is_similar(run.size));
        sizes.map(|run| self.pairs_within(run.begin..run.end)).sum()
    }

    /// Pairs of equal sets among `sets`, which all have one size.
    fn pairs_within(&self, sets: Range<u32>) -> u64 {
        if !self.is_two_sided() {
            return self.groups(sets).map(|(_, count)| count * (count - 1) / 2).sum();
        }
        let is_left = |set: &u32| self.side(*set) == Side::Left;
        let middle = sets.clone().find(|set| !is_left(set)).unwrap_or(sets.end);
        let (mut left, mut right) =
            (self.groups(sets.start..middle), self.groups(middle..sets.end));
        let (mut pairs, mut next) = (0, (left.next(), right.next()));
        while let (Some((one, ones)), Some((other, others))) = next {
            let order = self.set(one).cmp(self.set(other));
            if order == Ordering::Equal {
                pairs += ones * others;
            }
            next = (
                if order == Ordering::Greater { next.0 } else { left.next() },
                if order == Ordering::Less { next.1 } else { right.next() },
            );
        }
        pairs
    }

    /// The first set of each group of equal sets among `sets` of one side, and the number of sets
    /// in the group.
    fn groups(&self, mut sets: Range<u32>) -> impl Iterator<Item = (u32, u64)> {
        std::iter::from_fn(move || {
            let first = sets.next()?;
            let mut count = 1;
            while sets.start < sets.end && self.is_copy(sets.start) {
                sets.next();
                count += 1;
            }
            Some((first, count))
        })
    }

    /// Whether a set is equal to the set before it.
    fn is_copy(&self, set: u32) -> bool {
        self.side(set) == self.side(set - 1) && self.set(set) == self.set(set - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::sets::SetCollector;

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
    fn pairs_of_copies_are_those_of_every_two_sets() {
        use Side::{Left, Right};
        for is_two_sided in [false, true] {
            let mut collector = SetCollector::new(1 << 20);
            let mut sets = Vec::new();
            for id in 0..200_u32 {
                // 12 sets of three sizes.
                let (side, kind) =
                    (if id % 5 == 0 && is_two_sided { Right } else { Left }, id % 12);
                let tokens: Vec<u32> = (kind..kind + 1 + kind % 3).collect();
                collector.push(side, id, &tokens).unwrap();
                sets.push((side, tokens));
            }
            let collection = collector.finish().unwrap();
            for sizes in [1..4, 2..3] {
                let is_pair = |(one, other): (usize, usize)| {
                    let ((side, tokens), (partner, others)) = (&sets[one], &sets[other]);
                    let is_partner = if is_two_sided { side != partner } else { true };
                    is_partner && tokens == others && sizes.contains(&tokens.len())
                };
                let pairs = (0..200).flat_map(|one| (0..one).map(move |other| (one, other)));
                let expected = pairs.filter(|&pair| is_pair(pair)).count();
                let found = collection.pairs_of_copies(|size| sizes.contains(&(size as usize)));
                assert_eq!(found, expected as u64, "{is_two_sided} {sizes:?}");
                assert!(expected > 0);
            }
        }
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
        let free = |budget: &mut crate::shared::budget::Budget| {
            (0..1 << 20).rev().find(|&bytes| budget.take("all", bytes).is_ok()).unwrap()
        };
        assert_eq!(free(&mut before) - free(&mut after), 12, "the numbers of copies");
        assert!(!collection(&[1, 1]).merge_copies(0), "without copies, nothing changes");
        assert!(!collection(&[]).merge_copies(0));
    }
}
