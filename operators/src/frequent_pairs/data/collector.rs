//! Transactions as they arrive, in blocks.

/// Maximum number of transactions of a block, which have 16-bit numbers in the block. The largest
/// 16-bit number is not a transaction.
pub(crate) const BLOCK_TRANSACTIONS: usize = (1 << 16) - 1;

/// The first block has one sixteenth of the size of a whole block, and each later block is twice as
/// large as the block before: the other cores get work soon.
const FIRST_PART: usize = 16;

/// Transactions as lists of item numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TransactionBlock {
    /// End of each transaction among the items.
    pub(crate) ends: Vec<u32>,
    pub(crate) items: Vec<u32>,
}

impl TransactionBlock {
    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<u32>() * (self.ends.capacity() + self.items.capacity())
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
    /// Memory of a block that is not needed any more.
    spare: TransactionBlock,
}

impl Collector {
    /// A collector of blocks of up to `block_items` items.
    pub(crate) fn new(block_items: usize) -> Self {
        Self { open_items: block_items.div_ceil(FIRST_PART), block_items, ..Self::default() }
    }

    /// Adds a transaction of numbered items. Returns the block before this transaction, if that
    /// block is full.
    #[inline]
    pub(crate) fn push(&mut self, items: &[u32]) -> Option<TransactionBlock> {
        let is_full = self.open.ends.len() == BLOCK_TRANSACTIONS
            || !self.open.is_empty() && self.open.items.len() + items.len() > self.open_items;
        let mut full = None;
        if is_full {
            // The block is closed before the transaction, because a transaction is never divided.
            full = self.close();
            self.open_items = self.block_items.min(self.open_items.saturating_mul(2));
        }
        if items.len() > self.block_items {
            // A transaction that is larger than a block is alone in its block, so the block needs
            // no room to grow.
            self.open.items.reserve_exact(items.len());
        }
        self.open.items.extend_from_slice(items);
        let end = u32::try_from(self.open.items.len()).expect("a column has fewer than 2^31");
        self.open.ends.push(end);
        full
    }

    /// Ends the block, and returns it unless it is empty.
    pub(crate) fn close(&mut self) -> Option<TransactionBlock> {
        let block = std::mem::replace(&mut self.open, std::mem::take(&mut self.spare));
        (!block.is_empty()).then_some(block)
    }

    /// Numbers of the items of the open block.
    pub(crate) fn items_mut(&mut self) -> &mut [u32] {
        &mut self.open.items
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
            blocks.extend(collector.push(&items.collect::<Vec<_>>()));
        }
        blocks.extend(collector.close());
        assert_eq!(collector.close(), None);
        assert_eq!(blocks.iter().map(|block| block.ends.len()).sum::<usize>(), 200_000);
        assert!(blocks.iter().all(|block| block.ends.len() <= BLOCK_TRANSACTIONS));
        let alone = blocks.iter().find(|block| block.items.len() > BLOCK_ITEMS).unwrap();
        assert_eq!(alone.ends.len(), 1);
        let first = &blocks[0];
        assert_eq!(
            (&first.ends[..5], &first.items[..4]),
            (&[0, 1, 3, 6, 6][..], &[0, 0, 1, 0][..])
        );
    }

    #[test]
    fn blocks_grow() {
        let mut collector = Collector::new(100);
        let blocks = (0..400).filter_map(|item| collector.push(&[item]));
        let lens: Vec<usize> = blocks.map(|block| block.items.len()).collect();
        assert_eq!(lens, [7, 14, 28, 56, 100, 100]);
    }
}
