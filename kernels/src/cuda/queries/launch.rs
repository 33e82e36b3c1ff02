//! Ways of counting, entry points and grids.

use crate::cuda::driver::{Launch, Properties};
use crate::cuda::grid::{Grid, WARP};

/// Threads of a block of warps that take units.
const THREADS: u32 = 256;
/// Memory of a warp: `WarpMemory` of `queries.cuh`.
const WARP_BYTES: u32 = 8 * 24 + 1024 + 32 + 256;
/// Memory of a block of `count_blocks`: an id and two sums for each thread.
const BLOCK_BYTES: u32 = THREADS * 4 * 3;

/// Maximum blocks for each multiprocessor, of kernels with a warp for each query: large batches get
/// as many warps as queries, so that no warp takes two long queries.
const FIRST_BLOCKS_MAX: u32 = 512;
/// Maximum blocks for each multiprocessor, of kernels over the list of units. Only the device knows
/// the length of the list, so the blocks are as many as a multiprocessor of 2,048 threads holds at
/// once.
const LISTED_BLOCKS: u32 = 8;

/// Kernels that find numbers of documents.
pub(super) const COUNT_FUNCTIONS: [&str; 3] = ["count_first", "count_listed", "count_blocks"];
/// Kernels that find documents.
pub(super) const FIND_FUNCTIONS: [&str; 5] =
    ["find_first", "find_listed", "find_totals", "find_offsets", "find_documents"];

/// Kernels that answer one query after another.
pub(super) const SERIAL_FUNCTIONS: [&str; 4] =
    ["serial_begin", "serial_search", "serial_scan", "serial_compact"];
/// Ids of a tile: `TILE` of `serial.cu`.
pub(super) const SERIAL_IDS: usize = THREADS as usize;
/// Memory of a block of a scan: two sums for each thread.
const SCAN_BYTES: u32 = THREADS * 4 * 2;

/// A way of counting the documents of a batch. All ways give the same counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Way {
    /// A warp takes a unit of a query.
    Units,
    /// A block takes a query: the batched algorithm of the paper, for comparison.
    Blocks,
}

impl Way {
    /// All ways, the fastest first.
    pub const ALL: &'static [Self] = &[Self::Units, Self::Blocks];
}

/// The way of counting, and the cut of a batch into blocks. A policy changes only the speed.
///
/// Both ways are batched. The plain algorithm of the paper takes one query after another, with all
/// blocks on two lists. The plain algorithm is another primitive,
/// [`SerialCounts`](super::SerialCounts), with buffers of its own: [`Way::Blocks`] with batches of
/// one query leaves all multiprocessors but one without work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    way: Way,
    first: Grid,
    listed: Grid,
}

impl Policy {
    /// The usual policy of a way.
    #[must_use]
    pub const fn of(way: Way) -> Self {
        let first = Grid::new(THREADS, FIRST_BLOCKS_MAX);
        Self { way, first, listed: first.with_blocks_max(LISTED_BLOCKS) }
    }

    /// Changes the maximum of blocks for each multiprocessor, of all kernels.
    #[must_use]
    pub const fn with_blocks_max(self, blocks_per_multiprocessor_max: u32) -> Self {
        let first = self.first.with_blocks_max(blocks_per_multiprocessor_max);
        Self { way: self.way, first, listed: first }
    }

    /// The way of counting.
    #[must_use]
    pub const fn way(&self) -> Way {
        self.way
    }

    /// The launch of a kernel with a warp for each query.
    pub(super) fn launch_first(
        &self,
        kernel: &'static str,
        device: &Properties,
        queries: u32,
    ) -> Launch {
        let blocks = queries.div_ceil(THREADS / WARP);
        self.first.launch(kernel, device, blocks, THREADS / WARP * WARP_BYTES)
    }

    /// The launch of a kernel over listed units.
    pub(super) fn launch_listed(&self, kernel: &'static str, device: &Properties) -> Launch {
        self.listed.launch(kernel, device, u32::MAX, THREADS / WARP * WARP_BYTES)
    }

    /// The launch of a kernel with a thread for each id of one query.
    pub(super) fn launch_ids(&self, kernel: &'static str, device: &Properties, ids: u32) -> Launch {
        self.first.launch(kernel, device, ids.div_ceil(THREADS), SCAN_BYTES)
    }

    /// The launch of the kernel with a block for each query.
    pub(super) fn launch_blocks(&self, device: &Properties, queries: u32) -> Launch {
        self.first.launch(COUNT_FUNCTIONS[2], device, queries, BLOCK_BYTES)
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self::of(Way::Units)
    }
}

/// The launch of the kernel that sums up the documents of all queries: one block, in which each
/// warp has a sum of 8 bytes.
pub(super) fn launch_offsets(device: &Properties) -> Launch {
    Grid::new(1024, 1).launch(FIND_FUNCTIONS[3], device, 1, 1024 / WARP * 8)
}

/// The launch of a kernel of one block: one warp orders lists, and a scan has [`THREADS`] threads.
pub(super) fn launch_alone(kernel: &'static str, device: &Properties) -> Launch {
    let threads = if kernel == SERIAL_FUNCTIONS[0] { WARP } else { THREADS };
    Grid::new(threads, 1).launch(kernel, device, 1, SCAN_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::grid::small_device;

    #[test]
    fn blocks_have_the_memory_of_their_warps() {
        let policy = Policy::default();
        let first = policy.launch_first("k", &small_device(), 17);
        assert_eq!((first.blocks, first.threads, first.shared_bytes), (3, 256, 8 * 1504));
        let listed = policy.launch_listed("k", &small_device());
        assert_eq!((listed.blocks, listed.shared_bytes), (16, first.shared_bytes));
        assert_eq!(launch_offsets(&small_device()).blocks, 1);
        let narrow = policy.with_blocks_max(1).launch_first("k", &small_device(), 1000);
        assert_eq!(narrow.blocks, 2);
    }
}
