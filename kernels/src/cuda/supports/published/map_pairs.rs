//! Chunks of tiles of batmaps, and their steps over a device.

#![expect(unsafe_code, reason = "a contract with kernels, which nothing checks")]

use std::sync::Arc;

use super::maps::DeviceMaps;
use crate::batmap::{BatMaps, failed_support};
use crate::cuda::driver::{DeviceError, Images, Memory, images};
use crate::cuda::flights::{CopyIn, CopyOut, Landing, LaunchStep, Primitive, Slot};
use crate::cuda::output::Written;
use crate::cuda::supports::chunk::{PairLimits, TileBuffers};
use crate::cuda::supports::launch::{MAPS_KERNEL, launch_maps};
use crate::cuda::supports::tile::{MAP_TILE, Tile};
use crate::supports::Pair;

/// Minimum room of a slot of maps: the pairs of one tile.
pub const MAP_PAIRS_MIN: usize = (MAP_TILE * MAP_TILE) as usize;

/// A chunk of tiles of [`MAP_TILE`] items and the question about it: the pairs with a support of at
/// least `least`.
#[derive(Clone, Debug)]
pub struct MapJob<'a> {
    /// Tiles of `maps`, without repetition.
    pub tiles: &'a [Tile],
    /// The maps of all items, on the device.
    pub maps: &'a Arc<DeviceMaps>,
    /// The least support, at least 1.
    pub least: u32,
    /// Maximum of blocks for each multiprocessor:
    /// [`BLOCKS_MAX`](crate::cuda::supports::BLOCKS_MAX), unless it is being tuned.
    pub blocks_max: u32,
}

/// Frequent pairs of tiles of batmaps: the buffers of a chunk.
///
/// # Cost
///
/// A tile takes `MAP_TILE * MAP_TILE` comparisons of its widest map, with 3 B of both maps for each
/// position. A pair whose items have failed insertions is written if these could complete its
/// support; the host then looks the insertions up.
#[derive(Debug)]
pub struct MapPairs(TileBuffers);

/// The maps of a chunk in flight, and the question about it.
#[derive(Debug)]
pub struct MapsKept {
    maps: Arc<DeviceMaps>,
    least: u32,
    blocks_max: u32,
}

/// The answer in the buffers, and the maps on the host that complete it. The maps on the device may
/// be dropped.
#[derive(Debug, Default)]
pub struct MapsAnswered {
    written: Written,
    host: Option<HostMaps>,
}

/// The maps on the host, and the least support of a pair.
#[derive(Debug)]
struct HostMaps {
    maps: Arc<BatMaps<2>>,
    least: u32,
}

// SAFETY: the arguments are of the kernel's types. The tiles have been checked against the maps,
// which are filled up to whole tiles and name the places of their own blocks. The kernel writes
// pairs within the room that it is told of, and leaves a tile unfinished at most once, for which
// there is room. A block has the threads that the kernel is made for, and shared memory for the
// stages.
unsafe impl Primitive for MapPairs {
    const IMAGES: &'static Images = images!("batmaps");
    const KERNELS: &'static [&'static str] = &[MAPS_KERNEL];

    type Limits = PairLimits;
    type Job<'a> = MapJob<'a>;
    type Kept = MapsKept;
    type Answered = MapsAnswered;

    fn bytes(limits: PairLimits) -> usize {
        limits.bytes()
    }

    fn allocate(memory: &Arc<Memory>, limits: PairLimits) -> Result<Self, DeviceError> {
        TileBuffers::new(memory, limits, MAP_PAIRS_MIN).map(Self)
    }

    /// Checks that the tiles are within the limits, and of these maps.
    fn check(limits: PairLimits, job: &MapJob<'_>) -> MapsKept {
        let &MapJob { tiles, maps, least, blocks_max } = job;
        TileBuffers::check(limits, tiles, maps.tiles(), least);
        MapsKept { maps: Arc::clone(maps), least, blocks_max }
    }

    fn fill(&mut self, job: &MapJob<'_>) {
        self.0.fill(job.tiles);
    }

    fn copy_in(&self, step: &mut CopyIn<'_>) -> Result<(), DeviceError> {
        self.0.copy_in(step)
    }

    fn launch(&self, kept: &MapsKept, step: &LaunchStep<'_>) -> Result<(), DeviceError> {
        let launch = |tiles| launch_maps(step.device(), tiles, kept.blocks_max);
        self.0.launch(step, launch, kept.maps.argument(), kept.least)
    }

    fn copy_out(&self, _: &MapsKept, step: &mut CopyOut<'_>) -> Result<(), DeviceError> {
        self.0.copy_out(step)
    }

    fn land(
        &self,
        kept: &MapsKept,
        landing: &mut Landing<'_>,
    ) -> Result<MapsAnswered, DeviceError> {
        let written = self.0.land(landing)?;
        let host = HostMaps { maps: Arc::clone(kept.maps.host()), least: kept.least };
        Ok(MapsAnswered { written, host: Some(host) })
    }
}

impl HostMaps {
    /// The pair with the common elements that a map lacks added to its support, if the sum
    /// suffices.
    fn complete(&self, pair: Pair) -> Option<Pair> {
        let failed = failed_support(&self.maps, [pair.left, pair.right]);
        let support = pair.support + failed;
        (support >= self.least).then_some(Pair { support, ..pair })
    }
}

impl Slot<MapPairs> {
    /// The frequent pairs of the finished tiles of the last chunk; supports are exact.
    ///
    /// # Cost
    ///
    /// A look-up in three slots for each failed insertion of both items of a pair.
    pub fn pairs(&self) -> impl Iterator<Item = Pair> + '_ {
        let (buffers, MapsAnswered { written, host }) = self.answered();
        host.iter().flat_map(|host| {
            let pairs = buffers.0.pairs(*written).iter();
            pairs.filter_map(|&pair| host.complete(pair))
        })
    }

    /// The tiles of the last chunk whose pairs did not find room.
    #[must_use]
    pub fn unfinished(&self) -> &[Tile] {
        let (buffers, answer) = self.answered();
        buffers.0.unfinished(answer.written)
    }
}
