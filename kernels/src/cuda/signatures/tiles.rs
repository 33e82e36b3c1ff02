//! The buffers of a chunk of tiles, and its steps over a device.

#![expect(unsafe_code, reason = "a contract with kernels, which nothing checks")]

use std::sync::Arc;

use super::launch::{FUNCTIONS, Task, function, launch_tiles};
use super::signed::{SignedSets, SignedSetsArgument};
use crate::cuda::driver::{DeviceError, DevicePointer, Images, Memory, images};
use crate::cuda::flights::{CopyIn, CopyOut, Landing, LaunchStep, Primitive, Slot};
use crate::cuda::grid::Grid;
use crate::cuda::mirrored::MirroredBuffer;
use crate::cuda::output::{BoundedOutput, OutputLimits, Written};
use crate::memory::Plain;
use crate::signatures::{Counted, Match, Tile};

// SAFETY: six `u32` in the order of the kernels' struct (`repr(C)`).
unsafe impl Plain for Tile {}
// SAFETY: three `u32` in the order of the kernels' struct (`repr(C)`).
unsafe impl Plain for Match {}

/// Positions in buffers have 32 bits.
const COUNT_MAX: usize = 1 << 31;

/// The primitive's own counter: pairs that the signatures have let through.
const SURVIVORS: usize = 0;
const COUNTERS: usize = 1;

/// The largest chunk that a slot takes, and the room for its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TileLimits {
    /// Tiles of the chunk.
    pub tiles: usize,
    /// Strips of all its tiles together ([`Tile::strips`]).
    pub strips: usize,
    /// Required overlaps of the chunk.
    pub required: usize,
    /// Room for matches, at least 1.
    pub matches: usize,
}

impl TileLimits {
    /// The bytes of a slot in the device's memory; a slot takes as many in pinned memory.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.tiles.max(1) * size_of::<Tile>()
            + self.required.max(1) * size_of::<u32>()
            + self.output().bytes::<Match, Tile>()
    }

    /// A strip appends at most one unfinished tile.
    fn output(&self) -> OutputLimits {
        OutputLimits { matches: self.matches, units: self.strips, counters: COUNTERS }
    }
}

/// The question about a chunk of tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Answer {
    /// The matches, as [`crate::signatures::join`] gives them.
    Matches,
    /// The number of matches, as [`crate::signatures::count`] gives it.
    Count,
}

/// A chunk of tiles and the question about it.
#[derive(Clone, Debug)]
pub struct Job<'a> {
    /// The tiles, as [`Tiles`](crate::signatures::Tiles) has them.
    pub tiles: &'a [Tile],
    /// Rows of required overlaps, by run.
    pub required: &'a [u32],
    /// The sets, on the device.
    pub sets: &'a Arc<SignedSets>,
    /// The grid: [`GRID`](super::GRID), unless it is being tuned.
    pub grid: Grid,
    /// The question.
    pub answer: Answer,
}

/// Matches of tiles: the buffers of a chunk.
#[derive(Debug)]
pub struct TileJoin {
    tiles: MirroredBuffer<Tile>,
    required: MirroredBuffer<u32>,
    output: BoundedOutput<Match, Tile>,
}

/// The sets of a chunk in flight, and the question about it.
#[derive(Debug)]
pub struct Kept {
    sets: Arc<SignedSets>,
    /// Probes of the largest tile.
    probes_max: u32,
    grid: Grid,
    answer: Answer,
}

/// The answer in the buffers.
#[derive(Debug, Default)]
pub struct Answered {
    written: Written,
    counted: Counted,
}

/// The sets and the tiles as an argument of kernels: `Tiles` of `signatures.cu`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct TilesArgument {
    sets: SignedSetsArgument,
    tiles: DevicePointer<Tile>,
    required: DevicePointer<u32>,
    tile_count: u32,
    probes_max: u32,
}

