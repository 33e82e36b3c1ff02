//! The buffers of a chunk of tiles, and its steps over a device.

#![expect(unsafe_code, reason = "a contract with kernels, which nothing checks")]

use std::sync::Arc;

use super::launch::{FUNCTIONS, Policy};
use super::rows::{BitRows, RowsArgument};
use super::tile::{TILE, Tile};
use crate::cuda::error::DeviceError;
use crate::cuda::memory::{DevicePointer, Memory, Plain};
use crate::cuda::mirrored::MirroredBuffer;
use crate::cuda::module::{Images, images};
use crate::cuda::output::{BoundedOutput, OutputLimits, Written};
use crate::cuda::primitive::Primitive;
use crate::cuda::slot::Slot;
use crate::cuda::steps::{CopyIn, CopyOut, Landing, LaunchStep};
use crate::supports::Pair;

// SAFETY: two `u32` in the order of the kernels' struct (`repr(C)`).
unsafe impl Plain for Tile {}
// SAFETY: three `u32` in the order of the kernels' struct (`repr(C)`).
unsafe impl Plain for Pair {}

/// Room for pairs that a slot needs at least: those of one tile, which is finished as a whole.
pub const PAIRS_MIN: usize = (TILE * TILE) as usize;

/// Positions in buffers have 32 bits.
const COUNT_MAX: usize = 1 << 31;

/// The largest chunk that a slot takes, and the room for its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairLimits {
    /// Tiles of the chunk.
    pub tiles: usize,
    /// Room for frequent pairs, at least [`PAIRS_MIN`].
    pub pairs: usize,
}

impl PairLimits {
    /// The bytes of a slot in the device's memory, and as many of pinned memory.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.tiles.max(1) * size_of::<Tile>() + self.output().bytes::<Pair, Tile>()
    }

    fn output(&self) -> OutputLimits {
        OutputLimits { matches: self.pairs, units: self.tiles, counters: 0 }
    }
}

/// A chunk of tiles and the question about it: the pairs with a support of at least `least`.
#[derive(Clone, Debug)]
pub struct Job<'a> {
    /// Tiles of `rows`, each once.
    pub tiles: &'a [Tile],
    /// The rows of all items, on the device.
    pub rows: &'a Arc<BitRows>,
    /// The least support, at least 1.
    pub least: u32,
    /// The units that count.
    pub policy: Policy,
}

/// Frequent pairs of tiles: the buffers of a chunk.
///
/// # Cost
///
/// A tile takes `TILE * TILE` products of rows, whatever the rows hold, and reads `2 * TILE` rows.
#[derive(Debug)]
pub struct TilePairs {
    tiles: MirroredBuffer<Tile>,
    output: BoundedOutput<Pair, Tile>,
}

/// The rows of a chunk in flight, and the question about it.
#[derive(Debug)]
pub struct Kept {
    rows: Arc<BitRows>,
    least: u32,
    policy: Policy,
}

/// The answer in the buffers.
#[derive(Debug, Default)]
pub struct Answered(Written);

/// The rows and the tiles as kernels take them: `Tiles` of `supports.cu`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct TilesArgument {
    rows: RowsArgument,
    tiles: DevicePointer<Tile>,
    tile_count: u32,
    least: u32,
}

// SAFETY: the arguments are of the kernels' types. The tiles have been checked against the rows,
// which are those of whole tiles and of whole stages. Kernels write pairs within the room that they
// are told of, and leave a tile unfinished at most once, for which there is room. A block has the
// threads that the units are made for, and shared memory for the stages.
unsafe impl Primitive for TilePairs {
    const IMAGES: &'static Images = images!("supports");
    const KERNELS: &'static [&'static str] = &FUNCTIONS;

    type Limits = PairLimits;
    type Job<'a> = Job<'a>;
    type Kept = Kept;
    type Answered = Answered;

    fn bytes(limits: PairLimits) -> usize {
        limits.bytes()
    }

    fn allocate(memory: &Arc<Memory>, limits: PairLimits) -> Result<Self, DeviceError> {
        let PairLimits { tiles, pairs } = limits;
        assert!(tiles.max(pairs) <= COUNT_MAX, "{limits:?} exceed {COUNT_MAX}");
        assert!(pairs >= PAIRS_MIN, "room for {pairs} pairs; at least {PAIRS_MIN} are needed");
        Ok(Self {
            tiles: MirroredBuffer::new(memory, tiles.max(1))?,
            output: BoundedOutput::new(memory, limits.output())?,
        })
    }

    /// The tiles within the limits, and of these rows.
    fn check(limits: PairLimits, job: &Job<'_>) -> Kept {
        let Job { tiles, rows, least, policy } = job;
        assert!(*least > 0, "the least support is 1");
        let (len, max) = (tiles.len(), limits.tiles);
        assert!(len <= max, "a chunk of {len} tiles exceeds {max}");
        let end = rows.items().div_ceil(TILE);
        let wrong = tiles.iter().find(|tile| tile.left > tile.right || tile.right >= end);
        if let Some(Tile { left, right }) = wrong {
            panic!("tile ({left}, {right}) of {end} tiles of items: left <= right is needed");
        }
        Kept { rows: Arc::clone(rows), least: *least, policy: *policy }
    }

    fn fill(&mut self, job: &Job<'_>) {
        self.tiles.fill(job.tiles);
    }

    fn copy_in(&self, step: &mut CopyIn<'_>) -> Result<(), DeviceError> {
        step.send(&self.tiles)
    }

    fn launch(&self, kept: &Kept, step: &LaunchStep<'_>) -> Result<(), DeviceError> {
        self.output.clear(step)?;
        let Kept { rows, least, policy } = kept;
        let units = policy.units();
        assert!(units.are_available(step.device()), "the device has no {units} for bits");
        let tile_count = u32::try_from(self.tiles.filled()).expect("within the slot's limits");
        let (rows, tiles) = (rows.argument(), self.tiles.pointer());
        let tiles = TilesArgument { rows, tiles, tile_count, least: *least };
        step.launch(policy.launch(step.device(), tile_count), (tiles, self.output.argument()))
    }

    fn copy_out(&self, _: &Kept, step: &mut CopyOut<'_>) -> Result<(), DeviceError> {
        self.output.fetch(step)
    }

    fn land(&self, _: &Kept, landing: &mut Landing<'_>) -> Result<Answered, DeviceError> {
        self.output.land(landing).map(Answered)
    }
}

impl Slot<TilePairs> {
    /// The frequent pairs of the finished tiles of the last chunk.
    #[must_use]
    pub fn pairs(&self) -> &[Pair] {
        let (buffers, answer) = self.answered();
        buffers.output.matches(answer.0)
    }

    /// The tiles of the last chunk whose pairs did not find room.
    #[must_use]
    pub fn unfinished(&self) -> &[Tile] {
        let (buffers, answer) = self.answered();
        buffers.output.unfinished(answer.0)
    }
}
