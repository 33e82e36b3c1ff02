//! The buffers of a chunk of tiles, over any data on the device.

#![expect(unsafe_code, reason = "structs that kernels read and write")]

use std::sync::Arc;

use super::tile::Tile;
use crate::cuda::driver::{DeviceError, DevicePointer, Launch, Memory};
use crate::cuda::flights::{CopyIn, CopyOut, Landing, LaunchStep};
use crate::cuda::mirrored::MirroredBuffer;
use crate::cuda::output::{BoundedOutput, OutputLimits, Written};
use crate::memory::Plain;
use crate::supports::Pair;

// SAFETY: two `u32` in the order of the kernels' struct (`repr(C)`).
unsafe impl Plain for Tile {}
// SAFETY: three `u32` in the order of the kernels' struct (`repr(C)`).
unsafe impl Plain for Pair {}

/// Positions in buffers have 32 bits.
pub(super) const COUNT_MAX: usize = 1 << 31;

/// The largest chunk that a slot takes, and the room for its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairLimits {
    /// Tiles of the chunk.
    pub tiles: usize,
    /// Room for frequent pairs: at least the pairs of one tile, which is finished as a whole.
    pub pairs: usize,
}

impl PairLimits {
    /// The bytes of a slot in the device's memory; a slot takes as many in pinned memory.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.tiles.max(1) * size_of::<Tile>() + self.output().bytes::<Pair, Tile>()
    }

    fn output(&self) -> OutputLimits {
        OutputLimits { matches: self.pairs, units: self.tiles, counters: 0 }
    }
}

/// Units of tiles that a block takes in a launch, one after another. Blocks begin a launch
/// together, and neighbours read the same rows at the same time, once from memory. Within a long
/// launch blocks drift apart, and the rows of all their tiles do not fit the second-level cache.
const UNITS_OF_BLOCK: u32 = 48;

/// The units of a launch: `UnitRange` of `group_tiles.cuh`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct UnitRange {
    begin: u32,
    end: u32,
}

/// The tiles of a chunk and the room for their pairs.
#[derive(Debug)]
pub(super) struct TileBuffers {
    tiles: MirroredBuffer<Tile>,
    /// Number of pairs of tiles at the front; the tiles of a pair have the same left items.
    paired: u32,
    output: BoundedOutput<Pair, Tile>,
}

/// The tiles of a source as an argument of kernels: `Tiles` of `supports.cuh`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct TilesArgument<S> {
    source: S,
    tiles: DevicePointer<Tile>,
    tile_count: u32,
    least: u32,
}

impl TileBuffers {
    /// Buffers for tiles of `pairs_min` pairs at most.
    pub(super) fn new(
        memory: &Arc<Memory>,
        limits: PairLimits,
        pairs_min: usize,
    ) -> Result<Self, DeviceError> {
        let PairLimits { tiles, pairs } = limits;
        assert!(tiles.max(pairs) <= COUNT_MAX, "{limits:?} exceed {COUNT_MAX}");
        assert!(pairs >= pairs_min, "room for {pairs} pairs; at least {pairs_min} are needed");
        Ok(Self {
            tiles: MirroredBuffer::new(memory, tiles.max(1))?,
            paired: 0,
            output: BoundedOutput::new(memory, limits.output())?,
        })
    }

    /// Checks tiles against the limits and against data of `end` tiles of items.
    pub(super) fn check(limits: PairLimits, tiles: &[Tile], end: u32, least: u32) {
        assert!(least > 0, "the least support is 1");
        let (len, max) = (tiles.len(), limits.tiles);
        assert!(len <= max, "a chunk of {len} tiles exceeds {max}");
        let wrong = tiles.iter().find(|tile| tile.left > tile.right || tile.right >= end);
        if let Some(Tile { left, right }) = wrong {
            panic!("tile ({left}, {right}) of {end} tiles of items: left <= right is needed");
        }
    }

    pub(super) fn fill(&mut self, tiles: &[Tile]) {
        self.tiles.fill(tiles);
    }

    /// Fills in pairs of neighbouring tiles with the same left items, and then all single tiles.
    pub(super) fn fill_paired(&mut self, tiles: &[Tile]) {
        let mut singles = Vec::new();
        self.tiles.fill_from(tiles.len(), |places| {
            let mut at = 0;
            let mut rest = tiles;
            while let [first, after @ ..] = rest {
                rest = match after {
                    [second, rest @ ..] if second.left == first.left => {
                        places[at..at + 2].copy_from_slice(&[*first, *second]);
                        at += 2;
                        rest
                    }
                    _ => {
                        singles.push(*first);
                        after
                    }
                };
            }
            places[at..].copy_from_slice(&singles);
        });
        let paired = (tiles.len() - singles.len()) / 2;
        self.paired = u32::try_from(paired).expect("within the slot's limits");
    }

    pub(super) fn copy_in(&self, step: &mut CopyIn<'_>) -> Result<(), DeviceError> {
        step.send(&self.tiles)
    }

    /// Queues a kernel over the tiles; `launch` gives its grid for a number of tiles.
    pub(super) fn launch<S: Copy>(
        &self,
        step: &LaunchStep<'_>,
        launch: impl FnOnce(u32) -> Launch,
        source: S,
        least: u32,
    ) -> Result<(), DeviceError> {
        self.output.clear(step)?;
        let tiles = self.argument(source, least);
        step.launch(launch(tiles.tile_count), (tiles, self.output.argument()))
    }

    /// Queues kernels, one after another, over tiles that were filled in as pairs; `launch` gives
    /// the grid for a number of units.
    pub(super) fn launch_paired<S: Copy>(
        &self,
        step: &LaunchStep<'_>,
        launch: impl Fn(u32) -> Launch,
        source: S,
        least: u32,
    ) -> Result<(), DeviceError> {
        self.output.clear(step)?;
        let tiles = self.argument(source, least);
        let (units, output) = (tiles.tile_count - self.paired, self.output.argument());
        let most = launch(units).blocks * UNITS_OF_BLOCK;
        let mut begin = 0;
        while begin < units {
            let end = units.min(begin + most);
            let range = UnitRange { begin, end };
            step.launch(launch(end - begin), (tiles, output, self.paired, range))?;
            begin = end;
        }
        Ok(())
    }

    fn argument<S: Copy>(&self, source: S, least: u32) -> TilesArgument<S> {
        let tile_count = u32::try_from(self.tiles.filled()).expect("within the slot's limits");
        TilesArgument { source, tiles: self.tiles.pointer(), tile_count, least }
    }

    pub(super) fn copy_out(&self, step: &mut CopyOut<'_>) -> Result<(), DeviceError> {
        self.output.fetch(step)
    }

    pub(super) fn land(&self, landing: &mut Landing<'_>) -> Result<Written, DeviceError> {
        self.output.land(landing)
    }

    pub(super) fn pairs(&self, written: Written) -> &[Pair] {
        self.output.matches(written)
    }

    pub(super) fn unfinished(&self, written: Written) -> &[Tile] {
        self.output.unfinished(written)
    }
}
