//! The definition of a set-similarity join, in whole numbers. It calls no code of the join.

use std::collections::BTreeSet;

use crate::set_similarity_join::Similarity;

/// Pairs of a left and a right id, and their overlap.
pub(crate) type Pairs = BTreeSet<(u32, u32, u32)>;

/// All similarities.
pub(crate) const SIMILARITIES: [Similarity; 4] =
    [Similarity::Jaccard, Similarity::Cosine, Similarity::Dice, Similarity::Overlap];

/// A similarity, and a threshold as a fraction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Question {
    pub(crate) similarity: Similarity,
    pub(crate) numerator: u32,
    pub(crate) denominator: u32,
}

impl Question {
    /// A Jaccard similarity of at least `percent`.
    pub(crate) const fn jaccard(percent: u32) -> Self {
        Self { similarity: Similarity::Jaccard, numerator: percent, denominator: 100 }
    }

    /// Whether sets of `left` and `right` tokens with `overlap` common ones are similar: the
    /// definition of each similarity, multiplied out.
    pub(crate) fn is_similar(self, overlap: usize, left: usize, right: usize) -> bool {
        let [n, d] = [self.numerator, self.denominator].map(u128::from);
        let [o, a, b] = [overlap, left, right].map(|n| n as u128);
        o > 0
            && match self.similarity {
                Similarity::Jaccard => d * o >= n * (a + b - o),
                Similarity::Cosine => d * d * o * o >= n * n * a * b,
                Similarity::Dice => 2 * d * o >= n * (a + b),
                Similarity::Overlap => d * o >= n,
            }
    }

    /// The overlap of two sets, if they are similar.
    pub(crate) fn overlap(self, left: &BTreeSet<u32>, right: &BTreeSet<u32>) -> Option<u32> {
        let overlap = left.intersection(right).count();
        let is_similar = self.is_similar(overlap, left.len(), right.len());
        is_similar.then(|| u32::try_from(overlap).unwrap())
    }

    /// All similar pairs of a left and a right set; without right sets, of two different left
    /// ones. Ids are positions.
    pub(crate) fn pairs(self, left: &[BTreeSet<u32>], right: Option<&[BTreeSet<u32>]>) -> Pairs {
        let mut pairs = Pairs::new();
        for (i, a) in (0..).zip(left) {
            for (j, b) in (0..).zip(right.unwrap_or(left)) {
                let overlap = self.overlap(a, b).filter(|_| right.is_some() || i < j);
                pairs.extend(overlap.map(|overlap| (i, j, overlap)));
            }
        }
        pairs
    }
}
