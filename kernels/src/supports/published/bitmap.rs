//! Bitmaps: an item has a bit for each transaction; the support of a pair is the population count
//! of the bits that both items have.
//!
//! Source: Fang, Lu, Xiao, He, Luo, *Frequent Itemset Mining on Graphics Processors*, DaMoN 2009,
//! with which the paper of the BatMap compares its layout.

use std::ops::Range;

use super::shared_bits::{GROUP, SharedBits};
use crate::Isa;
use crate::sets::Sets;
use crate::simd::{Popcount, RunOn, dispatch};
use crate::supports::answer::{FoundPairs, Pair};
use crate::supports::rows::Rows;
use crate::supports::sliced::{BitRow, COLUMNS};

/// Rows of bits of a strip: 8 KiB of a row and 32 KiB of its columns stay in the first-level cache.
const STRIP: usize = 128;

/// At most [`COLUMNS`] items as bitmaps.
///
/// # Examples
///
/// ```
/// use trommel_kernels::Isa;
/// use trommel_kernels::sets::Sets;
/// use trommel_kernels::supports::{BitmapColumns, FoundPairs, Pair};
///
/// // Items 0, 1, 2 are in transactions {0, 1, 2}, {0, 2}, {1, 2}.
/// let lists = Sets::new(&[0, 3, 5, 7], &[0, 1, 2, 0, 2, 1, 2]);
/// let mut columns = BitmapColumns::new(lists, 3, 0..2);
/// let mut found = FoundPairs::new(2, 1 << 16);
/// assert_eq!(columns.count(Isa::Scalar, lists, 2..3, &mut found), 3);
/// assert_eq!(found.pairs(), [Pair { left: 0, right: 2, support: 2 }]);
/// ```
#[derive(Clone, Debug)]
pub struct BitmapColumns {
    columns: Range<u32>,
    /// Rows of bits of one bitmap.
    len: usize,
    bits: Vec<BitRow>,
    /// The bitmap of the row that is counted.
    own: Vec<BitRow>,
}

impl BitmapColumns {
    /// The bitmaps of the items `columns`, whose transactions are `lists`, below `transactions`.
    ///
    /// # Cost
    ///
    /// `transactions / 8` bytes for each column, and as many for a row.
    ///
    /// # Panics
    ///
    /// If there are more than [`COLUMNS`] columns, a column is not in `lists`, or a transaction
    /// is not below `transactions`.
    #[must_use]
    pub fn new(lists: Sets<'_>, transactions: u32, columns: Range<u32>) -> Self {
        let mut this = Self { columns: 0..0, len: 0, bits: Vec::new(), own: Vec::new() };
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
        self.len = (transactions as usize).div_ceil(COLUMNS);
        self.bits.clear();
        self.bits.resize(self.len * columns.len().next_multiple_of(GROUP), BitRow::default());
        self.own.clear();
        self.own.resize(self.len, BitRow::default());
        for (column, bits) in columns.clone().zip(self.bits.chunks_exact_mut(self.len.max(1))) {
            set_bits(bits, lists.set(column as usize));
        }
        self.columns = columns;
    }

    /// Finds the frequent pairs of the items `rows` with the columns before each of them, until
    /// `found` is full. Returns the row after the last one counted.
    ///
    /// # Shapes
    ///
    /// `lists`: as [`new`](Self::new) got them, or [pairs](Rows::pairs) of such items.
    ///
    /// # Cost
    ///
    /// For each pair `transactions / 8` bytes of two bitmaps.
    ///
    /// # Panics
    ///
    /// As [`SlicedColumns::count`](crate::supports::SlicedColumns::count).
    pub fn count<'a>(
        &mut self,
        isa: Isa,
        lists: impl Into<Rows<'a>>,
        rows: Range<u32>,
        found: &mut FoundPairs,
    ) -> u32 {
        let lists = lists.into();
        let mut supports = [0; COLUMNS];
        for next in rows.clone() {
            if found.is_full() {
                return next;
            }
            let row = lists.row(next);
            let before = row.before(self.columns.start, self.columns.len());
            if before == 0 {
                continue;
            }
            set_bits(&mut self.own, row.list);
            let columns = &self.bits[..before.next_multiple_of(GROUP) * self.len];
            let (own, len) = (&self.own[..], self.len);
            supports.fill(0);
            let supports = &mut supports[..];
            dispatch::<Popcount, _>(isa, CountShared { own, columns, len, supports });
            for (left, &support) in (self.columns.start..).zip(&supports[..before]) {
                found.offer(Pair { left, right: row.number, support });
            }
            // Only words of the list are cleared: a sparse item has few of them.
            clear_bits(&mut self.own, row.list);
        }
        rows.end.max(rows.start)
    }
}

/// The row and the bit of a transaction.
fn place(transaction: u32) -> (usize, usize, u64) {
    let transaction = transaction as usize;
    (transaction / COLUMNS, transaction % COLUMNS / 64, 1 << (transaction % 64))
}

fn set_bits(bits: &mut [BitRow], list: &[u32]) {
    for &transaction in list {
        let (row, word, bit) = place(transaction);
        bits[row].0[word] |= bit;
    }
}

fn clear_bits(bits: &mut [BitRow], list: &[u32]) {
    for &transaction in list {
        let (row, word, _) = place(transaction);
        bits[row].0[word] = 0;
    }
}

/// Counts the bits that `own` shares with each of the bitmaps `columns` of `len` rows.
struct CountShared<'a> {
    own: &'a [BitRow],
    columns: &'a [BitRow],
    len: usize,
    supports: &'a mut [u32],
}

impl<L: SharedBits> RunOn<L> for CountShared<'_> {
    #[inline(always)]
    fn run_on(self, level: L) {
        let Self { own, columns, len, supports } = self;
        for begin in (0..len).step_by(STRIP) {
            let end = len.min(begin + STRIP);
            let groups = columns.chunks_exact((GROUP * len).max(1));
            for (group, supports) in groups.zip(supports.chunks_exact_mut(GROUP)) {
                let mut strips = [&own[..0]; GROUP];
                for (column, strip) in strips.iter_mut().enumerate() {
                    *strip = &group[column * len..][begin..end];
                }
                let shared = level.shared(&own[begin..end], strips);
                for (support, shared) in supports.iter_mut().zip(shared) {
                    *support += shared;
                }
            }
        }
    }
}
