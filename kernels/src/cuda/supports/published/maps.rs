//! Batmaps on a device.

#![expect(unsafe_code, reason = "structs that kernels read")]

use std::fmt;
use std::sync::Arc;

use crate::batmap::{BatMaps, Block};
use crate::cuda::driver::{DeviceBuffer, DeviceError, DevicePointer, Memory};
use crate::cuda::supports::tile::MAP_TILE;
use crate::memory::Plain;

/// The tables of a map for pairs, `D` = 2.
const TABLES: usize = 3;

/// Maximum number of blocks: the kernel adds a table to a 32-bit number of a block.
const BLOCKS_MAX: usize = 1 << 31;

/// The widest range: the sums of its flags, 128 for each, have 32 bits.
const RANGE_MAX: usize = 1 << 25;

// SAFETY: 64 bytes without padding, four `uint4` of the kernels.
unsafe impl Plain for Block {}

/// The place of a map: `Map` of `batmaps.cu`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct MapPlace {
    block: u32,
    table_bits: u32,
    failed: u32,
}

// SAFETY: three `u32` in the order of the kernels' struct (`repr(C)`).
unsafe impl Plain for MapPlace {}

/// Batmaps in a device's memory, for all chunks of tiles that name them.
///
/// # Cost
///
/// The bytes of the maps, and 12 bytes for each item. A tile costs as much as `MAP_TILE` times
/// `MAP_TILE` pairs of its widest map, so items are best sorted by the number of their tids.
pub struct DeviceMaps {
    host: Arc<BatMaps<2>>,
    blocks: DeviceBuffer<Block>,
    places: DeviceBuffer<MapPlace>,
    /// The binary logarithm of the blocks of a table of the widest map, by tile of items.
    widest: DeviceBuffer<u32>,
    len: u32,
}

impl fmt::Debug for DeviceMaps {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("DeviceMaps").field("host", &self.host).finish_non_exhaustive()
    }
}

/// The maps as an argument of kernels: `Maps` of `batmaps.cu`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct MapsArgument {
    blocks: DevicePointer<Block>,
    places: DevicePointer<MapPlace>,
    widest: DevicePointer<u32>,
    len: u32,
}

impl DeviceMaps {
    /// Copies maps to the device, and waits until they have arrived. The maps stay on the host too,
    /// which looks up failed insertions.
    ///
    /// # Errors
    ///
    /// If the maps do not fit, or the driver fails.
    ///
    /// # Panics
    ///
    /// If there are 2^31 blocks of 64 slots or more, or a range is above 2^25.
    pub fn upload(memory: &Arc<Memory>, maps: &Arc<BatMaps<2>>) -> Result<Arc<Self>, DeviceError> {
        let len = u32::try_from(maps.len()).expect("sets are numbered by 32 bits");
        // Items that fill up the last tile have an empty map after all maps.
        let end = maps.blocks().len();
        let count = end + TABLES;
        assert!(count <= BLOCKS_MAX, "{count} blocks exceed {BLOCKS_MAX}");
        let widest = (0..len).map(|map| maps.range(map)).max().unwrap_or(0);
        assert!(widest <= RANGE_MAX, "a range of {widest} exceeds {RANGE_MAX}");
        let narrow = |number: usize| u32::try_from(number).expect("at most 2^31");
        let place = |map| {
            let (block, table_bits) = maps.place(map);
            MapPlace { block: narrow(block), table_bits, failed: narrow(maps.failed_count_of(map)) }
        };
        let mut places: Vec<MapPlace> = (0..len).map(place).collect();
        let empty = MapPlace { block: narrow(end), table_bits: 0, failed: 0 };
        places.resize(places.len().next_multiple_of(MAP_TILE as usize), empty);
        let tiles = places.chunks(MAP_TILE as usize);
        let widest: Vec<u32> = tiles
            .map(|tile| tile.iter().map(|place| place.table_bits).max().unwrap_or(0))
            .collect();
        let mut this = Self {
            host: Arc::clone(maps),
            blocks: memory.device_buffer(count)?,
            places: memory.device_buffer(places.len())?,
            widest: memory.device_buffer(widest.len())?,
            len,
        };
        this.blocks.upload(maps.blocks())?;
        this.places.upload(&places)?;
        this.widest.upload(&widest)?;
        Ok(Arc::new(this))
    }

    /// The bytes of maps in the device's memory.
    #[must_use]
    pub fn bytes_of(maps: &BatMaps<2>) -> usize {
        let tiles = maps.len().div_ceil(MAP_TILE as usize);
        let places = tiles * MAP_TILE as usize * size_of::<MapPlace>();
        let blocks = maps.bytes() + TABLES * size_of::<Block>();
        blocks + places.max(1) + (tiles * size_of::<u32>()).max(1)
    }

    /// The number of maps.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether there is no map.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The maps on the host.
    #[must_use]
    pub fn host(&self) -> &Arc<BatMaps<2>> {
        &self.host
    }

    pub(super) fn tiles(&self) -> u32 {
        self.len.div_ceil(MAP_TILE)
    }

    pub(super) fn argument(&self) -> MapsArgument {
        MapsArgument {
            blocks: self.blocks.pointer(),
            places: self.places.pointer(),
            widest: self.widest.pointer(),
            len: self.len,
        }
    }
}
