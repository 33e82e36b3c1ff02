//! The kernel of candidate pairs: [`trommel_kernels::overlap`] on the CPU or on a GPU.

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::sync::Arc;
use std::{mem, ptr};

use trommel_kernels::Isa;
use trommel_kernels::cuda::overlap::{
    Answer, ChunkLimits, DeviceSets, Flight, Job, Kernel as CudaKernel, Policy, Slot, Verifier,
};
use trommel_kernels::cuda::{Device, DeviceError, Lane, Memory, NoDevice};
use trommel_kernels::overlap::{self, Pairs, Sets};

use super::{Kernel, Landed, OnDevice, WaveChunk};

/// What a chunk of pairs is answered with. Its room is used again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OverlapAnswer {
    /// The overlap of each pair, or `REJECTED`; empty if only the count was asked for.
    pub overlaps: Vec<u32>,
    /// How many pairs suffice, if that was asked for.
    pub count: u64,
}

/// Candidate pairs that travel with their sets.
pub trait OverlapChunk: WaveChunk {
    /// The pairs and the sets that they name.
    fn pairs(&self) -> Pairs<'_>;

    /// What is asked.
    fn question(&self) -> Answer;

    /// A number that chunks of the same sets have in common: sets are sent to a device once.
    fn sets_version(&self) -> u64;

    /// Where the answer is written.
    fn answer(&mut self) -> &mut OverlapAnswer;
}

/// Answers chunks of candidate pairs.
#[derive(Debug)]
pub struct OverlapKernel<C> {
    isa: Isa,
    limits: ChunkLimits,
    slots: usize,
    sets_bytes_max: usize,
    chunks: PhantomData<fn(C)>,
}

impl<C> OverlapKernel<C> {
    /// For chunks up to `limits`; on a device `slots` of them are in flight at once, and its memory
    /// is asked for those and for `sets_bytes_max` of sets.
    #[must_use]
    pub fn new(isa: Isa, limits: ChunkLimits, slots: usize, sets_bytes_max: usize) -> Self {
        Self { isa, limits, slots: slots.max(1), sets_bytes_max, chunks: PhantomData }
    }
}

impl<C: OverlapChunk> Kernel for OverlapKernel<C> {
    type Chunk = C;
    type OnDevice = OverlapFlights<C>;

    fn run(&mut self, chunk: &mut C) {
        let mut answer = mem::take(chunk.answer());
        answer.overlaps.clear();
        let pairs = chunk.pairs();
        match chunk.question() {
            Answer::Count => answer.count = overlap::count(self.isa, pairs),
            _ => {
                answer.count = 0;
                answer.overlaps.resize(pairs.chunk.candidates.len(), 0);
                overlap::verify(self.isa, pairs, &mut answer.overlaps);
            }
        }
        *chunk.answer() = answer;
    }

    fn open(&mut self, ordinal: usize) -> Result<OverlapFlights<C>, NoDevice> {
        let device = Device::probe(ordinal)?;
        let chunk_bytes = self.limits.bytes().saturating_mul(self.slots);
        let device_bytes = chunk_bytes.saturating_add(self.sets_bytes_max);
        let memory = Memory::new(&device, device_bytes, chunk_bytes);
        let mut free = Vec::with_capacity(self.slots);
        for _ in 0..self.slots {
            free.push(Slot::new(&memory, self.limits)?);
        }
        Ok(OverlapFlights {
            lane: Arc::new(Lane::new(&device)?),
            verifier: Verifier::new(&device)?,
            memory,
            free,
            flying: VecDeque::with_capacity(self.slots),
            sets: None,
            chunks: PhantomData,
        })
    }
}

/// Sets that the device has.
#[derive(Debug)]
struct Uploaded {
    version: u64,
    probes: Arc<DeviceSets>,
    candidates: Arc<DeviceSets>,
    kernel: CudaKernel,
}

/// A chunk in flight, and what was sent.
#[derive(Debug)]
struct Flying {
    flight: Flight,
    bytes: u64,
}

/// Chunks of candidate pairs in flight over a GPU.
#[derive(Debug)]
pub struct OverlapFlights<C> {
    lane: Arc<Lane>,
    verifier: Arc<Verifier>,
    memory: Arc<Memory>,
    free: Vec<Slot>,
    flying: VecDeque<Flying>,
    sets: Option<Uploaded>,
    chunks: PhantomData<fn(C)>,
}

impl<C: OverlapChunk> OverlapFlights<C> {
    /// Sends the sets of a chunk, unless they are there; how many bytes that took.
    fn send_sets(&mut self, chunk: &C) -> Result<u64, DeviceError> {
        let (version, pairs) = (chunk.sets_version(), chunk.pairs());
        if self.sets.as_ref().is_some_and(|sets| sets.version == version) {
            return Ok(0);
        }
        // What is in flight keeps the sets that it needs.
        self.sets = None;
        let is_self_join = ptr::eq(pairs.probes.tokens(), pairs.candidates.tokens())
            && ptr::eq(pairs.probes.offsets(), pairs.candidates.offsets());
        let candidates = DeviceSets::upload(&self.memory, pairs.candidates)?;
        let mut bytes = set_bytes(pairs.candidates);
        let probes = if is_self_join {
            Arc::clone(&candidates)
        } else {
            bytes += set_bytes(pairs.probes);
            DeviceSets::upload(&self.memory, pairs.probes)?
        };
        let sets = pairs.candidates;
        let kernel = CudaKernel::for_mean_size(sets.tokens().len() / sets.len().max(1));
        self.sets = Some(Uploaded { version, probes, candidates, kernel });
        Ok(bytes)
    }
}

fn set_bytes(sets: Sets<'_>) -> u64 {
    (size_of_val(sets.offsets()) + size_of_val(sets.tokens())) as u64
}

impl<C: OverlapChunk> OnDevice for OverlapFlights<C> {
    type Chunk = C;

    fn has_room(&self) -> bool {
        !self.free.is_empty()
    }

    fn submit(&mut self, chunk: &C) -> Result<(), DeviceError> {
        let mut bytes = self.send_sets(chunk)?;
        let sets = self.sets.as_ref().expect("they have just been sent");
        let slot = self.free.pop().expect("it is asked for room before");
        let pairs = chunk.pairs();
        let parts = pairs.chunk;
        bytes += (size_of_val(parts.entries)
            + size_of_val(parts.candidates)
            + size_of_val(parts.required)
            + size_of_val(parts.starts)) as u64;
        let job = Job {
            pairs,
            probes: &sets.probes,
            candidates: &sets.candidates,
            kernel: sets.kernel,
            policy: Policy::of(sets.kernel),
            answer: chunk.question(),
        };
        let flight = slot.submit(&self.lane, &self.verifier, &job)?;
        self.flying.push_back(Flying { flight, bytes });
        Ok(())
    }

    fn is_done(&mut self) -> Result<bool, DeviceError> {
        self.flying.front().map_or(Ok(false), |flying| flying.flight.is_done())
    }

    fn collect(&mut self, chunk: &mut C) -> Result<Landed, DeviceError> {
        let Flying { flight, bytes } = self.flying.pop_front().expect("it has landed");
        let slot = flight.collect()?;
        let answer = chunk.answer();
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
