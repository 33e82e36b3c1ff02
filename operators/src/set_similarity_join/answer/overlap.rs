//! Verification of candidate pairs by [`trommel_kernels::overlap`], on the CPU or on a GPU.

use std::mem;

use trommel_kernels::Isa;
use trommel_kernels::cuda::overlap::{Answer, ChunkLimits, Job, PairOverlap, Policy};
use trommel_kernels::cuda::{Device, DeviceError, Flights};
use trommel_kernels::overlap;
use trommel_kernels::sets::SetStore;

use super::chunk::JoinChunk;
use super::device_sets::{DeviceSetCache, UploadedSets};
use crate::set_similarity_join::candidates::joined_sets::JoinedSets;
use crate::set_similarity_join::parameters::options::JoinOutput;
use crate::set_similarity_join::plan::verify_plan::PairKernel;
use crate::wave::Landed;

/// Limits on a device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceLimits {
    /// Maximum number of chunks in flight.
    pub(crate) slots: usize,
    /// Maximum bytes of sets in device memory.
    pub(crate) sets_bytes_max: usize,
}

/// Verifies the pairs of a chunk on the CPU.
pub(crate) fn run(isa: Isa, chunk: &mut JoinChunk, sets: &JoinedSets) {
    let mut answer = mem::take(&mut chunk.pairs_answer);
    answer.overlaps.clear();
    match chunk.output {
        JoinOutput::Count => answer.count = chunk.pairs.count(isa, sets),
        JoinOutput::Pairs => {
            answer.overlaps.resize(chunk.pairs.len(), 0);
            overlap::verify(isa, chunk.pairs.pairs(sets), &mut answer.overlaps);
        }
    }
    chunk.pairs_answer = answer;
}

/// Chunks of candidate pairs in flight on a GPU.
#[derive(Debug)]
pub(crate) struct OverlapFlights {
    flights: Flights<PairOverlap>,
    cache: DeviceSetCache,
    kernel: PairKernel,
}

impl OverlapFlights {
    /// Allocates buffers on `device` for chunks within the limits `chunk`.
    ///
    /// # Errors
    /// If the device has not enough memory, or fails.
    pub(crate) fn open(
        device: &Device,
        limits: DeviceLimits,
        chunk: ChunkLimits,
        kernel: PairKernel,
        isa: Isa,
    ) -> Result<Self, DeviceError> {
        let DeviceLimits { slots, sets_bytes_max } = limits;
        Ok(Self {
            flights: Flights::open(device, slots, chunk, sets_bytes_max)?,
            cache: DeviceSetCache::new(sets_bytes_max, kernel.is_signed(), isa),
            kernel,
        })
    }

    pub(crate) fn has_room(&self, sets: &JoinedSets) -> bool {
        // While no chunk is in flight, a chunk is submitted even if its sets do not fit: the upload
        // of the sets then reports the error.
        let is_alone = self.flights.is_idle();
        self.flights.has_room() && (is_alone || self.cache.has_room(stores(sets)))
    }

    pub(crate) fn submit(
        &mut self,
        chunk: &JoinChunk,
        sets: &JoinedSets,
    ) -> Result<(), DeviceError> {
        let stores = stores(sets);
        let UploadedSets { sets: on_device, bytes } =
            self.cache.send(self.flights.memory(), stores)?;
        let mean_size = sets.candidates().mean_size();
        let variant = self.kernel.for_mean_size(mean_size);
        let job = Job {
            chunk: chunk.pairs.chunk(),
            sets: stores,
            on_device: on_device.each_ref(),
            policy: Policy::for_mean_size(variant, mean_size),
            answer: match chunk.output {
                JoinOutput::Pairs => Answer::Overlaps,
                JoinOutput::Count => Answer::Count,
            },
        };
        self.flights.submit(&job, bytes)
    }

    pub(crate) fn is_done(&self) -> Result<bool, DeviceError> {
        self.flights.is_done()
    }

    pub(crate) fn collect(&mut self, chunk: &mut JoinChunk) -> Result<Landed, DeviceError> {
        self.flights.collect(|slot| {
            let answer = &mut chunk.pairs_answer;
            answer.overlaps.clear();
            answer.overlaps.extend_from_slice(slot.overlaps());
            answer.count = slot.count().unwrap_or(0);
        })
    }
}

/// The sets of the probes and of the candidates.
fn stores(sets: &JoinedSets) -> [&SetStore; 2] {
    [sets.probes().store(), sets.candidates().store()]
}
