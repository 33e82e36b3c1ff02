//! Sliced columns: the transactions as rows of bits, 512 columns wide, added up for each item.

mod bit_row;
mod digits;

pub(super) use self::bit_row::BitRow;
pub use self::bit_row::COLUMNS;

use std::ops::Range;

use self::bit_row::BitLanes;
use self::digits::{DIGITS, Digits};
use super::answer::{FoundPairs, Pair};
use super::rows::Rows;
use crate::Isa;
use crate::sets::Sets;
use crate::simd::{Base, RunOn, dispatch};

/// Number of transactions whose rows, 512 KiB, stay in the second-level cache while their bits are
/// set.
const STRIP: u32 = 8192;

/// At most [`COLUMNS`] items, as the columns of a matrix of bits with a row for each transaction.
///
/// # Examples
///
/// ```
/// use trommel_kernels::Isa;
/// use trommel_kernels::sets::Sets;
/// use trommel_kernels::supports::{FoundPairs, Pair, SlicedColumns};
///
/// // Items 0, 1, 2 are in transactions {0, 1, 2}, {0, 2}, {1, 2}.
/// let lists = Sets::new(&[0, 3, 5, 7], &[0, 1, 2, 0, 2, 1, 2]);
/// let columns = SlicedColumns::new(lists, 3, 0..3);
/// let mut found = FoundPairs::new(2, 1 << 16);
/// assert_eq!(columns.count(Isa::Scalar, lists, 0..3, &mut found), 3);
/// let pair = |left, right| Pair { left, right, support: 2 };
/// assert_eq!(found.pairs(), [pair(0, 1), pair(0, 2)]);
/// ```
#[derive(Clone, Debug)]
pub struct SlicedColumns {
    columns: Range<u32>,
    rows: Vec<BitRow>,
}

impl SlicedColumns {
    /// The bits of the items `columns`, whose transactions are `lists`, below `transactions`.
    ///
    /// # Cost
    ///
    /// 64 bytes for each transaction; the call sets a bit for each transaction of each item.
    ///
    /// # Panics
    ///
    /// If there are more than [`COLUMNS`] columns, a column is not in `lists`, or a transaction
    /// is not below `transactions`.
    #[must_use]
    pub fn new(lists: Sets<'_>, transactions: u32, columns: Range<u32>) -> Self {
        let mut this = Self { columns: 0..0, rows: Vec::new() };
        this.reset(lists, transactions, columns);
        this
    }

    /// As [`new`](Self::new), in the memory of these columns.
    ///
    /// # Panics
    ///
    /// As [`new`](Self::new).
    pub fn reset(&mut self, lists: Sets<'_>, transactions: u32, columns: Range<u32>) {
        assert!(columns.len() <= COLUMNS, "{} columns; at most {COLUMNS}", columns.len());
        self.rows.clear();
        self.rows.reserve(transactions as usize + 1);
        let mut rest: Vec<&[u32]> =
            columns.clone().map(|column| lists.set(column as usize)).collect();
        for begin in (0..transactions).step_by(STRIP as usize) {
            // All columns set their bits in a strip of rows while the strip is in the cache.
            let end = transactions.min(begin.saturating_add(STRIP));
            self.rows.resize(end as usize, BitRow::default());
            for (column, list) in rest.iter_mut().enumerate() {
                let (word, bit) = (column / 64, 1 << (column % 64));
                let mut len = 0;
                while let Some(&transaction) = list.get(len).filter(|&&tid| tid < end) {
                    self.rows[transaction as usize].0[word] |= bit;
                    len += 1;
                }
                *list = &list[len..];
            }
        }
        assert!(
            rest.iter().all(|list| list.is_empty()),
            "a transaction is not below {transactions}"
        );
        // The last row stays without bits: it fills up groups of rows.
        self.rows.push(BitRow::default());
        self.columns = columns;
    }

    /// The items that are columns.
    #[must_use]
    pub fn columns(&self) -> Range<u32> {
        self.columns.clone()
    }

    /// Finds the frequent pairs of the items `rows` with the columns before each of them, until
    /// `found` is full. Returns the row after the last one counted.
    ///
    /// In pseudo-code: `for row in rows { for column in columns, column < row { support =
    /// |lists[row] ∩ lists[column]|; if support >= least { found.push() } } }`.
    ///
    /// # Shapes
    ///
    /// `lists`: as [`new`](Self::new) got them, or [pairs](Rows::pairs) of such items.
    ///
    /// # Cost
    ///
    /// For each transaction of each row a load of 64 bytes and two instructions with AVX-512, for
    /// all columns together.
    ///
    /// # Panics
    ///
    /// If `isa` is not available, a row is not in `lists`, or a transaction is not below the
    /// number given before.
    pub fn count<'a>(
        &self,
        isa: Isa,
        lists: impl Into<Rows<'a>>,
        rows: Range<u32>,
        found: &mut FoundPairs,
    ) -> u32 {
        dispatch::<Base, _>(isa, CountRows { columns: self, lists: lists.into(), rows, found })
    }
}

struct CountRows<'a> {
    columns: &'a SlicedColumns,
    lists: Rows<'a>,
    rows: Range<u32>,
    found: &'a mut FoundPairs,
}

impl<L: BitLanes> RunOn<L, u32> for CountRows<'_> {
    #[inline(always)]
    fn run_on(self, level: L) -> u32 {
        let Self { columns: SlicedColumns { columns, rows: tile }, lists, rows, found } = self;
        let mut stored = [BitRow::default(); DIGITS];
        let mut digits = Digits::new(level);
        for next in rows.clone() {
            if found.is_full() {
                return next;
            }
            let row = lists.row(next);
            let before = row.before(columns.start, columns.len());
            // No pair has a larger support than the item of the row.
            if before == 0 || (row.list.len() as u64) < u64::from(found.least()) {
                continue;
            }
            digits.clear();
            digits.add_rows(tile, row.list);
            let mut reached = digits.reach(found.least());
            keep_first(&mut reached, before);
            if reached != BitRow::default() {
                let used = digits.store(&mut stored);
                push_reached(&reached, &stored[..used], row.number, columns.start, found);
            }
        }
        rows.end.max(rows.start)
    }
}

/// Clears the bits of all columns from `end` on.
#[inline(always)]
fn keep_first(bits: &mut BitRow, end: usize) {
    for (word, begin) in bits.0.iter_mut().zip((0..).step_by(64)) {
        let kept = end.saturating_sub(begin);
        if kept < 64 {
            *word &= (1 << kept) - 1;
        }
    }
}

/// Adds the pairs of the columns whose bits are set.
#[inline(always)]
fn push_reached(
    reached: &BitRow,
    digits: &[BitRow],
    right: u32,
    first: u32,
    found: &mut FoundPairs,
) {
    for (word, begin) in (0..COLUMNS / 64).zip((first..).step_by(64)) {
        let mut bits = reached.0[word];
        while bits != 0 {
            let bit = bits.trailing_zeros();
            let digit = |row: &BitRow| (row.0[word] >> bit & 1) as u32;
            let support = digits.iter().rev().fold(0, |count, row| count << 1 | digit(row));
            found.push(Pair { left: begin + bit, right, support });
            bits &= bits - 1;
        }
    }
}
