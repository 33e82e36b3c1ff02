//! A block of transactions, transposed: for each of its items the transactions that hold it.

use super::collector::TransactionBlock;

/// A number that no transaction of a block has; this number stands before each list.
const NONE: u16 = u16::MAX;

/// Known items for each item of a block up to which all known items are passed over, to list the
/// items of the block in their order.
const SCANNED: usize = 4;

/// Items with their transactions, which have 16-bit numbers in the block.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct TransposedBlock {
    /// Numbers of the items that occur, ascending.
    items: Vec<u32>,
    /// Begin and end of the list of each item.
    ranges: Vec<[u32; 2]>,
    tids: Vec<u16>,
    transactions: u32,
}

/// Memory for the transposition of many blocks.
#[derive(Debug, Default)]
pub(crate) struct Transposition {
    /// For each item number: the next place in the item's list. Zero between blocks.
    next: Vec<u32>,
}

impl Transposition {
    /// Transposes a block. An item that occurs twice in a transaction counts once.
    ///
    /// Two passes of a counting sort: the first pass counts the items, and the second pass writes
    /// the transactions to lists of these lengths.
    pub(crate) fn transpose(&mut self, block: &mut TransactionBlock) -> TransposedBlock {
        let TransactionBlock { ends, items: of_all } = block;
        let of_all = &**of_all.numbers_mut();
        let known = of_all.iter().max().map_or(0, |&item| item as usize + 1);
        if self.next.len() < known {
            self.next.resize(known, 0);
        }
        let items = self.count(of_all, known);
        let next = &mut self.next[..];
        let mut ranges = Vec::with_capacity(items.len());
        let mut end = 0;
        for &item in &items {
            // The place before each list holds `NONE`, so that the first comparison of the list
            // finds a difference.
            let begin = end + 1;
            end = begin + next[item as usize];
            next[item as usize] = begin;
            ranges.push([begin, end]);
        }
        let mut tids = vec![NONE; end as usize];
        let mut begin = 0;
        for (tid, &end) in (0..NONE).zip(&*ends) {
            for &item in &of_all[begin as usize..end as usize] {
                let place = &mut next[item as usize];
                // The write needs no branch: the place advances only if the item is new to the
                // transaction.
                tids[*place as usize] = tid;
                *place += u32::from(tids[*place as usize - 1] != tid);
            }
            begin = end;
        }
        for (range, &item) in ranges.iter_mut().zip(&items) {
            range[1] = std::mem::take(&mut next[item as usize]);
        }
        let transactions = u32::try_from(ends.len()).expect("fewer than 2^16");
        TransposedBlock { items, ranges, tids, transactions }
    }

    /// Counts the items `of_all` transactions, which are below `known`, in `next`. Returns the
    /// items that occur, ascending.
    fn count(&mut self, of_all: &[u32], known: usize) -> Vec<u32> {
        let next = &mut self.next[..known];
        if known <= SCANNED * of_all.len() {
            of_all.iter().for_each(|&item| next[item as usize] += 1);
            let counts = (0..).zip(&*next);
            return counts.filter(|(_, count)| **count > 0).map(|(item, _)| item).collect();
        }
        // A pass over all known items would take longer than the block.
        let mut items = Vec::new();
        for &item in of_all {
            let count = &mut next[item as usize];
            if *count == 0 {
                items.push(item);
            }
            *count += 1;
        }
        items.sort_unstable();
        items
    }
}

impl TransposedBlock {
    /// The numbers of the items that occur, ascending, each with its transactions in ascending
    /// order.
    pub(crate) fn lists(&self) -> impl Iterator<Item = (u32, &[u16])> {
        let list = |&[begin, end]: &[u32; 2]| &self.tids[begin as usize..end as usize];
        self.items.iter().copied().zip(self.ranges.iter().map(list))
    }

    /// Visits the lists of the items among `numbers`, which ascend, each with its place in
    /// `numbers`.
    pub(crate) fn select(&self, numbers: &[u32], mut visit: impl FnMut(usize, &[u16])) {
        let mut from = 0;
        for (place, &number) in numbers.iter().enumerate() {
            from += before(&self.items[from..], number);
            if self.items.get(from) == Some(&number) {
                let [begin, end] = self.ranges[from];
                visit(place, &self.tids[begin as usize..end as usize]);
            }
        }
    }

    /// Sorts the lists by their items.
    pub(crate) fn sort(&mut self) {
        if !self.items.is_sorted() {
            let mut lists: Vec<_> = self.items.iter().copied().zip(self.ranges.drain(..)).collect();
            lists.sort_unstable_by_key(|(item, _)| *item);
            (self.items, self.ranges) = lists.into_iter().unzip();
        }
    }

    /// The numbers of the items that occur. Changes keep their order.
    pub(crate) fn items_mut(&mut self) -> &mut [u32] {
        &mut self.items
    }

