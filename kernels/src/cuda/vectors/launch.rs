//! Methods and units of a join, entry points and grids.

use std::fmt;

use crate::cuda::driver::{Launch, Properties};
use crate::cuda::grid::Grid;

/// Left vectors of a unit of nested loops: one for each lane of a warp.
pub(super) const WARP_LEN: usize = 32;
/// Vectors of a leaf, and leaves of a super-group, of boxes.
pub(super) const LEAF: usize = 32;
pub(super) const LEAVES_OF_SUPER: usize = 256;
/// Maximum dimensions of vectors in tiles.
pub(super) const TILE_DIMS_MAX: usize = 7 * 128;
/// Maximum dimensions of vectors under boxes.
pub(super) const BOX_DIMS_MAX: usize = 16;

/// A way to find the pairs. All ways find the same pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Method {
    /// All pairs, with a thread for each left vector, as published.
    NestedLoop,
    /// The directory of quantiles, as published: 16 parts in each of three dimensions.
    Directory,
    /// Boxes over vectors in the order of cells, for 1 to 16 dimensions.
    Boxes,
    /// All pairs, by products of bytes on tensor cores, for 1 to 896 dimensions, in devices of
    /// capability 9.0. This method joins vectors with themselves.
    Tiles,
}

impl Method {
    /// All methods.
    pub const ALL: &'static [Self] = &[Self::NestedLoop, Self::Directory, Self::Boxes, Self::Tiles];

    /// Whether the method joins vectors of `dims` dimensions.
    #[must_use]
    pub fn takes(self, dims: usize) -> bool {
        match self {
            Self::NestedLoop | Self::Directory => true,
            Self::Boxes => dims <= BOX_DIMS_MAX,
            Self::Tiles => dims <= TILE_DIMS_MAX,
        }
    }

    /// Whether a device has the units of the method.
    #[must_use]
    pub fn is_available(self, device: &Properties) -> bool {
        self != Self::Tiles || device.capability == (9, 0)
    }
}

impl fmt::Display for Method {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::NestedLoop => "nested loop",
            Self::Directory => "directory",
            Self::Boxes => "boxes",
            Self::Tiles => "tiles",
        })
    }
}

/// The units of a device that filter the pairs of near leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Filter {
    /// Tensor cores, in float16, in devices of capability 8.0 to 9.0.
    Half,
    /// Units for float32, which every device has.
    Float,
}

impl Filter {
    /// All filters, the fastest first.
    pub const ALL: &'static [Self] = &[Self::Half, Self::Float];

    /// Whether a device has the units, and its image uses them.
    #[must_use]
    pub fn is_available(self, device: &Properties) -> bool {
        self == Self::Float || matches!(device.capability, (8, _) | (9, 0))
    }

    /// The fastest filter that a device has.
    #[must_use]
    pub fn best(device: &Properties) -> Self {
        if Self::Half.is_available(device) { Self::Half } else { Self::Float }
    }
}

/// A kernel of boxes: dimensions of a box, leaves of a warp, shared memory of a warp.
#[derive(Clone, Copy, Debug)]
struct BoxKernel {
    filter: Filter,
    dims: usize,
    leaves: usize,
    name: &'static str,
    shared_bytes: u32,
}

const BOX_KERNELS: [BoxKernel; 6] = {
    const fn kernel(
        filter: Filter,
        shape: [usize; 2],
        name: &'static str,
        shared_bytes: u32,
    ) -> BoxKernel {
        BoxKernel { filter, dims: shape[0], leaves: shape[1], name, shared_bytes }
    }
    [
        kernel(Filter::Half, [4, 2], "vectors_half_4_2", 5184),
        kernel(Filter::Half, [8, 2], "vectors_half_8_2", 5280),
        kernel(Filter::Half, [8, 4], "vectors_half_8_4", 5408),
        kernel(Filter::Half, [16, 2], "vectors_half_16_2", 9632),
        kernel(Filter::Float, [8, 2], "vectors_float_8_2", 1120),
        kernel(Filter::Float, [16, 2], "vectors_float_16_2", 1312),
    ]
};

