//! The triples of pairs with the items of a block of columns.

use std::ops::Range;

use trommel_kernels::Isa;
use trommel_kernels::batmap::triple_support;
use trommel_kernels::sets::Sets;
use trommel_kernels::supports::{FoundPairs, Marks, Pair, RowPair, Rows};

use super::columns::Columns;
use crate::frequent_pairs::data::pair_rows::PairRows;

/// Maximum number of pairs in one round of counting, and number of their transactions that ends the
/// round: 64 KiB of transactions, in the first-level or second-level cache.
const ROWS: usize = 1 << 10;
const TIDS: usize = 1 << 14;

/// Counts the triples of pairs.
///
/// A pair has a *candidate* if an item of the columns is a partner of both items of the pair. Only
/// for a pair with a candidate, the counter finds the common transactions and counts them with all
/// columns before the pair.
#[derive(Debug)]
pub(crate) struct TripleCounter {
    isa: Isa,
    /// Version of the data that the marks describe; `None` before the first data.
    version: Option<u64>,
    /// Marks of the partners of one item, and of the transactions of one item.
    partners: Marks,
    partners_of: Option<u32>,
    transactions: Marks,
    transactions_of: Option<u32>,
    /// The rows that are counted at once.
    rows: Vec<RowPair>,
    offsets: Vec<u32>,
    tids: Vec<u32>,
}

impl TripleCounter {
    pub(crate) fn new(isa: Isa) -> Self {
        Self {
            isa,
            version: None,
            partners: Marks::new(0),
            partners_of: None,
            transactions: Marks::new(0),
            transactions_of: None,
            rows: Vec::new(),
            offsets: vec![0],
            tids: Vec::new(),
        }
    }

    /// Finds the frequent triples of the pairs `rows` with the items `range` of `columns`, until
    /// `found` is full. Returns the pair after the last counted pair.
    pub(crate) fn count(
        &mut self,
        pairs: &PairRows,
        columns: &mut Columns,
        range: &Range<u32>,
        rows: Range<u32>,
        found: &mut FoundPairs,
    ) -> u32 {
        self.begin(pairs);
        let mut next = rows.start;
        while next < rows.end && !found.is_full() {
            next = if matches!(columns, Columns::Batmap(_)) {
                self.compare_maps(pairs, range, next, found);
                next + 1
            } else {
                let end = self.collect(pairs, range, next..rows.end, found.least());
                let tids = Sets::new(&self.offsets, &self.tids);
                let lists = Rows::pairs(pairs.data().lists(), tids, &self.rows);
                let counted = columns.count_rows(self.isa, lists, self.rows.len(), found);
                self.rows.get(counted).map_or(end, |row| row.number)
            };
        }
        next
    }

    /// Forgets the marks of other data.
    fn begin(&mut self, pairs: &PairRows) {
        let data = pairs.data();
        if self.version != Some(data.version()) {
            self.version = Some(data.version());
            self.partners = Marks::new(data.len());
            self.partners_of = None;
            self.transactions = Marks::new(data.transactions());
            self.transactions_of = None;
        }
    }

    /// The items of `range` that are partners of both items.
    fn candidates<'a>(
        &'a mut self,
        pairs: &'a PairRows,
        items: [u32; 2],
        range: &Range<u32>,
    ) -> impl Iterator<Item = u32> + 'a {
        let [first, second] = items;
        if self.partners_of != Some(first) {
            self.partners.set(pairs.partners(first));
            self.partners_of = Some(first);
        }
        let partners = pairs.partners(second);
        let end = range.end.min(first);
        let begin = partners.partition_point(|&item| item < range.start);
        let partners = partners[begin..].iter().copied().take_while(move |&item| item < end);
        partners.filter(|&item| self.partners.has(item))
    }

    /// Collects rows that have a candidate; returns the pair after the last examined pair.
    fn collect(
        &mut self,
        pairs: &PairRows,
        range: &Range<u32>,
        rows: Range<u32>,
        least: u32,
    ) -> u32 {
        self.rows.clear();
        self.offsets.truncate(1);
        self.tids.clear();
        let lists = pairs.data().lists();
        for number in rows.clone() {
            if self.rows.len() == ROWS || self.tids.len() >= TIDS {
                return number;
            }
            let items = pairs.items(number);
            if self.candidates(pairs, items, range).next().is_none() {
                continue;
            }
            let [first, second] = items;
            if self.transactions_of != Some(first) {
                self.transactions.set(lists.set(first as usize));
                self.transactions_of = Some(first);
            }
            self.transactions.common(lists.set(second as usize), &mut self.tids);
            let end = u32::try_from(self.tids.len()).expect("fewer than the transactions");
            debug_assert!(end - self.offsets[self.rows.len()] >= least);
            self.offsets.push(end);
            self.rows.push(RowPair { number, items });
        }
        rows.end
    }

    /// Finds the triples of one pair by batmaps.
    fn compare_maps(
        &mut self,
        pairs: &PairRows,
        range: &Range<u32>,
        number: u32,
        found: &mut FoundPairs,
    ) {
        let isa = self.isa;
        let (items, maps) = (pairs.items(number), pairs.maps(isa));
        for left in self.candidates(pairs, items, range) {
            let support = triple_support(isa, maps, [left, items[0], items[1]]);
            found.offer(Pair { left, right: number, support });
        }
    }
}
