//! Signatures of all sets of a collection, as the indexes hold them.

use trommel_kernels::Isa;
use trommel_kernels::memory::prefer_huge_pages;
use trommel_kernels::sets::sign_sets;

use crate::set_similarity_join::similarity::Bounds;
use crate::shared::budget::{Budget, BudgetFull};
use crate::shared::sets::SetCollection;

/// Bits of a signature per token in which two similar sets can differ.
const BITS_PER_DIFFERENCE: u32 = 5;

/// Number of words of a signature. The number grows with the number of tokens in which two similar
/// sets of the mean size can differ. Measured by `trommel-bench set-join`.
pub(crate) fn words_for(collection: &SetCollection, bounds: Bounds) -> usize {
    let size = u32::try_from(collection.block().mean_size()).expect("at most 2^31 tokens");
    let difference = 2 * size.saturating_sub(bounds.required(size, size));
    let bits = difference.saturating_mul(BITS_PER_DIFFERENCE);
    bits.div_ceil(u64::BITS).next_power_of_two().clamp(1, 8) as usize
}

/// The signatures of a collection, set after set; empty if `words` is 0.
#[derive(Debug)]
pub(crate) struct SetSignatures {
    pub(crate) words: usize,
    pub(crate) bits: Vec<u64>,
}

impl SetSignatures {
    /// Bytes of signatures of `words` words.
    pub(crate) fn bytes(collection: &SetCollection, words: usize) -> usize {
        words * collection.len() * size_of::<u64>()
    }

    /// Signs all sets.
    ///
    /// # Errors
    /// If the signatures do not fit the memory.
    pub(crate) fn new(
        collection: &SetCollection,
        words: usize,
        isa: Isa,
        budget: &mut Budget,
    ) -> Result<Self, BudgetFull> {
        let len = words * collection.len();
        budget.take("the index", Self::bytes(collection, words))?;
        let mut bits = Vec::with_capacity(len);
        prefer_huge_pages(&mut bits);
        bits.resize(len, 0);
        if words > 0 {
            let (offsets, tokens) = (collection.sets().offsets(), collection.sets().tokens());
            sign_sets(isa, offsets, tokens, words, &mut bits);
        }
        Ok(Self { words, bits })
    }

    /// Number of bits in which the signatures of two sets differ.
    #[inline(always)]
    pub(crate) fn distance(&self, left: u32, right: u32) -> u32 {
        let of = |set: u32| &self.bits[set as usize * self.words..][..self.words];
        of(left).iter().zip(of(right)).map(|(left, right)| (left ^ right).count_ones()).sum()
    }
}
