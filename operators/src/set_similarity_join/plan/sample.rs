//! Samples of the sets of a collection, and the test of their pairs by signatures.

use trommel_kernels::sets::sign;
use trommel_kernels::signatures::WORDS;

use crate::set_similarity_join::similarity::Bounds;
use crate::shared::sets::SetCollection;

/// A sampled set, with its signature.
pub(crate) struct Signed {
    set: u32,
    size: u32,
    signature: [u64; WORDS[WORDS.len() - 1]],
}

impl Signed {
    pub(crate) fn new(collection: &SetCollection, set: u32, words: usize) -> Self {
        let mut signature = [0; WORDS[WORDS.len() - 1]];
        sign(collection.set(set), &mut signature[..words]);
        Self { set, size: collection.size(set), signature }
    }

    /// Whether a pair can be similar by its sizes.
    pub(crate) fn fits(&self, other: &Self, bounds: Bounds) -> bool {
        let (smaller, larger) = (self.size.min(other.size), self.size.max(other.size));
        self.set != other.set && smaller >= bounds.size_min(larger)
    }

    /// Whether a pair whose sizes fit can be similar by its signatures.
    pub(crate) fn passes(&self, other: &Self, bounds: Bounds) -> bool {
        let (smaller, larger) = (self.size.min(other.size), self.size.max(other.size));
        let words = self.signature.iter().zip(&other.signature);
        let differing: u32 = words.map(|(left, right)| (left ^ right).count_ones()).sum();
        let sizes = u64::from(smaller) + u64::from(larger);
        u64::from(differing) + 2 * u64::from(bounds.required(larger, smaller)) <= sizes
    }
}

/// Up to `count` numbers below `end`, at equal distances.
pub(crate) fn spaced(end: usize, count: usize) -> impl Iterator<Item = u32> {
    let count = count.min(end);
    let place = move |place| (2 * place + 1) * end / (2 * count);
    (0..count).map(place).map_while(|set| u32::try_from(set).ok())
}
