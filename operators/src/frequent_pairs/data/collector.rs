//! Transactions as they arrive, in blocks.

use std::ops::Range;

use crate::shared::names::block::{BatchItems, ItemBlock};

/// Maximum number of transactions of a block, which have 16-bit numbers in the block. The largest
/// 16-bit number is not a transaction.
pub(crate) const BLOCK_TRANSACTIONS: usize = (1 << 16) - 1;

/// The first block has one sixteenth of the size of a whole block, and each later block is twice as
/// large as the block before: the other cores get work soon.
const FIRST_PART: usize = 16;

/// Transactions as lists of items.
#[derive(Debug, Default)]
pub(crate) struct TransactionBlock {
    /// End of each transaction among the items.
    pub(crate) ends: Vec<u32>,
    pub(crate) items: ItemBlock,
}

impl TransactionBlock {
    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<u32>() * self.ends.capacity() + self.items.bytes()
    }

    /// Whether there is no transaction.
    pub(crate) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
}

/// Collects transactions.
#[derive(Debug, Default)]
pub(crate) struct Collector {
    /// Maximum number of items of the open block and of any block, unless the block has only one
    /// transaction.
    open_items: usize,
    block_items: usize,
    open: TransactionBlock,
    /// Number of items of the transactions of the open block.
    items: usize,
    /// Memory of a block that is not needed any more.
    spare: TransactionBlock,
}

impl Collector {
    /// A collector of blocks of up to `block_items` items.
    pub(crate) fn new(block_items: usize) -> Self {
        Self { open_items: block_items.div_ceil(FIRST_PART), block_items, ..Self::default() }
    }

    /// Whether the open block has no room for a transaction of `items` items. The block is then
    /// closed before the transaction, because a transaction is never divided.
    #[inline]
    pub(crate) fn is_full(&self, items: usize) -> bool {
        self.open.ends.len() == BLOCK_TRANSACTIONS
            || !self.open.is_empty() && self.items + items > self.open_items
    }

    /// Closes the open block, which is full.
    pub(crate) fn close_full(&mut self) -> Option<TransactionBlock> {
        self.open_items = self.block_items.min(self.open_items.saturating_mul(2));
        self.close()
    }

    /// Adds a transaction of `items` items, which [`extend`](Self::extend) adds before the block is
    /// closed.
    #[inline]
    pub(crate) fn push(&mut self, items: usize) {
        self.items += items;
        self.open.ends.push(u32::try_from(self.items).expect("a column has fewer than 2^31"));
    }

    /// Adds the items `range` of a batch, the items of the transactions that were added last.
    pub(crate) fn extend(&mut self, items: &BatchItems, range: Range<usize>) {
        if range.len() > self.block_items {
            // A transaction that is larger than a block is alone in its block, so the block needs
            // no room to grow.
            self.open.items.reserve_exact(range.len());
        }
        self.open.items.extend(items, range);
    }

    /// Ends the block, and returns it unless it is empty.
    pub(crate) fn close(&mut self) -> Option<TransactionBlock> {
        let block = std::mem::replace(&mut self.open, std::mem::take(&mut self.spare));
        let items = std::mem::take(&mut self.items);
        debug_assert_eq!(block.items.len(), items, "the items of all transactions are there");
        (!block.is_empty()).then_some(block)
    }

    /// Numbers of the items of the open block that have numbers.
    pub(crate) fn numbers_mut(&mut self) -> &mut [u32] {
        self.open.items.numbers_mut()
    }

    /// Uses the memory of `block` for a later block.
    pub(crate) fn recycle(&mut self, mut block: TransactionBlock) {
        block.ends.clear();
        block.items.clear();
        self.spare = block;
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        self.open.bytes() + self.spare.bytes()
    }

    /// Bytes that are allocated for a transaction of `items` items, if the transaction is larger
    /// than a block; else 0.
    pub(crate) fn bytes_of_large(&self, items: usize) -> usize {
        if items > self.block_items { items * size_of::<u32>() } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK_ITEMS: usize = 1 << 20;

    impl Collector {
        /// Adds a transaction of numbers. Returns the block before this transaction, if that block
        /// is full.
        pub(crate) fn push_numbers(&mut self, items: &[u32]) -> Option<TransactionBlock> {
            let full = self.is_full(items.len()).then(|| self.close_full()).flatten();
            self.push(items.len());
            self.extend(&BatchItems::Numbered(items.to_vec()), 0..items.len());
            full
        }
    }

    #[test]
    fn blocks_hold_all_transactions_in_order() {
        let mut collector = Collector::new(BLOCK_ITEMS);
        let mut blocks = Vec::new();
        // Empty transactions, a transaction that is larger than a block, and more transactions than
        // a block has.
        for transaction in 0..200_000_u32 {
            let items = match transaction {
                70_000 => 0..1_100_000,
                _ => 0..transaction % 4,
            };
            blocks.extend(collector.push_numbers(&items.collect::<Vec<_>>()));
        }
        blocks.extend(collector.close());
        assert!(collector.close().is_none());
        assert_eq!(blocks.iter().map(|block| block.ends.len()).sum::<usize>(), 200_000);
        assert!(blocks.iter().all(|block| block.ends.len() <= BLOCK_TRANSACTIONS));
        let alone = blocks.iter().find(|block| block.items.len() > BLOCK_ITEMS).unwrap();
        assert_eq!(alone.ends.len(), 1);
        let first = &mut blocks[0];
        assert_eq!(
            (&first.ends[..5], &first.items.numbers_mut()[..4]),
            (&[0, 1, 3, 6, 6][..], &[0, 0, 1, 0][..])
        );
    }

    #[test]
    fn blocks_grow() {
        let mut collector = Collector::new(100);
        let blocks = (0..400).filter_map(|item| collector.push_numbers(&[item]));
        let lens: Vec<usize> = blocks.map(|block| block.items.len()).collect();
        assert_eq!(lens, [7, 14, 28, 56, 100, 100]);
    }
}
