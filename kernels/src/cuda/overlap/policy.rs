//! A kernel with its grid and shared memory.

use super::variant::Variant;
use crate::cuda::driver::{Launch, Properties};
use crate::cuda::grid::{Grid, WARP};

/// Words of the queue of a warp, in kernels with a queue.
const QUEUE_WORDS: u32 = 2 * 2 * WARP;

/// Dynamic shared memory that every device gives a block without a request.
const SHARED_BYTES_MAX: u32 = 48 * 1024;

/// A kernel, and the numbers that change only its speed.
///
/// # Examples
///
/// ```
/// use trommel_kernels::cuda::overlap::{Policy, Variant};
///
/// let usual = Policy::of(Variant::Lanes8);
/// assert_ne!(usual.with_grid(usual.grid().with_threads(256)), usual);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    variant: Variant,
    grid: Grid,
    /// Maximum tokens of a set in shared memory; longer sets take a slower path. Zero for kernels
    /// without shared memory.
    tokens_max: u32,
}

impl Policy {
    /// The policy of a kernel, with the number of threads that was fastest on an H200
    /// (bench/reports/gpu.md); the `signed` kernels use the threads of the `lanes` kernels. The
    /// paper (§5.4.2) also found blocks of 32 best for alternative B.
    #[must_use]
    pub const fn of(variant: Variant) -> Self {
        let (grid, tokens_max) = match variant {
            Variant::ThreadPerProbe => (Grid::new(128, 256), 0),
            Variant::BlockPerProbe => (Grid::new(32, 1024), 4096),
            Variant::BlockPerPair => (Grid::new(64, 256), 2048),
            Variant::Lanes8
            | Variant::Lanes16
            | Variant::Lanes32
            | Variant::Signed8
            | Variant::Signed32 => (Grid::new(64, 256), 0),
        };
        Self { variant, grid, tokens_max }
    }

    /// The policy of a kernel for sets of a mean size of `tokens` tokens. Alternative C shares each
    /// pair among all threads of a block, so it needs more threads for larger sets
    /// (bench/reports/gpu.md).
    #[must_use]
    pub fn for_mean_size(variant: Variant, tokens: usize) -> Self {
        let policy = Self::of(variant);
        let threads = match variant {
            Variant::BlockPerPair if tokens >= 2500 => 256,
            Variant::BlockPerPair if tokens >= 1200 => 128,
            _ => return policy,
        };
        policy.with_grid(policy.grid.with_threads(threads))
    }

    /// The kernel.
    #[must_use]
    pub const fn variant(&self) -> Variant {
        self.variant
    }

    /// The grid.
    #[must_use]
    pub const fn grid(&self) -> Grid {
        self.grid
    }

    /// Changes the grid.
    #[must_use]
    pub const fn with_grid(self, grid: Grid) -> Self {
        Self { grid, ..self }
    }

    /// Changes the room for tokens in shared memory, for kernels that use it.
    ///
    /// # Panics
    ///
    /// If the room is zero, or exceeds the shared memory of a block.
    #[must_use]
    pub fn with_tokens_max(self, tokens_max: u32) -> Self {
        let most = SHARED_BYTES_MAX / 8 - WARP;
        let fits = (1..=most).contains(&tokens_max);
        assert!(fits, "shared memory for {tokens_max} tokens; allowed are 1 to {most}");
        if self.tokens_max == 0 {
            return self;
        }
        Self { tokens_max, ..self }
    }

    /// The room for tokens that a chunk needs, of the room that the policy allows.
    pub(super) fn tokens(&self, longest_set: usize) -> u32 {
        let longest = u32::try_from(longest_set).unwrap_or(u32::MAX).max(1);
        self.tokens_max.min(longest.checked_next_multiple_of(WARP).unwrap_or(u32::MAX))
    }

