//! The kernel of candidate pairs: [`trommel_kernels::overlap`] on the CPU or on a GPU.

use std::marker::PhantomData;
use std::mem;

use trommel_kernels::Isa;
use trommel_kernels::cuda::overlap::{Answer, ChunkLimits, Job, PairOverlap, Policy, Variant};
use trommel_kernels::cuda::{Device, DeviceError, Flights, NoDevice};
use trommel_kernels::overlap::{self, Chunk, Pairs};
use trommel_kernels::sets::SetStore;

use super::residents::{Residents, Sent, mean_size};
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
    /// The pairs.
    fn pairs(&self) -> Chunk<'_>;

    /// The sets that entries name, and those that candidates name. A device is sent them once for
    /// all chunks that have the same ones.
    fn sets(&self) -> [&SetStore; 2];

    /// What is asked.
    fn question(&self) -> Answer;

    /// Where the answer is written.
    fn answer(&mut self) -> &mut OverlapAnswer;
}

/// By which kernel a device answers pairs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum PairKernel {
    /// The fastest one for sets of that size.
    #[default]
    BySize,
    /// The fastest one for sets of that size of those that read signatures first.
    SignedBySize,
    /// This one.
    Named(Variant),
}

impl PairKernel {
    fn for_mean_size(self, tokens: usize) -> Variant {
        match self {
            Self::BySize => Variant::for_mean_size(tokens),
            Self::SignedBySize => Variant::signed_for_mean_size(tokens),
            Self::Named(kernel) => kernel,
        }
    }

    fn is_signed(self) -> bool {
        match self {
            Self::BySize => false,
            Self::SignedBySize => true,
            Self::Named(kernel) => kernel.is_signed(),
        }
    }
}

/// Answers chunks of candidate pairs.
#[derive(Debug)]
pub struct OverlapKernel<C> {
    isa: Isa,
    limits: ChunkLimits,
    slots: usize,
    sets_bytes_max: usize,
    kernel: PairKernel,
    chunks: PhantomData<fn(C)>,
}

impl<C> OverlapKernel<C> {
    /// For chunks up to `limits`; on a device `slots` of them are in flight at once, and its memory
    /// is asked for those and for `sets_bytes_max` of sets, which stay there until others need the
    /// room.
    #[must_use]
    pub fn new(isa: Isa, limits: ChunkLimits, slots: usize, sets_bytes_max: usize) -> Self {
        let slots = slots.max(1);
        let kernel = PairKernel::BySize;
        Self { isa, limits, slots, sets_bytes_max, kernel, chunks: PhantomData }
    }

    /// Answers by another kernel than the fastest one.
    #[must_use]
    pub fn with_kernel(self, kernel: PairKernel) -> Self {
        Self { kernel, ..self }
    }
}

impl<C: OverlapChunk> Kernel for OverlapKernel<C> {
    type Chunk = C;
    type OnDevice = OverlapFlights<C>;

    fn run(&mut self, chunk: &mut C) {
        let mut answer = mem::take(chunk.answer());
        answer.overlaps.clear();
        let [probes, candidates] = chunk.sets().map(SetStore::as_sets);
        let pairs = Pairs { probes, candidates, chunk: chunk.pairs() };
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
        Ok(OverlapFlights {
            flights: Flights::open(&device, self.slots, self.limits, self.sets_bytes_max)?,
            residents: Residents::new(self.sets_bytes_max, self.kernel.is_signed(), self.isa),
            kernel: self.kernel,
            chunks: PhantomData,
        })
    }
}

/// Chunks of candidate pairs in flight over a GPU.
#[derive(Debug)]
pub struct OverlapFlights<C> {
    flights: Flights<PairOverlap>,
    residents: Residents,
    kernel: PairKernel,
    chunks: PhantomData<fn(C)>,
}

impl<C: OverlapChunk> OnDevice for OverlapFlights<C> {
    type Chunk = C;

    fn has_room(&self, chunk: &C) -> bool {
        let is_alone = self.flights.is_idle();
        self.flights.has_room() && (is_alone || self.residents.has_room(chunk.sets()))
    }

    fn submit(&mut self, chunk: &C) -> Result<(), DeviceError> {
        let sets = chunk.sets();
        let Sent { sets: on_device, bytes } = self.residents.send(self.flights.memory(), sets)?;
        let kernel = self.kernel.for_mean_size(mean_size(sets));
        let job = Job {
            chunk: chunk.pairs(),
            sets,
            on_device: on_device.each_ref(),
            policy: Policy::of(kernel),
            answer: chunk.question(),
        };
        self.flights.submit(&job, bytes)
    }

    fn is_done(&mut self) -> Result<bool, DeviceError> {
        self.flights.is_done()
    }

    fn collect(&mut self, chunk: &mut C) -> Result<Landed, DeviceError> {
        self.flights.collect(|slot| {
            let answer = chunk.answer();
            answer.overlaps.clear();
            answer.overlaps.extend_from_slice(slot.overlaps());
            answer.count = slot.count().unwrap_or(0);
        })
    }
}
