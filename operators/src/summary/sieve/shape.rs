//! The sizes of a sieve: its counters, its cells, its blocks, and the memory that these take.

use trommel_kernels::sieve::{GROUP, KEYS_MAX, LANES, MISSED_SLACK};

use super::Sieve;
use super::lowest::LowestCount;
use super::scratch::BlockScratch;
use super::table::CellTable;
use crate::items::Item;
use crate::summary::capacity::COUNTERS_MAX;
use crate::summary::index::ItemIndex;

/// The fewest cells that are chosen by default.
const CELLS_MIN: usize = 1 << 9;
/// The most cells that are chosen by default, unless there are more counters: a table of this size
/// fits into the second-level cache, and its pages of 4 KiB, for `u32`, into the address cache
/// (TLB) of a core.
const CELLS_MAX: usize = 1 << 14;

/// The most cells at all, as a power of 2.
pub(super) const CELLS_LOG_MAX: u32 = COUNTERS_MAX.ilog2() + 1;

/// Cells for each counter, by default, as far as the maximum allows.
const CELLS_PER_COUNTER: usize = 16;

/// A block has one item for this many places, within limits. The hot items of a block are counted
/// before its other items.
const PLACES_PER_BLOCK_ITEM: usize = 8;
const BLOCK_MIN: usize = 64;
const BLOCK_MAX: usize = 8192;

/// Items of a block with weights, at most: their weights stand on the stack.
pub(super) const BLOCK_OF_WEIGHTS_MAX: usize = 1024;

/// The sizes of a sieve, which never change.
#[derive(Clone, Copy, Debug)]
pub(super) struct SieveShape {
    /// k: counters asked for.
    pub(super) counters: usize,
    /// e: extra counters.
    pub(super) extra: usize,
    pub(super) cells: usize,
}

impl SieveShape {
    /// e is a tenth of k, within limits: see [the module](super).
    pub(super) fn new(counters: usize, cells: usize) -> Self {
        let (k, places) = (counters as u128, (LANES * cells) as u128);
        // In tenths of a counter.
        let (least, most) = ((15 * k * k).div_ceil(places), (60 * k * k).div_ceil(places));
        let extra = k.clamp(least, most).div_ceil(10).clamp(1, k);
        let extra = usize::try_from(extra).expect("at most the counters");
        Self { counters, extra, cells }
    }

    /// C = k + e: the number of counters, and of their slots.
    pub(super) fn slots(self) -> usize {
        self.counters + self.extra
    }

    /// The shape for `counters` counters where no limit of memory is given.
    pub(super) fn usual(counters: usize) -> Self {
        let cells = (counters * CELLS_PER_COUNTER).clamp(CELLS_MIN, CELLS_MAX);
        Self::new(counters, cells.max(2 * counters).next_power_of_two())
    }

    /// Items of a block.
    pub(super) fn block(self) -> usize {
        (self.cells * LANES / PLACES_PER_BLOCK_ITEM).clamp(BLOCK_MIN, BLOCK_MAX)
    }

    /// L after a weight of `observed`: N e / (k C), rounded down.
    pub(super) fn slack(self, observed: u64) -> u64 {
        let slack = u128::from(observed) * self.extra as u128
            / (self.counters as u128 * self.slots() as u128);
        u64::try_from(slack).expect("the slack is below the weight")
    }

    /// Upper bound of the memory of a sieve of this shape, without the texts of items.
    pub(super) fn state_bytes_max<K: Item>(self) -> usize {
        let code = size_of::<K::Code>();
        size_of::<Sieve<K>>()
            + CellTable::<K::Key>::bytes(self.cells)
            + ItemIndex::<K>::bytes(self.slots())
            + LowestCount::bytes_max(self.slots())
            + self.slots() * (3 * size_of::<u64>() + size_of::<u32>())
            + KEYS_MAX * (code + size_of::<u32>())
            + BlockScratch::<K>::bytes_max(self.block())
            + (self.block() + MISSED_SLACK) * code
            + self.block().div_ceil(GROUP) * size_of::<u64>()
    }
}
