//! The buffers of one chunk of tiles, and its flight over the device.

#![expect(unsafe_code, reason = "work that a device does while the host goes on")]

use std::ffi::c_void;
use std::sync::Arc;

use super::{Answer, Joiner, Policy, SignedSets, Step};
use crate::cuda::both::Both;
use crate::cuda::error::DeviceError;
use crate::cuda::flight::{self, SlotBuffers};
use crate::cuda::lane::{Lane, Timeline, Times};
use crate::cuda::memory::{Memory, Plain};
use crate::cuda::stream::Stream;
use crate::signatures::{Counted, Match, Tile};

// SAFETY: six `u32` in the order of the kernels' struct (`repr(C)`).
unsafe impl Plain for Tile {}
// SAFETY: three `u32` in the order of the kernels' struct (`repr(C)`).
unsafe impl Plain for Match {}

/// Positions in buffers have 32 bits.
const COUNT_MAX: usize = 1 << 31;

/// What kernels count: `Counter` of `signatures.cu`.
const COUNTERS: usize = 3;
const MATCHES: usize = 0;
const UNFINISHED: usize = 1;
const SURVIVORS: usize = 2;

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
    /// What a slot takes of the device's memory, and as much of pinned memory.
    #[must_use]
    pub fn bytes(&self) -> usize {
        (self.tiles.max(1) + self.strips.max(1)) * size_of::<Tile>()
            + self.required.max(1) * size_of::<u32>()
            + self.matches * size_of::<Match>()
            + COUNTERS * size_of::<u64>()
    }

    /// What comes back from the device for a chunk with so many unfinished tiles.
    #[must_use]
    pub fn bytes_back(&self, answer: Answer, unfinished: usize) -> usize {
        let matches = if answer == Answer::Matches { self.matches } else { 0 };
        COUNTERS * size_of::<u64>() + matches * size_of::<Match>() + unfinished * size_of::<Tile>()
    }
}

/// The buffers and events of one chunk at a time.
#[derive(Debug)]
pub struct Slot {
    limits: TileLimits,
    tiles: Both<Tile>,
    required: Both<u32>,
    matches: Both<Match>,
    unfinished: Both<Tile>,
    counters: Both<u64>,
    timeline: Timeline,
    answered: Answered,
}

/// What the buffers hold.
#[derive(Debug, Default)]
struct Answered {
    matches: usize,
    unfinished: usize,
    counted: Counted,
    times: Times,
}

/// What a flight is to do.
#[derive(Clone, Debug)]
pub struct Job<'a> {
    /// The tiles, as [`Tiles`](crate::signatures::Tiles) has them.
    pub tiles: &'a [Tile],
    /// Rows of required overlaps, by run.
    pub required: &'a [u32],
    /// The sets, on the device.
    pub sets: &'a Arc<SignedSets>,
    /// The grid; the default unless it is being tuned.
    pub policy: Policy,
    /// What is asked.
    pub answer: Answer,
}

/// The sets and the tiles as kernels take them; `Tiles` of `signatures.cu`.
#[derive(Debug)]
#[repr(C)]
struct TilesArgument {
    offsets: u64,
    tokens: u64,
    runs: u64,
    signatures: u64,
    tiles: u64,
    required: u64,
    tile_count: u32,
    probes_max: u32,
}

impl Slot {
    /// Buffers for chunks up to `limits`.
    ///
    /// # Errors
    ///
    /// If they do not fit the budgets, or the driver fails.
    ///
    /// # Panics
    ///
    /// If the limits are beyond 2^31, or there is room for no match.
    pub fn new(memory: &Arc<Memory>, limits: TileLimits) -> Result<Self, DeviceError> {
        let TileLimits { tiles, strips, required, matches } = limits;
        let all = [tiles, strips, required, matches];
        assert!(all.iter().all(|len| *len <= COUNT_MAX), "{limits:?} are beyond {COUNT_MAX}");
        assert!(matches > 0, "room for no match");
        Ok(Self {
            limits,
            tiles: Both::new(memory, tiles.max(1))?,
            required: Both::new(memory, required.max(1))?,
            matches: Both::new(memory, matches)?,
            unfinished: Both::new(memory, strips.max(1))?,
            counters: Both::new(memory, COUNTERS)?,
            timeline: Timeline::new(memory.device())?,
            answered: Answered::default(),
        })
    }

