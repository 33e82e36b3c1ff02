//! Oracles: obviously correct answers, computed without the code under test.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;

/// Counts exactly.
#[derive(Debug, Default)]
pub(crate) struct ExactCounts<K> {
    counts: HashMap<K, u64>,
    total: u64,
}

impl<K: Hash + Eq + Clone> ExactCounts<K> {
    pub(crate) fn new() -> Self {
        Self { counts: HashMap::new(), total: 0 }
    }

    pub(crate) fn add(&mut self, item: &K, weight: u64) {
        *self.counts.entry(item.clone()).or_default() += weight;
        self.total += weight;
    }

    pub(crate) fn count(&self, item: &K) -> u64 {
        self.counts.get(item).copied().unwrap_or(0)
    }

    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, u64)> {
        self.counts.iter().map(|(item, &count)| (item, count))
    }
}

/// Similarity of two sets.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Likeness {
    Jaccard,
    Cosine,
    Dice,
    Overlap,
}

impl Likeness {
    /// True if an `overlap` of sets of these `sizes` reaches the similarity n / d.
    fn is_reached(self, [n, d]: [u32; 2], overlap: usize, sizes: [usize; 2]) -> bool {
        let [n, d, o, a, b] =
            [n as usize, d as usize, overlap, sizes[0], sizes[1]].map(|number| number as u128);
        match self {
            Self::Jaccard => d * o >= n * (a + b - o),
            Self::Cosine => d * d * o * o >= n * n * a * b,
            Self::Dice => d * 2 * o >= n * (a + b),
            Self::Overlap => d * o >= n,
        }
    }

    /// Similarity, for comparison with the reported one.
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    pub(crate) fn value(self, overlap: usize, a: usize, b: usize) -> f64 {
        let [o, a, b] = [overlap, a, b].map(|number| number as f64);
        match self {
            Self::Jaccard => o / (a + b - o),
            Self::Cosine => o / (a * b).sqrt(),
            Self::Dice => 2.0 * o / (a + b),
            Self::Overlap => o,
        }
    }
}

/// All pairs with a similarity of at least n / d, and their common tokens: of a left and a right
/// set, or of two left sets. Empty sets are similar to none.
pub(crate) fn similar_pairs(
    likeness: Likeness,
    threshold: [u32; 2],
    left: &[BTreeSet<u32>],
    right: Option<Vec<BTreeSet<u32>>>,
) -> Vec<(u32, u32, u32)> {
    let mut pairs = Vec::new();
    for (i, a) in (0..).zip(left) {
        for (j, b) in (0..).zip(right.as_deref().unwrap_or(left)) {
            let overlap = a.iter().filter(|token| b.contains(token)).count();
            let is_pair = overlap > 0 && (right.is_some() || i < j);
            if is_pair && likeness.is_reached(threshold, overlap, [a.len(), b.len()]) {
                pairs.push((i, j, u32::try_from(overlap).unwrap()));
            }
        }
    }
    pairs
}
