//! Verification of tiles by [`trommel_kernels::signatures`], on the CPU or on a GPU.

use std::mem;
use std::sync::Arc;

use trommel_kernels::Isa;
use trommel_kernels::cuda::signatures::{Answer, GRID, Job, SignedSets, TileJoin, TileLimits};
use trommel_kernels::cuda::{Device, DeviceError, DeviceSets, Flights};
use trommel_kernels::signatures::{self, Tiles};

use super::chunk::JoinChunk;
use super::overlap::DeviceLimits;
use crate::set_similarity_join::candidates::tiles::TiledSets;
use crate::set_similarity_join::parameters::options::JoinOutput;
use crate::wave::{Landed, Resident, Wanted};

/// Verifies the tiles of a chunk on the CPU, with room for `matches_max` matches.
pub(crate) fn run(isa: Isa, chunk: &mut JoinChunk, sets: &TiledSets, matches_max: usize) {
    let mut answer = mem::take(&mut chunk.tiles_answer);
    let (signatures, tiles) = (sets.signatures(isa), chunk.tiles_of(sets));
    match chunk.output {
        JoinOutput::Count => {
            answer.joined.clear();
            answer.counted = signatures::count(isa, signatures, tiles);
        }
        JoinOutput::Pairs => {
            signatures::join(isa, signatures, tiles, matches_max, &mut answer.joined);
            answer.counted = answer.joined.counted();
        }
    }
    chunk.tiles_answer = answer;
}

/// Chunks of tiles in flight on a GPU.
#[derive(Debug)]
pub(crate) struct TilesFlights {
    flights: Flights<TileJoin>,
    /// The sets in device memory, by their version.
    sets: Resident<u64, SignedSets>,
}

impl TilesFlights {
    /// Allocates buffers on `device` for chunks of up to `chunk`.
    ///
    /// # Errors
    /// If the device has not enough memory, or fails.
    pub(crate) fn open(
        device: &Device,
        limits: DeviceLimits,
        chunk: TileLimits,
    ) -> Result<Self, DeviceError> {
        let DeviceLimits { slots, sets_bytes_max } = limits;
        let flights = Flights::open(device, slots, chunk, sets_bytes_max)?;
        Ok(Self { flights, sets: Resident::one() })
    }

    pub(crate) fn has_room(&self, sets: &TiledSets) -> bool {
        self.flights.has_room() && self.sets.has_room(&[wanted(sets)])
    }

    /// The sets of a chunk on the device, and the bytes that were sent.
    fn send_sets(
        &mut self,
        tiles: Tiles<'_>,
        sets: &TiledSets,
    ) -> Result<(Arc<SignedSets>, u64), DeviceError> {
        let (memory, kernels) = (self.flights.memory(), self.flights.kernels());
        let (mut held, bytes) = self.sets.hold(vec![wanted(sets)], |_, used| {
            // Frees the memory of the previous sets first.
            drop(used);
            let sent = DeviceSets::upload(memory, sets.sets().probes().store())?;
            let signed = SignedSets::new(memory, kernels, &sent, tiles.runs, sets.words())?;
            let bytes = DeviceSets::bytes_of(tiles.sets, 0) + size_of_val(tiles.runs.of_sets());
            Ok((signed, bytes as u64))
        })?;
        Ok((held.remove(0), bytes))
    }

    pub(crate) fn submit(
        &mut self,
        chunk: &JoinChunk,
        sets: &TiledSets,
    ) -> Result<(), DeviceError> {
        let (on_device, bytes) = self.send_sets(chunk.tiles_of(sets), sets)?;
        let Tiles { tiles, required, .. } = chunk.tiles_of(sets);
        let answer = match chunk.output {
            JoinOutput::Pairs => Answer::Matches,
            JoinOutput::Count => Answer::Count,
        };
        let job = Job { tiles, required, sets: &on_device, grid: GRID, answer };
        self.flights.submit(&job, bytes)
    }

    pub(crate) fn is_done(&self) -> Result<bool, DeviceError> {
        self.flights.is_done()
    }

    pub(crate) fn collect(&mut self, chunk: &mut JoinChunk) -> Result<Landed, DeviceError> {
        self.flights.collect(|slot| {
            let answer = &mut chunk.tiles_answer;
            answer.counted = slot.counted();
            answer.joined.clear();
            answer.joined.matches.extend_from_slice(slot.matches());
            answer.joined.unfinished.extend_from_slice(slot.unfinished());
            answer.joined.survivors = answer.counted.survivors;
        })
    }
}

/// The sets of tiles.
fn wanted(sets: &TiledSets) -> Wanted<u64> {
    Wanted { key: sets.sets().probes().version(), bytes: 1 }
}
