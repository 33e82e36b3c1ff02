//! Grids: how tiles are cut into blocks on a device.

use crate::cuda::device::Properties;
use crate::cuda::error::Launch;
use crate::cuda::grid::{WARP, blocks, full_warps};

/// The queue of a warp.
const QUEUE_BYTES: u32 = 2 * WARP * 4;

/// Numbers that change how fast a kernel is, and nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Threads of a block: full warps, at most 256.
    threads: u32,
    /// Blocks for each multiprocessor at most; work beyond that is done by striding over the grid.
    blocks_per_multiprocessor_max: u32,
}

impl Default for Policy {
    fn default() -> Self {
        Self { threads: 128, blocks_per_multiprocessor_max: 4096 }
    }
}

impl Policy {
    /// Changes the threads of a block.
    ///
    /// # Panics
    ///
    /// If they are no full warps, or more than 256.
    #[must_use]
    pub fn with_threads(self, threads: u32) -> Self {
        Self { threads: full_warps(threads), ..self }
    }

    /// Changes the most blocks for each multiprocessor.
    #[must_use]
    pub const fn with_blocks_max(self, blocks_per_multiprocessor_max: u32) -> Self {
        Self { blocks_per_multiprocessor_max, ..self }
    }

    /// The launch for so many tiles, of so many probes at most with signatures of so many words.
    pub(super) fn launch_tiles(
        &self,
        kernel: &'static str,
        device: &Properties,
        tiles: u32,
        [probes_max, words]: [u32; 2],
    ) -> Launch {
        let shared_bytes = probes_max * words * 8 + self.threads / WARP * QUEUE_BYTES;
        Launch { kernel, blocks: self.blocks(device, tiles), threads: self.threads, shared_bytes }
    }

    /// The launch for the signatures of so many sets.
    pub(super) fn launch_sets(
        &self,
        kernel: &'static str,
        device: &Properties,
        sets: u32,
    ) -> Launch {
        let blocks = self.blocks(device, sets.div_ceil(self.threads));
        Launch { kernel, blocks, threads: self.threads, shared_bytes: 0 }
    }

    fn blocks(&self, device: &Properties, wanted: u32) -> u32 {
        blocks(device, wanted, self.blocks_per_multiprocessor_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::grid::{THREADS_MAX, small_device};
    use crate::signatures::{PROBES_MAX, WORDS};

    #[test]
    fn a_grid_covers_its_work_up_to_a_limit() {
        let policy = Policy::default().with_blocks_max(3);
        let blocks = |tiles| policy.launch_tiles("k", &small_device(), tiles, [1, 1]).blocks;
        assert_eq!([0, 1, 5, 6, 7, u32::MAX].map(blocks), [1, 1, 5, 6, 6, 6]);
        let blocks = |sets| policy.launch_sets("k", &small_device(), sets).blocks;
        assert_eq!([0, 128, 129, u32::MAX].map(blocks), [1, 1, 2, 6]);
    }

    #[test]
    fn shared_memory_is_what_every_device_gives() {
        let policy = Policy::default().with_threads(THREADS_MAX);
        let words = u32::try_from(*WORDS.last().unwrap()).unwrap();
        let launch = policy.launch_tiles("k", &small_device(), 1, [PROBES_MAX, words]);
        assert_eq!(launch.shared_bytes, 128 * 64 + 8 * 256);
        assert!(launch.shared_bytes <= 48 << 10, "{launch}");
    }

    #[test]
    #[should_panic(expected = "33 threads are no full warps of 1 to 256")]
    fn half_warps_are_refused() {
        let _ = Policy::default().with_threads(33);
    }
}