/// The usual maximum of blocks for each multiprocessor: each warp of a block takes one unit.
const BLOCKS_MAX: u32 = 1 << 20;
const LOOPS: Grid = Grid::new(64, BLOCKS_MAX);
const BOXES: Grid = Grid::new(128, BLOCKS_MAX);
const WARPS_OF_BLOCK: u32 = 4;
/// The grid of the steps of the order: a block takes 256 vectors, or 4,096 keys.
pub(super) const ORDER: Grid = Grid::new(256, BLOCKS_MAX);
pub(super) const PLAN: Grid = Grid::new(512, BLOCKS_MAX);

/// Maximum blocks of tiles at a time: a block fills a multiprocessor.
pub(super) const TILE_BLOCKS_MAX: u32 = 256;
const TILES_OF_FOUR: Grid = Grid::new(5 * 128, 1);
const TILES_OF_TWO: Grid = Grid::new(3 * 128, 1);
/// Blocks of four warps decide candidates; each lane has the parts of two rows.
const DECIDE: Grid = Grid::new(128, 6);
const DECIDE_BYTES: u32 = 4 * 2 * 32 * 33 * 4;

/// All entry points.
pub(super) const FUNCTIONS: &[&str] = &[
    "vectors_nested_8",
    "vectors_nested_0",
    "vectors_pages_8",
    "vectors_pages_0",
    "vectors_half_4_2",
    "vectors_half_8_2",
    "vectors_half_8_4",
    "vectors_half_16_2",
    "vectors_float_8_2",
    "vectors_float_16_2",
    "vectors_plan",
    "vectors_keys",
    "vectors_count",
    "vectors_scan",
    "vectors_move",
    "vectors_arrange_8",
    "vectors_arrange_16",
    "vectors_supers",
    "vectors_extent",
    "vectors_bytes",
    "vectors_tiles_2",
    "vectors_tiles_4",
    "vectors_decide",
    "vectors_blocks",
];

/// Numbers that change only the speed of a join.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The units that filter, under boxes.
    pub filter: Filter,
    /// Leaves of left vectors that a warp takes at a time, under boxes: 2 or 4.
    pub leaves: usize,
    /// Maximum of blocks for each multiprocessor; blocks stride over further work.
    pub blocks_per_multiprocessor_max: u32,
}

/// Number of vectors from which on a warp takes four leaves.
const MANY: usize = 1 << 20;

impl Policy {
    /// The usual policy for `len` vectors.
    #[must_use]
    pub fn of(device: &Properties, len: usize) -> Self {
        let leaves = if len >= MANY { 4 } else { 2 };
        let filter = Filter::best(device);
        Self { filter, leaves, blocks_per_multiprocessor_max: BLOCKS_MAX }
    }

