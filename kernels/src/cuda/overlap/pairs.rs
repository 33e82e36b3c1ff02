//! The buffers of a chunk of candidate pairs, and its steps over a device.

#![expect(unsafe_code, reason = "a contract with kernels, which nothing checks")]

use std::sync::Arc;

use super::policy::Policy;
use super::variant::FUNCTIONS;
use crate::cuda::driver::{DeviceError, DevicePointer, Images, Memory, images};
use crate::cuda::flights::{CopyIn, CopyOut, Landing, LaunchStep, Primitive, Slot};
use crate::cuda::mirrored::MirroredBuffer;
use crate::cuda::sets::DeviceSets;
use crate::memory::Plain;
use crate::overlap::{Chunk, Entry, Pairs, Start};
use crate::sets::SetStore;

// SAFETY: three `u32` in the order of the kernels' struct (`repr(C)`).
unsafe impl Plain for Entry {}
// SAFETY: three `u32` in the order of the kernels' struct (`repr(C)`).
unsafe impl Plain for Start {}

/// Grids stride by up to 2^31 threads, and the sum of a position and a stride must fit 32 bits.
const COUNT_MAX: usize = 1 << 31;

/// Counters: pairs that suffice, pairs that signatures let pass.
const COUNTERS: usize = 2;
const COUNT: usize = 0;
const SURVIVORS: usize = 1;

/// The largest chunk that a slot takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkLimits {
    /// Entries of the chunk.
    pub entries: usize,
    /// Pairs of the chunk.
    pub pairs: usize,
    /// Whether chunks have the positions at which their pairs start.
    pub starts: bool,
}

impl ChunkLimits {
    /// The bytes of a slot in the device's memory; a slot takes as many in pinned memory.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let pair = 3 * size_of::<u32>() + if self.starts { size_of::<Start>() } else { 0 };
        // A buffer of no starts takes a byte.
        let no_starts = usize::from(!self.starts);
        let counters = COUNTERS * size_of::<u64>();
        self.entries.max(1) * size_of::<Entry>() + self.pairs * pair + counters + no_starts
    }
}

/// The question about a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Answer {
    /// The overlap of each pair, as [`crate::overlap::verify`] gives it.
    Overlaps,
    /// The number of pairs that suffice, as [`crate::overlap::count`] gives it.
    Count,
}

/// A chunk of candidate pairs and the question about it.
#[derive(Clone, Debug)]
pub struct Job<'a> {
    /// The pairs.
    pub chunk: Chunk<'a>,
    /// The sets that entries name, and the sets that candidates name.
    pub sets: [&'a SetStore; 2],
    /// The same sets on the device.
    pub on_device: [&'a Arc<DeviceSets>; 2],
    /// The kernel and its grid: [`Policy::of`] the kernel, unless it is being tuned.
    pub policy: Policy,
    /// The question.
    pub answer: Answer,
}

/// Overlaps of candidate pairs: the buffers of a chunk.
#[derive(Debug)]
pub struct PairOverlap {
    entries: MirroredBuffer<Entry>,
    candidates: MirroredBuffer<u32>,
    required: MirroredBuffer<u32>,
    starts: MirroredBuffer<Start>,
    overlaps: MirroredBuffer<u32>,
    counters: MirroredBuffer<u64>,
}

/// The sets of a chunk in flight, and the question about it.
#[derive(Debug)]
pub struct Kept {
    sets: [Arc<DeviceSets>; 2],
    pairs: usize,
    policy: Policy,
    answer: Answer,
}

impl Kept {
    /// The counters that the kernel writes.
    fn counters(&self) -> usize {
        match self.answer {
            _ if self.policy.variant().is_signed() => COUNTERS,
            Answer::Count => COUNT + 1,
            Answer::Overlaps => 0,
        }
    }
}

/// The answer in the buffers.
#[derive(Debug, Default)]
pub struct Answered {
    overlaps: usize,
    count: Option<u64>,
    survivors: Option<u64>,
}

/// The sets and the chunk as an argument of kernels: `Pairs` of `overlap.cu`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct PairsArgument {
    probe_offsets: DevicePointer<u32>,
    probe_tokens: DevicePointer<u32>,
    candidate_offsets: DevicePointer<u32>,
    candidate_tokens: DevicePointer<u32>,
    entries: DevicePointer<Entry>,
    candidates: DevicePointer<u32>,
    required: DevicePointer<u32>,
    /// Null for a chunk without starts.
    starts: DevicePointer<Start>,
    probe_signatures: DevicePointer<u64>,
    candidate_signatures: DevicePointer<u64>,
    survivors: DevicePointer<u64>,
    entry_count: u32,
    pair_count: u32,
    words: u32,
}

impl PairOverlap {
    fn argument(&self, kept: &Kept) -> PairsArgument {
        let [probes, candidates] = &kept.sets;
        let count = |len| u32::try_from(len).expect("within the slot's limits");
        let has_starts = self.starts.filled() > 0;
        PairsArgument {
            probe_offsets: probes.offsets(),
            probe_tokens: probes.tokens(),
            candidate_offsets: candidates.offsets(),
            candidate_tokens: candidates.tokens(),
            entries: self.entries.pointer(),
            candidates: self.candidates.pointer(),
            required: self.required.pointer(),
            starts: if has_starts { self.starts.pointer() } else { DevicePointer::NULL },
            probe_signatures: probes.signatures(),
            candidate_signatures: candidates.signatures(),
            survivors: self.counters.pointer().at(SURVIVORS as u64),
            entry_count: count(self.entries.filled()),
            pair_count: count(kept.pairs),
            words: count(probes.words()),
        }
    }
}