    /// The launch for a chunk of `entries` entries and `pairs` pairs, with shared memory for
    /// `tokens` tokens.
    pub(super) fn launch(
        &self,
        function: &'static str,
        device: &Properties,
        [entries, pairs]: [u32; 2],
        tokens: u32,
    ) -> Launch {
        let warps = self.grid.threads() / WARP;
        let (blocks, shared_words) = match self.variant {
            Variant::ThreadPerProbe => (self.grid.blocks_for(entries), 0),
            Variant::BlockPerProbe => (entries, tokens),
            Variant::BlockPerPair => (entries, 2 * tokens + warps),
            Variant::Lanes8 | Variant::Lanes16 | Variant::Lanes32 => {
                (self.grid.blocks_for(pairs), 0)
            }
            Variant::Signed8 | Variant::Signed32 => {
                (self.grid.blocks_for(pairs), warps * QUEUE_WORDS)
            }
        };
        self.grid.launch(function, device, blocks, 4 * shared_words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::grid::{THREADS_MAX, small_device};

    fn launch(variant: Variant, work: [u32; 2]) -> Launch {
        let policy = Policy::of(variant);
        policy.launch("k", &small_device(), work, policy.tokens(100))
    }

    #[test]
    fn a_grid_covers_its_work_up_to_a_limit() {
        assert_eq!(launch(Variant::ThreadPerProbe, [129, 9000]).blocks, 2);
        assert_eq!(launch(Variant::BlockPerProbe, [129, 9000]).blocks, 129);
        assert_eq!(launch(Variant::Lanes16, [129, 513]).blocks, 9);
        assert_eq!(launch(Variant::Lanes16, [1, 1 << 31]).blocks, 512);
        for variant in Variant::ALL {
            assert_eq!(launch(variant, [0, 0]).blocks, 1, "{variant}");
        }
    }

    #[test]
    fn shared_memory_is_what_the_longest_set_needs() {
        assert_eq!(launch(Variant::BlockPerProbe, [1, 1]).shared_bytes, 4 * 128);
        assert_eq!(launch(Variant::BlockPerPair, [1, 1]).shared_bytes, 4 * (2 * 128 + 2));
        assert_eq!(launch(Variant::Signed8, [1, 1]).shared_bytes, 2 * 64 * 8);
        assert_eq!(Policy::of(Variant::BlockPerProbe).tokens(1 << 20), 4096);
        assert_eq!(Policy::of(Variant::BlockPerProbe).tokens(0), 32);
        let largest = Policy::of(Variant::BlockPerPair).with_tokens_max(6112);
        let largest = largest.with_grid(largest.grid().with_threads(THREADS_MAX));
        let tokens = largest.tokens(1 << 20);
        let launch = largest.launch("k", &small_device(), [1, 1], tokens);
        assert!(launch.shared_bytes <= SHARED_BYTES_MAX, "{launch}");
    }

    #[test]
    fn larger_sets_give_alternative_c_more_threads() {
        let threads = |variant, tokens| Policy::for_mean_size(variant, tokens).grid().threads();
        let of_pairs = [100, 2000, 8000].map(|tokens| threads(Variant::BlockPerPair, tokens));
        assert_eq!(of_pairs, [64, 128, 256]);
        for variant in Variant::ALL.into_iter().filter(|&kind| kind != Variant::BlockPerPair) {
            assert_eq!(Policy::for_mean_size(variant, 8000), Policy::of(variant));
        }
    }

    #[test]
    fn kernels_without_shared_memory_are_given_none() {
        for variant in Variant::ALL {
            let policy = Policy::of(variant);
            let has_room = matches!(variant, Variant::BlockPerProbe | Variant::BlockPerPair);
            assert_eq!(policy.with_tokens_max(64) != policy, has_room, "{variant}");
        }
    }

    #[test]
    #[should_panic(expected = "shared memory for 0 tokens")]
    fn no_room_for_tokens_is_refused() {
        let _ = Policy::of(Variant::BlockPerPair).with_tokens_max(0);
    }

    #[test]
    #[should_panic(expected = "shared memory for 6113 tokens; allowed are 1 to 6112")]
    fn more_room_for_tokens_than_blocks_are_given_is_refused() {
        let _ = Policy::of(Variant::BlockPerPair).with_tokens_max(6113);
    }
}
