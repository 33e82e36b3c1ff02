//! Costs of layouts on a CPU and on a GPU, in hundredths of a nanosecond. They decide between
//! layouts, whose results are the same.
//!
//! Measured with AVX-512 on one core of an AMD Zen 5, over generated transactions: `sliced` with
//! 4,000 items at 5 % and 64,000 at 1 % and 0.05 %, `bitmap` with 4,000 at 5 %, `sparse` with
//! 1,000 at 0.5 % and 4,000 at 1 % and 5 %.

use std::ops::Range;

use trommel_kernels::supports::COLUMNS;

use super::device_form::DeviceForm;
use super::pair_rows::PairRows;
use super::vertical::VerticalData;

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
/// Looking for a transaction of a pair in the tid list of its first item.
const FIND_COMMON: u64 = 40;
/// Finding the items before another one in a transaction: 12 ns where all transactions are in the
/// second-level cache, and 60 to 130 ns in memory.
const VISIT: u64 = 4000;

/// Products of two bits in a hundredth of a nanosecond: by tensor cores 97.7 ms for 64,000 items
/// and 156,250 transactions, by integer units 2,170 ms (an H200, bench/reports/gpu.md, *Supports of
/// pairs*).
const TENSOR_PRODUCTS: u128 = 32_900;
const INTEGER_PRODUCTS: u128 = 1_480;
/// Bytes of batmaps compared in a hundredth of a nanosecond (the same).
const MAP_BYTES: u128 = 330;
/// Additions into counters, and pieces of transactions, in a hundredth of a nanosecond (the same,
/// by density).
const ADDITIONS: u128 = 8;
const PIECES: u128 = 1;
/// Cutting a transaction of an item for the bus, 1.9 ns, and sending it in 2 bytes at 50 GB/s.
const SEND: u128 = 194;
/// Making transactions for counters and sending 12 bytes: 15 to 24 ns.
const SEND_SPARSE: u128 = 2000;
/// Buffers and launches of a window.
const WINDOW: u128 = 10_000_000;
/// Bits of a transaction that a device multiplies at once.
const STAGE: u32 = 512;

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

/// Cost of all pairs on a device.
pub(super) fn on_device(data: &VerticalData, form: DeviceForm) -> u64 {
    let bits = u128::from(data.transactions().next_multiple_of(STAGE));
    let tids = u128::from(data.total(0..data.len()));
    let work = match form {
        DeviceForm::Tensor => pairs_of_tiles(data, form) * bits / TENSOR_PRODUCTS,
        DeviceForm::Bitmap => pairs_of_tiles(data, form) * bits / INTEGER_PRODUCTS,
        DeviceForm::Batmap => map_bytes(data, form) / MAP_BYTES,
        DeviceForm::Sparse => additions(data) / ADDITIONS + tids / PIECES,
    };
    let sent = if form == DeviceForm::Sparse { SEND_SPARSE } else { SEND };
    u64::try_from(work + sent * tids + WINDOW).unwrap_or(u64::MAX)
}

/// Pairs of items of all transactions, if items were independent.
fn additions(data: &VerticalData) -> u128 {
    let tids = u128::from(data.total(0..data.len()));
    tids * tids / 2 / u128::from(data.transactions().max(1))
}

/// Pairs of all tiles, above and below the diagonal.
fn pairs_of_tiles(data: &VerticalData, form: DeviceForm) -> u128 {
    let [columns, rows] = form.tile().map(u128::from);
    u128::from(form.tile_count(data.len())) * columns * rows
}

/// Bytes of both maps of all pairs. The left item has the wider map, of three tables, whose
/// ranges are powers of two.
fn map_bytes(data: &VerticalData, form: DeviceForm) -> u128 {
    let [side, _] = form.tile();
    let tiles = data.len().div_ceil(side);
    let of_left = |tile: u32| u128::from(map_range(data, tile * side)) * u128::from(tiles - tile);
    6 * u128::from(side).pow(2) * (0..tiles).map(of_left).sum::<u128>()
}

/// Slots of each of the three tables of an item's batmap, about.
pub(super) fn map_range(data: &VerticalData, rank: u32) -> u64 {
    // At least two slots for each transaction, and one for each 63 transactions of all items.
    let wanted = 2 * u64::from(data.support(rank)) * 10 / 9 + 1;
    wanted.max(u64::from(data.transactions() / 63 + 64)).next_power_of_two()
}