// SAFETY: the arguments are of the kernels' types, and kernels without shared memory have no
// third parameter, so that the driver does not read it. A chunk that has been checked names
// tokens of its sets only, and the device has the sets of the host. Kernels write an overlap for
// each pair, or the counters. Every policy has full warps and the shared memory that its kernel is
// told of.
unsafe impl Primitive for PairOverlap {
    const IMAGES: &'static Images = images!("overlap");
    const KERNELS: &'static [&'static str] = FUNCTIONS.as_flattened();

    type Limits = ChunkLimits;
    type Job<'a> = Job<'a>;
    type Kept = Kept;
    type Answered = Answered;

    fn bytes(limits: ChunkLimits) -> usize {
        limits.bytes()
    }

    fn allocate(memory: &Arc<Memory>, limits: ChunkLimits) -> Result<Self, DeviceError> {
        let ChunkLimits { entries, pairs, starts } = limits;
        assert!(entries <= COUNT_MAX && pairs <= COUNT_MAX, "{limits:?} exceed {COUNT_MAX}");
        Ok(Self {
            entries: MirroredBuffer::new(memory, entries.max(1))?,
            candidates: MirroredBuffer::new(memory, pairs)?,
            required: MirroredBuffer::new(memory, pairs)?,
            starts: MirroredBuffer::new(memory, if starts { pairs } else { 0 })?,
            overlaps: MirroredBuffer::new(memory, pairs)?,
            counters: MirroredBuffer::new(memory, COUNTERS)?,
        })
    }

    /// Checks that the chunk is within the limits and as [`Pairs`] says, and that the device has
    /// the sets of the host, with signatures of one width if the kernel reads signatures.
    fn check(limits: ChunkLimits, job: &Job<'_>) -> Kept {
        let (chunk, policy) = (job.chunk, job.policy);
        let [probes, candidates] = job.sets.map(SetStore::as_sets);
        Pairs { probes, candidates, chunk }.check();
        let pairs = chunk.candidates.len();
        let fits = chunk.entries.len() <= limits.entries
            && pairs <= limits.pairs
            && (chunk.starts.is_empty() || limits.starts);
        assert!(fits, "a chunk of {pairs} pairs exceeds {limits:?}");
        let mut both = job.on_device.iter().zip(job.sets);
        assert!(
            both.all(|(there, sets)| there.is_copy_of(sets)),
            "the device has other sets than the job"
        );
        let [left, right] = job.on_device.map(|sets| sets.words());
        let has_signatures = left > 0 && left == right;
        assert!(
            has_signatures || !policy.variant().is_signed(),
            "signatures of {left} and {right} words"
        );
        Kept { sets: job.on_device.map(Arc::clone), pairs, policy, answer: job.answer }
    }

    fn fill(&mut self, job: &Job<'_>) {
        self.entries.fill(job.chunk.entries);
        self.candidates.fill(job.chunk.candidates);
        self.required.fill(job.chunk.required);
        self.starts.fill(job.chunk.starts);
    }

    fn copy_in(&self, step: &mut CopyIn<'_>) -> Result<(), DeviceError> {
        step.send(&self.entries)?;
        step.send(&self.candidates)?;
        step.send(&self.required)?;
        step.send(&self.starts)
    }

    fn launch(&self, kept: &Kept, step: &LaunchStep<'_>) -> Result<(), DeviceError> {
        if kept.counters() > 0 {
            step.clear(&self.counters)?;
        }
        let [verify, count] = kept.policy.variant().functions();
        let (function, answers) = match kept.answer {
            Answer::Overlaps => (verify, self.overlaps.pointer().address()),
            Answer::Count => (count, self.counters.pointer().address()),
        };
        let pairs = self.argument(kept);
        let [left, right] = kept.sets.each_ref().map(|sets| sets.longest());
        let tokens = kept.policy.tokens(left.max(right));
        let work = [pairs.entry_count, pairs.pair_count];
        let launch = kept.policy.launch(function, step.device(), work, tokens);
        step.launch(launch, (pairs, answers, tokens))
    }

    fn copy_out(&self, kept: &Kept, step: &mut CopyOut<'_>) -> Result<(), DeviceError> {
        step.fetch(&self.counters, kept.counters())?;
        match kept.answer {
            Answer::Overlaps => step.fetch(&self.overlaps, kept.pairs),
            Answer::Count => Ok(()),
        }
    }

    fn land(&self, kept: &Kept, _: &mut Landing<'_>) -> Result<Answered, DeviceError> {
        let counters = self.counters.host();
        let survivors = kept.policy.variant().is_signed().then_some(counters[SURVIVORS]);
        Ok(match kept.answer {
            Answer::Overlaps => Answered { overlaps: kept.pairs, count: None, survivors },
            Answer::Count => Answered { overlaps: 0, count: Some(counters[COUNT]), survivors },
        })
    }
}

impl Slot<PairOverlap> {
    /// The overlaps of the last chunk; empty if the job asked for a count only.
    #[must_use]
    pub fn overlaps(&self) -> &[u32] {
        let (buffers, answer) = self.answered();
        &buffers.overlaps.host()[..answer.overlaps]
    }

    /// The count of the last chunk, if the job asked for a count.
    #[must_use]
    pub fn count(&self) -> Option<u64> {
        self.answered().1.count
    }

    /// The number of pairs of the last chunk that signatures let pass, if its kernel read
    /// signatures.
    #[must_use]
    pub fn survivors(&self) -> Option<u64> {
        self.answered().1.survivors
    }
}
