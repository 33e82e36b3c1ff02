//! The kernel of tiles of all pairs: [`trommel_kernels::signatures`] on the CPU or on a GPU.

use std::marker::PhantomData;
use std::mem;
use std::sync::Arc;

use trommel_kernels::Isa;
use trommel_kernels::cuda::signatures::{Answer, GRID, Job, SignedSets, TileJoin, TileLimits};
use trommel_kernels::cuda::{Device, DeviceError, DeviceSets, Flights, NoDevice};
use trommel_kernels::sets::SetStore;
use trommel_kernels::signatures::{self, Counted, Joined, Signatures, Tiles};

use super::{Kernel, Landed, OnDevice, WaveChunk};

/// What a chunk of tiles is answered with. Its room is used again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TilesAnswer {
    /// The matches, and the tiles for which there was no room; empty if only the count was asked
    /// for.
    pub joined: Joined,
    /// Matches and survivors.
    pub counted: Counted,
}

/// Tiles that travel with their sets.
pub trait TilesChunk: WaveChunk {
    /// The tiles and the sets that they name: all chunks of the same sets have the same runs.
    fn tiles(&self) -> Tiles<'_>;

    /// Those sets. A device is sent them once for all chunks that have the same ones.
    fn sets(&self) -> &SetStore;

    /// The signatures of the sets, for the CPU.
    fn signatures(&self) -> &Signatures;

    /// Words of a signature: 1, 2, 4 or 8.
    fn words(&self) -> usize;

    /// What is asked.
    fn question(&self) -> Answer;

    /// Where the answer is written.
    fn answer(&mut self) -> &mut TilesAnswer;
}

/// Answers chunks of tiles.
#[derive(Debug)]
pub struct TilesKernel<C> {
    isa: Isa,
    limits: TileLimits,
    slots: usize,
    sets_bytes_max: usize,
    chunks: PhantomData<fn(C)>,
}

impl<C> TilesKernel<C> {
    /// For chunks up to `limits`, of which a CPU too keeps the room for matches; on a device
    /// `slots` of them are in flight at once, and its memory is asked for those and for
    /// `sets_bytes_max` of sets with their signatures.
    #[must_use]
    pub fn new(isa: Isa, limits: TileLimits, slots: usize, sets_bytes_max: usize) -> Self {
        Self { isa, limits, slots: slots.max(1), sets_bytes_max, chunks: PhantomData }
    }
}

impl<C: TilesChunk> Kernel for TilesKernel<C> {
    type Chunk = C;
    type OnDevice = TilesFlights<C>;

    fn run(&mut self, chunk: &mut C) {
        let mut answer = mem::take(chunk.answer());
        let (signatures, tiles) = (chunk.signatures(), chunk.tiles());
        if chunk.question() == Answer::Count {
            answer.joined.clear();
            answer.counted = signatures::count(self.isa, signatures, tiles);
        } else {
            let room = self.limits.matches;
            signatures::join(self.isa, signatures, tiles, room, &mut answer.joined);
            answer.counted = answer.joined.counted();
        }
        *chunk.answer() = answer;
    }

    fn open(&mut self, ordinal: usize) -> Result<TilesFlights<C>, NoDevice> {
        let device = Device::probe(ordinal)?;
        Ok(TilesFlights {
            flights: Flights::open(&device, self.slots, self.limits, self.sets_bytes_max)?,
            sets: None,
            chunks: PhantomData,
        })
    }
}

/// Chunks of tiles in flight over a GPU.
#[derive(Debug)]
pub struct TilesFlights<C> {
    flights: Flights<TileJoin>,
    /// The sets that the device has.
    sets: Option<Arc<SignedSets>>,
    chunks: PhantomData<fn(C)>,
}

impl<C: TilesChunk> TilesFlights<C> {
    /// The sets of a chunk on the device, and how many bytes had to be sent.
    fn send_sets(&mut self, chunk: &C) -> Result<(Arc<SignedSets>, u64), DeviceError> {
        if let Some(sets) = self.sets.as_ref().filter(|there| there.are_of(chunk.sets())) {
            return Ok((Arc::clone(sets), 0));
        }
        // What is in flight keeps the sets that it needs.
        self.sets = None;
        let Tiles { sets, runs, .. } = chunk.tiles();
        let (memory, kernels) = (self.flights.memory(), self.flights.kernels());
        let sent = DeviceSets::upload(memory, chunk.sets())?;
        let signed = SignedSets::new(memory, kernels, &sent, runs, chunk.words())?;
        self.sets = Some(Arc::clone(&signed));
        let bytes = DeviceSets::bytes_of(sets, 0) + size_of_val(runs.of_sets());
        Ok((signed, bytes as u64))
    }
}

impl<C: TilesChunk> OnDevice for TilesFlights<C> {
    type Chunk = C;

    fn has_room(&self, chunk: &C) -> bool {
        let is_known = self.sets.as_ref().is_none_or(|there| there.are_of(chunk.sets()));
        self.flights.has_room() && (is_known || self.flights.is_idle())
    }

    fn submit(&mut self, chunk: &C) -> Result<(), DeviceError> {
        let (sets, bytes) = self.send_sets(chunk)?;
        let (Tiles { tiles, required, .. }, answer) = (chunk.tiles(), chunk.question());
        self.flights.submit(&Job { tiles, required, sets: &sets, grid: GRID, answer }, bytes)
    }

    fn is_done(&mut self) -> Result<bool, DeviceError> {
        self.flights.is_done()
    }

    fn collect(&mut self, chunk: &mut C) -> Result<Landed, DeviceError> {
        self.flights.collect(|slot| {
            let answer = chunk.answer();
            answer.counted = slot.counted();
            answer.joined.clear();
            answer.joined.matches.extend_from_slice(slot.matches());
            answer.joined.unfinished.extend_from_slice(slot.unfinished());
            answer.joined.survivors = answer.counted.survivors;
        })
    }
}