    /// The kernel for boxes of `dims` dimensions, with the leaves of the policy if there is such a
    /// kernel.
    fn kernel(&self, dims: usize) -> &'static BoxKernel {
        let fits = |kernel: &&BoxKernel| kernel.filter == self.filter && kernel.dims >= dims;
        let mut kernels = BOX_KERNELS.iter().filter(fits);
        let first = kernels.next().expect("at most 16 dimensions");
        let next = kernels.find(|next| next.dims == first.dims && next.leaves == self.leaves);
        next.unwrap_or(first)
    }

    /// Leaves of a unit under boxes.
    pub(super) fn leaves_of_unit(&self, dims: usize) -> usize {
        self.kernel(dims).leaves
    }

    /// The launch of the join of `units` units of boxes.
    pub(super) fn launch_boxes(&self, device: &Properties, dims: usize, units: u32) -> Launch {
        let &BoxKernel { name, shared_bytes, .. } = self.kernel(dims);
        let blocks = units.div_ceil(WARPS_OF_BLOCK);
        let grid = BOXES.with_blocks_max(self.blocks_per_multiprocessor_max);
        grid.launch(name, device, blocks, shared_bytes * WARPS_OF_BLOCK)
    }

    /// The launch of tiles over `strips` strips, for blocks of `groups` groups.
    pub(super) fn launch_tiles(
        device: &Properties,
        groups: usize,
        strips: u32,
        shared_bytes: u32,
    ) -> Launch {
        let of_four = groups == 4;
        let grid = if of_four { TILES_OF_FOUR } else { TILES_OF_TWO };
        let name = if of_four { "vectors_tiles_4" } else { "vectors_tiles_2" };
        grid.launch(name, device, strips.min(TILE_BLOCKS_MAX), shared_bytes)
    }

    /// The launch that decides candidates, and the launch of blocks of pairs.
    pub(super) fn launch_decide(device: &Properties) -> Launch {
        DECIDE.launch("vectors_decide", device, u32::MAX, DECIDE_BYTES)
    }

    pub(super) fn launch_blocks(device: &Properties, blocks: u32) -> Launch {
        DECIDE.launch("vectors_blocks", device, blocks.div_ceil(WARPS_OF_BLOCK), 0)
    }

    /// The launch of nested loops over `units` units, or past the pages of a directory.
    pub(super) fn launch_loops(
        &self,
        device: &Properties,
        with_pages: bool,
        dims: usize,
        units: u32,
    ) -> Launch {
        let kernel = match (with_pages, dims <= DIMS_IN_REGISTERS) {
            (false, true) => "vectors_nested_8",
            (false, false) => "vectors_nested_0",
            (true, true) => "vectors_pages_8",
            (true, false) => "vectors_pages_0",
        };
        let bytes = tile_len(dims) * stride(dims) * size_of::<f32>();
        let bytes = u32::try_from(bytes).expect("at most 48 KiB");
        let grid = LOOPS.with_blocks_max(self.blocks_per_multiprocessor_max);
        grid.launch(kernel, device, units.div_ceil(2), bytes)
    }
}

/// Dimensions of the left vector that a thread keeps in registers.
const DIMS_IN_REGISTERS: usize = 8;

/// Numbers of a right vector in shared memory.
fn stride(dims: usize) -> usize {
    dims.max(DIMS_IN_REGISTERS)
}

/// Right vectors of a tile in shared memory.
pub(super) fn tile_len(dims: usize) -> usize {
    const BYTES: usize = 48 << 10;
    (BYTES / size_of::<f32>() / stride(dims)).clamp(1, 64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::grid::small_device;

    #[test]
    fn filters_are_those_that_the_image_of_a_device_uses() {
        let of = |capability| Filter::best(&Properties { capability, ..small_device() });
        assert_eq!([(9, 0), (8, 0), (8, 9)].map(of), [Filter::Half; 3]);
        assert_eq!([(7, 0), (7, 5), (9, 1), (10, 0)].map(of), [Filter::Float; 4]);
    }

    #[test]
    fn kernels_are_those_of_the_dimensions_and_leaves() {
        let policy = |filter, leaves| Policy { filter, leaves, ..Policy::of(&small_device(), 0) };
        let name = |filter, leaves, dims| policy(filter, leaves).kernel(dims).name;
        assert_eq!(name(Filter::Half, 2, 1), "vectors_half_4_2");
        assert_eq!(name(Filter::Half, 4, 4), "vectors_half_4_2");
        assert_eq!(name(Filter::Half, 4, 5), "vectors_half_8_4");
        assert_eq!(name(Filter::Half, 2, 8), "vectors_half_8_2");
        assert_eq!(name(Filter::Half, 4, 16), "vectors_half_16_2");
        assert_eq!(name(Filter::Float, 4, 3), "vectors_float_8_2");
        assert_eq!(name(Filter::Float, 2, 9), "vectors_float_16_2");
        assert!(BOX_KERNELS.iter().all(|kernel| FUNCTIONS.contains(&kernel.name)));
    }

    #[test]
    fn tiles_fit_the_shared_memory_of_every_device() {
        for dims in [1, 8, 9, 100, 192, 193, 384, 4096] {
            let launch =
                Policy::of(&small_device(), 0).launch_loops(&small_device(), true, dims, 1);
            assert!(launch.shared_bytes <= 48 << 10, "{launch}");
            assert!(FUNCTIONS.contains(&launch.kernel) && tile_len(dims) >= 1);
        }
    }
}
