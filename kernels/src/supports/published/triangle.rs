//! A triangle of counters: each transaction adds one to the counter of each of its pairs.

use std::ops::Range;

use crate::Isa;
use crate::sets::Sets;
use crate::simd::{Base, dispatch};
use crate::supports::answer::FoundPairs;
use crate::supports::sparse::{GROUP, ScanRow};
use crate::supports::transactions::Transactions;

/// Counters of a strip of rows, which stay in the second-level cache: 1 MiB.
const COUNTERS: usize = 1 << 18;

/// Pairs of all items of a range, by counters of all pairs of a strip of rows.
///
/// # Examples
///
/// ```
/// use trommel_kernels::Isa;
/// use trommel_kernels::sets::Sets;
/// use trommel_kernels::supports::{FoundPairs, Pair, TriangleRows};
///
/// // Items 0, 1, 2 are in transactions {0, 1, 2}, {0, 2}, {1, 2}.
/// let lists = Sets::new(&[0, 3, 5, 7], &[0, 1, 2, 0, 2, 1, 2]);
/// let mut rows = TriangleRows::new(lists, 3, 0..3, 2);
/// let mut found = FoundPairs::new(2, 1 << 16);
/// assert_eq!(rows.count(Isa::Scalar, lists, 0..3, &mut found), 3);
/// let pair = |left, right| Pair { left, right, support: 2 };
/// assert_eq!(found.pairs(), [pair(0, 1), pair(0, 2)]);
/// ```
#[derive(Clone, Debug)]
pub struct TriangleRows {
    transactions: Transactions,
    /// The counters of the rows of a strip, each row filled up to a whole number of groups.
    counts: Vec<u32>,
}

impl TriangleRows {
    /// The transactions, below `transactions`, of the items `items`, whose tid lists are `lists`;
    /// for pairs with a support of at least `least`.
    ///
    /// # Cost
    ///
    /// 4 bytes for each transaction of each item, 12 for each transaction.
    ///
    /// # Panics
    ///
    /// As [`SparseRows::new`](crate::supports::SparseRows::new).
    #[must_use]
    pub fn new(lists: Sets<'_>, transactions: u32, items: Range<u32>, least: u32) -> Self {
        let transactions = Transactions::new(lists, transactions, items, least);
        Self { transactions, counts: Vec::new() }
    }

    /// As [`SparseRows::count`](crate::supports::SparseRows::count), but a call ends after the
    /// strip of rows that fills `found`: a strip has about 262,000 pairs.
    ///
    /// # Cost
    ///
    /// An addition for each pair of items of each transaction, and a look at each transaction for
    /// each strip. With up to 700 items there is one strip.
    ///
    /// # Panics
    ///
    /// As [`SparseRows::count`](crate::supports::SparseRows::count).
    pub fn count(
        &mut self,
        isa: Isa,
        lists: Sets<'_>,
        rows: Range<u32>,
        found: &mut FoundPairs,
    ) -> u32 {
        self.transactions.check(found);
        let first = self.transactions.range().start;
        let mut left = rows.start.max(first)..rows.end;
        while !left.is_empty() {
            if found.is_full() {
                return left.start;
            }
            self.transactions.seek(lists, left.start);
            let strip = strip(left.start - first..left.end - first);
            left.start = first + strip.end;
            self.count_strip(strip.clone(), left.start);
            self.offer_strip(isa, strip, found);
        }
        rows.end.max(rows.start)
    }

    /// Counts the pairs of the rows of a strip, which ends before the item `end`.
    fn count_strip(&mut self, strip: Range<u32>, end: u32) {
        let before = counters_before(strip.start);
        self.counts.clear();
        self.counts.resize(counters_before(strip.end) - before, 0);
        for transaction in 0..self.transactions.len() {
            self.transactions.rows(transaction, end, |row, columns| {
                let counts = &mut self.counts[counters_before(row) - before..];
                columns.iter().for_each(|&column| counts[column as usize] += 1);
            });
        }
        self.transactions.end_rows(end);
    }

    fn offer_strip(&mut self, isa: Isa, strip: Range<u32>, found: &mut FoundPairs) {
        let (before, first) = (counters_before(strip.start), self.transactions.range().start);
        for row in strip {
            let Some(head) = self.transactions.head(first + row, [first + row; 2]) else {
                continue;
            };
            let [begin, end] = [row, row + 1].map(|row| counters_before(row) - before);
            let (transactions, counts) = (&self.transactions, &mut self.counts[begin..end]);
            dispatch::<Base, _>(isa, ScanRow { transactions, counts, head, found: &mut *found });
        }
    }
}

/// Number of counters of the rows before `row`: row `r` has `r` rounded up to whole groups.
fn counters_before(row: u32) -> usize {
    let row = row as usize;
    // Rows form runs of equal rounded length: the first run has one row without counters, and every
    // later run has as many rows as a group has counters.
    let (runs, rest) = (row.saturating_sub(1) / GROUP, row.saturating_sub(1) % GROUP);
    GROUP * (GROUP * runs * (runs + 1) / 2 + rest * (runs + 1))
}

/// The first rows of `rows` whose counters stay in the cache; at least one row.
fn strip(rows: Range<u32>) -> Range<u32> {
    let fits = |end: &u32| counters_before(*end) - counters_before(rows.start) <= COUNTERS;
    let end = (rows.start + 1..=rows.end).take_while(fits).last();
    rows.start..end.unwrap_or(rows.start + 1)
}