    /// A block of `transactions` transactions without items.
    pub(crate) fn with_transactions(transactions: u32) -> Self {
        Self { transactions, ..Self::default() }
    }

    /// Adds an item that is new to the block, with its transactions in ascending order.
    pub(crate) fn push(&mut self, item: u32, tids: &[u16]) {
        self.tids.push(NONE);
        let [begin, end] = [self.tids.len(), self.tids.len() + tids.len()]
            .map(|place| u32::try_from(place).expect("fewer than 2^32 in a block"));
        self.tids.extend_from_slice(tids);
        self.items.push(item);
        self.ranges.push([begin, end]);
    }

    /// Number of items.
    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// Number of transactions.
    pub(crate) fn transactions(&self) -> u32 {
        self.transactions
    }

    /// Maximum bytes of the lists of `block` and of the temporary memory that makes them, if
    /// `items` items are known.
    pub(crate) fn bytes_max(block: &TransactionBlock, items: usize) -> usize {
        let occurrences = block.items.len();
        let lists = occurrences.min(items);
        // A vector that grows has up to twice the bytes of its items, and up to three times during
        // a copy.
        let of_lists = lists * (3 * size_of::<u32>() + size_of::<[u32; 2]>());
        let tids = (occurrences + lists) * size_of::<u16>();
        of_lists + tids + items * size_of::<u32>()
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&self.items[..]) + size_of_val(&self.ranges[..]) + size_of_val(&self.tids[..])
    }
}

/// Number of ascending `items` below `number`. The search doubles its steps, so that few numbers
/// visit few of the items, and many numbers visit each item about once.
fn before(items: &[u32], number: u32) -> usize {
    let mut step = 1;
    while items.get(step - 1).is_some_and(|&item| item < number) {
        step *= 2;
    }
    let (begin, end) = (step / 2, items.len().min(step));
    begin + items[begin..end].partition_point(|&item| item < number)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::frequent_pairs::data::collector::{BLOCK_TRANSACTIONS, Collector};

    fn check(transactions: &[Vec<u32>], memory: &mut Transposition) {
        let mut collector = Collector::new(usize::MAX);
        let push = |items: &Vec<u32>| collector.push_numbers(items).is_none();
        assert!(transactions.iter().all(push));
        let Some(mut block) = collector.close() else { return };
        let transposed = memory.transpose(&mut block);
        let mut expected: BTreeMap<u32, Vec<u16>> = BTreeMap::new();
        for (tid, items) in (0..NONE).zip(transactions) {
            for &item in items {
                let tids = expected.entry(item).or_default();
                if tids.last() != Some(&tid) {
                    tids.push(tid);
                }
            }
        }
        let found: BTreeMap<u32, Vec<u16>> =
            transposed.lists().map(|(item, tids)| (item, tids.to_vec())).collect();
        assert_eq!(found, expected);
        assert!(transposed.lists().map(|(item, _)| item).is_sorted());
        let numbers: Vec<u32> = (0..50).filter(|number| number % 3 > 0).collect();
        let mut selected = Vec::new();
        transposed.select(&numbers, |place, tids| selected.push((numbers[place], tids.to_vec())));
        expected.retain(|number, _| number % 3 > 0);
        assert!(selected.into_iter().eq(expected));
        assert_eq!(transposed.transactions() as usize, transactions.len());
        assert!(memory.next.iter().all(|&next| next == 0));
    }

    #[test]
    fn the_last_transaction_of_the_largest_block_is_no_other() {
        let transactions = vec![vec![7, 7, 9, 7]; BLOCK_TRANSACTIONS];
        check(&transactions, &mut Transposition::default());
    }

    #[test]
    fn a_search_finds_the_first_of_the_items_that_are_not_below() {
        let items: Vec<u32> = (0..40).map(|item| 3 * item).collect();
        for (len, number) in (0..=40).flat_map(|len| (0..130).map(move |number| (len, number))) {
            let expected = items[..len].iter().filter(|item| **item < number).count();
            assert_eq!(before(&items[..len], number), expected, "{len}, {number}");
        }
    }

    #[test]
    fn lists_of_a_state_are_sorted() {
        let mut block = TransposedBlock::with_transactions(9);
        for (item, tids) in [(7, &[1, 8][..]), (2, &[0]), (5, &[3, 4, 5])] {
            block.push(item, tids);
        }
        block.sort();
        let lists: Vec<_> = block.lists().collect();
        assert_eq!(lists, [(2, &[0][..]), (5, &[3, 4, 5]), (7, &[1, 8])]);
    }

    proptest! {
        #[test]
        fn lists_are_those_of_a_map(
            blocks in prop::collection::vec(
                prop::collection::vec(prop::collection::vec(0_u32..40, 0..12), 0..50),
                1..4,
            ),
        ) {
            let mut memory = Transposition::default();
            blocks.iter().for_each(|block| check(block, &mut memory));
        }
    }
}
