//! Costs of layouts on a CPU and on a GPU, in nanoseconds. The costs decide between layouts; all
//! layouts give the same results.
//!
//! Measured with AVX-512 on one core of an AMD Zen 5, over generated transactions: `sliced` with
//! 4,000 items at 5 % and 64,000 items at 1 % and 0.05 %, `bitmap` with 4,000 items at 5 %,
//! `sparse` with 1,000 items at 0.5 % and 4,000 items at 1 % and 5 %.

use std::ops::Range;

use trommel_kernels::supports::COLUMNS;

use super::device_form::DeviceForm;
use crate::frequent_pairs::data::pair_rows::PairRows;
use crate::frequent_pairs::data::vertical::VerticalData;

/// Setting the bit of an item in a row of bits.
const SET_BIT: f64 = 1.1;
/// Clearing the row of bits of a transaction.
const CLEAR_ROW: f64 = 1.0;
/// Adding a row of bits.
const ADD_ROW: f64 = 1.0;
/// Comparing the sums of an item with the least support.
const COMPARE_ROW: f64 = 10.0;
/// Comparing a row of bits of two bitmaps.
const COMPARE_BITMAP: f64 = 0.8;
/// Counting an item of a transaction, and reading its counter.
const COUNT_ITEM: f64 = 1.3;
/// Looking up a transaction of the second item of a pair among the marked transactions of the first
/// item.
const FIND_COMMON: f64 = 0.4;
/// Finding the items before a given item in a transaction: 12 ns if all transactions are in the
/// second-level cache, and 60 to 130 ns if the transactions are in memory.
const VISIT: f64 = 40.0;

/// A product of two bits: by tensor cores 97.7 ms for 64,000 items and 156,250 transactions, by
/// integer units 2,170 ms (an H200, bench/reports/gpu.md, *Supports of pairs*).
const TENSOR_PRODUCT: f64 = 0.01 / 32_900.0;
const INTEGER_PRODUCT: f64 = 0.01 / 1_480.0;
/// Comparing a byte of batmaps (the same report).
const MAP_BYTE: f64 = 0.01 / 330.0;
/// An addition into a counter, and a piece of a transaction (the same report, by density).
const ADDITION: f64 = 0.01 / 8.0;
const PIECE: f64 = 0.01;
/// Cutting a transaction of an item for the bus, 1.9 ns, and sending these 2 bytes at 50 GB/s.
const SEND: f64 = 1.94;
/// Making an entry of a transaction for counters and sending 12 bytes: 15 to 24 ns.
const SEND_SPARSE: f64 = 20.0;
/// Buffers and launches of a window.
const WINDOW: f64 = 100_000.0;
/// Bits of a transaction that a device multiplies at once.
const STAGE: u32 = 512;

/// Cost of the block `columns` in the layout `sliced`, for the rows `rows`.
pub(crate) fn sliced(data: &VerticalData, columns: &Range<u32>, rows: &Range<u32>) -> f64 {
    make_bits(data, columns) + ADD_ROW * tids(data, rows.clone()) + COMPARE_ROW * rows.len() as f64
}

/// Cost of the rows of bits of the block `columns`.
fn make_bits(data: &VerticalData, columns: &Range<u32>) -> f64 {
    SET_BIT * tids(data, columns.clone()) + CLEAR_ROW * f64::from(data.transactions())
}

/// Sum of the supports of `items`.
fn tids(data: &VerticalData, items: Range<u32>) -> f64 {
    data.total(items) as f64
}

/// Cost of the block `columns` as bitmaps, for the rows `rows`.
pub(crate) fn bitmap(data: &VerticalData, columns: &Range<u32>, rows: &Range<u32>) -> f64 {
    let bit_rows = u64::from(data.transactions()).div_ceil(COLUMNS as u64);
    COMPARE_BITMAP * bit_rows as f64 * columns.len() as f64 * rows.len() as f64
}

/// Cost of `rows` with all items from `first` up to each row in the layout `sparse`, under the
/// assumption that items are independent.
pub(crate) fn sparse(data: &VerticalData, first: u32, rows: &Range<u32>) -> f64 {
    let visits = tids(data, rows.clone());
    // On average, half of the rows come before a row.
    visit(data, visits, tids(data, first..rows.start) + visits / 2.0)
}