// SAFETY: the arguments are of the kernels' types. Tiles that have been checked against the runs of
// the device name only existing sets and required overlaps. Kernels write matches within the room
// that they are told of, and a strip appends at most one unfinished tile, for which there is room.
// A grid has full warps, and its launch has shared memory for the probes and queues.
unsafe impl Primitive for TileJoin {
    const IMAGES: &'static Images = images!("signatures");
    const KERNELS: &'static [&'static str] = FUNCTIONS.as_flattened();

    type Limits = TileLimits;
    type Job<'a> = Job<'a>;
    type Kept = Kept;
    type Answered = Answered;

    fn bytes(limits: TileLimits) -> usize {
        limits.bytes()
    }

    fn allocate(memory: &Arc<Memory>, limits: TileLimits) -> Result<Self, DeviceError> {
        let TileLimits { tiles, strips, required, matches } = limits;
        let all = [tiles, strips, required, matches];
        assert!(all.iter().all(|len| *len <= COUNT_MAX), "{limits:?} exceed {COUNT_MAX}");
        Ok(Self {
            tiles: MirroredBuffer::new(memory, tiles.max(1))?,
            required: MirroredBuffer::new(memory, required.max(1))?,
            output: BoundedOutput::new(memory, limits.output())?,
        })
    }

    /// Checks that the tiles are within the limits, and of these sets.
    fn check(limits: TileLimits, job: &Job<'_>) -> Kept {
        let Job { tiles, required, sets, grid, answer } = job;
        sets.runs().check(tiles, required);
        let len = tiles.len();
        let strips: usize = tiles.iter().map(|tile| tile.strips() as usize).sum();
        let fits =
            len <= limits.tiles && strips <= limits.strips && required.len() <= limits.required;
        assert!(fits, "a chunk of {len} tiles of {strips} strips exceeds {limits:?}");
        let probes = tiles.iter().map(|tile| tile.probe_end - tile.probe_begin);
        let probes_max = probes.max().unwrap_or(0);
        Kept { sets: Arc::clone(sets), probes_max, grid: *grid, answer: *answer }
    }

    fn fill(&mut self, job: &Job<'_>) {
        self.tiles.fill(job.tiles);
        self.required.fill(job.required);
    }

    fn copy_in(&self, step: &mut CopyIn<'_>) -> Result<(), DeviceError> {
        step.send(&self.tiles)?;
        step.send(&self.required)
    }

    fn launch(&self, kept: &Kept, step: &LaunchStep<'_>) -> Result<(), DeviceError> {
        self.output.clear(step)?;
        let Kept { sets, probes_max, grid, answer } = kept;
        let tile_count = u32::try_from(self.tiles.filled()).expect("within the slot's limits");
        let tiles = TilesArgument {
            sets: sets.argument(),
            tiles: self.tiles.pointer(),
            required: self.required.pointer(),
            tile_count,
            probes_max: *probes_max,
        };
        let words = sets.words();
        let shape = [*probes_max, u32::try_from(words).expect("at most 8")];
        let launch =
            |task| launch_tiles(*grid, function(task, words), step.device(), tile_count, shape);
        let output = self.output.argument();
        match answer {
            Answer::Matches => step.launch(launch(Task::Join), (tiles, output)),
            Answer::Count => step.launch(launch(Task::Count), (tiles, output)),
        }
    }

    fn copy_out(&self, kept: &Kept, step: &mut CopyOut<'_>) -> Result<(), DeviceError> {
        match kept.answer {
            Answer::Matches => self.output.fetch(step),
            Answer::Count => self.output.fetch_counters(step),
        }
    }

    fn land(&self, kept: &Kept, landing: &mut Landing<'_>) -> Result<Answered, DeviceError> {
        let survivors = self.output.own_counter(SURVIVORS);
        Ok(match kept.answer {
            Answer::Matches => {
                let written = self.output.land(landing)?;
                let matches = self.output.matches(written).len() as u64;
                Answered { written, counted: Counted { matches, survivors } }
            }
            Answer::Count => {
                let counted = Counted { matches: self.output.count(), survivors };
                Answered { written: Written::default(), counted }
            }
        })
    }
}

impl Slot<TileJoin> {
    /// The matches of the last chunk; empty if the job asked for a count only.
    #[must_use]
    pub fn matches(&self) -> &[Match] {
        let (buffers, answer) = self.answered();
        buffers.output.matches(answer.written)
    }

    /// The tiles of the last chunk whose matches did not find room.
    #[must_use]
    pub fn unfinished(&self) -> &[Tile] {
        let (buffers, answer) = self.answered();
        buffers.output.unfinished(answer.written)
    }

    /// The counts of the last chunk: its matches that found room, and the survivors of the
    /// finished tiles.
    #[must_use]
    pub fn counted(&self) -> Counted {
        self.answered().1.counted
    }
}
