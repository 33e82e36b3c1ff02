//! The verification of candidate pairs: [`trommel_kernels::overlap`] on the CPU or on a GPU.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;

use trommel_kernels::Isa;
use trommel_kernels::cuda::overlap::{Answer, ChunkLimits, Flight, Job, Policy, Slot, Verifier};
use trommel_kernels::cuda::{Device, DeviceError, Lane, Memory};
use trommel_kernels::overlap;

use super::join_chunk::JoinChunk;
use super::residents::{Residents, Sent};
use super::slots::{DeviceLimits, open_slots};
use crate::set_similarity_join::candidates::joined_sets::JoinedSets;
use crate::set_similarity_join::cost::plan::PairKernel;
use crate::set_similarity_join::options::JoinOutput;
use crate::wave::Landed;

/// Answer of a chunk of pairs. Its room is used again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct OverlapAnswer {
    /// The overlap of each pair, or `REJECTED`; empty if only the count was asked for.
    pub(crate) overlaps: Vec<u32>,
    /// Number of similar pairs, if only that was asked for.
    pub(crate) count: u64,
}

/// Verifies the pairs of a chunk on the CPU.
pub(super) fn run(isa: Isa, chunk: &mut JoinChunk, sets: &JoinedSets) {
    let mut answer = mem::take(&mut chunk.pairs_answer);
    answer.overlaps.clear();
    let pairs = chunk.pairs.pairs(sets);
    match chunk.output {
        JoinOutput::Count => answer.count = overlap::count(isa, pairs),
        JoinOutput::Pairs => {
            answer.overlaps.resize(chunk.pairs.len(), 0);
            overlap::verify(isa, pairs, &mut answer.overlaps);
        }
    }
    chunk.pairs_answer = answer;
}

/// A chunk in flight, and the bytes that were sent for it.
#[derive(Debug)]
struct Flying {
    flight: Flight,
    bytes: u64,
}

/// Chunks of candidate pairs in flight on a GPU.
#[derive(Debug)]
pub(super) struct OverlapFlights {
    lane: Arc<Lane>,
    verifier: Arc<Verifier>,
    memory: Arc<Memory>,
    free: Vec<Slot>,
    flying: VecDeque<Flying>,
    residents: Residents,
    kernel: PairKernel,
}

impl OverlapFlights {
    /// Buffers on `device` for chunks up to `chunk`.
    ///
    /// # Errors
    /// If the device has not enough memory, or fails.
    pub(super) fn open(
        device: &Device,
        limits: DeviceLimits,
        chunk: ChunkLimits,
        kernel: PairKernel,
        isa: Isa,
    ) -> Result<Self, DeviceError> {
        let slot = |memory: &_| Slot::new(memory, chunk);
        let (memory, free) = open_slots(device, limits, chunk.bytes(), slot)?;
        Ok(Self {
            lane: Arc::new(Lane::new(device)?),
            verifier: Verifier::new(device)?,
            memory,
            free,
            flying: VecDeque::with_capacity(limits.slots),
            residents: Residents::new(limits.sets_bytes_max, kernel.is_signed(), isa),
            kernel,
        })
    }

    pub(super) fn has_room(&self, sets: &JoinedSets) -> bool {
        !self.free.is_empty() && (self.flying.is_empty() || self.residents.has_room(stores(sets)))
    }

    pub(super) fn submit(
        &mut self,
        chunk: &JoinChunk,
        sets: &JoinedSets,
    ) -> Result<(), DeviceError> {
        let (pairs, stores) = (chunk.pairs.chunk(), stores(sets));
        let Sent { sets: sent, mut bytes } = self.residents.send(&self.memory, stores)?;
        let slot = self.free.pop().expect("it is asked for room before");
        bytes += (size_of_val(pairs.entries)
            + size_of_val(pairs.candidates)
            + size_of_val(pairs.required)
            + size_of_val(pairs.starts)) as u64;
        let kernel = self.kernel.for_mean_size(sets.candidates().mean_size());
        let job = Job {
            chunk: pairs,
            sets: stores,
            on_device: sent.each_ref(),
            policy: Policy::of(kernel),
            answer: match chunk.output {
                JoinOutput::Pairs => Answer::Overlaps,
                JoinOutput::Count => Answer::Count,
            },
        };
        let flight = slot.submit(&self.lane, &self.verifier, &job)?;
        self.flying.push_back(Flying { flight, bytes });
        Ok(())
    }

    pub(super) fn is_done(&self) -> Result<bool, DeviceError> {
        self.flying.front().map_or(Ok(false), |flying| flying.flight.is_done())
    }

    pub(super) fn collect(&mut self, chunk: &mut JoinChunk) -> Result<Landed, DeviceError> {
        let Flying { flight, bytes } = self.flying.pop_front().expect("it has landed");
        let slot = flight.collect()?;
        let answer = &mut chunk.pairs_answer;
        answer.overlaps.clear();
        answer.overlaps.extend_from_slice(slot.overlaps());
        answer.count = slot.count().unwrap_or(0);
        let count_bytes = slot.count().map_or(0, |count| size_of_val(&count));
        let bytes_from_device = (size_of_val(slot.overlaps()) + count_bytes) as u64;
        let times = slot.times();
        self.free.push(slot);
        Ok(Landed { times, bytes_to_device: bytes, bytes_from_device })
    }
}

fn stores(sets: &JoinedSets) -> [&overlap::SetStore; 2] {
    [sets.probes().store(), sets.candidates().store()]
}
