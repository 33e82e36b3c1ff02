//! Grids: how a kernel is cut into blocks on a device.

use super::Kernel;
use crate::cuda::device::Properties;
use crate::cuda::error::Launch;
use crate::cuda::grid::{WARP, blocks, full_warps};

/// Words of the queue of a warp, in kernels that have one.
const QUEUE_WORDS: u32 = 2 * 2 * WARP;

/// Dynamic shared memory that every device gives a block without being asked for more.
const SHARED_BYTES_MAX: u32 = 48 * 1024;

/// A kernel, and the numbers that change how fast it is, and nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    kernel: Kernel,
    /// Threads of a block: full warps, at most 256.
    threads: u32,
    /// Blocks for each multiprocessor at most; work beyond that is done by striding over the grid.
    blocks_per_multiprocessor_max: u32,
    /// Tokens of a set that shared memory has room for; longer sets take a slower path. Zero for
    /// kernels that use none.
    tokens_max: u32,
}

impl Policy {
    /// The policy of a kernel: the threads that were fastest on an H200 (docs/gpu.md); those of the
    /// `lanes` kernels for the `signed` ones, too. The paper (§5.4.2) also found blocks of 32 best
    /// for alternative B.
    #[must_use]
    pub const fn of(kernel: Kernel) -> Self {
        let (threads, blocks_per_multiprocessor_max, tokens_max) = match kernel {
            Kernel::ThreadPerProbe => (128, 256, 0),
            Kernel::BlockPerProbe => (32, 1024, 4096),
            Kernel::BlockPerPair => (64, 256, 2048),
            Kernel::Lanes8
            | Kernel::Lanes16
            | Kernel::Lanes32
            | Kernel::Signed8
            | Kernel::Signed32 => (64, 256, 0),
        };
        Self { kernel, threads, blocks_per_multiprocessor_max, tokens_max }
    }

    /// The kernel.
    #[must_use]
    pub const fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// The threads of a block.
    #[must_use]
    pub const fn threads(&self) -> u32 {
        self.threads
    }

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

    /// Changes the room for tokens in shared memory, for kernels that use it.
    ///
    /// # Panics
    ///
    /// If it is zero, or beyond what blocks are given.
    #[must_use]
    pub fn with_tokens_max(self, tokens_max: u32) -> Self {
        let fits = (1..=SHARED_BYTES_MAX / 8 - WARP).contains(&tokens_max);
        assert!(fits, "shared memory for {tokens_max} tokens");
        if self.tokens_max == 0 {
            return self;
        }
        Self { tokens_max, ..self }
    }

    /// The room for tokens that a chunk needs, of what the policy allows.
    pub(super) fn tokens(&self, longest_set: usize) -> u32 {
        let longest = u32::try_from(longest_set).unwrap_or(u32::MAX).max(1);
        self.tokens_max.min(longest.checked_next_multiple_of(WARP).unwrap_or(u32::MAX))
    }

    /// The launch for a chunk of so many entries and pairs.
    pub(super) fn launch(
        &self,
        function: &'static str,
        device: &Properties,
        [entries, pairs]: [u32; 2],
        tokens: u32,
    ) -> Launch {
        let threads = self.threads;
        let (wanted, shared_words) = match self.kernel {
            Kernel::ThreadPerProbe => (entries.div_ceil(threads), 0),
            Kernel::BlockPerProbe => (entries, tokens),
            Kernel::BlockPerPair => (entries, 2 * tokens + threads / WARP),
            Kernel::Lanes8 | Kernel::Lanes16 | Kernel::Lanes32 => (pairs.div_ceil(threads), 0),
            Kernel::Signed8 | Kernel::Signed32 => {
                (pairs.div_ceil(threads), threads / WARP * QUEUE_WORDS)
            }
        };
        let blocks = blocks(device, wanted, self.blocks_per_multiprocessor_max);
        Launch { kernel: function, blocks, threads, shared_bytes: 4 * shared_words }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::grid::small_device;

    fn launch(kernel: Kernel, work: [u32; 2]) -> Launch {
        let policy = Policy::of(kernel);
        policy.launch("k", &small_device(), work, policy.tokens(100))
    }

    #[test]
    fn a_grid_covers_its_work_up_to_a_limit() {
        assert_eq!(launch(Kernel::ThreadPerProbe, [129, 9000]).blocks, 2);
        assert_eq!(launch(Kernel::BlockPerProbe, [129, 9000]).blocks, 129);
        assert_eq!(launch(Kernel::Lanes16, [129, 513]).blocks, 9);
        assert_eq!(launch(Kernel::Lanes16, [1, 1 << 31]).blocks, 512);
        for kernel in Kernel::ALL {
            assert_eq!(launch(kernel, [0, 0]).blocks, 1, "{kernel}");
        }
    }

    #[test]
    fn shared_memory_is_what_the_longest_set_needs() {
        assert_eq!(launch(Kernel::BlockPerProbe, [1, 1]).shared_bytes, 4 * 128);
        assert_eq!(launch(Kernel::BlockPerPair, [1, 1]).shared_bytes, 4 * (2 * 128 + 2));
        assert_eq!(launch(Kernel::Signed8, [1, 1]).shared_bytes, 2 * 64 * 8);
        assert_eq!(Policy::of(Kernel::BlockPerProbe).tokens(1 << 20), 4096);
        assert_eq!(Policy::of(Kernel::BlockPerProbe).tokens(0), 32);
        let largest = Policy::of(Kernel::BlockPerPair).with_tokens_max(6112).with_threads(256);
        let tokens = largest.tokens(1 << 20);
        let launch = largest.launch("k", &small_device(), [1, 1], tokens);
        assert!(launch.shared_bytes <= SHARED_BYTES_MAX, "{launch}");
    }

    #[test]
    fn kernels_without_shared_memory_are_given_none() {
        for kernel in Kernel::ALL {
            let policy = Policy::of(kernel);
            let has_room = matches!(kernel, Kernel::BlockPerProbe | Kernel::BlockPerPair);
            assert_eq!(policy.with_tokens_max(64) != policy, has_room, "{kernel}");
        }
    }

    #[test]
    #[should_panic(expected = "shared memory for 0 tokens")]
    fn no_room_for_tokens_is_refused() {
        let _ = Policy::of(Kernel::BlockPerPair).with_tokens_max(0);
    }

    #[test]
    #[should_panic(expected = "shared memory for 6113 tokens")]
    fn more_room_for_tokens_than_blocks_are_given_is_refused() {
        let _ = Policy::of(Kernel::BlockPerPair).with_tokens_max(6113);
    }

    #[test]
    #[should_panic(expected = "33 threads are no full warps of 1 to 256")]
    fn half_warps_are_refused() {
        let _ = Policy::of(Kernel::Lanes8).with_threads(33);
    }
}
