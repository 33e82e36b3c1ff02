//! Units that count, entry points and grids.

use std::fmt;

use super::lists::BLOCK;
use super::tile::{MAP_TILE, TILE};
use crate::cuda::driver::{Launch, Properties};
use crate::cuda::grid::Grid;

/// The kernel that makes rows, and its grid.
pub(super) const ROWS: Grid = Grid::new(128, BLOCKS_MAX);
const ROWS_KERNEL: &str = "supports_rows";

/// The kernel that compares maps, and its grid: a block for each tile, unless it is being tuned.
const MAPS: Grid = Grid::new(256, BLOCKS_MAX);
pub(super) const MAPS_KERNEL: &str = "batmaps_pairs";

/// The kernel that counts in sparse rows, and its grid: a block for each strip.
const SPARSE: Grid = Grid::new(256, BLOCKS_MAX);
pub(super) const SPARSE_KERNEL: &str = "sparse_rows";

/// Bytes for the counts of the warps of a block that counts in sparse rows, and for the place of
/// their pairs.
const SPARSE_COUNTS_BYTES: u32 = 9 * 8;

/// The usual maximum of blocks for each multiprocessor.
pub const BLOCKS_MAX: u32 = 4096;

/// The bytes of the stages of a block with tiles of a side: 3 stages of 64 bytes of each item.
const fn stages_bytes(side: u32) -> u32 {
    3 * 2 * side * 64
}

/// Shared memory of a block of warp groups: `GroupShared` of `group_tiles.cuh`.
const GROUP_SHARED_BYTES: u32 = 197_632;

/// All entry points for rows.
pub(super) const FUNCTIONS: [&str; 4] =
    [ROWS_KERNEL, "supports_warp_group", "supports_tensor", "supports_integer"];

/// The units of a device that find supports. All units find the same supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Units {
    /// Tensor cores by warp groups, which read rows from shared memory, in devices of capability
    /// 9.0. Two tiles with the same left items are found together.
    WarpGroup,
    /// Tensor cores by warps, which multiply bits in devices of capability 8.0 to 9.0.
    Tensor,
    /// Units for integers, which every device has.
    Integer,
}

impl Units {
    /// All units, the fastest first.
    pub const ALL: &'static [Self] = &[Self::WarpGroup, Self::Tensor, Self::Integer];

    /// Whether a device has these units, and its image uses them.
    #[must_use]
    pub fn are_available(self, device: &Properties) -> bool {
        // Images for other capabilities are compiled from PTX for 7.0, which has no product of
        // bits.
        match self {
            Self::WarpGroup => device.capability == (9, 0),
            Self::Tensor => matches!(device.capability, (8, _) | (9, 0)),
            Self::Integer => true,
        }
    }

    /// The fastest units that a device has.
    ///
    /// # Panics
    ///
    /// Never: every device has integer units.
    #[must_use]
    pub fn best(device: &Properties) -> Self {
        let available = Self::ALL.iter().find(|units| units.are_available(device));
        *available.expect("every device has integer units")
    }

    /// Blocks have as many threads as the kernel has sums for; with warp groups a block has one
    /// more warp, which copies. Such a block fills a multiprocessor, and copies for its next tiles
    /// in time.
    const fn grid(self) -> Grid {
        match self {
            Self::WarpGroup => Grid::new(288, 1),
            Self::Tensor => Grid::new(128, BLOCKS_MAX),
            Self::Integer => Grid::new(256, BLOCKS_MAX),
        }
    }

    const fn function(self) -> &'static str {
        match self {
            Self::WarpGroup => "supports_warp_group",
            Self::Tensor => "supports_tensor",
            Self::Integer => "supports_integer",
        }
    }
}

impl fmt::Display for Units {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::WarpGroup => "warp groups",
            Self::Tensor => "tensor cores",
            Self::Integer => "integer units",
        })
    }
}

/// The units that count, and the cut of the tiles into blocks. A policy changes only the speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    units: Units,
    grid: Grid,
}

impl Policy {
    /// The usual policy of units: a block for each tile; with warp groups, a block for each
    /// multiprocessor.
    #[must_use]
    pub const fn of(units: Units) -> Self {
        Self { units, grid: units.grid() }
    }

    /// Changes the maximum of blocks for each multiprocessor; a block then takes several tiles.
    #[must_use]
    pub const fn with_blocks_max(self, blocks_per_multiprocessor_max: u32) -> Self {
        Self { grid: self.grid.with_blocks_max(blocks_per_multiprocessor_max), ..self }
    }

    /// The units.
    #[must_use]
    pub const fn units(&self) -> Units {
        self.units
    }

    /// The launch for work of `blocks` blocks: tiles, or units of tiles with warp groups.
    pub(super) fn launch(&self, device: &Properties, blocks: u32) -> Launch {
        let shared_bytes = match self.units {
            Units::WarpGroup => GROUP_SHARED_BYTES,
            Units::Tensor | Units::Integer => stages_bytes(TILE),
        };
        self.grid.launch(self.units.function(), device, blocks, shared_bytes)
    }
}

/// The launch for `parts` parts of rows, each of a block of transactions.
pub(super) fn launch_rows(grid: Grid, device: &Properties, parts: u32) -> Launch {
    grid.launch(ROWS_KERNEL, device, parts, BLOCK / 8)
}

/// The launch for `tiles` tiles of maps, with at most `blocks_max` blocks for each multiprocessor.
pub(super) fn launch_maps(device: &Properties, tiles: u32, blocks_max: u32) -> Launch {
    MAPS.with_blocks_max(blocks_max).launch(MAPS_KERNEL, device, tiles, stages_bytes(MAP_TILE))
}

/// The launch for `strips` strips of at most `width` left items.
pub(super) fn launch_sparse(device: &Properties, strips: u32, width: u32) -> Launch {
    SPARSE.launch(SPARSE_KERNEL, device, strips, SPARSE_COUNTS_BYTES + 4 * width)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::grid::small_device;

    #[test]
    fn units_are_those_that_the_image_of_a_device_uses() {
        let of = |capability| Units::best(&Properties { capability, ..small_device() });
        assert_eq!(of((9, 0)), Units::WarpGroup);
        assert_eq!([(8, 0), (8, 9)].map(of), [Units::Tensor; 2]);
        assert_eq!([(7, 0), (7, 5), (9, 1), (10, 0)].map(of), [Units::Integer; 4]);
    }

    #[test]
    fn shared_memory_is_what_the_devices_of_the_units_give() {
        for units in Units::ALL {
            let launch = Policy::of(*units).with_blocks_max(3).launch(&small_device(), 100);
            let most = if *units == Units::WarpGroup { 227 << 10 } else { 48 << 10 };
            assert!(launch.shared_bytes <= most && launch.blocks == 6, "{launch}");
            assert!(FUNCTIONS.contains(&launch.kernel));
        }
        assert_eq!(launch_maps(&small_device(), 9, 1).blocks, 2);
        assert_eq!(launch_maps(&small_device(), 9, BLOCKS_MAX).shared_bytes, 24 << 10);
        assert_eq!(launch_rows(ROWS, &small_device(), 0).shared_bytes, 8 << 10);
    }
}
