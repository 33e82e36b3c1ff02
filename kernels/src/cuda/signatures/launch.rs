//! Entry points and grids: the cut of tiles into blocks.

use crate::cuda::driver::{Launch, Properties};
use crate::cuda::grid::{Grid, WARP};
use crate::signatures::WORDS;

/// The usual grid.
pub const GRID: Grid = Grid::new(128, 4096);

/// Bytes of the queue of a warp.
const QUEUE_BYTES: u32 = 2 * WARP * 4;

/// The task of a kernel.
#[derive(Clone, Copy, Debug)]
pub(super) enum Task {
    Sign,
    Join,
    Count,
}

/// The entry points: for each number of [`WORDS`], one entry point for each [`Task`].
pub(super) const FUNCTIONS: [[&str; 3]; WORDS.len()] = [
    ["signatures_sign_1", "signatures_join_1", "signatures_count_1"],
    ["signatures_sign_2", "signatures_join_2", "signatures_count_2"],
    ["signatures_sign_4", "signatures_join_4", "signatures_count_4"],
    ["signatures_sign_8", "signatures_join_8", "signatures_count_8"],
];

/// The entry point for signatures of `words` words.
pub(super) fn function(task: Task, words: usize) -> &'static str {
    let width = WORDS.iter().position(|width| *width == words);
    FUNCTIONS[width.expect("a width of signatures")][task as usize]
}

/// The launch for `tiles` tiles of at most `probes_max` probes, with signatures of `words` words.
pub(super) fn launch_tiles(
    grid: Grid,
    kernel: &'static str,
    device: &Properties,
    tiles: u32,
    [probes_max, words]: [u32; 2],
) -> Launch {
    let shared_bytes = probes_max * words * 8 + grid.threads() / WARP * QUEUE_BYTES;
    grid.launch(kernel, device, tiles, shared_bytes)
}

/// The launch for the signatures of `sets` sets.
pub(super) fn launch_sets(kernel: &'static str, device: &Properties, sets: u32) -> Launch {
    GRID.launch(kernel, device, GRID.blocks_for(sets), 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::grid::{THREADS_MAX, small_device};
    use crate::signatures::PROBES_MAX;

    #[test]
    fn functions_are_those_of_the_widths() {
        for words in WORDS {
            let names = [Task::Sign, Task::Join, Task::Count].map(|task| function(task, words));
            let expected =
                ["sign", "join", "count"].map(|task| format!("signatures_{task}_{words}"));
            assert_eq!(names, expected);
        }
    }

    #[test]
    fn a_grid_covers_its_work_up_to_a_limit() {
        let grid = GRID.with_blocks_max(3);
        let blocks = |tiles| launch_tiles(grid, "k", &small_device(), tiles, [1, 1]).blocks;
        assert_eq!([0, 1, 5, 6, 7, u32::MAX].map(blocks), [1, 1, 5, 6, 6, 6]);
        let blocks = |sets| launch_sets("k", &small_device(), sets).blocks;
        assert_eq!([0, 128, 129, u32::MAX].map(blocks), [1, 1, 2, 8192]);
    }

    #[test]
    fn shared_memory_is_what_every_device_gives() {
        let grid = GRID.with_threads(THREADS_MAX);
        let words = u32::try_from(*WORDS.last().unwrap()).unwrap();
        let launch = launch_tiles(grid, "k", &small_device(), 1, [PROBES_MAX, words]);
        assert_eq!(launch.shared_bytes, 128 * 64 + 8 * 256);
        assert!(launch.shared_bytes <= 48 << 10, "{launch}");
    }
}