/// Cost of `visits` visits of transactions. `before` is the sum of the supports of the items to be
/// counted, so a transaction has `before / transactions` such items.
fn visit(data: &VerticalData, visits: f64, before: f64) -> f64 {
    visits * (VISIT + COUNT_ITEM * before / f64::from(data.transactions().max(1)))
}

/// Cost of the triples of the pairs `rows` with the block `columns` in the layout `sliced`, if all
/// pairs have candidates there.
pub(crate) fn sliced_triples(pairs: &PairRows, columns: &Range<u32>, rows: &Range<u32>) -> f64 {
    let [supports, seconds] = totals(pairs, rows);
    let find = ADD_ROW * supports + FIND_COMMON * seconds;
    make_bits(pairs.data(), columns) + find + COMPARE_ROW * rows.len() as f64
}

/// As [`sliced_triples`], for all items from `first` on in the layout `sparse`.
pub(crate) fn sparse_triples(pairs: &PairRows, first: u32, rows: &Range<u32>) -> f64 {
    let data = pairs.data();
    let [visits, seconds] = totals(pairs, rows);
    let end = if rows.is_empty() { first } else { pairs.items(rows.end - 1)[0] };
    // On average, half of the items come before a pair.
    let before = tids(data, first..end.max(first)) / 2.0;
    visit(data, visits, before) + FIND_COMMON * seconds
}

/// The sums of the supports of some pairs, and of their second items.
fn totals(pairs: &PairRows, rows: &Range<u32>) -> [f64; 2] {
    let [begin, end] = [rows.start, rows.end].map(|row| pairs.totals(row));
    [end[0] - begin[0], end[1] - begin[1]].map(|total| total as f64)
}

/// Cost of all pairs on a device.
pub(crate) fn on_device(data: &VerticalData, form: DeviceForm) -> f64 {
    let bits = f64::from(data.transactions().next_multiple_of(STAGE));
    let tids = tids(data, 0..data.len());
    let (work, send) = match form {
        DeviceForm::Tensor => (TENSOR_PRODUCT * pairs_of_tiles(data, form) * bits, SEND),
        DeviceForm::Bitmap => (INTEGER_PRODUCT * pairs_of_tiles(data, form) * bits, SEND),
        DeviceForm::Batmap => (MAP_BYTE * map_bytes(data, form), SEND),
        DeviceForm::Sparse => (ADDITION * additions(data) + PIECE * tids, SEND_SPARSE),
    };
    work + send * tids + WINDOW
}

/// Pairs of items in all transactions, under the assumption that items are independent.
fn additions(data: &VerticalData) -> f64 {
    let tids = tids(data, 0..data.len());
    tids * tids / 2.0 / f64::from(data.transactions().max(1))
}

/// Pairs of all tiles, above and below the diagonal.
fn pairs_of_tiles(data: &VerticalData, form: DeviceForm) -> f64 {
    let [columns, rows] = form.tile().map(f64::from);
    form.tile_count(data.len()) as f64 * columns * rows
}

/// Bytes of both maps of all pairs. Both maps are read over the width of the left item's map, the
/// wider map: three tables whose ranges are powers of two.
fn map_bytes(data: &VerticalData, form: DeviceForm) -> f64 {
    let [side, _] = form.tile();
    let tiles = data.len().div_ceil(side);
    let of_left = |tile: u32| map_range(data, tile * side) as f64 * f64::from(tiles - tile);
    6.0 * f64::from(side).powi(2) * (0..tiles).map(of_left).sum::<f64>()
}

/// Slots of each of the three tables of an item's batmap, about.
pub(crate) fn map_range(data: &VerticalData, rank: u32) -> u64 {
    // At least two slots for each transaction of the item, and at least one slot for each 63
    // transactions of the window.
    let wanted = 2 * u64::from(data.support(rank)) * 10 / 9 + 1;
    wanted.max(u64::from(data.transactions() / 63 + 64)).next_power_of_two()
}
