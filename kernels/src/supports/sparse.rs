//! Sparse counting: for each row, the earlier items of its transactions are counted one by one. The
//! counts are the product of a sparse matrix with its transpose, row by row.
//!
//! Source: Gustavson, *Two Fast Algorithms for Sparse Matrices: Multiplication and Permuted
//! Transposition*, ACM TOMS 4(3), 1978. Departures: only the half below the diagonal, and the
//! largest transactions are set aside (see [`transactions`](super::transactions)).

use std::ops::Range;

use super::answer::FoundPairs;
use super::rows::{Row, Rows};
use super::transactions::{Head, Transactions};
use crate::Isa;
use crate::sets::Sets;
use crate::simd::{Base, RunOn, dispatch};

/// All counters are read in their order if there are at most `SCAN` counters for each count;
/// otherwise only the counters of counted items are read.
const SCAN: usize = 8;

/// Counters that are compared with the least count at once.
pub(super) const GROUP: usize = 64;

/// Pairs of all items of a range, by counters of one row at a time.
///
/// # Examples
///
/// ```
/// use trommel_kernels::Isa;
/// use trommel_kernels::sets::Sets;
/// use trommel_kernels::supports::{FoundPairs, Pair, SparseRows};
///
/// // Items 0, 1, 2 are in transactions {0, 1, 2}, {0, 2}, {1, 2}.
/// let lists = Sets::new(&[0, 3, 5, 7], &[0, 1, 2, 0, 2, 1, 2]);
/// let mut rows = SparseRows::new(lists, 3, 1..3, 1);
/// let mut found = FoundPairs::new(1, 1 << 16);
/// assert_eq!(rows.count(Isa::Scalar, lists, 1..3, &mut found), 3);
/// assert_eq!(found.pairs(), [Pair { left: 1, right: 2, support: 1 }]);
/// ```
#[derive(Clone, Debug)]
pub struct SparseRows {
    transactions: Transactions,
    /// A counter for each column; zero between rows.
    counts: Vec<u32>,
    /// The columns of the counted row, a range for each transaction.
    visited: Vec<Range<usize>>,
}

impl SparseRows {
    /// The transactions, below `transactions`, of the items `items`, whose tid lists are `lists`;
    /// for pairs with a support of at least `least`.
    ///
    /// # Cost
    ///
    /// 4 bytes for each transaction of each item, 12 for each transaction.
    ///
    /// # Panics
    ///
    /// If `least` is 0, an item is not in `lists`, or a transaction is not below `transactions`.
    #[must_use]
    pub fn new(lists: Sets<'_>, transactions: u32, items: Range<u32>, least: u32) -> Self {
        let counts = vec![0; items.len().next_multiple_of(GROUP)];
        let transactions = Transactions::new(lists, transactions, items, least);
        Self { transactions, counts, visited: Vec::new() }
    }

    /// Finds the frequent pairs of the items `rows` with all items of the range before each of
    /// them, until `found` is full. Returns the row after the last one counted. Rows are best
    /// asked for in ascending order.
    ///
    /// # Shapes
    ///
    /// `lists`: as [`new`](Self::new) got them, or [pairs](Rows::pairs) of such items; `found` has
    /// the least support that was given there.
    ///
    /// # Cost
    ///
    /// About two additions for each pair of items of each transaction.
    ///
    /// # Panics
    ///
    /// If `isa` is not available, a row is not one of the items, or a shape is not as above.
    pub fn count<'a>(
        &mut self,
        isa: Isa,
        lists: impl Into<Rows<'a>>,
        rows: Range<u32>,
        found: &mut FoundPairs,
    ) -> u32 {
        let lists = lists.into();
        self.transactions.check(found);
        for next in rows.clone() {
            if found.is_full() {
                return next;
            }
            let row = lists.row(next);
            let Some(head) = self.transactions.head(row.number, row.items) else { continue };
            self.transactions.seek(lists.items(), row.items[0]);
            let counted = self.count_row(&row);
            // Vector instructions read all counters in one pass; a visit of the counters of counted
            // items is a load for each count.
            if counted * SCAN >= head.before as usize {
                let Self { transactions, counts, .. } = self;
                dispatch::<Base, _>(isa, ScanRow { transactions, counts, head, found });
            } else {
                self.offer_visited(head, found);
            }
        }
        rows.end.max(rows.start)
    }

    /// Counts the columns of a row; returns the number of counts.
    fn count_row(&mut self, row: &Row<'_>) -> usize {
        self.visited.clear();
        let mut counted = 0;
        let step = u32::from(row.is_item());
        for &transaction in row.list {
            let columns = self.transactions.columns(transaction, step);
            // The items of a transaction are distinct, so no addition waits for an earlier one.
            for &column in &self.transactions.items()[columns.clone()] {
                self.counts[column as usize] += 1;
            }
            counted += columns.len();
            self.visited.push(columns);
        }
        self.transactions.end_rows(row.items[0] + step);
        counted
    }

    /// Offers the columns that were counted, and sets their counters to zero.
    fn offer_visited(&mut self, head: Head, found: &mut FoundPairs) {
        let least = self.transactions.least_count(found.least());
        for columns in &self.visited {
            for &column in &self.transactions.items()[columns.clone()] {
                let count = std::mem::take(&mut self.counts[column as usize]);
                // A column of several transactions is offered once: its counter is zero from the
                // second visit on.
                if count >= least {
                    self.transactions.offer(column, head, count, found);
                }
            }
        }
    }
}

/// Offers all columns of a row, and sets their counters to zero.
pub(super) struct ScanRow<'a> {
    pub(super) transactions: &'a Transactions,
    pub(super) counts: &'a mut [u32],
    pub(super) head: Head,
    pub(super) found: &'a mut FoundPairs,
}

/// The same loop for all levels; the compiler vectorizes it.
impl<L> RunOn<L> for ScanRow<'_> {
    #[inline(always)]
    fn run_on(self, _: L) {
        let Self { transactions, counts, head, found } = self;
        let least = transactions.least_count(found.least());
        let end = (head.before as usize).next_multiple_of(GROUP);
        let (groups, _) = counts[..end].as_chunks_mut::<GROUP>();
        for (group, first) in groups.iter_mut().zip((0..).step_by(GROUP)) {
            // Most groups have no frequent pair.
            if group.iter().fold(0, |max, &count| count.max(max)) >= least {
                for (column, &count) in (first..).zip(&*group).filter(|(_, c)| **c >= least) {
                    transactions.offer(column, head, count, found);
                }
            }
            group.fill(0);
        }
    }
}
