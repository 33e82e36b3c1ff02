//! Chunks of tiles of rows, and their steps over a device.

#![expect(unsafe_code, reason = "a contract with kernels, which nothing checks")]

use std::sync::Arc;

use super::chunk::{PairLimits, TileBuffers};
use super::launch::{FUNCTIONS, Policy, Units};
use super::rows::BitRows;
use super::tile::{TILE, Tile};
use crate::cuda::driver::{DeviceError, Images, Memory, images};
use crate::cuda::flights::{CopyIn, CopyOut, Landing, LaunchStep, Primitive, Slot};
use crate::cuda::output::Written;
use crate::supports::Pair;

/// Minimum room of a slot: the pairs of one tile.
pub const PAIRS_MIN: usize = (TILE * TILE) as usize;

/// A chunk of tiles of [`TILE`] items and the question about it: the pairs with a support of at
/// least `least`.
#[derive(Clone, Debug)]
pub struct Job<'a> {
    /// Tiles of `rows`, without repetition.
    pub tiles: &'a [Tile],
    /// The rows of all items, on the device.
    pub rows: &'a Arc<BitRows>,
    /// The least support, at least 1.
    pub least: u32,
    /// The units that count.
    pub policy: Policy,
}

/// Frequent pairs of tiles of rows: the buffers of a chunk.
///
/// # Cost
///
/// A tile takes `TILE * TILE` products of rows, whatever their bits, and reads `2 * TILE` rows.
#[derive(Debug)]
pub struct TilePairs(TileBuffers);

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

// SAFETY: the arguments are of the kernels' types. The tiles have been checked against the rows,
// which have whole tiles and whole stages. Kernels write pairs within the room that they
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
        TileBuffers::new(memory, limits, PAIRS_MIN).map(Self)
    }

    /// Checks that the tiles are within the limits, and of these rows.
    fn check(limits: PairLimits, job: &Job<'_>) -> Kept {
        let &Job { tiles, rows, least, policy } = job;
        TileBuffers::check(limits, tiles, rows.items().div_ceil(TILE), least);
        Kept { rows: Arc::clone(rows), least, policy }
    }

    fn fill(&mut self, job: &Job<'_>) {
        match job.policy.units() {
            Units::WarpGroup => self.0.fill_paired(job.tiles),
            Units::Tensor | Units::Integer => self.0.fill(job.tiles),
        }
    }

    fn copy_in(&self, step: &mut CopyIn<'_>) -> Result<(), DeviceError> {
        self.0.copy_in(step)
    }

    fn launch(&self, kept: &Kept, step: &LaunchStep<'_>) -> Result<(), DeviceError> {
        let Kept { rows, least, policy } = kept;
        let (units, device) = (policy.units(), step.device());
        assert!(units.are_available(device), "the device has no {units} for bits");
        step.wait(rows.built())?;
        let (rows, launch) = (rows.argument(), |blocks| policy.launch(device, blocks));
        match units {
            Units::WarpGroup => self.0.launch_paired(step, launch, rows, *least),
            Units::Tensor | Units::Integer => self.0.launch(step, launch, rows, *least),
        }
    }

    fn copy_out(&self, _: &Kept, step: &mut CopyOut<'_>) -> Result<(), DeviceError> {
        self.0.copy_out(step)
    }

    fn land(&self, _: &Kept, landing: &mut Landing<'_>) -> Result<Answered, DeviceError> {
        self.0.land(landing).map(Answered)
    }
}

impl Slot<TilePairs> {
    /// The frequent pairs of the finished tiles of the last chunk.
    #[must_use]
    pub fn pairs(&self) -> &[Pair] {
        let (buffers, answer) = self.answered();
        buffers.0.pairs(answer.0)
    }

    /// The tiles of the last chunk whose pairs did not find room.
    #[must_use]
    pub fn unfinished(&self) -> &[Tile] {
        let (buffers, answer) = self.answered();
        buffers.0.unfinished(answer.0)
    }
}
