//! The kernel of a join: verifies chunks of pairs and of tiles, on the CPU or on a device.

use std::collections::VecDeque;

use trommel_engine::operator::Load;
use trommel_kernels::Isa;
use trommel_kernels::cuda::overlap::ChunkLimits;
use trommel_kernels::cuda::signatures::TileLimits;
use trommel_kernels::cuda::{Device, DeviceError, NoDevice};

use super::chunk::{Content, JoinChunk};
use super::overlap::{self, DeviceLimits, OverlapFlights};
use super::tiles::{self, TilesFlights};
use crate::set_similarity_join::candidates::chunk::CandidateChunk;
use crate::set_similarity_join::candidates::tiles::TileList;
use crate::set_similarity_join::plan::verify_plan::PairKernel;
use crate::set_similarity_join::rows::pair_rows::SimilarRows;
use crate::wave::{DeviceSession, Kernel, Landed, OnDevice, WaveChunk as _};

/// Verifies the chunks of a join.
#[derive(Clone, Debug)]
pub(crate) struct JoinKernel {
    isa: Isa,
    load: Load,
    /// Kernel for candidate pairs on a device.
    pair_kernel: PairKernel,
    pairs: ChunkLimits,
    tiles: TileLimits,
    limits: DeviceLimits,
    /// Rows of pairs, if several kernels share the work of making rows.
    rows: Option<SimilarRows>,
}

impl JoinKernel {
    /// A kernel for chunks of up to `chunk_bytes` bytes. On a device, up to `slots` chunks are in
    /// flight, and up to `sets_bytes_max` bytes of sets are cached.
    pub(crate) fn new(
        isa: Isa,
        pair_kernel: PairKernel,
        chunk_bytes: usize,
        slots: usize,
        sets_bytes_max: usize,
    ) -> Self {
        let pairs = CandidateChunk::pairs_in(chunk_bytes);
        Self {
            isa,
            load: Load::Heavy,
            pair_kernel,
            pairs: ChunkLimits { entries: pairs, pairs, starts: true },
            tiles: TileList::limits(chunk_bytes),
            limits: DeviceLimits { slots, sets_bytes_max },
            rows: None,
        }
    }

    /// Makes the rows of the pairs that the CPU finds.
    pub(crate) fn making_rows(mut self, rows: Option<SimilarRows>) -> Self {
        self.rows = rows;
        self
    }

    /// Sets the load of the kernel in comparison with the filter.
    pub(crate) fn load(mut self, load: Load) -> Self {
        self.load = load;
        self
    }
}

impl Kernel for JoinKernel {
    const NAME: &'static str = "verify";
    type Chunk = JoinChunk;
    type OnDevice = JoinFlights;

    fn load(&self) -> Load {
        self.load
    }

    fn run(&mut self, chunk: &mut JoinChunk) {
        chunk.drop_rows();
        if !chunk.run_work(self.isa) {
            match chunk.content().clone() {
                Content::Empty => {}
                Content::Pairs(sets) => overlap::run(self.isa, chunk, &sets),
                Content::Tiles(sets) => tiles::run(self.isa, chunk, &sets, self.tiles.matches),
            }
        }
        if let Some(rows) = &self.rows
            && !chunk.awaits_device()
        {
            chunk.make_rows(rows);
        }
    }

    fn give_back(&mut self, chunk: &mut JoinChunk) -> bool {
        chunk.give_back()
    }

    fn open(
        &mut self,
        device: &DeviceSession,
        first: Option<&JoinChunk>,
    ) -> Result<JoinFlights, NoDevice> {
        let device = device.open()?;
        let kernel = self.clone();
        let mut flights =
            JoinFlights { kernel, device, pairs: None, tiles: None, order: VecDeque::new() };
        if let Some(chunk) = first {
            flights.open_for(chunk.content())?;
        }
        Ok(flights)
    }
}

/// Kind of a chunk in flight.
#[derive(Clone, Copy, Debug)]
enum ChunkKind {
    Pairs,
    Tiles,
}

/// Chunks of a join in flight on a device.
///
/// The buffers of a kind are allocated with its first chunk, so a kind that does not occur costs
/// nothing. Each kind keeps its own sets: sets that both kinds refer to are sent twice.
#[derive(Debug)]
pub(crate) struct JoinFlights {
    kernel: JoinKernel,
    device: Device,
    pairs: Option<OverlapFlights>,
    tiles: Option<TilesFlights>,
    /// Kinds of the chunks in flight, in the order of submission.
    order: VecDeque<ChunkKind>,
}

const OPENED: &str = "it was opened for the first chunk of this kind";

impl JoinFlights {
    /// Allocates the buffers for chunks with this kind of content, unless they exist.
    fn open_for(&mut self, content: &Content) -> Result<(), DeviceError> {
        let Self { device, pairs, tiles, kernel, .. } = self;
        let JoinKernel { isa, pair_kernel, limits, .. } = *kernel;
        match content {
            Content::Pairs(_) if pairs.is_none() => {
                let opened = OverlapFlights::open(device, limits, kernel.pairs, pair_kernel, isa)?;
                *pairs = Some(opened);
            }
            Content::Tiles(_) if tiles.is_none() => {
                *tiles = Some(TilesFlights::open(device, limits, kernel.tiles)?);
            }
            Content::Empty | Content::Pairs(_) | Content::Tiles(_) => {}
        }
        Ok(())
    }
}

impl OnDevice for JoinFlights {
    type Chunk = JoinChunk;

    fn has_room(&self, chunk: &JoinChunk) -> bool {
        match chunk.content() {
            Content::Empty => true,
            Content::Pairs(sets) => self.pairs.as_ref().is_none_or(|pairs| pairs.has_room(sets)),
            Content::Tiles(sets) => self.tiles.as_ref().is_none_or(|tiles| tiles.has_room(sets)),
        }
    }

    fn submit(&mut self, chunk: &JoinChunk) -> Result<(), DeviceError> {
        self.open_for(chunk.content())?;
        let kind = match chunk.content() {
            Content::Empty => unreachable!("an empty chunk is not sent"),
            Content::Pairs(sets) => {
                self.pairs.as_mut().expect(OPENED).submit(chunk, sets)?;
                ChunkKind::Pairs
            }
            Content::Tiles(sets) => {
                self.tiles.as_mut().expect(OPENED).submit(chunk, sets)?;
                ChunkKind::Tiles
            }
        };
        self.order.push_back(kind);
        Ok(())
    }

    fn is_done(&mut self) -> Result<bool, DeviceError> {
        match self.order.front() {
            None => Ok(false),
            Some(ChunkKind::Pairs) => self.pairs.as_ref().expect(OPENED).is_done(),
            Some(ChunkKind::Tiles) => self.tiles.as_ref().expect(OPENED).is_done(),
        }
    }

    fn collect(&mut self, chunk: &mut JoinChunk) -> Result<Landed, DeviceError> {
        match self.order.pop_front().expect("it has landed") {
            ChunkKind::Pairs => self.pairs.as_mut().expect(OPENED).collect(chunk),
            ChunkKind::Tiles => self.tiles.as_mut().expect(OPENED).collect(chunk),
        }
    }
}
