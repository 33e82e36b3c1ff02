//! The cut of a launch into blocks.

use super::driver::{Launch, Properties};

/// Lanes of a warp.
pub(super) const WARP: u32 = 32;

/// The limit in the `__launch_bounds__` of all kernels that allow several sizes of blocks.
pub(super) const THREADS_MAX: u32 = 256;

/// The limit of threads of a block on every device.
const DEVICE_THREADS_MAX: u32 = 1024;

/// Numbers that change only the speed of a kernel: kernels stride over their grid, so any grid
/// gives the same answers.
///
/// # Examples
///
/// ```
/// use trommel_kernels::cuda::signatures::GRID;
///
/// assert_eq!(GRID.with_threads(64).threads(), 64);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    threads: u32,
    blocks_per_multiprocessor_max: u32,
}

impl Grid {
    /// Blocks of `threads` threads, and at most `blocks_per_multiprocessor_max` blocks for each
    /// multiprocessor; blocks stride over further work.
    ///
    /// # Panics
    ///
    /// If `threads` are not full warps, or more than 1,024.
    pub(super) const fn new(threads: u32, blocks_per_multiprocessor_max: u32) -> Self {
        assert!(is_full_warps(threads, DEVICE_THREADS_MAX), "blocks have 1 to 32 full warps");
        Self { threads, blocks_per_multiprocessor_max }
    }

    /// Threads of a block.
    #[must_use]
    pub const fn threads(&self) -> u32 {
        self.threads
    }

    /// Changes the threads of a block.
    ///
    /// # Panics
    ///
    /// If the threads are not full warps, or more than 256.
    #[must_use]
    pub fn with_threads(self, threads: u32) -> Self {
        assert!(
            is_full_warps(threads, THREADS_MAX),
            "{threads} threads: a block has full warps of {WARP}, at most {THREADS_MAX} threads"
        );
        Self { threads, ..self }
    }

    /// Changes the maximum of blocks for each multiprocessor.
    #[must_use]
    pub const fn with_blocks_max(self, blocks_per_multiprocessor_max: u32) -> Self {
        Self { blocks_per_multiprocessor_max, ..self }
    }

    /// Number of blocks for work of this many threads.
    pub(super) const fn blocks_for(&self, threads: u32) -> u32 {
        threads.div_ceil(self.threads)
    }

    /// The launch of a kernel with work for `blocks` blocks. The launch has at least one block, and
    /// no more than the device's multiprocessors allow.
    pub(super) fn launch(
        &self,
        kernel: &'static str,
        device: &Properties,
        blocks: u32,
        shared_bytes: u32,
    ) -> Launch {
        let most = device.multiprocessors.saturating_mul(self.blocks_per_multiprocessor_max);
        Launch { kernel, blocks: blocks.clamp(1, most.max(1)), threads: self.threads, shared_bytes }
    }
}

const fn is_full_warps(threads: u32, max: u32) -> bool {
    threads.is_multiple_of(WARP) && WARP <= threads && threads <= max
}

/// A device of two multiprocessors.
#[cfg(test)]
pub(super) fn small_device() -> Properties {
    Properties {
        ordinal: 0,
        name: "a device".to_owned(),
        capability: (9, 0),
        multiprocessors: 2,
        clock_khz: 0,
        memory_bytes: 1 << 30,
        memory_clock_khz: 0,
        memory_bus_bits: 0,
        driver_version: 12_000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_at_least_one_and_limited_by_multiprocessors() {
        let two = small_device();
        let none = Properties { multiprocessors: 0, ..two.clone() };
        let blocks = |device, blocks, max| Grid::new(64, max).launch("k", device, blocks, 0).blocks;
        let limited = [0, 1, 5, 6, 7, u32::MAX].map(|wanted| blocks(&two, wanted, 3));
        assert_eq!(limited, [1, 1, 5, 6, 6, 6]);
        assert_eq!(blocks(&two, u32::MAX, u32::MAX), u32::MAX);
        assert_eq!(blocks(&none, 7, 3), 1);
    }

    #[test]
    fn full_warps_up_to_the_bounds_of_kernels_pass() {
        assert_eq!([32, 64, 256].map(|threads| Grid::new(threads, 1).threads()), [32, 64, 256]);
        assert_eq!([0, 1, 64, 65].map(|work| Grid::new(64, 1).blocks_for(work)), [0, 1, 1, 2]);
    }

    #[test]
    #[should_panic(expected = "288 threads")]
    fn more_threads_than_kernels_are_compiled_for_are_refused() {
        let _ = Grid::new(64, 1).with_threads(288);
    }

    #[test]
    #[should_panic(expected = "33 threads: a block has full warps of 32, at most 256 threads")]
    fn half_warps_are_refused() {
        let _ = Grid::new(64, 1).with_threads(33);
    }
}