    /// The matches of the last chunk, if it asked for them.
    #[must_use]
    pub fn matches(&self) -> &[Match] {
        &self.matches.host[..self.answered.matches]
    }

    /// The tiles that the last chunk had no room for the matches of.
    #[must_use]
    pub fn unfinished(&self) -> &[Tile] {
        &self.unfinished.host[..self.answered.unfinished]
    }

    /// What the last chunk has counted: its matches that there was room for, and the survivors of
    /// what is done.
    #[must_use]
    pub fn counted(&self) -> Counted {
        self.answered.counted
    }

    /// What the last chunk took.
    #[must_use]
    pub fn times(&self) -> Times {
        self.answered.times
    }

    /// Queues a chunk: copies in, the kernel, copies out. Returns at once.
    ///
    /// # Cost
    ///
    /// On the host one copy of the chunk and a look at each tile; over the bus 24 B a tile and 4 B
    /// a required overlap, and back the whole room for matches, 12 B each, or 24 B for a count.
    ///
    /// # Errors
    ///
    /// If the driver refuses any of it; the slot is then freed, when the device has let go of it.
    ///
    /// # Panics
    ///
    /// If the chunk exceeds the slot's limits, or its tiles are not of these sets.
    pub fn submit(
        mut self,
        lane: &Arc<Lane>,
        joiner: &Arc<Joiner>,
        job: &Job<'_>,
    ) -> Result<Flight, DeviceError> {
        let Job { tiles, required, .. } = job;
        job.sets.runs.check(tiles, required);
        let strips: usize = tiles.iter().map(|tile| tile.strips() as usize).sum();
        let fits = tiles.len() <= self.limits.tiles
            && strips <= self.limits.strips
            && required.len() <= self.limits.required;
        let len = tiles.len();
        assert!(fits, "a chunk of {len} tiles of {strips} strips exceeds {:?}", self.limits);
        self.answered = Answered::default();
        let sets = Arc::clone(job.sets);
        let kept = Kept { joiner: Arc::clone(joiner), sets, answer: job.answer };
        Flight::begin(self, lane, kept, |slot, kept, lane| slot.queue(kept, lane, job))
    }

    /// Queues the three steps, for a flight: it keeps all buffers and the sets until the device has
    /// let go of them.
    fn queue(&mut self, kept: &Kept, lane: &Lane, job: &Job<'_>) -> Result<(), DeviceError> {
        let Job { tiles, required, .. } = job;
        self.tiles.fill(tiles);
        self.required.fill(required);
        let Self { tiles: tile_buffer, required: required_buffer, timeline, .. } = self;
        timeline.copy_in(lane, |stream| {
            // SAFETY: the flight keeps it, as said above.
            unsafe { tile_buffer.send(stream, tiles.len()) }?;
            // SAFETY: as said above.
            unsafe { required_buffer.send(stream, required.len()) }
        })?;
        let argument = argument(self, &kept.sets, job);
        let room = self.limits.matches;
        let Self { matches, unfinished, counters, timeline, .. } = self;
        let outputs =
            [&matches.device.pointer(), &unfinished.device.pointer(), &counters.device.pointer()]
                .map(|pointer| *pointer);
        timeline.kernel(lane, |stream| {
            // SAFETY: as said above.
            unsafe { stream.clear(&mut counters.device) }?;
            launch(&kept.joiner, stream, job, (argument, outputs, room))
        })?;
        timeline.copy_out(lane, |stream| {
            // SAFETY: as said above.
            unsafe { counters.fetch(stream, COUNTERS) }?;
            match job.answer {
                // How many there are is not known before, and to wait for it costs more.
                // SAFETY: as said above.
                Answer::Matches => unsafe { matches.fetch(stream, room) },
                Answer::Count => Ok(()),
            }
        })
    }
}

