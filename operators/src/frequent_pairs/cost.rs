//! Costs of layouts on a CPU, in hundredths of a nanosecond. They decide between layouts, whose
//! results are the same.
//!
//! Measured with AVX-512 on one core of an AMD Zen 5, over generated transactions: `sliced` with
//! 4,000 items at 5 % and 64,000 at 1 % and 0.05 %, `bitmap` with 4,000 at 5 %, `sparse` with
//! 1,000 at 0.5 % and 4,000 at 1 % and 5 %.

use std::ops::Range;

use super::pair_rows::PairRows;
use super::vertical::VerticalData;
use trommel_kernels::supports::COLUMNS;

/// Setting the bit of an item in a row of bits.
const SET_BIT: u64 = 110;
/// Clearing the row of bits of a transaction.
const CLEAR_ROW: u64 = 100;
/// Adding a row of bits.
const ADD_ROW: u64 = 100;
/// Comparing the sums of an item with the least support.
const COMPARE_ROW: u64 = 1000;
/// Comparing a row of bits of two bitmaps.
const COMPARE_BITMAP: u64 = 80;
/// Counting an item of a transaction, and reading its counter.
const COUNT_ITEM: u64 = 130;
/// Looking for a transaction of a pair among those of its first item.
const FIND_COMMON: u64 = 40;
/// Finding the items before another one in a transaction: 12 ns where all transactions are in the
/// second-level cache, and 60 to 130 ns in memory.
const VISIT: u64 = 4000;

/// Cost of the block `columns` in the layout `sliced`, for the rows `rows`.
pub(super) fn sliced(data: &VerticalData, columns: &Range<u32>, rows: &Range<u32>) -> u64 {
    let set = SET_BIT * data.total(columns.clone()) + CLEAR_ROW * u64::from(data.transactions());
    set + ADD_ROW * data.total(rows.clone()) + COMPARE_ROW * rows.len() as u64
}

/// Cost of the block `columns` as bitmaps, for the rows `rows`.
pub(super) fn bitmap(data: &VerticalData, columns: &Range<u32>, rows: &Range<u32>) -> u64 {
    let bit_rows = u64::from(data.transactions()).div_ceil(COLUMNS as u64);
    COMPARE_BITMAP * bit_rows * columns.len() as u64 * rows.len() as u64
}

/// Cost of the rows `rows` with all items from `first` on before them in the layout `sparse`, if
/// items were independent.
pub(super) fn sparse(data: &VerticalData, first: u32, rows: &Range<u32>) -> u64 {
    let visits = data.total(rows.clone());
    // In the mean, half of the rows are before a row.
    let before = data.total(first..rows.start) + visits / 2;
    let per_visit = u128::from(COUNT_ITEM) * u128::from(before);
    let counts = per_visit * u128::from(visits) / u128::from(data.transactions().max(1));
    VISIT * visits + u64::try_from(counts).unwrap_or(u64::MAX / 4)
}

/// Cost of the triples of the pairs `rows` with the block `columns` in the layout `sliced`, if all
/// pairs have candidates there.
pub(super) fn sliced_triples(pairs: &PairRows, columns: &Range<u32>, rows: &Range<u32>) -> u64 {
    let data = pairs.data();
    let set = SET_BIT * data.total(columns.clone()) + CLEAR_ROW * u64::from(data.transactions());
    let [supports, seconds] = totals(pairs, rows);
    set + ADD_ROW * supports + FIND_COMMON * seconds + COMPARE_ROW * rows.len() as u64
}

/// As [`sliced_triples`], with all items from `first` on in the layout `sparse`.
pub(super) fn sparse_triples(pairs: &PairRows, first: u32, rows: &Range<u32>) -> u64 {
    let data = pairs.data();
    let [visits, seconds] = totals(pairs, rows);
    let end = if rows.is_empty() { first } else { pairs.items(rows.end - 1)[0] };
    // In the mean, half of the items are before a pair.
    let before = data.total(first..end.max(first)) / 2;
    let per_visit = u128::from(COUNT_ITEM) * u128::from(before);
    let counts = per_visit * u128::from(visits) / u128::from(data.transactions().max(1));
    VISIT * visits + FIND_COMMON * seconds + u64::try_from(counts).unwrap_or(u64::MAX / 4)
}

/// The sums of the supports of some pairs, and of their second items.
fn totals(pairs: &PairRows, rows: &Range<u32>) -> [u64; 2] {
    let [begin, end] = [rows.start, rows.end].map(|row| pairs.totals(row));
    [end[0] - begin[0], end[1] - begin[1]]
}
