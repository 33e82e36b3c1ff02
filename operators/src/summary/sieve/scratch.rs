//! Buffers for the keys of a block.

use std::ops::Range;

use crate::items::{Item, Items};

/// The codes of a block, or the keys of a block where a code is not its item, if the batch does not
/// hold these.
#[derive(Clone, Debug)]
pub(super) struct BlockScratch<K: Item> {
    pub(super) codes: Vec<K::Code>,
    keys: Vec<K::Key>,
}

impl<K: Item> Default for BlockScratch<K> {
    fn default() -> Self {
        Self { codes: Vec::new(), keys: Vec::new() }
    }
}

impl<K: Item> BlockScratch<K> {
    /// The keys of a range of items.
    #[inline]
    pub(super) fn keys<'a, B: Items<K> + ?Sized>(
        &'a mut self,
        batch: &'a B,
        range: Range<usize>,
        secret: &K::Secret,
    ) -> &'a [K::Key] {
        if K::CODE_IS_ITEM {
            let codes = batch.codes(range, secret, &mut self.codes);
            return K::keys_of_codes(codes).expect("a code is its item");
        }
        batch.keys(range, secret, &mut self.keys)
    }

    /// Upper bound of the bytes for blocks of `block` items: a vector that grows doubles.
    pub(super) const fn bytes_max(block: usize) -> usize {
        2 * block * if K::CODE_IS_ITEM { size_of::<K::Code>() } else { size_of::<K::Key>() }
    }

    pub(super) fn bytes(&self) -> usize {
        self.codes.capacity() * size_of::<K::Code>() + self.keys.capacity() * size_of::<K::Key>()
    }
}