/// What the device needs besides the buffers of a chunk, and what was asked.
#[derive(Debug)]
pub struct Kept {
    joiner: Arc<Joiner>,
    sets: Arc<SignedSets>,
    answer: Answer,
}

impl SlotBuffers for Slot {
    type Kept = Kept;

    fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// Unfinished tiles are fetched now.
    fn land(&mut self, kept: &Kept, lane: &Lane, times: Times) -> Result<(), DeviceError> {
        let counters = &self.counters.host;
        let (all, survivors) = (counters[MATCHES], counters[SURVIVORS]);
        let left = usize::try_from(counters[UNFINISHED]).expect("at most a tile a strip");
        let is_count = kept.answer == Answer::Count;
        let matches = if is_count { all } else { all.min(self.limits.matches as u64) };
        if left > 0 {
            let Self { unfinished, timeline, .. } = self;
            // SAFETY: as in `queue`; it is waited for.
            timeline.copy_out(lane, |stream| unsafe { unfinished.fetch(stream, left) })?;
            timeline.wait()?;
        }
        let written =
            if is_count { 0 } else { usize::try_from(matches).expect("at most the room") };
        let counted = Counted { matches, survivors };
        self.answered = Answered { matches: written, unfinished: left, counted, times };
        Ok(())
    }
}

/// A chunk on its way.
pub type Flight = flight::Flight<Slot>;

fn argument(slot: &Slot, signed: &SignedSets, job: &Job<'_>) -> TilesArgument {
    let tiles = job.tiles;
    let probes = tiles.iter().map(|tile| tile.probe_end - tile.probe_begin);
    TilesArgument {
        offsets: signed.sets.offsets.pointer(),
        tokens: signed.sets.tokens.pointer(),
        runs: signed.runs_there.pointer(),
        signatures: signed.signatures.pointer(),
        tiles: slot.tiles.device.pointer(),
        required: slot.required.device.pointer(),
        tile_count: u32::try_from(tiles.len()).expect("within the slot's limits"),
        probes_max: probes.max().unwrap_or(0),
    }
}

/// Queues the kernel; the outputs are the matches, the unfinished tiles and the counters.
fn launch(
    joiner: &Joiner,
    stream: &Stream,
    job: &Job<'_>,
    (mut tiles, [mut matches, mut unfinished, mut counters], room): (
        TilesArgument,
        [u64; 3],
        usize,
    ),
) -> Result<(), DeviceError> {
    let mut room = room as u64;
    let step = match job.answer {
        Answer::Matches => Step::Join,
        Answer::Count => Step::Count,
    };
    let words = job.sets.words;
    let function = joiner.function(words, step);
    let width = u32::try_from(words).expect("at most 8");
    let device = joiner.device().properties();
    let shape = [tiles.probes_max, width];
    let launch = job.policy.launch_tiles(function.name(), device, tiles.tile_count, shape);
    let tiles: *mut c_void = (&raw mut tiles).cast();
    let counters: *mut c_void = (&raw mut counters).cast();
    let mut join = [
        tiles,
        (&raw mut matches).cast(),
        (&raw mut unfinished).cast(),
        counters,
        (&raw mut room).cast(),
    ];
    let mut count = [tiles, counters];
    let arguments = match job.answer {
        Answer::Matches => &mut join[..],
        Answer::Count => &mut count[..],
    };
    // SAFETY: the arguments are of the kernel's types; the tiles have been checked against the sets
    // and the runs that the device has, so that all they name lies within them and the required
    // overlaps; a strip appends at most one unfinished tile, for which there is room; the
    // flight keeps all buffers; no policy can be made but of full warps, and it makes shared memory
    // for the probes and queues.
    unsafe { function.launch(stream, launch, arguments) }
}
